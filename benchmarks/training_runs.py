#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the two training programs at their defaults and says how long each takes, and how well it has learned its text.

    cmake --build build/release --target train_transformer 08_gradients_by_hand
    python3 benchmarks/training_runs.py build/release/examples --json training_runs.json     # for cmake/docs/figures.py

Each learns the licence texts of this machine on four processes; losses are in nats a character of text that is held out.
"""
import argparse
import os
import re
import subprocess
import sys

from written import write_rows

PROGRAMS = {"train_transformer": "Transformer, gradients by the library", "08_gradients_by_hand": "lesson 8, gradients by hand"}
LOSSES = r"Held-out loss ([\d.]+) nats a character \(counts of characters [\d.]+, of pairs ([\d.]+)\)"
END = r"\] +(\d+)/\1  .*? ([\d.]+) s *$"  # the last line of the progress: steps, and seconds of training


def run_of(path, asked):
    """Returns the row of one program, which fails by itself where a process sends other bytes than it has planned."""
    command = [*asked.mpiexec.split(), "-n", str(asked.processes), path, *asked.flags]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false"})
    losses, end = re.search(LOSSES, done.stdout), re.search(END, done.stdout.replace("\r", "\n"), flags=re.M)
    if done.returncode != 0 or not losses or not end:
        sys.exit(f"training_runs.py: {' '.join(command)} failed:\n{done.stdout[-2000:]}")
    return {"program": PROGRAMS[os.path.basename(path)], "steps": int(end[1]), "training, s": float(end[2]),
            "held out, nats a character": float(losses[1]), "by counts of pairs": float(losses[2])}


def main():
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    take = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    take.add_argument("folder", help="where the programs are; what follows `--` is given to both")
    take.add_argument("--processes", type=int, default=4)
    take.add_argument("--mpiexec", default="mpiexec.mpich")
    take.add_argument("--json", help="a file that is written too, for cmake/docs/figures.py")
    asked = take.parse_args(words[:cut])
    asked.flags = words[cut + 1:]
    rows = []
    for program in PROGRAMS:
        rows.append(run_of(os.path.join(asked.folder, program), asked))
        print(", ".join(f"{column} {fact}" for column, fact in rows[-1].items()), flush=True)
    if asked.json:
        write_rows(asked.json, rows)


main()
