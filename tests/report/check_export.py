#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs jsonschema
"""What `causal export` writes is what other programs read: each format is read back by a reader of its own.
speedscope/schema.json is dist/release/file-format-schema.json of npm's package speedscope 1.25.0 (MIT)."""
import csv
import io
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checks import TOP, causal, check, status  # noqa: E402
from fixture import region, write_run  # noqa: E402

ODD = '=cmd|"a, b"`<b>`_x;\ny'


def export(directory, form, expect=0):
    return causal("export", directory, "--format", form, expect=expect).stdout


def check_csv(text):
    table = list(csv.DictReader(io.StringIO(text)))
    check({row["code"] for row in table} == {"parse", "'" + ODD}, f"csv: names {[row['code'] for row in table]}")
    parse = [row for row in table if row["code"] == "parse" and row["from"] == "curve"]
    check([row["speedup"] for row in parse] == ["25", "50", "100"], f"csv: {parse}")
    check(abs(float(parse[1]["effect"]) - 20) < 5 and parse[1]["total"] == "30.00", f"csv: {parse[1]}")
    check(parse[0]["file"] == "/src/a, b.c" and parse[0]["line"] == "12", f"csv: {parse[0]}")


def check_markdown(text):
    rows = [line for line in text.splitlines() if line.startswith("|")]
    check(len(rows) == 4 and len({line.count("|") for line in rows}) == 1, f"markdown: {text}")
    check("parse" in rows[2] and "worth it" in rows[2], f"markdown: {rows[2]}")
    check("<b>" not in text and "`" not in text, f"markdown: a name acts: {text}")


def check_percentiles(text, markdown):
    table = [row for row in csv.DictReader(io.StringIO(text)) if row["code"] == "parse"]
    for percentile in ("p50", "p95", "p99"):
        rows = [row for row in table if row["from"] == percentile]
        check([row["speedup"] for row in rows] == ["25", "50", "100"], f"csv: {percentile}: {rows}")
        check(rows and abs(float(rows[1]["effect"]) - 20) < 6, f"csv: {percentile}: {rows}")
        check(len([line for line in markdown.splitlines() if f"</code> {percentile} |" in line]) == 2,
              f"markdown: {percentile}: {markdown}")
    check(len({line.count("|") for line in markdown.splitlines() if line.startswith("|")}) == 1, f"markdown: {markdown}")


def check_stacks(folded, speedscope):
    lines = dict(line.rsplit(" ", 1) for line in folded.splitlines())
    check(lines == {"main;parse": "60", "main": "14", "main;=cmd|\"a, b\"`<b>`_x: y": "6"}, f"folded: {lines}")
    whole = json.loads(speedscope)
    try:
        from jsonschema import Draft7Validator
    except ImportError:
        print("SKIP: without jsonschema the file is not held against speedscope's schema")
    else:
        with open(os.path.join(TOP, "tests", "report", "speedscope", "schema.json"), encoding="utf-8") as file:
            validator = Draft7Validator(json.load(file))
        for error in validator.iter_errors(whole):
            check(False, f"speedscope: {error.json_path}: {error.message}")
        check(list(validator.iter_errors(dict(whole, profiles=[{}]))), "speedscope: the schema takes anything")
    names = [frame["name"] for frame in whole["shared"]["frames"]]
    profile = whole["profiles"][0]
    stacks = {tuple(names[i] for i in sample): weight
              for sample, weight in zip(profile["samples"], profile["weights"])}
    check(stacks == {("main", "parse"): 60, ("main",): 14, ("main", ODD): 6}, f"speedscope: {stacks}")
    check(profile["endValue"] == 80, f"speedscope: {profile['endValue']}")


def main():
    regions = [region("parse", file="/src/a, b.c", line=12), region(ODD)]
    with tempfile.TemporaryDirectory() as scratch:
        for run in (1, 2):
            write_run(scratch, run, regions, effects={"parse": 40}, samples=[(regions[0], 3000, 2500)],
                      stacks=[(["main", "parse"], 30), (["main"], 7), (["main", ODD], 3)])
        check_csv(export(scratch, "csv"))
        check_markdown(export(scratch, "markdown"))
        check_stacks(export(scratch, "folded"), export(scratch, "speedscope"))
        profile = json.loads(export(scratch, "json"))
        check([one["name"] for one in profile["regions"]] == ["parse", ODD], "json")
        check(export(scratch, "coz").count("experiment\t") == 80, "coz")
        export(scratch, "xml", expect=2)
        export(os.path.join(scratch, "nothing"), "csv", expect=2)
    with tempfile.TemporaryDirectory() as scratch:
        for run in (1, 2):
            write_run(scratch, run, regions, effects={"parse": 40}, slow=True)
        check_percentiles(export(scratch, "csv"), export(scratch, "markdown"))
    with tempfile.TemporaryDirectory() as scratch:
        export(scratch, "csv", expect=2)  # no runs
        write_run(scratch, 1, regions)
        export(scratch, "folded", expect=1)  # no stacks
    return status()


if __name__ == "__main__":
    sys.exit(main())
