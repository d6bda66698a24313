#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs jsonschema
"""The files that the writer makes are what doc/FORMAT.md and the schemas promise, and the
table is the golden one. Regenerate the table with CA_REGENERATE=1."""
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checks import BUILD, TOP, check, status  # noqa: E402

MAKE = os.path.join(BUILD, "tests", "plot", "make_profile")


def make(directory, kind, width):
    return subprocess.run([MAKE, directory, kind, width], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def check_golden(kind, width, text):
    path = os.path.join(TOP, "tests", "plot", f"table-{kind}-{width}.txt")
    if os.environ.get("CA_REGENERATE"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    with open(path, encoding="utf-8") as file:
        check(file.read() == text, f"{path} differs from:\n{text}")
    for line in text.splitlines():
        if not line.startswith(("No ", "To do", "Funnel", "Program")):
            check(len(line) <= int(width), f"wider than {width}: {line}")


def check_schemas(directory):
    try:
        from jsonschema import Draft7Validator
    except ImportError:
        return False
    with open(os.path.join(TOP, "doc", "run.schema.json"), encoding="utf-8") as file:
        run = Draft7Validator(json.load(file))
    with open(os.path.join(TOP, "doc", "profile.schema.json"), encoding="utf-8") as file:
        profile = Draft7Validator(json.load(file))
    for path in glob.glob(os.path.join(directory, "run-*.jsonl")):
        with open(path, encoding="utf-8") as file:
            for i, line in enumerate(file):
                for error in run.iter_errors(json.loads(line)):
                    check(False, f"{path}:{i + 1}: {error.message}")
    with open(os.path.join(directory, "profile.json"), encoding="utf-8") as file:
        whole = json.load(file)
    for error in profile.iter_errors(whole):
        check(False, f"{directory}: {error.json_path}: {error.message}")
    # The schemas must be able to say no.
    check(list(run.iter_errors({"type": "experiment"})), "the run schema takes anything")
    check(list(profile.iter_errors(dict(whole, version=2))), "the profile schema takes anything")
    return True


def check_content(directory, kind):
    with open(os.path.join(directory, "profile.json"), encoding="utf-8") as file:
        profile = json.load(file)
    if kind == "empty":
        check(profile["regions"] == [] and profile["remedy"], "an empty profile says why")
        return
    first = profile["regions"][0]
    check(first["name"].endswith("slow_part(int)"), f"{kind}: first is {first['name']}")
    check(first["verdict"] == "worth", f"{kind}: {first['verdict']}")
    for c in first["progress"][0]["curve"]:
        check(abs(c["effect"] - 20) < 2, f"{kind}: {c}")
        check(c["low"] <= c["effect"] <= c["high"], f"{kind}: {c}")
    percentiles = first["progress"][0].get("percentiles", [])
    check(len(percentiles) == (3 if kind == "latency" else 0), f"{kind}: {percentiles}")
    for p in percentiles:
        check(all(a["low"] < 20 < a["high"] for a in p["at"]), f"{kind}: {p}")
    with open(os.path.join(directory, "profile.coz"), encoding="utf-8") as file:
        types = {line.split("\t")[0] for line in file}
    point = "latency-point" if kind == "latency" else "throughput-point"
    check(types == {"startup", "experiment", point, "runtime", "samples"}, f"{kind}: {types}")


def main():
    schemas = True
    with tempfile.TemporaryDirectory() as base:
        for kind, widths in {"sweep": ["100", "72", "140"], "end-to-end": ["100"],
                             "latency": ["100"], "empty": ["100"]}.items():
            for width in widths:
                directory = os.path.join(base, kind + width)
                os.mkdir(directory)
                check_golden(kind, width, make(directory, kind, width))
            schemas = check_schemas(directory) and schemas
            check_content(directory, kind)
    if not status() and not schemas:
        print("SKIP: python3-jsonschema is not installed; the rest passed")
        return 77
    return status()


sys.exit(main())
