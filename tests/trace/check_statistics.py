#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The statistics sink's table against Python's statistics of what the print sink wrote."""
import os
import re
import statistics
import sys
import tempfile
from collections import defaultdict

from script import EVENTS, check, check_flat, feed
from checks import status

ROW = re.compile(r"(.+?) +(all|\d+(?: .*?)?) +(\d+)(?: +(-?\d+) +(-?[\d.]+) +(-?\d+) +(-?\d+) +([\d.]+))?$")
LINE = re.compile(r"(\d+)\.(\d{9}) \d+/(\d+) (\S+) (.*?) (-?\d+(?::0x[0-9a-f]+)?)(?: flags=\d+)?(?: \"(.*)\")?$")
INDEX = {"0": "0", "100": "1", "101": "2", "200": "3"}


def expected(path):
    """(what, thread): its numbers; from the lines of the print sink."""
    found, stacks, last = defaultdict(list), defaultdict(list), {}
    events, ends = 0, 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            seconds, ns, thread, kind, key, value, name = LINE.match(line).groups()
            thread, time = INDEX[thread], int(seconds) * 10**9 + int(ns)
            last[thread] = time
            events += 1
            if kind.endswith("-begin") and kind != "ptp-begin":
                label = key if kind == "burst-begin" else f"{key}: {name}" + " (sub-state)" * (kind[:3] == "sub")
                stacks[thread, kind[:-6], key].append((label, time))
            elif kind.endswith("-end") and kind != "ptp-end":
                stack = stacks[thread, kind[:-4], key]
                if stack:
                    label, begun = stack.pop()
                    found[label, thread].append(time - begun)
                else:
                    ends += 1
            elif kind == "point" and name:
                found[f"{key}: {name}", thread].append(None)
            elif kind == "point":
                found[f"{key}, value", thread].append(int(value))
            else:
                found[key + {"ptp-begin": ", sent", "ptp-end": ", received"}.get(kind, ", other"), thread].append(None)
    still = [(label, thread, last[thread] - begun) for (thread, _, _), stack in stacks.items()
             for label, begun in stack]
    for label, thread, length in still:
        found[label, thread].append(length)
    for (label, thread), values in list(found.items()):
        found[label, "all"] += values
    return found, events, len(still), ends


def compare(scratch, *words):
    feed(f"print={scratch}/lines,statistics={scratch}/table", *words)
    found, events, still, ends = expected(f"{scratch}/lines")
    with open(f"{scratch}/table", encoding="utf-8") as file:
        lines = file.read().splitlines()
    threads = {thread for _, thread in found} - {"all"}
    head = f"{events} events of {len(threads)} threads; lengths in ns"
    head += f"; {still} did not end" * bool(still) + f"; {ends} ended without a beginning" * bool(ends)
    check(lines[0] == head, f"{lines[0]} is not {head}")
    for line in lines[2:]:
        label, thread, count, *numbers = ROW.match(line).groups()
        values = found.pop((label, thread.split()[0]), None)
        check(values and int(count) == len(values), f"{line}: {values}")
        if not values or values[0] is None:
            check(numbers[0] is None, line)
            continue
        total, least, most = int(numbers[0]), int(numbers[2]), int(numbers[3])
        mean, deviation = float(numbers[1]), float(numbers[4])
        wanted = statistics.stdev(values) if len(values) > 1 else 0
        check(abs(total - sum(values)) <= abs(sum(values)) >> 63 and (least, most) == (min(values), max(values)) and
              abs(mean - statistics.fmean(values)) <= 0.06 + 1e-12 * abs(mean) and
              abs(deviation - wanted) <= 0.06 + 1e-9 * wanted, f"{line}: {values[:5]}")
    check(not found, f"not in the table: {found.keys()}")
    return events, lines


def main():
    with tempfile.TemporaryDirectory() as scratch:
        events, lines = compare(scratch, "script")
        check(events == EVENTS and any(line.split()[:3] == ["wait", "all", "1"] for line in lines), f"{lines}")
        check(any(" 2 bad \ufffd byte, line " in line for line in lines), f"{lines}")
        compare(scratch, "many", "30000")
        compare(scratch, "nothing")
        below = compare(scratch, "negative")[1]
        check(below[2].split()[-3:-1] == [str(-2**63), "3"], f"{below}")
        head, _, *lines_of_gap = feed("statistics", "gap")[2].splitlines()
        check(head.endswith("; 1 did not end; 1 ended without a beginning"), head)
        check(lines_of_gap[-1].split()[2:4] == ["1", "10"], f"{lines_of_gap}")
        said = feed("statistics", "script")[2]
        check(said.splitlines() == lines, "on stderr")
    check_flat("statistics")
    said = feed("statistics=/dev/full", "script", expect=3)[2]
    check("No space left" in said and said.count("\n") == 1, said)
    feed(f"statistics={os.devnull}/no", "script", expect=2)
    return status()


if __name__ == "__main__":
    sys.exit(main())
