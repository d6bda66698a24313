#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`causal merge` and `causal verify`: runs of one program go together, those of two do not; and what was
predicted is held against what a program really does."""
import glob
import json
import os
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checks import TOP, causal, check, status  # noqa: E402
from fixture import region, write_run  # noqa: E402


def check_merge(scratch):
    def make(name, runs, build_id="aa", binary="/usr/bin/app", **more):
        for run in runs:
            write_run(os.path.join(scratch, name), run, [region("parse"), region("other")], experiments=20,
                      effects={"parse": 40}, build_ids=[(binary, build_id)] if build_id else (),
                      seed=name, **more)

    make("a", [1, 3])
    make("b", [1])
    make("rebuilt", [1], "bb")
    make("unknown", [1], None)
    causal("merge", "a", "b", "-o", "both", cwd=scratch)
    files = sorted(os.path.basename(path) for path in glob.glob(os.path.join(scratch, "both", "*")))
    check(files == ["profile.coz", "profile.json", "run-0001.jsonl", "run-0002.jsonl", "run-0003.jsonl"],
          f"merged: {files}")
    with open(os.path.join(scratch, "both", "profile.json"), encoding="utf-8") as file:
        profile = json.load(file)
    check(profile["funnel"]["runs"] == 3 and profile["funnel"]["experiments_kept"] == 60, "merged: funnel")
    with open(os.path.join(scratch, "both", "run-0003.jsonl"), encoding="utf-8") as file:
        check(json.loads(file.readline())["run"] == 3, "merged: the number of a run")
    said = causal("merge", "a", "rebuilt", "-o", "no", cwd=scratch, expect=2).stderr
    check("/usr/bin/app" in said and not os.path.exists(os.path.join(scratch, "no")), f"two builds: {said}")
    make("other", [1], "cc", "/usr/bin/other")
    said = causal("merge", "a", "other", "-o", "no", cwd=scratch, expect=2).stderr
    check("/usr/bin/app in a" in said and "/usr/bin/other in other" in said, f"two programs: {said}")
    make("elsewhere", [1], "aa", "/opt/app-1.2")
    causal("merge", "a", "elsewhere", "-o", "moved", cwd=scratch)
    check("no build-ids" in causal("merge", "a", "unknown", "-o", "perhaps", cwd=scratch).stderr,
          "no build-ids")
    said = causal("merge", "a", "both", "-o", "again", cwd=scratch).stderr
    check("2 of the 3 runs in both are the same" in said and "3 runs in again" in said, f"partly the same: {said}")
    said = causal("merge", "a", "b", "a", "a", "-o", "once", cwd=scratch).stderr
    check("3 runs in once" in said, f"given three times: {said}")
    said = causal("merge", "b", "b", "-o", "no", cwd=scratch, expect=2).stderr
    check("nothing to add" in said and not os.path.exists(os.path.join(scratch, "no")), f"nothing new: {said}")
    causal("merge", "a", "-o", "both", cwd=scratch, expect=2)
    causal("merge", "a", "nothing", "-o", "x", cwd=scratch, expect=2)
    causal("merge", "a", "b", cwd=scratch, expect=2)


def check_verify(scratch):
    path = os.path.join(scratch, "program")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho out; read -r x && exit 9; sleep \"$1\"\n")
    os.chmod(path, stat.S_IRWXU)
    for run in (1, 2):
        write_run(os.path.join(scratch, "v"), run, [region("parse"), region("parser"), region("f(int)")],
                  experiments=120, effects={"parse": 40, "parser": 0}, command=("./program", "0.3"))

    def verify(name, percent, seconds, **more):
        return causal("verify", "v", "--region", name, "--speedup", str(percent), "-n", "3", "--",
                      "./program", str(seconds), cwd=scratch, **more).stderr

    # 40 % at most: 20 % at 50 %. A sleep is exact but for the load of the machine.
    for _ in range(3):
        said = causal("verify", "v", "--region", "parse", "--speedup", "50", "-n", "3", "--", "./program",
                      "0.24", cwd=scratch, expect=None).stderr
        if "  as predicted" in said:
            break
    check("  as predicted" in said and "parse, 50 % less" in said, f"as predicted: {said}")
    for _ in range(3):
        said = verify("parse", 50, 0.9, expect=None)
        if "not as predicted" in said:
            break
    check("not as predicted" in said, f"not as predicted: {said}")
    check("'pars' is not the name" in verify("pars", 50, 0, expect=2), "two names match")
    for run in (1, 2):
        write_run(os.path.join(scratch, "points"), run, [region("parse"), region("other")], units=500)
    said = causal("verify", "points", "--region", "none", "--speedup", "50", "--", "./program", cwd=scratch,
                  expect=2).stderr
    check(said.count("  parse") == 1 and said.count("  other") == 1, f"two points, each region once: {said}")
    check("is not the name" in verify("(a{99}){9}{99}", 50, 0, expect=2), "what would not end")
    verify("parse", 200, 0, expect=2)
    causal("verify", "v", "--region", "parse", "--speedup", "50", cwd=scratch, expect=2)
    causal("verify", "v", "--region", "^f", "--speedup", "50", "-n", "2", "--", "./none", cwd=scratch, expect=1)
    causal("verify", "v", "--region", "^f", "--speedup", "50", "-n", "2", "--", "false", cwd=scratch, expect=1)


SERVER = """
#include <causal.h>
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) void serve(long us)
{
	struct timespec t = { 0, us * 1000 };
	nanosleep(&t, NULL);
}
int main(int argc, char **argv)
{
	for (;;) {
		serve(atol(argv[1]));
		CAUSAL_PROGRESS_NAMED("request");
	}
}
"""


def check_verify_server(scratch):
    """A server does not end: what counts is how often it passes the progress point."""
    with open(os.path.join(scratch, "server.c"), "w", encoding="utf-8") as file:
        file.write(SERVER)
    subprocess.run([*os.environ.get("CC", "cc").split(), "-g", "-O1", "-I" + os.path.join(TOP, "include"),
                    "-o", "server", "server.c"], cwd=scratch, check=True)
    for run in (1, 2):
        write_run(os.path.join(scratch, "s"), run, [region("serve"), region("log")], experiments=120,
                  effects={"serve": 40}, command=("./server", "10000"))

    def verify(microseconds, expect=None):
        return causal("verify", "s", "--region", "serve", "--speedup", "50", "-n", "2", "-d", "1", "--",
                      "./server", str(microseconds), cwd=scratch, expect=expect).stderr

    for _ in range(3):
        said = verify(8000)
        if "  as predicted" in said:
            break
    check("  as predicted" in said and "2 times 1 s each" in said, f"a server, as predicted: {said}")
    for _ in range(3):
        said = verify(16000)
        if "not as predicted" in said:
            break
    check("not as predicted" in said, f"a server, not as predicted: {said}")
    check("verify-old" in "".join(os.listdir(os.path.join(scratch, "s"))), "its runs are kept")
    said = causal("verify", "s", "--region", "serve", "--speedup", "50", "-n", "2", "-d", "1", "--", "sleep", "9",
                  cwd=scratch, expect=1).stderr
    check("was not passed in both" in said, f"no visits: {said}")
    causal("verify", "s", "--region", "serve", "--speedup", "50", "-d", "1", "--", "./nothing", cwd=scratch, expect=1)
    causal("verify", "s", "--region", "serve", "--speedup", "50", "-d", "0", "--", "./server", cwd=scratch, expect=2)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        check_merge(scratch)
        check_verify(scratch)
        if os.environ.get("CA_SANITIZER"):
            print("SKIP: the runtime does not go with " + os.environ["CA_SANITIZER"])
        else:
            check_verify_server(scratch)
    return status()


if __name__ == "__main__":
    sys.exit(main())
