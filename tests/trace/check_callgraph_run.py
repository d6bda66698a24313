#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The call graph of a real run: its figures, what is throttled, and `causal diff` of two."""
import json
import os
import re
import sys
import tempfile

from script import check
from checks import BUILD, causal, status

APP = os.path.join(BUILD, "examples", "regions")
SIMULATE = {"simulate": 1, "simulate > level": 3, "simulate > level > step": 30}


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["causal"]["wall_clock"]


def laps(rows):
    stack, found = [], {}
    for row in rows:
        stack[row["depth"]:] = [row["prefix"]]
        found[" > ".join(stack)] = row["entry"]["laps"]
    return found


def by_thread(clock):
    return {thread["name"]: laps(thread["graph"]) for thread in clock["threads"]}


def changes(text):
    """{row: (count, sum)} of what diff says."""
    return {line[:60].strip(): tuple(int(n) for n in line[60:].split()[:2]) for line in text.splitlines()[1:]}


def check_figures(scratch):
    causal("trace", "--events", "user", "--throttle", "0", "--sinks",
           f"binary={scratch}/trace,callgraph={scratch}/all.json", "--", APP)
    first = {"main": 1} | {f"main > {row}": n for row, n in SIMULATE.items()} | {"main > tick": 20000}
    clock = read(f"{scratch}/all.json")
    check(by_thread(clock) == {"first": first, "second": SIMULATE}, f"{by_thread(clock)}")
    check(laps(clock["ranks"][0]["graph"]) == first | SIMULATE, f"{clock['ranks']}")
    # the same events, the same figures
    causal("convert", f"{scratch}/trace", "--sinks", f"callgraph={scratch}/again.json")
    check(read(f"{scratch}/again.json") == clock, "a converted trace has another call graph")
    # live, each process has its own main, of which the flat form makes one row
    causal("convert", f"{scratch}/trace", "--sinks", f"callgraph-flat={scratch}/flat.json")
    flat = laps(read(f"{scratch}/flat.json")["ranks"][0]["graph"])
    check(flat == {"main": 1, "simulate": 2, "level": 6, "step": 60, "tick": 20000}, f"{flat}")


def check_none(scratch):
    """What nobody wants is not counted as an event of the trace."""
    for sink in ("callgraph", "statistics"):
        done = causal("trace", "--events", "none", "--sinks", f"{sink}={scratch}/none", "--", APP)
        check("causal: 0 events" in done.stderr, f"{sink}: {done.stderr}")


def check_counted_in_place(scratch):
    """With no other sink, bursts are counted where they are raised: all of them, however fast they come."""
    done = causal("trace", "--events", "user", "--throttle", "0", "--trace-ring", "8", "--sinks",
                  f"callgraph={scratch}/own.json,callgraph-flat={scratch}/own-flat.json", "--", APP, "3000000")
    first = {"main": 1} | {f"main > {row}": n for row, n in SIMULATE.items()} | {"main > tick": 3000000}
    clock = read(f"{scratch}/own.json")
    check(by_thread(clock) == {"first": first, "second": SIMULATE}, f"{by_thread(clock)}")
    check("none missing" in done.stderr, done.stderr)
    flat = laps(read(f"{scratch}/own-flat.json")["ranks"][0]["graph"])
    check(flat == {"main": 1, "simulate": 2, "level": 6, "step": 60, "tick": 3000000}, f"{flat}")


def check_throttled(scratch):
    done = causal("trace", "--events", "user", "--sinks", f"callgraph={scratch}/less.json,callgraph={scratch}/less",
                  "--", APP, "10000000")
    clock = read(f"{scratch}/less.json")
    check(clock["throttled"] == [{"key": "tick", "laps": 10000}], f"{clock['throttled']}")
    check(by_thread(clock)["first"]["main > tick"] == 10000, f"{by_thread(clock)}")
    with open(f"{scratch}/less", encoding="utf-8") as file:
        check("throttled: tick: 10000 calls" in file.read(), "the text says nothing of it")
    raised = sum(int(n) for n in re.findall(r"(\d+) events? (?:of|are missing)", done.stderr))
    check(10000 < raised < 20000000, f"{raised} events were raised: the program was not told")
    # ... and not, where another sink wants them
    causal("trace", "--events", "user", "--sinks", f"callgraph={scratch}/x.json,statistics={scratch}/statistics",
           "--", APP)
    with open(f"{scratch}/statistics", encoding="utf-8") as file:
        found = re.search(r"^tick +all +(\d+)", file.read(), re.M)
    check(found and found[1] == "20000", f"statistics counts {found and found[1]}")


def check_diff(scratch):
    same = causal("diff", f"{scratch}/all.json", f"{scratch}/all.json").stdout
    check(set(changes(same).values()) == {(0, 0)} and "-" not in same.split("\n", 1)[1], same)
    both = [causal("diff", *[f"{scratch}/{name}.json" for name in names]).stdout
            for names in (("all", "less"), ("less", "all"))]
    there, back = (changes(text) for text in both)
    check(there["main > tick"][0] == -10000 and "+10000" in both[1], both[0])
    check(all(back[row] == (-count, -total) for row, (count, total) in there.items()), f"{both}")
    sums = {}
    for name in "all", "less":
        rows = read(f"{scratch}/{name}.json")["ranks"][0]["graph"]
        sums[name] = {where: row["stats"]["sum"] for where, row in zip(laps(rows), rows)}
    check(all(total == sums["less"].get(row, 0) - sums["all"].get(row, 0) for row, (_, total) in there.items()),
          f"{there}")
    causal("convert", f"{scratch}/trace", "--sinks", f"callgraph-flat={scratch}/flat.json,"
           f"callgraph-timeline={scratch}/time.json,callgraph={scratch}/x.tree.json")
    text = causal("diff", f"{scratch}/all.json", f"{scratch}/flat.json").stdout
    check(re.search(r"^main > tick .* gone ", text, re.M) and re.search(r"^tick .* new ", text, re.M), text)
    for words, said in ((["time.json", "all.json"], "old one has no rows"), (["all.json"], "name two"),
                        (["all.json", "x.tree.json"], "no rows with a depth"),
                        (["all.json", "no.json"], "cannot be read"), (["less", "all.json"], "cannot be read")):
        done = causal("diff", *[f"{scratch}/{word}" for word in words], expect=2)
        check(said in done.stderr, f"diff {words}: {done.stderr}")
    with open(f"{scratch}/other.json", "w", encoding="utf-8") as file:
        file.write('{"causal": 1}')
    check("nothing that can be compared" in causal("diff", f"{scratch}/other.json", f"{scratch}/all.json",
                                                   expect=2).stderr, "another file")


def main():
    if os.environ.get("CA_SANITIZER"):
        print("SKIP: the runtime does not go with " + os.environ["CA_SANITIZER"])
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        check_figures(scratch)
        check_none(scratch)
        check_counted_in_place(scratch)
        check_throttled(scratch)
        check_diff(scratch)
    return status()


if __name__ == "__main__":
    sys.exit(main())
