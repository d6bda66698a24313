#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`causal convert`: a trace of the binary sink for other sinks; what is torn is left out and told, what is
malformed is refused with its offset."""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from script import BARE, EVENTS, FLAT, check, feed
from checks import CAUSAL, causal, status

HEADER, EVENT = 64, 24


def printed(*words, expect=0):
    """The lines that the print sink makes of it, and what was said besides."""
    done = causal("convert", *words, "--sinks", "print=printed", expect=expect, cwd=words[0] + "/..")
    with open(words[0] + "/../printed", encoding="utf-8", errors="replace") as file:
        return file.read().splitlines(), done.stderr


def change(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def refused(folder, text):
    """One line, exit status 2."""
    done = causal("convert", folder, "--sinks", "print=/dev/null", expect=2)
    check(text in done.stderr and done.stderr.count("\n") == 1, f"expected '{text}', got {done.stderr}")


def check_whole(scratch):
    """Nothing is lost on the way, and it comes in the order of time."""
    feed(f"print={scratch}/straight,binary={scratch}/b", "script")
    lines, said = printed(f"{scratch}/b")
    with open(f"{scratch}/straight", encoding="utf-8", errors="replace") as file:
        straight = file.read().splitlines()
    check(sorted(lines) == sorted(straight) and len(lines) == EVENTS, f"{lines} are not {straight}")
    times = [line.split()[0] for line in lines]
    check(times == sorted(times) and not said, f"{times} {said}")
    # keys are known by their names: another build may number them otherwise
    with open(f"{scratch}/b/names", encoding="utf-8", errors="surrogateescape") as file:
        names = file.read()
    lines = names.splitlines(keepends=True)
    work = next(line for line in lines if "\twork\t" in line)
    number = work.split("\t")[1]
    moved = names.replace(f"key\t{number}\t", "key\t700\t").replace(f"value\t{number}\t", "value\t700\t")
    with open(f"{scratch}/b/names", "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(moved)
    path = f"{scratch}/b/thread-1-1.bin"
    with open(path, "rb") as file:
        data = bytearray(file.read())
    for at in range(HEADER, len(data), EVENT):
        if struct.unpack_from("<I", data, at + 12)[0] == int(number):
            struct.pack_into("<I", data, at + 12, 700)
    with open(path, "wb") as file:
        file.write(data)
    lines, _ = printed(f"{scratch}/b")
    check(sum('burst-begin work 5 "five "5""' in line for line in lines) == 1, f"{lines}")


def check_chosen(scratch):
    """Keys by --events."""
    feed(f"binary={scratch}/b", "script")
    lines, _ = printed(f"{scratch}/b", "--events", "user,-task,+hit")
    keys = {line.split()[3] for line in lines}
    check(keys == {"work", "step", "hit", "key-4000"}, f"{keys}")
    done = causal("convert", f"{scratch}/b", "--events", "+nonsense", expect=2)
    check("begins with 'nonsense'; there are: sample, " in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    done = causal("convert", f"{scratch}/b", "--node-size", "nonsense", expect=2)
    check("choose from: constant, " in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    done = causal("convert", f"{scratch}/b", "--events", "nonsense", expect=2)
    check("user, developer" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    done = causal("convert", f"{scratch}/b", "--sinks", "print,nonsense", expect=2)
    check("'nonsense'; choose from: print, " in done.stderr and done.stderr.count("\n") == 1, done.stderr)


def check_torn(scratch):
    """Cut off at any place, it is read up to there, and what is missing is counted."""
    feed(f"binary={scratch}/b", "script")
    path = f"{scratch}/b/thread-1-1.bin"
    whole, _ = printed(f"{scratch}/b")
    with open(path, "rb") as file:
        data = file.read()
    events = (len(data) - HEADER) // EVENT
    check(struct.unpack_from("<Q", data, 24)[0] == events, "the header counts them")
    for size in [*range(HEADER + 2 * EVENT), len(data) - EVENT - 1, len(data) - 1]:
        os.truncate(path, size)
        lines, said = printed(f"{scratch}/b")
        left = max(0, (size - HEADER) // EVENT)
        check(len(lines) == len(whole) - events + left, f"{size} bytes: {len(lines)} lines")
        text = "1 files have no whole header"
        if size >= HEADER:
            text = f"thread-1-1.bin ends too early: {events - left} events and the {(size - HEADER) % EVENT} bytes"
        check(text in said, f"{size}: {said}")
        with open(path, "wb") as file:
            file.write(data)
    # the disk was full, or the writer killed, when the header was due
    change(path, 0, bytes(HEADER))
    lines, said = printed(f"{scratch}/b")
    check(len(lines) == len(whole) - events and "1 files have no whole header" in said, f"no header: {said}")
    change(path, 0, data)
    # without names keys are numbers, but those of causal itself
    os.unlink(f"{scratch}/b/names")
    lines, said = printed(f"{scratch}/b")
    check(len(lines) == EVENTS and "has no names" in said, f"{len(lines)} lines: {said}")
    check(any(" point hit 1000" in line for line in lines), f"{lines}")


def check_malformed(scratch):
    feed(f"binary={scratch}/b", "script")
    path = f"{scratch}/b/thread-1-1.bin"
    with open(path, "rb") as file:
        data = file.read()
    for offset, what, text in [(0, b"X", "this is no file"), (8, b"\2", "another version"), (12, b"\1\2\3\4", "order"),
                               (16, b"\1", "headers have"), (20, b"\x20", "events have"),
                               (HEADER + 3 * EVENT, b"\0\0\0\0", "earlier than the one before")]:
        change(path, offset, what)
        refused(f"{scratch}/b", f"thread-1-1.bin: offset {offset}: ")
        refused(f"{scratch}/b", text)
        change(path, 0, data)
    shutil.copy(path, f"{scratch}/b/thread-1-9.bin")
    refused(f"{scratch}/b", "thread-1-9.bin: offset 44: another file is of the same thread")
    os.unlink(f"{scratch}/b/thread-1-9.bin")
    with open(f"{scratch}/b/names", "rb") as file:
        names = file.read()
    with open(f"{scratch}/b/names", "ab") as file:
        file.write(b"nonsense\t1\t2\n")
    refused(f"{scratch}/b", f"names: offset {len(names)}: ")
    # a last line without its end is one that was being written
    change(f"{scratch}/b/names", 0, names + b"key\t3")
    os.truncate(f"{scratch}/b/names", len(names) + 5)
    check(len(printed(f"{scratch}/b")[0]) == EVENTS, "a torn name")
    refused(f"{scratch}/nothing", "cannot read the folder")
    refused(scratch, "holds no trace")
    causal("convert", expect=2)
    causal("convert", f"{scratch}/b", "--nonsense", expect=2)


def check_folder(scratch):
    """A trace is not overwritten while it is read, and an old one does not mix with a new one."""
    feed(f"binary={scratch}/b", "many", "100000")
    done = causal("convert", f"{scratch}/b", "--sinks", f"binary={scratch}/b", expect=2)
    check("cannot write the folder" in done.stderr, done.stderr)
    feed(f"binary={scratch}/b", "one")
    check(sorted(os.listdir(f"{scratch}/b")) == ["names", "thread-1-1.bin"], f"{os.listdir(f'{scratch}/b')}")
    _, _, said = feed("binary=/dev/null", "one", expect=2)
    check("cannot write the folder /dev/null" in said, said)


def check_back(scratch):
    """A thread whose time goes back, which is none of ours, can be read all the same, and it is said."""
    for name in ("binary", "paraver"):
        said = feed(f"{name}={scratch}/{name}.prv", "back", expect=3)[2]
        check("1 events in" in said and said.count("\n") == 1, said)
    lines, _ = printed(f"{scratch}/binary.prv")
    check([line.split()[0][-4:] for line in lines] == ["1000", "1000", "1100"], f"{lines}")
    with open(f"{scratch}/paraver.prv", encoding="utf-8") as file:
        check(len(file.readlines()) == 3, "paraver: two moments")


def memory(folder):
    """KiB that `causal convert` of it takes at most."""
    run = "import resource, subprocess, sys; print(subprocess.run(sys.argv[1:]).returncode," \
          " resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", run, CAUSAL, "convert", folder, "--sinks",
                           "print=/dev/null,json=/dev/null"], capture_output=True, text=True, check=False, env=BARE)
    check(re.fullmatch(r"0 \d+\n", done.stdout), f"convert {folder}: {done.stdout} {done.stderr}")
    return int(done.stdout.split()[1])


def check_size(scratch):
    """A million events there and back, in no more memory than a thousand; and a full disk."""
    feed(f"binary={scratch}/few", "many", "1000")
    events, grown, _ = feed(f"binary={scratch}/b", "many", "1000000")
    check(grown < FLAT, f"memory grew by {grown} KiB for {events} events")
    few, many = memory(f"{scratch}/few"), memory(f"{scratch}/b")
    check(many < few + FLAT, f"convert uses {few} KiB for few events, {many} KiB for many")
    _, _, said = feed(f"binary={scratch}/c", "many", "100000", expect=3, limit=200)
    lines, _ = printed(f"{scratch}/c")
    check(f"{100000 - len(lines)} events are missing" in said and len(lines) > 20000, f"{len(lines)}: {said}")


def main():
    for one in (check_whole, check_chosen, check_torn, check_malformed, check_folder, check_back, check_size):
        with tempfile.TemporaryDirectory() as scratch:
            one(scratch)
    return status()


if __name__ == "__main__":
    sys.exit(main())
