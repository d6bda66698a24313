#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs as Debian installs them, under causal: the table of doc/REAL-PROGRAMS.md.

Each program runs alone and under `causal -s 0` in turns (overhead), then under a short sweep as a
user would start it. Output and exit status have to be the same each time. Servers are loaded by a
client and stopped by SIGTERM. Not a test: it takes a quarter of an hour and needs packages that no
test needs; tests/integration/rt_real.sh is the short version.

    table.py --causal BUILD/driver/causal [--out DIR] [--only REGEX] [--turns 5] [--runs 3]
"""
import argparse
import glob
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

PYTHON_THREADS = """
import hashlib, queue, sys, threading, zlib
data = open(sys.argv[1], 'rb').read()
blocks = [data[i:i + 65536] for i in range(0, len(data), 65536)]
full, done = queue.Queue(8), []
def pack():
    for block in blocks:
        full.put(zlib.compress(block, 2))
    full.put(None)
def digest():
    while (packed := full.get()) is not None:
        done.append(hashlib.sha256(packed).hexdigest())
threads = [threading.Thread(target=pack), threading.Thread(target=digest)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(done), hashlib.sha256(''.join(done).encode()).hexdigest())
"""
QUERY = """
create table t as with recursive n(i) as (select 1 union all select i + 1 from n where i < 250000)
  select i, (i * 7919) % 10007 as a, printf('%08d text %d', i * 31 % 65537, i) as b from n;
create index ta on t(a);
select count(*), sum(length(b)) from t where b like '%77%';
select x.a, count(*), max(y.b) from t x join t y on x.a = y.a and y.i < 4000 group by x.a
  order by 2 desc, 1 limit 5;
select a, group_concat(b, '/') from (select a, b from t order by b desc limit 40000)
  group by a order by a limit 3;
"""
JAVA = """
public class Main {
  static long sum;
  public static void main(String[] args) throws Exception {
    Thread[] threads = new Thread[2];
    for (int i = 0; i < 2; i++) {
      final int n = i;
      threads[i] = new Thread(() -> {
        long s = 0;
        for (long k = 0; k < 1500000000L; k++) s += k % (n + 3) ^ s >> 3;
        synchronized (Main.class) { sum += s; }
      });
      threads[i].start();
    }
    for (Thread t : threads) t.join();
    System.out.println(sum);
  }
}
"""
GO = """
package main
import ("fmt"; "sync")
func work(n int) (s uint64) {
	for k := uint64(0); k < 400000000; k++ { s += k % uint64(n + 3) ^ s >> 3 }
	return
}
func main() {
	var group sync.WaitGroup
	var sums [4]uint64
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func(i int) { sums[i] = work(i); group.Done() }(i)
	}
	group.Wait()
	fmt.Println(sums)
}
"""


def run(argv, out, limit=300, env=None, err=None):
    """Exit status and seconds; standard output goes to the file `out`. What takes longer than the limit is killed: wait
    with a timeout would look each 50 ms, which is 5 % of a run of 1 s."""
    with open(out, "wb") as file:
        errors = open(err, "wb") if err else subprocess.DEVNULL
        start = time.monotonic()
        process = subprocess.Popen(argv, stdout=file, stderr=errors, stdin=subprocess.DEVNULL, env=env)
        killer = threading.Timer(limit, process.kill)
        killer.start()
        status = process.wait()
        seconds = time.monotonic() - start
        killer.cancel()
        return status, seconds


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Others:
    """What others take of the machine from now on; children count as ours once they were waited for."""
    def __init__(self):
        self.start = self.now()

    @staticmethod
    def now():
        with open("/proc/stat", encoding="ascii") as file:
            field = [int(x) for x in file.readline().split()[1:9]]
        mine = resource.getrusage(resource.RUSAGE_SELF)
        busy = (sum(field[:3]) + sum(field[5:])) / os.sysconf("SC_CLK_TCK")
        return time.monotonic(), busy, mine.ru_utime + mine.ru_stime + cpu_of_children()

    def percent(self):
        wall, busy, own = (b - a for a, b in zip(self.start, self.now()))
        return max(0.0, 100 * (busy - own) / (wall * os.cpu_count()))


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def profile_of(directory):
    with open(os.path.join(directory, "profile.json"), encoding="utf-8") as file:
        return json.load(file)


def end_records(directory):
    for name in sorted(glob.glob(os.path.join(directory, "run-*.jsonl"))):
        with open(name, encoding="utf-8") as file:
            for line in file:
                record = json.loads(line)
                if record["type"] == "end":
                    yield record


def rows(profile, count=5):
    """The top rows: name, point, effects by speedup, verdict."""
    result = []
    for region in profile["regions"]:
        for point in region["progress"][:1]:
            curve = [f"{c['speedup']:g} %: {c['effect']:.1f}" +
                     (f" ±{(c['high'] - c['low']) / 2:.1f}" if c["high"] is not None else "")
                     for c in point["curve"] if c["speedup"]]
            result.append(f"{region['name']} ({os.path.basename(region['binary'])}) "
                          f"[{point['point']}] {', '.join(curve)}; {region['verdict']}")
    return result[:count]


class Bench:
    def __init__(self, options):
        self.options = options
        self.dir = os.path.abspath(options.out)
        self.failures = 0

    def causal(self, extra, argv, name):
        results = os.path.join(self.dir, name)
        return [self.options.causal, "-o", results, *extra, "--", *argv]

    def bad(self, text):
        self.failures += 1
        print(f"BAD: {text}", flush=True)

    def compare(self, name, what, expected, status, out, err):
        if (status, digest(out)) != expected:
            self.bad(f"{name}, {what}: status {status} (alone {expected[0]}), "
                     f"output {'same' if digest(out) == expected[1] else 'DIFFERENT'}")
            with open(err, errors="replace", encoding="utf-8") as file:
                sys.stdout.write("".join("  " + line for line in file.readlines()[-8:]))
            return False
        return True

    def program(self, name, argv, extra, end_to_end=False, speedups="0,25,50"):
        """One row of the table."""
        out, err = os.path.join(self.dir, "out"), os.path.join(self.dir, name + ".err")
        expected = (run(argv, os.path.join(self.dir, "alone"))[0], digest(os.path.join(self.dir, "alone")))
        same = True
        alone, under, whole, cpu_alone, cpu_under = [], [], [], [], []
        results = os.path.join(self.dir, name + ".0")
        shutil.rmtree(results, ignore_errors=True)
        for turn in range(self.options.turns + 1):
            before = cpu_of_children()
            seconds = run(argv, out)[1]
            used = cpu_of_children() - before
            status, total = run(self.causal([*extra, "-s", "0"], argv, name + ".0"), out, err=err)
            same &= self.compare(name, "-s 0", expected, status, out, err)
            if turn:  # the first one fills the caches, and chooses the progress point
                alone.append(seconds)
                whole.append(total)
                cpu_alone.append(used)
                record = list(end_records(results))[-1]
                under.append(record["runtime"] / 1e9)
                cpu_under.append(record["cpu_ns"] / 1e9)
        results = os.path.join(self.dir, name)
        shutil.rmtree(results, ignore_errors=True)
        variants = len(speedups.split(",")) if end_to_end else 1
        status, _ = run(self.causal([*extra, "-s", speedups, "-n", str(self.options.runs), "--keep-going"],
                                    argv, name), out, err=err, limit=900)
        with open(os.path.join(self.dir, "alone"), "rb") as file:  # each run wrote it again
            all_runs = hashlib.sha256(file.read() * self.options.runs * variants).hexdigest()
        same &= self.compare(name, "the sweep", (expected[0], all_runs), status, out, err)
        return self.tell(name, self.causal(extra + ["-s", speedups, "-n", str(self.options.runs)],
                                           argv, name), same, (alone, under), whole, err, (cpu_alone, cpu_under))

    def tell(self, name, command, same, walls, whole, err, cpus=None):
        """Times: (alone, under causal at 0 %); whole: with the driver's own."""
        def percent(pair):
            if not pair or not pair[0] or not pair[1]:
                return None
            return round(100 * (statistics.median(pair[1]) / statistics.median(pair[0]) - 1), 1)

        results = os.path.join(self.dir, name)
        row = {"name": name, "command": " ".join(command), "same": same, "wall": percent(walls),
               "cpu": percent(cpus), "whole": percent((walls[0], whole)), "seconds": walls,
               "rows": rows(profile_of(results)), "runs": sum(1 for _ in end_records(results))}
        with open(err, errors="replace", encoding="utf-8") as file:
            row["messages"] = [line.rstrip() for line in file.read().replace("\r", "\n").split("\n")
                               if line and not re.match(r"\x1b\[K|causal: run \d", line)]
        print(f"{name}: same {same}; overhead: wall {row['wall']} %, CPU {row['cpu']} %, with the driver "
              f"{row['whole']} %, of {statistics.median(walls[0]) if walls[0] else 0:.2f} s")
        for line in row["rows"] + [m for m in row["messages"] if "point" in m or not row["rows"]]:
            print("   ", line)
        sys.stdout.flush()
        with open(os.path.join(self.dir, "table.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        return row

    def serve(self, argv, port, load, under):
        """Start, load, SIGTERM. Returns status, seconds of the load, what the load answered."""
        out, err = os.path.join(self.dir, "out"), os.path.join(self.dir, "server.err")
        with open(out, "wb") as file, open(err, "wb") as errors:
            server = subprocess.Popen(under + argv, stdout=file, stderr=errors)
            for _ in range(400):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.02)
            start = time.monotonic()
            answer = load()
            seconds = time.monotonic() - start
            server.send_signal(signal.SIGTERM)
            try:
                status = server.wait(20)
            except subprocess.TimeoutExpired:
                self.bad(f"{argv[0]} does not end")
                server.kill()
                status = server.wait()
        return status, seconds, answer

    def server(self, name, argv, port, load, extra, speedups="0,25,50"):
        alone, under, same, expected = [], [], True, None
        err = os.path.join(self.dir, "server.err")
        command = self.causal([*extra, "-s", speedups], [], name)
        for turn in range(self.options.turns + 1):
            status, seconds, answer = self.serve(argv, port, load, [])
            expected = expected or (status, answer)
            if not turn:
                shutil.rmtree(os.path.join(self.dir, name + ".0"), ignore_errors=True)
            status, loaded, answer = self.serve(argv, port, load,
                                                self.causal([*extra, "-s", "0"], [], name + ".0"))
            if turn:
                alone.append(seconds)
                under.append(loaded)
            if answer != expected[1] or (status != expected[0] and status != -signal.SIGTERM):
                same = False
                self.bad(f"{name}: status {status} (alone {expected[0]}), answers "
                         f"{'same' if answer == expected[1] else 'DIFFERENT'}")
        results = os.path.join(self.dir, name)
        shutil.rmtree(results, ignore_errors=True)
        for _ in range(self.options.runs):
            status, seconds, answer = self.serve(argv, port, load, command)
            same &= answer == expected[1]
        return self.tell(name, command + argv, same, (alone, under), under, err)


def redis_load(port, count):
    def load():
        for test in ("set", "lrange_100"):
            subprocess.run(["redis-benchmark", "-p", str(port), "-q", "-n", str(count), "-c", "20",
                            "-t", test], check=True, stdout=subprocess.DEVNULL)
        return subprocess.run(["redis-cli", "-p", str(port), "llen", "mylist"], check=True,
                              stdout=subprocess.PIPE).stdout
    return load


def memcached_client(port, rounds, number, answers):
    link = socket.create_connection(("127.0.0.1", port))
    stream = link.makefile("rwb")
    digest_of = hashlib.sha256()
    for i in range(rounds):
        value = (b"%d/%d " % (number, i)) * 40
        keys = [b"k%d_%d" % (number, (i * 7 + j) % 500) for j in range(20)]
        stream.write(b"set %s 0 0 %d\r\n%s\r\n" % (keys[0], len(value), value))
        stream.write(b"get " + b" ".join(keys) + b"\r\n")
        stream.flush()
        digest_of.update(stream.readline())
        while (line := stream.readline()) != b"END\r\n":
            digest_of.update(line)
    answers[number] = digest_of.hexdigest()


def memcached_load(port, rounds):
    def load():
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import table; a = {}; "
                "table.memcached_client(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), a); print(a)")
        here = os.path.dirname(os.path.abspath(__file__))
        clients = [subprocess.Popen([sys.executable, "-c", code, here, str(port), str(rounds), str(n)],
                                    stdout=subprocess.PIPE) for n in range(3)]
        return b"".join(sorted(c.communicate()[0] for c in clients))
    return load


def make_input(path, size):
    """The same bytes each time: what is in the libraries of this machine."""
    with open(path, "wb") as file:
        for name in sorted(glob.glob("/usr/lib/x86_64-linux-gnu/lib*.so.*")):
            if file.tell() >= size:
                break
            if os.path.isfile(name) and not os.path.islink(name):
                with open(name, "rb") as source:
                    file.write(source.read(size - file.tell()))


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def static_pie(work):
    write(f"{work}/small.c", "#include <stdio.h>\nint main(void) { unsigned long s = 0; for (unsigned "
          "long i = 0; i < 300000000; i++) s += i ^ s >> 3; printf(\"%lu\\n\", s); return 3; }\n")
    subprocess.run(["gcc", "-O2", "-static-pie", "-o", f"{work}/static-pie", f"{work}/small.c"], check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--causal", required=True)
    parser.add_argument("--out", default="real-out")
    parser.add_argument("--only", default="")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    options.causal = os.path.abspath(options.causal)
    os.makedirs(options.out, exist_ok=True)
    bench = Bench(options)
    work = bench.dir
    big, small = f"{work}/input", f"{work}/small"
    for path, size in ((big, 128 << 20), (small, 48 << 20)):
        if not os.path.exists(path):
            make_input(path, size)
    write(f"{work}/threads.py", PYTHON_THREADS)
    write(f"{work}/query.sql", QUERY)
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

    def pigz():
        bench.program("pigz", ["pigz", "-c", "-p2", big], ["-B", "MAIN;libz"])

    def xz():
        bench.program("xz", ["xz", "-c", "-T2", "-2", "--block-size=1MiB", small], ["-B", "liblzma"])

    def zstd():
        bench.program("zstd", ["zstd", "-c", "-T2", "-9", big], [])

    def pbzip2():
        bench.program("pbzip2", ["pbzip2", "-c", "-p2", small], ["-B", "MAIN;libbz2"])

    def sqlite3():
        bench.program("sqlite3", ["sqlite3", ":memory:", f".read {work}/query.sql"], ["-B", "libsqlite3", "-e"],
                      True)

    def ffmpeg():
        bench.program("ffmpeg", ["ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i",
                                 "testsrc2=size=640x360:rate=30:duration=12", "-c:v", "libx264", "-preset",
                                 "medium", "-threads", "2", "-bitexact", "-f", "h264", "-"],
                      ["-B", "libx264", "-P", "libx264.so!x264_encoder_encode"])

    def python3():
        bench.program("python3", ["/usr/bin/python3", f"{work}/threads.py", big],
                      ["-B", "MAIN;libz;libcrypto", "-P", "libcrypto.so!EVP_DigestFinal_ex"])

    def java():
        write(f"{work}/Main.java", JAVA)
        subprocess.run(["javac", "Main.java"], cwd=work, check=True)
        bench.program("java", ["java", "-cp", work, "Main"], [])

    def go():
        write(f"{work}/main.go", GO)
        subprocess.run(["go", "build", "-o", "gowork", "main.go"], cwd=work, check=True,
                       env={**os.environ, "HOME": work, "GOFLAGS": "-mod=mod", "GO111MODULE": "off"})
        bench.program("go", [f"{work}/gowork"], [])

    def lto():
        sources = [f"{top}/tests/real/pipeline.c"]
        subprocess.run(["gcc", "-O3", "-flto", "-pthread", f"-I{top}", f"-I{top}/include", "-o", f"{work}/pipeline", *sources], check=True)
        subprocess.run(["strip", f"{work}/pipeline"], check=True)
        bench.program("lto", [f"{work}/pipeline", "6000"], [])

    def pie():
        static_pie(work)
        bench.program("pie", [f"{work}/static-pie"], [])

    def redis():
        bench.server("redis", ["redis-server", "--port", "7379", "--save", "", "--appendonly", "no"], 7379,
                     redis_load(7379, 40000), [])

    def memcached():
        bench.server("memcached", ["memcached", "-u", "nobody", "-p", "7211", "-t", "2", "-l", "127.0.0.1"], 7211,
                     memcached_load(7211, 25000), [])

    for row in (pigz, xz, zstd, pbzip2, sqlite3, ffmpeg, python3, redis, memcached, java, go, lto, pie):
        if re.search(options.only, row.__name__):
            row()
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
