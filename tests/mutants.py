#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Would the tests notice?  Changes one place of the source at a time and runs the tests.

The tree is copied, built once, and then, for each mutant, changed in one place, built again and
tested: by the folder's unit tests whose program has changed, then by the scripts that go with the
folder, the quickest first, until one fails. A script that fails is run again: only two failures count.

Mutants are drawn by a hash of what they change, so that a tree that has changed elsewhere has
the same ones, and results (one line a mutant, in the file --results) are taken up again: `--again
survived` tries those once more. A mutant that the compiler turns into the same code is equivalent;
others that nobody can notice are listed, with the reason, in tests/mutants.txt.

Each test runs in a process namespace of its own where that is allowed (as root): a mutant that
kills the wrong processes kills no others, and nothing is left behind.
"""
import argparse
import filecmp
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

FOLDERS = ("core", "binary", "sampler", "causal", "causal/runtime", "driver")
# What a folder's mutants are shown to besides unit tests, when these do not notice.
HARM = ["rt_programs", "rt_threads", "rt_processes", "rt_signals", "rt_limits"]
SCRIPTS = {
    "core": ["golden/run", "integration/driver", "integration/rt_programs"],
    "binary": ["integration/progress", "integration/scope", "integration/rt_programs",
               "integration/rt_libraries"],
    "sampler": ["integration/" + name for name in HARM + ["rt_surroundings"]],
    "causal": ["golden/run", "integration/driver", "integration/progress", "integration/scope",
               "integration/rt_programs", "integration/rt_predict", "integration/auto"],
    "causal/runtime": ["patch/matrix", "patch/torture", "patch/macros", "integration/progress",
                       "integration/rt_exits", "integration/rt_libraries", "integration/rt_start",
                       "integration/rt_real", "integration/rt_surroundings", "integration/rt_coz", "integration/rt_exports"] +
                      ["integration/" + name for name in HARM],
    "driver": ["golden/run", "integration/driver", "integration/scope"],
}

TOKEN = re.compile(r"""(?P<skip>/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<word>[A-Za-z_]\w*)|(?P<number>(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)[uUlLfF]*)
    |(?P<op><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!<>=?:;,.(){}\[\]])
    |(?P<space>\s+)|(?P<other>.)""", re.X | re.S)
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
         "<<": ">>", ">>": "<<", "+=": "-=", "-=": "+=", "++": "--", "--": "++"}
WORDS = {"true": "false", "false": "true", "break": "continue", "continue": "break"}
STATEMENT = re.compile(r"^(\t+)(?!return\b|case\b|default\b|goto\b|if\b|else\b|for\b|while\b|do\b)"
                       r"([A-Za-z_*(][^=;]*(?:\([^;]*\)|[-+|&^*/]?=[^;]*|\+\+|--));$")
RELEASE = re.compile(r"free\(|_fini\(|_put\(|close\(")  # leaks are for AddressSanitizer to find
ISOLATE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
PRODUCTS = ("driver/causal", ".libs/libcausal-rt.so")
CONSTANTS = ("0", "1", "-1", "true", "false", "NULL", "CA_OK")
FUNCTION = re.compile(r"^(?![#}/ ]|typedef\b|struct \w+ \{|enum\b.*\{).*?(\w+)\(")
DECLARATION = re.compile(r"^\t+(?:const |static |struct |enum |unsigned |char |int |bool |double |size_t "
                         r"|u?int\d+_t |_Atomic|long |void |FILE |pid_t )")


class Mutant:
    """One change: in `path`, in line `line` (from 0), of text[start:end] to `new`."""

    def __init__(self, path, function, line, text, start, end, new):
        self.path, self.function, self.line, self.text = path, function, line, text
        self.start, self.end, self.new = start, end, new
        self.nth = 1  # of those that look the same in one function

    def folder(self):
        """Of FOLDERS, the innermost that holds the file."""
        return max((f for f in FOLDERS if self.path.startswith(f + "/")), key=len)

    def changed(self):
        return self.text[:self.start] + self.new + self.text[self.end:]

    def name(self):
        """The same in a tree that has changed in other lines: where, what was, what is."""
        nth = f" #{self.nth}" if self.nth > 1 else ""
        return f"{self.path} {self.function}{nth}: {self.text.strip()} -> {self.changed().strip()}"


def operators_of(text, comment):
    """(start, end, new) of all changes to one line, and whether it ends inside a comment."""
    changes, brackets = [], 0
    if comment:
        end = text.find("*/")
        if end < 0:
            return [], True
        text = " " * (end + 2) + text[end + 2:]
    if text.lstrip().startswith("#"):
        return [], False
    open_comment = text.rfind("/*") > text.rfind("*/")
    if open_comment:
        text = text[:text.rfind("/*")]
    binary = False  # may an operator be a binary one here?
    for token in TOKEN.finditer(text):
        kind, value = token.lastgroup, token.group()
        if kind in ("space", "skip"):
            binary = binary if kind == "space" else True
            continue
        if kind == "op" and value in SWAPS and (binary or value in ("++", "--")):
            changes.append((token.start(), token.end(), SWAPS[value]))
        elif kind == "op" and value in "+-" and binary:
            changes.append((token.start(), token.end(), "-" if value == "+" else "+"))
        elif kind == "word" and value in WORDS:
            changes.append((token.start(), token.end(), WORDS[value]))
        elif kind == "number" and re.fullmatch(r"1?\d", value) and not brackets:
            changes.append((token.start(), token.end(), str(int(value) + 1)))
        elif kind == "word" and value in ("if", "while") and re.match(r"\s*\(", text[token.end():]):
            at = token.end() + text[token.end():].index("(")
            changes.append((at, at + 1, "(!"))
            close = matching(text, at)
            if close:
                changes[-1] = (at, close + 1, "(!" + text[at:close + 1] + ")")
        binary = kind in ("word", "number") or value in (")", "]")
        if kind == "word" and value in ("return", "case", "sizeof"):
            binary = False
        brackets += (value == "[") - (value == "]")
    if STATEMENT.match(text) and not DECLARATION.match(text) and not RELEASE.search(text):
        changes.append((len(text) - len(text.lstrip()), len(text.rstrip()), ";"))
    returned = re.match(r"^(\t+return )([^;]+);$", text)
    if returned and returned.group(2) not in CONSTANTS:
        changes.append((returned.end(1), returned.end(2), "0"))
    return changes, open_comment


def matching(text, at):
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if not depth:
            return i
    return None


def mutants_of(top, path):
    """All mutants of the bodies of functions in a file. What to do when there is no memory is left
    out, and numbers above 19: most of them are sizes and times that have no right value."""
    found, seen, comment, function = [], {}, False, None
    with open(os.path.join(top, path), encoding="utf-8") as file:
        for number, text in enumerate(file.read().split("\n")):
            changes, comment = operators_of(text, comment)
            begins = FUNCTION.match(text)
            if text == "}" or text.startswith("};"):
                function = None
            elif begins and not text.startswith("\t") and not text.endswith(";"):
                function = begins.group(1)
            if not function or not text.startswith("\t") or "CA_ERR_NOMEM" in text:
                continue
            for change in changes:
                mutant = Mutant(path, function, number, text, *change)
                name = mutant.name()
                mutant.nth = seen[name] = seen.get(name, 0) + 1
                found.append(mutant)
    return found


def draw(top, count, seed):
    """`count` mutants: by lines of code from each folder, at least twelve, no two on one line."""
    lines = {}
    sources = sorted(os.path.relpath(os.path.join(at, name), top) for folder in FOLDERS
                     for at, _, names in os.walk(os.path.join(top, folder)) for name in names
                     if name.endswith(".c"))
    found = {folder: [] for folder in FOLDERS}
    for path in sorted(set(sources)):
        for mutant in mutants_of(top, path):
            found[mutant.folder()].append(mutant)
    for folder in FOLDERS:
        lines[folder] = len({(m.path, m.line) for m in found[folder]})
    drawn = []
    for folder in FOLDERS:
        quota = max(12, round(count * lines[folder] / sum(lines.values())))
        places = set()
        for mutant in sorted(found[folder], key=lambda m: hashlib.sha256(
                f"{seed} {m.name()}".encode()).digest()):
            if (mutant.path, mutant.line) in places:
                continue
            places.add((mutant.path, mutant.line))
            drawn.append(mutant)
            if len(places) == quota:
                break
    return drawn


class Tree:
    """The copy that is changed, built and tested."""

    def __init__(self, top, work, configure):
        self.source, self.build = os.path.join(work, "src"), os.path.join(work, "build")
        self.namespace = can_isolate()
        self.took = {}  # seconds by test
        os.makedirs(self.source, exist_ok=True)
        os.makedirs(self.build, exist_ok=True)
        self.times = os.path.join(work, "times.txt")
        if copy(top, self.source) and os.path.exists(self.times):
            os.unlink(self.times)
        if not os.path.exists(os.path.join(self.source, "configure")):
            self.do(["autoreconf", "-fi"], self.source)
        if not os.path.exists(os.path.join(self.build, "Makefile")):
            self.do([os.path.join(self.source, "configure"), "-q"] + configure, self.build)
        self.do(["make", "-s", f"-j{os.cpu_count()}", "check-build"], self.build)
        self.environment = dict(
            os.environ, CA_TOP_SRCDIR=self.source, CA_TOP_BUILDDIR=self.build, CA_SANITIZER="",
            CA_PYTHON3=self.variable("PYTHON3"),
            CA_PYTHON_MATPLOTLIB=self.variable("PYTHON_MATPLOTLIB"),
            CA_PYTHON_JSONSCHEMA=self.variable("PYTHON_JSONSCHEMA"),
            CC=self.variable("CC"), CXX=self.variable("CXX"), NM=self.variable("NM"), CA_MUTANT="1")
        self.tests = self.variable("TESTS").split()
        self.codes = {name: self.code(name) for folder in FOLDERS for name in self.near(folder)}
        self.codes.update((name, self.code(name)) for name in PRODUCTS)

    def do(self, command, folder):
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if result.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{result.stdout[-2000:]}{result.stderr[-2000:]}")

    def variable(self, name):
        text = f"ca-show:\n\t@echo '$({name})'\n"
        return subprocess.run(["make", "-s", "-f", "Makefile", "-f", "-", "ca-show"], input=text,
                              cwd=self.build, capture_output=True, text=True, check=True).stdout.strip()

    def code(self, program):
        """A hash of what would be executed: of the program without its debugging information."""
        path = os.path.join(self.build, program)
        wrapped = os.path.join(os.path.dirname(path), ".libs", os.path.basename(path))
        path = wrapped if os.path.exists(wrapped) else path
        stripped = os.path.join(self.build, "stripped")
        subprocess.run(["objcopy", "-S", "--remove-section=.note.gnu.build-id", path, stripped],
                       check=False, capture_output=True)
        with open(stripped, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def compile(self, targets):
        return subprocess.run(["make", "-s", f"-j{os.cpu_count()}"] + targets, cwd=self.build,
                              capture_output=True, check=False).returncode == 0

    def near(self, folder):
        """The unit tests that are listed beside a folder's sources: most likely to notice."""
        listed = set()
        for place in ("tests/unit", "causal") if folder == "causal/runtime" else (folder,):
            with open(os.path.join(self.source, place, "Makemodule.am"), encoding="utf-8") as file:
                listed |= set(re.findall(r"\btests/unit/test_\w+(?=[ \n])", file.read()))
        if folder in ("binary", "causal/runtime"):
            listed |= {"tests/patch/run", "tests/patch/run_fixed", "tests/patch/live"}
        return sorted(listed & set(self.tests), key=lambda test: self.took.get(test, 0))

    def run(self, test, limit):
        """'' if it passes or is skipped, else how it ended."""
        script = test.endswith(".sh")
        path = os.path.join(self.source if script else self.build, test)
        command = ["bash", path] if script else [path]
        if self.namespace:
            # the first process of a namespace lives by other rules: it is not the test
            command = ISOLATE + ["bash", "-c", '"$@"; exit $?', "first"] + command
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=self.build, env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True,
                                   preexec_fn=default_signals)
        try:
            output = process.communicate(timeout=limit)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "timeout"
        finally:
            self.took.setdefault(test, time.monotonic() - start)
        self.output = output.decode(errors="replace")
        return "" if process.returncode in (0, 77) else f"status {process.returncode}"

    def scripts(self, folder):
        wanted = [f"tests/{name}.sh" for name in SCRIPTS[folder]]
        return [name for name in wanted if name in self.tests]

    def measure(self, folders):
        """The tests as they are: how long each takes. One that fails is of no use."""
        names = sorted({t for folder in folders for t in self.near(folder) + self.scripts(folder)})
        if os.path.exists(self.times):
            with open(self.times, encoding="utf-8") as file:
                self.took = {test: float(took) for took, test in map(str.split, file)}
        for test in names:
            if test in self.took:
                continue
            failed = self.run(test, 600)
            if failed and self.run(test, 600):
                print(f"left out, it fails as it is: {test} ({failed})\n{self.output[-500:]}")
                self.tests.remove(test)
                continue
            with open(self.times, "a", encoding="utf-8") as file:
                file.write(f"{self.took[test]} {test}\n")
        names = [test for test in names if test in self.tests]
        return {test: 30 + 5 * self.took[test] for test in names}


def default_signals():
    """In the background a shell has these ignored, and tests send them."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def copy(top, to):
    """What git knows, where it differs: what was built from the rest stays good."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=top, check=True, capture_output=True,
                           text=True).stdout.split("\0")
    changed = False
    for name in filter(None, names):
        source, target = os.path.join(top, name), os.path.join(to, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target) or not filecmp.cmp(source, target, shallow=False):
            shutil.copy2(source, target)
            os.utime(target)
            changed = True
    return changed


def can_isolate():
    return subprocess.run(ISOLATE + ["true"], check=False, capture_output=True).returncode == 0


def try_tests(tree, mutant, limits):
    """The fate of a mutant that is in place."""
    near = tree.near(mutant.folder())
    if not tree.compile(near):
        return "not C", ""
    tests = [test for test in near if tree.code(test) != tree.codes[test]]
    killer = first_to_fail(tree, tests, limits)
    if killer:
        return "killed", killer
    if not tree.compile(["all"]):
        return "not C", ""
    if any(tree.code(name) != tree.codes[name] for name in PRODUCTS):
        scripts = sorted(tree.scripts(mutant.folder()), key=tree.took.get)
        killer = first_to_fail(tree, scripts, limits)
        return ("killed", killer) if killer else ("survived", "")
    return ("survived" if tests else "same code"), ""


def first_to_fail(tree, tests, limits):
    for test in tests:
        failed = tree.run(test, limits[test])
        if failed and test.endswith(".sh") and failed != "timeout":
            failed = tree.run(test, limits[test])
        if failed:
            return f"{test}, {failed}"
    return ""


def judge(tree, mutant, limits):
    path = os.path.join(tree.source, mutant.path)
    with open(path, encoding="utf-8") as file:
        original = file.read()
    lines = original.split("\n")
    lines[mutant.line] = mutant.changed()
    try:
        write(path, "\n".join(lines))
        return try_tests(tree, mutant, limits)
    finally:
        write(path, original)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read_results(path):
    """Fate and killer by name."""
    fates = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                fate, by, name = line.rstrip("\n").split("\t")
                fates[name] = (fate, by)
    return fates


def read_equivalent(top):
    """Reasons by name, from tests/mutants.txt: a mutant's line, then indented reasons."""
    reasons, name = {}, None
    with open(os.path.join(top, "tests/mutants.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("\t") and name:
                reasons[name] = (reasons[name] + " " + line.strip()).strip()
            elif line.strip() and not line.startswith("#"):
                name = line.strip()
                reasons[name] = ""
    return reasons


def report(mutants, fates, reasons):
    table = {folder: {} for folder in FOLDERS}
    for mutant in mutants:
        fate = fates.get(mutant.name(), ("not tried", ""))[0]
        if fate != "killed" and mutant.name() in reasons:
            fate = "equivalent"
        row = table[mutant.folder()]
        row[fate] = row.get(fate, 0) + 1
    columns = ["killed", "survived", "equivalent", "same code", "not C", "not tried"]
    print(f"{'folder':16}" + "".join(f"{c:>12}" for c in columns) + f"{'score':>9}")
    rows = list(table.items())
    rows.append(("all", {c: sum(r.get(c, 0) for r in table.values()) for c in columns}))
    for folder, row in rows:
        matter = row.get("killed", 0) + row.get("survived", 0)
        score = f"{100 * row.get('killed', 0) / matter:.0f} %" if matter else "-"
        print(f"{folder:16}" + "".join(f"{row.get(c, 0):12}" for c in columns) + f"{score:>9}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("-n", type=int, default=150, help="how many mutants (150)")
    parser.add_argument("--seed", default="1", help="which ones (1)")
    parser.add_argument("--top", default=".", help="the source tree")
    parser.add_argument("--work", default="mutants", help="folder of the copy (mutants)")
    parser.add_argument("--results", help="file of the fates (WORK/results.txt)")
    parser.add_argument("--again", action="append", default=[], help="try those with this fate again")
    parser.add_argument("--only", default="", help="only mutants whose name holds this")
    parser.add_argument("--part", default="1/1", help="K/N: only each N-th, from the K-th on")
    parser.add_argument("--list", action="store_true", help="only say which there are, and the score")
    parser.add_argument("--configure", action="append", default=[], help="an option for configure")
    options = parser.parse_args()
    top, work = os.path.abspath(options.top), os.path.abspath(options.work)
    results = options.results or os.path.join(work, "results.txt")
    mutants = draw(top, options.n, options.seed)
    reasons, fates = read_equivalent(top), read_results(results)
    todo = [m for m in mutants if options.only in m.name() and (
        m.name() not in fates or fates[m.name()][0] in options.again)]
    # folders mixed: an interrupted run says something about all of them
    todo.sort(key=lambda m: hashlib.sha256(m.name().encode()).digest())
    part, parts = map(int, options.part.split("/"))
    todo = [m for m in todo if m.name() not in reasons][part - 1::parts]
    if options.list:
        for mutant in mutants:
            fate, by = fates.get(mutant.name(), ("not tried", ""))
            why = reasons.get(mutant.name(), "")
            print(f"{'equivalent' if why else fate:10} {mutant.name()}" + (f"  [{by or why}]" if by or why else ""))
    elif todo:
        tree = Tree(top, work, options.configure)
        limits = tree.measure({m.folder() for m in todo})
        start = time.monotonic()
        for done, mutant in enumerate(todo):
            fates[mutant.name()] = judge(tree, mutant, limits)
            with open(results, "a", encoding="utf-8") as file:
                file.write("\t".join(fates[mutant.name()]) + f"\t{mutant.name()}\n")
            left = (time.monotonic() - start) / (done + 1) * (len(todo) - done - 1)
            print(f"{done + 1}/{len(todo)}, {left / 60:.0f} min to go: {' '.join(fates[mutant.name()])}: "
                  f"{mutant.name()}", flush=True)
    for name in set(reasons) - {m.name() for m in mutants}:
        print(f"tests/mutants.txt: not among these: {name}")
    report(mutants, fates, reasons)


if __name__ == "__main__":
    main()
