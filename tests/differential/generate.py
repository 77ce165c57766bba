#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes cases for the differential test: operands, and what NumPy makes of them.

    python3 tests/differential/generate.py --seed 7 --count 2000 --out /tmp/cases
    differential_cases /tmp/cases

The folder gets cases.txt, a line a case, and one .npy file for each element type, in which all
arrays of that type lie one behind the other. A line is

    17 reduce kind=sum eq=abc->cb ulps=44 scale=30.1 in=float@1200[3x5x2] out=float@1230[2x5]

Shardings and meshes are the driver's choice (driver.cpp), by a seed of its own. Where PyTorch is
installed, its convolutions, softmax and pools are compared with those computed here before they
are written, and it computes gradients (gradients.py). bfloat16 is stored as its bits, in int16.

How far a result may be off is part of the case: `ulps` steps of the type's epsilon, of the larger
of the result and `scale`; no ulps: equal, NaN equal to NaN; `zeros=1`: the sign of zero too.
"""
import argparse
import itertools
import math
import os
import sys
import time

try:
    import numpy as np
except ImportError:
    sys.exit("generate.py: NumPy is not installed; pip install numpy (and torch, for a second opinion), then run it again")
try:
    import torch
except ImportError:
    torch = None

FLOATS = ["half", "bfloat16", "float", "double"]
COMPLEX = ["complex64", "complex128"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
ORDERED = FLOATS + INTS
NUMBERS = ORDERED + COMPLEX
ALL = NUMBERS + ["bool"]
CARRIER = {"half": np.float16, "bfloat16": np.float32, "float": np.float32, "double": np.float64,
           "complex64": np.complex64, "complex128": np.complex128, "bool": np.bool_,
           **{t: np.dtype(t).type for t in INTS}}
EPS = {"half": 2.0**-10, "bfloat16": 2.0**-7, "float": 2.0**-23, "double": 2.0**-52}
REAL_OF = {"complex64": "float", "complex128": "double"}
LETTERS = "abcdefgh"


def is_float(t):
    return t in EPS


def is_complex(t):
    return t in REAL_OF


# ---- element types ----------------------------------------------------------------------------


def to_bfloat16(x):
    """float32 whose values are bfloat16's: rounded to the nearest, halves to even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    odd = (bits >> 16) & 1
    rounded = ((bits.astype(np.uint64) + 0x7FFF + odd) & 0xFFFF0000).astype(np.uint32)
    rounded = np.where((bits & 0x7FFFFFFF) > 0x7F800000, np.uint32(0x7FC00000), rounded)
    return rounded.astype(np.uint32).view(np.float32).reshape(np.shape(x))


def as_type(t, x):
    """x, computed wide, rounded once to t; bfloat16 is carried in float32."""
    with np.errstate(all="ignore"):
        x = np.asarray(x)
        return to_bfloat16(x.astype(np.float32)) if t == "bfloat16" else x.astype(CARRIER[t])


def wide(t, x):
    """x as what its sums are computed in."""
    if is_float(t):
        return x.astype(np.longdouble)
    return x.astype(np.clongdouble) if is_complex(t) else x


class Array:
    def __init__(self, t, x):
        self.type, self.x = t, np.ascontiguousarray(x, CARRIER[t]).reshape(np.shape(x))

    def bits(self):
        if self.type == "bfloat16":
            return (self.x.view(np.uint32) >> 16).astype(np.uint16).view(np.int16)
        return self.x


SPECIAL = {"half": np.finfo(np.float16), "float": np.finfo(np.float32), "double": np.finfo(np.float64)}


def specials(t):
    if t == "bfloat16":
        edge = [9.2e-41, -9.2e-41, 2.0**-126, -(2.0**-126), 3.38953139e38, -3.38953139e38]
    else:
        f = SPECIAL[t]
        edge = [float(v) for v in (f.smallest_subnormal, -f.smallest_subnormal, f.tiny, -f.tiny, f.max, -f.max)]
    return [math.nan, math.inf, -math.inf, 0.0, -0.0, 1, -1, 0.5, -0.5, 2.5, -1.5] + edge


def values(rng, t, shape, mode="any"):
    """Elements: "plain" ones of moderate size; "any": the type's extremes, NaN, infinities, zeros of both signs and
    denormals among them; "nan": moderate ones with a few NaN and infinities."""
    n = int(np.prod(shape, dtype=np.int64))
    if t == "bool":
        return rng.random(n).reshape(shape) < rng.choice([0.1, 0.5, 0.9])
    if is_complex(t):
        return _complex(t, values(rng, REAL_OF[t], shape, mode), values(rng, REAL_OF[t], shape, mode))
    if t in INTS:
        info = np.iinfo(t)
        x = rng.integers(0 if info.min == 0 else -9, 10, n)
        if mode == "any":
            full = np.frombuffer(rng.bytes(8 * n), np.int64) if n else np.zeros(0, np.int64)
            edge = [info.min, info.max, 0, 1, max(-1, info.min), info.max - 1, info.max // 2 + 1]
            edge = rng.choice(np.array([v % 2**64 for v in edge], np.uint64).view(np.int64), n)
            pick = rng.random(n)
            x = np.where(pick < 0.6, x, np.where(pick < 0.85, full, edge))
        return x.astype(np.dtype(t)).reshape(shape)
    x = rng.normal(size=n) * 2
    if mode == "any":
        span = {"half": 14, "bfloat16": 120, "float": 120, "double": 1000}[t]
        x = np.where(rng.random(n) < 0.35, x * np.exp2(rng.integers(-span, span, n).astype(np.float64)), x)
    if mode in ("any", "nan"):
        rare = 0.15 if mode == "any" else rng.choice([0.0, 0.03, 0.1])
        few = specials(t) if mode == "any" else [math.nan, math.inf, -math.inf, 0.0, -0.0]
        x = np.where(rng.random(n) < rare, rng.choice(few, n), x)
    return as_type(t, x).reshape(shape)


def _complex(t, re, im):
    z = np.empty(re.shape, CARRIER[t])
    z.real, z.imag = re, im
    return z


# ---- choices ----------------------------------------------------------------------------------


class Chooser:
    """The random choices of one case."""

    def __init__(self, rng, most):
        self.rng, self.most = rng, most

    def of(self, things):
        return things[int(self.rng.integers(len(things)))]

    def below(self, n):
        return int(self.rng.integers(n))

    def between(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def chance(self, percent):
        return self.below(100) < percent

    def extent(self, empty=True):
        if empty and self.chance(4):
            return 0
        return self.of([1, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9, 11, 13])

    def extents(self, rank, empty=True):
        while True:
            shape = [self.extent(empty) for _ in range(rank)]
            if np.prod(shape, dtype=np.int64) <= self.most:
                return shape

    def values(self, t, shape, mode="any"):
        return values(self.rng, t, tuple(shape), mode)

    def permuted(self, things):
        return [things[i] for i in self.rng.permutation(len(things))]

    def some(self, things, least=0):
        things = self.permuted(things)
        return things[:self.between(least, len(things))] if len(things) > least else things


OPERATORS = {}


def operator(weight=1):
    def add(f):
        OPERATORS[f.__name__] = (f, weight)
        return f
    return add


def case(name, ins, outs, **keys):
    return name, [Array(*i) for i in ins], [Array(*o) for o in outs], keys


def numbers(values_):
    return ",".join(str(int(v)) for v in values_)


def magnitude(x):
    """The largest finite |x|, 0 of nothing."""
    a = np.abs(np.asarray(x).astype(np.clongdouble if np.iscomplexobj(x) else np.longdouble)).ravel()
    a = a[np.isfinite(a)]
    return float(min(a.max(), 1e300)) if a.size else 0.0


def finite(x):
    """x with 0 in place of what is no finite number; of complex numbers each part by itself."""
    if np.iscomplexobj(x):
        return finite(x.real) + 1j * finite(x.imag)
    return np.where(np.isfinite(x), x, 0)


def tolerance(t, ulps, scale=0.0):
    return {} if t in INTS or t == "bool" else {"ulps": ulps, "scale": repr(float(scale))}


# ---- moves: to the bit --------------------------------------------------------------------------


@operator()
def reshard(c):
    t, x = c.of(ALL), None
    x = c.values(t, c.extents(c.between(0, 4)))
    return case("reshard", [(t, x)], [(t, x)], zeros=1)


@operator()
def transpose(c):
    t, rank = c.of(ALL), c.between(1, 4)
    x, order = c.values(t, c.extents(rank)), c.permuted(range(rank))
    eq = LETTERS[:rank] + "->" + "".join(LETTERS[d] for d in order)
    return case("transpose", [(t, x)], [(t, np.transpose(x, order))], eq=eq, zeros=1)


@operator()
def slice(c):  # noqa: A001
    t, rank = c.of(ALL), c.between(1, 4)
    x = c.values(t, c.extents(rank))
    start = [c.between(0, n) for n in x.shape]
    limit = [c.between(a, n) for a, n in zip(start, x.shape)]
    stride = [c.of([1, 1, 2, 3]) for _ in range(rank)]
    y = x[tuple(np.s_[a:b:s] for a, b, s in zip(start, limit, stride))]
    return case("slice", [(t, x)], [(t, y)], start=numbers(start), limit=numbers(limit), stride=numbers(stride), zeros=1)


@operator()
def pad(c):
    t, rank = c.of(ALL), c.between(1, 3)
    x = c.values(t, c.extents(rank))
    value = c.of([0, 0, 1]) if t == "bool" else c.of([0, 0, 1, 3])
    interior = [c.of([0, 0, 1, 2]) for _ in range(rank)]
    spread = [n + max(0, n - 1) * i for n, i in zip(x.shape, interior)]
    low = [c.between(-1 if n > 2 else 0, 3) for n in spread]
    high = [c.between(-1 if n > 2 else 0, 3) for n in spread]
    y = np.full(spread, value, CARRIER[t])
    y[tuple(np.s_[::i + 1] for i in interior)] = x
    for d in range(rank):
        y = np.moveaxis(y, d, 0)
        y = y[max(0, -low[d]):y.shape[0] - max(0, -high[d])]
        fill = [np.full((max(0, k),) + y.shape[1:], value, CARRIER[t]) for k in (low[d], high[d])]
        y = np.moveaxis(np.concatenate([fill[0], y, fill[1]]), 0, d)
    return case("pad", [(t, x)], [(t, y)], low=numbers(low), high=numbers(high), interior=numbers(interior), value=value, zeros=1)


@operator()
def reverse(c):
    t, rank = c.of(ALL), c.between(1, 4)
    x, dims = c.values(t, c.extents(rank)), sorted(c.some(range(rank), 1))
    return case("reverse", [(t, x)], [(t, np.flip(x, dims))], dims=numbers(dims), zeros=1)


@operator()
def roll(c):
    t, rank = c.of(ALL), c.between(1, 3)
    x, d, by = c.values(t, c.extents(rank)), c.below(rank), c.between(-20, 20)
    return case("roll", [(t, x)], [(t, np.roll(x, by, d))], by=by, dim=d, zeros=1)


@operator()
def shift(c):
    t, rank = c.of(ALL), c.between(1, 3)
    x, d, by = c.values(t, c.extents(rank)), c.below(rank), c.between(-6, 6)
    y = np.zeros_like(x)
    n = x.shape[d]
    for i in range(n):
        if 0 <= i - by < n:
            np.moveaxis(y, d, 0)[i] = np.moveaxis(x, d, 0)[i - by]
    return case("shift", [(t, x)], [(t, y)], by=by, dim=d, zeros=1)


@operator()
def concatenate(c):
    t, rank = c.of(ALL), c.between(1, 3)
    shape, d = c.extents(rank), c.below(rank)
    xs = []
    for _ in range(c.between(1, 4)):
        shape[d] = c.extent()
        xs.append(c.values(t, shape))
    return case("concatenate", [(t, x) for x in xs], [(t, np.concatenate(xs, d))], dim=d, zeros=1)


@operator()
def update(c):
    t, rank = c.of(ALL), c.between(1, 3)
    x = c.values(t, c.extents(rank))
    shape = [c.between(0, n) for n in x.shape]
    start = [c.between(0, n - k) for n, k in zip(x.shape, shape)]
    block, y = c.values(t, shape), x.copy()
    y[tuple(np.s_[a:a + k] for a, k in zip(start, shape))] = block
    return case("update", [(t, x), (t, block)], [(t, y)], start=numbers(start), zeros=1)


@operator()
def reshape(c):
    t = c.of(ALL)
    factors = [c.of([1, 2, 2, 3, 3, 5]) for _ in range(c.between(1, 5))]

    def grouped():
        shape = [1] * c.between(1, 4)
        for f in factors_now:
            shape[c.below(len(shape))] *= f
        return shape
    factors_now = factors if not c.chance(4) else [0] + factors
    a, b = grouped(), grouped()
    if 0 in a or 0 in b:
        b = b if 0 in b else b[:-1] + [0]
        a = a if 0 in a else a[:-1] + [0]
    x = c.values(t, a)
    return case("reshape", [(t, x)], [(t, x.reshape(b))], extents=numbers(b), zeros=1)


@operator()
def dynamic_slice(c):
    t, rank = c.of(ALL), c.between(1, 3)
    x, along = c.values(t, c.extents(rank)), sorted(c.some(range(rank), 1))
    size = [c.between(0, x.shape[d]) for d in along]
    start = [c.between(-3, x.shape[d] + 3) for d in along]
    y = x
    for d, n, s in zip(along, size, start):
        s = min(max(s, 0), x.shape[d] - n)
        y = np.take(y, range(s, s + n), d)
    return case("dynamic_slice", [(t, x)], [(t, y)], eq=LETTERS[:rank], along="".join(LETTERS[d] for d in along),
                start=numbers(start), size=numbers(size), zeros=1)


@operator()
def dynamic_update(c):
    t, rank = c.of(ALL), c.between(1, 3)
    x, along = c.values(t, c.extents(rank)), sorted(c.some(range(rank), 1))
    shape = list(x.shape)
    for d in along:
        shape[d] = c.between(0, x.shape[d])
    block, y = c.values(t, shape), x.copy()
    start = [c.between(-3, x.shape[d] + 3) for d in along]
    where = [np.s_[:]] * rank
    for d, s in zip(along, start):
        s = min(max(s, 0), x.shape[d] - shape[d])
        where[d] = np.s_[s:s + shape[d]]
    y[tuple(where)] = block
    return case("dynamic_update", [(t, x), (t, block)], [(t, y)], eq=LETTERS[:rank],
                along="".join(LETTERS[d] for d in along), start=numbers(start), zeros=1)


@operator()
def halo(c):
    t, rank = c.of(ALL), c.between(1, 3)
    x = c.values(t, c.extents(rank, empty=False))
    modes, low, high, y = [], [], [], x
    for d, n in enumerate(x.shape):
        mode = c.of(["constant", "periodic", "reflected", "symmetric"])
        most = {"reflected": n - 1, "symmetric": n}.get(mode, 3)
        low.append(c.between(0, min(3, most)))
        high.append(c.between(0, min(3, most)))
        modes.append(mode)
        width = [(0, 0)] * rank
        width[d] = (low[-1], high[-1])
        y = np.pad(y, width, {"periodic": "wrap", "reflected": "reflect"}.get(mode, mode))
    return case("halo", [(t, x)], [(t, y)], low=numbers(low), high=numbers(high), modes=",".join(modes), zeros=1)


# ---- at indices ---------------------------------------------------------------------------------


def indices(c, shape, extent, outside=True):
    low, high = (-3, extent + 3) if outside and c.chance(40) else (0, extent)
    it = c.of(["int32", "int64"])
    return it, c.rng.integers(low, max(high, low + 1), tuple(shape)).astype(it)


@operator()
def take(c):
    t, rank = c.of(ALL), c.between(1, 3)
    shape, d = c.extents(rank), c.below(rank)
    shape[d] = max(1, shape[d])
    x = c.values(t, shape)
    it, i = indices(c, c.extents(c.between(0, 2)), shape[d])
    drop = c.below(2)
    y = np.take(x, np.clip(i, 0, shape[d] - 1), d)
    if drop:
        outside = (i < 0) | (i >= shape[d])
        y = np.where(outside.reshape((1,) * d + i.shape + (1,) * (rank - d - 1)), np.zeros((), x.dtype), y)
    return case("take", [(t, x), (it, i)], [(t, y)], dim=d, drop=drop, zeros=1)


@operator()
def take_batched(c):
    t = c.of(ALL)
    b, v = c.extent(), c.extent(False)
    x = c.values(t, [b, v])
    it, i = indices(c, [b], v, False)
    return case("take_eq", [(t, x), (it, i)], [(t, x[np.arange(b), i])], eq="bv,b->b", drop=0, zeros=1)


@operator()
def take_along_axis(c):
    t, rank = c.of(ALL), c.between(1, 3)
    shape, d = c.extents(rank), c.below(rank)
    shape[d] = max(1, shape[d])
    x, few = c.values(t, shape), list(shape)
    few[d] = c.extent()
    it, i = indices(c, few, shape[d])
    drop = c.below(2)
    y = np.take_along_axis(x, np.clip(i, 0, shape[d] - 1).astype(np.int64), d)
    if drop:
        y = np.where((i < 0) | (i >= shape[d]), np.zeros((), x.dtype), y)
    return case("take_along_axis", [(t, x), (it, i)], [(t, y)], eq=LETTERS[:rank], along=LETTERS[d], drop=drop, zeros=1)


def index_terms(c, letters, extents, windows, batch):
    """Indices of all letters, in one tensor each or in columns of one: (term, type, array) each, and for each letter
    its indices, of the batch's extents. They reach beyond the dimensions in two of five cases."""
    terms, each = [], []
    low, high = (-3, 3) if c.chance(40) else (0, 0)
    begins = [c.rng.integers(low, max(low + 1, n - w + 1 + high), tuple(batch)) for n, w in zip(extents, windows)]
    dims = "nm"[:len(batch)]
    if len(letters) > 1 and c.chance(50):
        it, at = c.of(["int32", "int64"]), c.between(0, len(batch))
        terms.append((dims[:at] + "k" + dims[at:], it, np.stack(begins, at).astype(it)))
    else:
        for begin in begins:
            it = c.of(["int32", "int64"])
            terms.append((dims, it, begin.astype(it)))
    return dims, terms, begins


def some_windows(c):
    """A table of letters, some of them indexed, with windows of more than an element or none: its shape, the indexed
    dimensions, the extents of their windows, and which have a letter of their own."""
    rank = c.between(1, 3)
    shape = [max(1, n) for n in c.extents(rank)]
    indexed = sorted(c.rng.choice(rank, c.between(1, rank), replace=False).tolist())
    own = [c.chance(60) for _ in indexed]
    windows = [c.between(1, shape[d]) if has else 1 for d, has in zip(indexed, own)]
    return rank, shape, indexed, windows, own


def size_of(shape, indexed, windows):
    """The extents of what one tuple of indices names."""
    size = list(shape)
    for d, w in zip(indexed, windows):
        size[d] = w
    return size


def few_extents(c, shape, indexed, windows):
    """Up to two extents of the tuples, so that no result has too many elements."""
    batch, most = [], c.most // max(1, int(np.prod(size_of(shape, indexed, windows), dtype=np.int64)))
    while len(batch) < 2 and c.chance(70):
        n = c.extent(False)
        if int(np.prod(batch, dtype=np.int64)) * n > most:
            break
        batch.append(n)
    return batch


def place_of(begins, at, extents, windows, drop):
    """Where the windows of a tuple of indices begin, or None."""
    place = [int(b[at]) for b in begins]
    inside = [0 <= p <= n - w for p, n, w in zip(place, extents, windows)]
    if all(inside):
        return place
    return None if drop else [min(max(p, 0), n - w) for p, n, w in zip(place, extents, windows)]


@operator()
def take_windows(c):
    t = c.of(ALL)
    rank, shape, indexed, windows, own = some_windows(c)
    x, drop = c.values(t, shape), c.below(2)
    few, size, batch = [shape[d] for d in indexed], size_of(shape, indexed, windows), few_extents(c, shape, indexed, windows)
    dims, terms, begins = index_terms(c, indexed, few, windows, batch)
    y = np.zeros(batch + size, x.dtype)
    for at in itertools.product(*(range(n) for n in batch)):
        place = place_of(begins, at, few, windows, drop)
        if place is not None:
            begin = [place[indexed.index(d)] if d in indexed else 0 for d in range(rank)]
            y[at] = x[tuple(np.s_[b:b + n] for b, n in zip(begin, size))]
    letters = "".join(LETTERS[d].upper() if d in indexed else LETTERS[d] for d in range(rank))
    gone = tuple(len(batch) + d for d, has in zip(indexed, own) if not has)
    y, result = np.squeeze(y, gone), dims + "".join(c for i, c in enumerate(letters) if len(batch) + i not in gone)
    order = c.rng.permutation(len(result)).tolist()
    y, result = np.transpose(y, order), "".join(result[i] for i in order)
    extents = {LETTERS[d].upper(): w for d, w in zip(indexed, windows)}
    keys = {"windows": numbers([extents[l] for l in result if l in extents])} if any(own) else {}
    eq = ",".join([LETTERS[:rank]] + [term for term, _, _ in terms]) + "->" + result
    return case("take_terms", [(t, x)] + [(it, i) for _, it, i in terms], [(t, y)], eq=eq, drop=drop, zeros=1, **keys)


@operator()
def scatter_windows(c):
    kind = c.of(["set", "sum", "max", "min", "any"])
    t = c.of({"set": ALL, "any": ["bool"], "sum": INTS}.get(kind, ORDERED))
    rank, shape, indexed, windows, own = some_windows(c)
    drop, into = c.below(2), c.chance(70)
    few, size, batch = [shape[d] for d in indexed], size_of(shape, indexed, windows), few_extents(c, shape, indexed, windows)
    dims, terms, begins = index_terms(c, indexed, few, windows, batch)
    x, u = c.values(t, shape), c.values(t, batch + size)
    if not into:
        least = np.array(False if t == "bool" else 0)
        if kind in ("max", "min") and t in INTS:
            least = np.iinfo(t).min if kind == "max" else np.iinfo(t).max
        elif kind in ("max", "min"):
            least = -math.inf if kind == "max" else math.inf
        x = np.full(shape, least, x.dtype)
    y = x.copy()
    with np.errstate(all="ignore"):
        for at in itertools.product(*(range(n) for n in batch)):
            place = place_of(begins, at, few, windows, drop)
            if place is not None:
                begin = [place[indexed.index(d)] if d in indexed else 0 for d in range(rank)]
                part = tuple(np.s_[b:b + n] for b, n in zip(begin, size))
                y[part] = u[at] if SCATTER[kind] is None else SCATTER[kind](y[part], u[at])
    letters = "".join(LETTERS[d].upper() if d in indexed else LETTERS[d] for d in range(rank))
    gone = tuple(len(batch) + d for d, has in zip(indexed, own) if not has)
    u, updates = np.squeeze(u, gone), dims + "".join(l for i, l in enumerate(letters) if len(batch) + i not in gone)
    eq = ",".join(([LETTERS[:rank]] if into else []) + [term for term, _, _ in terms] + [updates]) + "->" + LETTERS[:rank]
    ins = ([(t, x)] if into else []) + [(it, i) for _, it, i in terms] + [(t, u)]
    keys = {} if into else {"indexed": numbers(few)}
    return case("scatter", ins, [(t, y)], kind=kind, eq=eq, drop=drop, **keys)


@operator()
def triangle(c):
    t, kind = c.of(ALL), c.of(["tril", "triu"])
    x, k = c.values(t, c.extents(c.between(2, 4))), c.between(-6, 6)
    return case(kind, [(t, x)], [(t, getattr(np, kind)(x, k))], k=k, zeros=1)


@operator()
def one_hot(c):
    t, rank, n = c.of(["float", "double", "int32", "bool", "half"]), c.between(0, 2), c.extent()
    it, i = indices(c, c.extents(rank), n)
    d = c.between(0, rank)
    y = np.moveaxis(i[..., None] == np.arange(n), -1, d)
    labels = LETTERS[:rank]
    return case("one_hot", [(it, i)], [(t, as_type(t, y.astype(np.float64)))], eq=labels[:d] + "v" + labels[d:], along="v", n=n)


@operator()
def bincount(c):
    s, n = c.extents(c.between(1, 3)), c.extent()
    it, i = indices(c, s, n)
    letters, rows = LETTERS[:len(s)], c.below(2) if len(s) > 1 else 0  # each row by itself
    within = (i[..., None] == np.arange(n)).astype(np.int64)
    y = within.sum(tuple(range(rows, len(s))), dtype=np.int64)
    return case("bincount", [(it, i)], [("int64", y)], eq=f"{letters}->{letters[:rows]}v", n=n)


@operator()
def histogram(c):
    t, s, bins = c.of(["float", "double", "int32"]), c.extents(c.between(1, 3)), c.of([1, 2, 4, 16])
    low, high = -c.below(4), c.between(1, 6)
    x = c.values(t, s)
    kept = np.asarray(x, np.float64).ravel()
    y, _ = np.histogram(kept[(kept >= low) & (kept <= high)], bins, (low, high))
    letters = LETTERS[:len(s)]
    return case("histogram", [(t, x)], [("int64", y.astype(np.int64))], eq=f"{letters}->v", n=bins, low=low, high=high)


SCATTER = {"sum": np.add, "product": np.multiply, "max": np.maximum, "min": np.minimum, "set": None,
           "any": np.logical_or, "all": np.logical_and}


@operator(2)
def scatter(c):
    kind = c.of(list(SCATTER))
    t = {"set": ALL, "sum": NUMBERS, "product": NUMBERS, "max": ORDERED, "min": ORDERED}.get(kind, ["bool"])
    t = c.of(t)
    mode = "any" if kind in ("set", "max", "min") or t in INTS else "nan"
    if is_complex(t) and kind == "product":  # of an infinite part and the other's 0
        mode = "plain"
    v, m, s = c.extent(False), c.extent(), c.extents(c.between(1, 2))
    x = c.values(t, [v, m], mode)
    it, i = indices(c, s, v)
    u = c.values(t, s + [m], mode)
    if kind == "product" and not t in INTS:
        x, u = (as_type(t, np.exp2(np.round(np.clip(np.nan_to_num(z.real, posinf=1, neginf=-1), -1, 1)))) for z in (x, u))
    y, worst = wide(t, x).copy(), np.abs(finite(wide(t, x))) if kind == "sum" and not t in INTS else None
    with np.errstate(all="ignore"):
        for at in itertools.product(*(range(n) for n in s)):
            if not 0 <= i[at] < v:
                continue
            row = wide(t, u)[at]
            y[i[at]] = row if SCATTER[kind] is None else SCATTER[kind](y[i[at]], row)
            if worst is not None:
                worst[i[at]] += np.abs(finite(row))
    letters = "st"[:len(s)]
    eq = f"vm,{letters},{letters}m->vm"
    keys = tolerance(t, 8, magnitude(worst) if worst is not None else 0) if kind in ("sum", "product") else {}
    return case("scatter", [(t, x), (it, i), (t, u)], [(t, as_type(t, y))], kind=kind, eq=eq, drop=1, **keys)


# ---- products -----------------------------------------------------------------------------------

PRODUCTS = ["ab,bc->ac", "ab,cb->ac", "ba,bc->ca", "abc,abd->acd", "abc,cd->abd", "ab,b->a", "a,a->", "a,b->ab", "abc,cb->a",
            "abcd,cde->abe", "ab,ab->ab", "ab,ab->", "abc,bd->adc", "ab,->ab", "aab,bc->ac", "abc,dc->bad"]
CHAINS = ["ab,bc,cd->ad", "ab,bc,cd,de->ae", "ab,ac,ad->bcd", "abc,bd,ce->ade", "a,ab,b->", "ab,b,bc->ac", "abc,ad,bd,cd->d"]
SINGLES = ["aab->b", "abc->ca", "aa->", "aa->a", "abc->b", "ab->"]


def count_of(eq, extent):
    out = eq.split("->")[1]
    return int(np.prod([extent[l] for l in set(eq) - set(",->") - set(out)], dtype=np.int64))


@operator(4)
def einsum(c):
    t = c.of(NUMBERS + FLOATS)
    eq = c.of(c.of([PRODUCTS, PRODUCTS, CHAINS, SINGLES]))
    terms = eq.split("->")[0].split(",")
    few = len(terms) > 2
    extent = {l: (c.between(1, 4) if few and not c.chance(5) else c.extent()) for l in sorted(set(eq) - set(",->"))}
    while max([np.prod([extent[l] for l in term], dtype=np.int64) for term in terms] + [0]) > c.most:
        extent[c.of(sorted(extent))] = 2
    mode = "any" if t in INTS else "plain"
    # What is infinite depends on the order in which a letter of one operand alone is summed.
    out = eq.split("->")[1]
    if is_float(t) and len(terms) <= 2 and all(l in out or all(l in term for term in terms) for l in extent):
        mode = "nan"
    xs = [c.values(t, [extent[l] for l in term], mode) for term in terms]
    with np.errstate(all="ignore"):
        y = np.einsum(eq, *[wide(t, x) for x in xs]) if t not in INTS else np.einsum(eq, *xs, dtype=xs[0].dtype, casting="unsafe")
        worst = magnitude(np.einsum(eq, *[np.abs(np.where(np.isfinite(x), x, 0).astype(np.clongdouble)) for x in xs])) if t not in INTS else 0
    keys = tolerance(t, (4 + min(64, count_of(eq, extent))) * max(1, len(terms) - 1), worst)
    return case("einsum", [(t, x) for x in xs], [(t, as_type(t, y))], eq=eq, **keys)


# ---- reductions -----------------------------------------------------------------------------------


def reduced(c, rank, one=False):
    """An equation that reduces some letters; their dimensions; the order of those that stay."""
    gone = sorted(c.permuted(range(rank))[:1 if one else c.between(1, rank)])
    kept = c.permuted([d for d in range(rank) if d not in gone])
    return LETTERS[:rank] + "->" + "".join(LETTERS[d] for d in kept), tuple(gone), kept


def lay(y, gone, kept):
    """The reduced array with the kept dimensions in their order."""
    before = sorted(kept)
    return np.transpose(y, [before.index(d) for d in kept])


def sums_type(t):
    """What NumPy's sums and products of t are."""
    return "uint64" if t.startswith("uint") else "int64" if t in INTS or t == "bool" else t


REDUCE = {"sum": np.sum, "product": np.prod, "mean": np.mean, "max": np.max, "min": np.min, "any": np.any, "all": np.all}


@operator(6)
def reduce(c):
    kind = c.of(list(REDUCE))
    t = c.of({"sum": ALL, "product": ALL, "mean": FLOATS + COMPLEX, "any": ["bool"], "all": ["bool"]}.get(kind, ORDERED))
    rank = c.between(1, 4)
    shape = c.extents(rank, empty=kind not in ("max", "min", "mean"))
    eq, gone, kept = reduced(c, rank)
    mode = "any" if kind in ("max", "min") or t in INTS else "plain" if is_complex(t) and kind != "sum" else "nan"
    x = c.values(t, shape, mode)
    if kind == "product" and t not in INTS and t != "bool":
        x = as_type(t, np.where(np.isfinite(x), np.copysign(np.exp2(np.clip(np.round(x.real / 4), -1, 1)), x.real), x))
    with np.errstate(all="ignore"):
        y = lay(REDUCE[kind](x if t in INTS or t == "bool" else wide(t, x), axis=gone), gone, kept)
        worst = np.sum(np.abs(finite(wide(t, x))), axis=gone) if kind in ("sum", "mean") and t not in INTS + ["bool"] else 0
    n = int(np.prod([shape[d] for d in gone], dtype=np.int64))
    if kind == "mean":
        worst = worst / max(1, n)
    rt = sums_type(t) if kind in ("sum", "product") else t
    keys = tolerance(t, 2 if t in ("half", "bfloat16") else 4 + min(n, 64), magnitude(worst)) if kind in ("sum", "product", "mean") else {}
    return case("reduce", [(t, x)], [(rt, as_type(rt, y))], kind=kind, eq=eq, **keys)


@operator(2)
def arg(c):
    t, rank, kind = c.of(ORDERED), c.between(1, 3), c.of(["max", "min"])
    shape = c.extents(rank)
    eq, gone, kept = reduced(c, rank, one=True)
    shape[gone[0]] = max(1, shape[gone[0]])
    x = c.values(t, shape)
    y = (np.argmax if kind == "max" else np.argmin)(x, axis=gone[0])
    return case("arg", [(t, x)], [("int64", lay(y, gone, kept))], kind=kind, eq=eq)


@operator(3)
def statistics(c):
    kind = c.of(["norm1", "norm2", "norminf", "variance", "deviation", "mean_and_variance", "logsumexp"])
    spreads = kind in ("variance", "deviation", "mean_and_variance")
    t = c.of(["half", "float", "double"] + ([] if kind == "logsumexp" else ["complex64"]))
    rank = c.between(1, 3)
    shape = c.extents(rank, empty=False)
    eq, gone, kept = reduced(c, rank)
    x = c.values(t, shape, "plain" if is_complex(t) or spreads else "nan")
    if spreads and t != "half" and c.chance(50):
        x = as_type(t, wide(t, x) + 100)
    if t == "half" and c.chance(50):
        x = as_type(t, wide(t, x) * (1000 if kind in ("norminf", "deviation", "logsumexp") else 50))
    w = wide(t, x)
    ddof, n = c.below(2), int(np.prod([shape[d] for d in gone], dtype=np.int64))
    rt = REAL_OF.get(t, t)
    with np.errstate(all="ignore"):
        size = np.abs(w)
        if kind == "norm1":
            y = np.sum(size, axis=gone)
        elif kind == "norm2":
            y = np.sqrt(np.sum(size * size, axis=gone))
        elif kind == "norminf":
            y = np.max(size, axis=gone)
        elif kind == "logsumexp":
            top = np.max(w, axis=gone, keepdims=True)
            safe = np.where(np.isfinite(top), top, 0)
            y = np.log(np.sum(np.exp(w - safe), axis=gone)) + np.squeeze(safe, gone)
        else:
            spread = np.abs(w - np.mean(w, axis=gone, keepdims=True))
            y = np.sum(spread * spread, axis=gone) / (n - ddof if n > ddof else np.nan)
            y = np.sqrt(y) if kind == "deviation" else y
    # A mean rounded to the type is off by eps |x|, and its square with it.
    scale = 1 + magnitude(x) if kind == "logsumexp" else magnitude(x) ** (2 if kind == "variance" else 1) * EPS[rt] * n if spreads else 0
    if kind == "deviation":
        scale = magnitude(x) * math.sqrt(EPS[rt]) if n < 2 else magnitude(x)
    if kind != "deviation" and spreads and t == "half":
        scale = max(scale, magnitude(y))
    ulps = 4 if t == "half" else 16 + min(n, 64)
    if kind == "mean_and_variance":
        scale = max(scale, magnitude(x))
        both = [(t, lay(as_type(t, np.mean(w, axis=gone)), gone, kept)), (rt, lay(as_type(rt, y), gone, kept))]
        return case("statistics", [(t, x)], both, kind=kind, eq=eq, ddof=ddof, ulps=ulps, scale=repr(float(scale)))
    return case("statistics", [(t, x)], [(rt, lay(as_type(rt, y), gone, kept))], kind=kind, eq=eq, ddof=ddof, ulps=ulps, scale=repr(float(scale)))


@operator(2)
def norms(c):
    kind, t = c.of(["layer_norm", "rms_norm"]), c.of(["half", "bfloat16", "float", "double"])
    shape = c.extents(c.between(1, 3))
    x, scale, bias = (c.values(t, s, "plain") for s in (shape, shape[-1:], shape[-1:]))
    if kind == "layer_norm" and t in ("float", "double") and c.chance(50):
        x = as_type(t, wide(t, x) + 100)
    epsilon = c.of([1e-5, 0.125])
    w, factor, plus = wide(t, x), wide(t, scale), wide(t, bias)
    with np.errstate(all="ignore"):
        centred = w - np.mean(w, axis=-1, keepdims=True) if kind == "layer_norm" and w.size else w
        spread = np.mean(centred * centred, axis=-1, keepdims=True) if w.size else w
        y = centred / np.sqrt(spread + epsilon) * factor if w.size else w
        y = y + plus if kind == "layer_norm" else y
    if torch is not None and w.size:
        tensors = [torch.tensor(v.astype(np.float64)) for v in (x, scale, bias)]
        size = (shape[-1],)
        other = (torch.nn.functional.layer_norm(tensors[0], size, tensors[1], tensors[2], epsilon) if kind == "layer_norm"
                 else torch.nn.functional.rms_norm(tensors[0], size, tensors[1], epsilon))
        second_opinion(y, other, kind)
    # A row's mean is rounded, and so are its elements beside it: by eps |x|, over the deviation.
    ulps, deviation = 4 if t in ("half", "bfloat16") else 16, math.sqrt(epsilon + (np.min(spread) if w.size else 0))
    scale_of = magnitude(y) + magnitude(plus) + magnitude(w) / deviation * magnitude(factor)
    return case("norms", [(t, x), (t, scale)] + ([(t, bias)] if kind == "layer_norm" else []), [(t, as_type(t, y))],
                kind=kind, epsilon=repr(epsilon), ulps=ulps, scale=repr(float(scale_of)))


@operator(2)
def cumulative(c):
    kind = c.of(["sum", "product", "max", "min", "any", "all"])
    t = c.of({"sum": ALL, "product": ALL, "any": ["bool"], "all": ["bool"]}.get(kind, ORDERED))
    rank = c.between(1, 3)
    shape, d = c.extents(rank), c.below(rank)
    backwards, exclusive = c.below(2), c.below(2) if kind in ("sum", "product", "any", "all") else 0
    x = c.values(t, shape, "any" if kind in ("max", "min") or t in INTS else "plain" if is_complex(t) and kind != "sum" else "nan")
    if kind == "product" and t not in INTS and t != "bool":
        x = as_type(t, np.where(np.isfinite(x), np.copysign(np.exp2(np.clip(np.round(x.real / 4), -1, 1)), x.real), x))
    f = {"sum": np.add, "product": np.multiply, "max": np.maximum, "min": np.minimum, "any": np.logical_or, "all": np.logical_and}[kind]
    rt = sums_type(t) if kind in ("sum", "product") else t
    w = x.astype(CARRIER[rt]) if rt != t else wide(t, x)
    with np.errstate(all="ignore"):
        w = np.flip(w, d) if backwards else w
        y = f.accumulate(w, d) if w.shape[d] else w
        if exclusive and w.shape[d]:
            start = np.full(y.shape[:d] + (1,) + y.shape[d + 1:], {"sum": 0, "product": 1, "any": 0, "all": 1}[kind], y.dtype)
            y = np.concatenate([start, np.take(y, range(w.shape[d] - 1), d)], d)
        y = np.flip(y, d) if backwards else y
        worst = np.sum(np.abs(finite(w)), axis=d) if t not in INTS + ["bool"] and kind == "sum" else 0
    keys = tolerance(t, 2 if t in ("half", "bfloat16") else 4 + shape[d], magnitude(worst)) if kind in ("sum", "product") else {}
    return case("cumulative", [(t, x)], [(rt, as_type(rt, y))], kind=kind, eq=LETTERS[:rank], along=LETTERS[d], reverse=backwards,
                exclusive=exclusive, **keys)


@operator()
def running_logsumexp(c):
    t, rank = c.of(FLOATS), c.between(1, 3)
    shape, d = c.extents(rank), c.below(rank)
    backwards, exclusive = c.below(2), c.below(2)
    x = c.values(t, shape, "nan")
    with np.errstate(all="ignore"):
        w = np.flip(wide(t, x), d) if backwards else wide(t, x)
        y = np.logaddexp.accumulate(w, d) if shape[d] else w
        if exclusive and shape[d]:
            start = np.full(y.shape[:d] + (1,) + y.shape[d + 1:], -np.inf, y.dtype)
            y = np.concatenate([start, np.take(y, range(shape[d] - 1), d)], d)
        y = np.flip(y, d) if backwards else y
    return case("cumulative", [(t, x)], [(t, as_type(t, y))], kind="logsumexp", eq=LETTERS[:rank], along=LETTERS[d],
                reverse=backwards, exclusive=exclusive, **tolerance(t, 4 + shape[d] if t == "double" else 3, 1))


@operator()
def softmax(c):
    t, rank, kind = c.of(["half", "float", "double"]), c.between(1, 3), c.of(["softmax", "log_softmax"])
    shape, d = c.extents(rank), c.below(rank)
    x = c.values(t, shape, "plain")
    if c.chance(30):
        x = as_type(t, wide(t, x) * 20)
    with np.errstate(all="ignore"):
        w = wide(t, x)
        w = w - (np.max(w, axis=d, keepdims=True) if w.size else 0)
        y = w - np.log(np.sum(np.exp(w), axis=d, keepdims=True))
        y = np.exp(y) if kind == "softmax" else y
    if torch is not None and t != "half" and y.size:
        second_opinion(y, torch.log_softmax(torch.tensor(x.astype(np.float64)), d), kind)
    scale = 0 if kind == "softmax" else 1 + 2 * magnitude(x)
    return case("softmax", [(t, x)], [(t, as_type(t, y))], kind=kind, eq=LETTERS[:rank], along=LETTERS[d],
                ulps=(4 if t == "half" else 16) + int(2 * magnitude(x)), scale=repr(float(scale)))


def second_opinion(y, other, kind):
    other = other.numpy()
    other = np.exp(other) if kind == "softmax" else other
    if not np.allclose(y.astype(np.float64), other, rtol=1e-9, atol=1e-9):
        sys.exit(f"generate.py: NumPy and PyTorch disagree on {kind} of extents {y.shape}; the oracle is wrong")


# ---- in order -------------------------------------------------------------------------------------


def order_of(x, d, descending):
    """A stable order, NaNs last in either direction, -0 equal to 0."""
    key = x
    if descending:
        key = ~x if x.dtype == bool or x.dtype.kind in "iu" else -x
    return np.argsort(key, axis=d, kind="stable")


@operator(2)
def sort(c):
    kind = c.of(["sort", "argsort", "both"])
    t, rank = c.of(ORDERED + ["bool"]), c.between(1, 3)
    d, descending = c.below(rank), c.below(2)
    x = c.values(t, c.extents(rank), c.of(["any", "plain", "nan"]))
    order = order_of(x, d, descending)
    y = np.take_along_axis(x, order, d)
    outs = {"sort": [(t, y)], "argsort": [("int64", order)], "both": [(t, y), ("int64", order)]}[kind]
    # Keys alone have -0 before 0: their zeros are compared by value.
    return case("sort", [(t, x)], outs, kind=kind, eq=LETTERS[:rank], along=LETTERS[d], descending=descending,
                zeros=int(kind != "sort"))


@operator()
def top_k(c):
    t, rank = c.of(ORDERED), c.between(1, 3)
    d, descending = c.below(rank), c.below(2)
    x = c.values(t, c.extents(rank), c.of(["any", "plain", "nan"]))
    k = c.between(0, x.shape[d])
    order = np.take(order_of(x, d, descending), range(k), d)
    return case("top_k", [(t, x)], [(t, np.take_along_axis(x, order, d)), ("int64", order)], eq=LETTERS[:rank],
                along=LETTERS[d], k=k, descending=descending, zeros=1)


# ---- elementwise ----------------------------------------------------------------------------------


def each(f):
    return lambda x: np.vectorize(lambda v: f(float(v)), otypes=[np.float64])(x) if x.size else x.astype(np.float64)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# name: (function, ulps, mode, scale of the error beside the result)
UNARY = {
    "exp": (np.exp, 4), "exp2": (np.exp2, 4), "expm1": (np.expm1, 4), "log": (np.log, 4), "log1p": (np.log1p, 4),
    "log2": (np.log2, 4), "log10": (np.log10, 4), "sqrt": (np.sqrt, 1), "cbrt": (np.cbrt, 4), "rsqrt": (lambda x: 1 / np.sqrt(x), 4),
    "sin": (np.sin, 4), "cos": (np.cos, 4), "tan": (np.tan, 6), "asin": (np.arcsin, 4), "acos": (np.arccos, 4),
    "atan": (np.arctan, 4), "sinh": (np.sinh, 6), "cosh": (np.cosh, 6), "tanh": (np.tanh, 6), "asinh": (np.arcsinh, 6),
    "acosh": (np.arccosh, 6), "atanh": (np.arctanh, 6), "erf": (each(math.erf), 6), "sigmoid": (sigmoid, 6),
    "silu": (lambda x: x * sigmoid(x), 8, "plain"), "gelu": (lambda x: 0.5 * x * each(lambda v: math.erfc(-v / math.sqrt(2)))(x), 12, "plain", 4),
}
DOUBLE = ["exp", "log", "sqrt", "sin", "tanh", "erf"]  # of which the driver has double, which costs time to compile
EXACT = {"floor": np.floor, "ceil": np.ceil, "round": np.round, "trunc": np.trunc, "abs": np.abs, "negate": np.negative,
         "square": np.square, "relu": None, "sign": None, "reciprocal": None}


@operator(5)
def unary(c):
    if c.chance(60):
        name = c.of(list(UNARY))
        f, ulps, mode, scale = (*UNARY[name], "any", 0)[:4] if len(UNARY[name]) == 2 else (*UNARY[name], 0)[:4]
        t = c.of(["half", "float", "float"] + (["double"] * 2 if name in DOUBLE else []))
        x = c.values(t, c.extents(c.between(0, 3)), mode)
        if name in ("sin", "cos", "tan"):  # beyond this an argument is less precise than a period
            x = np.where(np.abs(x) < 1e4, x, CARRIER[t](2.5))
        with np.errstate(all="ignore"):
            y = as_type(t, f(wide(t, x)))
        return case("map", [(t, x)], [(t, y)], f=name, eq=same(x.ndim), ulps=max(1, ulps // 4) if t == "half" else ulps, scale=scale)
    name = c.of(list(EXACT))
    t = c.of(["half", "float"] if name == "reciprocal" else ["half", "float", "double", "int8", "int64", "uint64"])
    x = c.values(t, c.extents(c.between(0, 3)))
    with np.errstate(all="ignore"):
        if name == "relu":
            y = np.where(x < 0, np.zeros_like(x), x)
        elif name == "sign":
            y = np.where(np.isnan(x), x, np.where(x > 0, 1, np.where(x < 0, -1, x))).astype(x.dtype) if is_float(t) else np.sign(x)
        elif name == "reciprocal":
            y = (1 / x.astype(np.float32 if t == "half" else x.dtype)).astype(x.dtype)
        elif name in ("floor", "ceil", "round", "trunc") and t in INTS:
            y = x  # NumPy 1 goes by way of double
        else:
            y = EXACT[name](x).astype(x.dtype)
    keys = {} if name == "relu" else {"zeros": 1}
    return case("map", [(t, x)], [(t, y)], f=name, eq=same(x.ndim), **keys)


def same(rank):
    return LETTERS[:rank] + "->" + LETTERS[:rank]


def broadcast(c, count):
    """An equation with NumPy's broadcasting, and the extents of its operands: letters left out, extents of 1."""
    rank = c.between(0, 3)
    out, full = LETTERS[:rank], c.extents(rank)
    terms, shapes = [], []
    for k in range(count):
        kept = [d for d in range(rank) if k == 0 or not c.chance(25)]
        terms.append("".join(out[d] for d in (c.permuted(kept) if c.chance(25) else kept)))
        shapes.append([1 if k > 0 and c.chance(12) else full[LETTERS.index(l)] for l in terms[-1]])
    return out, terms, shapes, full


def spread(x, term, out, full):
    """x as the broadcast result sees it."""
    order = sorted(range(len(term)), key=lambda i: out.index(term[i]))
    x = np.transpose(x, order)
    shape = [1] * len(out)
    for i in order:
        shape[out.index(term[i])] = 0
    it = iter(x.shape)
    shape = [next(it) if s == 0 else 1 for s in shape]
    return np.broadcast_to(x.reshape(shape), full)


def whole_divide(a, b):
    info = np.iinfo(a.dtype)
    out = np.zeros(a.shape, a.dtype)
    for at in np.ndindex(a.shape):
        p, q = int(a[at]), int(b[at])
        if q != 0:
            v = abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)
            out[at] = info.min if v > info.max else v
    return out


def whole_power(a, b):
    info, bits = np.iinfo(a.dtype), np.iinfo(a.dtype).bits
    out = np.zeros(a.shape, a.dtype)
    for at in np.ndindex(a.shape):
        p, q = int(a[at]), int(b[at])
        v = pow(p, q, 1 << bits) if q >= 0 else {1: 1, -1: -1 if q % 2 else 1}.get(p, 0)
        v %= 1 << bits
        out[at] = v - (1 << bits) if v > info.max else v
    return out


def shifted(a, n, left):
    bits = np.iinfo(a.dtype).bits
    out = np.zeros(a.shape, a.dtype)
    for at in np.ndindex(a.shape):
        p, q = int(a[at]), int(n[at])
        inside = 0 <= q < bits
        v = (p << q if inside else 0) if left else (p >> q if inside else (-1 if p < 0 else 0))
        v %= 1 << bits
        out[at] = v - (1 << bits) if v > np.iinfo(a.dtype).max else v
    return out


BINARY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": None, "remainder": np.remainder,
          "maximum": np.maximum, "minimum": np.minimum, "power": None, "atan2": np.arctan2}
COMPARE = {"equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
           "greater_equal": np.greater_equal}
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "bitwise_left_shift": None, "bitwise_right_shift": None}
LOGIC = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
BINARY_TYPES = ["half", "float", "double", "int8", "int64", "uint64"]


@operator(6)
def binary(c):
    name = c.of(list(BINARY) + list(COMPARE) + list(BITS) + list(LOGIC))
    keys = {"zeros": 1}
    if name in LOGIC:
        t = "bool"
    elif name in BITS:
        t = c.of(["int8", "int64", "uint64"])
    elif name == "atan2":
        t = c.of(["half", "float"])
    elif name in ("add", "subtract", "multiply", "divide"):
        t = c.of(BINARY_TYPES + ["complex64"])
    else:
        t = c.of(BINARY_TYPES + (["bool"] if name in ("equal", "not_equal") else []))
    out, terms, shapes, full = broadcast(c, 2)
    mode = "plain" if is_complex(t) else c.of(["any", "any", "plain"])
    xs = [c.values(t, shape, mode) for shape in shapes]
    if name.endswith("_shift") and c.chance(70):
        xs[1] = c.rng.integers(0, np.iinfo(t).bits, shapes[1]).astype(t)
    a, b = (spread(x, term, out, full) for x, term in zip(xs, terms))
    rt = "bool" if name in COMPARE else t
    with np.errstate(all="ignore"):
        if t in INTS and name in ("divide", "power"):
            y = (whole_divide if name == "divide" else whole_power)(a, b)
        elif name.endswith("_shift"):
            y = shifted(a, b, name == "bitwise_left_shift")
        elif name in ("power", "atan2"):
            y = as_type(t, (np.power if name == "power" else np.arctan2)(wide(t, a), wide(t, b)))
            keys = {"ulps": 1 if t == "half" else 4, "scale": 0}
        elif is_complex(t):
            y = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}[name](wide(t, a), wide(t, b))
            y, keys = as_type(t, y), {"ulps": 8, "scale": repr(magnitude(a) + magnitude(b))}
        elif name == "divide":
            y = np.divide(a, b)
        else:
            y = {**BINARY, **COMPARE, **BITS, **LOGIC}[name](a, b)
    if name in ("maximum", "minimum"):
        keys = {}
    return case("map", [(t, x) for x in xs], [(rt, np.asarray(y, CARRIER[rt]))], f=name, eq=",".join(terms) + "->" + out, **keys)


@operator()
def tests(c):
    name = c.of(["is_nan", "is_inf", "is_finite", "logical_not", "bitwise_not"])
    t = {"logical_not": ["bool"], "bitwise_not": ["int8", "int64", "uint64"]}.get(name, ["half", "float"])
    t = c.of(t)
    x = c.values(t, c.extents(c.between(0, 3)))
    y = {"is_nan": np.isnan, "is_inf": np.isinf, "is_finite": np.isfinite, "logical_not": np.logical_not, "bitwise_not": np.invert}[name](x)
    return case("map", [(t, x)], [("bool" if name != "bitwise_not" else t, y)], f=name, eq=same(x.ndim))


@operator()
def clamp(c):
    t = c.of(["half", "float"])
    out, terms, shapes, full = broadcast(c, 3)
    xs = [c.values(t, shape) for shape in shapes]
    a, lo, hi = (spread(x, term, out, full) for x, term in zip(xs, terms))
    with np.errstate(all="ignore"):
        y = np.minimum(np.maximum(a, lo), hi)
    return case("map", [(t, x) for x in xs], [(t, y)], f="clamp", eq=",".join(terms) + "->" + out)


@operator()
def complex_parts(c):
    name, t = c.of(["real", "imag", "conj", "angle", "abs", "make_complex"]), c.of(COMPLEX)
    shape = c.extents(c.between(0, 3))
    if name == "make_complex":
        part = REAL_OF[t]
        re, im = c.values(part, shape), c.values(part, shape)
        return case("map", [(part, re), (part, im)], [(t, _complex(t, re, im))], f=name, eq=same(len(shape)).replace("->", "," + LETTERS[:len(shape)] + "->"), zeros=1)
    x = c.values(t, shape, "any" if name in ("real", "imag", "conj") else "plain")
    y = {"real": np.real, "imag": np.imag, "conj": np.conj, "angle": np.angle, "abs": np.abs}[name](x)
    keys = {"zeros": 1} if name in ("real", "imag", "conj") else {"ulps": 4, "scale": 0}
    return case("map", [(t, x)], [(t if name == "conj" else REAL_OF[t], y)], f=name, eq=same(len(shape)), **keys)


CAST_FROM = ["float", "int32", "uint64", "bool"]


@operator(3)
def cast(c):
    t, to = c.of(CAST_FROM), c.of(ALL)
    x = c.values(t, c.extents(c.between(0, 3)))
    keys = {"zeros": 1}
    with np.errstate(all="ignore"):
        if to == "bool":
            y = x != 0
        elif is_float(t) and to in INTS:  # truncated, saturated, NaN gives 0
            info, y = np.iinfo(to), np.zeros(x.shape, to)
            for at in np.ndindex(x.shape):
                v = float(x[at])
                y[at] = 0 if math.isnan(v) else info.max if v >= info.max else info.min if v <= info.min else int(v)
        else:
            y = as_type(to, x)
    return case("cast", [(t, x)], [(to, y)], eq=same(x.ndim), **keys)


# ---- windows --------------------------------------------------------------------------------------


def dilate(x, dims, by):
    shape = list(x.shape)
    for d, b in zip(dims, by):
        shape[d] = max(0, (shape[d] - 1) * b + 1)
    y = np.zeros(shape, x.dtype)
    where = [np.s_[:]] * x.ndim
    for d, b in zip(dims, by):
        where[d] = np.s_[::b]
    y[tuple(where)] = x
    return y


def padded(x, dims, low, high, value=0):
    for d, a, b in zip(dims, low, high):
        x = np.moveaxis(x, d, 0)
        x = x[max(0, -a):x.shape[0] - max(0, -b)]
        fill = [np.full((max(0, k),) + x.shape[1:], value, x.dtype) for k in (a, b)]
        x = np.moveaxis(np.concatenate([fill[0], x, fill[1]]), 0, d)
    return x


def convolution(x, k, stride, low, high, base, window, groups):
    """x (batch, features, space...), k (out, features / groups, space...), tap by tap."""
    n = x.ndim - 2
    space = range(2, x.ndim)
    x = padded(dilate(x, space, base), space, low, high)
    taps = k.shape[2:]
    size = [(x.shape[2 + d] - (taps[d] - 1) * window[d] - 1) // stride[d] + 1 for d in range(n)]
    y = np.zeros((x.shape[0], k.shape[0], *size), np.result_type(x, k))
    per, out = x.shape[1] // groups, k.shape[0] // groups
    for tap in np.ndindex(*taps):
        at = tuple(np.s_[tap[d] * window[d]:tap[d] * window[d] + (size[d] - 1) * stride[d] + 1:stride[d]] for d in range(n))
        for g in range(groups):
            part = x[(np.s_[:], np.s_[g * per:(g + 1) * per], *at)]
            y[:, g * out:(g + 1) * out] += np.einsum("bi...,oi->bo...", part, k[(np.s_[g * out:(g + 1) * out], np.s_[:], *tap)])
    return y


@operator(4)
def convolve(c):
    t = c.of(["half", "bfloat16", "float", "float", "double", "double", "int32", "int8", "uint64", "complex64"])
    n = c.between(1, 3)
    groups = c.of([1, 1, 1, 2, 3])
    batch, features, out = c.between(1, 3), groups * c.between(1, 2), groups * c.between(1, 2)
    taps = [c.of([1, 2, 3, 3]) for _ in range(n)]
    stride = [c.of([1, 1, 2, 3]) for _ in range(n)]
    window = [c.of([1, 1, 2]) for _ in range(n)]
    base = [c.of([1, 1, 1, 2]) for _ in range(n)]
    low, high = [c.between(0, 2) for _ in range(n)], [c.between(0, 2) for _ in range(n)]
    size = [c.of([5, 6, 7, 8, 11] if n < 3 else [3, 4, 5]) for _ in range(n)]
    for d in range(n):
        while (size[d] - 1) * base[d] + 1 + low[d] + high[d] < (taps[d] - 1) * window[d] + 1:
            size[d] += 1
    x, k = c.values(t, [batch, features, *size], "plain"), c.values(t, [out, features // groups, *taps], "plain")
    y = convolution(wide(t, x), wide(t, k), stride, low, high, base, window, groups)
    worst = convolution(np.abs(wide(t, x)), np.abs(wide(t, k)), stride, low, high, base, window, groups) if t not in INTS else 0
    if torch is not None and base == [1] * n and t in ("float", "double"):
        f = [torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d][n - 1]
        px = torch.tensor(padded(x.astype(np.float64), range(2, n + 2), low, high))
        other = f(px, torch.tensor(k.astype(np.float64)), stride=stride, dilation=window, groups=groups).numpy()
        if not np.allclose(other, y.astype(np.float64), rtol=1e-9, atol=1e-9):
            sys.exit(f"generate.py: NumPy and PyTorch disagree on a convolution of {x.shape} by {k.shape}; the oracle is wrong")
    space = "hwd"[:n]
    layouts = [("bi" + space, "oi" + space, "bo" + space), ("b" + space + "i", space + "io", "b" + space + "o"),
               ("bi" + space, space + "oi", "b" + space + "o")]
    lx, lk, ly = c.of(layouts)

    def to(letters, standard, array):
        return np.transpose(array, [standard.index(l) for l in letters])
    keys = tolerance(t, 4 if t in ("half", "bfloat16") else 8 + min(64, (features // groups) * int(np.prod(taps))), magnitude(worst))
    return case("convolve", [(t, to(lx, "bi" + space, x)), (t, to(lk, "oi" + space, k))], [(t, as_type(t, to(ly, "bo" + space, y)))],
                eq=f"{lx},{lk}->{ly}", stride=numbers(stride), low=numbers(low), high=numbers(high), base=numbers(base),
                window=numbers(window), groups=groups, **keys)


@operator(2)
def reduce_window(c):
    kind = c.of(["sum", "max", "min", "mean"])
    t = c.of({"mean": FLOATS}.get(kind, ["half", "float", "double", "int8", "int32", "uint16", "uint64"]))
    rank = c.between(1, 3)
    x = c.values(t, c.extents(rank, empty=False), "any" if t in INTS or kind in ("max", "min") else "nan")
    size = [c.of([1, 2, 3]) for _ in range(rank)]
    stride = [c.of([1, 1, 2, 3]) for _ in range(rank)]
    dilation = [c.of([1, 1, 2]) for _ in range(rank)]
    low, high = [c.between(0, 1) for _ in range(rank)], [c.between(0, 1) for _ in range(rank)]
    for d in range(rank):
        while x.shape[d] + low[d] + high[d] < (size[d] - 1) * dilation[d] + 1:
            high[d] += 1
    # A narrow integer's windowed sum stays narrow, as einsum does.
    identity = {"sum": 0, "mean": 0, "max": -np.inf, "min": np.inf}[kind]
    if t in INTS and kind in ("max", "min"):
        identity = np.iinfo(t).min if kind == "max" else np.iinfo(t).max
    w = padded(wide(t, x), range(rank), low, high, identity)
    count = [(w.shape[d] - (size[d] - 1) * dilation[d] - 1) // stride[d] + 1 for d in range(rank)]
    y, worst = None, 0
    f = {"max": np.maximum, "min": np.minimum}.get(kind, np.add)
    with np.errstate(all="ignore"):
        for tap in np.ndindex(*size):
            part = w[tuple(np.s_[tap[d] * dilation[d]:tap[d] * dilation[d] + (count[d] - 1) * stride[d] + 1:stride[d]] for d in range(rank))]
            y = part.copy() if y is None else f(y, part)
            worst = worst + np.abs(np.where(np.isfinite(part), part, 0)) if t not in INTS else 0
        if kind == "mean":
            y, worst = y / int(np.prod(size)), worst / int(np.prod(size))
    keys = tolerance(t, 2 if t in ("half", "bfloat16") else 4 + int(np.prod(size)), magnitude(worst)) if kind in ("sum", "mean") else {}
    return case("reduce_window", [(t, x)], [(t, as_type(t, y))], kind=kind, size=numbers(size), stride=numbers(stride), low=numbers(low),
                high=numbers(high), dilation=numbers(dilation), **keys)


# ---- gradients, by PyTorch ----------------------------------------------------------------------


if torch is not None:
    import gradients

    @operator(12)
    def gradient(c):
        """A case of another operator, with other numbers: its gradients along a cotangent, the last operand."""
        name = c.of(list(gradients.FUNCTIONS))
        while True:
            made, ins, outs, keys = OPERATORS[name][0](c)
            t = ins[0].type
            if t in FLOATS and outs[0].type == t and outs[0].x.size and gradients.differentiable(made, keys):
                break
        few = gradients.distinct(made, keys)
        low, high = gradients.RANGES.get(keys.get("f"), (-2, 2))

        def fresh(a):
            if a.type != t:
                return a.x
            if few:  # whole numbers of which no two are equal, exact in every type
                return as_type(t, c.rng.permutation(a.x.size).reshape(a.x.shape) - a.x.size // 2 + (0.5 if a is not ins[0] else 0))
            return as_type(t, c.rng.uniform(low, high, a.x.shape))
        if few and max(a.x.size for a in ins) > 120:
            return gradient(c)
        xs = [fresh(a) for a in ins]
        keys = {k: str(v) for k, v in keys.items() if k not in ("ulps", "scale", "zeros")}
        dy, dx = gradients.gradients(name, keys, xs, lambda shape: as_type(t, c.rng.normal(size=shape)))
        if not all(np.isfinite(g).all() for g in dx):
            return gradient(c)
        scale = max([magnitude(g) for g in dx] + [magnitude(dy)])
        arrays = [(a.type, x) for a, x in zip(ins, xs)] + [(t, dy)]
        return case("gradient", arrays, [(t, as_type(t, g)) for g in dx], of=made, ulps=8 if t in ("half", "bfloat16") else 64,
                    scale=repr(scale), **keys)


# ---- the files --------------------------------------------------------------------------------------


class Store:
    """Arrays of each element type, one behind the other; the same array twice is stored once."""

    def __init__(self, folder=None):
        """Of a folder: behind the arrays that are there."""
        self.parts, self.count, self.known = {}, {}, {}
        for t in ALL if folder else []:
            name = os.path.join(folder, t + ".npy")
            if os.path.exists(name):
                self.parts[t] = [np.load(name)]
                self.count[t] = self.parts[t][0].size

    def add(self, array):
        bits = array.bits()
        shape = "x".join(str(n) for n in bits.shape)
        key = (array.type, bits.tobytes())
        if key not in self.known:
            self.known[key] = self.count.get(array.type, 0)
            self.parts.setdefault(array.type, []).append(np.ravel(bits))
            self.count[array.type] = self.known[key] + bits.size
        return f"{array.type}@{self.known[key]}[{shape}]"

    def write(self, folder):
        for t in ALL:
            name = os.path.join(folder, t + ".npy")
            if t in self.parts:
                np.save(name, np.concatenate(self.parts[t]))
            elif os.path.exists(name):
                os.remove(name)


def main():
    parser = argparse.ArgumentParser(description="Writes cases of the differential test: operands and what NumPy makes of them.")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time; printed")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--out", required=True, help="the folder that gets cases.txt and the .npy files")
    parser.add_argument("--only", default="", help="operators, separated by commas; default: all")
    parser.add_argument("--most", type=int, default=2000, help="the most elements of an operand")
    parser.add_argument("--append", action="store_true", help="keep the cases that the folder has, and add to them")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(OPERATORS)
    unknown = [n for n in names if n not in OPERATORS]
    if unknown:
        sys.exit(f"generate.py: there is no operator {unknown[0]}; there are {', '.join(OPERATORS)}")
    bag = [n for n in names for _ in range(OPERATORS[n][1])]
    os.makedirs(options.out, exist_ok=True)
    store, lines, before = Store(options.out if options.append else None), [], []
    if options.append:
        with open(os.path.join(options.out, "cases.txt")) as file:
            before = file.read().splitlines()
    first = sum(not line.startswith("#") for line in before)
    for number in range(options.count):
        c = Chooser(np.random.default_rng([options.seed, number]), options.most)
        # Each operator in turn for a small count; by weight for a large one.
        name = names[number % len(names)] if options.count < 4 * len(bag) else c.of(bag)
        made, ins, outs, keys = OPERATORS[name][0](c)
        words = [str(first + number), made] + [f"{k}={v}" for k, v in keys.items()]
        words += ["in=" + store.add(a) for a in ins] + ["out=" + store.add(a) for a in outs]
        lines.append(" ".join(words))
        if sys.stderr.isatty() and (number % 50 == 0 or number + 1 == options.count):
            done = (number + 1) / options.count
            print(f"\rwriting cases [{'=' * int(25 * done):25}] {100 * done:3.0f} %", end="\n" if done == 1 else "", file=sys.stderr, flush=True)
    store.write(options.out)
    with open(os.path.join(options.out, "cases.txt"), "w") as file:
        opinion = f", PyTorch {torch.__version__}" if torch is not None else ""
        which = f" of {options.only}" if options.only else ""
        head = f"# seed {options.seed}, {options.count} cases{which}, NumPy {np.__version__}{opinion}"
        file.write("\n".join(before + [head] + lines) + "\n")
    print(f"{options.count} cases of seed {options.seed} in {options.out}")


if __name__ == "__main__":
    main()
