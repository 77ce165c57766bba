#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""house.py ROOT [--check]: draws the rooms of include/tessera/ and what each includes, as docs/inside/house.svg.

A room stands above all rooms that its headers include. A line leads to each room that it includes and that no other room between
them includes as well. With --check nothing is written, and a drawing that would change is an error.
"""
import html
import pathlib
import re
import sys
import textwrap

WIDTH, BOX, ROW, HIGH = 856, 202, 104, 74
OUTSIDE = {"Kokkos": r"Kokkos_", "MPI": r"mpi\.h", "BLAS, oneDNN": r"(?:cblas\.h|dnnl)", "fmt": r"fmt/"}


def read(root):
    """Returns {room: (rooms that it includes, what it includes from outside)}."""
    rooms = {}
    folder = root / "include/tessera"
    for path in sorted(folder.rglob("*.hpp")):
        place = path.relative_to(folder).parts
        if len(place) < 2:
            continue
        within, outside = rooms.setdefault(place[0], (set(), set()))
        text = path.read_text()
        within.update(set(re.findall(r"^ *#include <tessera/(\w+)/", text, flags=re.M)) - {place[0]})
        outside.update(name for name, header in OUTSIDE.items() if re.search(rf"^ *# *include [<\"]{header}", text, flags=re.M))
    return rooms


def all_below(rooms, room):
    return {room}.union(*(all_below(rooms, other) for other in rooms[room][0]))


def level_of(rooms, room):
    return max((1 + level_of(rooms, other) for other in rooms[room][0]), default=0)


def draw(root):
    rooms = read(root)
    holds = dict(re.findall(r"^\| (\w+) \| (.*) \|$", (root / "docs/capabilities.md").read_text().split("## What is where")[1], flags=re.M))
    below = {room: all_below(rooms, room) for room in rooms}
    plain = {room for room in rooms if not any(rooms[other][1] & {"Kokkos", "MPI"} for other in below[room])}
    levels = {}
    for room in rooms:
        levels.setdefault(level_of(rooms, room), []).append(room)
    top = max(levels)
    place = {}
    for level, names in levels.items():
        names.sort(key=lambda room: (room not in plain, -len(below[room]), room))
        for i, room in enumerate(names):
            place[room] = (WIDTH * (2 * i + 1) / (2 * len(names)), (top - level) * ROW + 8)
    lines, boxes = [], []
    for room, (within, outside) in rooms.items():
        x, y = place[room]
        for other in sorted(within):
            if any(other in below[between] for between in within - {other}):
                continue
            to, down = place[other]
            if down - y > ROW and to != x:  # past a room: from the side
                side = x + (BOX / 2 if to > x else -BOX / 2)
                lines.append(f'<path d="M{side:.0f} {y + HIGH / 2:.0f} C{to:.0f} {y + HIGH / 2:.0f} {to:.0f} {y + HIGH} {to:.0f} {down - 2}" '
                             'marker-end="url(#end)"/>')
                continue
            aside = max(-BOX / 2 + 10, min(BOX / 2 - 10, (to - x) / 2))
            a, b = x + aside, to - aside
            lines.append(f'<path d="M{a:.0f} {y + HIGH} C{a:.0f} {y + HIGH + 16} {b:.0f} {down - 18} {b:.0f} {down - 2}" marker-end="url(#end)"/>')
        text = [f'<text x="{x:.0f}" y="{y + 21}" class="name">{room}</text>']
        for i, line in enumerate(textwrap.wrap(holds[room].split(";")[0].replace("`", ""), 32, max_lines=2, placeholder=" …")):
            text.append(f'<text x="{x:.0f}" y="{y + 38 + 13 * i}">{html.escape(line)}</text>')
        text.append(f'<text x="{x:.0f}" y="{y + 67}" class="needs">{", ".join(sorted(outside))}</text>')
        kind = "plain" if room in plain else "other"
        boxes.append(f'<rect x="{x - BOX / 2:.0f}" y="{y}" width="{BOX}" height="{HIGH}" rx="6" class="{kind}"/>\n' + "\n".join(text))
    high = (top + 1) * ROW
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}" width="{WIDTH}" height="{high}" role="img">
<title>The rooms of Tessera: a room stands above those that it includes</title>
<style>
text {{ font: 11px sans-serif; text-anchor: middle; fill: #333333; }}
.name {{ font: bold 15px monospace; fill: #111111; }}
.needs {{ font-size: 10px; fill: #666666; }}
.plain {{ fill: #e0f2ee; stroke: #00796b; stroke-width: 1.5; }}
.other {{ fill: #fff3dc; stroke: #b26a00; stroke-width: 1.5; }}
path {{ fill: none; stroke: #888888; stroke-width: 1.6; }}
marker path {{ fill: #888888; stroke: none; }}
</style>
<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
{chr(10).join(lines)}
{chr(10).join(boxes)}
</svg>
"""


root = pathlib.Path(sys.argv[1])
made, place = draw(root), root / "docs/inside/house.svg"
if "--check" not in sys.argv:
    place.parent.mkdir(exist_ok=True)
    place.write_text(made)
elif not place.exists() or place.read_text() != made:
    sys.exit("docs/inside/house.svg is not what `python3 cmake/docs/house.py .` draws; run it")
