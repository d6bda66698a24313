#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks of causal sample: walked by libunwind as by our own rows; through code that the program has made."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checks import BUILD, CAUSAL, causal, check, status  # noqa: E402

APPS = os.path.join(BUILD, "tests", "apps")
MS = 1000000


def sample(directory, *words):
    """The profile, and what the program printed; None: it was not possible here."""
    done = subprocess.run([CAUSAL, "sample", "-o", directory, *words], capture_output=True, text=True, check=False,
                          timeout=120)
    if "built without libunwind" in done.stderr:
        check(done.returncode == 2, f"without libunwind: status {done.returncode}")
        print("SKIP: there is no libunwind to walk stacks with")
        return None, ""
    if done.returncode == 77:
        print("SKIP: no list of made code can be written into /tmp")
        return None, ""
    check(done.returncode == 0, f"causal sample {words}: status {done.returncode}: {done.stderr}")
    with open(os.path.join(directory, "sample.json"), encoding="utf-8") as file:
        return json.load(file), done.stdout


def stacks_of(profile):
    names, result = [()], []
    for parent, function, ns, _ in profile["nodes"]:
        names.append(names[parent] + (profile["functions"][function - 1]["name"],))
        result.append((names[-1], ns))
    return result


def share(profile, *words):
    """Of the time in user code, what is in stacks with these words side by side, in percent."""
    stacks = [(stack, ns) for stack, ns in stacks_of(profile) if not stack[-1].startswith(("[waiting", "[kernel"))]
    found = sum(ns for stack, ns in stacks if any(stack[i:i + len(words)] == words for i in range(len(stack))))
    return 100 * found / max(1, sum(ns for _, ns in stacks))


def check_walks(scratch):
    """Waits and CPU time, C and C++ with exceptions, threads that come and go; a program that is in many places."""
    many = "import json\nfor _ in range(2000): json.loads(json.dumps(list(range(1000))))"
    for name, words in (("sampled", ["600"]), ("throws", []), (sys.executable, ["-S", "-c", many])):
        # once before: rows that are being made while it runs walk nothing
        sample(os.path.join(scratch, "first"), "-r", "--", os.path.join(APPS, name), *words)
        profile, _ = sample(os.path.join(scratch, os.path.basename(name)), "--unwinder", "libunwind", "--",
                            os.path.join(APPS, name), *words)
        if not profile:
            return
        walked, alike = profile["walked"], profile["alike"]
        check(walked >= 20 and alike >= 0.95 * walked, f"{name}: {alike} of {walked} stacks as by our rows")
        check(profile["incomplete"] <= 0.05 * walked, f"{name}: {profile['incomplete']} of {walked} are not complete")
    profile, _ = sample(os.path.join(scratch, "rows"), "--", os.path.join(APPS, "sampled"), "300")
    check(profile["walked"] == 0, f"rows: libunwind has walked {profile['walked']}")


def check_made(scratch, unwinder):
    directory, line = (os.path.join(scratch, kind + unwinder) for kind in ("made-", "line-"))
    profile, path = sample(directory, "--unwinder", unwinder, "--events", "advanced", "--sinks", f"json={line}",
                           "--", os.path.join(APPS, "makes_code"), "400")
    if not profile:
        return
    os.unlink(path.strip())
    shares = {name: share(profile, *name) for name in (
        ("spend", "made_hot"), ("spend", "made_later"), ("spend", "made calls(a, b)", "native"))}
    hot, later, native = shares.values()
    check(30 < hot + later < 70 and 30 < native < 70 and later > 10, f"{unwinder}: made code: {shares}")
    check(hot + later + native > 90, f"{unwinder}: made code is called by others: {shares}")
    check(profile["incomplete"] <= 0.05 * profile["samples"] + 2,
          f"{unwinder}: {profile['incomplete']} of {profile['samples']} are not complete")
    functions = {function["name"]: function for function in profile["functions"]}
    check(functions["native"]["binary"].endswith("makes_code") and
          functions["made_hot"]["binary"] == "[made at run time]", f"binaries: {functions}")
    with open(line, encoding="utf-8") as file:
        named = {event["name"] for event in json.load(file) if event.get("ph") == "i"}
    check({"sample: made_hot", "sample: made_later", "frame: made calls(a, b)"} <= named, f"timeline: {named}")
    check(not [name for name in named if "ca_" in name], f"our own frames are in a timeline: {named}")


def check_made_late(scratch):
    """Names that come at the program's end: of what lies there by then."""
    profile, path = sample(os.path.join(scratch, "late"), "--", os.path.join(APPS, "makes_code"), "400", "end")
    if not profile:
        return
    os.unlink(path.strip())
    shares = [share(profile, "spend", *name) for name in (("made_later",), ("made calls(a, b)", "native"))]
    check(sum(shares) > 90 and min(shares) > 30, f"told at the end: {shares}")
    named = [function["name"] for function in profile["functions"]]
    check(len(named) == len(set(named)) and not [name for name in named if "0x" in name], f"functions: {named}")


def main():
    if os.environ.get("CA_SANITIZER"):
        print("SKIP: the runtime does not go with " + os.environ["CA_SANITIZER"])
        return 77
    done = causal("sample", "--unwinder", "best", "--", "true", expect=2)
    check(done.stderr.count("\n") == 1 and "rows libunwind" in done.stderr, f"a wrong unwinder: {done.stderr}")
    with tempfile.TemporaryDirectory() as scratch:
        check_walks(scratch)
        check_made(scratch, "rows")
        check_made(scratch, "libunwind")
        check_made_late(scratch)
    return status()


if __name__ == "__main__":
    sys.exit(main())
