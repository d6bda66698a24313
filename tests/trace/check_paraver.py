#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the paraver sink writes keeps Paraver's rules (prv.py), and says what was raised."""
import os
import re
import sys
import tempfile

from prv import Paraver, Refused
from script import EVENTS, FLAT, STEP, check, feed
from checks import causal, status

# one thread, and two whose times lie between each other: every line
ONE = """1:1:1:1:1:0:40:1
2:1:1:1:1:0:{work}:5
2:1:1:1:1:10:{work}:6:{hit}:7
2:1:1:1:1:20:{work}:5
2:1:1:1:1:30:{work}:0
"""
TWO = """1:1:1:1:1:0:40:1
2:1:1:1:1:0:{work}:5
1:1:1:2:1:5:25:2
2:1:1:1:1:10:{work}:6:{hit}:7
2:1:1:1:1:20:{work}:5
2:1:1:2:1:25:{hit}:1
2:1:1:1:1:30:{work}:0
"""


def check_exact(scratch, word, expected):
    """All lines of a small trace. The numbers of types come from the .pcf."""
    stem = os.path.join(scratch, word)
    feed(f"paraver={stem}.prv", word)
    numbers = {name: number for number, (name, _) in Paraver(stem).types.items()}
    with open(stem + ".prv", encoding="utf-8") as file:
        body = file.read().split("\n", 1)[1]
    check(body == expected.format(**numbers), f"{word}: {body}")


def check_script(scratch):
    stem = os.path.join(scratch, "a")
    feed(f"paraver={stem}.prv", "script")
    check(sorted(os.listdir(scratch)) == ["a.pcf", "a.prv", "a.row"], f"{os.listdir(scratch)}")
    trace = Paraver(stem)
    check(trace.duration == 1501 and trace.cpus == 4, f"{trace.duration} ns, {trace.cpus} cpus")
    check(list(trace.threads) == [(1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 1, 1)], f"{trace.threads}")
    check(trace.rows["THREAD"] == ["THREAD 1.1.1 main", "THREAD 1.1.2 bad \ufffd byte, line", "THREAD 1.2.1",
                                   "THREAD 2.1.1 causal"], f"{trace.rows}")
    check(trace.states[1, 1, 1] == [(500, 1250, "running"), (1250, 1300, "waits for a lock"),
                                    (1300, 1400, "running")], f"{trace.states}")
    check(trace.states[1, 1, 2] == [(400, 1150, "running")], f"{trace.states}")
    work = [e[1:] for e in trace.events if e[0] == (1, 1, 1) and e[2] in ("work", STEP)]
    check(work == [(600, "work", 5), (700, STEP, 1), (750, "work", 6), (800, "work", 5), (1100, "work", 0),
                   (1200, STEP, 0)], f"{work}")
    check(trace.messages == [((1, 1, 1), 1000, (1, 1, 2), 1050)], f"{trace.messages}")
    check(((1, 2, 1), 2, "message", 78) in trace.events, "a message of which one end is there")
    check(((1, 2, 1), 1, STEP, 2**63 - 1) in trace.events, "a value that has no sign")
    check(((1, 1, 1), 1470, "key-4000", 1) in trace.events, f"{trace.events}")
    check(trace.types[9000004][1][2] == "waits for a lock", f"{trace.types}")
    values = {name: values for name, values in trace.types.values()}
    check(values["work"] == {0: "End", 5: 'five "5"'}, f"{values}")
    return stem


def check_convert(scratch, stem):
    """The binary sink and `causal convert` come to the same; types are the same without the other keys."""
    feed(f"binary={scratch}/b.trace", "script")
    causal("convert", f"{scratch}/b.trace")
    for ending in (".prv", ".pcf", ".row"):
        with open(stem + ending, "rb") as one, open(f"{scratch}/b{ending}", "rb") as two:
            one, two = one.read(), two.read()
            check(one.split(b":", 2)[2:] == two.split(b":", 2)[2:], f"{ending} differs: {one} {two}")
    feed(f"paraver={scratch}/c.prv", "one")
    small, large = Paraver(f"{scratch}/c"), Paraver(stem)
    check(all(large.types[number][0] == name for number, (name, _) in small.types.items()
              if name in ("work", "hit")), f"{small.types} {large.types}")


def check_refusals(scratch, stem):
    """The validator finds what it is there for."""
    with open(stem + ".prv", encoding="utf-8") as file:
        good = file.read()
    for what, bad in {
        "time": re.sub(r"^(2:.*\n)(3:.*\n)", r"\2\1", good, count=1, flags=re.M),
        "cpu": good.replace("\n2:4:", "\n2:5:", 1), "thread": good.replace("\n2:1:1:2:1:", "\n2:1:1:2:2:", 1),
        "threads": good.replace(":2(2:1,1:1)", ":2(3:1,1:1)"), "type": good.replace(":9000004:", ":9000005:"),
        "duration": good.replace("1501_ns", "1400_ns"), "field": good.replace(":9000004:", ":", 1),
        "states": good.replace(":500:1250:1\n", ":500:1260:1\n"),
    }.items():
        check(bad != good, f"{what}: nothing was changed")
        with open(f"{scratch}/bad.prv", "w", encoding="utf-8") as file:
            file.write(bad)
        for ending in (".pcf", ".row"):
            with open(stem + ending, "rb") as one, open(f"{scratch}/bad{ending}", "wb") as two:
                two.write(one.read())
        try:
            Paraver(f"{scratch}/bad")
            check(False, f"{what}: not found")
        except Refused:
            pass


def main():
    with tempfile.TemporaryDirectory() as scratch:
        stem = check_script(scratch)
        check_convert(scratch, stem)
        check_refusals(scratch, stem)
        check_exact(scratch, "one", ONE)
        check_exact(scratch, "two", TWO)
        feed(f"paraver={scratch}/none.prv", "nothing")
    with tempfile.TemporaryDirectory() as scratch:
        events, grown, _ = feed(f"paraver={scratch}/many.prv", "many", "1000000")
        check(grown < FLAT, f"memory grew by {grown} KiB for {events} events")
        trace = Paraver(f"{scratch}/many")
        # of ten events two are of states
        raised = len(trace.events) + 2 * sum(len(states) for states in trace.states.values())
        check(raised == events == 1000000, f"{raised} of {events} events")
    with tempfile.TemporaryDirectory() as scratch:
        # the disk is full when the .prv is written, while the events are all there
        _, _, said = feed(f"paraver={scratch}/full.prv", "many", "100000", expect=3, limit=1000)
        check("for causal convert" in said and os.path.isdir(f"{scratch}/full.prv.parts"), said)
        check(len(Paraver(f"{scratch}/full").events) > 1000, "what was written cannot be looked at")
        causal("convert", f"{scratch}/full.prv.parts", "-o", f"{scratch}/again")
        check(len(Paraver(f"{scratch}/again").events) == 80000, "what was kept was not all")
        _, _, said = feed(f"paraver={scratch}/no/where.prv", "script", expect=2)
        check("cannot write" in said and said.count("\n") == 1, said)
    return status()


if __name__ == "__main__":
    sys.exit(main())
