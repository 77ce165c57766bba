#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures a Transformer's step, a mixture of experts and a feed-forward layer in PyTorch (two threads) and JAX (two devices), those
that are installed; with --bench in turns with the programs that measure Tessera, on two processes of a core each.

    python3 benchmarks/transformer_peers.py                                          # the peers alone
    python3 benchmarks/transformer_peers.py --bench build/bench/benchmarks           # beside Tessera, as a table
    python3 benchmarks/transformer_peers.py --peer torch --seconds 20

All in single precision. A step of the Transformer: 4 layers, d 256, 8 heads, feed-forward 1024, sequence 256, batch 8, vocabulary
256, Adam; norms before the layers, learned positions (bench_transformer). The mixture, top-2: 8 groups of 256 tokens, M 256, 8
experts, H 1024, capacity 64, with groups and experts over both devices (bench_mixture_of_experts). The feed-forward layer: B·S =
2048, M = 512, H = 2048, gelu, forward and backward by x and both weights (bench_compile). With --bench programs and peers run one after the
other, --rounds times, so that what else the machine does meets all alike; a time is the least of the rounds' medians.
"""
import argparse
import importlib.util
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from timed import median_ms
from written import write_json

LAYERS, EMBED, HEADS, HIDDEN, PLACES, BATCH, WORDS = 4, 256, 8, 1024, 256, 8, 256
GROUPS, TOKENS, MODEL, EXPERTS, WIDTH, CAPACITY = 8, 256, 256, 8, 1024, 64
ROWS, NARROW, WIDE = 2048, 512, 2048
STEP, SENT, BOTH, FEED = "Transformer step", "mixture, forward", "mixture, forward and backward", "feed-forward, forward and backward"


def measure(name, step, seconds):
    print(f"{name}: {median_ms(step, seconds):.1f} ms", flush=True)


def torch_steps(seconds):
    import torch
    from torch import nn
    from torch_layers import Transformer
    torch.set_num_threads(2)
    torch.manual_seed(1)

    model = Transformer(WORDS, PLACES, EMBED, HEADS, HIDDEN, LAYERS)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    ids, following = torch.randint(0, WORDS, (2, BATCH, PLACES))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(ids).flatten(0, 1), following.flatten()).backward()
        optimizer.step()
    measure(STEP + ": PyTorch, one process of two threads", step, seconds)

    x, dy = torch.randn(ROWS, NARROW, requires_grad=True), torch.randn(ROWS, NARROW)
    first, second = nn.Parameter(0.05 * torch.randn(NARROW, WIDE)), nn.Parameter(0.05 * torch.randn(WIDE, NARROW))

    def feed():
        torch.autograd.grad(nn.functional.gelu(x @ first) @ second, (x, first, second), dy)
    measure(FEED + ": PyTorch, one process of two threads", feed, seconds)


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
        how = "data parallel" if shape[0] == 2 else "tensor parallel"
        measure(f"{STEP}: JAX, {how} on two devices", one, seconds)

    for shape in ((2, 1), (1, 2)):  # GSPMD's 2D finalized
        mesh = Mesh(numpy.array(jax.devices()[:2]).reshape(shape), ("data", "model"))

        def whole(key, spec, *extents):
            return jax.device_put(normal(key, *extents), NamedSharding(mesh, spec))
        along, down, up = P("data", "model"), P("data", "model"), P("model", "data")
        x, dy = (whole(jax.random.key(k), along, ROWS, NARROW) for k in (3, 4))
        first, second = whole(jax.random.key(5), down, NARROW, WIDE), whole(jax.random.key(6), up, WIDE, NARROW)

        def feed(x, first, second, dy):
            y, back = jax.vjp(lambda *a: jax.nn.gelu(a[0] @ a[1], approximate=False) @ a[2], x, first, second)
            return (y, *back(dy))
        feed = jax.jit(feed, out_shardings=tuple(NamedSharding(mesh, spec) for spec in (along, along, down, up)))
        measure(f"{FEED}: JAX on {shape[0]} x {shape[1]}", lambda: jax.block_until_ready(feed(x, first, second, dy)), seconds)

    mesh = Mesh(numpy.array(jax.devices()[:2]), ("data",))

    def over(*spec):
        return NamedSharding(mesh, P(*spec))

    def mixture(x, gate, first, second):
        """GShard's Algorithms 1 (without its random draw) and 2."""
        gates = jax.nn.softmax(jnp.einsum("gsm,me->gse", x, gate))
        one = jax.nn.one_hot(jnp.argmax(gates, -1), EXPERTS)
        two = jax.nn.one_hot(jnp.argmax(jnp.where(one > 0, -1.0, gates), -1), EXPERTS)
        counts = one.sum(1)
        place_one = jnp.cumsum(one, 1) - one
        place_two = jnp.cumsum(two, 1) - two + counts[:, None]
        g1, g2 = (gates * one).sum(-1), (gates * two).sum(-1)

        def combine(choice, place, weight):
            sent = choice * (place < CAPACITY)
            at = jax.nn.one_hot((place * choice).sum(-1).astype(int), CAPACITY)
            return jnp.einsum("gs,gse,gsc->gsec", weight, sent, at)
        weights = combine(one, place_one, g1 / (g1 + g2)) + combine(two, place_two, g2 / (g1 + g2))
        sent = jnp.einsum("gsec,gsm->egcm", (weights > 0).astype(x.dtype), x)
        sent = jax.lax.with_sharding_constraint(sent, over("data"))
        h = jax.nn.relu(jnp.einsum("egcm,emh->egch", sent, first))
        made = jax.lax.with_sharding_constraint(jnp.einsum("egch,ehm->egcm", h, second), over(None, "data"))
        return jnp.einsum("gsec,egcm->gsm", weights, made), (gates.mean(1) * counts).sum() / (GROUPS * EXPERTS * TOKENS)

    def objective(*arguments):
        y, auxiliary = mixture(*arguments)
        return (y ** 2).sum() + 0.01 * auxiliary
    given = [jax.device_put(0.05 * jax.random.normal(jax.random.key(k), shape), over(*spec)) for k, (shape, spec) in enumerate((
        ((GROUPS, TOKENS, MODEL), ("data",)), ((MODEL, EXPERTS), ()), ((EXPERTS, MODEL, WIDTH), ("data",)),
        ((EXPERTS, WIDTH, MODEL), ("data",))))]
    forward = jax.jit(mixture, out_shardings=(over("data"), over()))
    both = jax.jit(jax.value_and_grad(objective, (0, 1, 2, 3)),
                   out_shardings=(over(), (over("data"), over(), over("data"), over("data"))))
    measure(SENT + ": JAX on two devices", lambda: jax.block_until_ready(forward(*given)), seconds)
    measure(BOTH + ": JAX on two devices", lambda: jax.block_until_ready(both(*given)), seconds)


PEERS = {"torch": torch_steps, "jax": jax_steps}


# What a program prints for Tessera: its name, a filter, and from which line a row's time comes.
PROGRAMS = (
    ("bench_transformer", "transformer", {STEP: r"transformer/(\dx\d): ([\d.]+) ms"}),
    ("bench_mixture_of_experts", "rows that are taken", {
        SENT: r"mixture_of_experts/forward/(rows)[^:]*: ([\d.]+) ms",
        BOTH: r"mixture_of_experts/forward and backward/(rows)[^:]*: ([\d.]+) ms"}),
    ("bench_compile", "feed-forward", {FEED: r"feed-forward forward and backward/(\dx\d): compiled ([\d.]+) ms"}),
)


def output_of(command, environment):
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"transformer_peers.py: {' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def run_peer(peer, seconds):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    kept["OMP_NUM_THREADS"] = "2"
    if peer == "jax":
        kept["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    for line in output_of([sys.executable, __file__, "--peer", peer, "--seconds", str(seconds)], kept).splitlines():
        if found := re.fullmatch(r"([^:]+): (.+): ([\d.]+) ms", line):
            yield found[1], found[2], float(found[3])


def run_tessera(folder, mpiexec):
    kept = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false"}
    for program, wanted, rows in PROGRAMS:
        command = [*mpiexec.split(), "-n", "2", os.path.join(folder, program), "--benchmark_filter=" + wanted]
        said = output_of(command, kept)
        for row, pattern in rows.items():
            for mesh, took in re.findall(pattern, said):
                yield row, "Tessera" + (" on " + mesh.replace("x", " x ") if "x" in mesh else ", two processes"), float(took)


def main():
    take = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    take.add_argument("--peer", choices=PEERS, help="measure one alone, in this process")
    take.add_argument("--seconds", type=float, default=10, help="for each row")
    take.add_argument("--bench", help="the folder of bench_transformer, bench_mixture_of_experts and bench_compile")
    take.add_argument("--rounds", type=int, default=3, help="with --bench: how often all are run")
    take.add_argument("--mpiexec", default="mpiexec.mpich")
    take.add_argument("--json", help="a file that is written too, for cmake/docs/figures.py")
    asked = take.parse_args()
    if asked.peer:
        return PEERS[asked.peer](asked.seconds)
    peers = [peer for peer in PEERS if importlib.util.find_spec(peer) is not None]
    for peer in PEERS:
        if peer not in peers:
            print(f"{peer} is not installed")
    least = {}  # {row: {way: ms}}
    for _ in range(asked.rounds if asked.bench else 1):
        for times in ([run_tessera(asked.bench, asked.mpiexec)] if asked.bench else []) + [run_peer(p, asked.seconds) for p in peers]:
            for row, way, took in times:
                ways = least.setdefault(row, {})
                ways[way] = min(took, ways.get(way, took))
    for row, ways in least.items():
        print(row)
        others = [took for way, took in ways.items() if not way.startswith("Tessera")]
        for way, took in ways.items():
            ratio = f", {took / min(others):.2f} of the best peer" if way.startswith("Tessera") and others else ""
            print(f"  {way}: {took:.1f} ms{ratio}")
    if asked.json:
        write_json(asked.json, {"models/" + row: ways for row, ways in least.items()}, peers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
