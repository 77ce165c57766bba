#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the rows of bench_device in PyTorch and JAX on the same GPU, and prints a table with all three.

    build/cuda/benchmarks/bench_device > device.txt
    python3 benchmarks/device/peers.py device.txt            # a table, as Markdown
    python3 benchmarks/device/peers.py --peers torch         # one peer's rows alone

Times are medians of groups of calls with one synchronization at the end of each, in milliseconds, as bench_device takes them; the
ratio is Tessera's time over PyTorch's. Products of float are full float in all of them, not tf32.
"""
import argparse
import statistics
import sys
import time


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


def torch_steps(compiled):
    """A step of the Transformer of bench_transformer on a device, in full float; returns the loss."""
    import torch
    from torch import nn
    batch, sequence, embed, heads, hidden, words, layers = 8, 1024, 1024, 16, 4096, 8192, 4
    torch.manual_seed(1)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(embed), nn.LayerNorm(embed)
            self.joined, self.out = nn.Linear(embed, 3 * embed, bias=False), nn.Linear(embed, embed, bias=False)
            self.feed = nn.Sequential(nn.Linear(embed, hidden), nn.GELU(), nn.Linear(hidden, embed))

        def forward(self, x):
            q, k, v = self.joined(self.first(x)).view(batch, sequence, 3, heads, embed // heads).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, sequence, embed))
            return x + self.feed(self.second(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.places = nn.Embedding(words, embed), nn.Parameter(0.1 * torch.randn(sequence, embed))
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(embed), nn.Linear(embed, words)

        def forward(self, ids, following):
            out = self.head(self.norm(self.blocks(self.table(ids) + self.places)))
            return nn.functional.cross_entropy(out.flatten(0, 1), following.flatten())

    model = Model().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    ids, following = torch.randint(0, words, (2, batch, sequence), device="cuda")
    loss = torch.compile(model) if compiled else model

    def step():
        optimizer.zero_grad()
        loss(ids, following).backward()
        optimizer.step()
    return measure(step, lambda _: torch.cuda.synchronize())


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


def main():
    take = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    take.add_argument("ours", nargs="?", help="what bench_device printed")
    take.add_argument("--peers", choices=PEERS, nargs="+", default=list(PEERS))
    take.add_argument("--steps", action="store_true", help="a step of a Transformer in PyTorch instead, eager and compiled")
    asked = take.parse_args()
    if asked.steps:
        for compiled in (False, True):
            print(f"Transformer step, PyTorch {'compiled' if compiled else 'eager'}: {torch_steps(compiled) * 1e3:.2f} ms", flush=True)
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
