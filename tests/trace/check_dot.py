#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the dot sink writes, as text and, where Graphviz is, as Graphviz draws it."""
import re
import shutil
import subprocess
import sys

from script import check, check_flat, feed, feed_file
from checks import status


def graph(*words):
    """(label, node labels, edges between them, the text)"""
    text = feed_file("dot", *words)[0].decode("utf-8")
    nodes = {name: label.replace("\\n", "\n").replace('\\"', '"')
             for name, label in re.findall(r'^\t\t(n\d+) \[label="((?:[^"\\]|\\.)*)"', text, re.M)}
    edges = {(nodes[a].split("\n")[0], nodes[b].split("\n")[0]): label
             for a, b, label in re.findall(r'^\t(n\d+) -> (n\d+) \[label="(.*)"\];$', text, re.M)}
    return re.search(r'^\tlabel="(.*)";$', text, re.M)[1], set(nodes.values()), edges, text


def main():
    label, nodes, edges, text = graph("script")
    check(label == "5 nodes, 1 edges; 1 ends without the other one", label)
    check(nodes == {"task 6 six\n30 ns in 1", "task 7\n100 ns in 1", "task 8\n10 ns in 1",
                    "thread 2 bad \ufffd byte, line", "thread 3"}, f"{nodes}")
    check(edges == {("task 6 six", "thread 2 bad \ufffd byte, line"): "message 1"}, f"{edges}")
    frames = re.findall(r'^\t\tlabel="(.*)";$', text, re.M)
    check(frames == ['process 1 a \\"quoted\\" n\u00e4me\\\\', "process 2 child"], f"{frames}")

    # both ends of each are found, though the second is told first; and in little memory
    label, nodes, edges, _ = graph("pings", "500000")
    check(edges == {("thread 1", "thread 2"): "message 500000"} and ";" not in label, f"{label} {edges}")
    label, nodes, edges, _ = graph("tasks", "1000")
    check(len(nodes) == 1000 and len(edges) == 999 and edges["task 7", "task 8"] == "message 1", label)
    label, nodes, edges, _ = graph("tasks", "100000")
    check(len(nodes) == 65536 and "are left out" in label, label)
    for size, widths in ((0, []), (1, [0.95, 1.85, 5.0]), (2, [2.75, 3.82, 5.0])):
        found = [float(width) for width in re.findall(r"width=([\d.]+)", graph("script", "0", "0", str(size))[3])]
        check(sorted(found) == widths, f"sizes of nodes, {size}: {found}")
    check(graph("nothing")[0] == "0 nodes, 0 edges", "an empty graph")
    check_flat("dot")
    said = feed("dot=/dev/full", "script", expect=3)[2]
    check("No space left" in said and said.count("\n") == 1, said)

    if not shutil.which("dot"):
        print("SKIP: Graphviz is not here; Debian: graphviz")
        return status()
    for words, boxes, arrows in ((("script",), 5, 1), (("tasks", "50"), 50, 49), (("nothing",), 0, 0)):
        done = subprocess.run(["dot", "-Tsvg"], input=graph(*words)[3], capture_output=True, text=True, check=False)
        check(done.returncode == 0 and not done.stderr, f"dot: {done.stderr}")
        check(done.stdout.count('class="node"') == boxes and done.stdout.count('class="edge"') == arrows, f"{words}")
    return status()


if __name__ == "__main__":
    sys.exit(main())
