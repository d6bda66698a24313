#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The call graph's figures, in all its forms and formats, against those that Python finds in the events which
the print sink wrote."""
import json
import os
import re
import statistics
import sys
import tempfile
from collections import defaultdict

from script import check, check_flat, feed
from checks import status

LINE = re.compile(r"(\d+)\.(\d{9}) \d+/(\d+) (\S+) (.*?) (\d+(?::0x[0-9a-f]+)?)(?: flags=\d+)?(?: \"(.*)\")?$")
INDEX = {"0": 0, "100": 1, "101": 2, "200": 3}
FORMS = {"tree": "callgraph", "flat": "callgraph-flat", "timeline": "callgraph-timeline"}


def read_bursts(path, kernel_ids):
    """(thread, is it the begin, time, label, key) of each burst's ends, and the last time of each thread."""
    last, bursts = {}, []
    with open(path, encoding="utf-8") as file:
        for line in file:
            seconds, ns, thread, kind, key, value, name = LINE.match(line).groups()
            thread = INDEX[thread] if kernel_ids else int(thread)
            last[thread] = int(seconds) * 10**9 + int(ns)
            if kind.startswith("burst-"):
                named = name and value != "1" and key != "task"
                bursts.append((thread, kind == "burst-begin", last[thread], f"{key}: {name}" if named else key, key))
    return bursts, last


def expected(path, form, kernel_ids=True):
    """{(thread, path or number of the call): (lengths, self)}. What is innermost at some time, it is that which
    spends it."""
    bursts, last = read_bursts(path, kernel_ids)
    lengths, own = defaultdict(list), defaultdict(int)
    stacks, seen, calls, ends = defaultdict(list), {}, defaultdict(int), 0
    for thread, begin, time, label, key in bursts:
        stack = stacks[thread]
        if stack:
            own[thread, stack[-1][0]] += time - seen[thread]
        seen[thread] = time
        if begin:
            calls[thread] += 1
            place = (stack[-1][0] if stack and form != "flat" else ()) + (label,)
            if form == "timeline":
                place = (stack[-1][0] if stack else ()) + (f"{label} {calls[thread]}",)
            stack.append((place, time, key))
            continue
        found = [i for i, frame in enumerate(stack) if frame[2] == key]
        if not found:
            ends += 1
            continue
        place, begun, _ = stack.pop(found[-1])
        lengths[thread, place].append(time - begun)
    still = 0
    for thread, stack in stacks.items():
        if stack:
            own[thread, stack[-1][0]] += last[thread] - seen[thread]
        for place, begun, _ in reversed(stack):
            lengths[thread, place].append(last[thread] - begun)
            still += 1
    return {where: (values, own[where]) for where, values in lengths.items()}, still, ends


def merged(rows):
    together = {}
    for (_, place), (values, own) in rows.items():
        before = together.get(place, ([], 0))
        together[place] = (before[0] + values, before[1] + own)
    return together


def is_near(got, wanted):
    return abs(got - wanted) <= 1e-9 * max(abs(wanted), 1)


def check_row(where, row, wanted, form):
    """One of the flat JSON against (lengths, self)."""
    check(wanted is not None, f"{where}: nothing like it among the events")
    if not wanted:
        return
    values, own = wanted
    stats, entry = row["stats"], row["entry"]
    variance = statistics.variance(values) if len(values) > 1 else 0
    check((entry["laps"], entry["accum"], stats["count"], stats["sum"], stats["min"], stats["max"]) ==
          (len(values), sum(values), len(values), sum(values), min(values), max(values)), f"{where}: {row} {values[:5]}")
    check(is_near(stats["mean"], statistics.fmean(values)) and is_near(stats["variance"], variance) and
          is_near(stats["stddev"], variance**0.5) and is_near(stats["sqr"], sum(v * v for v in values)),
          f"{where}: {row} {values[:5]}")
    share = 100 * own / sum(values) if sum(values) else 100
    check(abs(row["self"] - share) < 1e-6, f"{where}: self {row['self']} is not {share}")
    check(form == "timeline" or set(row) == {"hash", "prefix", "depth", "entry", "stats", "self", "rolling_hash"},
          f"{where}: {set(row)}")


def places(rows):
    """(place, row) of a list of rows with depths."""
    stack = []
    for row in rows:
        del stack[row["depth"]:]
        check(len(stack) == row["depth"], f"depth of {row}")
        stack.append(row["prefix"])
        yield tuple(stack), row


def numbered(rows):
    """The same for calls, which are known by their order in time."""
    order = {id(row): n for n, row in enumerate(sorted(rows, key=lambda row: row["begin"]), 1)}
    stack = []
    for row in rows:
        del stack[row["depth"]:]
        stack.append(f"{row['prefix']} {order[id(row)]}")
        yield tuple(stack), row


def check_form(scratch, form, *words, kernel_ids=True):
    sink = FORMS[form]
    feed(f"print={scratch}/lines,{sink}={scratch}/flat.json,{sink}={scratch}/x.tree.json,{sink}={scratch}/x.folded,"
         f"{sink}={scratch}/x.md,{sink}={scratch}/x.txt", *words)
    rows, still, ends = expected(f"{scratch}/lines", form, kernel_ids)
    with open(f"{scratch}/flat.json", encoding="utf-8") as file:
        clock = json.load(file)["causal"]["wall_clock"]
    check((clock["open"], clock["ends_without_beginning"], clock["left_out"]) == (still, ends, 0), f"{clock}")
    check(clock["thread_count"] == len({thread for thread, _ in rows}), f"{clock['thread_count']} threads")
    for thread in clock["threads"]:
        check(thread["graph_size"] == len(thread["graph"]), f"{thread}")
        listed = numbered(thread["graph"]) if form == "timeline" else places(thread["graph"])
        for place, row in listed:
            check_row((thread["thread"], place), row, rows.pop((thread["thread"], place), None), form)
    check(not rows, f"not in the call graph: {list(rows)[:5]}")
    rows = merged(expected(f"{scratch}/lines", form, kernel_ids)[0])
    if form != "timeline" and rows:
        together = clock["ranks"][0]["graph"]
        for place, row in places(together):
            check_row(place, row, rows.pop(place, None), form)
        check(not rows, f"not in the merged call graph: {list(rows)[:5]}")
    check_formats(scratch, form, clock, words[0] != "script")


def walk(nodes, place=()):
    for node in nodes:
        here = place + (node["node"]["prefix"],)
        yield here, node["node"]
        yield from walk(node["children"], here)


def check_formats(scratch, form, clock, nested):
    """The other formats against the flat JSON. nested: no bursts cross."""
    everything = [row for thread in clock["threads"] for row in thread["graph"]]
    if clock["ranks"]:
        flat = dict(places(clock["ranks"][0]["graph"]))
        with open(f"{scratch}/x.tree.json", encoding="utf-8") as file:
            tree = dict(walk(json.load(file)["causal"]["wall_clock"]["ranks"][0]["graph"]))
        check(set(tree) == set(flat), "the tree has other rows")
        for place, node in tree.items():
            check(node["inclusive"]["stats"] == flat[place]["stats"], f"{place}: inclusive")
        for root in [place for place in tree if len(place) == 1 and nested and form == "tree"]:
            inside = sum(node["exclusive"]["entry"]["accum"] for place, node in tree.items() if place[:1] == root)
            check(inside == tree[root]["inclusive"]["entry"]["accum"], f"{root}: its exclusive times are {inside}")
        if clock["thread_count"] > 1:
            everything += clock["ranks"][0]["graph"]
    with open(f"{scratch}/x.folded", encoding="utf-8") as file:
        folded = sum(int(line.rsplit(" ", 1)[1]) for line in file)
    own = sum(row["self"] / 100 * row["entry"]["accum"] for t in clock["threads"] for row in t["graph"])
    check(is_near(folded, round(own)), f"folded stacks hold {folded} ns of {own}")
    for name in "txt", "md":
        with open(f"{scratch}/x.{name}", encoding="utf-8") as file:
            lines = file.read().splitlines()
        rows = [line for line in lines if ">>> " in line]
        check(len(rows) == len(everything), f"{name}: {len(rows)} lines, {len(everything)} rows")
        check(any("% SELF" in line for line in lines), f"{name}: no head")
        for line, row in zip(rows, everything) if form == "timeline" else ():
            cells = [cell for cell in re.split(r"[ |]+", line) if cell][-10:]
            check(int(cells[0]) == row["begin"] and int(cells[3]) == row["entry"]["accum"], f"{line} {row}")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        for form in FORMS:
            check_form(scratch, form, "script")
            check_form(scratch, form, "many", "30000")
            check_form(scratch, form, "nothing")
        check_form(scratch, "tree", "threads", "300", kernel_ids=False)
        check_form(scratch, "flat", "tasks", "2000")
        said = feed("callgraph", "script")[2]
        check("1 ended without a beginning" in said and "1 bursts did not end" in said, said)
        check("|all>>> work: five \"5\"" in said and "|1>>> |_step \"one\"" in said, said)
        said = feed("callgraph", "gap")[2]
        check("1 ended without a beginning" in said and "1 bursts did not end" in said and "|_" not in said, said)
        feed(f"callgraph-timeline={scratch}/long.json", "many", "2000000")
        with open(f"{scratch}/long.json", encoding="utf-8") as file:
            clock = json.load(file)["causal"]["wall_clock"]
        found = sum(thread["graph_size"] for thread in clock["threads"])
        check(found == 1 << 18 and found + clock["left_out"] == 600000, f"{found} rows, {clock['left_out']} without")
    check_flat("callgraph")
    check_flat("callgraph-flat")
    for name in FORMS.values():
        said = feed(f"{name}=/dev/full", "script", expect=3)[2]
        check("No space left" in said and said.count("\n") == 1, said)
    feed(f"callgraph={os.devnull}/no", "script", expect=2)
    return status()


if __name__ == "__main__":
    sys.exit(main())
