#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes tables of docs/figures.md from results of benchmarks.

    figures.py ROOT                       # writes the tables anew
    figures.py ROOT --check               # writes nothing; a page that would change is an error
    figures.py ROOT --keep FILE.json...   # first puts results that benchmarks wrote into benchmarks/results/

Between the lines `<!-- figures: NAME REGEX -->` and `<!-- end -->` stand what benchmarks/results/NAME.json says of its machine, date,
commit and command, and a table of its cases that the expression finds, all without one: Tessera's time, its baselines', and the ratio
to the least of them. The results are Google Benchmark's, or those that benchmarks/written.py writes for scripts of peers (--json).
"""
import json
import pathlib
import re
import sys

FACTS = ("date", "commit", "processor", "num_cpus", "load_avg", "compiler", "mpi", "blas", "kokkos", "peers", "processes", "command")
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def keep(root, path):
    """Copies a result without what it says of folders, hosts and iterations."""
    result = json.loads(path.read_text())
    missing = [name for name in ("date", "commit", "processor", "command") if not result["context"].get(name)]
    if missing:
        sys.exit(f"{path} does not say its {' and '.join(missing)}; the benchmarks of this commit do")
    rows = [row for row in result["benchmarks"] if row.get("aggregate_name") == "median"] or result["benchmarks"]
    # What Google Benchmark measures in one process is the processor's time, which other programs prolong less; what it is told
    # (manual_time) is the slowest process's.
    told = any("/manual_time" in row["name"] for row in rows) or "cpu_time" not in rows[0]
    times = "real_time" if told else "cpu_time"
    kept = {"context": {name: result["context"][name] for name in FACTS if name in result["context"]} | {"clock": times},
            "benchmarks": [{"name": re.sub(r"(/iterations:\d+|/manual_time|/real_time|/repeats:\d+|_median)", "", row["name"]),
                            "time": float(f"{row[times]:.4g}"), "time_unit": row["time_unit"]} for row in rows]}
    (root / "benchmarks/results").mkdir(exist_ok=True)
    (root / "benchmarks/results" / path.name).write_text(json.dumps(kept, indent=1) + "\n")


def time_text(seconds):
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def cases_of(result, wanted):
    """Returns {case: {way: seconds}} in the order of the file."""
    cases = {}
    for row in result["benchmarks"]:
        case, _, way = row["name"].rpartition("/")
        if re.search(wanted, case):
            cases.setdefault(case.partition("/")[2] or case, {})[way] = row["time"] * SECONDS[row["time_unit"]]
    return cases


def section(root, name, wanted):
    path = root / f"benchmarks/results/{name}.json"
    if not path.exists():
        sys.exit(f"docs/figures.md wants {path.relative_to(root)}, which does not exist")
    result = json.loads(path.read_text())
    facts = result["context"]
    said = [f"{facts['date'][:10]}, commit {facts['commit']}: {facts['processor']}, {facts['num_cpus']} processors"]
    said += [("Kokkos on " if name == "kokkos" else "") + re.sub(r" *Version:\s*", " ", facts[name])
             for name in ("compiler", "mpi", "blas", "kokkos", "peers") if name in facts]
    if facts["clock"] == "cpu_time":
        said.append("processor time")
    if "load_avg" in facts:
        said.append(f"load {facts['load_avg'][0]:.1f} when it began")
    lines = ["; ".join(said) + ".", f"`{facts['command']}`", ""]
    rows = []
    for case, ways in cases_of(result, wanted).items():
        ours = {way: time for way, time in ways.items() if way.startswith("tessera")}
        others = {way: time for way, time in ways.items() if way not in ours and way != "roofline"}
        for way, time in ours.items():
            ratio = f"{time / min(others.values()):.2f}" if others else ""
            beside = ", ".join(f"{other} {time_text(t)}" for other, t in others.items())
            rows.append(f"| {case}{way[len('tessera'):]} | {time_text(time)} | {beside} | {ratio} |")
    if not rows:
        sys.exit(f"docs/figures.md wants cases {wanted} of {path.relative_to(root)}, which has none")
    return "\n".join(lines + ["| case | Tessera | baseline | ratio |", "|---|---|---|---|"] + rows)


def page(root, text):
    def made(match):
        return f"{match[1]}\n{section(root, match[2], match[3] or '.')}\n<!-- end -->"
    return re.sub(r"^(<!-- figures: ([\w.]+)(?: (\S+))? -->)$.*?^<!-- end -->$", made, text, flags=re.S | re.M)


def main():
    root, rest = pathlib.Path(sys.argv[1]), sys.argv[2:]
    if rest[:1] == ["--keep"]:
        for path in rest[1:]:
            keep(root, pathlib.Path(path))
    place = root / "docs/figures.md"
    text = place.read_text()
    if "--check" not in rest:
        place.write_text(page(root, text))
    elif page(root, text) != text:
        sys.exit("docs/figures.md is not what `python3 cmake/docs/figures.py .` makes of benchmarks/results/; run it")


main()
