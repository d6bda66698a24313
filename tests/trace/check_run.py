#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""All sinks of a real run: what they write can be read, and they agree on the count. And a trace for Paraver
of a program with OpenMP."""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

from check_json import balanced
from check_perfetto import Trace
from prv import Paraver
from script import check, feed
from checks import BUILD, TOP, causal, status

APP = os.path.join(BUILD, "tests", "apps", "traced")


def read_thread(path):
    """The times of as many events as the header says."""
    with open(path, "rb") as file:
        data = file.read()
    events = struct.unpack_from("<Q", data, 24)[0]
    check(len(data) == 64 + 24 * events, f"{path}: {len(data)} bytes for {events} events")
    return [struct.unpack_from("<Q", data, 64 + 24 * i)[0] for i in range(events)]


def check_openmp(scratch):
    build = subprocess.run([*os.environ.get("CC", "cc").split(), "-std=gnu17", "-O1", "-fopenmp", "-I", TOP, "-I",
                            f"{TOP}/include", f"{TOP}/tests/apps/openmp.c", "-o", f"{scratch}/openmp"],
                           capture_output=True, check=False)
    if build.returncode:
        print("SKIP: a program with OpenMP: the compiler has none")
        return
    done = causal("trace", "--sinks", f"paraver={scratch}/team", "--", f"{scratch}/openmp")
    check(done.stdout == "openmp: good\n" and "none missing" in done.stderr, f"OpenMP: {done.stdout}{done.stderr}")
    states = Paraver(f"{scratch}/team").states
    waiting = [who for who, of in states.items() if any(name == "waiting for its team" for _, _, name in of)]
    check(len(waiting) >= 3, f"OpenMP: {len(waiting)} of {len(states)} threads wait for their team")


def main():
    if os.environ.get("CA_SANITIZER"):
        print("SKIP: the runtime does not go with " + os.environ["CA_SANITIZER"])
        return 77
    sinks = "print=print,json,binary,paraver,statistics=statistics,dot"
    perfetto = "is not in this build" not in feed("perfetto=/dev/null", "nothing", expect=None)[2]
    with tempfile.TemporaryDirectory() as scratch:
        done = causal("trace", "--events", "developer", "--sinks", sinks + ",perfetto" * perfetto, "--", APP, "lock",
                      cwd=scratch)
        stem = os.path.join(scratch, "causal-trace")
        with open(f"{scratch}/print", encoding="utf-8") as file:
            printed = file.read().splitlines()
        events = int(re.search(r"(\d+) events of", done.stderr)[1])
        check(len(printed) == events > 10, f"{len(printed)} of {events}: {done.stderr}")
        with open(f"{scratch}/statistics", encoding="utf-8") as file:
            check(file.readline().startswith(f"{events} events of "), "statistics")
        with open(f"{stem}.json", encoding="utf-8") as file:
            traced = json.load(file)
        balanced(traced)
        cut = {"again", "goes on"}
        counted = sum(e["ph"] in "BEbeiCX" and not e.get("args", {}).keys() & cut for e in traced)
        check(counted == events, f"json: {counted} of {events}")
        check(any(e["ph"] == "b" and e["name"] == "waiting for a lock" for e in traced), "json: nobody waits")
        if perfetto:
            with open(f"{stem}.pftrace", "rb") as file:
                trace = Trace(file.read())
            check(sum(trace.kinds.values()) - trace.cut == events, f"perfetto: {trace.kinds}")
            check(any(name == "waiting for a lock" for slices in trace.slices.values() for name, _, _ in slices),
                  "perfetto: nobody waits")
        trace = Paraver(stem)
        check(any(name == "waiting for a lock" for states in trace.states.values() for _, _, name in states),
              "paraver: nobody waits")
        causal("convert", f"{stem}.trace", "-o", f"{scratch}/again", "--sinks", f"print={scratch}/again,paraver")
        with open(f"{scratch}/again", encoding="utf-8") as file:
            check(sorted(file.read().splitlines()) == sorted(printed), "convert")
        check(Paraver(f"{scratch}/again").events == trace.events, "paraver, converted")
        # each file's header counts what is there, in the order of time
        causal("trace", "--events", "user", "--sinks", f"binary={scratch}/many", "--", APP, "many", "4", "50000")
        threads = [read_thread(f"{scratch}/many/{name}") for name in os.listdir(f"{scratch}/many") if name != "names"]
        check([len(times) for times in threads] == [50000] * 4 and all(times == sorted(times) for times in threads),
              f"binary: {[len(times) for times in threads]} events")
        check_openmp(scratch)
    return status()


if __name__ == "__main__":
    sys.exit(main())
