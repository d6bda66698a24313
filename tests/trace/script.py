# SPDX-License-Identifier: MIT
"""What tests of sinks share: runs of tests/trace/feed, and what its script holds.

Process 1 (pid 100) has the threads 1 (tid 100, "main") and 2 (tid 101, with a name that is no UTF-8), process
2 (pid 200) has thread 3; the conductor raises one experiment. In the script: states of all three, a burst
"work" twice inside itself and crossed with "step", one end without a beginning (work, thread 2) and two
beginnings without an end (wait and state, thread 2), a message from thread 1 to 2 and one of which only the
end is there, two points at one time, a counter, a sub-state, an unknown kind, the processor of thread 1.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checks import BUILD, check  # noqa: E402

EVENTS = 36
FEED = os.path.join(BUILD, "tests", "trace", "feed")
STEP = 'step "one" \u03b1'
PROCESS = 'a "quoted" n\u00e4me\\'
FLAT = 3000  # KiB that a million events may cost
# for what measures memory: without what AddressSanitizer keeps back
BARE = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0")


def feed(spec, *words, expect=0, limit=None):
    """Runs it; (events, KiB, what it said)."""
    command = [FEED, spec, *words]
    if limit:
        command = ["bash", "-c", f'ulimit -f {limit}; exec "$@"', "-", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace", env=BARE)
    check(expect in (None, done.returncode), f"feed {spec} {words}: {done.returncode}: {done.stderr}")
    found = re.match(r"(\d+) events, (-?\d+) KiB", done.stdout)
    return (int(found[1]), int(found[2]), done.stderr) if found else (0, 0, done.stderr)


def feed_file(name, *words, limit=None, expect=0, ending=""):
    """The bytes that this sink writes, and what feed said."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "out" + ending)
        said = feed(f"{name}={path}", *words, expect=expect, limit=limit)
        with open(path, "rb") as file:
            return file.read(), said


def check_flat(name):
    """A million events, and no more memory than for the first tenth."""
    events, grown, _ = feed(f"{name}=/dev/null", "many", "1000000")
    check(events == 1000000 and grown < FLAT, f"{name}: memory grew by {grown} KiB for {events} events")


def check_full(name):
    """A full disk is told."""
    _, _, said = feed(f"{name}=/dev/full", "script", expect=3)
    check("No space left" in said and f"{EVENTS} events are missing" in said, f"{name}: {said}")
