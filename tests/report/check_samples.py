#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page that `causal report` writes of a profile of samples: it needs nothing else, whatever a program calls
its functions, and in a browser its frames are as wide as their times, and lead where a person would go."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import check_report  # noqa: E402
from check_report import EVIL, chromium, look  # noqa: E402
from checks import CAUSAL, causal, check, status  # noqa: E402

MS = 1000000
FUNCTIONS = [("process", "app", ""), ("code", "main", "/bin/app"), ("code", "work", "/bin/app"),
             ("code", "memcpy", "/lib/libc.so.6"), ("wait", "[sleeping]", ""), ("code", EVIL, "/bin/app")]
# parent, function, ns, samples
NODES = [(0, 1, 0, 0), (1, 2, 10 * MS, 10), (2, 3, 50 * MS, 50), (3, 4, 20 * MS, 20), (2, 5, 100 * MS, 1), (2, 6, 20 * MS, 20),
         (3, 3, 0, 0), (7, 4, 0, 1)]
# on the critical path: 30 ms of work, 10 of its memcpy, and 40 of the wait
PATH = [(3, 30 * MS), (4, 10 * MS), (5, 40 * MS)]


# what others have sampled, where CPU time was not: nodes 4, 5, 6
METRICS = [{"name": "real-time", "unit": "ns", "level": False}, {"name": "overflow-page-faults", "unit": "", "level": False},
           {"name": "peak-rss", "unit": "bytes", "level": True},
           {"name": "instructions", "unit": "", "level": False, "missing": "no such event"}]
MEASURED = [(4, 150 * MS, 3000, 4096, 0), (5, 40 * MS, 0, 8192, 0), (6, 10 * MS, 1000, 0, 0)]


def make(directory, cpu=True, **more):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "sample.json"), "w", encoding="utf-8") as file:
        json.dump({"format": "causal-sample", "version": 1, "command": ["./app", EVIL, ""], "backend": "perf", "time": 1,
                   "period": MS, "delay": 0, "runtime": 200 * MS, "samples": 102, "incomplete": 0, "user": 0,
                   "system": 0, "handler": 0, "processes": 1, "threads": 2, "exit_status": 0, "groups": [],
                   "losses": [{"why": EVIL, "count": 3}],
                   "functions": [{"kind": kind, "name": name, "file": "a.c", "line": 5, "binary": binary}
                                 for kind, name, binary in FUNCTIONS],
                   "nodes": NODES if cpu else [(parent, f, ns if f == 5 else 0, n) for parent, f, ns, n in NODES],
                   "path": PATH, "wakes": [[5, 3, 60 * MS, 1], [5, 0, 40 * MS, 1]], **more}, file)


ACTIONS = """
const saw = { errors: window.errors };
const $ = (id) => document.getElementById(id);
const frames = () => Object.fromEntries([...$("flames").children].map((e) =>
	[e.dataset.node, [e.style.left, e.style.width, e.style.top].map((x) => Math.round(parseFloat(x)))]));
const frame = (node) => $("flames").querySelector(`[data-node="${node}"]`);
const press = (target, key) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const set = (id, value) => { $(id).value = value; $(id).dispatchEvent(new Event("input", { bubbles: true })); };
try {
	saw.width = $("flames").clientWidth;
	saw.whole = frames();
	saw.text = frame(3).textContent;
	saw.summary = $("summary").textContent;
	saw.losses = $("losses").textContent;
	saw.table = [...document.querySelectorAll("#table tbody tr")].map((tr) => [...tr.children].map((td) => td.textContent));
	frame(5).click();
	saw.wait = [$("says").textContent, $("wakers").hidden, $("wakers").textContent, frames()];
	press(document.activeElement, "Escape");
	saw.back = JSON.stringify(frames()) === JSON.stringify(saw.whole);
	frame(3).focus();
	press(frame(3), "ArrowDown");
	saw.down = document.activeElement.dataset.node;
	press(document.activeElement, "ArrowUp");
	saw.up = document.activeElement.dataset.node;
	press(document.activeElement, "Enter");
	saw.zoomed = frames();
	$("back").click();
	set("measure", "path");
	saw.path = [frames(), frame(3).getAttribute("aria-label")];
	set("measure", "cpu");
	saw.cpu = frames();
	set("text", "WORK");
	saw.found = [$("says").textContent, [...document.querySelectorAll("#flames .found")].map((e) => e.dataset.node)];
	set("text", "");
	document.querySelectorAll("#table tbody tr")[1].click();
	const table = $("metrics").querySelector("table");
	saw.metrics = [$("metrics").hidden, ...[...table.rows].map((tr) => [...tr.children].map((td) => td.textContent))];
	saw.measures = [...$("measure").options].map((option) => option.textContent);
	saw.caption = $("table").caption.textContent + [...document.querySelectorAll("#table th")].map((th) => th.textContent);
	saw.chosen = [...document.querySelectorAll("#flames .found")].map((e) => e.dataset.node);
	saw.inner = window.innerWidth;
	saw.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
} catch (error) {
	window.errors.push(String(error.stack));
}
setTimeout(() => parent.postMessage(JSON.stringify(saw), "*"), 100);
"""


def close(width, part, all_of):
    return abs(width - part / 200 * all_of) < 2


def check_page(saw, width):
    check(saw["errors"] == [], f"errors: {saw['errors']}")
    if saw["errors"]:
        return
    whole, all_of = saw["whole"], saw["width"]
    for node, part in (("1", 200), ("2", 200), ("3", 70), ("4", 20), ("5", 100), ("6", 20)):
        check(node in whole and close(whole[node][1], part, all_of), f"node {node} is not {part} of 200: {whole}")
    check("7" not in whole, f"a frame without time: {whole}")
    for child, parent in (("2", "1"), ("3", "2"), ("4", "3"), ("5", "2")):
        check(whole[child][2] == whole[parent][2] + 18 and whole[child][0] >= whole[parent][0] and
              sum(whole[child][:2]) <= sum(whole[parent][:2]) + 2, f"{child} does not hang below {parent}: {whole}")
    sides = sorted(whole[node][:2] for node in ("3", "5", "6"))
    check(all(a[0] + a[1] <= b[0] + 2 for a, b in zip(sides, sides[1:])), f"siblings overlap: {sides}")
    check(saw["text"] == "work", f"text: {saw['text']}")
    check("0.200 s" in saw["summary"] and "0.100 s on a CPU" in saw["summary"], f"summary: {saw['summary']}")
    check(EVIL in saw["losses"], f"losses: {saw['losses']}")
    check([row[0].split("a.c")[0] for row in saw["table"]] == ["work", "memcpy", EVIL, "main"], f"table: {saw['table']}")
    check(saw["table"][0][1:] == ["0.050", "50.0 %", "0.070", "70.0 %", "0.070", "50.0 %"], f"table: {saw['table'][0]}")
    check(saw["table"][3][1:] == ["0.010", "10.0 %", "0.100", "100.0 %", "0.200", "100.0 %"], f"table: {saw['table'][3]}")
    says, hidden, wakers, frames = saw["wait"]
    check("[sleeping]" in says and "0.100 s" in says, f"a wait: {says}")
    check(not hidden and "work ← main ← app" in wakers and "not taken" in wakers, f"wakers: {hidden} {wakers}")
    check(close(frames["5"][1], 200, all_of) and "3" not in frames, f"zoomed: {frames}")
    check(saw["back"], "Esc does not go back")
    check([saw["down"], saw["up"]] == ["4", "3"], f"arrows: {saw['down']} {saw['up']}")
    check(close(saw["zoomed"]["3"][1], 200, all_of) and close(saw["zoomed"]["4"][1], 200 * 20 / 70, all_of),
          f"zoomed by Enter: {saw['zoomed']}")
    path, label = saw["path"]
    check(close(path["3"][1], 100, all_of) and close(path["4"][1], 25, all_of) and close(path["5"][1], 100, all_of) and
          "6" not in path, f"the critical path: {path}")
    check("on the critical path 0.0400 s, 50.0 % of it" in label and "0.0800 s" in saw["summary"],
          f"the critical path: {label}; {saw['summary']}")
    check(close(saw["cpu"]["3"][1], 140, all_of) and "5" not in saw["cpu"], f"CPU time alone: {saw['cpu']}")
    check("0.0700 s, 70.0 %" in saw["found"][0] and saw["found"][1] == ["3"], f"found: {saw['found']}")
    check(saw["metrics"][0] and len(saw["measures"]) == 4, f"metrics without any: {saw['metrics']} {saw['measures']}")
    check(saw["chosen"] == ["4"], f"chosen in the table: {saw['chosen']}")
    check(saw["wide"] <= 0 and saw["inner"] == width, f"wider than a window of {width}: by {saw['wide']}")


def check_measured(saw, width):
    """CPU time was not sampled: the first sampler that has anything is what frames weigh."""
    check(saw["errors"] == [], f"measured: errors: {saw['errors']}")
    if saw["errors"]:
        return
    whole, all_of = saw["whole"], saw["width"]
    for node, part in (("1", 200), ("3", 150), ("4", 150), ("5", 40), ("6", 10)):
        check(close(whole[node][1], part, all_of), f"measured: node {node} is not {part} of 200: {whole}")
    check("real-time was: 0.200 s" in saw["summary"], f"measured: summary: {saw['summary']}")
    check("no thread could get the event of instructions: no such event" in saw["losses"], f"measured: {saw['losses']}")
    check(saw["table"][0][1:] == ["0.150", "93.8 %", "0.150", "93.8 %", "0.150", "12.5 %"], f"measured: {saw['table'][0]}")
    check("by real-time of" in saw["caption"] and "self s" in saw["caption"], f"measured: {saw['caption']}")
    check(saw["measures"] == ["real-time", "real-time, but for waits", "real-time in waits", "on the critical path",
                              "overflow-page-faults"], f"measured: {saw['measures']}")
    check(saw["metrics"][:2] == [False, ["function", "real-time s", "overflow-page-faults ", "peak-rss bytes"]] and
          saw["metrics"][2][1:] == ["0.150", "3,000", "4,096"] and len(saw["metrics"]) == 5, f"metrics: {saw['metrics']}")
    check(saw["wide"] <= 0 and saw["inner"] == width, f"measured: wider than a window of {width}: by {saw['wide']}")


def lines_of(*words, expect=0):
    return causal(*words, expect=expect).stdout.splitlines()


def check_exports(scratch):
    """By CPU time where there is any, else by what was measured, or by what is asked for."""
    both, real, events = (os.path.join(scratch, name) for name in ("both", "real", "events"))
    make(both, metrics=METRICS, measured=MEASURED)
    make(real, cpu=False, metrics=METRICS, measured=MEASURED)
    make(events, cpu=False, metrics=METRICS[1:2], measured=[(row[0], row[2]) for row in MEASURED])
    check("app;main;work 50000000" in lines_of("export", both, "--format", "folded"), "CPU time comes first")
    check(lines_of("export", both, "--format", "folded", "--of", "realtime") ==
          lines_of("export", real, "--format", "folded"), "real time, asked for and by itself")
    check("app;main;work;memcpy 150000000" in lines_of("export", real, "--format", "folded"), "real time, folded")
    for folder, more in ((events, ()), (both, ("--of", "overflow")), (real, ("--of", "overflow-page-faults"))):
        check("app;main;work;memcpy 3000" in lines_of("export", folder, "--format", "folded", *more), f"events of {folder}")
    table = lines_of("export", both, "--format", "csv")
    check(table[0] == "function,file,line,binary,self_s,self_percent,total_s,total_percent,wall_s,path_percent" and
          table[1].endswith(",0.050000,50.00,0.070000,70.00,0.070000,50.00"), f"csv: {table[:2]}")
    table = lines_of("export", real, "--format", "csv")
    check("self_real-time_s" in table[0] and table[1].endswith(",0.150000,93.75,0.150000,93.75,0.150000,12.50"),
          f"csv: {table[:2]}")
    table = lines_of("export", events, "--format", "markdown")
    check("| self overflow-page-faults |" in table[0] and table[2].endswith("| 3000 | 75.0 | 3000 | 75.0 | 3000 | 12.5 |"),
          f"markdown: {table[:3]}")
    check(lines_of("export", events, "--format", "tree")[:3] ==
          ["overflow-page-faults", "            total       %             self  calls",
           "             4000  100.00                0  app"], "tree")
    scope = json.loads(causal("export", events, "--format", "speedscope").stdout)["profiles"][0]
    check((scope["unit"], scope["endValue"], scope["name"]) == ("none", 4000, "./app: overflow-page-faults"), f"{scope}")
    pprof = subprocess.run([CAUSAL, "export", events, "--format", "pprof"], capture_output=True, check=True).stdout
    check(b"overflow-page-faults" in pprof and b"events" in pprof and b"nanoseconds" not in pprof, "pprof")
    said = causal("export", both, "--format", "csv", "--of", "luck", expect=2).stderr
    check("there is: cputime real-time overflow-page-faults instructions" in said, f"--of: {said}")
    said = causal("export", both, "--format", "csv", "--of", "instructions", expect=2).stderr
    check("no such event" in said, f"--of: {said}")
    said = causal("diff", both, events, expect=2).stderr
    check("both has CPU time" in said and "events has overflow-page-faults" in said, f"diff: {said}")
    check(lines_of("diff", both, events, "--of", "overflow")[0] ==
          "overflow-page-faults: 4000 events before, 4000 events now (+0)", "diff of events")
    check(lines_of("diff", real, real)[:2] == ["real-time: 0.160 s before, 0.160 s now (+0.000)",
                                               "Waits: 0.040 s before, 0.040 s now (+0.000)"], "diff of real time")


def check_limit(directory):
    """Files that may not grow are said to be so, and no part of a page is left."""
    with tempfile.TemporaryDirectory() as scratch:
        part = os.path.join(scratch, "part")
        for words in ["report", directory, "-o", part], ["export", directory, "--format", "json"]:
            with open(os.path.join(scratch, "out"), "w", encoding="utf-8") as out:
                done = subprocess.run(["bash", "-c", 'ulimit -f 1; exec "$@"', "bash", CAUSAL, *words], stdout=out,
                                      stderr=subprocess.PIPE, text=True, check=False)
            check(done.returncode == 1 and "File too large" in done.stderr,
                  f"{words[0]}: {done.returncode}, {done.stderr}")
        check(not os.path.exists(part), "a part of a page is left")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        check_exports(scratch)
    with tempfile.TemporaryDirectory() as scratch:
        make(scratch)
        causal("report", scratch)
        page = os.path.join(scratch, "report.html")
        with open(page, encoding="utf-8") as file:
            text = file.read()
        check(EVIL not in text, "a name is part of the page's own text")
        check(text.count("</script>") == 2 and "@@" not in text, "scripts: data, the page")
        data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
        check([tuple(node) for node in json.loads(data.group(1))["nodes"]] == NODES, "data")
        command = json.loads(data.group(1))["command"]
        check(shlex.split(command) == ["./app", EVIL, ""], f"the command is no line for a shell: {command}")
        causal("report", os.path.join(scratch, "sample.json"), "-o", os.path.join(scratch, "other.html"))
        with open(os.path.join(scratch, "other.html"), encoding="utf-8") as file:
            check(file.read() == text, "the file and its folder give two pages")
        check_limit(scratch)
        with open(os.path.join(scratch, "sample.json"), "w", encoding="utf-8") as file:
            file.write("{")
        done = causal("report", scratch, expect=2)
        check("sample.json" in done.stderr, f"a damaged file: {done.stderr}")
        browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if not browser:
            if not status():
                print("SKIP: no Chromium is installed: the page was not tried in a browser")
            return status()
        check_report.ACTIONS = ACTIONS
        for width in (1280, 390):
            saw = look(browser, page, width)
            if saw:
                check_page(saw, width)
            pictures = os.environ.get("CA_REPORT_PICTURES")
            if pictures:
                chromium(browser, page, f"--window-size={width},900", f"--screenshot={pictures}/samples-{width}.png")
        make(scratch, cpu=False, metrics=METRICS, measured=MEASURED)
        causal("report", scratch)
        for width in (1280, 390):
            saw = look(browser, page, width)
            if saw:
                check_measured(saw, width)
    return status()


if __name__ == "__main__":
    sys.exit(main())
