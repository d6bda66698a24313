#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long our handler keeps a thread from its work beyond the delay that it pays, in us. Run by `make bench-held`.
A thread of tests/bench/bench_held reads the time-stamp counter without a break. What is missing between two readings
in which a signal of ours came, less the time for which the thread waited for a CPU (as the kernel says), less what causal
says that it paid meanwhile (event `delay`), is what the handler took: with its way through the kernel, and with what
interrupts, and the host of a virtual machine, took during that time. Gaps without a signal are beside it: what is as
long there is not ours. HELD_SECONDS (default 10): of each run. HELD_LOAD (default 0): so many busy loops beside it."""
import bisect
import collections
import os
import re
import subprocess
import sys
import tempfile

BUILD = os.environ["CA_TOP_BUILDDIR"]
SECONDS = os.environ.get("HELD_SECONDS", "10")
LOAD = int(os.environ.get("HELD_LOAD", "0"))
DELAY = re.compile(r"([0-9.]+) [0-9]+/([0-9]+) point delay ([0-9]+)")


def delays(path):
    """For each thread: when it had paid, ns, in order; and what."""
    paid = collections.defaultdict(lambda: ([], []))
    with open(path, encoding="utf-8") as file:
        for line in file:
            if found := DELAY.match(line):
                seconds, fraction = found[1].split(".")
                times, values = paid[int(found[2])]
                times.append(int(seconds) * 10**9 + int(fraction.ljust(9, "0")))
                values.append(int(found[3]))
    return paid


def show(what, values):
    values = sorted(values)
    if values:
        at = [values[min(len(values) - 1, int(share * len(values)))] / 1000 for share in (0.5, 0.99, 0.999)]
        print(f"  {what}: {len(values)}; median {at[0]:.1f}, 99 % {at[1]:.1f}, 99.9 % {at[2]:.1f}, "
              f"longest {values[-1] / 1000:.1f}", flush=True)


def measure(ticks, speedup, scratch):
    words = [os.path.join(BUILD, "tests", "bench", "bench_held"), SECONDS]
    events = os.path.join(scratch, "events")
    if ticks:
        words = [os.path.join(BUILD, "driver", "causal"), "-o", os.path.join(scratch, f"{ticks}-{speedup}"), "-b", ticks,
                 "-n", "1", "-s", str(speedup), "-F", "^selected$", "-P", "unselected", "--events", "none,+delay",
                 "--sinks", f"print={events}", "--", *words]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: status {done.returncode}: {done.stderr[-2000:]}")
    paid = delays(events) if ticks else {}
    first, later, none, debts = [], [], [], []
    for line in done.stdout.splitlines():
        tid, end, length, off, signal, before = map(int, line.split())
        held = length - min(off, length)
        if not signal:
            none.append(held)
            continue
        times, values = paid.get(tid, ([], []))
        i, j = bisect.bisect_left(times, end - length), bisect.bisect_right(times, end)
        if j > i:
            debts.append(sum(values[i:j]))
        (later if before else first).append(held - sum(values[i:j]))
    print(f"{ticks} at {speedup} %" if ticks else "alone", f"(load {os.getloadavg()[0]:.1f}):")
    show("paid", debts)
    show("beyond it, first tick of a thread", first)
    show("beyond it, others", later)
    show("gaps without a tick", none)


def main():
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(LOAD)]
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for ticks, speedup in (None, 0), ("perf", 0), ("perf", 50), ("timer", 0), ("timer", 50):
                measure(ticks, speedup, scratch)
    finally:
        for one in busy:
            one.kill()


main()
