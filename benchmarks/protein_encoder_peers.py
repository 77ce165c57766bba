# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the example protein_encoder beside Hugging Face's eager model with the same weights, in turns.

    python3 benchmarks/protein_encoder_peers.py weights build/release/examples/protein_encoder --cores 2 -- mpiexec -n @

Both run AntiBERTy in float on the same sequences, in batches sorted by length: made antibodies' chains of 90 to 130 letters, and as many
of one length. Ours runs with a process a core, its batches split over them; Hugging Face's with a thread a core. It needs torch and
transformers. Printed are letters a second by the medians of the rounds; times of ours include planning.
"""
import argparse
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "nn", "encoder_of_hugging_face"))
import oracle  # noqa: E402
from oracle import fetch  # noqa: E402
from written import write_json  # noqa: E402

LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def made(count, least, most):
    draw = random.Random(7)
    return ["".join(draw.choices(LETTERS, k=draw.randint(least, most))) for _ in range(count)]


def ours(given, lines, letters):
    run = [word.replace("@", str(given.cores)) for word in given.launcher] + [
        given.program, "--weights", fetch.fetched("antiberty", given.folder), "--sequences", lines, "--batch", str(given.batch),
        "--mesh", f"{given.cores}x1", "--split", "batch"]
    text = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True, env=dict(os.environ, OMP_NUM_THREADS="1")).stdout
    return letters / float(re.search(r" s: (\d+) letters/s", text).group(1))


def theirs(model, facts, sequences, batch):
    import torch
    begin = time.perf_counter()
    with torch.no_grad():
        order = sorted(sequences, key=len, reverse=True)
        for first in range(0, len(order), batch):
            ids, valid = oracle.ids_of(facts, order[first:first + batch])
            model.bert(input_ids=ids, attention_mask=valid.long())
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("program")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--count", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="a file that is written too, for cmake/docs/figures.py")
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    given = parser.parse_args(words[:cut])
    given.launcher = words[cut + 1:]
    if lacking := oracle.missing():
        sys.exit(f"{', '.join(lacking)}: not here; {sys.executable} -m pip install {' '.join(lacking)}")
    import torch
    torch.set_num_threads(given.cores)
    model, facts = oracle.model_of("antiberty", given.folder)
    print(f"{given.cores} cores, batches of {given.batch}; medians of {given.rounds} rounds, letters/s")
    times = {}
    for title, least, most in (("90 to 130 letters", 90, 130), ("126 letters each", 126, 126)):
        sequences = made(given.count, least, most)
        letters = sum(map(len, sequences))
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(sequences) + "\n")
            file.flush()
            took = [(ours(given, file.name, letters), theirs(model, facts, sequences, given.batch)) for _ in range(given.rounds)]
        own, other = (statistics.median(column) for column in zip(*took))
        print(f"  {title:20} ours {letters / own:8.0f}   Hugging Face {letters / other:8.0f}   ratio {other / own:.2f}")
        times[f"{given.count} sequences, {title}"] = {"Tessera": 1e3 * own, "Hugging Face": 1e3 * other}
    if given.json:
        write_json(given.json, times, ["torch", "transformers"])


if __name__ == "__main__":
    main()
