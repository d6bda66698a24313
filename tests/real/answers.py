#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a person gets: sixteen programs as Debian installs them, causal with its default options.

Each program is profiled once, by an ordinary user, with what fits into a minute. The judge reads
profile.json, and asks: did it end in time with a first row that is known to +-5 points, or with the
statement that nothing matters? Has every row a name of its own? Is no row a mere wrapper of another?
The terminal's text is kept beside it (NAME.txt), for reading. Whether a row is true is another
question: predict.py asks it.

    answers.py --causal BUILD/driver/causal [--out DIR] [--only REGEX] [--seconds 60] [--before]

--before gives -n, as many runs as fit, for versions that do not decide that on their own.
"""
import argparse
import collections
import glob
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import table  # noqa: E402

USER = "causal-answers"
NEAR = 5       # points: half of a first row's interval, at most
NOISY = 6      # percent of the machine: with more for others, a line says little
GRACE = 15     # seconds after the minute until the program is killed
PERL = r"""
my (%seen, $total);
open my $in, '<', $ARGV[0] or die;
while (<$in>) {
    for my $word (/[a-z]{3,}/gi) { $seen{lc $word}++; $total++ }
}
my @top = sort { $seen{$b} <=> $seen{$a} || $a cmp $b } keys %seen;
print "$total $#top $top[0]\n";
"""
CXX = """
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>
template <int N> struct Item {
	std::map<std::string, std::vector<int>> all;
	int take(const std::string &s) {
		auto &list = all[s + std::to_string(N)];
		list.push_back(N);
		std::sort(list.begin(), list.end(), [](int a, int b) { return a * N < b * N; });
		return std::regex_match(s, std::regex("a+b*")) ? static_cast<int>(list.size()) : N;
	}
};
template <int... N> int each(const std::string &s, std::integer_sequence<int, N...>)
{
	return (Item<N>().take(s) + ...);
}
int main(int, char **argv) { std::cout << each(argv[0], std::make_integer_sequence<int, 24>()); }
"""


def as_user(argv):
    """The command, run by an ordinary user also where we are root."""
    if os.geteuid() != 0:
        return argv
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--", *argv]


class Load:
    """What a server serves: each of its lives is loaded for a while, and then ended in peace."""
    def __init__(self, port, clients, stop, seconds):
        self.port, self.clients, self.stop, self.seconds = port, clients, stop, seconds
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.is_set():
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                self.over.wait(0.05)
                continue
            running = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                       for c in self.clients]
            self.over.wait(self.seconds)
            for client in running:
                client.kill()
                client.wait()
            self.stop()
            self.over.wait(1)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def curve_of(region):
    return [c for c in region["progress"][0]["curve"] if c["speedup"]] if region["progress"] else []


def width(cell):
    return (cell["high"] - cell["low"]) / 2 if cell.get("high") is not None else None


def judged(region):
    """(speedup, effect, half the interval) of what the row is judged by: the curve at 50 % (`at`); in
    profiles without, the cell that is next to it."""
    at = region["progress"][0].get("at") or [] if region["progress"] else []
    cells = [c for c in at or curve_of(region) if c["effect"] is not None]
    if not cells:
        return None
    cell = min(cells, key=lambda c: (abs(c["speedup"] - 50), c["speedup"]))
    return cell["speedup"], cell["effect"], width(cell)


def stacks_of(directory):
    """[(names from the outermost on, count)], of all runs."""
    found = []
    for path in glob.glob(f"{directory}/run-*.jsonl"):
        with open(path, encoding="utf-8", errors="replace") as file:
            found += [(r["frames"], r["count"]) for r in map(json.loads, (x for x in file if '"stack"' in x))
                      if r["type"] == "stack"]
    return found


def only_contains(name, names, stacks):
    """Is two thirds of it other rows' work, which hardly anybody else calls? Else it can be changed how often it
    calls them."""
    all_of, inside, here, covered = collections.Counter(), collections.Counter(), 0, 0
    for frames, count in stacks:
        at = frames.index(name) if name in frames else len(frames)
        here += count if at < len(frames) else 0
        all_of.update({x: count for x in set(frames) & names})
        inside.update({x: count for x in set(frames[at + 1:]) & names})
    held = {x for x in inside if x != name and inside[x] >= 0.8 * all_of[x]}
    for frames, count in stacks:
        if name in frames and held & set(frames[frames.index(name) + 1:]):
            covered += count
    return covered >= 0.67 * here


def wrappers(rows, stacks):
    """Rows that only contain others: next to nothing of their own, and what they call is theirs alone; where the
    profile does not say, rows with the same samples as another of the same binary, but for one."""
    found = []
    for i, row in enumerate(rows):
        share = row.get("samples") or 0
        if row.get("own") is not None:
            if share >= 10 and row.get("own") < 0.05 * share and \
                    only_contains(row["name"], {r["name"] for r in rows}, stacks):
                found.append(row["name"])
        elif share >= 10 and any(abs((r.get("samples") or 0) - share) < 0.03 * share
                                 for r in rows[:i] if r["binary"] == row["binary"]):
            found.append(row["name"])
    return found


def twins(rows, text):
    """Names that stand in the table more than once: in the profile, or on the terminal."""
    names = collections.Counter((r["name"], r["binary"], r.get("line")) for r in rows)
    found = [name for (name, _, _), n in names.items() if n > 1]
    shown = collections.Counter(re.findall(r"^ {0,3}\d+ +(\S.*?) {2,}", text, re.M))
    return found + [name for name, n in shown.items() if n > 1 and name not in found]


def judge(directory, text, seconds, limit):
    """One line of the table."""
    verdict = {"seconds": round(seconds, 1), "in_time": seconds <= limit, "first": None, "decided": False,
               "twins": [], "wrappers": [], "runs": len(glob.glob(f"{directory}/run-*.jsonl")),
               "experiments": 0, "cause": None}
    try:
        profile = table.profile_of(directory)
    except (OSError, ValueError):
        verdict["cause"] = "no profile"
        return verdict
    # as the table has them: no containers, and nothing that another row stands for
    stood_for = {name for r in profile["regions"] for name in r.get("via", [])}
    rows = [r for r in profile["regions"]
            if curve_of(r) and not r.get("contains") and r["name"] not in stood_for][:10]
    verdict["experiments"] = profile["funnel"]["experiments_kept"]
    verdict["cause"] = profile.get("cause")
    verdict["twins"], verdict["wrappers"] = twins(rows, text), wrappers(rows, stacks_of(directory))
    for row in rows[:5]:
        cell = judged(row)
        verdict.setdefault("rows", []).append(
            {"name": row["name"], "binary": os.path.basename(row["binary"]), "verdict": row["verdict"],
             "samples": row.get("samples"), "own": row.get("own"), "cell": cell})
    if rows:
        first = judged(rows[0])
        known = first is not None and first[2] is not None and first[2] <= NEAR
        nothing = all(r["verdict"] == "not-worth" for r in rows)
        verdict["first"] = {"name": rows[0]["name"], "verdict": rows[0]["verdict"], "cell": first}
        verdict["decided"] = known and rows[0]["verdict"] == "worth" or nothing
        verdict["nothing"] = nothing
    return verdict


class Answers:
    def __init__(self, options):
        self.options = options
        self.dir = os.path.abspath(options.out)
        self.lines = []

    def alone(self, argv):
        start = time.monotonic()
        with open(f"{self.dir}/err", "wb") as err:
            status = subprocess.run(as_user(argv), stdout=subprocess.DEVNULL, stderr=err, cwd=self.dir,
                                    stdin=subprocess.DEVNULL, check=False).returncode
        if status:
            print(f"BAD: {argv[0]} alone: exit status {status}, see {self.dir}/err")
        return time.monotonic() - start

    def program(self, name, argv, load=None, runs=None):
        seconds = self.options.seconds
        directory = f"{self.dir}/{name}"
        alone = None if load else self.alone(argv)
        extra = []
        if self.options.before:
            extra = ["-n", str(runs or max(1, min(10, int((seconds - 5) / alone))))]
        shutil.rmtree(directory, ignore_errors=True)
        others = table.Others()
        command = [self.options.causal, "-o", directory, *extra, "--", *argv]
        start = time.monotonic()
        with open(f"{self.dir}/{name}.txt", "wb") as text:
            child = subprocess.Popen(as_user(command), stdout=subprocess.DEVNULL, stderr=text, cwd=self.dir,
                                     stdin=subprocess.DEVNULL, start_new_session=True,
                                     env={**os.environ, "HOME": self.dir})
            try:
                if load:
                    with load:
                        child.wait(seconds + GRACE)
                else:
                    child.wait(seconds + GRACE)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGINT)
                try:
                    child.wait(GRACE)
                except subprocess.TimeoutExpired:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
        took = time.monotonic() - start
        with open(f"{self.dir}/{name}.txt", errors="replace", encoding="utf-8") as file:
            text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.read()).replace("\r", "\n")
        # a second for what is not causal's: starting it
        verdict = judge(directory, text, took, seconds + 1)
        verdict.update(name=name, command=" ".join(argv), runs_asked=extra[1:], alone=alone,
                       status=child.returncode, others=others.percent())
        self.lines.append(verdict)
        self.tell(verdict)

    def tell(self, v):
        first = v["first"]
        cell = first and first["cell"]
        shown = "no row" if not first else first["name"] + (
            f" {cell[1]:.1f} ±{'?' if cell[2] is None else f'{cell[2]:.1f}'} at {cell[0]:g} %" if cell else " -") + \
            f", {first['verdict']}"
        good = v["decided"] and v["in_time"] and not v["twins"] and not v["wrappers"]
        v["good"] = bool(good)
        print(f"{v['name']:10} {'ANSWER' if good else 'no':7} {v['seconds']:5.1f} s, {v['runs']} runs, "
              f"{v['experiments']} experiments; first: {shown}"
              + (f"; twice: {', '.join(v['twins'])}" if v["twins"] else "")
              + (f"; wrappers: {', '.join(v['wrappers'])}" if v["wrappers"] else "")
              + (f"; {v['cause']}" if v["cause"] else "")
              + (f"; others took {v['others']:.0f} % of the machine" if v["others"] > NOISY else ""), flush=True)
        with open(f"{self.dir}/answers.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(v) + "\n")

    def summary(self):
        good = sum(v["good"] for v in self.lines)
        print(f"\n{good} of {len(self.lines)} end with an answer within {self.options.seconds:g} s")


def make_files(work):
    def once(path, make):
        if not os.path.exists(path):
            make(path)

    def text(path):
        with open(f"{work}/big", "rb") as file:
            found = re.findall(rb"[ -~]{8,}", file.read(64 << 20))
        with open(path, "wb") as out:
            for i in range(12):
                out.writelines(b"%d%s\n" % ((i + 1) * n * 7919 % 10007, line) for n, line in enumerate(found))

    once(f"{work}/big", lambda p: table.make_input(p, 128 << 20))
    once(f"{work}/middle", lambda p: table.make_input(p, 48 << 20))
    once(f"{work}/small", lambda p: table.make_input(p, 16 << 20))
    once(f"{work}/text", text)
    table.write(f"{work}/threads.py", table.PYTHON_THREADS)
    table.write(f"{work}/query.sql", table.QUERY)
    table.write(f"{work}/words.pl", PERL)
    table.write(f"{work}/large.cc", CXX)


def make_user(work):
    if os.geteuid() != 0:
        return
    try:
        pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", "--user-group", USER], check=True)
    entry = pwd.getpwnam(USER)
    os.chown(work, entry.pw_uid, entry.pw_gid)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--causal", required=True)
    parser.add_argument("--out", default="answers-out")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--before", action="store_true")
    options = parser.parse_args()
    options.causal = os.path.abspath(options.causal)
    os.makedirs(options.out, exist_ok=True)
    a = Answers(options)
    d = a.dir
    make_user(d)
    make_files(d)
    os.environ["PATH"] += ":/usr/games"
    redis, memcached = 7379, 7211
    # a server's life: with --before two of them fit
    life = (options.seconds - 6) / (2 if options.before else 1)

    def quiet(*argv):
        return lambda: subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    programs = {
        "pigz": ["pigz", "-c", "-p2", f"{d}/middle"],
        "xz": ["xz", "-T2", "-2", "-c", "--block-size=512KiB", f"{d}/middle"],
        "zstd": ["zstd", "-c", "-T2", "-9", f"{d}/big"],
        "pbzip2": ["pbzip2", "-c", "-p2", f"{d}/small"],
        "lz4": ["lz4", "-9", "-c", f"{d}/middle"],
        "7z": ["7z", "a", "-mmt2", "-mx=5", "-bd", f"{d}/out.7z", f"{d}/middle"],
        "sort": ["sort", "--parallel=2", f"{d}/text"],
        "sqlite3": ["sqlite3", ":memory:", f".read {d}/query.sql"],
        "perl": ["perl", f"{d}/words.pl", f"{d}/text"],
        "python3": ["/usr/bin/python3", f"{d}/threads.py", f"{d}/middle"],
        "gcc": ["g++", "-O2", "-c", "-o", f"{d}/large.o", f"{d}/large.cc"],
        "openssl": ["openssl", "speed", "-multi", "2", "-seconds", "2", "sha256"],
        "stockfish": ["stockfish", "bench", "64", "2", "14"],
        "ffmpeg": ["ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i",
                   "testsrc2=size=640x360:rate=30:duration=12", "-c:v", "libx264", "-preset", "medium",
                   "-threads", "2", "-bitexact", "-f", "h264", "-"],
    }
    for name, argv in programs.items():
        if re.search(options.only, name):
            a.program(name, argv)
    if re.search(options.only, "redis"):
        a.program("redis", ["redis-server", "--port", str(redis), "--save", "", "--appendonly", "no"],
                  Load(redis, [["redis-benchmark", "-p", str(redis), "-c", "20", "-P", "4", "-l", "-q",
                                "-t", "set,get"]],
                       quiet("redis-cli", "-p", str(redis), "shutdown", "nosave"), life), 2)
    if re.search(options.only, "memcached"):
        server = ["memcached", "-p", str(memcached), "-t", "2", "-l", "127.0.0.1", "-U", "0"]
        here = os.path.dirname(os.path.abspath(__file__))
        client = ("import sys; sys.path.insert(0, sys.argv[1]); import table\n"
                  "while True: table.memcached_client(int(sys.argv[2]), 100000, int(sys.argv[3]), {})")
        a.program("memcached", server,
                  Load(memcached, [[sys.executable, "-c", client, here, str(memcached), str(n)]
                                   for n in range(3)],
                       lambda: stop_by_port(memcached), life), 2)
    a.summary()


def stop_by_port(port):
    """SIGTERM to whoever listens there; memcached has no better way to be ended."""
    shown = subprocess.run(["ss", "-Hltnp", f"sport = :{port}"], stdout=subprocess.PIPE, check=False).stdout
    for pid in re.findall(rb"pid=(\d+)", shown):
        os.kill(int(pid), signal.SIGTERM)


if __name__ == "__main__":
    main()
