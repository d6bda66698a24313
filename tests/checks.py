# SPDX-License-Identifier: MIT
"""What tests in Python share: each check that fails says so, and all have their turn."""
import os
import subprocess

TOP = os.path.abspath(os.environ.get("CA_TOP_SRCDIR", "."))
BUILD = os.path.abspath(os.environ.get("CA_TOP_BUILDDIR", "."))
CAUSAL = os.path.join(BUILD, "driver", "causal")
failures = 0


def check(ok, text):
    global failures
    if not ok:
        failures += 1
        print(f"FAILED: {text}")


def status():
    """What the test ends with."""
    return 1 if failures else 0


def causal(*words, expect=0, cwd=None):
    """One run of the command, which ends with `expect`; None: with anything."""
    done = subprocess.run([CAUSAL, *words], capture_output=True, text=True, check=False, cwd=cwd)
    check(expect in (None, done.returncode), f"causal {words}: status {done.returncode}: {done.stdout}{done.stderr}")
    return done
