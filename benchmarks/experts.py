#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws held-out loss against tokens for models with more and more experts: GShard's Table 2 in small.

    cmake --build build/release --target train_transformer
    python3 benchmarks/experts.py build/release/examples/train_transformer                        # experts.csv and experts.png
    python3 benchmarks/experts.py build/release/examples/train_transformer --steps 1300 --seeds 1 2 3 --out plots --svg
    python3 benchmarks/experts.py --draw plots/experts.csv --svg                                  # the picture alone

The dense model has feed-forward layers of 2H; of the others every other layer has 2, 4, 8 and 16 experts of H, of which a token
uses two: the same work for each token, and more weights. All see the same text in the same order. A row of the CSV is a
measurement of one run: experts (0: dense), seed, characters seen, held-out loss in nats a character, without the auxiliary term. The picture
has the median of the seeds. What follows `--` is given to the trainer. Needs matplotlib to draw.
"""
import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile

from written import write_rows

FIELDS = ["experts", "seed", "characters", "held_out"]


def trained(asked, experts, seed):
    """The rows of one run."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        command = [*asked.mpiexec.split(), "-n", str(asked.processes), asked.trainer, "--experts", str(experts), "--seed", str(seed),
                   "--steps", str(asked.steps), "--measure", str(max(1, asked.steps // asked.points)), "--log", log, "--sample", "0",
                   *asked.flags]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false"})
        if done.returncode != 0:
            sys.exit(f"experts.py: {' '.join(command)} failed:\n{done.stdout[-2000:]}")
        with open(log + ".csv") as file:
            for line in csv.DictReader(file):
                if line["held_out"]:
                    yield {"experts": experts, "seed": seed, "characters": int(line["characters"]), "held_out": float(line["held_out"])}


def medians(rows):
    """{experts: [(characters, held-out loss)]}."""
    curves = {}
    for row in rows:
        curves.setdefault(int(row["experts"]), {}).setdefault(int(row["characters"]), []).append(float(row["held_out"]))
    return {experts: [(x, statistics.median(losses)) for x, losses in sorted(curve.items())] for experts, curve in sorted(curves.items())}


def name_of(experts):
    return f"{experts} experts of H" if experts else "dense, 2H"


def of_model(experts, losses, characters):
    return {"model": name_of(experts), "characters": characters, "seeds": len(losses), "held out, nats a character": statistics.median(losses),
            "between seeds": max(losses) - min(losses)}


def draw(curves, path):
    try:
        import matplotlib
    except ImportError:
        sys.exit("experts.py: matplotlib is not installed; pip install matplotlib (or apt install python3-matplotlib), then --draw the CSV")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
    for experts, points in curves.items():
        axes.plot(*zip(*points), label=name_of(experts), color="#555555" if experts == 0 else None, linestyle="--" if experts == 0 else "-")
    axes.set_xlabel("characters seen")
    axes.set_ylabel("held-out loss, nats a character")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=130)
    print(path)


def main():
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    take = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    take.add_argument("trainer", nargs="?", help="the program train_transformer")
    take.add_argument("--experts", type=int, nargs="+", default=[0, 2, 4, 8, 16], help="0: dense")
    take.add_argument("--seeds", type=int, nargs="+", default=[1])
    take.add_argument("--steps", type=int, default=400)
    take.add_argument("--points", type=int, default=8, help="measurements of a run")
    take.add_argument("--processes", type=int, default=2)
    take.add_argument("--mpiexec", default="mpiexec.mpich")
    take.add_argument("--out", default=".", help="a folder")
    take.add_argument("--json", help="a file that is written too, for cmake/docs/figures.py: the losses at the end")
    take.add_argument("--svg", action="store_true", help="SVG in place of PNG")
    take.add_argument("--draw", metavar="CSV", help="draw what an earlier run measured")
    asked = take.parse_args(words[:cut])
    asked.flags = words[cut + 1:]
    if asked.draw:
        with open(asked.draw) as file:
            rows = list(csv.DictReader(file))
        folder = os.path.dirname(asked.draw) or "."
    else:
        if not asked.trainer:
            take.error("name the program train_transformer, or a CSV with --draw")
        folder = asked.out
        os.makedirs(folder, exist_ok=True)
        rows = []
        with open(os.path.join(folder, "experts.csv"), "w", newline="") as file:
            table = csv.DictWriter(file, FIELDS)
            table.writeheader()
            for experts in asked.experts:
                for seed in asked.seeds:
                    for row in trained(asked, experts, seed):
                        rows.append(row)
                        table.writerow(row)
                print(f"{name_of(experts)}: {medians(rows)[experts][-1][1]:.3f} nats a character", flush=True)
    if asked.json:
        last = max(int(row["characters"]) for row in rows)
        ends = [row for row in rows if int(row["characters"]) == last]
        write_rows(asked.json, [of_model(experts, [float(row["held_out"]) for row in ends if int(row["experts"]) == experts], last)
                                for experts in medians(rows)])
    draw(medians(rows), os.path.join(folder, "experts" + (".svg" if asked.svg else ".png")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
