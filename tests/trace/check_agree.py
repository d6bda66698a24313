#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several sinks of one run agree on how many events there were, with any number of threads."""
import json
import os
import re
import sys
import tempfile
import time

from check_perfetto import PACKET, decode
from prv import Paraver
from script import check, check_flat, check_full, feed, feed_file
from checks import causal, status

ALL = ("print", "json", "perfetto", "binary", "statistics", "paraver", "dot")


def counts(scratch, names):
    """Events by sink, each counted in its own format."""
    found = {}
    with open(f"{scratch}/print", "rb") as file:
        found["print"] = len(file.read().splitlines())
    with open(f"{scratch}/json", encoding="utf-8") as file:
        found["json"] = sum(event["ph"] in "BEbeiCX" and not event.get("args", {}).keys() & {"again", "goes on"}
                            for event in json.load(file))
    if "perfetto" in names:
        with open(f"{scratch}/perfetto", "rb") as file:
            packets = decode(file.read(), {1: ("packet", PACKET)})["packet"]
        cut = next(s["iid"] for p in packets for data in p["interned_data"] for s in data["debug_annotation_names"]
                   if s["name"] == ["cut"])
        found["perfetto"] = sum(not any(note["name_iid"] == cut for note in event["debug_annotations"])
                                for packet in packets for event in packet["track_event"])
    with open(f"{scratch}/statistics", encoding="utf-8") as file:
        found["statistics"] = int(re.match(r"(\d+) events", file.readline())[1])
    found["binary"] = sum((os.path.getsize(f"{scratch}/binary/{name}") - 64) // 24
                          for name in os.listdir(f"{scratch}/binary") if name != "names")
    causal("convert", f"{scratch}/binary", "--sinks", f"print={scratch}/converted")
    with open(f"{scratch}/converted", "rb") as file:
        found["convert"] = len(file.read().splitlines())
    return found


def run(names, *words):
    with tempfile.TemporaryDirectory() as scratch:
        targets = {name: f"{scratch}/{name}" + ".prv" * (name == "paraver") for name in names}
        begun = time.monotonic()
        events, _, _ = feed(",".join(f"{name}={path}" for name, path in targets.items()), *words)
        found = counts(scratch, names)
        print(f"{words}: {events} events in {time.monotonic() - begun:.1f} s: {found}")
        check(events and set(found.values()) == {events}, f"{words}: {events}, but {found}")
        return Paraver(f"{scratch}/paraver"), events


def main():
    said = feed("perfetto=/dev/null", "nothing", expect=None)[2]
    names = [name for name in ALL if name != "perfetto" or "is not in this build" not in said]
    run(names, "script")
    run(names, "tasks", "2000")
    trace, events = run(names, "pings", "5000")
    check(2 * len(trace.messages) == events, f"paraver: {len(trace.messages)} of {events} / 2")
    # no fixed number of threads, nor one open file for each
    trace, events = run(names, "threads", "10000")
    check(len(trace.threads) == 10000 and len(trace.states) == 10000, f"paraver: {len(trace.states)} threads")
    check(trace.rows["THREAD"].count("THREAD 1.10.1000 worker 9999") == 1, f"{trace.rows['THREAD'][-3:]}")

    check_flat("print")
    check_full("print")
    data, (_, _, said) = feed_file("print", "many", "100000", limit=100, expect=3)
    there = data.decode("utf-8").splitlines()
    check(f"{100000 - len(there)} events are missing" in said and len(there) > 500 and data.endswith(b"\n"), said)

    # a limit on files is a full disk that leaves room for others
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("print", "json", "perfetto", "binary"):
            if name in names:
                said = feed(f"{name}={scratch}/{name}", "many", "100000", "50000", expect=3)[2]
                check("(File too large)" in said, f"{name}: {said}")
        sizes = {name: os.path.getsize(f"{scratch}/{name}") for name in ("print", "json", "perfetto")
                 if name in names}
        sizes["binary"] = sum(os.path.getsize(f"{scratch}/binary/{name}") - 64
                              for name in os.listdir(f"{scratch}/binary") if name != "names")
        check(all(48000 < size <= 50000 for size in sizes.values()), f"{sizes}")
        with open(f"{scratch}/json", encoding="utf-8") as file:
            json.load(file)
    return status()


if __name__ == "__main__":
    sys.exit(main())
