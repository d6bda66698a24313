#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page that `causal report` writes of a profile of samples: it needs nothing else, whatever a program calls
its functions, and in a browser its frames are as wide as their times, and lead where a person would go."""
import json
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import check_report  # noqa: E402
from check_report import EVIL, chromium, look  # noqa: E402
from checks import causal, check, status  # noqa: E402

MS = 1000000
FUNCTIONS = [("process", "app", ""), ("code", "main", "/bin/app"), ("code", "work", "/bin/app"),
             ("code", "memcpy", "/lib/libc.so.6"), ("wait", "[sleeping]", ""), ("code", EVIL, "/bin/app")]
# parent, function, ns, samples
NODES = [(0, 1, 0, 0), (1, 2, 10 * MS, 10), (2, 3, 50 * MS, 50), (3, 4, 20 * MS, 20), (2, 5, 100 * MS, 1), (2, 6, 20 * MS, 20),
         (3, 3, 0, 0), (7, 4, 0, 1)]
# on the critical path: 30 ms of work, 10 of its memcpy, and 40 of the wait
PATH = [(3, 30 * MS), (4, 10 * MS), (5, 40 * MS)]


def make(directory):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "sample.json"), "w", encoding="utf-8") as file:
        json.dump({"format": "causal-sample", "version": 1, "command": ["./app", EVIL], "backend": "perf", "time": 1,
                   "period": MS, "delay": 0, "runtime": 200 * MS, "samples": 102, "incomplete": 0, "user": 0,
                   "system": 0, "handler": 0, "processes": 1, "threads": 2, "exit_status": 0, "groups": [],
                   "losses": [{"why": EVIL, "count": 3}],
                   "functions": [{"kind": kind, "name": name, "file": "a.c", "line": 5, "binary": binary}
                                 for kind, name, binary in FUNCTIONS],
                   "nodes": NODES, "path": PATH, "wakes": [[5, 3, 60 * MS, 1], [5, 0, 40 * MS, 1]]}, file)


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
    check(saw["chosen"] == ["4"], f"chosen in the table: {saw['chosen']}")
    check(saw["wide"] <= 0 and saw["inner"] == width, f"wider than a window of {width}: by {saw['wide']}")


def main():
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
        causal("report", os.path.join(scratch, "sample.json"), "-o", os.path.join(scratch, "other.html"))
        with open(os.path.join(scratch, "other.html"), encoding="utf-8") as file:
            check(file.read() == text, "the file and its folder give two pages")
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
    return status()


if __name__ == "__main__":
    sys.exit(main())
