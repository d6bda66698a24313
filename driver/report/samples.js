/* SPDX-License-Identifier: MIT */
/* The page of a profile of samples: a flame graph, and a table of functions. Names come from the program
 * that was profiled: they reach the page only as text nodes. */
"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const ROW = 18, NARROWEST = 0.7, SHOWN = 60;
const seconds = (ns) => (ns / 1e9).toPrecision(3) + " s";
const percent = (part, all) => (all ? 100 * part / all : 0).toFixed(1) + " %";
const amount = (value, unit) => unit === "ns" ? seconds(value) : `${value.toLocaleString("en")} ${unit || "events"}`;
const plural = (n, what, end = "s") => `${n} ${what}${n === 1 ? "" : end}`;

function element(tag, properties, ...children) {
	const e = Object.assign(document.createElement(tag), properties);
	e.append(...children);
	return e;
}

// ---- what nodes weigh: their time, or, where CPU time was not sampled, what others have sampled

const metrics = (data.metrics || []).filter((metric) => !metric.missing);
const values = data.nodes.map(() => metrics.map(() => 0)), counts = data.nodes.map(([, , , count]) => count);
for (const [node, ...row] of data.measured || [])
	values[node - 1] = row.slice(0, data.metrics.length).filter((_, k) => !data.metrics[k].missing);
const sampled = data.nodes.some(([, f, ns]) => ns && data.functions[f - 1].kind !== "wait");
const main = sampled ? -1 : metrics.findIndex(({ name }, k) =>
	/^(real-time$|overflow-)/.test(name) && values.some((row) => row[k]));
const unit = main < 0 ? "ns" : metrics[main].unit, timed = unit === "ns";
if (main >= 0) // samples of what is shown, where the profile knows
	for (const [node, ...row] of data.measured)
		counts[node - 1] = row[data.metrics.length + data.metrics.indexOf(metrics[main])] ?? counts[node - 1];
const number = (value, unit) => unit === "ns" ? (value / 1e9).toFixed(3) : value.toLocaleString("en");

// ---- the tree: node 0 is the root; callers come first

const nodes = [{ parent: -1, f: null, cpu: 0, wait: 0, path: 0, metric: metrics.map(() => 0), children: [], depth: -1 }];
data.nodes.forEach(([parent, f, ns], i) => {
	const wait = data.functions[f - 1].kind === "wait", own = main < 0 ? ns : values[i][main];
	nodes.push({ parent, f: f - 1, cpu: wait ? 0 : own, wait: wait ? own : 0, path: 0, own, count: counts[i], children: [],
		metric: [...values[i]], depth: nodes[parent].depth + 1 });
	nodes[parent].children.push(nodes.length - 1);
});
for (const [node, ns] of data.path || [])
	nodes[node].path = ns;
for (let i = nodes.length; --i > 0;) {
	nodes[nodes[i].parent].path += nodes[i].path;
	nodes[nodes[i].parent].cpu += nodes[i].cpu;
	nodes[nodes[i].parent].wait += nodes[i].wait;
	nodes[i].metric.forEach((value, k) => { nodes[nodes[i].parent].metric[k] += value; });
}
const measures = { both: (n) => n.cpu + n.wait, cpu: (n) => n.cpu, wait: (n) => n.wait, path: (n) => n.path };
const units = { both: unit, cpu: unit, wait: unit, path: "ns" };
metrics.forEach(({ name, unit, level }, k) => {
	if (level || k === main)
		return;
	measures[name] = (n) => n.metric[k];
	units[name] = unit;
	$("measure").append(element("option", { value: name, textContent: name }));
});
if (main >= 0)
	for (const [value, text] of [["both", ""], ["cpu", ", but for waits"], ["wait", " in waits"]])
		$("measure").querySelector(`[value=${value}]`).textContent = metrics[main].name + text;
const shown = (value) => amount(value, units[$("measure").value]);
let measure = measures.both, zoom = 0, search = "", chosen = null, at = 0;

const nameOf = (i) => data.functions[nodes[i].f].name;
const base = (path) => path.slice(path.lastIndexOf("/") + 1);
const placeOf = (fn) => [fn.file && fn.line ? `${base(fn.file)}:${fn.line}` : "", base(fn.binary)].filter(Boolean).join(" · ");
const isFound = (i) => chosen !== null ? nodes[i].f === chosen :
	search !== "" && nameOf(i).toLowerCase().includes(search);

/* The same binary always has the same colour, from yellow to red. */
const hues = new Map();
function colour(fn) {
	if (!hues.has(fn.binary))
		hues.set(fn.binary, 8 + (hues.size * 23) % 50);
	let shade = 0;
	for (const c of fn.name)
		shade = (shade * 31 + c.codePointAt(0)) % 97;
	return `hsl(${hues.get(fn.binary)} 78% ${64 + shade % 14}%)`;
}

// ---- the picture

function put(i, left, width, depth, above) {
	const fn = data.functions[nodes[i].f];
	const e = element("div", { textContent: width > 24 ? fn.name : "", tabIndex: -1,
		className: (fn.kind === "code" ? "" : fn.kind) + (isFound(i) ? " found" : "") + (above ? " above" : "") });
	Object.assign(e.style, { left: left + "px", width: width + "px", top: depth * ROW + "px" });
	if (fn.kind === "code" && !isFound(i))
		e.style.background = colour(fn);
	e.setAttribute("role", "treeitem");
	e.setAttribute("aria-label", tell(i));
	e.dataset.node = i;
	$("flames").append(e);
}

function tell(i) {
	const n = nodes[i], fn = data.functions[n.f], all = measure(nodes[0]);
	const parts = [`${fn.name}${placeOf(fn) ? ` (${placeOf(fn)})` : ""}: ${shown(measure(n))}, ${percent(measure(n), all)}`];
	if (n.cpu && main < 0)
		parts.push(`on a CPU ${seconds(n.cpu)}`);
	if (n.wait && main < 0)
		parts.push(`off it ${seconds(n.wait)}`);
	if (fn.kind === "code" && n.own)
		parts.push(`in it itself ${amount(n.own, unit)}`);
	if (n.path)
		parts.push(`on the critical path ${seconds(n.path)}, ${percent(n.path, nodes[0].path)} of it`);
	return parts.join("; ");
}

/* Rows grow downwards from the process: who calls stands above whom he calls. */
function draw() {
	const width = $("flames").clientWidth, path = [];
	let deepest = 0;

	$("flames").replaceChildren();
	for (let i = zoom; i > 0; i = nodes[i].parent)
		path.unshift(i);
	path.pop();
	path.forEach((i, depth) => put(i, 0, width, depth, true));
	const scale = width / (measure(nodes[zoom]) || 1);
	const open = [[zoom, 0]];
	while (open.length) {
		const [i, left] = open.pop(), wide = measure(nodes[i]) * scale;
		if (wide < NARROWEST)
			continue;
		if (i) {
			put(i, left, wide, nodes[i].depth, false);
			deepest = Math.max(deepest, nodes[i].depth + 1);
		}
		let from = left;
		for (const child of [...nodes[i].children].sort((a, b) => nameOf(a) < nameOf(b) ? -1 : 1)) {
			open.push([child, from]);
			from += measure(nodes[child]) * scale;
		}
	}
	$("flames").style.height = deepest * ROW + "px";
	$("back").disabled = zoom === 0;
	for (const e of $("flames").children)
		if (Number(e.dataset.node) === at || (!at && e === $("flames").firstChild))
			e.tabIndex = 0;
	let found = 0;
	nodes.forEach((n, i) => {
		let out = i && isFound(i);
		for (let up = n.parent; out && up > 0; up = nodes[up].parent)
			out = !isFound(up);
		found += out ? measure(n) : 0;
	});
	$("says").textContent = chosen !== null || search ? `found: ${shown(found)}, ${percent(found, measure(nodes[0]))}` : "";
}

function say(i) {
	$("says").textContent = tell(i);
	const list = data.wakes.filter((w) => w[0] === i).sort((a, b) => b[2] - a[2]).slice(0, 12);
	$("wakers").hidden = !list.length;
	$("wakers").querySelector("ul").replaceChildren(...list.map(([, waker, ns, count]) => {
		const stack = [];
		for (let k = waker; k > 0; k = nodes[k].parent)
			stack.push(nameOf(k));
		return element("li", { textContent: `${seconds(ns)} in ${plural(count, "wait")}: ` +
			(stack.length ? stack.join(" ← ") : "a thread of the program, whose stack was not taken") });
	}));
}

function focus(i) {
	at = i;
	const e = [...$("flames").children].find((x) => Number(x.dataset.node) === i);
	if (e)
		e.focus();
}

function zoomTo(i) {
	zoom = i;
	draw();
	if (i)
		say(i);
	else
		$("wakers").hidden = true;
}

const nodeOf = (event) => Number(event.target.dataset.node || 0);
$("flames").addEventListener("click", (event) => { if (nodeOf(event)) { zoomTo(nodeOf(event)); focus(zoom); } });
$("flames").addEventListener("mouseover", (event) => { if (nodeOf(event)) say(nodeOf(event)); });
$("flames").addEventListener("focusin", (event) => { if (nodeOf(event)) { at = nodeOf(event); say(at); } });
$("back").addEventListener("click", () => zoomTo(0));

/* Up to who calls, down to the widest of whom it calls, left and right among its siblings. */
function step(i, key) {
	const n = nodes[i], wide = (list) => [...list].sort((a, b) => measure(nodes[b]) - measure(nodes[a]));
	if (key === "ArrowUp")
		return n.parent > 0 ? n.parent : i;
	if (key === "ArrowDown")
		return wide(n.children)[0] || i;
	const row = [...nodes[n.parent].children].sort((a, b) => nameOf(a) < nameOf(b) ? -1 : 1);
	return row[row.indexOf(i) + (key === "ArrowRight" ? 1 : -1)] || i;
}

document.addEventListener("keydown", (event) => {
	if (event.target.tagName === "INPUT" || event.target.tagName === "SELECT") {
		if (event.key === "Escape")
			event.target.blur();
		return;
	}
	if (event.key === "Escape")
		zoomTo(0);
	else if (event.key === "/")
		$("text").focus();
	else if (/^Arrow/.test(event.key) && nodeOf(event))
		focus(step(nodeOf(event), event.key));
	else if (event.key === "Enter" && nodeOf(event)) {
		zoomTo(nodeOf(event));
		focus(zoom);
	} else
		return;
	event.preventDefault();
});
$("measure").addEventListener("input", () => {
	measure = measures[$("measure").value];
	if (!measure(nodes[zoom]))
		zoom = 0;
	draw();
});
$("text").addEventListener("input", () => {
	search = $("text").value.toLowerCase();
	chosen = null;
	draw();
});
$("filters").addEventListener("submit", (event) => event.preventDefault());
addEventListener("resize", draw);

// ---- the table

function rows() {
	const list = data.functions.map((fn, f) => ({ fn, f, self: 0, total: 0, wall: 0, path: 0 }));
	nodes.forEach((n, i) => {
		let again = false;
		if (!i)
			return;
		list[n.f].self += n.own;
		for (let up = n.parent; up > 0 && !again; up = nodes[up].parent)
			again = nodes[up].f === n.f;
		if (!again) {
			list[n.f].total += n.cpu;
			list[n.f].wall += n.cpu + n.wait;
			list[n.f].path += n.path;
		}
	});
	return list.filter((row) => row.fn.kind === "code").sort((a, b) => b.self - a.self || b.wall - a.wall);
}

function fillTable() {
	const cpu = nodes[0].cpu, cells = [...$("table").querySelectorAll("th")].slice(1);
	if (!timed)
		cells.forEach((th) => { th.textContent = th.textContent.replace(" s", ""); });
	if (main >= 0)
		$("table").caption.textContent = $("table").caption.textContent.replace("CPU time", metrics[main].name);
	const heads = cells.map((th) => th.textContent);
	$("table").querySelector("tbody").append(...rows().slice(0, SHOWN).map((row) => {
		const numbers = [number(row.self, unit), percent(row.self, cpu), number(row.total, unit), percent(row.total, cpu),
			number(row.wall, unit), percent(row.path, nodes[0].path)].map((text, k) => [heads[k], text]);
		const tr = element("tr", { tabIndex: 0 }, element("td", { className: "name" },
			element("b", { textContent: row.fn.name }), element("span", { className: "where", textContent: placeOf(row.fn) })),
		...numbers.map(([label, text]) => {
			const td = element("td", { textContent: text });
			td.dataset.label = label;
			return td;
		}));
		const choose = () => {
			chosen = chosen === row.f ? null : row.f;
			for (const other of tr.parentElement.children)
				other.setAttribute("aria-selected", other === tr && chosen !== null);
			draw();
		};
		tr.addEventListener("click", choose);
		tr.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(); });
		return tr;
	}));
}

/* Of each function, without what it calls. */
function fillMetrics() {
	const list = data.functions.map((fn) => ({ fn, own: metrics.map(() => 0) }));
	values.forEach((row, i) => row.forEach((value, k) => {
		const { own } = list[data.nodes[i][1] - 1];
		own[k] = metrics[k].level ? Math.max(own[k], value) : own[k] + value;
	}));
	$("metrics").hidden = !metrics.length;
	$("metrics").querySelector("tr").append(...metrics.map(({ name, unit }) =>
		element("th", { scope: "col", textContent: `${name} ${unit === "ns" ? "s" : unit}` })));
	$("metrics").querySelector("tbody").append(...list.filter((row) => row.own.some(Boolean))
		.sort((a, b) => b.own[0] - a.own[0]).slice(0, SHOWN).map(({ fn, own }) => element("tr", {},
			element("td", { className: "name" }, element("b", { textContent: fn.name }),
				element("span", { className: "where", textContent: placeOf(fn) })),
			...own.map((value, k) => element("td", { textContent: number(value, metrics[k].unit) })))));
}

const themes = ["as the system", "light", "dark"], systemDark = matchMedia("(prefers-color-scheme: dark)");
let theme = 0;
function setTheme() {
	document.documentElement.classList.toggle("dark", theme === 2 || (theme === 0 && systemDark.matches));
	$("theme").textContent = "Colours: " + themes[theme];
}
$("theme").addEventListener("click", () => { theme = (theme + 1) % 3; setTheme(); });
systemDark.addEventListener("change", setTheme);

document.title = `causal sample: ${data.command}`;
$("command").textContent = data.command;
$("summary").textContent = `${seconds(data.runtime)}; ${plural(data.threads, "thread")} in ` +
	`${plural(data.processes, "process", "es")}; ${main < 0 ? `${seconds(nodes[0].cpu)} on a CPU, ${seconds(nodes[0].wait)} in waits` :
		`CPU time was not sampled, ${metrics[main].name} was: ${amount(nodes[0].cpu + nodes[0].wait, unit)}`}; ` +
	`samples by ${data.backend}` + (nodes[0].path ? `; the critical path is known for ${seconds(nodes[0].path)}` : "");
$("measure").querySelector("[value=path]").disabled = !nodes[0].path;
$("losses").append(...(data.metrics || []).filter(({ missing }) => missing).map(({ name, missing }) =>
	element("li", { textContent: `no thread could get the event of ${name}: ${missing}` })));
$("losses").append(...data.losses.map((loss) => element("li", { textContent: `left out: ${loss.count} (${loss.why})` })));
$("losses").hidden = !$("losses").children.length;
setTheme();
fillTable();
fillMetrics();
draw();
})();
