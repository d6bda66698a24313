#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the json sink writes, read as the viewers do."""
import json
import sys
from collections import Counter, defaultdict

from script import EVENTS, PROCESS, STEP, check, check_flat, check_full, feed_file
from checks import status

EMPTY = "\ufffd"


def balanced(events):
    """Slices of a thread are inside one another, and none stays open; asynchronous ones by their id."""
    open_slices = defaultdict(list)
    for event in events:
        if event["ph"] == "B":
            open_slices[event["pid"], event["tid"]].append(event)
        elif event["ph"] == "E":
            stack = open_slices[event["pid"], event["tid"]]
            check(stack and stack.pop()["ts"] <= event["ts"], f"an end without a beginning: {event}")
        elif event["ph"] == "b":
            open_slices[event["cat"], event["id"]].append(event["name"])
        elif event["ph"] == "e":
            stack = open_slices[event["cat"], event["id"]]
            check(stack and stack.pop() == event["name"], f"an end without a beginning: {event}")
    check(not any(open_slices.values()), f"these do not end: {open_slices}")


def main():
    data, _ = feed_file("json", "script")
    events = json.loads(data)
    kinds = Counter(event["ph"] for event in events)
    balanced(events)
    # one line for each event, but for flows, metadata, and what was cut or left open
    extra = [event for event in events if event.get("args", {}).keys() & {"again", "goes on"}]
    check(sum(kinds[ph] for ph in "BEbeiCX") - len(extra) == EVENTS, f"{kinds}, {len(extra)} more")
    check(kinds["s"] == 1 and kinds["f"] == 2 and kinds["C"] == 2, f"{kinds}")

    names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in events if "name" in e.get("args", {})}
    check(names["process_name", 100, 100] == PROCESS, f"{names}")
    check(names["thread_name", 100, 101] == f"bad {EMPTY} byte,\nline", f"{names}")
    check(names["process_name", 200, 200] == "child" and names["process_name", 0, 0] == "causal", f"{names}")

    mine = [event for event in events if event.get("tid") == 100 and event["ph"] in "BE"]
    spans = [(event["ph"], event.get("name"), round(1000 * event["ts"])) for event in mine]
    check(spans == [("B", 'work: five "5"', 1100), ("B", STEP, 1200), ("B", "work", 1250), ("E", None, 1300),
                    ("B", "task: six", 1480), ("E", None, 1510),
                    ("E", None, 1600), ("E", None, 1600), ("B", STEP, 1600), ("E", None, 1700)], f"{spans}")
    flows = {event["ph"]: event for event in events if event["ph"] in "sf" and event["tid"] in (100, 101)}
    check(flows["s"]["id"] == flows["f"]["id"] and flows["s"]["cat"] == "default", f"{flows}")
    states = [(e["ph"], e["name"], e["ts"]) for e in events if e["ph"] in "be" and e["tid"] == 100]
    check(states[:4] == [("b", "running", 1.0), ("b", "waits for a lock", 1.75), ("e", "waits for a lock", 1.8),
                         ("e", "running", 1.9)], f"{states}")
    counts = [e["args"]["value"] for e in events if e["ph"] == "C" and e["cat"] == "developer"]
    check(counts == [4096, 8192], f"{counts}")
    instants = {e["name"]: e for e in events if e["ph"] == "i"}
    check(instants["selection: main"]["ts"] == instants["hit"]["ts"] == 1.35, f"{instants}")
    check("work (end)" in instants and instants["key-4000"]["cat"] == "unknown", f"{instants}")
    exact = [e["args"] for e in events if e["ph"] == "i" and e["name"] == STEP]
    check(exact == [{"value": str(2**64 - 1)}, {"value": 4, "flags": 2}], f"{exact}")

    below = [e["args"]["value"] for e in json.loads(feed_file("json", "negative")[0]) if e["ph"] == "i"]
    check(below == [-3, 3, 0, str(-2**63)], f"{below}")

    check_flat("json")
    check_full("json")
    # the disk is full after 100 KiB: what is there can be read, what is not there is counted
    data, (_, _, said) = feed_file("json", "many", "100000", limit=100, expect=3)
    there = [event for event in json.loads(data) if event["ph"] != "M"]
    check(f"{100000 - len(there)} events are missing" in said and len(there) > 500, f"{len(there)}: {said}")
    return status()


if __name__ == "__main__":
    sys.exit(main())
