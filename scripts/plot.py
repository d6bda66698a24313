#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draw what causal found: how much faster the program gets when a piece of code does.

Reads a directory written by causal (or its profile.json), and profiles of Coz: text (.coz)
and JSON lines (.jsonl). Draws one small picture a piece of code, the most rewarding first,
as PNG or SVG or in a window. PNG and windows need matplotlib; SVG and --text need nothing.
"""
import argparse
import json
import math
import os
import random
import re
import sys
from html import escape

T975 = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23]
COLOR = {"worth": "#1f66ad", "not-worth": "#7b858f", "not-enough-data": "#c27a1a"}
INK, FAINT, GRID = "#22272b", "#69737c", "#e3e7ea"


class PlotError(Exception):
    """Something the user can act on."""


class Series:
    """One piece of code as one progress point sees it. curve: (speedup, effect, low, high,
    experiments), percent, low and high None when unknown; sorted by speedup."""

    def __init__(self, name, point, kind, curve, **more):
        self.name, self.point, self.kind = name, point, kind
        self.curve = sorted(curve)
        self.file = more.get("file", "")
        self.function = more.get("function", "")
        self.verdict = more.get("verdict") or ""
        self.says = more.get("says") or self.verdict  # the same in words
        self.samples = more.get("samples")
        impact = more.get("impact")
        self.impact = area(self.curve) if impact is None else impact
        low = more.get("impact_low")
        # As causal ranks: what is not worth it by the lower end of its interval.
        self.rank = low if self.verdict == "not-worth" and low is not None else self.impact
        slope = more.get("slope")
        self.slope = least_squares(self.curve) if slope is None else slope
        self.experiments = sum(c[4] for c in self.curve)

    @property
    def best(self):
        return max((c[1] for c in self.curve), default=0.0)

    def fit(self):
        """R squared and standard deviation about the least-squares line (origin included)."""
        points = [(0.0, 0.0)] + [(c[0], c[1]) for c in self.curve]
        n = len(points)
        if n < 3:
            return None, None
        mx, my = sum(p for p, _ in points) / n, sum(v for _, v in points) / n
        xx = sum((p - mx) ** 2 for p, _ in points)
        xy = sum((p - mx) * (v - my) for p, v in points)
        yy = sum((v - my) ** 2 for _, v in points)
        rest = max(yy - xy * xy / xx, 0.0)
        return (1 - rest / yy if yy > 0 else None), math.sqrt(rest / (n - 2))


def area(curve):
    """Mean effect over speedups 0..100: lines through the points, flat beyond the last."""
    total = at = height = 0.0
    for p, effect, *_ in curve:
        total += (p - at) * (height + effect) / 2
        at, height = p, effect
    return (total + (100 - at) * height) / 100


def least_squares(curve):
    pp = sum(c[4] * c[0] * c[0] for c in curve)
    return sum(c[4] * c[0] * c[1] for c in curve) / pp if pp else 0.0


# ---- reading ---------------------------------------------------------------------------


def load(path):
    """Series of a profile, and what the profile says when there are none."""
    if os.path.isdir(path):
        for name in ("profile.json", "profile.coz", "profile.jsonl"):
            if os.path.exists(os.path.join(path, name)):
                return load(os.path.join(path, name))
        raise PlotError(f"{path} has no profile.json: name a directory that causal wrote")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError as error:
        raise PlotError(f"cannot read {path}: {error.strerror}") from error
    if not text.strip():
        raise PlotError(f"{path} is empty")
    if text.lstrip()[0] == "{":
        try:
            whole = json.loads(text)
        except ValueError:
            whole = None
        if whole is not None and whole.get("format") == "causal-profile":
            return from_profile(whole, path)
        return from_experiments(coz_lines(text, path), path)
    return from_experiments(coz_text(text, path), path)


def from_profile(profile, path):
    if profile.get("version") != 1:
        raise PlotError(f"{path} has version {profile.get('version')} of the format; "
                        "this program reads version 1")
    series = []
    for region in profile["regions"]:
        for progress in region["progress"]:
            curve = [(c["speedup"], c["effect"], c.get("low"), c.get("high"),
                      c.get("experiments", 1)) for c in progress["curve"]]
            if curve:
                series.append(Series(
                    region["name"], progress["point"], progress["kind"], curve,
                    file=region.get("file", ""), function=region.get("function", ""),
                    verdict=progress.get("verdict"), says=progress.get("says"),
                    samples=region.get("samples"), impact=progress.get("impact"),
                    impact_low=progress.get("impact_low"), slope=progress.get("slope")))
    why = ""
    if profile.get("cause"):
        why = f"{profile['cause']}; to do: {profile['remedy']}"
    return series, why


def number(record, key, path):
    try:
        return float(record[key])
    except (KeyError, ValueError, TypeError):
        raise PlotError(f"{path}: a record without a usable {key}: {record}") from None


def coz_text(text, path):
    """Records of Coz's text format as dictionaries, types as in its JSON lines."""
    for line in text.splitlines():
        words = line.rstrip("\r").split("\t")
        record = dict(w.split("=", 1) for w in words[1:] if "=" in w)
        record["type"] = words[0]
        if words[0] == "progress-point":  # older files
            record["type"] = "latency-point" if "arrivals" in record else "throughput-point"
        if words[0] not in ("startup", "experiment", "throughput-point", "latency-point",
                            "progress-point", "runtime", "samples", ""):
            raise PlotError(f"{path} is no profile that I know: it has a line "
                            f"{line[:40]!r}")
        yield record


def coz_lines(text, path):
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            if i + 1 == len(lines):
                return  # torn off when the program died
            raise PlotError(f"{path}:{i + 1} is not JSON") from None
        if record.get("type") == "run" and record.get("format") == "causal-run":
            raise PlotError(f"{path} is one run of causal; name its directory instead")
        yield record


def from_experiments(records, path):
    """Group (code, point) -> speedup -> [(cost, visits)], then estimate as Coz does, from
    sums, with intervals by resampling experiments."""
    groups, current = {}, None
    for record in records:
        kind = record.get("type")
        if kind == "experiment":
            current = (record.get("selected", "?"), number(record, "speedup", path) * 100,
                       number(record, "duration", path))
        elif kind in ("throughput-point", "latency-point") and current:
            name, speedup, duration = current
            if kind == "latency-point":
                visits = number(record, "arrivals", path)
                duration *= number(record, "difference", path)
            else:
                visits = number(record, "delta", path)
            if duration > 0 and visits > 0:
                key = (name, record.get("name", "?"), kind.split("-")[0])
                groups.setdefault(key, {}).setdefault(round(speedup, 4), []).append(
                    (duration, visits))
    return [s for s in (estimate(key, cells) for key, cells in groups.items()) if s], ""


def period(pairs):
    return sum(c for c, _ in pairs) / sum(v for _, v in pairs)


def estimate(key, cells):
    zeros = cells.get(0.0)
    if not zeros:
        return None  # nothing to compare with
    chance = random.Random(" ".join(key))
    curve = []
    for speedup, pairs in cells.items():
        if speedup == 0:
            continue
        effect = 100 * (1 - period(pairs) / period(zeros))
        low = high = None
        if len(pairs) > 1 and len(zeros) > 1:
            again = sorted(math.log(period(chance.choices(pairs, k=len(pairs)))
                                    / period(chance.choices(zeros, k=len(zeros))))
                           for _ in range(400))
            n = min(len(pairs), len(zeros))
            wide = (T975[n - 2] if n < 12 else 2.2 if n < 30 else 2.0) / 1.96
            wide *= math.sqrt(n / (n - 1))
            middle = math.log(1 - effect / 100)
            high = 100 * (1 - math.exp(middle + wide * (again[9] - middle)))
            low = 100 * (1 - math.exp(middle + wide * (again[389] - middle)))
        curve.append((speedup, effect, low, high, len(pairs)))
    name, point, kind = key
    return Series(name, point, kind, curve) if curve else None


# ---- choosing --------------------------------------------------------------------------


def choose(series, args):
    kept = []
    for s in series:
        if len(s.curve) < args.min_points:
            continue
        if args.expression and not any(
                re.search(args.expression, text) for text in (s.name, s.file, s.function)):
            continue
        if args.point and s.point != args.point:
            continue
        kept.append(s)
    order = {"worth": 0, "": 0, "not-worth": 1, "not-enough-data": 2}
    kept.sort(key=lambda s: (order.get(s.verdict, 2), -s.rank, s.name, s.point))
    return kept


# ---- text ------------------------------------------------------------------------------


def plain(text):
    """Names come from programs: nothing but printable characters reaches the terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def print_table(series, file=sys.stdout):
    rows = [("impact", "slope", "R2", "stddev", "max", "at", "exps", "verdict", "code", "point")]
    for s in series:
        r2, deviation = s.fit()
        at = max(s.curve, key=lambda c: c[1])[0]
        rows.append((f"{s.impact:.1f}", f"{s.slope:.2f}", "-" if r2 is None else f"{r2:.2f}",
                     "-" if deviation is None else f"{deviation:.1f}", f"{s.best:.1f}",
                     f"{at:g}", str(s.experiments), s.says or "-", plain(s.name),
                     plain(s.point)))
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for r in rows:
        cells = [c.rjust(w) if i < 7 else c.ljust(w) for i, (c, w) in enumerate(zip(r, widths))]
        print("  ".join(cells).rstrip(), file=file)


def validate(series, region, point, speedup, expected, tolerance):
    """As a test would: is the effect of REGION (regular expression) as expected?"""
    try:
        speedup, expected, tolerance = float(speedup), float(expected), float(tolerance)
    except ValueError:
        raise PlotError("--validate takes REGION POINT SPEEDUP EXPECTED TOLERANCE, the last "
                        "three numbers in percent") from None
    found = [(s, c) for s in series if re.search(region, s.name) and re.search(point, s.point)
             for c in s.curve if abs(c[0] - speedup) < 0.01]
    for s, c in found:
        good = abs(c[1] - expected) <= tolerance
        band = f" ({c[2]:.1f}..{c[3]:.1f})" if c[2] is not None else ""
        print(f"{'ok' if good else 'FAILED'}: {plain(s.name)}, {plain(s.point)}: at {speedup:g} % "
              f"the program gains {c[1]:.1f} %{band}, expected {expected:g} +/- {tolerance:g}")
        if not good:
            return 1
    if not found:
        print(f"FAILED: nothing is called {region!r} with point {point!r} at {speedup:g} %")
        return 1
    return 0


# ---- pictures: what both ways of drawing share -----------------------------------------


def shorten(text, most):
    text = plain(text)
    if len(text) <= most:
        return text
    if text.endswith(")") and 0 < text.find("(") <= most - 3:
        return text[:text.find("(")] + "(…)"  # the name says more than its parameters
    head = (most - 1) // 3
    return text[:head] + "…" + text[len(text) - (most - 1 - head):]


def subtitle(s):
    """What stands under a title, and how much the eye may trust it."""
    parts = [f"{s.point}" + ("" if s.kind == "throughput" else f" ({s.kind})"),
             s.says, f"impact {s.impact:.1f}", f"{s.experiments} experiments"]
    return " · ".join(p for p in parts if p)


def color(s):
    return COLOR.get(s.verdict, COLOR["worth"] if s.impact >= 1 else COLOR["not-worth"])


def y_range(series):
    """One range for all, so that heights compare; a wild interval is cut, not a curve."""
    tops = [c[1] for s in series for c in s.curve] + [0.0]
    low, high = min(tops), max(tops)
    span = max(high - low, 10.0)
    bands = [v for s in series for c in s.curve for v in c[2:4] if v is not None]
    low = max(min(bands + [low]), low - 0.25 * span)
    high = min(max(bands + [high]), high + 0.25 * span)
    pad = 0.06 * max(high - low, 10.0)
    return max(low - pad, -100.0), min(high + pad, 105.0)


def x_end(series):
    """One end for all: no half of a picture is empty because nothing was measured there."""
    most = max(c[0] for s in series for c in s.curve)
    return next((end for end in (10, 20, 50, 60, 80) if most <= end), 100)


def steps(low, high, most=6):
    """Round numbers within a range."""
    for step in (1, 2, 5, 10, 20, 25, 50, 100, 200, 500):
        first = math.ceil(low / step) * step
        ticks = [first + i * step for i in range(int((high - first) / step) + 1)]
        if len(ticks) <= most:
            return ticks
    return [0]


def shape(count):
    columns = 1 if count == 1 else 2 if count in (2, 4) else 3
    return columns, -(-count // columns)


NOTE = "Program speedup (%) against speedup of the code (%). Bands: 95 % intervals. " \
       "Best first."


# ---- SVG without any library -----------------------------------------------------------


def draw_svg(series, title, path):
    columns, rows = shape(len(series))
    wide, tall, left, top = 340, 250, 46, 52
    width, height = max(columns * wide + 28, 560), rows * tall + 72
    low, high, end = *y_range(series), x_end(series)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" font-family="DejaVu Sans, Helvetica, Arial, '
           f'sans-serif" font-size="11"><title>{escape(plain(title))}</title>'
           f'<rect width="100%" height="100%" fill="#ffffff"/>',
           svg_text(24, 30, shorten(title, width // 10), 16, INK, weight="bold"),
           svg_text(24, 50, NOTE, 11, FAINT)]
    for i, s in enumerate(series):
        x0 = 16 + i % columns * wide + left
        y0 = 66 + i // columns * tall + top
        out += svg_panel(s, i + 1, x0, y0, wide - left - 16, tall - top - 34, low, high, end)
    out.append("</svg>\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out))


def svg_text(x, y, text, size, fill, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" '
            f'text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>')


def svg_panel(s, rank, x0, y0, w, h, low, high, end):
    def at(p, v):
        v = min(max(v, low), high)
        return x0 + w * p / end, y0 + h * (high - v) / (high - low)

    out = [svg_text(x0 - 30, y0 - 26, f"{rank}. {shorten(s.name, 38)}", 13, INK, weight="bold"),
           svg_text(x0 - 30, y0 - 10, shorten(subtitle(s), 56), 10.5, FAINT)]
    for p in steps(0, end):
        x, _ = at(p, 0)
        out.append(f'<path d="M{x:.1f} {y0}v{h}" stroke="{GRID}"/>')
        out.append(svg_text(x, y0 + h + 16, f"{p} %" if p == end else str(p), 10, FAINT, "middle"))
    for v in steps(low, high):
        _, y = at(0, v)
        tone = "#98a2ab" if v == 0 else GRID
        out.append(f'<path d="M{x0} {y:.1f}h{w}" stroke="{tone}"/>')
        label = f"{v:g} %" if v == steps(low, high)[-1] else f"{v:g}"
        out.append(svg_text(x0 - 6, y + 3.5, label, 10, FAINT, "end"))
    band = [c for c in s.curve if c[2] is not None]
    if band:
        edge = [at(0, 0)] + [at(c[0], c[3]) for c in band]
        edge += [at(c[0], c[2]) for c in reversed(band)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge)
        out.append(f'<polygon points="{points}" fill="{color(s)}" fill-opacity="0.16"/>')
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in
                    [at(0, 0)] + [at(c[0], c[1]) for c in s.curve])
    out.append(f'<polyline points="{line}" fill="none" stroke="{color(s)}" stroke-width="2" '
               'stroke-linejoin="round"/>')
    for c in s.curve:
        x, y = at(c[0], c[1])
        tip = f"{c[0]:g} %: {c[1]:.1f} %"
        if c[2] is not None:
            tip += f" ({c[2]:.1f} to {c[3]:.1f})"
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color(s)}" stroke="#ffffff">'
                   f"<title>{escape(tip)}, {c[4]} experiments</title></circle>")
    return out


# ---- matplotlib ------------------------------------------------------------------------


def draw_matplotlib(plt, series, title):
    columns, rows = shape(len(series))
    width, height = max(3.4 * columns + 0.3, 5.6), 2.6 * rows + 0.95
    figure, axes = plt.subplots(rows, columns, squeeze=False, figsize=(width, height),
                                sharey=True)
    low, high, end = *y_range(series), x_end(series)
    for i, axis in enumerate(axes.flat):
        if i < len(series):
            draw_panel(axis, series[i], i + 1, low, high, end)
        else:
            axis.axis("off")
    figure.text(0.24 / width, 1 - 0.3 / height, plain_math(shorten(title, int(width * 10))),
                fontsize=12.5, fontweight="bold", color=INK)
    figure.text(0.24 / width, 1 - 0.52 / height, NOTE, fontsize=8.5, color=FAINT)
    figure.subplots_adjust(left=0.52 / width, right=1 - 0.2 / width, bottom=0.36 / height,
                           top=1 - 1.16 / height, wspace=0.16, hspace=0.52)
    return figure


def plain_math(text):
    return text.replace("$", r"\$")  # else matplotlib sets it as a formula


def draw_panel(axis, s, rank, low, high, end):
    band = [c for c in s.curve if c[2] is not None]
    if band:
        axis.fill_between([0] + [c[0] for c in band], [0] + [c[2] for c in band],
                          [0] + [c[3] for c in band], color=color(s), alpha=0.16, linewidth=0)
    axis.axhline(0, color="#98a2ab", linewidth=0.9)
    axis.plot([0] + [c[0] for c in s.curve], [0] + [c[1] for c in s.curve], color=color(s),
              linewidth=1.8, solid_joinstyle="round", clip_on=True)
    axis.plot([c[0] for c in s.curve], [c[1] for c in s.curve], "o", color=color(s),
              markersize=4.5, markeredgecolor="white", markeredgewidth=0.7)
    axis.set_xlim(0, 1.02 * end)
    axis.set_ylim(low, high)
    axis.set_xticks(steps(0, end))
    axis.set_xticklabels([f"{p} %" if p == end else str(p) for p in steps(0, end)])
    ticks = steps(low, high)
    axis.set_yticks(ticks)
    axis.set_yticklabels([f"{t:g} %" if t == ticks[-1] else f"{t:g}" for t in ticks])
    axis.grid(True, color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=8, colors=FAINT, length=0, labelleft=True)
    for spine in axis.spines.values():
        spine.set_visible(False)
    axis.text(-0.1, 1.155, plain_math(f"{rank}. {shorten(s.name, 36)}"), transform=axis.transAxes,
              fontsize=10, fontweight="bold", color=INK)
    axis.text(-0.1, 1.05, plain_math(shorten(subtitle(s), 58)), transform=axis.transAxes,
              fontsize=8, color=FAINT)


def matplotlib_or_none(window):
    try:
        import matplotlib  # pylint: disable=import-outside-toplevel
        if not window:
            matplotlib.use("Agg")
        from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    except Exception:  # absent, or broken: both mean that it cannot be used
        return None
    return pyplot


def draw(series, args):
    """To a file, a window, or, without a display, to a file beside the input."""
    source = os.path.abspath(args.input)
    base = os.path.join(source, "profile") if os.path.isdir(source) else os.path.splitext(source)[0]
    name = os.path.basename(source.rstrip("/"))
    if name.startswith("profile."):
        name = os.path.basename(os.path.dirname(source))
    title = args.title or name
    path = args.output
    display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    plt = matplotlib_or_none(window=not path and display)
    if not path and not (plt and display):
        path = base + (".png" if plt else ".svg")
        reason = "no display" if plt else "matplotlib is not installed"
        print(f"{reason}: writing {path}", file=sys.stderr)
    try:
        if not path:
            draw_matplotlib(plt, series, title)
            plt.show()
        elif path.lower().endswith(".svg"):
            draw_svg(series, title, path)
        elif path.lower().endswith((".png", ".pdf")):
            if not plt:
                raise PlotError(f"PNG and PDF need matplotlib, which {sys.executable} cannot load: "
                                "apt-get install python3-matplotlib and run plot.py with "
                                f"/usr/bin/python3, or {sys.executable} -m pip install matplotlib; "
                                "-o NAME.svg works without")
            draw_matplotlib(plt, series, title).savefig(path, dpi=150)
        else:
            raise PlotError(f"{path}: the name must end in .png, .svg or .pdf")
    except OSError as error:
        raise PlotError(f"cannot write {path}: {error.strerror}") from error
    if path:
        print(path)


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0],
                                     epilog="Also reads Coz's .coz and .jsonl files.")
    parser.add_argument("input", help="directory of causal, profile.json, or a profile of Coz")
    parser.add_argument("-o", "--output", metavar="FILE", help=".png, .svg or .pdf")
    parser.add_argument("-t", "--text", action="store_true", help="print a table, draw nothing")
    parser.add_argument("-e", "--expression", metavar="REGEX",
                        help="only code whose name, file or function matches")
    parser.add_argument("--point", metavar="NAME", help="only this progress point")
    parser.add_argument("--min-points", type=int, default=1, metavar="N",
                        help="only code with at least N speedups")
    parser.add_argument("--top", type=int, metavar="N",
                        help="only the N best (pictures: 12 if not given; 0: all)")
    parser.add_argument("--title", help="instead of the directory's name")
    parser.add_argument("--validate", nargs=5, metavar=("REGION", "POINT", "SPEEDUP", "EXPECTED",
                                                        "TOLERANCE"),
                        help="exit 0 if the effect is as expected, else 1")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse(argv)
    try:
        try:
            series, why = load(args.input)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise PlotError(f"{args.input} is damaged or no profile: {error!r}") from error
        chosen = choose(series, args)
        if args.validate:
            return validate(chosen, *args.validate)
        if not chosen:
            if series:
                why = "nothing matches -e, --point and --min-points"
            raise PlotError(f"{args.input} has nothing to show"
                            + (f": {why}" if why else ": it needs experiments at 0 % and others"))
        if args.text:
            print_table(chosen[:args.top or None])
        else:
            draw(chosen[:(12 if args.top is None else args.top) or None], args)
    except re.error as error:
        print(f"plot.py: bad regular expression: {error}", file=sys.stderr)
        return 2
    except PlotError as error:
        print(f"plot.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
