#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# needs matplotlib
"""plot.py on synthetic profiles of known slope: all formats it reads, all it writes."""
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checks import TOP, check, status  # noqa: E402

PLOT = os.path.join(TOP, "scripts", "plot.py")
BLOCK = "import sys; sys.modules['matplotlib'] = None; import runpy; " \
        "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


def plot(*args, expect=0, matplotlib=True):
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    command = [sys.executable, PLOT] if matplotlib else [sys.executable, "-c", BLOCK, PLOT]
    done = subprocess.run(command + list(args), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=environment, check=False)
    check(done.returncode == expect, f"{args}: exit {done.returncode}: {done.stderr}")
    check("Traceback" not in done.stderr, f"{args}: {done.stderr}")
    return done.stdout, done.stderr


def experiments():
    """(code, speedup, duration, visits): half of the speedup of hot.c:10 arrives, none of
    cold.c:20; one in ten visits more or less."""
    for i in range(12):
        for speedup in (0, 20, 40, 60):
            for code, share in (("/src/hot.c:10", 0.5), ("/src/cold.c:20", 0.0)):
                period = 1e6 * (1 - share * speedup / 100) * (1 + 0.01 * (i % 3 - 1))
                yield code, speedup / 100, 10 ** 9, round(1e9 / period)


def write_text(path, old):
    with open(path, "w", encoding="utf-8") as file:
        file.write("startup\ttime=1\n")
        for code, speedup, duration, visits in experiments():
            file.write(f"experiment\tselected={code}\tspeedup={speedup:.2f}\t"
                       f"duration={duration}\tselected-samples=5\n")
            if old:
                file.write(f"progress-point\tname=item\ttype=source\tdelta={visits}\n")
            else:
                file.write(f"throughput-point\tname=item\tdelta={visits}\n")
                file.write(f"latency-point\tname=req\tarrivals={visits}\tdepartures={visits}"
                           "\tdifference=4\n")
        file.write("runtime\ttime=5\nsamples\tlocation=/src/hot.c:10\tcount=7\n")


def write_lines(path):
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"type":"startup","time":1}\n')
        for code, speedup, duration, visits in experiments():
            for record in ({"type": "experiment", "selected": code, "speedup": speedup,
                            "duration": duration, "selected_samples": 5},
                           {"type": "throughput-point", "name": "item", "delta": visits}):
                file.write(json.dumps(record) + "\n")
        file.write('{"type":"runtime","ti')  # torn off


def write_profile(path):
    def region(name, effects, verdict, says):
        curve = [{"speedup": p, "effect": e, "low": e - 1, "high": e + 1, "experiments": 9}
                 for p, e in effects]
        return {"name": name, "kind": "function", "file": "/src/a.c", "function": name,
                "progress": [{"point": "item <1>", "kind": "throughput", "verdict": verdict,
                              "says": says, "curve": curve}]}

    regions = [region("cold", [(25, 0.5), (50, -1)], "not-worth", "does not matter"),
               region("$hot$ & <dear>", [(25, 10), (50, 20), (75, 30)], "worth", "worth it"),
               region("rare", [(50, 45)], "not-enough-data", "cannot tell here")]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"format": "causal-profile", "version": 1, "regions": regions}, file)


def check_inputs(base):
    names = [os.path.join(base, n) for n in ("new.coz", "old.coz", "new.jsonl")]
    write_text(names[0], old=False)
    write_text(names[1], old=True)
    write_lines(names[2])
    for name in names:
        for speedup, effect in (("20", "10"), ("40", "20"), ("60", "30")):
            plot(name, "--validate", "hot.c:10", "item", speedup, effect, "0.7")
            plot(name, "--validate", "cold", "item", speedup, "0", "0.7")
        plot(name, "--validate", "hot.c:10", "item", "40", "10", "5", expect=1)
        plot(name, "--validate", "absent", "item", "40", "10", "5", expect=1)
        table = plot(name, "--text", "--point", "item")[0].splitlines()
        check("hot.c:10" in table[1] and "cold.c:20" in table[2], f"order: {table}")
        check(table[1].split()[1] == "0.50", f"slope: {table[1]}")
    # Little's law: as many under way, more arriving: latency falls like the period
    plot(names[0], "--validate", "hot", "req", "40", "20", "0.7")


def check_choice(base):
    directory = os.path.join(base, "dir")
    os.mkdir(directory)
    write_profile(os.path.join(directory, "profile.json"))
    table = plot(directory, "--text")[0].splitlines()
    check([("hot" in table[1]), ("cold" in table[2]), ("rare" in table[3])] == [True] * 3,
          f"rank: {table}")
    check("cannot tell here" in table[3], f"words: {table}")
    check(len(plot(directory, "--text", "--min-points", "2")[0].splitlines()) == 3, "min-points")
    check(len(plot(directory, "--text", "-e", "^cold$")[0].splitlines()) == 2, "-e")
    check(len(plot(directory, "--text", "--top", "1")[0].splitlines()) == 2, "--top")
    check("nothing matches" in plot(directory, "--text", "-e", "absent", expect=2)[1], "nothing")
    check("regular expression" in plot(directory, "--text", "-e", "(", expect=2)[1], "regex")
    return directory


def check_pictures(base, directory):
    svg = os.path.join(base, "out.svg")
    plot(directory, "-o", svg, matplotlib=False)
    root = ElementTree.parse(svg).getroot()
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    check(any(t.startswith("1. $hot$ & <dear>") for t in texts), f"first panel: {texts}")
    check("80 %" in texts, f"75 was measured: {texts}")
    plot(directory, "-o", svg, "-e", "cold")
    texts = [t.text for t in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")]
    check("50 %" in texts and "80 %" not in texts, f"beyond 50 nothing was: {texts}")
    check(len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 3, "three curves")
    check("apt-get install" in plot(directory, "-o", os.path.join(base, "a.png"), expect=2,
                                matplotlib=False)[1], "png without matplotlib")
    check(".png, .svg" in plot(directory, "-o", os.path.join(base, "a.doc"), expect=2)[1], "doc")
    check("cannot write" in plot(directory, "-o", "/nonexistent/a.svg", expect=2)[1], "no dir")
    error = plot(directory, matplotlib=False)[1]
    check(os.path.exists(os.path.join(directory, "profile.svg")) and "profile.svg" in error,
          f"no display: {error}")
    if subprocess.run([sys.executable, "-c", "import matplotlib"], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        return False
    png = os.path.join(base, "out.png")
    plot(directory, "-o", png)
    with open(png, "rb") as file:
        check(file.read(8) == b"\x89PNG\r\n\x1a\n", "a PNG")
    check("profile.png" in plot(directory)[1], "no display: PNG beside the input")
    return True


def check_bad_input(base):
    for name, text, word in (("empty", "", "is empty"), ("elf", "\x7fELF\n", "no profile"),
                             ("run.jsonl", '{"type":"run","format":"causal-run"}\n{}\n', "one run"),
                             ("bad.coz", "experiment\tselected=a\tspeedup=x\n", "usable speedup"),
                             ("half.json", '{"format":"causal-profile","version":1}', "damaged"),
                             ("line.jsonl", '{"type":"startup"}\n[1]\n', "damaged"),
                             ("v9.json", '{"format":"causal-profile","version":9}', "version 9"),
                             ("why.json", '{"format":"causal-profile","version":1,"regions":[],'
                              '"cause":"no luck","remedy":"try again"}', "no luck; to do: try")):
        path = os.path.join(base, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        check(word in plot(path, expect=2)[1], f"{name}: {word}")
    check("profile.json" in plot(base, expect=2)[1], "a directory without a profile")
    check("cannot read" in plot(os.path.join(base, "absent"), expect=2)[1], "absent")


def main():
    with tempfile.TemporaryDirectory() as base:
        check_inputs(base)
        directory = check_choice(base)
        png = check_pictures(base, directory)
        check_bad_input(base)
    if not status() and not png:
        print("SKIP: matplotlib is not installed, no PNG was made; the rest passed")
        return 77
    return status()


sys.exit(main())
