#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what a token takes that a decoder writes in PyTorch; with --bench in turns with bench_decoding, on as many cores.

    python3 benchmarks/decoding_peers.py                                         # PyTorch alone
    python3 benchmarks/decoding_peers.py --bench build/bench/benchmarks --threads 2

The model is bench_decoding's: 6 layers, d 512, 8 heads, feed-forward 2048, vocabulary 8192, norms before the layers, learned
positions, single precision; texts begin with 32 tokens, which are read at once, and go on for 64, the likeliest each. PyTorch keeps keys
and values in tensors made before, and runs eagerly under inference_mode; with --threads 2 it has two threads, and Tessera two processes
of a core each. A step is a token of each text. With --bench both run one after the other, --rounds times; a time is the least of the
rounds' medians.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from written import write_json

LAYERS, EMBED, HEADS, HIDDEN, WORDS, BEGINS, WRITES = 6, 512, 8, 2048, 8192, 32, 64
TEXTS = (1, 8, 32)
PLACES = BEGINS + WRITES


def torch_steps(seconds, threads):
    import torch
    from torch_layers import Transformer
    torch.set_num_threads(threads)
    torch.manual_seed(1)

    model = Transformer(WORDS, PLACES, EMBED, HEADS, HIDDEN, LAYERS)
    for texts in TEXTS:
        ids = torch.randint(0, WORDS, (texts, BEGINS))
        kept = model.kept(texts)

        def write():
            with torch.inference_mode():
                given, at = ids, 0
                for _ in range(WRITES):
                    following = model(given, kept, at).argmax(-1, keepdim=True)
                    at += given.shape[1]
                    given = following
                return following.tolist()
        write()
        times, begin = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - begin < seconds:
            start = time.perf_counter()
            write()
            times.append(time.perf_counter() - start)
        print(f"{texts} texts: {statistics.median(times) / WRITES * 1e3:.4f} ms", flush=True)


def output_of(command, environment):
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"decoding_peers.py: {' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def run_torch(threads, seconds):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")} | {"OMP_NUM_THREADS": str(threads)}
    said = output_of([sys.executable, __file__, "--alone", "--threads", str(threads), "--seconds", str(seconds)], kept)
    for texts, took in re.findall(r"(\d+) texts: ([\d.]+) ms", said):
        yield f"{texts} texts", "PyTorch", float(took)


def run_tessera(folder, mpiexec, threads):
    command = [*mpiexec.split(), "-n", str(threads), os.path.join(folder, "bench_decoding"), "--benchmark_filter=texts"]
    said = output_of(command, os.environ | {"OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false"})
    found = re.findall(r"decoding/(\dx\d), (\d+) texts: ([\d.]+) ms", said)
    if not found:
        sys.exit(f"decoding_peers.py: {' '.join(command)} has printed no times:\n{said[-2000:]}")
    for mesh, texts, took in found:
        yield f"{texts} texts", f"Tessera on {mesh.replace('x', ' x ')}", float(took)


def main():
    take = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    take.add_argument("--alone", action="store_true", help="measure PyTorch in this process")
    take.add_argument("--threads", type=int, default=1, help="cores: PyTorch's threads, Tessera's processes")
    take.add_argument("--seconds", type=float, default=4, help="for each row")
    take.add_argument("--bench", help="the folder of bench_decoding")
    take.add_argument("--rounds", type=int, default=3, help="with --bench: how often both are run")
    take.add_argument("--mpiexec", default="mpiexec.mpich")
    take.add_argument("--json", help="a file that is written too, for cmake/docs/figures.py")
    asked = take.parse_args()
    if asked.alone:
        return torch_steps(asked.seconds, asked.threads)
    least = {}  # {row: {way: ms}}
    for _ in range(asked.rounds if asked.bench else 1):
        runs = [run_tessera(asked.bench, asked.mpiexec, asked.threads)] if asked.bench else []
        for times in [*runs, run_torch(asked.threads, asked.seconds)]:
            for row, way, took in times:
                ways = least.setdefault(row, {})
                ways[way] = min(took, ways.get(way, took))
    for row, ways in least.items():
        print(row)
        for way, took in ways.items():
            print(f"  {way}: {took:.3f} ms" + (f", {took / ways['PyTorch']:.2f} of PyTorch's" if way != "PyTorch" else ""))
    if asked.json:
        write_json(asked.json, {f"decoding/{row}, {asked.threads} core(s)": ways for row, ways in least.items()}, ["torch"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
