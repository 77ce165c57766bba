# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the example number_antibodies, with real weights, with the package anarcii 2.0.8 on 1,000 sequences: numbers, chains,
places and errors the same, scores within 1e-3.

    python3 tests/nn/antibody_numbers/real.py weights build/release/examples/number_antibodies -- mpiexec -n @

The folder keeps the wheels, the converted weights and the package's answers; `@` stands for the number of processes. It needs the package
anarcii in this Python, until its answers are there; where it, or a wheel, is missing it says so and ends with 77, which CTest counts as skipped.
"""
import csv
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "examples", "number_antibodies")]
import fetch  # noqa: E402
from download import Refused, Wheel, downloaded  # noqa: E402

SKIPPED = 77
GERMLINES = Wheel("anarci", "2026.2.13.2", "8f88d49857abc2c5427c6cc903ebdac7b35e6636635eaa9d60bd8f0d4e7d14b7", 1166101, "BSD-3-Clause")
FACTS = ("Name", "Chain", "Score", "Query start", "Query end")


def answers_in(folder):
    """Returns the package's answers, made if they are not there."""
    path = os.path.join(folder, "anarcii_answers.jsonl")
    if not os.path.exists(path):
        if not (importlib.util.find_spec("anarcii") and importlib.metadata.version("anarcii") == "2.0.8"):
            print(f"skipped: anarcii 2.0.8 is not here; {sys.executable} -m pip install anarcii==2.0.8")
            sys.exit(SKIPPED)
        wheel = downloaded(GERMLINES, folder)
        subprocess.run([sys.executable, os.path.join(HERE, "oracle.py"), wheel, "--out", path + ".part"], check=True)
        os.replace(path + ".part", path)
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def differing(answers, table, failures):
    """Returns the names of those whose answers differ, and the largest difference of scores."""
    with open(failures, newline="", encoding="utf-8") as file:
        errors = {row["Name"]: row["Error"] for row in csv.DictReader(file)}
    with open(table, newline="", encoding="utf-8") as file:
        rows = {row["Name"]: row for row in csv.DictReader(file)}
    others, worst = [], 0.0
    for a in answers:
        row = rows.pop(a["name"])
        numbers = {f"{n}{letters.strip()}": residue for (n, letters), residue in a["numbering"] or []}
        own = {key: residue for key, residue in row.items() if key not in FACTS and residue != "-"}
        places = tuple("" if a[key] is None else str(a[key]) for key in ("query_start", "query_end"))
        far = abs(float(row["Score"]) - a["score"])
        worst = max(worst, far)
        if (own != {key: residue for key, residue in numbers.items() if residue != "-"} or row["Chain"] != a["chain_type"] or
                errors.get(a["name"]) != a["error"] or (row["Query start"], row["Query end"]) != places or far > 1e-3):
            others.append(a["name"])
    return others + sorted(rows), worst


def main():
    folder, program, *launcher = [word for word in sys.argv[1:] if word != "--"]
    os.makedirs(folder, exist_ok=True)
    try:
        weights = fetch.fetched("accuracy", folder)
        answers = answers_in(folder)
    except Refused as fault:
        print(f"skipped: {fault}")
        sys.exit(SKIPPED)
    chains, table, failures = (os.path.join(folder, "antibodies." + end) for end in ("fasta", "csv", "failures.csv"))
    with open(chains, "w", encoding="utf-8") as file:
        for name, text in {a["name"] if set(a["sequence"]).isdisjoint("-/") else a["name"].rpartition("-")[0]: a["sequence"]
                           for a in answers}.items():
            file.write(f">{name}\n{text}\n")
    for processes, split in ((1, "batch"), (2, "tensors")):
        words = [word.replace("@", str(processes)) for word in launcher]
        subprocess.run([*words, program, "--weights", weights, "--sequences", chains, "--split", split, "--out", table, "--failures",
                        failures], check=True, stdout=subprocess.DEVNULL)
        others, worst = differing(answers, table, failures)
        print(f"{split}: {len(answers) - len(others)} of {len(answers)} answers are the package's; scores differ by {worst:.1e}", flush=True)
        if others:
            sys.exit(f"these differ: {', '.join(others)}")


if __name__ == "__main__":
    main()
