#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures products of matrices and the contraction ikjl,lakb->iajb in JAX (two and four devices, under the same shardings), PyTorch
and NumPy (one process of two threads, whole matrices), those that are installed; with --bench in turns with bench_matmul.

    python3 benchmarks/products_peers.py                                        # the peers alone
    python3 benchmarks/products_peers.py --bench build/bench/benchmarks         # beside Tessera, as a table
    python3 benchmarks/products_peers.py --peer jax --devices 4 --only contraction

With --bench programs and peers run one after the other, --rounds times, so that what else the machine does meets all alike; a time is
the least of the rounds' medians. --only names rows by a regular expression.
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

SHAPES = ((2048, 2048, 2048), (8192, 8192, 128), (512, 512, 16384), (128, 8192, 8192))  # m, n, k
CONTRACTION, EXTENT = "ikjl,lakb->iajb", 48
# How A, B and the result lie on a mesh ("data", "model"), and the mesh.
SPLITS = {
    "A by rows, B whole": ((2, 1), ("data", None), (None, None), ("data", None)),
    "all by rows": ((2, 1), ("data", None), ("data", None), ("data", None)),
    "all by columns": ((1, 2), (None, "model"), (None, "model"), (None, "model")),
    "A by rows, B by columns": ((2, 1), ("data", None), (None, "data"), ("data", None)),
    "sum split, result by rows": ((2, 1), (None, "data"), ("data", None), ("data", None)),
    "sum split, result whole": ((2, 1), (None, "data"), ("data", None), (None, None)),
    "all in blocks of 2 x 2": ((2, 2), ("data", "model"), ("data", "model"), ("data", "model")),
}


def matrix_rows(types):
    for kind in types:
        for m, n, k in SHAPES:
            yield kind, (m, n, k), f"{kind} {m}x{n}x{k}"


def splits_of(shape, devices):
    for how, split in SPLITS.items():
        if split[0][0] * split[0][1] == devices and not (how.startswith("sum") and max(shape[:2]) > 2048):
            yield how, split


def contraction_row(grid):
    return f"float {CONTRACTION} of {EXTENT}^4 on {grid[0]}x{grid[1]}"


def measure(name, step, asked):
    print(f"{name}: {median_ms(step, asked.seconds):.2f} ms", flush=True)


def wants(row, asked):
    return asked.only is None or re.search(asked.only, row)


def jax_rows(asked):
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    import numpy
    jax.config.update("jax_enable_x64", True)
    types = {"float": jnp.float32, "double": jnp.float64}

    def one(row, grid, equation, extents, specs, kind):
        mesh = Mesh(numpy.array(jax.devices()[:grid[0] * grid[1]]).reshape(grid), ("data", "model"))
        x, y = (jax.device_put(jax.random.normal(jax.random.key(i), extents[i], types[kind]), NamedSharding(mesh, P(*specs[i])))
                for i in (0, 1))
        product = jax.jit(lambda a, b: jnp.einsum(equation, a, b, precision="highest"),
                          out_shardings=NamedSharding(mesh, P(*specs[2])))
        measure(row, lambda: product(x, y).block_until_ready(), asked)

    for kind, shape, name in matrix_rows(types):
        m, n, k = shape
        for how, (grid, *specs) in splits_of(shape, asked.devices):
            if wants(f"{name}, {how}", asked):
                one(f"{name}, {how}", grid, "ik,kj->ij", ((m, k), (k, n)), specs, kind)
    for grid in ((2, 2),) if asked.devices == 4 else ((2, 1), (1, 2)):
        if wants(contraction_row(grid), asked):
            one(contraction_row(grid), grid, CONTRACTION, ((EXTENT,) * 4,) * 2, (("data", "model"),) * 3, "float")


def whole_rows(normal, multiply, contract, asked):
    """The same without shardings, on one process of two threads: its time stands beside each sharding."""
    for kind, shape, name in matrix_rows(("float", "double")):
        rows = [f"{name}, {how}" for how, _ in splits_of(shape, asked.devices)]
        if any(wants(row, asked) for row in rows):
            m, n, k = shape
            a, b = normal((m, k), kind), normal((k, n), kind)
            measure(name, lambda: multiply(a, b), asked)
    if wants(contraction_row((2, 2)), asked):
        a, b = normal((EXTENT,) * 4, "float"), normal((EXTENT,) * 4, "float")
        measure(f"float {CONTRACTION} of {EXTENT}^4", lambda: contract(a, b), asked)


def torch_rows(asked):
    import torch
    torch.set_num_threads(2)
    types = {"float": torch.float32, "double": torch.float64}
    whole_rows(lambda shape, kind: torch.randn(shape, dtype=types[kind]), torch.matmul,
               lambda a, b: torch.einsum(CONTRACTION, a, b).contiguous(), asked)


def numpy_rows(asked):
    import numpy
    make = numpy.random.default_rng(1)
    types = {"float": numpy.float32, "double": numpy.float64}
    whole_rows(lambda shape, kind: make.standard_normal(shape, types[kind]), numpy.matmul,
               lambda a, b: numpy.ascontiguousarray(numpy.einsum(CONTRACTION, a, b, optimize=True)), asked)


PEERS = {"jax": jax_rows, "torch": torch_rows, "numpy": numpy_rows}
NAMES = {"jax": "JAX", "torch": "PyTorch, whole", "numpy": "NumPy, whole"}


def output_of(command, environment):
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"products_peers.py: {' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def run_peer(peer, devices, asked):
    kept = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    only = ["--only", asked.only] if asked.only else []
    said = output_of([sys.executable, __file__, "--peer", peer, "--devices", str(devices), "--seconds", str(asked.seconds), *only], kept)
    for name, took in re.findall(r"^(.+): ([\d.]+) ms$", said, re.M):
        yield name, NAMES[peer], float(took)


def run_tessera(processes, asked):
    kept = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false"}
    command = [*asked.mpiexec.split(), "-n", str(processes), os.path.join(asked.bench, "bench_matmul")]
    if asked.only:
        command.append("--benchmark_filter=" + asked.only)
    for name, took in re.findall(r"^((?:float|double) .+?) {2,}([\d.]+) ", output_of(command, kept), re.M):
        yield name, "Tessera", float(took)


def main():
    take = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    take.add_argument("--peer", choices=PEERS, help="measure one alone, in this process")
    take.add_argument("--devices", type=int, choices=(2, 4), default=2, help="with --peer: JAX's devices")
    take.add_argument("--only", help="a regular expression of rows")
    take.add_argument("--seconds", type=float, default=2, help="for each row of a peer")
    take.add_argument("--bench", help="the folder of bench_matmul")
    take.add_argument("--rounds", type=int, default=3, help="with --bench: how often all are run")
    take.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    take.add_argument("--mpiexec", default="mpiexec.mpich")
    take.add_argument("--json", help="a file that is written too, for cmake/docs/figures.py")
    asked = take.parse_args()
    if asked.peer:
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={asked.devices}"  # before JAX is imported
        return PEERS[asked.peer](asked)
    peers = [peer for peer in asked.peers if importlib.util.find_spec(peer) is not None]
    for peer in asked.peers:
        if peer not in peers:
            print(f"{peer} is not installed")
    least = {}  # {row: {way: ms}}
    for _ in range(asked.rounds if asked.bench else 1):
        runs = []
        for count in (2, 4):
            runs += [run_tessera(count, asked)] if asked.bench else []
            runs += [run_peer(peer, count, asked) for peer in peers if peer == "jax" or count == 2]
        for times in runs:
            for row, way, took in times:
                ways = least.setdefault(row, {})
                ways[way] = min(took, ways.get(way, took))
    whole = {row: ways for row, ways in least.items() if any(way.endswith("whole") for way in ways)}
    written = {}
    for row, ways in least.items():
        if row in whole:
            continue
        for name, others in whole.items():
            if row.startswith(name):
                ways = {**ways, **others}
        written["products/" + row] = ways
        ours = ways.get("Tessera")
        print(row)
        for way, took in ways.items():
            print(f"  {way}: {took:.2f} ms" + (f", Tessera takes {ours / took:.2f} of it" if ours and way != "Tessera" else ""))
    if asked.json:
        write_json(asked.json, written, peers)


if __name__ == "__main__":
    sys.exit(main())
