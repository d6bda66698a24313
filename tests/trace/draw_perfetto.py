#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""draw_perfetto.py TRACE PICTURE [FROM_MS [LENGTH_MS]]: a part of what the perfetto sink has written, drawn
from the decoded file with matplotlib as a viewer would: a row for each track, slices as bars, instants as
ticks, flows as arrows. For looking at; no test."""
import sys

import matplotlib

matplotlib.use("Agg")
from check_perfetto import Trace  # pylint: disable=wrong-import-position
from matplotlib import pyplot  # pylint: disable=wrong-import-position


def label(trace, uuid):
    track = trace.tracks[uuid]
    if track.get("name"):
        return " ".join([label(trace, parent) for parent in track.get("parent_uuid", [])] + track["name"])
    kind = (track.get("thread") or track["process"])[0]
    return " ".join(str(part) for part in (kind.get("tid") or kind["pid"]) + kind.get("thread_name", []))


def main():
    with open(sys.argv[1], "rb") as file:
        trace = Trace(file.read())
    first = min(slices[0][1] for slices in trace.slices.values() if slices)
    begin, length = (float(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((3, 0), (4, 20)))

    def ms(time):
        return (time - first) / 1e6 - begin

    rows, colours = {}, {}
    axes = pyplot.subplots(figsize=(16, 9))[1]
    for uuid in sorted((u for u in trace.tracks if trace.slices[u]), key=lambda u: label(trace, u)):
        row = rows[uuid] = len(rows)
        seen = [s for s in trace.slices[uuid] if ms(s[2]) >= 0 and ms(s[1]) <= length]
        for name, start, end in sorted(seen, key=lambda s: (s[1], -s[2])):
            outer = sum(s[1] <= start and end <= s[2] for s in seen) - 1
            colour = colours.setdefault(name, f"C{len(colours) % 10}")
            axes.broken_barh([(ms(start), ms(end) - ms(start))], (row + 0.1 * outer, 0.8 - 0.2 * outer), color=colour)
            if ms(end) - ms(start) > length / 12:
                axes.text(max(ms(start), 0), row + 0.15 + 0.1 * outer, name, fontsize=6, clip_on=True)
    for name, time, uuid in trace.ticks:
        if 0 <= ms(time) <= length and uuid in rows:
            colour = colours.setdefault(name, f"C{len(colours) % 10}")
            axes.plot(ms(time), rows[uuid] + 0.85, marker="^", markersize=4, color=colour)
    ends = {}
    for way, flow, uuid, time in trace.flows:
        ends.setdefault(flow, {})[way] = (ms(time), rows.get(uuid, 0) + 0.4)
    for end in ends.values():
        if len(end) == 2 and 0 <= end["out"][0] <= length:
            axes.annotate("", end["in"], end["out"], arrowprops={"arrowstyle": "->"})
    axes.set(xlim=(0, length), ylim=(len(rows), -0.2), xlabel=f"ms, from {begin} on",
             yticks=[row + 0.4 for row in rows.values()], yticklabels=[label(trace, u) for u in rows])
    axes.legend(handles=[pyplot.Rectangle((0, 0), 1, 1, color=c, label=n) for n, c in colours.items()], fontsize=6)
    pyplot.tight_layout()
    pyplot.savefig(sys.argv[2])


if __name__ == "__main__":
    sys.exit(main())
