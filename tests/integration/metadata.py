#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--metadata, and keys in the names of output."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checks import BUILD, CAUSAL, check, status  # noqa: E402

APP = os.path.join(BUILD, "examples", "regions")


def run(scratch, *words, **variables):
    """One `causal trace`; the files that it leaves."""
    done = subprocess.run([CAUSAL, "trace", *words], capture_output=True, text=True, check=False, cwd=scratch,
                          env=os.environ | variables)
    check(done.returncode == 0, f"{words}: {done.returncode}: {done.stderr}")
    return sorted(os.path.join(folder, name)[len(scratch) + 1:] for folder, _, names in os.walk(scratch)
                  for name in names)


def fnv(text):
    """As ca_map_key has it."""
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value


def check_names(text, expected, *words, app=APP, **variables):
    with tempfile.TemporaryDirectory() as scratch:
        files = run(scratch, "--sinks", "json", "--output-prefix", text, *words, "--", app, "5", **variables)
        check(len(files) == 1 and re.fullmatch(expected + r"causal-trace\.json", files[0]),
              f"{text}: {files} is not {expected}")


def check_maps(info):
    """What the program had mapped while it ran: as /proc says it."""
    maps = info["memory_maps"]
    check(maps and all(set(one) == {"start_address", "end_address", "permissions", "offset", "device", "inode",
                                    "pathname"} for one in maps), f"{maps[:2]}")
    check(all(int(one["start_address"], 16) < int(one["end_address"], 16) for one in maps), "a map has no size")
    code = {os.path.basename(one["pathname"]) for one in maps if "x" in one["permissions"]}
    check({"regions", "libcausal-rt.so"} <= code, f"{code}")


def check_metadata():
    with tempfile.TemporaryDirectory() as scratch:
        files = run(scratch, "--metadata", "-o", "out-%tag%", "--output-prefix", "my-", "--events", "none", "--sinks", "json",
                    "--", APP, "50000000", CAUSAL_TRACE_RING="32768", SECRET="x\udcff=y")
        check(files == ["out-regions/my-" + name for name in ("causal-trace.json", "functions.json", "metadata.json")],
              f"{files}")
        with open(f"{scratch}/out-regions/my-metadata.json", encoding="utf-8") as file:
            metadata = json.load(file)["causal"]["metadata"]
        with open(f"{scratch}/out-regions/my-functions.json", encoding="utf-8") as file:
            functions = json.load(file)["causal"]["functions"]
    info, settings = metadata["info"], metadata["settings"]
    for key in ("HW_L1_CACHE_SIZE", "HW_L2_CACHE_SIZE", "HW_L3_CACHE_SIZE", "HW_CONCURRENCY", "LAUNCH_TIME",
                "LAUNCH_DATE", "CAUSAL_VERSION", "PWD", "USER", "HOME", "SHELL"):
        check(key in info, f"{key} is not in the metadata")
    check(info["HW_CONCURRENCY"] == os.cpu_count() and info["COMMAND"] == [APP, "50000000"], f"{info}")
    check(info["memory_maps_files"][0] == APP and any("/libc." in path for path in info["memory_maps_files"]),
          f"{info['memory_maps_files']}")
    check_maps(info)
    environment = {entry["key"]: entry["value"] for entry in metadata["environment"]}
    check(environment["SECRET"] == "x\ufffd=y" and "PATH" in environment, "environment")
    shown = subprocess.run([CAUSAL, "--help=config"], capture_output=True, text=True, check=True).stdout
    listed = set(re.findall(r"^#(CAUSAL_\w+) =", shown, re.M))
    check(listed and listed <= set(settings), f"settings that are not there: {listed - set(settings)}")
    keys = {"name", "environ", "description", "count", "max_count", "cmdline", "categories", "data_type", "initial",
            "value", "enabled", "environ_updated", "config_updated"}
    check(all(set(one) == keys and one["categories"][0] for one in settings.values()), "keys of a setting")
    ring = settings["CAUSAL_TRACE_RING"]
    check((ring["value"], ring["initial"], ring["environ_updated"], ring["config_updated"], ring["data_type"]) ==
          ("32768", "16384", True, False, "int") and "trace-ring" in ring["cmdline"], f"{ring}")
    step = [function for function in functions if function["function"] == "simulate"]
    check(len(step) == 1 and step[0]["file"].endswith("regions.c") and step[0]["line"] > 0 and
          step[0]["address_range"] > 0 and step[0]["module"] == APP, f"{step}")


def main():
    if os.environ.get("CA_SANITIZER"):
        print("SKIP: the runtime does not go with " + os.environ["CA_SANITIZER"])
        return 77
    check_metadata()
    argv = re.escape(APP.lstrip("/").replace("/", "_"))
    check_names("%tag%-%pid%-", r"regions-\d+-")
    check_names("%argv%-", argv + "_5-")
    check_names("%argt%-%args%-%arg0%-%arg1%-%arg2%-", f"regions_5-5-{argv}-5--")
    check_names("%tag_hash%-", f"{fnv('regions'):016x}-")
    check_names("%m-", f"{fnv('regions_5'):016x}-")
    check_names("%ppid%-%pgid%-%psid%-%psize%-", rf"{os.getpid()}-\d+-{os.getsid(0)}-\d+-")
    check_names("%job%-%rank%-%size%-", "0-0-1-")
    check_names("%j-%r-%s-%nid%-", "77-3-8-3-", SLURM_JOB_ID="77", PMI_RANK="3", PMI_SIZE="8")
    check_names("%launch_time%-%p-", r"\d{8}-\d{6}-\d+-")
    check_names("%env{WHO}%-$env{WHO}-$env{NOBODY}-", "a_b-a_b--", WHO="/a/b")
    check_names("%cfg{TRACE_RING}%-$cfg{trace_memory}-", "1024-64-", "--trace-ring", "1024")
    check_names("100%-%nonsense%-$x{y}-%pidx%-$cfg{nonsense}-%%-",
                re.escape("100%-%nonsense%-$x{y}-%pidx%-$cfg{nonsense}-%%-"))
    return status()


if __name__ == "__main__":
    sys.exit(main())
