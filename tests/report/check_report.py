#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page that `causal report` writes: it needs nothing else, whatever a program calls its functions, and
in a browser it loads without an error, sorts, filters, and opens a curve and its source.

The browser is Chromium without a window. A script that is put behind the page's own does what a person
would do, and hands what it saw to a page around it, which Chromium prints. Two pictures, 1280 and 390 wide, are
left in CA_REPORT_PICTURES, if that names a folder."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checks import TOP, causal, check, status  # noqa: E402
from fixture import region, write_run  # noqa: E402

SOURCE = os.path.join(TOP, "examples", "frames.c")
EVIL = "</script><script>window.failed('script in a name')</script><!--"


def make_latency(directory):
    for run in range(1, 4):
        write_run(directory, run, [region("serve", file=SOURCE, line=47), region("log")], effects={"serve": 40}, experiments=60, slow=True)


def make_results(directory):
    lines = [region(f"frames.c:{n}", "line", SOURCE, n, "simulate_frame") for n in (30, 31, 34)]
    regions = lines + [region("write_frame", "line", SOURCE, 50, "write_frame", "/usr/lib/libframes.so.1"),
                       region(EVIL, "line", "/nowhere/é.c", 7, EVIL)]
    regions[0] = dict(regions[0], via=["worker", "run_loop"])
    effects = {"frames.c:30": 42, "frames.c:31": 12, "write_frame": 25}
    for run in range(1, 7):
        write_run(directory, run, regions, effects=effects, experiments=60,
                  samples=[(r, 1000 * (i + 1), 900 * (i + 1)) for i, r in enumerate(regions)],
                  stacks=[(["main", "worker", "simulate_frame"], 500), (["main", "write_frame"], 200),
                          (["main", "worker;odd", EVIL], 10)])


def make_what_if(directory):
    parts = [region(name, file="" if "," in name else SOURCE, line=0 if "," in name else 47)
             for name in ("parse=20,render=50", "parse", "render")]
    for run in range(1, 3):
        write_run(directory, run, parts, effects={parts[0]["name"]: 40}, experiments=60)


# Runs in the page; `saw` is what the test asks about, and goes to the page around it.
ACTIONS = """
const saw = { errors: window.errors };
const rows = () => [...document.querySelectorAll("#table tbody tr")];
const names = () => rows().map((tr) => tr.querySelector(".name b").textContent);
const heading = (key) => document.querySelector(`#table th[data-key="${key}"] button`);
const press = (target, key) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const set = (id, value) => {
	document.getElementById(id).value = value;
	document.getElementById(id).dispatchEvent(new Event("input", { bubbles: true }));
};
try {
	saw.ranked = names();
	heading("name").click();
	saw.byName = names();
	heading("name").click();
	saw.byNameDown = names();
	heading("samples").click();
	saw.bySamples = rows().map((tr) => tr.querySelector('[data-label="total %"]').textContent);
	saw.sort = document.querySelector('#table th[data-key="samples"]').getAttribute("aria-sort");
	set("text", "frames.c:3");
	saw.filtered = names().sort();
	set("text", "");
	set("least", "100000");
	saw.none = [rows().length, document.getElementById("none").hidden];
	set("least", "0");
	set("binary", "/usr/lib/libframes.so.1");
	saw.binary = names();
	set("binary", "");
	heading("rank").click();
	rows()[0].focus();
	press(document.activeElement, "ArrowDown");
	press(document.activeElement, "Enter");
	saw.second = document.querySelector("#detail h2").textContent;
	press(document.activeElement, "Escape");
	saw.closed = document.getElementById("detail").hidden;
	rows()[0].click();
	saw.open = document.querySelector("#detail h2").textContent;
	saw.says = document.getElementById("says").textContent;
	saw.percentiles = [...document.querySelectorAll("#percentiles tbody tr")].map(
		(tr) => [...tr.children].map((td) => td.textContent));
	const canvas = document.querySelector("#chart canvas");
	saw.canvas = [canvas.width, canvas.height];
	saw.dots = document.querySelector(".legend").textContent;
	saw.chain = document.getElementById("chain").textContent;
	saw.source = [...document.querySelectorAll(".source tr")].length;
	saw.here = document.querySelector(".source .here .code").textContent;
	saw.margin = [...document.querySelectorAll(".source .effect:first-child")].map((td) => td.textContent).filter(Boolean);
	saw.filters = [...document.querySelectorAll("#filters label")].map((label) => label.offsetParent !== null);
	saw.inner = window.innerWidth;
	saw.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
	document.getElementById("theme").click();
	document.getElementById("theme").click();
	saw.dark = document.documentElement.classList.contains("dark");
} catch (error) {
	window.errors.push(String(error.stack));
}
setTimeout(() => {
	const pixels = document.querySelector("#chart canvas").getContext("2d").getImageData(0, 0, 400, 300).data;
	saw.drawn = pixels.some((value) => value > 0);
	parent.postMessage(JSON.stringify(saw), "*");
}, 300);
"""


def chromium(browser, page, *options):
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={home}", "--virtual-time-budget=4000", "--hide-scrollbars",
             "--allow-file-access-from-files", *options, "file://" + page],
            capture_output=True, text=True, check=False, timeout=120, env=dict(os.environ, HOME=home))
    return done.stdout


def look(browser, page, width):
    """What ACTIONS saw."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    listen = "<script>window.errors = []; window.failed = (e) => window.errors.push(e);" \
             "addEventListener('error', (e) => window.errors.push(e.message));</script>"
    changed, frame = page.replace(".html", ".test.html"), page.replace(".html", ".frame.html")
    with open(changed, "w", encoding="utf-8") as file:
        file.write(text.replace("<head>", "<head>" + listen, 1)
                   .replace("</body>", f"<script>{ACTIONS}</script></body>"))
    # a window is never narrower than 500
    with open(frame, "w", encoding="utf-8") as file:
        file.write(f"<body><iframe src='{os.path.basename(changed)}' width={width} height=900 "
                   "style='border: 0'></iframe><script>addEventListener('message', (e) => document.body.append("
                   "Object.assign(document.createElement('pre'), { id: 'saw', textContent: e.data })));</script>")
    out = chromium(browser, frame, "--dump-dom", f"--window-size={width + 50},950")
    found = re.search(r'<pre id="saw">(.*?)</pre>', out, re.S)
    check(found, f"the page did not come to its end: {out[-2000:]}")
    if not found:
        return None
    return json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def check_page(saw, width):
    check(saw["errors"] == [], f"errors: {saw['errors']}")
    check(saw["ranked"][0] == "frames.c:30" and len(saw["ranked"]) == 5, f"ranked: {saw['ranked']}")
    check(EVIL in saw["ranked"], f"a name is shown as it is: {saw['ranked']}")
    check(sorted(saw["byName"], key=str.lower) != saw["ranked"] and
          saw["byName"] == saw["byNameDown"][::-1], f"by name: {saw['byName']} {saw['byNameDown']}")
    numbers = [float(text) for text in saw["bySamples"]]
    check(numbers == sorted(numbers, reverse=True) and saw["sort"] == "descending",
          f"by samples: {saw['bySamples']} {saw['sort']}")
    check(saw["filtered"] == ["frames.c:30", "frames.c:31", "frames.c:34"], f"text: {saw['filtered']}")
    check(saw["none"] == [0, False], f"experiments, at least: {saw['none']}")
    check(saw["binary"] == ["write_frame"], f"binary: {saw['binary']}")
    check(saw["second"] == saw["ranked"][1] and saw["closed"], f"keys: {saw['second']} {saw['closed']}")
    check(saw["open"] == "frames.c:30" and "half the time" in saw["says"], f"open: {saw['says']}")
    check(saw["canvas"][0] > 200 and saw["drawn"], f"the curve is not drawn: {saw['canvas']}")
    check(re.search(r"[1-9][0-9]* experiments", saw["dots"]), f"dots: {saw['dots']}")
    check("simulate_frame" in saw["chain"] and "write_frame" not in saw["chain"], f"chain: {saw['chain']}")
    with open(SOURCE, encoding="utf-8") as file:
        line = file.read().splitlines()[29]
    check(saw["here"] == line and saw["source"] > 20, f"source: {saw['here']!r}")
    check(len(saw["margin"]) == 4, f"margin: {saw['margin']}")
    check(saw["wide"] <= 0, f"wider than a window of {width}: by {saw['wide']}")
    check(saw["inner"] == width, f"the window is {saw['inner']} wide, not {width}")
    check(saw["filters"] == [True, False, True, True], f"there is one point to choose: {saw['filters']}")
    check(saw["dark"], "dark is not dark")
    check(saw["percentiles"] == [], f"a throughput has no percentiles: {saw['percentiles']}")


def check_percentiles(saw, width):
    check(saw["wide"] <= 0, f"percentiles: wider than a window of {width}: by {saw['wide']}")
    check(saw["open"] == "serve" and [row[0] for row in saw["percentiles"]] == ["50", "95", "99"],
          f"percentiles: {saw['percentiles']}")
    for row in saw["percentiles"]:
        check(re.fullmatch(r"[0-9.]+ ms", row[1]) and all("±" in text for text in row[2:]), f"percentiles: {row}")
        check(abs(float(row[3].split()[0]) - 20) < 6, f"percentiles: half of 40 is 20: {row}")


def check_at_once(saw):
    """Half of the time of several at once is nothing that was asked."""
    check(saw["open"].startswith("parse=20,render=50") and "(parse=20,render=50)" in saw["says"] and
          "half the time" not in saw["says"] and "Without it" not in saw["says"], f"several at once: {saw['says']}")
    check(saw["bySamples"][-1] == "–", f"several at once have no samples: {saw['bySamples']}")


def check_paper(browser, page):
    """Callers with long names, as C++ has them, fill no pages."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    data = json.loads(found.group(1))
    data["profile"]["regions"][1]["via"] = [f"space::Of<{i}>::function(argument const*)" for i in range(60)]
    paper = page.replace(".html", ".paper.html")
    with open(paper, "w", encoding="utf-8") as file:
        file.write(text[:found.start(1)] + json.dumps(data).replace("<", "\\u003c") + text[found.end(1):])
    chromium(browser, paper, f"--print-to-pdf={paper}.pdf")
    with open(paper + ".pdf", "rb") as file:
        pages = len(re.findall(rb"/Type\s*/Page\b", file.read()))
    check(1 <= pages <= 3, f"printed on {pages} pages")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        make_results(scratch)
        causal("report", scratch)
        page = os.path.join(scratch, "report.html")
        with open(page, encoding="utf-8") as file:
            text = file.read()
        check(EVIL not in text, "a name is part of the page's own text")
        check(text.count("</script>") == 3, "scripts: data, the library, the page")
        check("Leon Sorokin" in text, "the library's licence is missing")
        check("@@" not in text, "a part is missing")
        data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
        check(EVIL in [r["name"] for r in json.loads(data.group(1))["profile"]["regions"]], "data")
        causal("report", expect=2)
        causal("report", scratch, "--what", "x", expect=2)
        causal("report", os.path.join(scratch, "nothing"), expect=2)
        causal("report", scratch, "-o", os.path.join(scratch, "none", "x.html"), expect=1)
        browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if not browser:
            if not status():
                print("SKIP: no Chromium is installed: the page was not tried in a browser")
            return status()
        for width in (1280, 390):
            saw = look(browser, page, width)
            if saw:
                check_page(saw, width)
            os.makedirs(os.path.join(scratch, "latency"), exist_ok=True)
            make_latency(os.path.join(scratch, "latency"))
            causal("report", os.path.join(scratch, "latency"))
            saw = look(browser, os.path.join(scratch, "latency", "report.html"), width)
            if saw:
                check_percentiles(saw, width)
            make_what_if(os.path.join(scratch, "at-once"))
            causal("report", os.path.join(scratch, "at-once"))
            saw = look(browser, os.path.join(scratch, "at-once", "report.html"), width)
            if saw:
                check_at_once(saw)
            pictures = os.environ.get("CA_REPORT_PICTURES")
            if pictures:
                for dark in ("", ",dark"):
                    chromium(browser, page, f"--window-size={width},1600",
                             f"--screenshot={pictures}/report-{width}{dark[1:]}.png",
                             *(["--force-dark-mode"] if dark else []))
        check_paper(browser, page)
    return status()


if __name__ == "__main__":
    sys.exit(main())
