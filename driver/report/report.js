/* SPDX-License-Identifier: MIT */
/* The report's page: a table of rows (a region as one progress point sees it), and the detail of
 * the row that is open. Names come from the program that was profiled: they reach the page only as
 * text nodes. */
"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const profile = data.profile;
const $ = (id) => document.getElementById(id);
const verdict = (p) => p.says;
const plural = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
const known = (x) => x !== null && x !== undefined;

function element(tag, properties, ...children) {
	const e = Object.assign(document.createElement(tag), properties);
	e.append(...children);
	return e;
}

// ---- rows

const base = (path) => path.slice(path.lastIndexOf("/") + 1);
const place = (region) => region.file && region.line ? `${region.file}:${region.line}` : region.file;

const nothing = { effect: null, low: null, high: null };

function at(progress, speedup) {
	const found = (progress.at || []).find((a) => a.speedup === speedup) ||
		progress.curve.find((c) => c.speedup === speedup);
	return found && known(found.effect) ? found : nothing;
}

// Several regions at once, each with a speedup of its own: only what was asked for is known.
const asked = (row) => row.progress.curve.find((c) => c.speedup === row.region.asked) || nothing;
const less = (row, speedup) => row.region.asked ? nothing : at(row.progress, speedup);

const rows = profile.regions.flatMap((region, r) => region.progress.map((progress) => ({ region, r, progress })))
	.map((row, rank) => ({ ...row, rank: rank + 1 }));
let sorted = { key: "rank", down: false }, shown = [], open = null, chart = null;

const columns = [
	{ key: "rank", title: "#", value: (row) => row.rank, wide: true },
	{ key: "name", title: "code", css: "name", value: (row) => row.region.name },
	{ key: "point", title: "point", css: "pointname", value: (row) => row.progress.point,
		hidden: () => new Set(rows.map((row) => row.progress.point)).size < 2 },
	{ key: "own", title: "own %", value: (row) => row.region.own, down: true,
		hidden: () => rows.every((row) => !known(row.region.own)) },
	{ key: "samples", title: "total %", value: (row) => row.region.samples, down: true },
	{ key: "at25", title: "25 % less", effect: (row) => less(row, 25), down: true },
	{ key: "at50", title: "50 % less", effect: (row) => less(row, 50), down: true },
	{ key: "at100", title: "at most", effect: (row) => less(row, 100), down: true },
	{ key: "experiments", title: "experiments", value: (row) => row.progress.experiments, down: true },
	{ key: "verdict", title: "verdict", css: "verdict", value: (row) => verdict(row.progress) },
].filter((column) => !column.hidden || !column.hidden());
for (const column of columns)
	column.value = column.value || ((row) => column.effect(row).effect);

const number = (x) => !known(x) ? "–" : Math.abs(x) < 9.95 ? x.toFixed(1) : x.toFixed(0);
const exact = (x) => known(x) ? x.toFixed(1) : "?";
const half = (c) => known(c.low) && known(c.high) ? (c.high - c.low) / 2 : null;

// Names can be as long as a page: two lines of them, all under the pointer and on paper.
function others(word, list, between) {
	const text = word + " " + (list || []).join(between);
	return (list || []).length ? [element("span", { className: "where others", textContent: text, title: text })] : [];
}

function cell(column, row) {
	const td = element("td", { className: (column.css || "") + (column.wide ? " wide" : "") });
	if (column.key !== "name" && column.key !== "verdict")
		td.dataset.label = column.title;
	if (column.key === "name") {
		td.append(element("b", { textContent: row.region.name }));
		const where = [place(row.region), base(row.region.binary)].filter((t) => t && t !== row.region.name);
		if (row.region.asked)
			where.push(`all at once: ${number(asked(row).effect)} %`);
		td.append(element("span", { className: "where", textContent: where.join(" · ") }));
		td.append(...others("via", row.region.via, " ← "), ...others("contains", row.region.contains, ", "),
			...others("calls", row.region.calls, ", "));
	} else if (column.effect) {
		const c = column.effect(row), width = half(c);
		td.append(number(c.effect));
		if (known(c.effect))
			td.append(" ", element("span", { className: "pm", textContent: "± " + (known(width) ? number(width) : "?") }));
	} else {
		const value = column.value(row);
		td.append(typeof value === "number" && /%$/.test(column.title) ? number(value) : known(value) ? String(value) : "–");
	}
	return td;
}

// What is not known comes last, whichever way it is sorted.
function compare(a, b, column, down) {
	const x = column.value(a), y = column.value(b);
	if (known(x) !== known(y))
		return known(x) ? -1 : 1;
	const order = typeof x === "string" ? x.localeCompare(y) : x - y;
	return (down ? -order : order) || a.rank - b.rank;
}

function fits(row) {
	const text = $("text").value.toLowerCase();
	return (!text || [row.region.name, row.region.file, row.region.function].some((t) => t.toLowerCase().includes(text))) &&
		(!$("point").value || row.progress.point === $("point").value) &&
		(!$("binary").value || row.region.binary === $("binary").value) &&
		row.progress.experiments >= Number($("least").value);
}

function showTable() {
	const column = columns.find((c) => c.key === sorted.key);
	shown = rows.filter(fits).sort((a, b) => compare(a, b, column, sorted.down));
	document.querySelectorAll("#table th").forEach((th) =>
		th.setAttribute("aria-sort", th.dataset.key !== sorted.key ? "none" : sorted.down ? "descending" : "ascending"));
	document.querySelector("#table tbody").replaceChildren(...shown.map((row) => {
		const tr = element("tr", { tabIndex: 0, className: row.progress.verdict },
			...columns.map((c) => cell(c, row)));
		tr.dataset.rank = row.rank;
		tr.setAttribute("aria-selected", String(row === open));
		tr.addEventListener("click", () => openRow(row, true));
		return tr;
	}));
	$("none").hidden = shown.length > 0 || rows.length === 0;
}

function sortBy(column) {
	sorted = { key: column.key, down: sorted.key === column.key ? !sorted.down : Boolean(column.down) };
	showTable();
}

// ---- the curve

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

/* Experiments of one speedup lie on one another: they are drawn beside it, always the same. */
const aside = (i) => ((i * 0.618034) % 1 - 0.5) * 2.4;

function curveOf({ region, progress }) {
	const fitted = (!region.asked && progress.at || []).filter((a) => known(a.effect));
	const line = fitted.length ? fitted : progress.curve;
	return [{ speedup: 0, effect: 0, low: 0, high: 0 }, ...line];
}

function chartData(row) {
	const mine = data.experiments.filter((e) => e.region === row.r && e.point === row.progress.point && known(e.effect));
	const points = [
		...mine.map((e, i) => ({ x: e.speedup + aside(i), dot: e.effect })),
		...curveOf(row).map((c) => ({ x: c.speedup, line: c.effect, low: c.low, high: c.high })),
	].sort((a, b) => a.x - b.x);
	const column = (key) => points.map((p) => known(p[key]) ? p[key] : null);
	return { count: mine.length, columns: [column("x").map(Number), column("line"), column("high"), column("low"), column("dot")] };
}

/* A wild dot must not flatten the curve. */
function heights(columns) {
	const sure = columns.slice(1, 4).flat().filter(known), all = columns.slice(1).flat().filter(known);
	const span = Math.max(10, ...sure) - Math.min(0, ...sure);
	const low = Math.max(Math.min(0, ...all), Math.min(0, ...sure) - span / 2);
	const high = Math.min(Math.max(10, ...all), Math.max(10, ...sure) + span / 2);
	return [low - 0.04 * span, high + 0.04 * span];
}

function drawChart(row) {
	if (chart)
		chart.destroy();
	const { count, columns: series } = chartData(row);
	const axis = (label) => ({ label, stroke: colour("faint"), labelSize: 20, size: 36, grid: { stroke: colour("line"), width: 1 },
		ticks: { stroke: colour("line") } });
	const invisible = { stroke: "transparent", points: { show: false }, spanGaps: true };
	chart = new uPlot({
		width: $("chart").clientWidth || 600, height: 320, legend: { show: false }, cursor: { show: false },
		scales: { x: { time: false, range: [-3, 103] }, y: { range: heights(series) } },
		axes: [axis(row.region.asked ? "% less time in the part with most" : "% less time in this code"), axis("% program speedup")],
		series: [{},
			{ stroke: colour("accent"), width: 2, spanGaps: true, points: { show: false } },
			invisible, invisible,
			{ paths: () => null, points: { show: true, size: 6, width: 0, fill: colour("dot"), stroke: "transparent" } }],
		bands: [{ series: [2, 3], fill: colour("band") }],
	}, series, $("chart"));
	$("chart").setAttribute("aria-label", `program speedup of ${row.region.name} against its own: ` +
		curveOf(row).slice(1).map((c) => `${number(c.effect)} % at ${c.speedup} %`).join(", "));
	document.querySelector(".legend").replaceChildren(element("i", { className: "l" }), "effect",
		element("i", { className: "b" }), "95 % interval", element("i"), `${plural(count, "experiment")}, each by itself`);
}

// ---- the call chain: the stacks that hold the region, from the outermost frame to it

/* In line mode, frames may be lines. */
const frameOf = (region) => data.stacks.some((stack) => stack.frames.includes(region.name)) ? region.name : region.function;

function chainOf(region) {
	const root = { children: new Map(), count: 0 }, name = frameOf(region);
	let all = 0;
	for (const stack of data.stacks) {
		all += stack.count;
		const end = stack.frames.lastIndexOf(name);
		if (end < 0)
			continue;
		let node = root;
		root.count += stack.count;
		for (const frame of stack.frames.slice(0, end + 1)) {
			if (!node.children.has(frame))
				node.children.set(frame, { children: new Map(), count: 0 });
			node = node.children.get(frame);
			node.count += stack.count;
		}
	}
	return { root, all, name };
}

function chainList(node, name, all, css) {
	const children = [...node.children].filter(([, child]) => child.count >= 0.01 * all).sort((a, b) => b[1].count - a[1].count);
	return element("ul", { className: css }, ...children.map(([frame, child]) => element("li", {},
		element("span", { className: "share", textContent: number(100 * child.count / all) + " %" }),
		element("span", { className: frame === name ? "self" : "", textContent: frame }),
		...(child.children.size ? [chainList(child, name, all, "")] : []))));
}

function showChain(row) {
	const { root, all, name } = chainOf(row.region);
	$("chain").replaceChildren();
	if (!root.count)
		return;
	$("chain").append(element("h3", { textContent: "Call chain (share of all samples)" }), chainList(root, name, all, "chain"));
}

// ---- the source

function showSource(row) {
	const source = data.sources[row.region.file];
	$("source").replaceChildren();
	if (!source)
		return;
	const lines = new Map();
	for (const other of rows)
		if (other.region.file === row.region.file && other.region.kind === "line" && other.progress.point === row.progress.point)
			lines.set(other.region.line, other);
	const body = element("tbody");
	const first = Math.max(source.first, row.region.line - 30), last = Math.min(source.first + source.lines.length - 1, row.region.line + 40);
	for (let n = first; n <= last; n++) {
		const other = lines.get(n), c = other && at(other.progress, 50);
		const tr = element("tr", { className: n === row.region.line ? "here" : "" },
			element("td", { className: "effect", textContent: c ? `${number(c.effect)} ± ${number(half(c))}` : "",
				title: c ? verdict(other.progress) : "" }),
			element("td", { className: "effect", textContent: other && known(other.region.samples) ? number(other.region.samples) + " %" : "" }),
			element("td", { className: "number", textContent: n }),
			element("td", { className: "code", textContent: source.lines[n - source.first] }));
		body.append(tr);
	}
	const what = lines.size ? " In the margin: program speedup in % if the line took 50 % less, and its share of the samples." : "";
	$("source").append(element("h3", { textContent: "Source" }),
		element("p", { className: "where", textContent: place(row.region) + "." + what +
			(source.newer ? " The file is newer than the runs: lines may have moved." : "") }),
		element("div", { className: "source" }, element("table", {}, body)));
	const box = document.querySelector(".source"), here = box.querySelector(".here");
	if (here)
		box.scrollTop = here.offsetTop - box.clientHeight / 3;
}

// ---- the detail

// "(time)": no other thread had to be delayed, and no point is needed.
function whatFalls(p) {
	return p.kind === "latency" ? `the latency of ${p.point}`
		: p.point === "(time)" ? "the time that the program takes"
		: p.silent ? `the time of a run, ${exact(100 - p.silent)} % of which pass ${p.point} (samples tell of the rest),` : `the time per visit of ${p.point}`;
}

function says(row) {
	const p = row.progress, several = row.region.asked, parts = [];
	const c = several ? asked(row) : at(p, 50), top = less(row, 100);
	if (known(c.effect))
		parts.push(`If ${several ? `all of it took so many percent less (${row.region.name})` : "this code took half the time"}, ${whatFalls(p)} would fall by ${exact(c.effect)} % (95 % interval ${exact(c.low)} to ${exact(c.high)}).`);
	if (known(top.effect))
		parts.push(`Without it, by ${exact(top.effect)} %: more is not to be had here.`);
	parts.push(`Verdict: ${verdict(p)}, from ${plural(p.experiments, "experiment")}.`);
	if (p.how === "own")
		parts.push("Hardly anything else had to be slowed down, so each experiment is its own baseline.");
	else if (p.how === "share")
		parts.push("Hardly anything else had to be slowed down. The program has phases: the share of this code is that of " +
			"all samples, not only of those in its experiments.");
	else if (p.how === "bounds")
		parts.push("The interval is what each experiment allows by itself.");
	return parts.join(" ");
}

/* Of a latency: how much the slow visits would fall. */
function showPercentiles(row) {
	const found = (!row.region.asked && row.progress.percentiles || []).filter((p) => p.at.some((a) => known(a.effect)));
	const head = ["percentile", "at 0 %", "25 % less", "50 % less", "at most"];
	const time = (ns) => !known(ns) ? "–" : ns < 1e3 ? `${ns.toFixed(0)} ns` : ns < 1e6 ? `${number(ns / 1e3)} µs` :
		ns < 1e9 ? `${number(ns / 1e6)} ms` : `${number(ns / 1e9)} s`;
	$("percentiles").replaceChildren();
	if (!found.length)
		return;
	$("percentiles").append(element("h3", { textContent: "Percentiles: by how many percent they would fall" }),
		element("table", {},
			element("thead", {}, element("tr", {}, ...head.map((t) => element("th", { textContent: t })))),
			element("tbody", {}, ...found.map((p) => element("tr", {},
				...[String(p.percentile), time(p.time), ...[25, 50, 100].map((speedup) => {
					const a = p.at.find((c) => c.speedup === speedup);
					return a && known(a.effect) ? `${number(a.effect)} ± ${known(half(a)) ? number(half(a)) : "?"}` : "–";
				})].map((t) => element("td", { textContent: t })))))));
}

function showCells(row) {
	const head = ["% less", "effect", "low", "high", "experiments", "runs"];
	$("cells").querySelector("table").replaceChildren(
		element("thead", {}, element("tr", {}, ...head.map((t) => element("th", { textContent: t })))),
		element("tbody", {}, ...row.progress.curve.map((c) => element("tr", {},
			...[c.speedup, number(c.effect), number(c.low), number(c.high), c.experiments, c.runs]
				.map((t) => element("td", { textContent: t }))))));
}

function openRow(row, scroll) {
	open = row;
	document.querySelectorAll("#table tbody tr").forEach((tr) =>
		tr.setAttribute("aria-selected", String(row !== null && Number(tr.dataset.rank) === row.rank)));
	$("detail").hidden = row === null;
	if (row === null)
		return;
	$("detail").querySelector("h2").textContent = row.region.name;
	$("says").textContent = says(row);
	drawChart(row);
	showChain(row);
	showSource(row);
	showPercentiles(row);
	showCells(row);
	if (scroll) {
		$("detail").scrollIntoView({ block: "nearest" });
		history.replaceState(null, "", "#" + row.rank);
	}
}

function closeRow() {
	const row = open;
	openRow(null);
	history.replaceState(null, "", "#");
	if (row)
		document.querySelector(`tr[data-rank="${row.rank}"]`)?.focus();
}

// ---- keys, themes, start

function step(by) {
	const trs = [...document.querySelectorAll("#table tbody tr")], now = trs.indexOf(document.activeElement);
	const next = trs[Math.min(Math.max(now + by, 0), trs.length - 1)];
	if (next) {
		next.focus();
		if (open)
			openRow(rows[Number(next.dataset.rank) - 1], false);
	}
}

document.addEventListener("keydown", (event) => {
	if (event.ctrlKey || event.altKey || event.metaKey)
		return;
	if (event.key === "Escape") {
		closeRow();
	} else if (event.target.matches("input, select, button, summary")) {
		return;
	} else if (event.key === "ArrowDown" || event.key === "j") {
		step(1);
	} else if (event.key === "ArrowUp" || event.key === "k") {
		step(-1);
	} else if (event.key === "Enter" && event.target.dataset.rank) {
		openRow(rows[Number(event.target.dataset.rank) - 1], true);
	} else if (event.key === "/") {
		$("text").focus();
	} else {
		return;
	}
	event.preventDefault();
});

const themes = ["as the system", "light", "dark"], systemDark = matchMedia("(prefers-color-scheme: dark)");
let theme = 0;
function setTheme() {
	document.documentElement.classList.toggle("dark", theme === 2 || (theme === 0 && systemDark.matches));
	$("theme").textContent = "Colours: " + themes[theme];
	if (open)
		drawChart(open);
}
$("theme").addEventListener("click", () => { theme = (theme + 1) % 3; setTheme(); });
systemDark.addEventListener("change", setTheme);
addEventListener("resize", () => { if (open) drawChart(open); });

function fillSelect(id, values, name) {
	$(id).append(element("option", { value: "", textContent: "all" }),
		...values.map((v) => element("option", { value: v, textContent: name(v) })));
	$(id).parentElement.hidden = values.length < 2;
}

function start() {
	const f = profile.funnel;
	document.title = `causal: ${profile.command}`;
	$("command").textContent = profile.command;
	$("summary").textContent = `${plural(f.runs, "run")}, ${f.experiments_kept} of ${plural(f.experiments_finished, "experiment")} used, ` +
		`${number(profile.runtime)} s; ${f.samples} samples, ${f.samples_dropped} dropped; samples by ${profile.backend}`;
	if (profile.cause) {
		$("cause").textContent = `${rows.length ? "No verdict" : "No result"}: ${profile.cause}. To do: ${profile.remedy}.`;
		$("cause").hidden = false;
	}
	$("warnings").append(...profile.warnings.map((w) => element("li", { textContent: w })));
	$("warnings").hidden = profile.warnings.length === 0;
	fillSelect("point", [...new Set(rows.map((row) => row.progress.point))], String);
	fillSelect("binary", [...new Set(rows.map((row) => row.region.binary))], base);
	document.querySelector("#table thead tr").append(...columns.map((column) => {
		const th = element("th", { className: (column.css || "") + (column.wide ? " wide" : ""), scope: "col" },
			element("button", { type: "button", textContent: column.title, onclick: () => sortBy(column) }));
		th.dataset.key = column.key;
		return th;
	}));
	$("filters").addEventListener("input", showTable);
	$("filters").addEventListener("submit", (event) => event.preventDefault());
	$("table").hidden = rows.length === 0;
	$("filters").hidden = rows.length === 0;
	setTheme();
	showTable();
	const named = rows[Number(location.hash.slice(1)) - 1];
	if (rows.length)
		openRow(named || rows[0], false);
}
start();
})();
