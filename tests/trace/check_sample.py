#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs jsonschema
"""causal sample: shares and waits of a program that knows its own, and each export read back."""
import csv
import glob
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from check_perfetto import decode  # noqa: E402
from checks import BUILD, CAUSAL, TOP, causal, check, status  # noqa: E402

APP = os.path.join(BUILD, "tests", "apps", "sampled")
MS = 1000000
# https://github.com/google/pprof/blob/main/proto/profile.proto
TYPE = {1: ("type", "uint"), 2: ("unit", "uint")}
PPROF = {1: ("sample_type", TYPE), 2: ("sample", {1: ("location_id", "uint"), 2: ("value", "uint")}),
         3: ("mapping", {1: ("id", "uint"), 5: ("filename", "uint"), 7: ("has_functions", "uint")}),
         4: ("location", {1: ("id", "uint"), 2: ("mapping_id", "uint"),
                          4: ("line", {1: ("function_id", "uint"), 2: ("line", "uint")})}),
         5: ("function", {1: ("id", "uint"), 2: ("name", "uint"), 3: ("system_name", "uint"),
                          4: ("filename", "uint"), 5: ("start_line", "uint")}),
         6: ("string_table", "text"), 9: ("time_nanos", "uint"), 10: ("duration_nanos", "uint"),
         11: ("period_type", TYPE), 12: ("period", "uint"), 14: ("default_sample_type", "uint")}


def sample(directory, *words, expect=0):
    done = subprocess.run([CAUSAL, "sample", "-o", directory, *words], capture_output=True, text=True, check=False,
                          timeout=120)
    check(done.returncode == expect, f"causal sample {words}: status {done.returncode}: {done.stderr}")
    return done


def read(directory):
    with open(os.path.join(directory, "sample.json"), encoding="utf-8") as file:
        return json.load(file)


def stacks_of(profile):
    """The names of each node's stack, outermost first, and its time."""
    names, result = [()], []
    for parent, function, ns, _ in profile["nodes"]:
        names.append(names[parent] + (profile["functions"][function - 1]["name"],))
        result.append((names[-1], ns))
    return names, [(stack, ns) for stack, ns in result if ns]


def time_in(stacks, *words):
    """ns of the stacks that hold all of them."""
    return sum(ns for stack, ns in stacks if all(word in stack for word in words))


def is_wait(stack):
    """Not [kernel], nor a binary where it has no function, as [libc.so.6]."""
    return stack[-1].startswith(("[waiting ", "[input or output]", "[sleeping]", "[yielding]", "[unknown]"))


def check_shares(backend, directory):
    done = sample(directory, "-b", backend, "--", APP, "600")
    if "perf" in done.stderr and "not allowed" in done.stderr:
        print(f"SKIP: {backend} is not allowed here")
        return None
    consuming, napping = (int(word) for word in done.stdout.split())
    profile = read(directory)
    names, stacks = stacks_of(profile)
    waiting = sum(ns for stack, ns in stacks if is_wait(stack))
    cpu = sum(ns for stack, ns in stacks) - waiting
    check(profile["backend"] == backend, f"{backend}: the source is {profile['backend']}")
    check(450 * MS < cpu < 800 * MS, f"{backend}: {cpu} ns of CPU time, not 600 ms")
    share = 100 * time_in(stacks, "most") / cpu
    check(65 < share < 85, f"{backend}: most has {share:.1f} %, not 75")
    check(time_in(stacks, "rest", "most") == 0, f"{backend}: most calls rest: {stacks}")
    check(all(stack[0] == "sampled" for stack, _ in stacks), f"{backend}: a root is not the process: {stacks}")
    # waits that are shorter than a period are drawn; these are not
    waited = time_in(stacks, "consume", "[waiting for a condition]")
    check(0.8 * consuming < waited < 1.05 * consuming + 20 * MS, f"{backend}: {waited} ns in consume, not {consuming}")
    slept = time_in(stacks, "nap", "[sleeping]")
    check(0.9 * napping < slept <= 1.01 * napping, f"{backend}: {slept} ns in nap, not {napping}")
    woken = sum(ns for waiter, waker, ns, _ in profile["wakes"]
                if "consume" in names[waiter] and "produce" in names[waker])
    check(woken > 0.8 * waited, f"{backend}: produce ended {woken} ns of {waited}: {profile['wakes']}")
    groups = {group["name"]: group for group in profile["groups"]}
    check(list(groups) == ["sampled"] and groups["sampled"]["threads"] == 2, f"{backend}: threads {groups}")
    check(groups["sampled"]["cpu"] == cpu and groups["sampled"]["waiting"] == waiting, f"{backend}: sums {groups}")
    check(re.search(r"\bmost \(sampled.c:\d+\) +sampled\n", done.stderr), f"{backend}: no row of most: {done.stderr}")
    check(re.search(r"for a condition\] +consume \(sampled.c:\d+\) +produce", done.stderr), f"no wait: {done.stderr}")
    return stacks


def check_exports(directory, stacks):
    def export(form):
        return causal("export", directory, "--format", form).stdout

    expected = {}
    for stack, ns in stacks:
        expected[stack] = expected.get(stack, 0) + ns
    folded = {}
    for line in export("folded").splitlines():
        stack, ns = line.rsplit(" ", 1)
        folded[tuple(stack.split(";"))] = int(ns)
    check(folded == expected, "folded: other stacks than in sample.json")
    whole = json.loads(export("speedscope"))
    frames = [frame["name"] for frame in whole["shared"]["frames"]]
    profile = whole["profiles"][0]
    check(profile["unit"] == "nanoseconds", f"speedscope: unit {profile['unit']}")
    check({tuple(frames[i] for i in stack): ns for stack, ns in zip(profile["samples"], profile["weights"])} ==
          expected, "speedscope: other stacks")
    try:
        from jsonschema import Draft7Validator
    except ImportError:
        print("SKIP: without jsonschema the file is not held against speedscope's schema")
    else:
        with open(os.path.join(TOP, "tests", "report", "speedscope", "schema.json"), encoding="utf-8") as file:
            for error in Draft7Validator(json.load(file)).iter_errors(whole):
                check(False, f"speedscope: {error.json_path}: {error.message}")
    check(json.loads(export("json")) == read(directory), "json: not what is in sample.json")
    rows = {row["function"]: row for row in csv.DictReader(io.StringIO(export("csv")))}
    check(abs(float(rows["most"]["total_s"]) * 1e9 - time_in(stacks, "most")) < MS, f"csv: {rows['most']}")
    check(float(rows["nap"]["wall_s"]) > 0.14 > float(rows["nap"]["total_s"]), f"csv: {rows['nap']}")
    check("| <code>most</code> | <code>" in export("markdown"), "markdown: no row of most")
    tree = [line.split(None, 3) for line in export("tree").splitlines()[1:]]
    check(tree[0][3] == "sampled" and abs(float(tree[0][0]) * 1e9 - sum(expected.values())) < MS, f"tree: {tree[0]}")
    check_pprof(directory, expected)


def check_pprof(directory, expected):
    done = subprocess.run([CAUSAL, "export", directory, "--format", "pprof"], capture_output=True, check=True)
    whole = decode(done.stdout, PPROF)
    text = whole["string_table"]
    check(text[0] == "", "pprof: the first string")
    types = [(text[t["type"][0]], text[t["unit"][0]]) for t in whole["sample_type"]]
    check(types == [("samples", "count"), ("cpu", "nanoseconds"), ("wait", "nanoseconds")], f"pprof: {types}")
    function = {f["id"][0]: text[f["name"][0]] for f in whole["function"]}
    location = {place["id"][0]: function[place["line"][0]["function_id"][0]] for place in whole["location"]}
    check(0 not in location and len(location) == len(whole["location"]), "pprof: ids are not unique, or 0")
    mapping = {m["id"][0]: text[m["filename"][0]] for m in whole["mapping"]}
    check(all(not place["mapping_id"][0] or place["mapping_id"][0] in mapping for place in whole["location"]),
          "pprof: a mapping is missing")
    check(os.path.realpath(APP) in mapping.values(), f"pprof: {mapping}")
    stacks = {}
    for one in whole["sample"]:
        stack = tuple(location[i] for i in reversed(one["location_id"]))
        count, cpu, wait = one["value"]
        check(count and (wait if is_wait(stack) else cpu), f"pprof: {one}")
        stacks[stack] = stacks.get(stack, 0) + cpu + wait
    check(stacks == expected, "pprof: other stacks")
    if subprocess.run(["sh", "-c", "command -v pprof"], capture_output=True, check=False).returncode == 0:
        with tempfile.NamedTemporaryFile() as file:
            file.write(done.stdout)
            file.flush()
            top = subprocess.run(["pprof", "-top", file.name], capture_output=True, text=True, check=False)
            check("most" in top.stdout, f"pprof -top: {top.stdout}{top.stderr}")


def check_kernel(backend, directory):
    """What a program does in the kernel is its callers', with perf as with timers."""
    sample(directory, "-b", backend, "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=30000", "status=none")
    profile = read(directory)
    stacks = stacks_of(profile)[1]
    cpu = sum(ns for stack, ns in stacks if not is_wait(stack))
    account = profile["user"] + profile["system"]
    check(0.8 * account < cpu < 1.2 * account, f"{backend}: {cpu} ns in samples of {account}")
    kernel = time_in(stacks, "read", "[kernel]")
    check(kernel > 0.75 * cpu, f"{backend}: {kernel} ns in read's kernel of {cpu}")


def shares_of(profile):
    """Time on the critical path, each and all, ns; in percent, of each part."""
    names = stacks_of(profile)[0]
    path = [(names[node], ns) for node, ns in profile["path"]]
    every = sum(ns for _, ns in path)
    return path, every, {name: 100 * time_in(path, name) / max(1, every) for name in ("slow", "quick", "after", "[sleeping]")}


def check_path_by_real_time(directory):
    """Where CPU time is not sampled. Who is ready to run has real time, too: where others have the CPUs it is longer."""
    sample(directory, "--realtime", "1000", "--", os.path.join(BUILD, "tests", "apps", "staged"), "100")
    path, every, share = shares_of(read(directory))
    check(every > 440 * MS and share["slow"] > 40 and share["quick"] < 10 and share["after"] > 5,
          f"the path by real time: {share}, {path}")


def path_of(backend, directory, *more):
    """The critical path of APP's sister, what is wrong with it, and what was printed."""
    done = sample(directory, "-b", backend, *more, "--", os.path.join(BUILD, "tests", "apps", "staged"), "100")
    profile = read(directory)
    stacks = stacks_of(profile)[1]
    path, every, share = shares_of(profile)
    # ticks are lost while the machine that this one is part of does not run it: perf makes one of several
    lost = max(0, profile["user"] + profile["system"] - sum(ns for stack, ns in stacks if not is_wait(stack)))
    wrong = [] if 440 * MS < every + lost and every < 560 * MS else [f"{every} ns, not 500 ms: {path}"]
    for name, by_hand in ("slow", 60), ("quick", 0), ("after", 20), ("[sleeping]", 20):
        if abs(share[name] - by_hand) >= 6:
            wrong.append(f"{share[name]:.1f} % of it in {name}, not {by_hand}")
    if not 0.6 * 100 * MS < time_in(stacks, "quick") < 1.4 * 100 * MS:
        wrong.append("quick did not run")
    return share, wrong, done.stderr


def check_path(backend, directory, *more):
    """It is known by hand: 3 parts in slow, 1 in after, 1 asleep; quick is not on it. It is 500 samples long: where other
    machines take the CPU, up to three times."""
    for tries in range(3):
        share, wrong, text = path_of(backend, directory + str(tries or ""), *more)
        if not wrong:
            break
    check(not wrong, f"{backend}, {more}: the path: {wrong}")
    row = re.search(r" ([0-9.]+)  slow \(staged.c:\d+\) +staged\n", text)
    check(row and abs(float(row[1]) - share["slow"]) < 0.1, f"{backend}: the row of slow: {text}")
    check("The critical path is known for 0." in text and " % [sleeping]" in text, f"path: {text}")


def check_path_of_processes(directory):
    """However a process is made and ends, or goes on in another program, its maker goes on with its path; not with that of one that ended while the maker worked."""
    staged = os.path.join(BUILD, "tests", "apps", "staged")
    for how in "exit", "_exit", "_Exit", "quick_exit", "exit_group", "exec", "system", "posix_spawn", "vfork", "polled":
        for tries in range(3):
            out = f"{directory}-{how}-{tries}"
            sample(out, "--", staged, "100", how)
            path, _, share = shares_of(read(out))
            good = abs(share["slow"] - 67) < 8 and share["quick"] < 4 and abs(share["after"] - 33) < 8
            if good:
                break
        check(good, f"processes, {how}: the path: {share}, {path}")


def check_forbidden(directory):
    """An ordinary user whom perf is forbidden: timers, who say so, and whole stacks."""
    os.mkdir(directory)
    os.chmod(directory, 0o777)
    os.chmod(os.path.dirname(directory), 0o711)
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        subprocess.run([APP, "10"], stdout=subprocess.DEVNULL, check=True, **nobody)
    except PermissionError:
        print("SKIP: nobody may not run what was built: perf was forbidden to root only")
        nobody = {}
    for name in "first", "second":  # the rows to walk stacks by are made beside the first run, and kept
        out = os.path.join(directory, name)
        done = subprocess.run([os.path.join(BUILD, "tests", "apps", "limits"), "seccomp_then", CAUSAL, "sample", "-o", out,
                               "--", APP, "900"], env=os.environ | {"XDG_CACHE_HOME": directory}, capture_output=True,
                              text=True, check=False, timeout=120, **nobody)
    check(done.returncode == 0 and "timers give the samples" in done.stderr and "not allowed here" in done.stderr and
          " samples from timer, " in done.stderr, f"forbidden: {done.returncode}: {done.stderr}")
    profile = read(out)
    check(profile["backend"] == "timer" and profile["samples"] > 20 and profile["incomplete"] <= 0.01 * profile["samples"],
          f"forbidden: {profile['backend']}, {profile['incomplete']} of {profile['samples']} stacks are not complete")


def check_path_diff(old, now):
    """APP's sister with its parts twice as long: 500 ms more, of which 300 in slow, and nothing of quick."""
    sample(now, "--", os.path.join(BUILD, "tests", "apps", "staged"), "200")
    text = causal("diff", old, now).stdout
    match = re.search(r"^Critical path: ([0-9.]+) s before, ([0-9.]+) s now", text, re.M)
    check(match and 0.44 < float(match[1]) < 0.56 and 0.88 < float(match[2]) < 1.12, f"diff: the path: {text}")
    table = text[text.find("on the critical path, with"):]
    row = re.search(r"^ +([0-9.]+) +([0-9.]+) +\+([0-9.]+)  slow +staged$", table, re.M)
    check(row and 0.2 < float(row[3]) < 0.4 and not re.search(r"  quick +staged", table), f"diff: the path: {text}")
    same = causal("diff", old, old).stdout
    check(re.search(r"on the critical path, with what it calls\n[0-9]+ functions have not changed", same), f"diff: a path with itself: {same}")


def check_window(directory):
    """After --delay, for --duration; the program goes on to its end."""
    done = sample(directory, "-w", "0.2", "-d", "0.2", "--", APP, "900")
    check(len(done.stdout.split()) == 2, f"window: the program has not ended: {done.stdout}")
    profile = read(directory)
    check(190 * MS < profile["runtime"] < 1000 * MS and profile["delay"] == 200 * MS, f"window: {profile['runtime']}")
    for group in profile["groups"]:
        check(group["cpu"] + group["waiting"] <= 1.2 * group["lifetime"] + 20 * MS, f"window: {group}")
    check(any("asked for" in loss["why"] for loss in profile["losses"]), f"window: nothing left out: "
          f"{profile['losses']}")


def check_open_waits(backend, directory):
    """Two threads wait for 250 ms when the program ends, each with its stack: of itself, killed, or to go on, without
    them. Who comes after them is not taken for who waits."""
    for sig, expect in ("0", 0), ("9", 137), ("100", 0):
        sample(directory + sig, "-b", backend, "--", APP, "waits", sig, expect=expect)
        stacks = stacks_of(read(directory + sig))[1]
        for words in ("wait_for_nobody", "[waiting for a condition]"), ("listen_to_nobody", "[input or output]"):
            ns = time_in(stacks, "wait_for_ever", *words)
            check(200 * MS < ns < 280 * MS, f"{backend}: {ns} ns of a wait that did not end, not 250 ms: {words}, {stacks}")
    # who shares the CPU with others is seen less often at the kernel's tick
    for again in range(3):
        ns = time_in(stacks, "call", "read", "[kernel]")
        if 350 * MS < ns < 600 * MS:
            break
        print(f"{backend}: {ns} ns in the kernel, try {again + 1}")
        sample(directory + "again", "-r", "-b", backend, "--", APP, "waits", "100")
        stacks = stacks_of(read(directory + "again"))[1]
    else:
        check(False, f"{backend}: {ns} ns in the kernel, not nearly 500 ms")
    sample(directory + "cut", "-b", backend, "-w", "0.1", "-d", "0.15", "--", APP, "waits", "0")
    ns = time_in(stacks_of(read(directory + "cut"))[1], "wait_for_nobody", "[waiting for a condition]")
    check(130 * MS < ns < 170 * MS, f"{backend}: {ns} ns of a wait in a window of 150 ms")


def check_temporary_file(directory):
    """It grows with the samples, and no further than it may."""
    most = {}
    for size in "256", "1":
        os.mkdir(directory + size)
        run = subprocess.Popen([CAUSAL, "sample", "-o", os.path.join(directory + size, "out"), "--use-temporary-files",
                                "--temporary-files-size", size, "--period", "20000", "--", APP, "3000"],
                               env=os.environ | {"TMPDIR": directory + size}, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        most[size] = 0
        while run.poll() is None:
            for name in glob.glob(f"/proc/{run.pid}/fd/*"):
                try:
                    if os.readlink(name).startswith(directory + size + "/#"):
                        most[size] = max(most[size], os.stat(name).st_size)
                except OSError:
                    pass
            time.sleep(0.005)
        check(run.returncode == 0, f"temporary file: status {run.returncode}")
    if most["256"] <= 1 << 20:
        print(f"SKIP: {most['256']} bytes of samples: too few ticks to fill a file")
    check(0 < most["1"] <= 1 << 20, f"temporary file: {most}")


def check_short_threads(backend, directory):
    """Hardly one of them has a sample, and each is counted; no sample is of none."""
    sample(directory, "-b", backend, "--", APP, "threads", "1000")
    profile = read(directory)
    check(profile["threads"] == sum(group["threads"] for group in profile["groups"]) == 1001,
          f"{backend}: not 1001 threads: {profile['groups']}")
    check(sum(group["cpu"] + group["waiting"] for group in profile["groups"]) == sum(node[2] for node in profile["nodes"]),
          f"{backend}: samples without a thread: {profile['groups']}")


def check_frequency(directory):
    sample(directory, "--frequency", "100", "--", APP, "600")
    profile = read(directory)
    check(profile["period"] == 10 * MS, f"frequency: a period of {profile['period']}")
    # of CPU time and of waits, which are few
    check(20 < profile["samples"] < 300, f"frequency: {profile['samples']} samples")


def check_diff(before, after):
    """APP's 600 ms of CPU time, and 900."""
    sample(after, "--", APP, "900")
    done = causal("diff", before, after)
    match = re.search(r"^CPU time: ([0-9.]+) s before, ([0-9.]+) s now", done.stdout)
    check(match and 0.4 < float(match[1]) < 0.75 < float(match[2]) < 1.2, f"diff: sums: {done.stdout}")
    check(re.search(r"\+0\.[1-5][0-9]+ +burn .* sampled\n", done.stdout), f"diff: no burn: {done.stdout}")
    check(re.search(r"\+0\.[0-5][0-9]+ +sampled.*;most;burn\n", done.stdout), f"diff: no stack: {done.stdout}")
    same = causal("diff", before, before).stdout
    check(re.search(r"function\n[0-9]+ functions have not changed", same), f"diff: of one with itself: {same}")
    folded = [line.rsplit(" ", 2) for line in causal("diff", before, after, "--format", "folded").stdout.splitlines()]
    check(all(stack and int(a) + int(b) for stack, a, b in folded), f"diff: folded: {folded}")
    check(sum(int(b) for _, _, b in folded) == sum(node[2] for node in read(after)["nodes"]), "diff: folded: the sum")
    causal("diff", before, expect=2)
    causal("diff", before, os.path.join(before, "nothing"), expect=2)
    causal("diff", before, after, "--format", "json", expect=2)


def check_suggestion(directory):
    """The command that is suggested runs, with that point and that code."""
    done = sample(directory, "--suggest", "--", APP, "2000")
    line = [text for text in done.stderr.splitlines() if text.startswith("causal: run this: causal ")]
    check(len(line) == 1, f"suggest: no command: {done.stderr}")
    if not line:
        return
    words = shlex.split(line[0].partition("run this: ")[2])
    check(words[-3:] == ["--", APP, "2000"], f"suggest: another program: {words}")
    check("consume" not in words[words.index("-F") + 1], f"suggest: a wait for others is among the code: {words}")
    check("^burn$" in words[words.index("-F") + 1].split(";"), f"suggest: burn is not among the code: {words}")
    check(not os.path.exists(os.path.join(directory, "progress.json")), "suggest: a choice is kept for later runs")
    check(done.stderr.count("worth an experiment: burn (") == 1, f"suggest: no reason: {done.stderr}")
    dry = causal(*words[1:-3], "--dry-run", *words[-3:])
    check("burn" in dry.stdout, f"suggest: {dry.stdout}{dry.stderr}")
    done = sample(directory + "-real", "--suggest", "--realtime", "1000", "--", "true", expect=2)
    check("add --cputime 0\n" in done.stderr, f"suggest: without CPU time: {done.stderr}")
    done = causal("--suggest", "--", "true", expect=2)
    check("causal sample --suggest" in done.stderr, f"suggest: in a sweep: {done.stderr}")


def check_taken(directory):
    """One profile in a folder: it is replaced if that is said, and no two are written at once."""
    done = sample(directory, "--", "touch", directory + "/ran", expect=2)
    check("holds a profile of samples already" in done.stderr, f"a second profile: {done.stderr}")
    check(not os.path.exists(directory + "/ran"), "a second profile: the program was run")
    before = read(directory)["time"]
    sample(directory, "--reset", "--", "true")
    check(read(directory)["time"] > before, "--reset: the profile is the old one")
    done = sample(directory, "-r", "--", CAUSAL, "sample", "-r", "-o", directory, "--", "true", expect=2)
    check("another causal sample writes to" in done.stderr, f"two at once: {done.stderr}")


def main():
    if os.environ.get("CA_SANITIZER"):
        print("SKIP: the runtime does not go with " + os.environ["CA_SANITIZER"])
        return 77
    path = None
    with tempfile.TemporaryDirectory() as scratch:
        for backend in ("perf", "timer"):
            directory = os.path.join(scratch, backend)
            done = causal("sample", "-b", backend, "-o", directory + "-there", "--", "true", expect=None)
            if done.returncode:
                print(f"SKIP: no samples from {backend} here: {done.stderr}")
                continue
            stacks = check_shares(backend, directory)
            if stacks:
                check_exports(directory, stacks)
                check_diff(directory, os.path.join(scratch, "longer-" + backend))
                path = os.path.join(scratch, "path-" + backend)
                check_path(backend, path)
                check_path_by_real_time(os.path.join(scratch, "real-" + backend))
                check_path(backend, os.path.join(scratch, "later-" + backend), "--use-temporary-files")
                check_kernel(backend, os.path.join(scratch, "kernel-" + backend))
                check_open_waits(backend, os.path.join(scratch, "open-" + backend))
                check_short_threads(backend, os.path.join(scratch, "short-" + backend))
        if path:
            check_path_diff(path, os.path.join(scratch, "path-longer"))
        check_path_of_processes(os.path.join(scratch, "processes"))
        check_forbidden(os.path.join(scratch, "forbidden"))
        check_window(os.path.join(scratch, "window"))
        check_temporary_file(os.path.join(scratch, "kept"))
        check_frequency(os.path.join(scratch, "often"))
        check_suggestion(os.path.join(scratch, "suggest"))
        # it may map 200 MB, and maps 150 of them
        sample(os.path.join(scratch, "space"), "--", os.path.join(BUILD, "tests", "apps", "hosts"), "address_space")
        # what else it says
        done = sample(os.path.join(scratch, "fails"), "--", "sh", "-c", "exit 7", expect=7)
        check("samples from" in done.stderr, f"a failing program: {done.stderr}")
        check("still run" not in done.stderr, f"processes that have ended: {done.stderr}")
        done = sample(os.path.join(scratch, "left"), "--", "sh", "-c", "sleep 3 >/dev/null 2>&1 & sleep 0.3")
        check("1 process of the program still runs (sleep " in done.stderr, f"a process that goes on: {done.stderr}")
        done = sample(os.path.join(scratch, "wrong"), "-s", "50", "--", "true", expect=2)
        check("-s is for experiments" in done.stderr, f"an option of experiments: {done.stderr}")
        os.mkdir(os.path.join(scratch, "sweep"))
        with open(os.path.join(scratch, "sweep", "run-0001.jsonl"), "w", encoding="utf-8"):
            pass
        done = sample(os.path.join(scratch, "sweep"), "--", "true", expect=2)
        check("results of a sweep" in done.stderr, f"a sweep's folder: {done.stderr}")
        check_taken(os.path.join(scratch, "fails"))
        os.symlink(CAUSAL, os.path.join(scratch, "causal-sample"))
        done = subprocess.run([os.path.join(scratch, "causal-sample"), "-o", os.path.join(scratch, "link"), "--",
                               APP, "100"], capture_output=True, text=True, check=False)
        check(done.returncode == 0 and "samples from" in done.stderr, f"causal-sample: {done.stderr}")
        done = causal("export", os.path.join(scratch, "often"), "--format", "coz", expect=2)
        check("no experiments" in done.stderr, f"coz: {done.stderr}")
        done = causal("export", os.path.join(scratch, "sweep"), "--format", "pprof", expect=2)
        check("causal sample" in done.stderr, f"pprof of a sweep: {done.stderr}")
    return status()


if __name__ == "__main__":
    sys.exit(main())
