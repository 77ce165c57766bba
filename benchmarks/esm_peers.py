#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures ESM2's architecture with random weights: the example protein_encoder in turns with esm-cpp and Hugging Face's eager
model, or those that --peers names.

    python3 -m pip install esm-cpp "numpy<2" torch transformers
    python3 benchmarks/esm_peers.py build/release/examples/protein_encoder --cores 2 --rounds 3
    python3 benchmarks/esm_peers.py ... --python numpy1/bin/python        # where esm-cpp has another environment, for its older numpy

The shapes are those of ESM2's models of 8 and 35 million parameters: 6 layers of width 320, and 12 of width 480, 20 heads; the weights are
drawn, one file for all, in float. Sequences are made: as many of 90 to 130 letters as an antibody's chains have, and as many of one
length. A time is that of the scores of all letters at all places (the head is in it), planning in ours, and neither reading weights nor
starting. Ours runs with a process a core, its batches split over them and sorted by length; esm-cpp packs sequences of any lengths
(forward_scheduled) in threads; Hugging Face's batches are sorted by length. Before they are timed, scores of all are compared.
"""
import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from written import write_json

SHAPES = {"8M": (6, 320, 20), "35M": (12, 480, 20)}  # layers, width, heads
LENGTHS = {"90 to 130 letters": (90, 130), "126 letters each": (126, 126)}
WORDS = "<cls> <pad> <eos> <unk> L A G V S E R T I D P K Q N F Y M H W C X B U Z O . - <null_1> <mask>".split()
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "examples", folder) for folder in ("protein_encoder", "support")]


def drawn_weights(layers, width, heads):
    """Returns {Hugging Face's name: an array} of an ESM2."""
    import numpy
    draw = numpy.random.default_rng(1)
    tensors = {}

    def linear(name, outs, ins):
        tensors[name + ".weight"] = draw.normal(0, ins**-0.5, (outs, ins))
        tensors[name + ".bias"] = draw.normal(0, 0.02, outs)

    def norm(name):
        tensors[name + ".weight"], tensors[name + ".bias"] = draw.normal(1, 0.02, width), draw.normal(0, 0.02, width)
    tensors["esm.embeddings.word_embeddings.weight"] = draw.normal(0, 0.1, (len(WORDS), width))
    for n in range(layers):
        layer = f"esm.encoder.layer.{n}."
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            linear(f"{layer}attention.{part}", width, width)
        size = width // heads
        tensors[layer + "attention.self.rotary_embeddings.inv_freq"] = 10000.0 ** (-numpy.arange(0, size, 2) / size)
        norm(layer + "attention.LayerNorm")
        linear(layer + "intermediate.dense", 4 * width, width)
        linear(layer + "output.dense", width, 4 * width)
        norm(layer + "LayerNorm")
    norm("esm.encoder.emb_layer_norm_after")
    linear("lm_head.dense", width, width)
    norm("lm_head.layer_norm")
    tensors["lm_head.bias"] = draw.normal(0, 0.02, len(WORDS))
    return {name: x.astype("<f4") for name, x in tensors.items()}


def write_weights(folder, shape):
    """Writes theirs.safetensors and ours.safetensors, the same weights by other names."""
    import names
    import torch_file
    layers, width, heads = SHAPES[shape]
    theirs = {name: torch_file.Tensor("F32", x.tobytes(), 0, x.shape, torch_file.strides_of(x.shape))
              for name, x in drawn_weights(layers, width, heads).items()}
    # Hugging Face's file has the table once more, as the head's.
    table = "esm.embeddings.word_embeddings.weight"
    torch_file.write_safetensors(os.path.join(folder, "theirs.safetensors"), theirs | {"lm_head.decoder.weight": theirs[table]}, {})
    facts = {"source": "drawn weights", "words": " ".join(WORDS), "begin": "<cls>", "padding": "<pad>", "end": "<eos>", "unknown": "<unk>",
             "mask": "<mask>", "vocabulary": len(WORDS), "places": 0, "kinds": 0, "embed": width, "heads": heads, "hidden": 4 * width,
             "layers": layers, "input_norm": 0, "last_norm": 1, "head": 1, "norm_first": 1, "first_place": 0, "rotary": 1,
             "epsilon": "1e-5", "token_dropout": 1}
    torch_file.write_safetensors(os.path.join(folder, "ours.safetensors"), names.renamed(names.ESM, theirs, heads),
                                 {key: str(fact) for key, fact in facts.items()})


def made(count, least, most):
    """Returns sequences, each with a letter that is to be found, so that the scores are wanted of all."""
    draw = random.Random(7)
    sequences = ["".join(draw.choices("ACDEFGHIKLMNPQRSTVWY", k=draw.randint(least, most))) for _ in range(count)]
    return ["_" + text[1:] for text in sequences]


def ids_of(text):
    return [0, *(32 if c == "_" else WORDS.index(c) for c in text), 2]


def timed(run):
    """Returns the seconds of the second of two calls, and what it gives."""
    run()
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def esm_cpp_alone(asked, sequences):
    import esm_cpp
    import numpy
    model = esm_cpp.Model.load_from_safetensors(os.path.join(asked.alone, "theirs.safetensors"))
    ids = [numpy.asarray(ids_of(text), dtype=numpy.int32) for text in sequences]
    seconds, scores = timed(lambda: model.forward_scheduled(ids))
    return seconds, numpy.stack([one[1] for one in scores])


def torch_alone(asked, sequences):
    import torch
    from safetensors.torch import load_file
    from transformers import EsmConfig, EsmForMaskedLM
    layers, width, heads = SHAPES[asked.shape]
    torch.set_num_threads(asked.cores)
    model = EsmForMaskedLM(EsmConfig(
        vocab_size=len(WORDS), hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * width,
        position_embedding_type="rotary", layer_norm_eps=1e-5, emb_layer_norm_before=False, token_dropout=True, pad_token_id=1,
        mask_token_id=32, attn_implementation="eager")).eval()
    tree = {name: x for name, x in load_file(os.path.join(asked.alone, "theirs.safetensors")).items() if "inv_freq" not in name}
    lacking, further = model.load_state_dict(tree, strict=False)
    assert not further and all("contact_head" in key or "inv_freq" in key or "decoder.bias" in key or "position" in key
                               for key in lacking), (lacking, further)
    order = sorted(range(len(sequences)), key=lambda i: -len(sequences[i]))

    def run():
        found = [None] * len(sequences)
        with torch.inference_mode():
            for first in range(0, len(order), asked.batch):
                some = order[first:first + asked.batch]
                texts = [ids_of(sequences[i]) for i in some]
                longest = max(map(len, texts))
                ids = torch.tensor([text + [1] * (longest - len(text)) for text in texts])
                scores = model(input_ids=ids, attention_mask=(ids != 1).long()).logits
                for i, one in zip(some, scores):
                    found[i] = one[1]
        return found
    seconds, found = timed(run)
    return seconds, torch.stack(found).numpy()


ALONE = {"esm-cpp": esm_cpp_alone, "Hugging Face": torch_alone}


def output_of(command, **kept):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")} | kept
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"esm_peers.py: {' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def run_peer(peer, asked, folder, shape, lines):
    python = asked.python if peer == "esm-cpp" else sys.executable
    said = output_of([python, __file__, lines, "--alone", folder, "--peer", peer, "--shape", shape, "--cores", str(asked.cores), "--batch",
                      str(asked.batch)], OMP_NUM_THREADS=str(asked.cores), ESM_NUM_THREADS=str(asked.cores))
    return json.loads(said.splitlines()[-1])


def run_tessera(asked, folder, lines, letters):
    found = os.path.join(folder, "found.npy")
    said = output_of([*asked.mpiexec.split(), "-n", str(asked.cores), asked.program, "--weights", os.path.join(folder, "ours.safetensors"),
                      "--sequences", lines, "--batch", str(asked.batch), "--mesh", f"{asked.cores}x1", "--split", "batch", "--found", found],
                     OMP_NUM_THREADS="1", OMP_PROC_BIND="false")
    import numpy
    return {"seconds": letters / float(re.search(r" s: (\d+) letters/s", said)[1]), "found": numpy.load(found)}


def apart(probabilities, scores):
    import numpy
    exp = numpy.exp(numpy.asarray(scores) - numpy.max(scores, -1, keepdims=True))
    return float(abs(exp / exp.sum(-1, keepdims=True) - probabilities).max())


def main():
    take = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    take.add_argument("program", help="the example protein_encoder")
    take.add_argument("--cores", type=int, default=2, help="the peers' threads, Tessera's processes")
    take.add_argument("--batch", type=int, default=32)
    take.add_argument("--count", type=int, default=256, help="sequences")
    take.add_argument("--shapes", choices=SHAPES, nargs="+", default=list(SHAPES))
    take.add_argument("--peers", choices=ALONE, nargs="+", default=list(ALONE))
    take.add_argument("--rounds", type=int, default=3)
    take.add_argument("--python", default=sys.executable, help="the Python that has esm-cpp")
    take.add_argument("--mpiexec", default="mpiexec.mpich")
    take.add_argument("--json", help="a file that is written too, for cmake/docs/figures.py")
    take.add_argument("--alone", help=argparse.SUPPRESS)  # measure a peer in this process: the folder of weights
    take.add_argument("--peer", choices=ALONE, help=argparse.SUPPRESS)
    take.add_argument("--shape", choices=SHAPES, help=argparse.SUPPRESS)
    asked = take.parse_args()
    if asked.alone:
        with open(asked.program) as file:
            seconds, scores = ALONE[asked.peer](asked, file.read().split())
        print(json.dumps({"seconds": seconds, "scores": scores.tolist()}))
        return
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for shape in asked.shapes:
            write_weights(folder, shape)
            for title, (least, most) in LENGTHS.items():
                sequences = made(asked.count, least, most)
                lines, letters = os.path.join(folder, "sequences.txt"), sum(map(len, sequences))
                with open(lines, "w") as file:
                    file.write("\n".join(sequences) + "\n")
                ways = rows.setdefault(f"ESM2 {shape}, {asked.count} of {title}, {asked.cores} core(s)", {})
                for _ in range(asked.rounds):
                    own = run_tessera(asked, folder, lines, letters)
                    ways.setdefault("Tessera", []).append(own["seconds"] * 1e3)
                    for peer in asked.peers:
                        other = run_peer(peer, asked, folder, shape, lines)
                        far = apart(own["found"], other["scores"])
                        if not far < 1e-3:
                            sys.exit(f"esm_peers.py: the probabilities of {peer} and of Tessera are {far} apart")
                        ways.setdefault(peer, []).append(other["seconds"] * 1e3)
                ways.update({way: statistics.median(took) for way, took in ways.items()})
                print(list(rows)[-1])
                for way, took in ways.items():
                    ratio = "" if way == "Tessera" else f", {took / ways['Tessera']:.2f} of Tessera's"
                    print(f"  {way}: {took:.0f} ms, {letters / took * 1e3:.0f} letters/s{ratio}", flush=True)
    if asked.json:
        packages = {"esm-cpp": {"esm-cpp": asked.python}, "Hugging Face": dict.fromkeys(("torch", "transformers"), sys.executable)}
        write_json(asked.json, rows, {name: python for peer in asked.peers for name, python in packages[peer].items()})


if __name__ == "__main__":
    main()
