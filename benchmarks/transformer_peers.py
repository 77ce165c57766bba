#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the Transformer of bench_transformer in PyTorch (two threads) and JAX (two devices), those that are installed.

    python3 benchmarks/transformer_peers.py
    python3 benchmarks/transformer_peers.py --peer torch --seconds 20

A step: 4 layers, d 256, 8 heads, feed-forward 1024, sequence 256, batch 8, vocabulary 256, Adam, single precision; norms before
the layers, learned positions. Prints the median of all steps, in milliseconds.
"""
import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time

LAYERS, EMBED, HEADS, HIDDEN, PLACES, BATCH, WORDS = 4, 256, 8, 1024, 256, 8, 256


def measure(name, step, seconds):
    for _ in range(2):
        step()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    print(f"{name}: {statistics.median(times) * 1e3:.1f} ms", flush=True)


def torch_steps(seconds):
    import torch
    from torch import nn
    torch.set_num_threads(2)
    torch.manual_seed(1)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(EMBED), nn.LayerNorm(EMBED)
            self.joined, self.out = nn.Linear(EMBED, 3 * EMBED, bias=False), nn.Linear(EMBED, EMBED, bias=False)
            self.feed = nn.Sequential(nn.Linear(EMBED, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, EMBED))

        def forward(self, x):
            q, k, v = self.joined(self.first(x)).view(BATCH, PLACES, 3, HEADS, EMBED // HEADS).permute(2, 0, 3, 1, 4)
            heads = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(heads.transpose(1, 2).reshape(BATCH, PLACES, EMBED))
            return x + self.feed(self.second(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.places = nn.Embedding(WORDS, EMBED), nn.Parameter(0.1 * torch.randn(PLACES, EMBED))
            self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
            self.norm, self.head = nn.LayerNorm(EMBED), nn.Linear(EMBED, WORDS)

        def forward(self, ids):
            return self.head(self.norm(self.blocks(self.table(ids) + self.places)))

    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    ids, following = torch.randint(0, WORDS, (2, BATCH, PLACES))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(ids).flatten(0, 1), following.flatten()).backward()
        optimizer.step()
    measure("PyTorch, one process of two threads", step, seconds)


def jax_steps(seconds):
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    import numpy
    size = EMBED // HEADS

    def normal(key, *shape):
        return jax.random.normal(key, shape) * shape[0] ** -0.5
    keys = iter(jax.random.split(jax.random.key(1), 64))
    weights, specs = {}, {}

    def add(name, shape, spec, fill=None):
        weights[name] = normal(next(keys), *shape) if fill is None else jnp.full(shape, fill)
        specs[name] = P(*spec)
    add("table", (WORDS, EMBED), ("model", None))
    add("places", (PLACES, EMBED), (None, None))
    for layer in [str(i) for i in range(LAYERS)]:
        for norm in ("first", "second"):
            add(norm + " scale" + layer, (EMBED,), (None,), 1.0)
            add(norm + " bias" + layer, (EMBED,), (None,), 0.0)
        add("joined" + layer, (EMBED, 3, HEADS, size), (None, None, "model", None))
        add("out" + layer, (HEADS, size, EMBED), ("model", None, None))
        add("in" + layer, (EMBED, HIDDEN), (None, "model"))
        add("in bias" + layer, (HIDDEN,), ("model",), 0.0)
        add("back" + layer, (HIDDEN, EMBED), ("model", None))
        add("back bias" + layer, (EMBED,), (None,), 0.0)
    add("last scale", (EMBED,), (None,), 1.0)
    add("last bias", (EMBED,), (None,), 0.0)
    add("head", (EMBED, WORDS), (None, "model"))
    add("head bias", (WORDS,), ("model",), 0.0)

    def norm(x, scale, bias):
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * scale + bias

    def loss(w, ids, following):
        x = w["table"][ids] + w["places"]
        seen = jnp.tril(jnp.ones((PLACES, PLACES), bool))
        for layer in [str(i) for i in range(LAYERS)]:
            y = norm(x, w["first scale" + layer], w["first bias" + layer])
            q, k, v = jnp.einsum("bsm,mjhd->jbshd", y, w["joined" + layer])
            scores = jnp.einsum("bshd,bthd->bhst", q * size ** -0.5, k)
            heads = jnp.einsum("bhst,bthd->bshd", jax.nn.softmax(jnp.where(seen, scores, -1e30)), v)
            x = x + jnp.einsum("bshd,hdm->bsm", heads, w["out" + layer])
            y = norm(x, w["second scale" + layer], w["second bias" + layer])
            h = jax.nn.gelu(y @ w["in" + layer] + w["in bias" + layer], approximate=False)
            x = x + h @ w["back" + layer] + w["back bias" + layer]
        scores = norm(x, w["last scale"], w["last bias"]) @ w["head"] + w["head bias"]
        chosen = jnp.take_along_axis(jax.nn.log_softmax(scores), following[..., None], -1)
        return -chosen.mean()

    def step(w, mean, square, t, ids, following):
        value, slope = jax.value_and_grad(loss)(w, ids, following)
        t = t + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
        square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, square, slope)
        rate = 1e-3 * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
        w = jax.tree.map(lambda x, m, v: x - rate * m / (jnp.sqrt(v) + 1e-8), w, mean, square)
        return w, mean, square, t, value

    words = jax.random.randint(next(keys), (2, BATCH, PLACES), 0, WORDS)
    for shape in ((2, 1), (1, 2)):
        mesh = Mesh(numpy.array(jax.devices()[:2]).reshape(shape), ("data", "model"))

        def placed(spec):
            return NamedSharding(mesh, spec)
        where = {name: placed(spec) for name, spec in specs.items()}
        zero = jax.tree.map(jnp.zeros_like, weights)
        state = [jax.device_put(weights, where), jax.device_put(zero, where), jax.device_put(zero, where),
                 jax.device_put(jnp.zeros(()), placed(P()))]
        ids, following = (jax.device_put(x, placed(P("data", None))) for x in words)
        compiled = jax.jit(step, out_shardings=(where, where, where, placed(P()), placed(P())))

        def one():
            *state[:], value = compiled(*state, ids, following)
            value.block_until_ready()
        measure("JAX, data parallel on two devices" if shape[0] == 2 else "JAX, tensor parallel on two devices", one, seconds)


PEERS = {"torch": torch_steps, "jax": jax_steps}


def main():
    take = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    take.add_argument("--peer", choices=PEERS, help="measure one alone, in this process")
    take.add_argument("--seconds", type=float, default=10, help="for each row")
    asked = take.parse_args()
    if asked.peer:
        return PEERS[asked.peer](asked.seconds)
    for peer in PEERS:
        if importlib.util.find_spec(peer) is None:
            print(f"{peer} is not installed")
            continue
        kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        kept["OMP_NUM_THREADS"] = "2"
        if peer == "jax":
            kept["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
        subprocess.run([sys.executable, __file__, "--peer", peer, "--seconds", str(asked.seconds)], check=True, env=kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
