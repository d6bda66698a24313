#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Is it true? Run a program without causal, really give each function of a sweep less to do, and
# show beside each prediction what that brings.
# Usage: examples/check.sh DIR [PROGRAM]
# DIR holds the sweep's profile.json. PROGRAM (the sweep's own if not given) takes a number of
# units and FUNCTION=PERCENT, and prints "... N ms each", as examples/frames.c does.
# Unchanged and changed runs of UNITS (30) take turns, TURNS (12) times; medians count.
# Exit status: 0 true, 1 not true, 2 nothing to compare, 3 cannot tell.
set -euo pipefail
python=$("$(dirname "$0")/../scripts/python3.sh") || {
	echo "check.sh: there is no python3, which this is written in: apt-get install python3" >&2
	exit 2
}
exec "$python" - "$@" << 'PY'
import json, os, re, subprocess, sys
from statistics import median, quantiles

NEAR = 4  # points, as doc/ACCURACY.md has it


def stop(text):
    print("check.sh: " + text, file=sys.stderr)
    sys.exit(2)


def predictions(directory):
    """Who was profiled, and (function, speedup, effect, low, high), best function first."""
    path = os.path.join(directory, "profile.json")
    try:
        with open(path, encoding="utf-8") as file:
            profile = json.load(file)
        return profile["command"].split()[0], [
            (region["name"], c["speedup"], c["effect"], c["low"], c["high"])
            for region in profile["regions"] for point in region["progress"][:1]
            for c in point["curve"] if c["low"] is not None]
    except OSError as error:
        stop(f"cannot read {path}: {error.strerror}; name the directory of a sweep")
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        stop(f"{path} is damaged: {error!r}")


def milliseconds(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    except OSError as error:
        stop(f"cannot run {command[0]}: {error.strerror}; name the program as the second argument")
    said = re.search(r"([0-9.]+) ms each", done.stdout)
    if done.returncode or not said:
        stop(f"'{' '.join(command)}' does not say 'N ms each' (exit status {done.returncode}): "
             "it is not made for this check")
    return float(said[1])


if len(sys.argv) not in (2, 3):
    stop("usage: examples/check.sh DIR [PROGRAM]; DIR is what causal -o DIR wrote")
program, rows = predictions(sys.argv[1])
program = sys.argv[2] if len(sys.argv) == 3 else program
if not rows:
    stop(f"{sys.argv[1]} predicts nothing: it takes a longer sweep (causal -n)")
units, turns = os.environ.get("UNITS", "30"), os.environ.get("TURNS", "12")
if not turns.isdigit() or int(turns) < 2:
    stop(f"TURNS={turns} is no number of turns: 2 or more")
gains, periods = [[] for _ in rows], []
for _ in range(int(turns)):
    for gain, (function, speedup, *_) in zip(gains, rows):
        periods.append(milliseconds(program, units))
        changed = milliseconds(program, units, f"{function}={100 - speedup:g}")
        gain.append(100 * (1 - changed / periods[-1]))

wide = max(len(row[0]) for row in rows)
print(f"{'code':{wide}}  faster by  predicted (95 % interval)  really")
wrong, vague, brings = 0, 0, {}
for (function, speedup, effect, low, high), gain in zip(rows, gains):
    really, note = median(gain), ""
    if abs(effect - really) > NEAR:
        if low <= really <= high:
            vague, note = vague + 1, "  too few experiments"
        else:
            wrong, note = wrong + 1, f"  off by {abs(effect - really):.1f}"
    brings[function] = max(really, brings.get(function, really))
    interval = f"({low:.1f} to {high:.1f})"
    print(f"{function:{wide}}  {speedup:7g} %  {effect:6.1f} % {interval:16}  {really:6.1f} %{note}")
best, (low, _, high) = max(brings, key=brings.get), quantiles(periods, n=4)
if high > 1.1 * low:
    print(f"Cannot tell: the unchanged program itself varies by {100 * (high / low - 1):.0f} %. "
          "Repeat on an idle machine.")
    sys.exit(3)
if brings[best] > brings[rows[0][0]] + NEAR:
    print(f"Not true: {rows[0][0]} comes first, but {best} brings more.")
    sys.exit(1)
if wrong:
    print(f"Not true: {wrong} of {len(rows)} predictions are more than {NEAR} points off. "
          "`causal selftest` says whether predictions can be trusted here, now.")
    sys.exit(1)
if vague:
    print(f"Cannot tell: {vague} of {len(rows)} intervals are too wide. Repeat the sweep with a "
          "larger -n.")
    sys.exit(3)
print(f"True: all {len(rows)} predictions are at most {NEAR} points off, and {best} really "
      "brings most.")
PY
