#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What causal sample costs, and what it sees, beside its bars; `perf record` beside it where that is allowed.
Run by `make bench-sample`; BENCH="overhead threads" selects parts, BENCH_TURNS (default 7) and BENCH_LONG (seconds,
default 60) how much of them, BENCH_PAUSE (ms, default 0) how long the long run's threads sleep after each 2 ms of work.
Ratios are of one run, of programs that take turns."""
import glob
import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["CA_TOP_BUILDDIR"]
CAUSAL = os.path.join(BUILD, "driver", "causal")
BENCH = os.path.join(BUILD, "tests", "bench")
TURNS = int(os.environ.get("BENCH_TURNS", "7"))
LONG = int(os.environ.get("BENCH_LONG", "60"))
PAUSE = os.environ.get("BENCH_PAUSE", "0")
missed = []


def bar(what, value, unit, limit, least=False):
    good = value >= limit if least else value <= limit
    print(f"{what}: {value:.3g} {unit} (bar: at {'least' if least else 'most'} {limit:g}){'' if good else '   MISSED'}",
          flush=True)
    if not good:
        missed.append(what)


def run(words, **more):
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: status {done.returncode}: {done.stderr[-2000:]}")
    return done


def cpu_of(words):
    """CPU time of a command and all that it waits for, and its wall time, s."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run(words)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def sample(directory, *words):
    """The profile; CPU time of the program itself as the kernel says, without the driver's, s."""
    shutil.rmtree(directory, ignore_errors=True)
    run([CAUSAL, "sample", "-o", directory, "--", *words])
    with open(os.path.join(directory, "sample.json"), encoding="utf-8") as file:
        profile = json.load(file)
    return profile, (profile["user"] + profile["system"]) / 1e9


def have(program):
    return shutil.which(program) is not None


def perf_works(scratch):
    if not have("perf"):
        return False
    done = subprocess.run(["perf", "record", "-q", "-g", "-o", os.path.join(scratch, "perf"), "--", "true"],
                          capture_output=True, check=False)
    return done.returncode == 0


def interrupts(what, words):
    """The program under ticks that nobody gets: what interrupts cost, whoever samples."""
    return [os.path.join(BENCH, "interrupts"), what, "1000000", *words]


def programs(scratch):
    """Public programs on data that they make themselves, of some seconds each."""
    data = os.path.join(scratch, "data")
    with open(data, "wb") as out:
        for path in sorted(glob.glob("/usr/lib/x86_64-linux-gnu/lib[a-m]*.so.*"))[:400]:
            if out.tell() < 12 << 20 and os.path.isfile(path):
                with open(path, "rb") as file:
                    out.write(file.read(1 << 20))
    lines = os.path.join(scratch, "lines")
    source = random.Random(1)
    with open(lines, "w", encoding="ascii") as out:
        out.writelines(f"{source.getrandbits(64):016x} {i}\n" for i in range(1000000))
    found = [("xz -T1 -2", ["xz", "-T1", "-2", "-k", "-c", data]), ("gzip -6", ["gzip", "-6", "-c", data]),
             ("bzip2", ["bzip2", "-c", data]), ("zstd -15", ["zstd", "-q", "-15", "-c", data]),
             ("sort", ["sort", "--parallel=1", lines]), ("sha512sum", ["sha512sum"] + 50 * [data])]
    return [(name, words) for name, words in found if have(words[0])]


def percent_more(these, those):
    """What other load adds differs from turn to turn: each turn is compared with itself."""
    return 100 * (statistics.median(a / b for a, b in zip(these, those)) - 1)


def overhead(scratch):
    perf = perf_works(scratch)
    if not perf:
        print("perf record is not installed, or not allowed: not beside it")
    floor = subprocess.run(interrupts("alone", ["true"]), check=False).returncode == 0
    ratios, floors, above, frames = [], [], [], []
    for name, words in programs(scratch):
        alone, ticking, signalled, sampled, recorded, handler, incomplete, samples = [], [], [], [], [], [], 0, 0
        sample(os.path.join(scratch, "out"), *words)  # its binaries have been read from then on
        for _ in range(TURNS):
            alone.append(cpu_of(words)[0])
            if floor:
                ticking.append(cpu_of(interrupts("alone", words))[0])
                signalled.append(cpu_of(interrupts("signals", words))[0])
            profile, cpu = sample(os.path.join(scratch, "out"), *words)
            sampled.append(cpu)
            handler.append(profile["handler"] / 1e9)
            incomplete += profile["incomplete"]
            samples += profile["samples"]
            if perf:
                recorded.append(cpu_of(["perf", "record", "-q", "-g", "-F", "1000", "-o", os.path.join(scratch, "perf"),
                                        "--", *words])[0])
        ratio = percent_more(sampled, alone)
        line = f"  {name}: {statistics.median(alone):.2f} s of CPU time alone, sampled {ratio:+.2f} %"
        line += f" (in the handler {100 * statistics.median(h / a for h, a in zip(handler, alone)):.2f})"
        if floor:
            floors.append((percent_more(ticking, alone), percent_more(signalled, alone)))
            above.append(percent_more(sampled, ticking))
            line += (f", interrupts alone {floors[-1][0]:+.2f} %, with ignored signals {floors[-1][1]:+.2f} %, "
                     f"sampled above the interrupts {above[-1]:+.2f} %")
        if perf:
            line += f", perf record -g {percent_more(recorded, alone):+.2f} %"
        print(f"{line}; {samples} samples, {100 * (1 - incomplete / max(1, samples)):.2f} % complete", flush=True)
        ratios.append(ratio)
        frames.append(100 * (1 - incomplete / max(1, samples)))
    bar("overhead at 1 kHz, median of the programs", statistics.median(ratios), "%", 1.5)
    if floor:
        interrupt, signal = (statistics.median(floor) for floor in zip(*floors))
        print(f"  medians: interrupts alone {interrupt:+.2f} %, with ignored signals {signal:+.2f} %")
        bar("overhead above that of interrupts alone, median of the programs", statistics.median(above), "%", 1.5)
    else:
        print("perf's ticks are not allowed: what interrupts alone cost is not known")
    bar("stacks of these complete to the thread's start, least", min(frames), "%", 99, least=True)


def complete(_):
    oracle = os.path.join(BUILD, "tests", "unit", "test_sampler_oracle")
    done = subprocess.run([oracle], capture_output=True, text=True, check=False)
    shares = {name: 100 * int(end) / int(steps) for name, steps, end in
              re.findall(r"^(\S+): (\d+) steps, (\d+) to the end", done.stdout + done.stderr, re.M)}
    for name, share in shares.items():
        bar(f"stacks complete to the thread's start, {name}", share, "%", 99, least=True)
    if not shares:
        print("the oracle says nothing: there is no libunwind")


def unwind(_):
    warm, cold, depth = [], [], 0
    for _ in range(TURNS):
        words = run_for([os.path.join(BENCH, "bench_unwind")]).split()
        warm.append(float(words[0]))
        cold.append(float(words[1]))
        depth = int(words[2])
    print(f"stacks of {depth} frames, ns a frame, medians:")
    bar("unwinding, warm", min(warm), "ns a frame", 50)
    bar("unwinding, cold caches", min(cold), "ns a frame", 100)


def run_for(words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def threads(scratch):
    alive, short = 5000, 20000
    profile, _ = sample(os.path.join(scratch, "out"), os.path.join(BENCH, "sampled_threads"), "alive", str(alive), "10")
    seen = sum(1 for group in profile["groups"] if re.fullmatch(r"t\d+", group["name"]) and group["cpu"])
    lost = {loss["why"]: loss["count"] for loss in profile["losses"] if "asked for" not in loss["why"]}
    bar(f"of {alive} threads alive at once, without a sample", alive - seen, "", 0)
    print(f"  left out: {lost}")
    profile, _ = sample(os.path.join(scratch, "out"), os.path.join(BENCH, "sampled_threads"), "short", str(short))
    in_nodes = sum(node[2] for node in profile["nodes"])
    in_threads = sum(group["cpu"] + group["waiting"] for group in profile["groups"])
    known = sum(group["threads"] for group in profile["groups"])
    bar(f"of {short} short threads, not known", short + 1 - known, "", 0)
    bar("time in samples without a thread", in_nodes - in_threads, "ns", 0)
    print(f"  {profile['samples']} samples; left out: "
          f"{ {loss['why']: loss['count'] for loss in profile['losses']} }")


def start(scratch):
    """From exec to main, in a binary of 30 MB whose index is in the cache."""
    source, binary = os.path.join(scratch, "big%u.c"), os.path.join(scratch, "big")
    parts, functions = 28, 1500
    for part in range(parts):
        with open(source % part, "w", encoding="utf-8") as out:
            for i in range(functions):
                out.write(f"struct s{i} {{ int a; long b; char name[{i % 50 + 1}]; }};\n"
                          f"int f_{part}_{i}(struct s{i} *p, int n) {{ int sum = {i}; "
                          f"for (int i = 0; i < n; i++) {{ sum += p[i].a * {i + 3}; "
                          f"if (p[i].b > sum) sum -= p[i].name[0]; else p[i].a = sum; }} return sum; }}\n")
    with open(os.path.join(scratch, "main.c"), "w", encoding="utf-8") as out:
        out.write("#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n#include <unistd.h>\n"
                  "int main(int argc, char **argv) { struct timespec t; char text[40]; (void)argc;\n"
                  "clock_gettime(CLOCK_MONOTONIC, &t); double now = t.tv_sec * 1e3 + t.tv_nsec / 1e6;\n"
                  "if (getenv(\"BEGAN\")) { printf(\"%f\\n\", now - atof(getenv(\"BEGAN\"))); return 0; }\n"
                  "snprintf(text, sizeof text, \"%f\", now); setenv(\"BEGAN\", text, 1);\n"
                  "execv(argv[0], argv); return 1; }\n")
    cc = os.environ.get("CC", "cc")
    subprocess.run(["sh", "-ec", f"cd '{scratch}' && printf '%s\\n' big*.c main.c | xargs -P2 -n1 {cc} -g -O1 -c && "
                    f"{cc} -o '{binary}' big*.o main.o"], check=True)
    size = os.path.getsize(binary) / 1e6
    words = [CAUSAL, "sample", "-q", "-r", "-o", os.path.join(scratch, "out"), "--", binary]
    run_for(words)
    alone, sampled = [], []
    for _ in range(3 * TURNS):
        alone.append(float(run_for([binary])))
        sampled.append(float(run_for(words)))
    more = statistics.median(sampled) - statistics.median(alone)
    print(f"a binary of {size:.0f} MB comes to main in {statistics.median(alone):.2f} ms alone, "
          f"{statistics.median(sampled):.2f} ms sampled, medians of {3 * TURNS}")
    bar("more for the start of a binary of 30 MB", more, "ms", 5)


def resident(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024
    except (OSError, TypeError):
        return None


def bytes_in(folder):
    return sum(entry.stat().st_size for entry in os.scandir(folder)) if os.path.isdir(folder) else 0


def long_run(scratch):
    """Threads that work and wait, and 100 new ones a second; a line each minute."""
    out = os.path.join(scratch, "out")
    shutil.rmtree(out, ignore_errors=True)
    with subprocess.Popen([CAUSAL, "sample", "-q", "-o", out, "--", os.path.join(BENCH, "sampled_threads"), "long",
                           str(LONG), PAUSE], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
        began, seen, minute = time.monotonic(), [], 1
        while driver.poll() is None:
            time.sleep(max(0.2, LONG / 200))
            with open(f"/proc/{driver.pid}/task/{driver.pid}/children", encoding="utf-8") as file:
                child = file.read().split()
            sizes = resident(driver.pid), resident(child[0]) if child else None
            if None not in sizes:
                seen.append((time.monotonic() - began, *sizes))
                if seen[-1][0] >= 60 * minute:
                    print(f"  {seen[-1][0]:.0f} s: driver {sizes[0]:.1f} MiB, program {sizes[1]:.1f} MiB, "
                          f"files {bytes_in(out) / 1e6:.2f} MB", flush=True)
                    minute += 1
    with open(os.path.join(out, "sample.json"), encoding="utf-8") as file:
        profile = json.load(file)
    early = [size for size in seen if LONG / 4 < size[0] < LONG / 2]
    late = [size for size in seen if size[0] > 3 * LONG / 4]
    for what, i in (("driver", 1), ("program", 2)):
        first, last = (statistics.median(size[i] for size in part) for part in (early, late))
        print(f"  {what}: {first:.1f} MiB in the second quarter of {LONG} s, {last:.1f} in the last")
        # tables of fixed size fill; a record of each thread that ever was would be more after a minute
        bar(f"growth of the {what}'s memory between them", last - first, "MiB", 1)
    print(f"  {profile['samples']} samples, {profile['threads']} threads")
    bar("files of the run", bytes_in(out) / 1e6, "MB", 5)


def main():
    parts = {"complete": complete, "unwind": unwind, "overhead": overhead, "threads": threads, "start": start,
             "long": long_run}
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_CACHE_HOME"] = os.path.join(scratch, "cache")
        for name in os.environ.get("BENCH", "").split() or parts:
            print(f"---- {name}", flush=True)
            parts[name](scratch)
    print("missed: " + ", ".join(missed) if missed else "all bars are met")


if __name__ == "__main__":
    main()
