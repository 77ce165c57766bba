#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the rows of bench_kernels and bench_functions with PyTorch, NumPy and JAX, those that are installed, in turns with
these programs.

    cmake --build build/bench --target bench_kernels bench_functions
    python3 benchmarks/peers.py build/bench/benchmarks/bench_{kernels,functions}           # a table, as Markdown
    python3 benchmarks/peers.py build/bench/benchmarks/bench_kernels --threads 1 2 --rounds 5 --filter softmax
    python3 benchmarks/peers.py --peer torch --threads 1                                   # one peer's rows alone
    python3 benchmarks/peers.py build/bench/benchmarks/bench_functions --json functions.json   # for cmake/docs/figures.py

Times are medians, in milliseconds, of at least 0.1 s a row and round, and then of the rounds; with one thread those of the
processor, which other programs prolong less. The ratio is Tessera's time over that of the better of PyTorch and NumPy. JAX stands
beside them and is not in the ratio. NumPy's functions take one thread. On processors where OPENBLAS_CORETYPE is set, run it without
for NumPy's sake: this script takes it out for the peers.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from written import write_json

SIDE, MANY = 2048, 1 << 20


class Rows:
    """Measures what `wanted` matches and prints a line for each: name, tab, milliseconds."""

    def __init__(self, wanted, seconds, threads):
        self.wanted, self.seconds = re.compile(wanted), seconds
        self.clock = time.process_time if threads == 1 else time.perf_counter

    def __call__(self, name, call):
        if not self.wanted.search("kernel/" + name + "/tessera"):
            return
        call()
        times, spent = [], 0.0
        while len(times) < 5 or spent < self.seconds:
            start = self.clock()
            call()
            times.append(self.clock() - start)
            spent += times[-1]
        print(f"{name}\t{statistics.median(times) * 1e3:.6f}", flush=True)


def torch_rows(row, threads):
    import torch
    torch.set_num_threads(threads)
    f, d, h, b = torch.float32, torch.float64, torch.float16, torch.bfloat16
    aten = torch.ops.aten

    def numbers(*shape, type=f):
        return ((torch.rand(shape) - 0.5) * 8).to(type)

    for name, type in (("float", f), ("double", d), ("half", h), ("bfloat16", b)):
        x = numbers(MANY, type=type)
        y = torch.empty_like(x)
        row("exp, " + name, lambda: torch.exp(x, out=y))
        row("tanh, " + name, lambda: torch.tanh(x, out=y))
        row("erf, " + name, lambda: torch.erf(x, out=y))
        row("gelu, " + name, lambda: aten.gelu.out(x, out=y))
        row("gelu by tanh, " + name, lambda: aten.gelu.out(x, approximate="tanh", out=y))
        row("silu, " + name, lambda: aten.silu.out(x, out=y))
        row("sin, " + name, lambda: torch.sin(x, out=y))
        row("relu, " + name, lambda: torch.clamp_min(x, 0, out=y))
        square, out = x.view(1024, 1024), y.view(1024, 1024)
        line = square[0].clone()
        row("add a row, " + name, lambda: torch.add(square, line, out=out))
        row("add a column, " + name, lambda: torch.add(square, line.view(1024, 1), out=out))
        x = numbers(SIDE, SIDE, type=type)
        y, r, at = torch.empty_like(x), torch.empty(SIDE, dtype=type), torch.empty(SIDE, dtype=torch.int64)
        for along, of in ((1, " of rows, "), (0, " of columns, ")):
            row("sum" + of + name, lambda: torch.sum(x, along, out=r))
            row("max" + of + name, lambda: torch.amax(x, along, out=r))
            row("arg-max" + of + name, lambda: torch.argmax(x, along, out=at))
            row("running sum" + of + name, lambda: torch.cumsum(x, along, out=y))
            row("softmax" + of + name, lambda: torch.softmax(x, along, out=y))
            row("log-softmax" + of + name, lambda: torch.log_softmax(x, along, out=y))
    for name, source, target in (("float to double", f, d), ("double to float", d, f), ("float to half", f, h),
                                 ("half to float", h, f), ("float to bfloat16", f, b), ("bfloat16 to float", b, f)):
        x, y = numbers(MANY, type=source), torch.empty(MANY, dtype=target)
        row("cast, " + name, lambda: y.copy_(x))
    for name, type, whole in (("float", f, torch.complex64), ("double", d, torch.complex128)):
        x, z = numbers(MANY, type=type).abs() + 0.125, numbers(MANY, type=type)
        y, mask = torch.empty_like(x), torch.rand(MANY) < 0.43
        row("exp2, " + name, lambda: torch.exp2(x, out=y))
        row("log, " + name, lambda: torch.log(x, out=y))
        row("log1p, " + name, lambda: torch.log1p(x, out=y))
        row("sqrt, " + name, lambda: torch.sqrt(x, out=y))
        row("pow, " + name, lambda: torch.pow(x, z, out=y))
        row("where, " + name, lambda: torch.where(mask, x, z, out=y))
        x = numbers(SIDE, SIDE, type=type)
        scale, bias = x[0].clone(), x[1].clone()  # apart, as Tessera's: one line for both would stay in the first cache
        row("mean and variance of rows, " + name, lambda: torch.var_mean(x, 1, correction=0))
        row("layer norm, " + name, lambda: torch.native_layer_norm(x, (SIDE,), scale, bias, 1e-5))
        c = torch.complex(numbers(1024, 1024, type=type), numbers(1024, 1024, type=type))
        e, o, size, sums = c.clone(), torch.empty_like(c), torch.empty(1024, 1024, dtype=type), torch.empty(1024, dtype=whole)
        row("add, complex " + name, lambda: torch.add(c, e, out=o))
        row("multiply, complex " + name, lambda: torch.mul(c, e, out=o))
        row("size, complex " + name, lambda: torch.abs(c, out=size))
        row("sum of rows, complex " + name, lambda: torch.sum(c, 1, out=sums))
        left, right = c[:512, :512].contiguous(), c[512:, 512:].contiguous()
        result = torch.matmul(left, right)
        row("product of 512^3, complex " + name, lambda: torch.matmul(left, right, out=result))
    for name, type in (("float", f), ("double", d)):
        x = numbers(SIDE, SIDE, type=type)
        y = torch.empty_like(x)
        row("transpose, " + name, lambda: y.copy_(x.t()))
        heads, split = numbers(8, 512, 16, 64, type=type), torch.empty(8, 16, 512, 64, dtype=type)
        row("split heads, " + name, lambda: split.copy_(heads.permute(0, 2, 1, 3)))
        row("reverse rows, " + name, lambda: torch.flip(x, [0]))
        table, places = numbers(50000, 256, type=type), torch.arange(8192) * 2654435761 % 50000
        some = torch.zeros(8192, 256, dtype=type)
        row("take rows, " + name, lambda: torch.index_select(table, 0, places, out=some))
        some.zero_()
        row("scatter-add rows, " + name, lambda: table.index_add_(0, places, some))
        keys = numbers(256, 4096, type=type)
        row("top 16, " + name, lambda: torch.topk(keys, 16))
        row("sort, " + name, lambda: torch.sort(keys, 1, descending=True))

        def product(title, left, right):
            out = torch.matmul(left, right)
            row(title + name, lambda: torch.matmul(left, right, out=out))
        cubes, small = numbers(512, 64, 64, type=type), numbers(4096, 16, 16, type=type)
        queries = numbers(128, 512, 64, type=type)
        product("512 products of 64^3, ", cubes, cubes)
        product("4096 products of 16^3, ", small, small)
        product("128 products of queries and keys, ", queries, queries.transpose(1, 2))
        product("matrix times vector, ", x, x[0].clone())
        product("vector times matrix, ", x[0].clone(), x)
        row("outer product, " + name, lambda: torch.outer(x[0], x[1], out=y))
    for name, shape, layout in (("4 x 32 x 256 x 256", (4, 32, 256, 256), torch.contiguous_format),
                                ("features last", (4, 32, 256, 256), torch.channels_last),
                                ("1 x 16 x 64^3", (1, 16, 64, 64, 64), torch.contiguous_format)):
        ones = [1] * (len(shape) - 2)
        x = numbers(*shape).contiguous(memory_format=layout)
        w = numbers(shape[1], shape[1], *[3 for _ in ones]).contiguous(memory_format=layout)
        g = numbers(*shape).contiguous(memory_format=layout)

        def gradient(*wanted):
            return aten.convolution_backward(g, x, w, None, ones, ones, ones, False, [0 for _ in ones], 1, wanted)
        row(f"convolution, {name}, forward", lambda: torch.convolution(x, w, None, ones, ones, ones, False, [0 for _ in ones], 1))
        row(f"convolution, {name}, gradient by data", lambda: gradient(True, False, False))
        row(f"convolution, {name}, gradient by kernel", lambda: gradient(False, True, False))


def numpy_rows(row, _):
    import numpy
    for name, type in (("float", "f4"), ("double", "f8"), ("half", "f2")):
        x = ((numpy.random.rand(MANY) - 0.5) * 8).astype(type)
        y = numpy.empty_like(x)
        row("exp, " + name, lambda: numpy.exp(x, out=y))
        row("tanh, " + name, lambda: numpy.tanh(x, out=y))
        row("relu, " + name, lambda: numpy.maximum(x, 0, out=y))
        row("sin, " + name, lambda: numpy.sin(x, out=y))
        square, out = x.reshape(1024, 1024), y.reshape(1024, 1024)
        line = square[0].copy()
        row("add a row, " + name, lambda: numpy.add(square, line, out=out))
        row("add a column, " + name, lambda: numpy.add(square, line[:, None], out=out))
        x = ((numpy.random.rand(SIDE, SIDE) - 0.5) * 8).astype(type)
        y = numpy.empty_like(x)
        for along, of in ((1, " of rows, "), (0, " of columns, ")):
            row("sum" + of + name, lambda: x.sum(along))
            row("max" + of + name, lambda: x.max(along))
            row("arg-max" + of + name, lambda: x.argmax(along))
            row("running sum" + of + name, lambda: numpy.cumsum(x, along, out=y))
        if name == "half":
            continue
        positive, other = numpy.abs(x).reshape(-1)[:MANY] + x.dtype.type(0.125), x.reshape(-1)[:MANY].copy()
        to, mask = numpy.empty_like(positive), numpy.random.rand(MANY) < 0.43
        row("exp2, " + name, lambda: numpy.exp2(positive, out=to))
        row("log, " + name, lambda: numpy.log(positive, out=to))
        row("log1p, " + name, lambda: numpy.log1p(positive, out=to))
        row("sqrt, " + name, lambda: numpy.sqrt(positive, out=to))
        row("pow, " + name, lambda: numpy.power(positive, other, out=to))
        row("where, " + name, lambda: numpy.where(mask, positive, other))
        c = (x[:1024, :1024] + 1j * x[1024:, 1024:]).astype("c8" if type == "f4" else "c16")
        e, o, size, left, right = c.copy(), numpy.empty_like(c), numpy.empty(c.shape, type), c[:512, :512].copy(), c[512:, 512:].copy()
        row("add, complex " + name, lambda: numpy.add(c, e, out=o))
        row("multiply, complex " + name, lambda: numpy.multiply(c, e, out=o))
        row("size, complex " + name, lambda: numpy.abs(c, out=size))
        row("sum of rows, complex " + name, lambda: c.sum(1))
        row("product of 512^3, complex " + name, lambda: left @ right)
        row("transpose, " + name, lambda: numpy.copyto(y, x.T))
        row("reverse rows, " + name, lambda: numpy.copyto(y, x[::-1]))
        table, places = numpy.random.rand(50000, 256).astype(type), numpy.arange(8192) * 2654435761 % 50000
        some = numpy.empty((8192, 256), type)
        row("take rows, " + name, lambda: numpy.take(table, places, 0, out=some, mode="clip"))
        row("matrix times vector, " + name, lambda: x @ x[0])
        row("vector times matrix, " + name, lambda: x[0] @ x)
        row("outer product, " + name, lambda: numpy.outer(x[0], x[1], out=y))
    for name, source, target in (("float to double", "f4", "f8"), ("double to float", "f8", "f4"),
                                 ("float to half", "f4", "f2"), ("half to float", "f2", "f4")):
        x, y = numpy.random.rand(MANY).astype(source), numpy.empty(MANY, target)
        row("cast, " + name, lambda: numpy.copyto(y, x, casting="unsafe"))


def jax_rows(row, _):
    import jax
    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    def compiled(name, function, *arguments):
        call = jax.jit(function)
        row(name, lambda: call(*arguments).block_until_ready())
    for name, type in (("float", "float32"), ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16")):
        key = jax.random.key(1)
        x = (jax.random.uniform(key, (MANY,), "float32", -4, 4)).astype(type)
        for title, function in (("exp", jnp.exp), ("tanh", jnp.tanh), ("sin", jnp.sin), ("erf", jax.lax.erf), ("silu", jax.nn.silu),
                                ("gelu", lambda v: jax.nn.gelu(v, approximate=False)), ("gelu by tanh", jax.nn.gelu)):
            compiled(title + ", " + name, function, x)
        x = jax.random.uniform(key, (SIDE, SIDE), "float32", -4, 4).astype(type)
        for along, of in ((1, " of rows, "), (0, " of columns, ")):
            for title, function in (("sum", jnp.sum), ("max", jnp.max), ("arg-max", jnp.argmax), ("running sum", jnp.cumsum),
                                    ("softmax", jax.nn.softmax), ("log-softmax", jax.nn.log_softmax)):
                compiled(title + of + name, lambda v, function=function, along=along: function(v, axis=along), x)


PEERS = {"torch": torch_rows, "numpy": numpy_rows, "jax": jax_rows}


def installed(name):
    return subprocess.run([sys.executable, "-c", "import " + name], capture_output=True).returncode == 0


def environment(threads, ours):
    kept = {k: v for k, v in os.environ.items() if ours or not k.startswith("OPENBLAS_")}
    if not ours and threads == 1:
        kept["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    # Results that a peer allocates at each call come from memory that it has touched before, as Tessera's.
    memory = {name: "1000000000" for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")}
    return {**kept, **memory, "OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "false"}


def tessera_times(program, threads, wanted, seconds):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.json")
        subprocess.run([program, f"--benchmark_out={path}", "--benchmark_out_format=json", f"--benchmark_filter={wanted}",
                        f"--benchmark_min_time={seconds}"], check=True, env=environment(threads, True), stdout=subprocess.DEVNULL)
        with open(path) as file:
            result = json.load(file)
    milliseconds = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
    times = {"tessera": {}, "roofline": {}}
    for r in result["benchmarks"]:
        case, _, way = re.sub(r"(/iterations:\d+|/manual_time)", "", r["name"]).rpartition("/")
        times[way][case.removeprefix("kernel/")] = r["real_time"] * milliseconds[r["time_unit"]]
    return times, result["context"]


def peer_times(peer, threads, wanted, seconds):
    ran = subprocess.run([sys.executable, __file__, "--peer", peer, "--threads", str(threads), "--filter", wanted, "--seconds",
                          str(seconds)], check=True, env=environment(threads, False), capture_output=True, text=True)
    return {line.split("\t")[0]: float(line.split("\t")[1]) for line in ran.stdout.splitlines() if "\t" in line}


def main():
    take = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    take.add_argument("programs", nargs="*", help="bench_kernels, bench_functions")
    take.add_argument("--peer", choices=PEERS, help="print the rows of one peer")
    take.add_argument("--peers", choices=PEERS, nargs="+", default=list(PEERS), help="those beside Tessera")
    take.add_argument("--threads", type=int, nargs="+", default=[1])
    take.add_argument("--rounds", type=int, default=3)
    take.add_argument("--seconds", type=float, default=0.1, help="for each row and round")
    take.add_argument("--json", help="a file that is written too, as Google Benchmark writes one")
    take.add_argument("--filter", default=".", help="a regular expression, as Google Benchmark's")
    asked = take.parse_args()
    asked.seconds = max(asked.seconds, 0.1)
    if asked.peer:
        return PEERS[asked.peer](Rows(asked.filter, asked.seconds, asked.threads[0]), asked.threads[0])
    if not asked.programs:
        take.error("name the programs bench_kernels and bench_functions, or a --peer")
    peers = [name for name in asked.peers if installed(name)]
    written, context = {}, {}
    for threads in asked.threads:
        every = {}
        for _ in range(asked.rounds):
            found = {"tessera": {}, "roofline": {}}
            for program in asked.programs:
                ours, context = tessera_times(program, threads, asked.filter, asked.seconds)
                for way, times in ours.items():
                    found[way].update(times)
            found.update({peer: peer_times(peer, threads, asked.filter, asked.seconds) for peer in peers})
            for way, times in found.items():
                for case, t in times.items():
                    every.setdefault(case, {}).setdefault(way, []).append(t)
        print(f"\n{threads} thread{'s' if threads > 1 else ''}\n")
        print("| kernel | Tessera, ms | of the roofline | " + "".join(f"{p} | " for p in peers) + "ratio |")
        print("|---|---|---|" + "---|" * (len(peers) + 1))
        for case, ways in every.items():
            t = {way: statistics.median(times) for way, times in ways.items()}
            if "tessera" not in t:  # a row of a program that was not named
                continue
            written[f"kernel/{case}, {threads} thread{'s' if threads > 1 else ''}"] = t
            others = [t[p] for p in peers if p in t and p != "jax"]
            ratio = f"{t['tessera'] / min(others):.2f}" if others else ""
            print(f"| {case} | {t['tessera']:.3f} | {t['roofline'] / t['tessera']:.2f} | "
                  + "".join(f"{t[p]:.3f} | " if p in t else "| " for p in peers) + ratio + " |")
    if asked.json:
        write_json(asked.json, written, peers, context)
    return 0


if __name__ == "__main__":
    sys.exit(main())
