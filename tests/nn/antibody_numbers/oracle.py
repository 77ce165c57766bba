# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes antibody sequences and numbers them by the package anarcii, for a program that has to give the same.

    python3 -m venv venv && venv/bin/python -m pip install anarcii==2.0.8
    python3 -m pip download --no-deps --only-binary :all: --dest germlines anarci==2026.2.13.2
    venv/bin/python oracle.py germlines/anarci-2026.2.13.2-py3-none-any.whl --count 1000 --out oracle.jsonl [--tokens tokens.jsonl]

The sequences are germline genes of eight species (a table of the wheel anarci, BSD-3-Clause) put together, with a random third loop,
mutated, cut, with tails; and what no antibody is. A line of the file: name, sequence, and the package's answer. A line of --tokens:
name, the sequence as the model gets it, its predicted numbers of tokens up to the batch's end, the largest score of each, and the
least distance of a largest score from the second: answers whose distance is below rounding may differ.
"""
import argparse
import ast
import json
import random
import zipfile

LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def germlines(path):
    text = zipfile.ZipFile(path).read("anarci/germlines.py").decode()
    return ast.literal_eval(text[text.index("{"):])


def letters(draw, count):
    return "".join(draw.choice(LETTERS) for _ in range(count))


def domain(draw, genes, chains):
    chain = draw.choice(chains)
    species = draw.choice(sorted(set(genes["V"][chain]) & set(genes["J"][chain])))
    v = draw.choice(sorted(genes["V"][chain][species].values())).replace("-", "")
    j = draw.choice(sorted(genes["J"][chain][species].values())).replace("-", "")
    middle = letters(draw, draw.choice([0, 1, 2, 4, 6, 8, 10, 14, 20]) if chain in "HBD" else draw.choice([0, 0, 1, 2, 3]))
    return v + middle + j


def mutated(draw, text, part):
    return "".join(draw.choice(LETTERS) if draw.random() < part else c for c in text)


def sequences(genes, count, seed):
    """Returns {name: sequence}. The kinds and their parts of the whole stand beside each other."""
    draw = random.Random(seed)
    kinds = [("plain", 25), ("mutated", 25), ("inserted", 8), ("front cut", 8), ("end cut", 8), ("tails", 10), ("long", 4), ("pair", 2),
             ("odd letters", 3), ("part", 3), ("receptor", 2), ("random", 2)]
    made = {}
    for i in range(count):
        kind = draw.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
        text = domain(draw, genes, "HHKL")
        if kind == "mutated":
            text = mutated(draw, text, draw.choice([0.03, 0.1, 0.2]))
        elif kind == "inserted":
            for _ in range(draw.randrange(1, 4)):
                at = draw.randrange(len(text))
                text = text[:at] + letters(draw, draw.randrange(1, 6)) + text[at:] if draw.random() < 0.6 else text[:at] + text[at + 3:]
        elif kind == "front cut":
            text = text[draw.randrange(1, 30):]
        elif kind == "end cut":
            text = text[:-draw.randrange(1, 20)]
        elif kind == "tails":
            text = letters(draw, draw.randrange(0, 25)) + text + letters(draw, draw.randrange(0, 25))
        elif kind == "long":
            text = letters(draw, draw.randrange(0, 150)) + text + letters(draw, draw.randrange(100, 250))
        elif kind == "pair":
            text = text + draw.choice("-/") + domain(draw, genes, "KL")
        elif kind == "odd letters":
            at = draw.randrange(len(text))
            text = text[:at] + draw.choice("XBZUJO*a") + text[at + 1:]
        elif kind == "part":
            at = draw.randrange(len(text) // 2)
            text = text[at:at + draw.randrange(20, 60)]
        elif kind == "receptor":
            text = domain(draw, genes, "ABGD")
        elif kind == "random":
            text = letters(draw, draw.randrange(30, 250))
        made[f"{i:04d} {kind}"] = text
    return made


def write_tokens(path, texts, mode):
    """Writes what the model itself predicts, of sequences that are not cut into windows."""
    import torch
    from anarcii.inference.model_runner import ModelRunner
    torch.set_num_threads(1)
    runner = ModelRunner("antibody", mode, 1, torch.device("cpu"), False, False)
    with open(path, "w", encoding="utf-8") as file, torch.no_grad():
        for name, text in texts.items():
            if len(text) > 200 or set(text) - set(LETTERS + "XBJOUZ"):
                continue
            src = torch.from_numpy(runner.sequence_tokeniser.encode(["<SOS>", *text, "<EOS>"]))[None]
            mask = runner.model.make_src_mask(src)
            encoded = runner.model.encoder(src, mask)
            tokens, scores, gaps, cache, given = [1], [], [], None, src[:, :1]
            for _ in range(src.shape[1]):
                pads, causal = runner.model.make_trg_mask(torch.tensor([tokens]))
                out, cache = runner.model.decoder(given, encoded, pads, causal, mask, cache)
                best = out[0, -1].topk(2)
                scores.append(best.values[0].item())
                gaps.append((best.values[0] - best.values[1]).item())
                tokens.append(best.indices[0].item())
                given = best.indices[:1][None]
            file.write(json.dumps({"name": name, "sequence": text, "tokens": tokens, "scores": scores, "least_gap": min(gaps)}) + "\n")


def main():
    parser = argparse.ArgumentParser(description="Makes antibody sequences and their numbers by anarcii.")
    parser.add_argument("wheel", help="anarci-2026.2.13.2-py3-none-any.whl, for its table of germline genes")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=("accuracy", "speed"), default="accuracy")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--out", required=True)
    parser.add_argument("--tokens")
    given = parser.parse_args()
    from anarcii import Anarcii
    texts = sequences(germlines(given.wheel), given.count, given.seed)
    answers = Anarcii("antibody", given.mode, batch_size=given.batch, cpu=True).number(dict(texts))
    with open(given.out, "w", encoding="utf-8") as file:
        for name, answer in answers.items():
            base = name if name in texts else name.rpartition("-")[0]
            file.write(json.dumps({"name": name, "sequence": texts[base]} | answer) + "\n")
    if given.tokens:
        write_tokens(given.tokens, texts, given.mode)


if __name__ == "__main__":
    main()
