# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what PyTorch's optimizers do with two weights in six steps: tests/nn/optimizers/cases.txt, which
tests/nn/optimizers_of_pytorch.loopback.cpp reads.

    python3 tests/nn/optimizers/generate.py > tests/nn/optimizers/cases.txt

A line is a kind, its numbers in the order of the test's table, then all elements: first of the weights, then of each step's
gradients, then of the weights after it. Weights are 3 x 5 and 4, in double. In a kind with "+groups" the matrix alone decays: it and
the other weight are two groups.
"""
import torch

torch.manual_seed(12)
STEPS = 6
SHAPES = [(3, 5), (4,)]
CASES = [
    ("sgd", dict(lr=0.1)),
    ("sgd", dict(lr=0.1, weight_decay=0.05)),
    ("sgd", dict(lr=0.05, momentum=0.9)),
    ("sgd", dict(lr=0.05, momentum=0.9, weight_decay=0.01, nesterov=True)),
    ("adam", dict(lr=0.02)),
    ("adam", dict(lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)),
    ("adamw", dict(lr=0.02)),
    ("adamw", dict(lr=0.05, betas=(0.9, 0.95), eps=1e-6, weight_decay=0.2)),
    ("sgd+groups", dict(lr=0.1, weight_decay=0.3)),
    ("sgd+groups", dict(lr=0.05, momentum=0.9, weight_decay=0.3, nesterov=True)),
    ("adam+groups", dict(lr=0.02, weight_decay=0.3)),
    ("adamw+groups", dict(lr=0.05, weight_decay=0.5)),
]


def numbers(kind, options):
    if kind == "sgd":
        return [options["lr"], options.get("momentum", 0), options.get("weight_decay", 0), int(options.get("nesterov", False))]
    betas = options.get("betas", (0.9, 0.999))
    decay = options.get("weight_decay", 0.01 if kind == "adamw" else 0)
    return [options["lr"], *betas, options.get("eps", 1e-8), decay]


def text(tensors):
    return [repr(x) for t in tensors for x in t.detach().flatten().tolist()]


for name, options in CASES:
    kind = name.removesuffix("+groups")
    weights = [torch.randn(s, dtype=torch.float64).requires_grad_() for s in SHAPES]
    line = [name, *(repr(float(x)) for x in numbers(kind, options)), *text(weights)]
    groups = weights if name == kind else [dict(params=weights[:1]), dict(params=weights[1:], weight_decay=0)]
    optimizer = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind](groups, **options)
    for _ in range(STEPS):
        for w in weights:
            w.grad = torch.randn(w.shape, dtype=torch.float64)
        line += text([w.grad for w in weights])
        optimizer.step()
        line += text(weights)
    print(" ".join(line))
