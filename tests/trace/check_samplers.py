#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""causal sample with several samplers at once, and what is measured with each sample: against a program that knows
what it does. Counts, not times: other programs may take the CPUs."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checks import BUILD, CAUSAL, causal, check, status  # noqa: E402

APP = os.path.join(BUILD, "tests", "apps", "sampled")
MS = 1000000
PAGES = 20000


def sample(directory, *words, app=(APP, "400"), expect=0):
    done = subprocess.run([CAUSAL, "sample", "-o", directory, *words, "--", *app], capture_output=True, text=True,
                          check=False, timeout=120)
    check(done.returncode == expect, f"causal sample {words}: status {done.returncode}: {done.stderr}")
    if expect:
        return done, None
    with open(os.path.join(directory, "sample.json"), encoding="utf-8") as file:
        return done, json.load(file)


def stacks_of(profile):
    names = [()]
    for parent, function, _, _ in profile["nodes"]:
        names.append(names[parent] + (profile["functions"][function - 1]["name"],))
    return names


def measured(profile, name, function=None):
    """Sum over the stacks that hold the function."""
    names = stacks_of(profile)
    at = [metric["name"] for metric in profile["metrics"]].index(name)
    return sum(row[at + 1] for row in profile["measured"] if function is None or function in names[row[0]])


def check_all(directory):
    done, profile = sample(directory, "--cputime", "1000", "--realtime", "200", "--overflow", "page-faults:10",
                           "--metrics", "cpu-time,minor-faults,switches,peak-rss", app=(APP, "400", str(PAGES)))
    metrics = [metric["name"] for metric in profile["metrics"]]
    check(metrics == ["real-time", "overflow-page-faults", "cpu-time", "minor-faults", "switches", "peak-rss"], f"{metrics}")
    lifetime = sum(group["lifetime"] for group in profile["groups"])
    real = measured(profile, "real-time")
    # all but the time after the last tick, and waits that were drawn
    check(0.7 * lifetime < real < 1.1 * lifetime, f"real time: {real} of {lifetime} ns")
    check(measured(profile, "real-time", "nap") >= 100 * MS, "real time of nap")
    check(measured(profile, "cpu-time", "most") > 150 * MS, f"CPU time: {measured(profile, 'cpu-time')}")
    faults = measured(profile, "minor-faults", "touch")
    check(0.9 * PAGES < faults < 1.1 * PAGES + 500, f"faults in touch: {faults}")
    if "could not get the event" in done.stderr:
        print("SKIP: perf's page faults are not allowed here")
    else:
        faults = measured(profile, "overflow-page-faults", "touch")
        check(0.9 * PAGES < faults < 1.1 * PAGES + 500, f"overflows in touch: {faults}")
    check(measured(profile, "switches", "consume") >= 10, f"switches: {measured(profile, 'switches')}")
    peak = max(row[len(metrics)] for row in profile["measured"])
    check(peak > PAGES * 4096, f"peak: {peak}")
    check("overflow-page-faults" in done.stderr and "real-time ns" in done.stderr, f"table: {done.stderr}")
    check(json.loads(causal("export", directory, "--format", "json").stdout) == profile, "it does not read back")


def check_one(scratch):
    _, profile = sample(os.path.join(scratch, "first"), "--cputime", "0:::1", "--realtime", "100:1000")
    names = stacks_of(profile)
    # who ends its waits is known nevertheless
    check(not any("most" in stack for stack in names), f"thread 1 is not the worker: {names}")
    check(measured(profile, "real-time") == 0, "real time that begins later")
    done, _ = sample(os.path.join(scratch, "none"), "--tids", "99")
    check("thread 99 was never there: the program had 1 to 2\n" in done.stderr, f"thread 99: {done.stderr}")
    done, profile = sample(os.path.join(scratch, "second"), "--tids", "2")
    check("(threads and times that were not asked for, ready to run" in done.stderr, f"a thread alone: {done.stderr}")
    names = stacks_of(profile)
    check(any("most" in stack for stack in names) and not any("consume" in stack for stack in names), f"{names}")
    burn = [function for function in profile["functions"] if function["name"] == "burn"]
    check(burn and all(function["file"].endswith("/sampled.c") and function["line"] > 0 for function in burn),
          f"where an inlined function stands: {burn}")
    done, profile = sample(os.path.join(scratch, "often"), "--overflow", "page-faults:400hz", app=(APP, "400", str(PAGES)))
    if "could not get the event" not in done.stderr:
        # the kernel begins with a sample for each, and finds out how many make 400 in a second
        check(profile["samples"] < PAGES / 10, f"400 in a second: {profile['samples']} samples")
        faults = measured(profile, "overflow-page-faults")
        check(0 < faults < 1.1 * PAGES + 500, f"faults at 400 Hz: {faults}")
    done, profile = sample(os.path.join(scratch, "faults"), "-b", "timer", "--overflow", "page-faults:10",
                           app=(APP, "50", str(PAGES)))
    if "could not get the event" not in done.stderr:
        check(profile["backend"] == "perf", f"samples of an event: {profile['backend']}")
    done, profile = sample(os.path.join(scratch, "early"), "-w", "9", app=(APP, "50"))
    check(" s, before its window began: give a shorter delay" in done.stderr, f"too early: {done.stderr}")
    done, profile = sample(os.path.join(scratch, "own"), "--cputime", "0:9", app=(APP, "50"))
    check(" s, before the window of a sampler began" in done.stderr, f"too early: {done.stderr}")
    done, profile = sample(os.path.join(scratch, "paused"), "--paused", app=(APP, "50"))
    check("it began paused" in done.stderr, f"paused: {done.stderr}")
    done, profile = sample(os.path.join(scratch, "real"), "--realtime", "500")
    check("before" not in done.stderr and "not asked for" not in done.stderr, f"all the time: {done.stderr}")
    check("CPU time: not sampled" in done.stderr and " 0 ms of CPU time" not in done.stderr, f"real: {done.stderr}")
    check("By real-time (s):" in done.stderr and "real-time ns" not in done.stderr, f"real: {done.stderr}")
    cpu = [ns for (_, function, ns, _) in profile["nodes"] if profile["functions"][function - 1]["kind"] == "code"]
    check(not any(cpu) and measured(profile, "real-time", "most") > 100 * MS, "real time alone")


def check_counters(scratch):
    done, profile = sample(os.path.join(scratch, "counters"), "--metrics", "page-faults,task-clock",
                           app=(APP, "400", str(PAGES)))
    if profile["backend"] == "perf" and "could not get the event" not in done.stderr:
        # they come with the next tick, wherever that is; and a thread counts from its first one on
        faults = measured(profile, "page-faults")
        check(0.2 * PAGES < faults < 1.1 * PAGES + 500, f"counted: {faults}")
        clock = measured(profile, "task-clock", "most")
        check(150 * MS < clock, f"task clock in most: {clock}")
    else:
        print("SKIP: perf's counters are not allowed here")
    # the kernel's own are counted where that is allowed; where not, a line says so
    done, profile = sample(os.path.join(scratch, "switches"), "--metrics", "context-switches,switches")
    if "context-switches: it happens in the kernel" not in done.stderr and profile["backend"] == "perf":
        check(measured(profile, "context-switches") > 0.5 * measured(profile, "switches") > 0,
              f"context switches: {measured(profile, 'context-switches')} of {measured(profile, 'switches')}")
    done, profile = sample(os.path.join(scratch, "timer"), "-b", "timer", "--metrics", "page-faults,minor-faults")
    check("could not get the event" in done.stderr, f"counters without perf: {done.stderr}")
    check(measured(profile, "minor-faults") > 0 and measured(profile, "page-faults") == 0, "metrics without perf")


def check_missing(scratch):
    """What no thread could get is said first, with the reason, and is no empty table."""
    listed = causal("avail", "counters", "--format", "csv").stdout.splitlines()
    missing = [line.split(",")[0].strip('"') for line in listed if line.split(",")[1].strip('"') == "no"]
    missing = [name for name in missing if name not in ("context-switches", "cpu-migrations")]  # of no overflow
    if not missing:
        print("SKIP: this machine has all events")
        return
    for words, name in ((("--overflow", missing[0]), "overflow-" + missing[0]), (("--metrics", missing[0]), missing[0])):
        done, profile = sample(os.path.join(scratch, "missing" + words[0]), *words, app=(APP, "50"))
        first = done.stderr.splitlines()[0]
        check(first.startswith(f"No thread could get the event of {name}: ") and "causal avail counters" in first, first)
        check([bool(metric.get("missing")) for metric in profile["metrics"]] == [True], f"{profile['metrics']}")
        check(done.stderr.count(name) == 1, f"an empty table: {done.stderr}")
        check(("CPU time: not sampled" in done.stderr) == (words[0] == "--overflow") and
              ("about one each" in done.stderr) == (words[0] == "--metrics"), f"the head: {done.stderr}")


def check_sinks(scratch):
    """Samples and what is measured with them, as events and curves of each sink."""
    at = {name: os.path.join(scratch, name) for name in ("print", "perfetto", "json", "paraver")}
    sample(os.path.join(scratch, "sinks"), "--metrics", "minor-faults,peak-rss", "--events", "advanced",
           "--sinks", ",".join(f"{name}={path}" for name, path in at.items()), app=(APP, "400", str(PAGES)))
    last = {}
    with open(at["print"], encoding="utf-8") as file:
        lines = [line.split() for line in file]
    for line in lines:
        if line[2:4] == ["point", "minor-faults"]:
            check(int(line[4]) > last.get(line[1], 0), f"the curve of {line[1]} does not rise: {line}")
            last[line[1]] = int(line[4])
    check(max(last.values()) > 0.9 * PAGES, f"faults so far: {last}")
    samples = sum(line[2:4] == ["point", "sample"] for line in lines)
    check(samples > 50, f"{samples} samples")
    with open(at["json"], encoding="utf-8") as file:
        events = json.load(file)
    curve = [event for event in events if event.get("ph") == "C" and "minor-faults" in event["name"]]
    check(curve, f"json: no curve: {events[:3]}")
    named = {event["name"] for event in events if event.get("ph") == "i"}
    check({"sample: burn", "sample: produce", "frame: work"} <= named, f"json: frames without names: {named}")
    for path in (at["perfetto"], at["paraver"] + ".pcf"):
        with open(path, "rb") as file:
            text = file.read()
        check(b"burn" in text and b"produce" in text, f"{path}: frames have no names")
        check(b"minor-faults" in text and b"peak-rss" in text and b"sample" in text, f"{path}: names are missing")
    keys = {}
    with open(at["paraver"] + ".pcf", encoding="utf-8") as file:
        for line in file:
            words = line.split(None, 2)
            if len(words) == 3 and words[1].isdigit():
                keys[words[2].split(":")[0].strip()] = words[1]
    with open(at["paraver"] + ".prv", encoding="utf-8") as file:
        records = [line.rstrip().split(":") for line in file if line.startswith("2:")]
    found = [dict(zip(record[6::2], record[7::2])) for record in records]
    for name in ("sample", "minor-faults"):
        check(any(keys.get(name) in record for record in found), f"paraver: no {name}: {keys}")


def check_mistakes(scratch):
    for words, part in ((("--cputime", "often"), "write HZ[:DELAY[:DURATION[:THREADS]]]"),
                        (("--cputime", "100:soon"), "DELAY and DURATION are seconds"),
                        (("--realtime", "100:::x"), "write numbers and ranges"),
                        (("--realtime", "1e9"), "to 100000"),
                        (("--overflow", "sneezes"), "choose from: cpu-cycles instructions"),
                        (("--overflow", "page-faults:0"), "1 to 1e15"),
                        (("--overflow", "context-switches:1"), "which the signal for a sample would end"),
                        (("--overflow", "page-faults:1e3hz"), "0hz (as --frequency) to 100000hz"),
                        (("--tids", "a"), "write numbers and ranges"),
                        (("--tids", "0"), "numbers begin with 1"),
                        (("--cputime", "100:1:2:0"), "numbers begin with 1"),
                        (("--metrics", "switches,switches"), "'switches' is named twice"),
                        (("--metrics", "page-faults,perf::PERF_COUNT_SW_PAGE_FAULTS"), "FAULTS' is named twice"),
                        (("--metrics", "luck"), "choose from: cpu-time minor-faults"),
                        (("--metrics", "cpu-clock,task-clock,instructions,page-faults,cpu-cycles"), "at most 4")):
        done, _ = sample(os.path.join(scratch, "mistake"), *words, app=("touch", os.path.join(scratch, "ran")), expect=2)
        check(part in done.stderr and done.stderr.count("\n") == 1, f"{words}: {done.stderr}")
    check(not os.path.exists(os.path.join(scratch, "ran")), "a program was run in spite of a mistake")


def main():
    if os.environ.get("CA_SANITIZER"):
        print("SKIP: the runtime does not go with " + os.environ["CA_SANITIZER"])
        return 77
    for name in [name for name in os.environ if name.startswith(("CAUSAL_", "COZ_"))]:
        del os.environ[name]
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_CACHE_HOME"] = scratch
        check_all(os.path.join(scratch, "all"))
        check_one(scratch)
        check_counters(scratch)
        check_missing(scratch)
        check_sinks(scratch)
        check_mistakes(scratch)
    return status()


if __name__ == "__main__":
    sys.exit(main())
