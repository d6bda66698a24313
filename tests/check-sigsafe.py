#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What may the runtime call where the program can be at any instruction?

The machine code of the runtime's objects is read with objdump: which function leads to which,
by calls, jumps and addresses taken. From two sets of roots everything that can be reached must be
on a list:

  handlers   the signal handlers: what POSIX calls async-signal-safe, or touches only its arguments
  hooks      what patched code calls while the program's vector registers are live and unsaved:
             only what leaves these alone. Libc's string and memory functions use them.

A function that is reached only behind one of APART saves the vector registers first, or belongs to
the program, and is not followed.
"""
import os
import re
import subprocess
import sys
from collections import defaultdict

# The address of errno, and the like. No name of a call of the kernel's: another preloaded library may
# have put a function of its own in its place, which takes a lock.
PLAIN = {"__errno_location", "__stack_chk_fail", "__tls_get_addr"}
STRINGS = {"memmem", "strcmp", "strlen", "strnlen"}
ROOTS = {
    "handlers": (["handler", "tick", "on_trap", "count_trap"], PLAIN | STRINGS),
    "hooks": (["hook_enter", "hook_exit", "hook_meet", "hook_stamp", "hook_fine"], PLAIN),
}
APART = {"hook_meet_apart"}
FOLDERS = ("core", "binary/index", "sampler", "causal/runtime")


class Code:
    """Functions as (object, name), and what each leads to."""

    def __init__(self, build):
        self.edges, self.by_name, self.local = defaultdict(set), {}, set()
        self.at = defaultdict(dict)  # object -> address -> name
        self.data = set()
        for folder in FOLDERS:
            path = os.path.join(build, folder, ".libs")
            for name in sorted(os.listdir(path)) if os.path.isdir(path) else []:
                if name.startswith("libruntime_la-") and name.endswith(".o"):
                    self.symbols(os.path.join(path, name))
        for item in list(self.at):
            self.read(item)

    def symbols(self, item):
        nm = os.environ.get("NM", "nm").split()
        for line in run(nm + [item]):
            parts = line.split()
            if len(parts) != 3:
                continue
            if parts[1] in "TtWi":
                self.at[item].setdefault(int(parts[0], 16), parts[2])
                self.local.add((item, parts[2]))
            if parts[1] in "TWi":
                self.by_name[parts[2]] = (item, parts[2])
            elif parts[1] not in "tU":
                self.data.add(parts[2])

    def read(self, item):
        here = None
        for line in run(["objdump", "-dr", "--no-show-raw-insn", item]):
            head = re.match(r"[0-9a-f]+ <([^>]+)>:$", line)
            if head:
                here = (item, head.group(1))
                continue
            relocation = re.match(r"\s+[0-9a-f]+: R_\w+\s+(\S+)", line)
            if relocation:
                self.link(here, relocation.group(1))
                continue
            for name in re.findall(r"<([^>+]+)>", line):  # a call, jump or address in the same object
                if (item, name) in self.local and name != here[1]:
                    self.edges[here].add((item, name))

    def link(self, here, target):
        name, sign, offset = re.match(r"([^-+]+)(?:([-+])0x([0-9a-f]+))?$", target).groups()
        name = name.split("@")[0]
        if (here[0], name) in self.local:
            self.edges[here].add((here[0], name))
        elif name in self.by_name:
            self.edges[here].add(self.by_name[name])
        elif name.startswith(".text"):
            # relative to the end of the four bytes
            at = (int(offset, 16) if offset else 0) * (-1 if sign == "-" else 1) + 4
            if at in self.at[here[0]]:
                self.edges[here].add((here[0], self.at[here[0]][at]))
        elif not name.startswith(".") and name not in self.data:
            self.edges[here].add(("libc", name))

    def reach(self, roots):
        """Everything that the roots lead to, with how it was come to."""
        seen = {item: None for item in self.local if item[1] in roots}
        todo = list(seen)
        for item in todo:
            for target in () if item[1] in APART else self.edges[item]:
                if target not in seen:
                    seen[target] = item
                    todo.append(target)
        return seen


def run(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def way(seen, item):
    names = []
    while item:
        names.append(item[1])
        item = seen[item]
    return " <- ".join(names)


# Before main, or after a failure that a filter does not make.
EARLY = {"arch_prctl", "unlink"}


def calls_unknown_to_seccomp(source):
    """System calls of the runtime that no filter of the program's is asked about."""
    made = set()
    for folder in FOLDERS:
        for name in os.listdir(os.path.join(source, folder)):
            if name.endswith((".c", ".h")) and name not in ("seccomp.c", "wrap_raw.c"):
                with open(os.path.join(source, folder, name), encoding="utf-8") as text:
                    made |= set(re.findall(r"ca_sys\(SYS_(\w+)", text.read()))
    with open(os.path.join(source, "causal/runtime/seccomp.c"), encoding="utf-8") as text:
        known = set(re.findall(r"\{ SYS_(\w+)", text.read()))
    return sorted(made - known - EARLY)


def main():
    unknown = calls_unknown_to_seccomp(os.environ.get("CA_TOP_SRCDIR", "."))
    for call in unknown:
        print(f"the runtime calls {call}, which causal/runtime/seccomp.c does not ask filters about")
    code = Code(os.environ.get("CA_TOP_BUILDDIR", "."))
    failed = 1 if unknown else 0
    for what, (roots, allowed) in ROOTS.items():
        names = {item[1] for item in code.local}
        missing = [root for root in roots if root not in names]
        seen = code.reach(roots)
        own = [item for item in seen if item[0] != "libc"]
        calls = sorted(item for item in seen if item[0] == "libc")
        # what has to be seen, or this would prove nothing
        expected = {"hook_exit": "ca_ledger_accrue", "handler": "ca_ring_push"}
        for root, target in expected.items():
            if root in roots and target not in {item[1] for item in own}:
                missing.append(f"{target} from {root}")
        if missing:
            print(f"{what}: not found: {', '.join(missing)}")
            failed = 99
        for item in calls:
            if item[1] not in allowed:
                print(f"{what} must not call {way(seen, item)}")
                failed = failed or 1
        print(f"{what}: {len(own)} functions of ours, {len(calls)} of libc")
    return failed


if __name__ == "__main__":
    sys.exit(main())
