#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes tables of docs/figures.md, and ratios that documents quote, from results of benchmarks.

    figures.py ROOT                       # writes the tables anew
    figures.py ROOT --check               # writes nothing; a page that would change is an error
    figures.py ROOT --keep FILE.json...   # first puts results that benchmarks wrote into benchmarks/results/

Between the lines `<!-- figures: NAME REGEX -->` and `<!-- end -->` stand what benchmarks/results/NAME.json says of its machine, date,
commit and command, and a table. A file is one of two kinds:

- of **times**, Google Benchmark's, or what write_json of benchmarks/written.py writes: its rows are the cases whose name the expression
  finds ("case/tessera"), all without one: Tessera's time, its baselines', the ratio to the least of them, how near it comes to its
  roofline, and what else the benchmark counts;
- of **rows**: {"context": ..., "rows": [{"column": text or number, ...}, ...]}, shown as they are; the expression finds rows by their
  first column. `NAME+NAME` joins files of rows side by side, by their first column. A context that says `made` ("simulated by
  SimGrid") has no processor. Figures that were printed before a program wrote its file are rows, too, whose context says `copied`.

A number before `<!-- figure: NAME CASE/WAY -->`, in README.md and docs/figures.md, is Tessera's time over that way's, or what stands in
that row and column of a file of rows. An end of the case's name that no other has is enough.

A section or a table without a file, and a file that no table shows, are errors.
"""
import json
import pathlib
import re
import sys

FACTS = ("date", "commit", "made", "processor", "num_cpus", "load_avg", "compiler", "mpi", "blas", "kokkos", "libraries", "peers", "processes",
         "copied", "command")
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
BLOCK = r"^(<!-- figures: ([\w.+]+)(?: ([^\n]+?))? -->)$.*?^<!-- end -->$"
QUOTED = r"-?[\d.,]+(?:e[+-]\d+)?( <!-- figure: ([\w.]+) ([^\n]+?)/([^\n/]+?) -->)"
GOOGLE = ("family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations", "real_time", "cpu_time")


def counted_in(row):
    """Returns the numbers of a result that the benchmark itself has named."""
    return {name: float(f"{value:.6g}") for name, value in row.items() if isinstance(value, (int, float)) and name not in GOOGLE}


def keep(root, path):
    """Copies a result without what it says of folders, hosts and iterations."""
    result = json.loads(path.read_text())
    context = result["context"]
    missing = [name for name in ("date", "commit", "command") if not context.get(name)]
    if not context.get("processor") and not context.get("made"):
        missing.append("processor, or how its rows were made")
    if missing:
        sys.exit(f"{path} does not say its {' and '.join(missing)}; the benchmarks of this commit do")
    kept = {"context": {name: context[name] for name in FACTS if name in context}}
    if "rows" in result:
        kept["rows"] = result["rows"]
    else:
        rows = [row for row in result["benchmarks"] if row.get("aggregate_name") == "median"] or result["benchmarks"]
        # What Google Benchmark measures in one process is the processor's time, which other programs prolong less; what it is told
        # (manual_time) is the slowest process's, by the clock unless the benchmark says otherwise.
        told = any("/manual_time" in row["name"] for row in rows) or "cpu_time" not in rows[0]
        times = "real_time" if told else "cpu_time"
        kept["context"]["clock"] = "cpu_time" if context.get("turns") == "processor time" else times
        kept["benchmarks"] = [{"name": re.sub(r"(/iterations:\d+|/manual_time|/real_time|/repeats:\d+|_median)", "", row["name"]),
                               "time": float(f"{row[times]:.4g}"), "time_unit": row["time_unit"]} | counted_in(row) for row in rows]
    (root / "benchmarks/results").mkdir(exist_ok=True)
    (root / "benchmarks/results" / path.name).write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def time_text(seconds):
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def number_text(number):
    return f"{number:,.0f}" if 1000 <= number < 1e7 else f"{number:.4g}"


def result_of(root, name):
    path = root / f"benchmarks/results/{name}.json"
    if not path.exists():
        sys.exit(f"a document wants {path.relative_to(root)}, which does not exist")
    return json.loads(path.read_text())


def cases_of(result):
    """Returns {case: {way: seconds}} in the order of the file, and {case: {fact: number}} of what was counted beside."""
    cases, facts = {}, {}
    for row in result["benchmarks"]:
        case, _, way = row["name"].rpartition("/")
        cases.setdefault(case, {})[way] = row["time"] * SECONDS[row["time_unit"]]
        facts.setdefault(case, {}).update((k, v) for k, v in row.items() if k not in ("name", "time", "time_unit"))
    return cases, facts


def origin(names, results, modelled=False):
    """Returns the line that says where a table is from."""
    context = results[0]["context"]
    files = "`, `".join(f"{name}.json" for name in names)
    said = [f"From `benchmarks/results/{files}`: {context['date'][:10]}, commit {context['commit']}"]
    if modelled or "made" in context:
        said.append(context.get("made", "modelled by the planner, nothing was run"))
    else:
        said.append(context["processor"] + (f", {context['num_cpus']} processors" if "num_cpus" in context else ""))
        said += [("Kokkos on " if name == "kokkos" else "") + re.sub(r" *Version:\s*", " ", context[name])
                 for name in ("compiler", "mpi", "blas", "kokkos", "libraries", "peers") if name in context]
        if context.get("clock") == "cpu_time":
            said.append("processor time")
        if "load_avg" in context:
            said.append(f"load {context['load_avg'][0]:.1f} when it began")
    if "copied" in context:
        said.append("copied from what was printed")
    return "; ".join(said + [", ".join(dict.fromkeys(f"`{result['context']['command']}`" for result in results))]) + "."


def table_of(head, rows):
    """Returns a table without the columns, but for the first two, in which nothing stands."""
    kept = [i for i in range(len(head)) if i < 2 or any(row[i] for row in rows)]
    lines = ["| " + " | ".join(row[i] for i in kept) + " |" for row in [head, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(kept), *lines[1:]])


def rows_shown(names, results, wanted):
    """Returns the table of files of rows, joined side by side by their first column."""
    for result in results[1:]:
        if [result["context"].get(name) for name in ("commit", "made")] != [results[0]["context"].get(name) for name in ("commit", "made")]:
            sys.exit(f"a document joins {' and '.join(names)}, which are of several commits or kinds")
    rows = [dict(row) for row in results[0]["rows"] if re.search(wanted, first_of(row))]
    for result in results[1:]:
        beside = {first_of(row): row for row in result["rows"]}
        for row in rows:
            row.update(beside.get(first_of(row), {}))
    if not rows:
        sys.exit(f"a document wants rows {wanted} of {'+'.join(names)}, which has none")
    head = list(dict.fromkeys(column for row in rows for column in row))
    return table_of(head, [[shown(row.get(column, "")) for column in head] for row in rows])


def first_of(row):
    return str(next(iter(row.values())))


def shown(fact):
    return fact if isinstance(fact, str) else number_text(fact)


def times_shown(name, result, wanted):
    """Returns the table of a file of times, and whether they are modelled."""
    cases, facts = cases_of(result)
    rows, modelled = [], set()
    counted = list(dict.fromkeys(fact for numbers in facts.values() for fact in numbers))
    for case, ways in cases.items():
        others = {way: time for way, time in ways.items() if not way.startswith("tessera") and way != "roofline"}
        for way, time in ways.items():
            if not way.startswith("tessera") or not re.search(wanted, f"{case}/{way}"):
                continue
            modelled.add(case.startswith("modelled/"))
            beside = ", ".join(f"{other} {time_text(t)}" + (f" ({time / t:.2f})" if len(others) > 1 else "") for other, t in others.items())
            more = [number_text(facts[case][fact]) if fact in facts[case] else "" for fact in counted]
            rows.append([(case.partition("/")[2] or case) + way[len("tessera"):], time_text(time),
                         f"{time / min(others.values()):.2f}" if others else "", beside,
                         f"{ways['roofline'] / time:.2f}" if "roofline" in ways else "", *more])
    if not rows:
        sys.exit(f"a document wants cases {wanted} of {name}, which has none")
    if len(modelled) > 1:
        sys.exit(f"a document has one table of modelled and of measured cases of {name}")
    head = ["case", "Tessera, modelled" if True in modelled else "Tessera", "ratio", "baseline", "of the roofline", *counted]
    return table_of(head, rows), True in modelled


def section(root, name, wanted):
    names = name.split("+")
    results = [result_of(root, each) for each in names]
    if any("rows" not in result for result in results):
        if len(results) > 1:
            sys.exit(f"a document joins {name}; only files of rows can be joined")
        table, modelled = times_shown(name, results[0], wanted)
    else:
        table, modelled = rows_shown(names, results, wanted), False
    return f"{origin(names, results, modelled)}\n\n{table}"


def quoted(root, name, case, way):
    result = result_of(root, name)
    rows = {first_of(row): row for row in result["rows"]} if "rows" in result else cases_of(result)[0]
    found = [row for each, row in rows.items() if each.endswith(case)]
    if len(found) > 1:
        sys.exit(f"a document quotes \"{case}\" from benchmarks/results/{name}.json, where {len(found)} cases end so")
    row = found[0] if found else {}
    if way not in row:
        sys.exit(f"a document quotes \"{case}\", \"{way}\" from benchmarks/results/{name}.json, which has no such figure")
    return shown(row[way]) if "rows" in result else f"{row['tessera'] / row[way]:.2f}"


def page(root, text):
    def made(match):
        return f"{match[1]}\n{section(root, match[2], match[3] or '.')}\n<!-- end -->"
    text = re.sub(BLOCK, made, text, flags=re.S | re.M)
    return re.sub(QUOTED, lambda match: quoted(root, *match.groups()[1:]) + match[1], text)


def faults(root, text):
    """Returns what the page shows without a file of results, and results that it does not show."""
    found = []
    for part in re.split(r"^(?=## )", text, flags=re.M)[1:]:
        title, said = part.splitlines()[0][3:], re.sub(BLOCK, "From a file.", part, flags=re.S | re.M)
        if "From a file." not in said:
            found.append(f"figures under \"{title}\" without their machine, date and command, which a file of results has")
        if re.search(r"^\|---", said, flags=re.M):
            found.append(f"a table under \"{title}\" without its machine, date and command, which a file of results has")
    shown = {name for match in re.findall(BLOCK, text, flags=re.S | re.M) for name in match[1].split("+")}
    found += [f"no table of {path.relative_to(root)}" for path in sorted((root / "benchmarks/results").glob("*.json")) if path.stem not in shown]
    return found


def main():
    root, rest = pathlib.Path(sys.argv[1]), sys.argv[2:]
    if rest[:1] == ["--keep"]:
        for path in rest[1:]:
            keep(root, pathlib.Path(path))
    for place in (root / "README.md", root / "docs/figures.md"):
        text = place.read_text()
        if "--check" not in rest:
            place.write_text(page(root, text))
        elif page(root, text) != text:
            sys.exit(f"{place.relative_to(root)} is not what `python3 cmake/docs/figures.py .` makes of benchmarks/results/; run it")
    if wrong := faults(root, (root / "docs/figures.md").read_text()):
        sys.exit("docs/figures.md does not keep what cmake/docs/figures.py asks of it:\n" + "\n".join(wrong))


main()
