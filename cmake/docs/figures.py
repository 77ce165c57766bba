#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes tables of docs/figures.md from results of benchmarks.

    figures.py ROOT                       # writes the tables anew
    figures.py ROOT --check               # writes nothing; a page that would change is an error
    figures.py ROOT --keep FILE.json...   # first puts results that benchmarks wrote into benchmarks/results/

Between the lines `<!-- figures: NAME REGEX -->` and `<!-- end -->` stand what benchmarks/results/NAME.json says of its machine, date,
commit and command, and a table of its cases that the expression finds, all without one: Tessera's time, its baselines', and the ratio
to the least of them, and what else the benchmark counts. The results are Google Benchmark's, or those that benchmarks/written.py writes for
scripts of peers (--json).

Every section of the page, and every table, has either such lines or, above it, one that says what its figures, which no file has, are from:

    Measured earlier: 2026-11-20, commit 4b8b79d; processor and libraries; `command`.

A section or a table with neither, and a result that no table shows, are errors.
"""
import json
import pathlib
import re
import sys

FACTS = ("date", "commit", "processor", "num_cpus", "load_avg", "compiler", "mpi", "blas", "kokkos", "peers", "processes", "command")
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
BLOCK = r"^(<!-- figures: ([\w.]+)(?: ([^\n]+?))? -->)$.*?^<!-- end -->$"
EARLIER = r"Measured earlier: \d{4}-\d\d-\d\d, commit [0-9a-f]{7}; \S.*; `.+`\."
GOOGLE = ("family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations", "real_time", "cpu_time")


def counted_in(row):
    """Returns the numbers of a result that the benchmark itself has named."""
    return {name: float(f"{value:.6g}") for name, value in row.items() if isinstance(value, (int, float)) and name not in GOOGLE}


def keep(root, path):
    """Copies a result without what it says of folders, hosts and iterations."""
    result = json.loads(path.read_text())
    missing = [name for name in ("date", "commit", "processor", "command") if not result["context"].get(name)]
    if missing:
        sys.exit(f"{path} does not say its {' and '.join(missing)}; the benchmarks of this commit do")
    rows = [row for row in result["benchmarks"] if row.get("aggregate_name") == "median"] or result["benchmarks"]
    # What Google Benchmark measures in one process is the processor's time, which other programs prolong less; what it is told
    # (manual_time) is the slowest process's, by the clock unless the benchmark says otherwise.
    told = any("/manual_time" in row["name"] for row in rows) or "cpu_time" not in rows[0]
    times = "real_time" if told else "cpu_time"
    clock = "cpu_time" if result["context"].get("turns") == "processor time" else times
    kept = {"context": {name: result["context"][name] for name in FACTS if name in result["context"]} | {"clock": clock},
            "benchmarks": [{"name": re.sub(r"(/iterations:\d+|/manual_time|/real_time|/repeats:\d+|_median)", "", row["name"]),
                            "time": float(f"{row[times]:.4g}"), "time_unit": row["time_unit"]} | counted_in(row) for row in rows]}
    (root / "benchmarks/results").mkdir(exist_ok=True)
    (root / "benchmarks/results" / path.name).write_text(json.dumps(kept, indent=1) + "\n")


def time_text(seconds):
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def number_text(number):
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def cases_of(result, wanted):
    """Returns {case: {way: seconds}} in the order of the file, and {case: {fact: number}} of what was counted beside."""
    cases, facts = {}, {}
    for row in result["benchmarks"]:
        case, _, way = row["name"].rpartition("/")
        if re.search(wanted, case):
            cases.setdefault(case, {})[way] = row["time"] * SECONDS[row["time_unit"]]
            facts.setdefault(case, {}).update((k, v) for k, v in row.items() if k not in ("name", "time", "time_unit"))
    return cases, facts


def section(root, name, wanted):
    path = root / f"benchmarks/results/{name}.json"
    if not path.exists():
        sys.exit(f"docs/figures.md wants {path.relative_to(root)}, which does not exist")
    result = json.loads(path.read_text())
    context = result["context"]
    cases, facts = cases_of(result, wanted)
    if not cases:
        sys.exit(f"docs/figures.md wants cases {wanted} of {path.relative_to(root)}, which has none")
    modelled = {case.startswith("modelled/") for case in cases}
    if len(modelled) > 1:
        sys.exit(f"docs/figures.md has one table of modelled and of measured cases of {path.relative_to(root)}")
    said = [f"From `{path.relative_to(root)}`: {context['date'][:10]}, commit {context['commit']}"]
    if True in modelled:
        said.append("modelled by the planner, nothing was run")
    else:
        said.append(f"{context['processor']}, {context['num_cpus']} processors")
        said += [("Kokkos on " if name == "kokkos" else "") + re.sub(r" *Version:\s*", " ", context[name])
                 for name in ("compiler", "mpi", "blas", "kokkos", "peers") if name in context]
        if context["clock"] == "cpu_time":
            said.append("processor time")
        if "load_avg" in context:
            said.append(f"load {context['load_avg'][0]:.1f} when it began")
    lines = ["; ".join(said) + f"; `{context['command']}`.", ""]
    counted = list(dict.fromkeys(fact for numbers in facts.values() for fact in numbers))
    rows = []
    for case, ways in cases.items():
        ours = {way: time for way, time in ways.items() if way.startswith("tessera")}
        others = {way: time for way, time in ways.items() if way not in ours and way != "roofline"}
        for way, time in ours.items():
            ratio = f"{time / min(others.values()):.2f}" if others else ""
            beside = ", ".join(f"{other} {time_text(t)}" for other, t in others.items())
            more = [number_text(facts[case][fact]) if fact in facts[case] else "" for fact in counted]
            rows.append([(case.partition("/")[2] or case) + way[len("tessera"):], time_text(time), beside, ratio, *more])
    head = ["case", "Tessera, modelled" if True in modelled else "Tessera", "baseline", "ratio", *counted]
    kept = [i for i in range(len(head)) if i < 2 or any(row[i] for row in rows)]  # without columns in which nothing stands
    table = ["| " + " | ".join(row[i] for i in kept) + " |" for row in [head, *rows]]
    return "\n".join(lines + [table[0], "|" + "---|" * len(kept), *table[1:]])


def page(root, text):
    def made(match):
        return f"{match[1]}\n{section(root, match[2], match[3] or '.')}\n<!-- end -->"
    return re.sub(BLOCK, made, text, flags=re.S | re.M)


def faults(root, text):
    """Returns what the page shows without saying where it is from, and results that it does not show."""
    found = []
    for part in re.split(r"^(?=## )", text, flags=re.M)[1:]:
        said = re.sub(BLOCK, "From", part, flags=re.S | re.M)
        known, any_known = False, False
        for line in said.splitlines():
            known = known or line == "From" or bool(re.fullmatch(EARLIER, line))
            any_known = any_known or known
            if line.startswith("|---"):
                if not known:
                    found.append(f"a table under \"{part.splitlines()[0][3:]}\" without its machine, date and command")
                known = False
        if not any_known:
            found.append(f"figures under \"{part.splitlines()[0][3:]}\" without their machine, date and command")
    shown = {match[1] for match in re.findall(BLOCK, text, flags=re.S | re.M)}
    found += [f"no table of {path.relative_to(root)}" for path in sorted((root / "benchmarks/results").glob("*.json")) if path.stem not in shown]
    return found


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
    if wrong := faults(root, text):
        sys.exit("docs/figures.md does not keep what cmake/docs/figures.py asks of it:\n" + "\n".join(wrong))


main()
