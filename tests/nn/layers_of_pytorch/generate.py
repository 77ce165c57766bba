# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what PyTorch's layers and their gradients are for small inputs, in double: tests/nn/layers_of_pytorch/*.npy, which
tests/nn/layers_of_pytorch.loopback.cpp reads.

    python3 tests/nn/layers_of_pytorch/generate.py

A file is one line of numbers: all inputs in the order of the test's case (a layer's tensors, then its arguments), a gradient of
the result, the result, and the gradients of all inputs. Ids, targets and masks follow formulas that the test has too.
"""
import os

import numpy
import torch
import torch.nn.functional as F

torch.manual_seed(7)
HERE = os.path.dirname(os.path.abspath(__file__))


def ids(n, shape, step, first):
    return ((torch.arange(torch.Size(shape).numel()) * step + first) % n).reshape(shape)


def rotary(x):  # (batch, heads, places, elements)
    half = x.shape[-1] // 2
    places = torch.arange(x.shape[-2], dtype=x.dtype)[:, None]
    angle = places * 10000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def attention(query, key, value, out, x, context, causal=False, turned=False, valid=None):
    groups, repeats = query.shape[1:3]
    q = torch.einsum("bsm,mgrd->bgrsd", x, query).flatten(1, 2)
    k = torch.einsum("btm,mgd->bgtd", context, key)
    v = torch.einsum("btm,mgd->bgtd", context, value)
    if turned:
        q, k = rotary(q), rotary(k)
    k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
    mask = valid if valid is None or valid.dim() > 2 else valid[:, None, None, :]
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
    return torch.einsum("bgrsd,grdm->bsm", heads.unflatten(1, (groups, repeats)), out)


def batch_norm(scale, bias, x):
    return F.batch_norm(x.movedim(-1, 1), None, None, scale, bias, training=True).movedim(1, -1)


def convolution_block(kernel, scale, bias, x):
    y = F.conv2d(x.movedim(-1, 1), kernel.permute(3, 2, 0, 1), stride=(2, 1), padding=1)
    return F.relu(F.batch_norm(y, None, None, scale, bias, training=True)).movedim(1, -1)


VALID = (torch.arange(15) % 5 != 1).reshape(3, 5)
NUMBERS = 1 + (torch.arange(21) * 5 // 4 % 3).reshape(3, 7)  # of documents, of which some lie in parts
DOCUMENTS = (NUMBERS[:, :, None] == NUMBERS[:, None, :])[:, None] & torch.ones(7, 7, dtype=torch.bool).tril()
CASES = {
    "multi_head": ([(6, 3, 1, 2), (6, 3, 2), (6, 3, 2), (3, 1, 2, 6), (3, 4, 6)],
                   lambda q, k, v, o, x: attention(q, k, v, o, x, x, causal=True)),
    "grouped_query": ([(5, 3, 2, 4), (5, 3, 4), (5, 3, 4), (3, 2, 4, 5), (3, 4, 5)],
                      lambda q, k, v, o, x: attention(q, k, v, o, x, x, causal=True, turned=True)),
    "cross": ([(6, 3, 1, 2), (4, 3, 2), (4, 3, 2), (3, 1, 2, 6), (3, 4, 6), (3, 5, 4)],
              lambda q, k, v, o, x, c: attention(q, k, v, o, x, c, valid=VALID)),
    "layer_norm": ([(6,), (6,), (5, 4, 6)], lambda s, b, x: F.layer_norm(x, (6,), s, b)),
    "rms_norm": ([(6,), (5, 4, 6)], lambda s, x: F.rms_norm(x, (6,), s, eps=1e-6)),
    "gelu": ([(6, 7), (7,), (7, 6), (6,), (5, 4, 6)], lambda w, b, v, c, x: F.linear(F.gelu(F.linear(x, w.T, b)), v.T, c)),
    "swiglu": ([(6, 7), (6, 7), (7, 6), (5, 4, 6)], lambda g, w, v, x: (F.silu(x @ g) * (x @ w)) @ v),
    "cross_entropy": ([(11, 6)], lambda t: F.cross_entropy(
        (F.embedding(ids(11, (5, 4), 7, 3), t) @ t.T).flatten(0, 1), ids(11, (20,), 5, 1), reduction="none").reshape(5, 4)),
    "batch_norm": ([(6,), (6,), (5, 4, 3, 6)], batch_norm),
    "convolution": ([(3, 3, 2, 4), (4,), (4,), (3, 5, 4, 2)], convolution_block),
    "documents": ([(5, 3, 2, 4), (5, 3, 4), (5, 3, 4), (3, 2, 4, 5), (3, 7, 5)],
                  lambda q, k, v, o, x: attention(q, k, v, o, x, x, valid=DOCUMENTS)),
}

for name, (shapes, layer) in CASES.items():
    inputs = [torch.randn(s, dtype=torch.float64).requires_grad_() for s in shapes]
    y = layer(*inputs)
    by = torch.randn(y.shape, dtype=torch.float64)
    y.backward(by)
    tensors = [*inputs, by, y, *(x.grad for x in inputs)]
    numpy.save(os.path.join(HERE, name + ".npy"), torch.cat([t.detach().flatten() for t in tensors]).numpy())
