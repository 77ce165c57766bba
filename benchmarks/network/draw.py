#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws what `papers --json FILE` wrote.

    python3 benchmarks/network/draw.py papers.json docs/how-to      # scale_collectives.svg, scale_experts.svg and scale_peak.svg there

The first has GShard's figure 9: an all-reduce and an all-to-all of as much on each core, both axes logarithmic, beside the lines that
the paper gives them (constant, and the root of the cores). The second has its figure 8: of what the time of two layers is made, beside
the shares of communication that the paper measured. The third has the blog's table: how much of its devices' peak a step reaches.
"""
import json
import math
import pathlib
import re
import sys

COLOURS = {"all-reduce": "#1b6ca8", "all-to-all": "#d95f02"}
PARTS = {"Transformer layer and attention": "#9ecae1", "experts": "#4292c6", "to buffers and back": "#c7c7c7", "gate": "#7f7f7f",
         "between cores": "#d95f02"}
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 360, 70, 40, 50


def text(x, y, words, anchor="middle", size=13, colour="#333333"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{words}</text>'


def picture(title, parts):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"'
                      ' font-family="sans-serif">', f"<title>{title}</title>", '<rect width="100%" height="100%" fill="white"/>',
                      text(WIDTH / 2, 22, title, size=15), *parts, "</svg>", ""])


def collectives(rows):
    points = {}
    for row in rows:
        if found := re.fullmatch(r"figure 9, (all-\w+(?:-\w+)?) of 8 MiB, (\d+) cores", row["of the papers"]):
            points.setdefault(found[1], []).append((int(found[2]), row["model"]))
    right, low, high = WIDTH - 130, 0.1, 4.0
    least, most = (f(c for line in points.values() for c, _ in line) for f in (min, max))

    def place(cores, ms):
        return (LEFT + (right - LEFT) * math.log(cores / least) / math.log(most / least),
                HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * math.log(ms / low) / math.log(high / low))

    parts = []
    for ms in (0.1, 0.2, 0.5, 1, 2, 4):
        _, y = place(least, ms)
        parts += [f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e5e5"/>', text(LEFT - 8, y + 4, f"{ms:g} ms", "end")]
    for cores, _ in points["all-reduce"]:
        x, _ = place(cores, low)
        parts.append(text(x, HEIGHT - BOTTOM + 20, str(cores)))
    parts.append(text((LEFT + right) / 2, HEIGHT - 10, "cores of TPU v3"))
    for name, line in points.items():
        colour, power = COLOURS[name], 0.5 if name == "all-to-all" else 0
        ends = [place(cores, line[-1][1] * (cores / line[-1][0]) ** power) for cores in (least, most)]
        parts.append('<polyline points="{}" fill="none" stroke="{}" stroke-dasharray="5 5"/>'.format(
            " ".join(f"{x:.1f},{y:.1f}" for x, y in ends), colour))
        parts.append('<polyline points="{}" fill="none" stroke="{}" stroke-width="2"/>'.format(
            " ".join("{:.1f},{:.1f}".format(*place(*p)) for p in line), colour))
        parts += ['<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="{}"/>'.format(*place(*p), colour) for p in line]
        x, y = place(*line[-1])
        parts += [text(x + 10, y + 1, name, "start", colour=colour),
                  text(x + 10, y + 17, "dashed: " + ("root" if power else "constant"), "start", 11, colour)]
    return picture("8 MiB on each core: simulated, and the paper's rule", parts)


def experts(rows):
    bars, paper = {}, {row["of the papers"]: row["paper"] for row in rows}
    for row in rows:
        if found := re.fullmatch(r"figure 8, (\d+) cores, (.+)", row["of the papers"]):
            bars.setdefault(int(found[1]), {})[found[2]] = row["model"]
    right, most = WIDTH - 250, max(sum(parts.values()) for parts in bars.values()) * 1.15
    scale, step = (HEIGHT - BOTTOM - TOP) / most, (right - LEFT) / len(bars)
    parts = []
    for ms in range(0, int(most) + 1, 2):
        y = HEIGHT - BOTTOM - ms * scale
        parts += [f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e5e5"/>', text(LEFT - 8, y + 4, f"{ms} ms", "end")]
    for i, (cores, bar) in enumerate(bars.items()):
        x, y = LEFT + step * (i + 0.2), HEIGHT - BOTTOM
        for part, colour in PARTS.items():
            y -= bar[part] * scale
            parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{0.6 * step:.1f}" height="{bar[part] * scale:.1f}" fill="{colour}"/>')
        share = f"{100 * bar['between cores'] / sum(bar.values()):.0f} %"
        measured = paper.get(f"figure 8, dispatch and combine, {cores:,} cores")
        parts += [text(x + 0.3 * step, y - 6, share + (f" ({measured:g} %)" if measured else ""), size=12),
                  text(x + 0.3 * step, HEIGHT - BOTTOM + 20, str(cores))]
    parts.append(text((LEFT + right) / 2, HEIGHT - 10, "cores of TPU v3, and experts"))
    for i, (part, colour) in enumerate(reversed(PARTS.items())):
        parts += [f'<rect x="{right + 16}" y="{TOP + 24 * i}" width="14" height="14" fill="{colour}"/>',
                  text(right + 36, TOP + 12 + 24 * i, part, "start", 12)]
    parts.append(text(right + 16, TOP + 24 * len(PARTS) + 16, "in brackets: measured in the paper", "start", 11))
    return picture("Two layers forwards: simulated, with the share between cores", parts)


def peak(rows):
    bars = {}
    for row in rows:
        if found := re.fullmatch(r"blog, ([\w-]+), (?!the same).*of peak", row["of the papers"]):
            bars[found[1]] = row["model"], row["paper"]
    right, colours = WIDTH - 130, (COLOURS["all-reduce"], "#c7c7c7")
    scale, step = (HEIGHT - BOTTOM - TOP) / 70, (right - LEFT) / len(bars)
    parts = []
    for percent in range(0, 71, 10):
        y = HEIGHT - BOTTOM - percent * scale
        parts += [f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e5e5"/>', text(LEFT - 8, y + 4, f"{percent} %", "end")]
    for i, (model, pair) in enumerate(bars.items()):
        for k, (percent, colour) in enumerate(zip(pair, colours)):
            x, y = LEFT + step * (i + 0.15 + 0.35 * k), HEIGHT - BOTTOM - percent * scale
            parts += [f'<rect x="{x:.1f}" y="{y:.1f}" width="{0.35 * step:.1f}" height="{percent * scale:.1f}" fill="{colour}"/>',
                      text(x + 0.175 * step, y - 6, f"{percent:.3g} %", size=12)]
        parts.append(text(LEFT + step * (i + 0.5), HEIGHT - BOTTOM + 20, model))
    for i, (words, colour) in enumerate(zip(("simulated", "the blog's"), colours)):
        parts += [f'<rect x="{right + 16}" y="{TOP + 24 * i}" width="14" height="14" fill="{colour}"/>',
                  text(right + 36, TOP + 12 + 24 * i, words, "start", 12)]
    return picture("How much of the devices' peak a step of training reaches", parts)


if len(sys.argv) != 3:
    sys.exit(__doc__)
made = json.loads(pathlib.Path(sys.argv[1]).read_text())["rows"]
for name, draw in (("scale_collectives", collectives), ("scale_experts", experts), ("scale_peak", peak)):
    (pathlib.Path(sys.argv[2]) / f"{name}.svg").write_text(draw(made))
