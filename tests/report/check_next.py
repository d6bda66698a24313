#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a sweep shows at its end: the table, and commands to go on with, which can be pasted."""
import json
import os
import shlex
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checks import causal, check, status  # noqa: E402
from fixture import region, write_run  # noqa: E402


def next_of(scratch, name, top, *options):
    """The commands told after one more run in a directory in which `top` is the best region."""
    for run in (1, 2):
        write_run(os.path.join(scratch, name), run, [top, region("other")], effects={top["name"]: 40})
    said = causal("-n", "1", "-o", name, *options, "--", "true", "an argument", cwd=scratch).stderr
    check("  1  " + top["name"] in said, f"{name}: {said}")
    return {line.split(": ")[1]: shlex.split(line.split(": ", 2)[2])
            for line in said.splitlines() if line.startswith("causal: ") and line.count(": ") == 2}


def check_resume(scratch):
    """More runs with the same command and options, but for what was for one time only."""
    def run(*words, expect=0):
        causal(*words, cwd=scratch, expect=expect)

    def first(number):
        with open(os.path.join(scratch, "r", f"run-{number:04}.jsonl"), encoding="utf-8") as file:
            return json.loads(file.readline())

    run("-o", "r", "-n", "1", "--reset", "-P", "none", "-FE", "a b", "c", "-s", "0,10", "--", "true", "x y")
    run("resume", "r", "-n", "2")
    check([name for name in sorted(os.listdir(os.path.join(scratch, "r"))) if name.startswith("run-")] ==
          [f"run-000{n}.jsonl" for n in range(1, 7)], f"resumed: {os.listdir(os.path.join(scratch, 'r'))}")
    one, more = first(1), first(5)
    check(more["command"] == ["true", "x y"] and more["options"] == one["options"],
          f"the same again: {more}")
    check(one["options"] == ["--progress=none", "--function-exclude=a b", "--function-exclude=c",
                              "--speedups=0,10"], f"options: {one['options']}")
    run("resume", expect=2)
    run("resume", "nothing", expect=2)
    run("resume", "r", "--no-such", expect=2)
    said = causal("resume", "r", "-n", "1", "--", "false", cwd=scratch, expect=2).stderr
    check("takes no other behind --" in said and "causal -o OTHER-DIR -- ./app" in said, f"another program: {said}")


def check_progress(scratch):
    """A line per run where there is no terminal, objects, or nothing."""
    def said(*options):
        return causal("-n", "2", "-o", "p", *options, "--", "true", cwd=scratch).stderr.splitlines()

    check(sum(line.startswith("causal: run ") for line in said()) == 2, "a line per run")
    quiet = said("-q")
    check(not [line for line in quiet if line.startswith("causal: run ")] and quiet, f"-q: {quiet}")
    lines = [json.loads(line) for line in said("--progress-format", "json") if line.startswith("{")]
    check([line["run"] for line in lines if line["type"] == "run"] == [1, 2], f"json: {lines}")
    check(lines[-1]["runs"] == 2 and lines[-1]["to_go"] == 0, f"json: {lines[-1]}")


def main():
    if os.environ.get("CA_SANITIZER"):
        print("skipped: the runtime does not go with a sanitizer")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        told = next_of(scratch, "a b", region("f<int>::g(char*)", file="/src/f.cc", line=3), "-m", "function",
                       "-F", "f", "-F", "g", "-B", "true")
        lines = told.get("which lines of it", [])
        check(lines == ["causal", "-B", "true", "-m", "line", "-F", r"^f<int>::g\(char\*\)$", "-o", "a b-lines",
                        "--", "true", "an argument"], f"lines: {lines}")
        page = told.get("curves, call chains, source", [])
        check(page == ["causal", "report", "a b"], f"report: {page}")
        causal(*page[1:], cwd=scratch)
        check(os.path.exists(os.path.join(scratch, "a b", "report.html")), "report")
        told = next_of(scratch, "stripped", region("sub_10", function="", file=""))
        check("which lines of it" not in told, f"there are no lines: {told}")
        check_resume(scratch)
        check_progress(scratch)
    return status()


if __name__ == "__main__":
    sys.exit(main())
