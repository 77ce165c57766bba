#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the rows of bench_device in PyTorch and JAX on the same GPU, and prints a table with all three.

    build/cuda/benchmarks/bench_device > device.txt
    python3 benchmarks/device/peers.py device.txt            # a table, as Markdown
    python3 benchmarks/device/peers.py --peers torch         # one peer's rows alone
    python3 benchmarks/device/peers.py --steps               # a Transformer's step, and a mixture of experts

Times are medians of groups of calls with one synchronization at the end of each, in milliseconds, as bench_device takes them; the
ratio is Tessera's time over PyTorch's. Products of float are full float in all of them, not tf32.
"""
import argparse
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


def measure(call, finish):
    """Returns the seconds of a call."""
    def group(calls):
        start = time.perf_counter()
        out = None
        for _ in range(calls):
            out = call()
        finish(out)
        return time.perf_counter() - start
    group(3)
    once = statistics.median(group(1) for _ in range(3))
    calls = max(1, min(64, int(2e-3 / once)))
    times, begin = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < 0.03:
        times.append(group(calls) / calls)
    return statistics.median(times)


def torch_rows(row):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    aten = torch.ops.aten

    def numbers(*shape, type=torch.float32):
        return torch.randn(shape, device="cuda", dtype=torch.float32 if type != torch.float64 else type).to(type)

    def add(name, call):
        row(name, lambda: measure(call, lambda _: torch.cuda.synchronize()))
    x = numbers(16)
    y = torch.empty_like(x)
    add("an operator of 16 floats, into", lambda: torch.add(x, x, out=y))
    add("an operator of 16 floats, new", lambda: x + x)
    a = numbers(16, 16)
    add("a product of 16^3, new", lambda: a @ a)
    types = {"float": torch.float32, "double": torch.float64, "bfloat16": torch.bfloat16, "half": torch.float16}
    for name, type in types.items():
        for n in (1024, 8192):
            a, b = numbers(n, n, type=type), numbers(n, n, type=type)
            c = torch.empty_like(a)
            add(f"product of {n}^3, {name}", lambda: torch.matmul(a, b, out=c))
    for name in ("float", "bfloat16"):
        type = types[name]
        x, z, line = numbers(16384, 4096, type=type), numbers(16384, 4096, type=type), numbers(4096, type=type)
        y = torch.empty_like(x)
        add("add, " + name, lambda: torch.add(x, z, out=y))
        add("gelu, " + name, lambda: aten.gelu.out(x, out=y))
        add("exp, " + name, lambda: torch.exp(x, out=y))
        add("add a row, " + name, lambda: torch.add(x, line, out=y))
        add("transpose, " + name, lambda: x.t().contiguous())
        add("sum of rows, " + name, lambda: x.sum(1))
        add("sum of columns, " + name, lambda: x.sum(0))
        add("sum of all, " + name, lambda: x.sum())
        add("max of rows, " + name, lambda: x.amax(1))
        add("arg-max of rows, " + name, lambda: x.argmax(1))
        add("running sum of rows, " + name, lambda: x.cumsum(1))
        add("softmax of rows, " + name, lambda: x.softmax(1))
        add("layer norm, " + name, lambda: torch.nn.functional.layer_norm(x, (4096,), line, line))
        add("variance of rows, " + name, lambda: x.var(1, correction=0))
    table = numbers(50000, 1024)
    places = torch.arange(65536, device="cuda") * 2654435761 % 50000
    some = table[places]
    add("take rows, float", lambda: table.index_select(0, places))
    add("scatter-add rows, float", lambda: table.index_add_(0, places, some))
    keys, lines = numbers(1 << 24), numbers(4096, 4096)
    add("sort, 2^24 floats", lambda: torch.sort(keys))
    add("sort of rows, float", lambda: torch.sort(lines, 1))
    add("top 16 of rows, float", lambda: torch.topk(lines, 16))
    for name in ("float", "bfloat16"):
        x = numbers(32, 256, 64, 64, type=types[name]).contiguous(memory_format=torch.channels_last)
        w = numbers(256, 256, 3, 3, type=types[name]).contiguous(memory_format=torch.channels_last)

        def gradient(*wanted):
            return aten.convolution_backward(x, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, wanted)
        add("convolution, " + name, lambda: torch.convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1))
        add("convolution, gradient by data, " + name, lambda: gradient(True, False, False))
        add("convolution, gradient by kernel, " + name, lambda: gradient(False, True, False))


# Transformer: sequences, elements of one, features, heads, features between, words, layers. The mixture of experts, top-2: groups,
# tokens of one, features, experts, features between, capacity. All in full float, as bench_transformer and bench_mixture_of_experts.
BATCH, SEQUENCE, EMBED, HEADS, HIDDEN, WORDS, LAYERS = 8, 1024, 1024, 16, 4096, 8192, 4
GROUPS, TOKENS, MODEL, EXPERTS, WIDTH, CAPACITY = 8, 2048, 1024, 8, 4096, 512


def torch_steps(tell):
    import torch
    from torch import nn
    from torch_layers import Transformer
    torch.manual_seed(1)

    class Model(Transformer):
        def forward(self, ids, following):
            return nn.functional.cross_entropy(super().forward(ids).flatten(0, 1), following.flatten())

    def finish(_):
        torch.cuda.synchronize()
    ids, following = torch.randint(0, WORDS, (2, BATCH, SEQUENCE), device="cuda")
    for how in ("eager", "compiled"):
        model = Model(WORDS, SEQUENCE, EMBED, HEADS, HIDDEN, LAYERS).cuda()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
        loss = torch.compile(model) if how == "compiled" else model

        def step():
            optimizer.zero_grad()
            loss(ids, following).backward()
            optimizer.step()
        tell("Transformer step, PyTorch " + how, measure(step, finish))

    x, gate = torch.randn(GROUPS, TOKENS, MODEL, device="cuda"), 0.05 * torch.randn(MODEL, EXPERTS, device="cuda")
    first, second = (0.05 * torch.randn(EXPERTS, *s, device="cuda") for s in ((MODEL, WIDTH), (WIDTH, MODEL)))
    for leaf in (x, gate, first, second):
        leaf.requires_grad_()

    def mixture():
        """By rows that are put into the experts' buffers, and taken out of them."""
        gates = (x @ gate).softmax(-1)
        best, chosen = gates.topk(2, -1)
        one, two = (nn.functional.one_hot(chosen[..., k], EXPERTS) for k in (0, 1))
        counts = one.sum(1)
        place_one = ((one.cumsum(1) - one) * one).sum(-1)
        place_two = ((two.cumsum(1) - two + counts[:, None]) * two).sum(-1)
        weights = best / best.sum(-1, keepdim=True)
        group = torch.arange(GROUPS, device="cuda")[:, None]
        buffers, outs = x.new_zeros(EXPERTS * GROUPS * CAPACITY + 1, MODEL), 0
        slots = [torch.where(place < CAPACITY, (chosen[..., k] * GROUPS + group) * CAPACITY + place, len(buffers) - 1)
                 for k, place in enumerate((place_one, place_two))]
        for slot in slots:
            buffers = buffers.index_put((slot.flatten(),), x.flatten(0, 1))
        sent = buffers[:-1].view(EXPERTS, GROUPS * CAPACITY, MODEL)
        made = nn.functional.pad(((sent @ first).relu() @ second).view(-1, MODEL), (0, 0, 0, 1))
        for k, slot in enumerate(slots):
            outs = outs + weights[..., k, None] * made[slot]
        return outs, (gates.mean(1) * counts).sum() / (GROUPS * EXPERTS * TOKENS)
    for how in ("eager", "compiled"):
        layer = torch.compile(mixture) if how == "compiled" else mixture

        def both():
            y, auxiliary = layer()
            return torch.autograd.grad((y ** 2).sum() + 0.01 * auxiliary, (x, gate, first, second))
        with torch.no_grad():
            tell("mixture, forward, PyTorch " + how, measure(layer, finish))
        tell("mixture, forward and backward, PyTorch " + how, measure(both, finish))


def jax_steps(tell):
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_default_matmul_precision", "highest")
    size = EMBED // HEADS

    def normal(key, *shape):
        return jax.random.normal(key, shape) * shape[0] ** -0.5

    def weights(key):
        a, b, c, d, e, f, g = jax.random.split(key, 7)
        blocks = [{"norms": [(jnp.ones(EMBED), jnp.zeros(EMBED)) for _ in range(2)], "joined": normal(a, EMBED, 3, HEADS, size),
                   "out": normal(b, HEADS, size, EMBED), "in": (normal(c, EMBED, HIDDEN), jnp.zeros(HIDDEN)),
                   "back": (normal(d, HIDDEN, EMBED), jnp.zeros(EMBED))} for _ in range(LAYERS)]
        return {"table": normal(e, WORDS, EMBED), "places": normal(f, SEQUENCE, EMBED), "blocks": blocks,
                "norm": (jnp.ones(EMBED), jnp.zeros(EMBED)), "head": (normal(g, EMBED, WORDS), jnp.zeros(WORDS))}

    def norm(x, by):
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * by[0] + by[1]

    def loss(w, ids, following):
        x = w["table"][ids] + w["places"]
        for block in w["blocks"]:
            q, k, v = jnp.einsum("bsm,mjhd->jbshd", norm(x, block["norms"][0]), block["joined"])
            heads = jax.nn.dot_product_attention(q, k, v, is_causal=True)
            x = x + jnp.einsum("bshd,hdm->bsm", heads, block["out"])
            h = jax.nn.gelu(norm(x, block["norms"][1]) @ block["in"][0] + block["in"][1], approximate=False)
            x = x + h @ block["back"][0] + block["back"][1]
        scores = norm(x, w["norm"]) @ w["head"][0] + w["head"][1]
        return -jnp.take_along_axis(jax.nn.log_softmax(scores), following[..., None], -1).mean()

    def step(w, mean, square, t, ids, following):
        slope = jax.grad(loss)(w, ids, following)
        t = t + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
        square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, square, slope)
        rate = 1e-3 * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
        return jax.tree.map(lambda x, m, v: x - rate * m / (jnp.sqrt(v) + 1e-8), w, mean, square), mean, square, t
    w = weights(jax.random.key(1))
    state = [w, jax.tree.map(jnp.zeros_like, w), jax.tree.map(jnp.zeros_like, w), jnp.zeros(())]
    ids, following = jax.random.randint(jax.random.key(2), (2, BATCH, SEQUENCE), 0, WORDS)
    compiled = jax.jit(step, donate_argnums=(0, 1, 2))

    def one():
        state[:] = compiled(*state, ids, following)
        return state
    tell("Transformer step, JAX", measure(one, jax.block_until_ready))

    def mixture(x, gate, first, second):
        """By products with zeros and ones."""
        gates = jax.nn.softmax(x @ gate)
        one = jax.nn.one_hot(jnp.argmax(gates, -1), EXPERTS)
        two = jax.nn.one_hot(jnp.argmax(jnp.where(one > 0, -1.0, gates), -1), EXPERTS)
        counts = one.sum(1)
        g1, g2 = (gates * one).sum(-1), (gates * two).sum(-1)

        def combine(choice, place, weight):
            at = jax.nn.one_hot((place * choice).sum(-1).astype(int), CAPACITY)
            return jnp.einsum("gs,gse,gsc->gsec", weight, choice * (place < CAPACITY), at)
        weights = (combine(one, jnp.cumsum(one, 1) - one, g1 / (g1 + g2))
                   + combine(two, jnp.cumsum(two, 1) - two + counts[:, None], g2 / (g1 + g2)))
        sent = jnp.einsum("gsec,gsm->egcm", (weights > 0).astype(x.dtype), x)
        made = jnp.einsum("egch,ehm->egcm", jax.nn.relu(jnp.einsum("egcm,emh->egch", sent, first)), second)
        return jnp.einsum("gsec,egcm->gsm", weights, made), (gates.mean(1) * counts).sum() / (GROUPS * EXPERTS * TOKENS)

    def objective(*given):
        y, auxiliary = mixture(*given)
        return (y ** 2).sum() + 0.01 * auxiliary
    given = [0.05 * jax.random.normal(jax.random.key(k), shape) for k, shape in enumerate((
        (GROUPS, TOKENS, MODEL), (MODEL, EXPERTS), (EXPERTS, MODEL, WIDTH), (EXPERTS, WIDTH, MODEL)))]
    for name, call in (("forward", jax.jit(mixture)), ("forward and backward", jax.jit(jax.value_and_grad(objective, (0, 1, 2, 3))))):
        tell(f"mixture, {name}, JAX", measure(lambda: call(*given), jax.block_until_ready))


def jax_rows(row):
    import jax
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")
    import jax.numpy as jnp
    lax = jax.lax

    def numbers(*shape, type="float32"):
        return jax.random.normal(jax.random.key(1), shape, "float32").astype(type)

    def add(name, function, *arguments):
        call = jax.jit(function)
        row(name, lambda: measure(lambda: call(*arguments), lambda out: jax.block_until_ready(out)))
    x = numbers(16)
    add("an operator of 16 floats, new", lambda v: v + v, x)
    for name, type in (("float", "float32"), ("double", "float64"), ("bfloat16", "bfloat16"), ("half", "float16")):
        for n in (1024, 8192):
            a, b = numbers(n, n, type=type), numbers(n, n, type=type)
            add(f"product of {n}^3, {name}", lambda a, b: a @ b, a, b)
    for name in ("float", "bfloat16"):
        x, z, line = numbers(16384, 4096, type=name + "32" * (name == "float")), numbers(16384, 4096), numbers(4096)
        z, line = z.astype(x.dtype), line.astype(x.dtype)
        add("add, " + name, lambda a, b: a + b, x, z)
        add("gelu, " + name, lambda a: jax.nn.gelu(a, approximate=False), x)
        add("exp, " + name, jnp.exp, x)
        add("transpose, " + name, lambda a: a.T.copy(), x)
        add("sum of rows, " + name, lambda a: a.sum(1), x)
        add("sum of columns, " + name, lambda a: a.sum(0), x)
        add("softmax of rows, " + name, lambda a: jax.nn.softmax(a, 1), x)

        def norm(a, s):
            wide = a.astype("float32")
            centred = wide - wide.mean(1, keepdims=True)
            return (centred * lax.rsqrt((centred * centred).mean(1, keepdims=True) + 1e-5) * s + s).astype(a.dtype)
        add("layer norm, " + name, norm, x, line)


PEERS = {"torch": torch_rows, "jax": jax_rows}
STEPS = {"torch": torch_steps, "jax": jax_steps}


def main():
    take = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    take.add_argument("ours", nargs="?", help="what bench_device printed")
    take.add_argument("--peers", choices=PEERS, nargs="+", default=list(PEERS))
    take.add_argument("--steps", action="store_true", help="a step of a Transformer and a mixture of experts instead")
    asked = take.parse_args()
    if asked.steps:
        for peer in asked.peers:
            try:
                STEPS[peer](lambda name, seconds: print(f"{name}: {seconds * 1e3:.2f} ms", flush=True))
            except Exception as error:  # the other one is measured all the same
                print(f"{peer}: {str(error).splitlines()[0]}", flush=True)
        return
    ours = {}
    if asked.ours:
        with open(asked.ours) as file:
            for line in file:
                parts = line.rstrip("\n").split("\t")
                if len(parts) == 3 and not parts[1].startswith("fails"):
                    ours[parts[0]] = (float(parts[1]), parts[2])
    found = {peer: {} for peer in asked.peers}
    for peer in asked.peers:
        def row(name, seconds, peer=peer):
            try:
                found[peer][name] = seconds() * 1e3
            except Exception as error:  # a row that a peer cannot do leaves the others
                print(f"{peer}: {name}: {str(error).splitlines()[0]}", file=sys.stderr)
        try:
            PEERS[peer](row)
        except ImportError as error:
            print(f"{peer}: {error}", file=sys.stderr)
    print("| row | Tessera, ms | | " + "".join(f"{peer}, ms | " for peer in asked.peers) + "ratio |")
    print("|---|---|---|" + "---|" * (len(asked.peers) + 1))
    for name in ours or found[asked.peers[0]]:
        mine = ours.get(name)
        torch_time = found.get("torch", {}).get(name)
        ratio = f"{mine[0] / torch_time:.2f}" if mine and torch_time else ""
        print(f"| {name} | {f'{mine[0]:.4f}' if mine else ''} | {mine[1] if mine else ''} | "
              + "".join(f"{found[p][name]:.4f} | " if name in found[p] else "| " for p in asked.peers) + ratio + " |")


if __name__ == "__main__":
    main()
