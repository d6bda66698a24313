#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`causal compare`: what is slower is said to be, what only scatters is not, and the exit status is for CI."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checks import causal, check, status  # noqa: E402
from fixture import region, write_run  # noqa: E402


def compare(*words, expect=0):
    return causal("compare", *words, expect=expect).stdout


def main():
    with tempfile.TemporaryDirectory() as scratch:
        def make(name, runs=5, *, rate=1000.0, seed=1, lines=(10, 12), effect=40, binary="/usr/bin/app", **more):
            regions = [region(f"a.c:{line}", "line", "/src/a.c", line, "parse", binary) for line in lines]
            path = os.path.join(scratch, name)
            for run in range(1, runs + 1):
                write_run(path, run, regions, rate=rate, seed=seed, effects={regions[0]["name"]: effect},
                          experiments=80, samples=[(regions[0], 4000, 4000)], **more)
            return path

        old = make("old")
        again = make("again", seed=2)
        slower = make("slower", rate=930.0, seed=3, lines=(17, 19), effect=10)
        text = compare(old, again, "--fail-if-slower", "0")
        check("no sure change" in text, f"the same twice: {text}")
        text = compare(old, slower)
        check("slower" in text and "+7." in text, f"7.5 % more time: {text}")
        check("a.c:17 (parse)" in text and "changed" in text and "no counterpart" not in text,
              f"a line that has moved: {text}")
        built = make("built", build_ids=[("/usr/bin/app", "aa")])
        text = compare(built, make("renamed", binary="/opt/app-2", build_ids=[("/opt/app-2", "bb")]))
        check("a.c:10 (parse)" in text and "no counterpart" not in text, f"a program of another name: {text}")
        text = compare(built, make("foreign", binary="/opt/lib2.so", build_ids=[("/opt/app-2", "bb")]))
        check("2 of 2 rows have no counterpart" in text, f"nothing matches: {text}")
        compare(old, slower, "--fail-if-slower", "2%", expect=1)
        compare(old, slower, "--fail-if-slower=20", expect=0)
        check("faster" in compare(slower, old, "--fail-if-slower", "2%"), "the other way round")
        check("one run does not show" in compare(make("one", 1), slower), "one run")
        compare(old, make("point", point="other"), expect=2)
        check("faster" in compare(make("moved-a", point="s.c:10"), make("moved-b", rate=1100.0, point="s.c:15")),
              "a progress point that has moved")
        text = compare(make("wait", slow=True), make("wait-longer", rate=930.0, seed=3, slow=True),
                       "--fail-if-slower", "2%", expect=1)
        for percentile in ("p50", "p95", "p99"):
            line = [line for line in text.splitlines() if line.startswith(f"  {percentile} ")]
            check(len(line) == 1 and "+7." in line[0] and "slower" in line[0], f"{percentile}: {text}")
        few = {"rate": 50.0, "slow": True, "noise": 0}
        text = compare(make("few", units=1000, **few), make("few-units", units=800, **few),
                       "--fail-if-slower", "2%", expect=1)
        rows = [line for line in text.splitlines() if "a.c:10 (parse)" in line]
        check(len(rows) == 2 and "request" in rows[0] + rows[1] and "unit" in rows[0] + rows[1],
              f"a row for each of two points: {text}")
        check("\nunit " in text and "p99" not in text, f"a point after a percentile that is not known: {text}")
        flat = make("flat", effect=0)
        check("No code is known to be worth it" in compare(flat, flat), "no row")
        compare(old, expect=2)
        compare(old, os.path.join(scratch, "nothing"), expect=2)
        compare(old, slower, "--fail-if-slower", "much", expect=2)
        compare(old, slower, "--fail", "2", expect=2)
    return status()


if __name__ == "__main__":
    sys.exit(main())
