#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Predictions checked against reality, with programs as Debian installs them.

slow.c, preloaded, gives each program two hot spots of known cost, one in its parallel part, one in its
serial part. causal predicts what it would bring if they took less time, both in one sweep. Then the
program really runs with less of them, each time between two runs as it is; medians.

    predict.py --causal BUILD/driver/causal [--out DIR] [--only REGEX] [--speedup 50,90] [--spot REGEX]
               [--turns 5] [--budget 45] [--repeat 1] [--markdown FILE] [--truth-only] [--json FILE]

--only xz --speedup 50 is a quick look. Results are kept in DIR/NAME-K, the truths in DIR/truth.json:
--again takes them from there.
"""
import argparse
import json
import math
import os
import random
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answers  # noqa: E402
import table  # noqa: E402

SPOTS = ("parallel", "serial")
NOISY = 6  # percent of the machine that others may take
KNOWN, MANY = 2, 5  # percent, 95 %; times as many turns
MEAN_BAR, WORST_BAR, INSIDE_BAR = 2.5, 6, 93
PACK_AND_CHECK = """
import queue, sys, threading, zlib
data = open(sys.argv[1], 'rb').read()
blocks = [data[i:i + 131072] for i in range(0, len(data), 131072)]
todo, full, total = queue.Queue(), queue.Queue(8), 0
for block in blocks:
    todo.put(block)
def pack():
    try:
        while True:
            block = todo.get_nowait()
            packed = zlib.compress(block, 1)
            full.put((zlib.crc32(block), packed))
    except queue.Empty:
        pass
threads = [threading.Thread(target=pack) for _ in range(2)]
[t.start() for t in threads]
for _ in blocks:
    total ^= full.get()[0] ^ zlib.crc32(block)
[t.join() for t in threads]
print(total)
"""


def programs(work):
    """name: command, CA_CALLER, ns per call in the parallel and in the serial part, further options.
    What leads is different: in pigz, zstd and python3 the workers, in xz and pbzip2 both. In sort both threads
    compare, and the main thread merges alone; sqlite3 has one thread."""
    big, middle, less = f"{work}/big", f"{work}/middle", f"{work}/less"
    return {
        "pigz": (["pigz", "-1", "-c", "-p2", big], "MAIN", 1000000, 800000, ["-B", "MAIN;libz;slow"]),
        "xz": (["xz", "-T2", "-0", "-c", "--block-size=512KiB", less], "liblzma", 200000, 150000,
               ["-B", "liblzma;slow"]),
        "zstd": (["zstd", "-c", "-T2", "-5", big], "MAIN", 6000000, 500000, ["-B", "MAIN;slow"]),
        "pbzip2": (["pbzip2", "-c", "-p2", less], "MAIN", 40000000, 25000000, ["-B", "MAIN;libbz2;slow"]),
        "python3": (["/usr/bin/python3", f"{work}/check.py", middle], "", 2000000, 1500000,
                    ["-B", "MAIN;libz;slow"]),
        "sort": (["sort", "--parallel=2", "-S", "256M", f"{work}/lines"], "MAIN", 2400, 1600, ["-B", "MAIN;slow"]),
        "sqlite3": (["sqlite3", ":memory:", f".read {work}/order.sql"], "libsqlite3", 0, 2400,
                    ["-B", "libsqlite3;slow"]),
        "perl": (["perl", f"{work}/words.pl", middle], "MAIN", 0, 4000, ["-B", "MAIN;slow"]),
        "gcc": (["g++", "-O1", "-c", "-o", f"{work}/large.o", f"{work}/large.cc"], "MAIN", 0, 20000,
                ["-B", "MAIN;slow"]),
        "ffmpeg": (["ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i",
                    "testsrc2=size=640x360:rate=30:duration=8", "-c:v", "libx264", "-threads", "2", "-f", "h264", "-"],
                   "libx264", 400000, 300000, ["-B", "libx264;slow"]),
    }


SETTINGS = {"sort": {"CA_COMPARES": "1", "LC_ALL": "C"}, "sqlite3": {"CA_COMPARES": "1"}, "perl": {"CA_COMPARES": "1"}}
ORDER = """create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
insert into t select i, printf('%08x', (i * 2654435761) % 4294967296) from n;
select count(*), min(b), max(b) from (select b from t order by b limit 1000000);
create index x on t(b);
select count(*) from t as u join t as v on u.b = v.b;
"""


NGINX = """daemon off;
master_process off;
pid {work}/nginx.pid;
error_log {work}/nginx.log;
events {{ worker_connections 64; }}
http {{
	access_log off;
	keepalive_requests 1000000000;
	client_body_temp_path {work}/nginx-body;
	proxy_temp_path {work}/nginx-proxy;
	fastcgi_temp_path {work}/nginx-fastcgi;
	uwsgi_temp_path {work}/nginx-uwsgi;
	scgi_temp_path {work}/nginx-scgi;
	server {{ listen 127.0.0.1:{port}; root {work}; gzip on; gzip_types *; gzip_min_length 0; }}
}}
"""


def client(*argv):
    """A load generator of one turn; its first words may pin it. load.endless: a shell's command for many turns."""
    def load(pin=()):
        env = {k: v for k, v in os.environ.items() if not k.startswith("CA_") and k != "LD_PRELOAD"}
        subprocess.run([*pin, *argv], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        return b""
    count = [i + 1 for i, word in enumerate(argv) if word in ("-n", "-x")][0]
    load.endless = shlex.join(argv[:count] + (argv[count] + "000",) + argv[count + 1:]) + " >/dev/null 2>&1"
    return load


def servers(work):
    """name: command, port, load (one turn), CA_CALLER, ns per call. NAME-apart: the server on CPU 0, its load on
    CPU 1. NAME-inside: the load is a part of the run (--load)."""
    redis, memcached, slapped, nginx = 7379, 7211, 7212, 7480
    table.write(f"{work}/nginx.conf", NGINX.format(work=work, port=nginx))
    table.write(f"{work}/page.txt", "".join(f"line {i}\n" for i in range(100)))
    slap = client("memcaslap", "-s", f"127.0.0.1:{slapped}", "-T", "1", "-c", "8", "-X", "100", "-x", "60000")
    found = {
        "redis": (["redis-server", "--port", str(redis), "--save", "", "--appendonly", "no"], redis,
                  client("redis-benchmark", "-p", str(redis), "-q", "-n", "150000", "-c", "20", "-P", "4",
                         "-t", "get"), "MAIN", 1000, 1500),  # one thread, both spots in it
        "memcached": (["memcached", "-u", "nobody", "-p", str(memcached), "-t", "2", "-l", "127.0.0.1"],
                      memcached, table.memcached_load(memcached, 8000), "MAIN", 20000, 0),
        "memcached-slap": (["memcached", "-u", "nobody", "-p", str(slapped), "-t", "2", "-l", "127.0.0.1"],
                           slapped, slap, "MAIN", 20000, 0),
        "nginx": (["nginx", "-c", f"{work}/nginx.conf"], nginx,
                  client("ab", "-q", "-k", "-c", "8", "-n", "20000", "-H", "Accept-Encoding: gzip",
                         f"http://127.0.0.1:{nginx}/page.txt"), "MAIN", 40000, 60000),
    }
    for name in ("redis", "memcached-slap", "nginx"):
        found[name.split("-")[0] + "-apart"] = found[name] + ("apart",)
        found[name.split("-")[0] + "-inside"] = found[name] + ("inside",)
    return found


def standard_error(values):
    """Of the median, from the median absolute deviation."""
    middle = statistics.median(values)
    spread = statistics.median(abs(v - middle) for v in values)
    return 1.2533 * 1.4826 * spread / math.sqrt(len(values)) if len(values) > 1 else 0


class Check:
    def __init__(self, options):
        self.options = options
        self.dir = os.path.abspath(options.out)
        self.slow = os.path.join(self.dir, "slow.so")
        here = os.path.dirname(os.path.abspath(__file__))
        subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-include", "stdbool.h", "-O2", "-fPIC",
                        "-fno-builtin", "-shared", "-o", self.slow, os.path.join(here, "slow.c")], check=True)
        self.bench = table.Bench(options)
        self.points = []
        self.tops = []
        self.truths = {}
        if os.path.exists(f"{self.dir}/truth.json"):
            with open(f"{self.dir}/truth.json", encoding="utf-8") as file:
                self.truths = json.load(file)

    def environment(self, name, caller, cost):
        return {**os.environ, **SETTINGS.get(name, {}), "LD_PRELOAD": self.slow, "CA_CALLER": caller or "none",
                "CA_PARALLEL_NS": str(int(cost[0])), "CA_SERIAL_NS": str(int(cost[1]))}

    def variants(self, cost):
        """(spot, speedup) and the cost of both spots then."""
        result = {}
        for i, spot in enumerate(SPOTS):
            if cost[i] and re.search(self.options.spot, spot):
                for speedup in self.options.speedup:
                    less = list(cost)
                    less[i] = cost[i] * (1 - speedup / 100)
                    result[spot, speedup] = less
        return result

    def truth(self, name, cost, seconds_of):
        """seconds_of(cost): one run. {"base": seconds, "spot speedup": (effect, standard error, seconds)}. Each run of a variant lies
        between two of the program as it is. After --turns it goes on, up to MANY times as long, until the truths
        are known to KNOWN."""
        if self.options.again and name in self.truths:
            return self.truths[name]
        variants = self.variants(cost)
        base, seconds, effects = [], {v: [] for v in variants}, {v: [] for v in variants}
        seconds_of(cost)  # fills the caches
        others = table.Others()
        before = seconds_of(cost)
        for turn in range(MANY * self.options.turns):
            if turn >= self.options.turns and all(1.96 * standard_error(e) <= KNOWN for e in effects.values()):
                break
            for variant, costs in variants.items():
                taken, after = seconds_of(costs), seconds_of(cost)
                seconds[variant].append(taken)
                effects[variant].append(100 * (1 - 2 * taken / (before + after)))
                base.append(after)
                before = after
        self.warn(name, "the truth", others)
        found = {f"{spot} {speedup:g}": (statistics.median(each), standard_error(each),
                                         statistics.median(seconds[spot, speedup]))
                 for (spot, speedup), each in effects.items()}
        self.truths[name] = {"base": statistics.median(base), **found}
        with open(f"{self.dir}/truth.json", "w", encoding="utf-8") as file:
            json.dump(self.truths, file, indent=1)
        print(f"{name:9} truths by {len(base) // len(variants)} turns", flush=True)
        return self.truths[name]

    @staticmethod
    def warn(name, what, others):
        if others.percent() > NOISY:
            print(f"{name:9} others took {others.percent():.0f} % of the machine during {what}", flush=True)

    def tell(self, name, truth, directories):
        """Compares each repeat's profile with the truth."""
        for key in truth:
            spot, _, speedup = key.partition(" ")
            if not speedup or float(speedup) not in self.options.speedup or not re.search(self.options.spot, spot):
                continue
            true, error, seconds = truth[key]
            speedup = float(speedup)
            for directory in directories:
                cell, how = self.cell(directory, spot, speedup)
                self.points.append({"program": name, "spot": spot, "speedup": speedup, "truth": true,
                                    "truth_error": error, "cell": cell, "point": how})
                base, self_error = truth["base"], 1.96 * error
                how = f"{how}; {self.ended(directory)}"
                if cell:
                    print(f"{name:9} {spot:8} {speedup:g} %: truth {true:5.1f} ±{self_error:.1f} "
                          f"({base:.2f} -> {seconds:.2f} s)  predicted {cell['effect']:5.1f} "
                          f"[{cell['low']}, {cell['high']}]  error {abs(cell['effect'] - true):4.1f}  "
                          f"{cell['experiments']} experiments, {how}", flush=True)
                else:
                    print(f"{name:9} {spot:8} {speedup:g} %: truth {true:5.1f} ±{self_error:.1f}  "
                          f"NO PREDICTION: {how}", flush=True)
        self.compare_tops(name, truth, directories)

    @staticmethod
    def ended(directory):
        """When and why the sweep was over."""
        try:
            with open(directory + ".err", errors="replace", encoding="utf-8") as file:
                return ", ".join(re.findall(r"(\d+ s); stopped: ([^;\n]*)", file.read())[-1])
        except (OSError, IndexError):
            return "not known when"

    @staticmethod
    def cell(directory, spot, speedup):
        try:
            profile = table.profile_of(directory)
        except (OSError, ValueError):
            return None, "no profile"
        for region in profile["regions"]:
            if region["name"] != f"added_{spot}":
                continue
            for point in region["progress"][:1]:
                for cell in point.get("at", []) + point["curve"]:
                    if abs(cell["speedup"] - speedup) < 0.01 and cell["effect"] is not None:
                        return {"experiments": point["experiments"], **cell}, point["point"]
        return None, profile.get("cause") or "the spot is not among the regions"

    def compare_tops(self, name, truth, directories):
        """Does the spot that really matters most come first? Two that are within 3 points may swap."""
        last = f"{max(self.options.speedup):g}"
        true = {spot: truth[f"{spot} {last}"][0] for spot in SPOTS if f"{spot} {last}" in truth}
        if len(true) < 2 or abs(true["parallel"] - true["serial"]) < 3:
            return
        wanted = max(true, key=true.get)
        for directory in directories:
            try:
                regions = [r["name"] for r in table.profile_of(directory)["regions"]]
            except (OSError, ValueError):
                regions = []
            self.tops.append(bool(regions) and regions[0] == f"added_{wanted}")
            if not self.tops[-1]:
                print(f"{name:9} the {wanted} spot matters most, and is not first")

    def command(self, directory, name, extra, often):
        """The wrapper is in the program alone, and not in causal: so env starts it."""
        speedups = ",".join(["0"] + [f"{s:g}" for s in self.options.speedup])
        return [self.options.causal, "-o", directory, *extra, "-l", os.path.basename(name), "-F", "^added_",
                "-s", speedups, *often, *self.options.more.split(), "--"]

    def directories(self, name):
        found = [os.path.join(self.dir, f"{name}-{k}") for k in range(self.options.repeat)]
        for directory in found:
            shutil.rmtree(directory, ignore_errors=True)
        return found

    def program(self, name, argv, caller, parallel, serial, extra):
        out, cost = os.path.join(self.dir, "out"), (parallel, serial)

        def seconds_of(costs):
            return table.run(argv, out, env=self.environment(name, caller, costs))[1]

        truth = self.truth(name, cost, seconds_of)
        if self.options.truth_only:
            print(name, json.dumps(truth), flush=True)
            return
        directories = self.directories(name)
        others = table.Others()
        for directory in directories:
            environment = self.environment(name, caller, cost)
            preload = "LD_PRELOAD=" + environment.pop("LD_PRELOAD")
            table.run(self.command(directory, argv[0], extra, ["--budget", str(self.options.budget)]) +
                      ["env", preload, *argv], out, limit=600, env=environment, err=directory + ".err")
        self.warn(name, "the prediction", others)
        self.tell(name, truth, directories)

    def server(self, name, argv, port, load, caller, parallel, serial, how=""):
        cost, apart = (parallel, serial), how == "apart"
        pin = [["taskset", "-c", str(cpu)] if apart else [] for cpu in (0, 1)]

        def turn():
            return load(pin[1]) if apart else load()

        def turns():
            end = time.monotonic() + self.options.budget + 5  # of which the first few are not the experiments'
            while time.monotonic() < end:
                turn()

        def serve(costs, under, loads):
            saved = dict(os.environ)
            os.environ.update(self.environment(name, caller, costs))
            del os.environ["LD_PRELOAD"]  # the server's alone
            _, seconds, _ = self.bench.serve(["env", f"LD_PRELOAD={self.slow}", *pin[0], *argv], port, loads, under)
            os.environ.clear()
            os.environ.update(saved)
            return seconds

        truth = self.truth(name, cost, lambda costs: serve(costs, [], turn))
        if self.options.truth_only:
            print(name, json.dumps(truth), flush=True)
            return
        directories = self.directories(name)
        others = table.Others()
        for directory in directories:
            if how == "inside":
                self.inside(directory, name, argv, caller, cost, load.endless)
                continue
            serve(cost, self.command(directory, argv[0], ["-B", "MAIN;slow"],
                                     ["--max-runs", "1", "--budget", str(self.options.budget)]), turns)
            shutil.copy(os.path.join(self.dir, "server.err"), directory + ".err")
        self.warn(name, "the prediction", others)
        self.tell(name, truth, directories)

    def inside(self, directory, name, argv, caller, cost, load):
        environment = self.environment(name, caller, cost)
        preload = "LD_PRELOAD=" + environment.pop("LD_PRELOAD")
        often = ["--max-runs", "1", "--budget", str(self.options.budget), "--load", load]
        table.run(self.command(directory, argv[0], ["-B", "MAIN;slow"], often) + ["env", preload, *argv],
                  os.path.join(self.dir, "out"), limit=600, env=environment, err=directory + ".err")

    def summary(self):
        """True: the bars hold."""
        points, by_cell = [p for p in self.points if p["cell"]], {}
        for p in points:
            by_cell.setdefault((p["program"], p["spot"], p["speedup"]), []).append(p)
        errors = {k: abs(statistics.median(p["cell"]["effect"] for p in v) - v[0]["truth"])
                  for k, v in by_cell.items()}
        inside = [p["cell"]["low"] <= p["truth"] + 1.96 * p["truth_error"] and
                  p["truth"] - 1.96 * p["truth_error"] <= p["cell"]["high"]
                  for p in points if p["cell"].get("low") is not None]
        if not errors:
            return False
        mean, worst = statistics.mean(errors.values()), max(errors, key=errors.get)
        share = 100 * sum(inside) / len(inside) if inside else 0
        first = 100 * sum(self.tops) / len(self.tops) if self.tops else 100
        missing = len(self.points) - len(points)
        print(f"\n{len(errors)} predictions, {missing} missing; mean error {mean:.1f} (bar {MEAN_BAR}), worst "
              f"{errors[worst]:.1f} (bar {WORST_BAR}): {worst[0]}, {worst[1]}, {worst[2]:g} %; "
              f"{share:.0f} % of {len(inside)} intervals hold the truth (bar {INSIDE_BAR}); "
              f"first row right {sum(self.tops)} of {len(self.tops)}")
        if self.options.markdown:
            self.markdown(by_cell, errors)
        return (not missing and mean <= MEAN_BAR and errors[worst] <= WORST_BAR and share >= INSIDE_BAR and
                first >= 95)

    def markdown(self, by_cell, errors):
        with open(self.options.markdown, "w", encoding="utf-8") as file:
            file.write("| program | hot spot | less | truth | predicted | interval | error | experiments |\n"
                       "|---|---|---|---|---|---|---|---|\n")
            for p in self.points:
                key = (p["program"], p["spot"], p["speedup"])
                if p is not by_cell.get(key, [p])[0]:
                    continue
                start = f"| {p['program']} | {p['spot']} | {p['speedup']:g} % | " \
                        f"{p['truth']:.1f} ±{1.96 * p['truth_error']:.1f} | "
                cells = [q["cell"] for q in by_cell.get(key, [])]
                if not cells:
                    file.write(start + f"- | {p['point']} | - | |\n")
                    continue
                middle = statistics.median(c["effect"] for c in cells)
                lows = [c["low"] for c in cells if c["low"] is not None]
                highs = [c["high"] for c in cells if c["high"] is not None]
                interval = f"{statistics.median(lows):.1f} to {statistics.median(highs):.1f}" if lows else "-"
                file.write(start + f"{middle:.1f} | {interval} | {errors[key]:.1f} | "
                           f"{sum(c['experiments'] or 0 for c in cells)} |\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--causal", required=True)
    parser.add_argument("--out", default="real-out")
    parser.add_argument("--only", default="")
    parser.add_argument("--spot", default="")
    parser.add_argument("--speedup", default="50,90", type=lambda t: [float(x) for x in t.split(",")])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--budget", type=float, default=45, help="seconds")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--more", default="", help="further options for causal")
    parser.add_argument("--markdown")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--truth-only", action="store_true")
    options = parser.parse_args()
    options.causal = os.path.abspath(options.causal)
    os.makedirs(options.out, exist_ok=True)
    check = Check(options)
    work = check.dir
    for path, size in ((f"{work}/big", 128 << 20), (f"{work}/middle", 48 << 20), (f"{work}/less", 24 << 20)):
        if not os.path.exists(path):
            table.make_input(path, size)
    draw = random.Random(1)
    table.write(f"{work}/lines", "".join(f"{draw.getrandbits(120):x}\n" for _ in range(400000)))
    table.write(f"{work}/check.py", PACK_AND_CHECK)
    table.write(f"{work}/order.sql", ORDER)
    table.write(f"{work}/words.pl", answers.PERL)
    table.write(f"{work}/large.cc", answers.CXX)
    for kind, run in ((programs(work), check.program), (servers(work), check.server)):
        for name, what in kind.items():
            if re.search(options.only, name):
                run(name, *what)
    return 0 if options.truth_only or check.summary() else 1


if __name__ == "__main__":
    sys.exit(main())
