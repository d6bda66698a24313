#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Predictions checked against reality, with programs as Debian installs them.

slow.c, preloaded, makes a library's function slower. causal, on the slowed program, predicts what
taking that away again would bring; then it is taken away, and measured: slow and plain runs in
turns, medians. A function that does its work k times has its true speed-up at 100 (k - 1) / k.

    predict.py --causal BUILD/driver/causal [--out DIR] [--only REGEX] [--turns 7] [--runs 15]
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import table  # noqa: E402

PACK_AND_CHECK = """
import queue, sys, threading, zlib
data = open(sys.argv[1], 'rb').read()
blocks = [data[i:i + 131072] for i in range(0, len(data), 131072)]
full, sums = queue.Queue(8), []
def pack():
    for block in blocks:
        full.put((block, zlib.compress(block, 1)))
    full.put(None)
def check():
    while (both := full.get()) is not None:
        sums.append(zlib.crc32(both[0]) ^ zlib.crc32(both[1]))
threads = [threading.Thread(target=pack), threading.Thread(target=check)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(sums), sum(sums))
"""


def quartiles(values):
    low, _, high = statistics.quantiles(values, n=4)
    return f"{statistics.median(values):.3f} ({low:.3f} to {high:.3f})"


class Check:
    def __init__(self, options):
        self.options = options
        self.dir = os.path.abspath(options.out)
        self.slow = os.path.join(self.dir, "slow.so")
        here = os.path.dirname(os.path.abspath(__file__))
        subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-fPIC", "-fno-builtin", "-shared",
                        "-o", self.slow, os.path.join(here, "slow.c")], check=True)
        self.bench = table.Bench(options)

    def environment(self, **more):
        return {**os.environ, "LD_PRELOAD": self.slow, **more}

    def report(self, name, what, slow, plain, percent, results):
        truth = [100 * (1 - b / a) for a, b in zip(slow, plain)]
        middle = 100 * (1 - statistics.median(plain) / statistics.median(slow))
        print(f"{name}: {what}\n  truth: slow {quartiles(slow)} s, plain {quartiles(plain)} s: "
              f"{middle:.1f} % (pairs {quartiles(truth)})")
        for region in table.profile_of(results)["regions"]:
            for point in region["progress"]:
                for cell in point["curve"]:
                    if abs(cell["speedup"] - percent) < 0.01:
                        print(f"  predicted: {region['name']} [{point['point']}] at {percent} %: "
                              f"{cell['effect']:.1f} ({cell['low']} to {cell['high']}), "
                              f"{cell['experiments']} experiments")
        sys.stdout.flush()

    def program(self, name, argv, slowed, plain, percent, extra, end_to_end=False):
        out = os.path.join(self.dir, "out")
        times = {True: [], False: []}
        for turn in range(self.options.turns + 1):
            for is_slow in (True, False):
                _, seconds = table.run(argv, out, env=self.environment(**(slowed if is_slow else plain)))
                if turn:
                    times[is_slow].append(seconds)
        results = os.path.join(self.dir, "p-" + name)
        shutil.rmtree(results, ignore_errors=True)
        table.run([self.options.causal, "-o", results, *extra, "-s", f"0,{percent}", "-n",
                   str(self.options.runs), "--", *argv], out, limit=1800,
                  env=self.environment(**slowed), err=os.path.join(self.dir, "p-" + name + ".err"))
        self.report(name, " ".join(argv), times[True], times[False], percent, results)

    def server(self, name, argv, port, load, slowed, plain, percent, extra):
        times = {True: [], False: []}
        saved = dict(os.environ)
        for turn in range(self.options.turns + 1):
            for is_slow in (True, False):
                os.environ.update(self.environment(**(slowed if is_slow else plain)))
                _, seconds, _ = self.bench.serve(argv, port, load, [])
                os.environ.clear()
                os.environ.update(saved)
                if turn:
                    times[is_slow].append(seconds)
        results = os.path.join(self.dir, "p-" + name)
        shutil.rmtree(results, ignore_errors=True)
        for _ in range(self.options.runs):
            os.environ.update(self.environment(**slowed))
            self.bench.serve(argv, port, load, [self.options.causal, "-o", results, *extra, "-s",
                                                f"0,{percent}", "--"])
            os.environ.clear()
            os.environ.update(saved)
        self.report(name, " ".join(argv), times[True], times[False], percent, results)


def redis_only_load(port, count):
    def load():
        env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "CA_DELAY_NS")}
        subprocess.run(["redis-benchmark", "-p", str(port), "-q", "-n", str(count), "-c", "20", "-t", "get"],
                       check=True, stdout=subprocess.DEVNULL, env=env)
        return b""
    return load


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--causal", required=True)
    parser.add_argument("--out", default="real-out")
    parser.add_argument("--only", default="")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    options.causal = os.path.abspath(options.causal)
    os.makedirs(options.out, exist_ok=True)
    check = Check(options)
    big = f"{check.dir}/input"
    less = f"{check.dir}/less"
    for path, size in ((big, 128 << 20), (less, 16 << 20)):
        if not os.path.exists(path):
            table.make_input(path, size)
    table.write(f"{check.dir}/check.py", PACK_AND_CHECK)

    def pigz():
        check.program("pigz", ["pigz", "-1", "-c", "-p2", big], {"CA_REPEAT": "10"}, {"CA_REPEAT": "1"}, 90,
                      ["-B", "slow", "-F", "^crc32_z$", "-P", "libz.so!deflate"])

    def pbzip2():
        check.program("pbzip2", ["pbzip2", "-c", "-p2", less], {"CA_REPEAT": "2"},
                      {"CA_REPEAT": "1"}, 50, ["-B", "slow", "-F", "^BZ2_", "-e"])

    def python3():
        check.program("python3", ["/usr/bin/python3", f"{check.dir}/check.py", big], {"CA_REPEAT": "20"},
                      {"CA_REPEAT": "1"}, 95, ["-B", "slow", "-F", "^crc32$", "-P", "libz.so!deflate"])

    def redis():
        check.server("redis", ["redis-server", "--port", "7379", "--save", "", "--appendonly", "no"], 7379,
                     redis_only_load(7379, 100000), {"CA_DELAY_NS": "5000"}, {"CA_DELAY_NS": "0"}, 100,
                     ["-B", "slow", "-F", "^added_delay$", "-P", "slow.so!gettimeofday"])

    for row in (pigz, pbzip2, python3, redis):
        if re.search(options.only, row.__name__):
            row()


if __name__ == "__main__":
    main()
