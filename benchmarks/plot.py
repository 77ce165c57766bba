#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws the benchmarks' results, each case of Tessera's beside its baselines.

    python3 benchmarks/plot.py build/bench/results                       # a folder of them, or files
    python3 benchmarks/plot.py results/halo.2.json --out plots --svg

One picture for each file (more where it has many cases), beside it or in the folder --out: a row for each case, a point for each
way of doing it; behind the row Tessera's time, and that over the best baseline's. Needs matplotlib.
"""
import argparse
import glob
import json
import os
import re
import sys

MOST = 48  # cases of a picture

COLOURS = ["#1b6ca8", "#b5b5b5", "#d8b365", "#7fbf7b", "#998ec3", "#f1a340"]


def cases_of(path):
    """{case: [(way, seconds)]} of a file, in its order, and its context."""
    with open(path) as file:
        result = json.load(file)
    seconds = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    cases = {}
    for row in result["benchmarks"]:
        if row.get("run_type") == "aggregate" and row.get("aggregate_name") != "median":
            continue
        name = re.sub(r"(/iterations:\d+|/manual_time|_median)", "", row["name"])
        case, _, way = name.rpartition("/")
        cases.setdefault(case, []).append((way, row["real_time"] * seconds[row["time_unit"]]))
    return cases, result["context"]


def text_of(seconds):
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def draw(plt, title, cases, context, path):
    ways = []
    for rows in cases.values():
        ways += [way for way, _ in rows if way not in ways]
    ways = sorted(ways, key=lambda way: not way.startswith("tessera"))
    style = {"tessera": (COLOURS[0], "D", 55)}
    for way in ways:
        colour = COLOURS[1 + len(style) % (len(COLOURS) - 1)]
        style.setdefault(way, (colour, "D" if way.startswith("tessera") else "o", 40))
    figure, axes = plt.subplots(figsize=(11, 1.9 + 0.27 * len(cases)), layout="constrained")
    for at, (case, rows) in enumerate(cases.items()):
        times = dict(rows)
        axes.plot([min(times.values()), max(times.values())], [at, at], color="#dddddd", linewidth=3, zorder=1)
        for way, t in rows:
            colour, marker, size = style[way]
            axes.scatter(t, at, color=colour, marker=marker, s=size, zorder=3 if way == "tessera" else 2)
        others = [t for way, t in rows if not way.startswith("tessera")]
        ours = times.get("tessera")
        text = text_of(ours) if ours is not None else ""
        if ours is not None and others:
            text = f"{text:>8}   {ours / min(others):5.2f}"
        axes.text(1.01, at, text, transform=axes.get_yaxis_transform(), va="center", fontsize=8, family="monospace")
    for way in ways:
        colour, marker, size = style[way]
        axes.scatter([], [], color=colour, marker=marker, s=size, label=way)
    axes.text(1.01, -0.9, "tessera, over the best baseline", transform=axes.get_yaxis_transform(), va="center", fontsize=7, color="#555555")
    axes.set_yticks(range(len(cases)), [case.split("/", 1)[-1] for case in cases], fontsize=8)
    axes.set_ylim(len(cases) - 0.4, -1.3)
    axes.set_xscale("log")
    all_times = [t for rows in cases.values() for _, t in rows]
    axes.set_xlim(min(all_times) / 2, max(all_times) * 2)
    axes.set_xlabel("seconds a call, logarithmic; less is better", fontsize=9)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(fontsize=8, loc="outside lower center", ncols=4, frameon=False)
    facts = [f"{context.get('processes', '?')} process(es)", context.get("compiler", ""), context.get("mpi", "").replace("\t", " "),
             context.get("blas", ""), "commit " + context.get("commit", "?")]
    figure.suptitle(title, fontsize=13)
    axes.set_title(", ".join(f for f in facts if f), fontsize=7, color="#555555")
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(path)


def main():
    parser = argparse.ArgumentParser(description="Draws the benchmarks' results, each case beside its baselines.")
    parser.add_argument("results", nargs="+", help="files that the benchmarks wrote, or folders of them")
    parser.add_argument("--out", help="the folder of the pictures; by default each lies beside its file")
    parser.add_argument("--svg", action="store_true", help="SVG in place of PNG")
    options = parser.parse_args()
    files = []
    for path in options.results:
        files += sorted(glob.glob(os.path.join(path, "*.json"))) if os.path.isdir(path) else [path]
    if not files:
        sys.exit(f"plot.py: there is no .json file in {' '.join(options.results)}; run the benchmarks first (target bench)")
    try:
        import matplotlib
    except ImportError:
        sys.exit("plot.py: matplotlib is not installed; pip install matplotlib (or apt install python3-matplotlib), then run it again")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    for path in files:
        try:
            cases, context = cases_of(path)
        except (ValueError, KeyError, OSError) as error:
            sys.exit(f"plot.py: {path} is not what a benchmark writes ({error}); run it again")
        if not cases:
            print(f"{path} has no results; was its filter too narrow?")
            continue
        folder = options.out or os.path.dirname(path) or "."
        os.makedirs(folder, exist_ok=True)
        title = os.path.basename(path).rsplit(".json", 1)[0]
        names = list(cases)
        for first in range(0, len(names), MOST):
            page = "" if len(names) <= MOST else f".{first // MOST + 1}"
            some = {name: cases[name] for name in names[first:first + MOST]}
            draw(plt, title.split(".")[0].replace("_", " ") + (f", part {page[1:]}" if page else ""), some, context,
                 os.path.join(folder, title + page + (".svg" if options.svg else ".png")))


if __name__ == "__main__":
    main()
