# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of generate.py in PyTorch, for their gradients: FUNCTIONS[name](keys, x...) is the operator of a case
with these keys, of tensors in double."""
import numpy as np
import torch

LETTERS = "abcdefgh"


def ints(text):
    return [int(v) for v in text.split(",") if v]


def along(keys):
    return keys["eq"].index(keys["along"])


def flipped(x, d, yes):
    return torch.flip(x, [d]) if yes else x


def transpose(keys, x):
    own, made = keys["eq"].split("->")
    return x.permute([own.index(letter) for letter in made])


def slice_of(keys, x):
    return x[tuple(np.s_[a:b:s] for a, b, s in zip(*(ints(keys[k]) for k in ("start", "limit", "stride"))))]


def pad(keys, x):
    low, high, interior = (ints(keys[k]) for k in ("low", "high", "interior"))
    y = torch.full([n + max(0, n - 1) * i for n, i in zip(x.shape, interior)], float(keys["value"]), dtype=x.dtype)
    y[tuple(np.s_[::i + 1] for i in interior)] = x
    widths = [w for d in reversed(range(x.ndim)) for w in (low[d], high[d])]
    return torch.nn.functional.pad(y, widths, value=float(keys["value"]))


def shift(keys, x):
    d, by, n = int(keys["dim"]), int(keys["by"]), x.shape[int(keys["dim"])]
    from_, kept = max(0, -by), max(0, n - abs(by))
    parts = [torch.zeros_like(x.narrow(d, 0, min(n, max(0, by)))), x.narrow(d, min(from_, n), kept),
             torch.zeros_like(x.narrow(d, 0, min(n, max(0, -by))))]
    return torch.cat(parts, d)


def window(keys, shape, size):
    """The window of a dynamic slice: its start is clamped."""
    at = [np.s_[:]] * len(shape)
    for letter, start, n in zip(keys["along"], ints(keys["start"]), size):
        d = keys["eq"].index(letter)
        start = min(max(start, 0), shape[d] - n)
        at[d] = np.s_[start:start + n]
    return tuple(at)


def written(x, block, at):
    y = x.clone()
    y[at] = block
    return y


def update(keys, x, block):
    return written(x, block, tuple(np.s_[a:a + n] for a, n in zip(ints(keys["start"]), block.shape)))


def dynamic_update(keys, x, block):
    size = [block.shape[keys["eq"].index(letter)] for letter in keys["along"]]
    return written(x, block, window(keys, x.shape, size))


def take(keys, x, i):
    d, i = int(keys["dim"]), i.long()
    y = torch.index_select(x, d, i.clamp(0, x.shape[d] - 1).reshape(-1)).reshape(x.shape[:d] + i.shape + x.shape[d + 1:])
    if int(keys["drop"]):
        inside = ((i >= 0) & (i < x.shape[d])).reshape((1,) * d + i.shape + (1,) * (x.ndim - d - 1))
        y = torch.where(inside, y, torch.zeros((), dtype=x.dtype))
    return y


def take_along_axis(keys, x, i):
    d, i = along(keys), i.long()
    y = torch.gather(x, d, i.clamp(0, x.shape[d] - 1))
    return torch.where((i >= 0) & (i < x.shape[d]), y, torch.zeros((), dtype=x.dtype)) if int(keys["drop"]) else y


def reduced(keys, f, x):
    """f over one dimension after the other; the result's letters in their order."""
    own, made = keys["eq"].split("->")
    for letter in [letter for letter in own if letter not in made]:
        x = f(x, own.index(letter))
        own = own.replace(letter, "")
    return x.permute([own.index(letter) for letter in made])


def reduce(keys, x):
    f = {"sum": torch.sum, "mean": torch.mean, "product": torch.prod, "max": torch.amax, "min": torch.amin}[keys["kind"]]
    return reduced(keys, f, x)


def statistics(keys, x):
    kind = keys["kind"]
    own, made = keys["eq"].split("->")
    gone = [d for d, letter in enumerate(own) if letter not in made]
    if kind == "logsumexp":
        return reduced(keys, torch.logsumexp, x)
    if kind == "norm1":
        return reduced(keys, torch.sum, x.abs())
    if kind == "norm2":
        return reduced(keys, torch.sum, x * x).sqrt()
    if kind == "norminf":
        return reduced(keys, torch.amax, x.abs())
    n = int(np.prod([x.shape[d] for d in gone]))
    if kind == "mean_and_variance":  # of its first result
        return reduced(keys, torch.sum, x) / n
    square = (x - x.mean(gone, keepdim=True)) ** 2
    y = reduced(keys, torch.sum, square) / (n - int(keys["ddof"]))
    return y.sqrt() if kind == "deviation" else y


def cumulative(keys, x):
    d, kind = along(keys), keys["kind"]
    x = flipped(x, d, int(keys["reverse"]))
    y = {"sum": torch.cumsum, "product": torch.cumprod, "max": lambda v, k: torch.cummax(v, k).values,
         "min": lambda v, k: torch.cummin(v, k).values}[kind](x, d)
    if int(keys["exclusive"]):
        first = {"sum": 0.0, "product": 1.0, "max": -np.inf, "min": np.inf}[kind]
        y = torch.cat([torch.full_like(y.narrow(d, 0, 1), first), y.narrow(d, 0, y.shape[d] - 1)], d)
    return flipped(y, d, int(keys["reverse"]))


def softmax(keys, x):
    return (torch.softmax if keys["kind"] == "softmax" else torch.log_softmax)(x, along(keys))


def norms(keys, x, scale, bias=None):
    size, epsilon = (x.shape[-1],), float(keys["epsilon"])
    if bias is None:
        return torch.nn.functional.rms_norm(x, size, scale, epsilon)
    return torch.nn.functional.layer_norm(x, size, scale, bias, epsilon)


def sort(keys, x):
    return torch.sort(x, along(keys), bool(int(keys["descending"]))).values


def top_k(keys, x):
    return sort(keys, x).narrow(along(keys), 0, int(keys["k"]))


UNARY = {
    "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log, "log1p": torch.log1p, "log2": torch.log2,
    "log10": torch.log10, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "cbrt": lambda x: x ** (1 / 3), "sin": torch.sin, "cos": torch.cos,
    "tan": torch.tan, "asin": torch.asin, "acos": torch.acos, "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh,
    "tanh": torch.tanh, "asinh": torch.asinh, "acosh": torch.acosh, "atanh": torch.atanh, "erf": torch.erf, "sigmoid": torch.sigmoid,
    "silu": torch.nn.functional.silu, "gelu": torch.nn.functional.gelu, "abs": torch.abs, "negate": torch.neg, "square": torch.square,
    "relu": torch.relu, "reciprocal": torch.reciprocal, "floor": torch.floor, "sign": torch.sign,
}
BINARY = {"add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "divide": torch.div, "power": torch.pow, "atan2": torch.atan2,
          "maximum": torch.maximum, "minimum": torch.minimum}
# Where a function is defined, or smooth; the others on numbers of both signs.
RANGES = {"log": (0.2, 3), "log1p": (-0.7, 3), "log2": (0.2, 3), "log10": (0.2, 3), "sqrt": (0.2, 3), "rsqrt": (0.2, 3), "cbrt": (0.2, 3),
          "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9), "acosh": (1.2, 3), "tan": (-1.2, 1.2), "power": (0.4, 2),
          "reciprocal": (0.4, 3), "divide": (0.4, 3), "atan2": (0.4, 2), "abs": (0.1, 3), "relu": (0.1, 3)}


def map_(keys, *xs):
    if keys["f"] in UNARY:
        return UNARY[keys["f"]](xs[0])
    terms, out = keys["eq"].split("->")
    seen = []
    for x, term in zip(xs, terms.split(",")):
        x = x.permute(sorted(range(len(term)), key=lambda i: out.index(term[i])))
        seen.append(x.reshape([x.shape[sorted(term, key=out.index).index(letter)] if letter in term else 1 for letter in out]))
    return BINARY[keys["f"]](*seen)


def einsum(keys, *xs):
    return torch.einsum(keys["eq"], *xs)


def spread(x, dims, factors):
    """Zeros between elements."""
    for d, f in zip(dims, factors):
        shape = list(x.shape)
        shape[d] = (shape[d] - 1) * f + 1
        y = torch.zeros(shape, dtype=x.dtype)
        y[tuple(np.s_[::f] if k == d else np.s_[:] for k in range(x.ndim))] = x
        x = y
    return x


def convolve(keys, x, k):
    terms, made = keys["eq"].split("->")
    lx, lk = terms.split(",")
    space = "".join(letter for letter in "hwd" if letter in lx)
    n = len(space)
    stride, low, high, base, dilation = (ints(keys[key]) for key in ("stride", "low", "high", "base", "window"))
    x = x.permute([lx.index(letter) for letter in "bi" + space])
    k = k.permute([lk.index(letter) for letter in "oi" + space])
    x = spread(x, range(2, n + 2), base)
    x = torch.nn.functional.pad(x, [w for d in reversed(range(n)) for w in (low[d], high[d])])
    f = [torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d][n - 1]
    y = f(x, k, stride=stride, dilation=dilation, groups=int(keys["groups"]))
    return y.permute([("bo" + space).index(letter) for letter in made])


def reduce_window(keys, x):
    kind = keys["kind"]
    size, stride, low, high, dilation = (ints(keys[k]) for k in ("size", "stride", "low", "high", "dilation"))
    fill = {"max": -np.inf, "min": np.inf}.get(kind, 0.0)
    x = torch.nn.functional.pad(x, [w for d in reversed(range(x.ndim)) for w in (low[d], high[d])], value=fill)
    count = [(x.shape[d] - (size[d] - 1) * dilation[d] - 1) // stride[d] + 1 for d in range(x.ndim)]
    parts = [x[tuple(np.s_[t * s:t * s + (n - 1) * m + 1:m] for t, s, n, m in zip(tap, dilation, count, stride))]
             for tap in np.ndindex(*size)]
    y = torch.stack(parts)
    if kind in ("max", "min"):
        return (torch.amax if kind == "max" else torch.amin)(y, 0)
    return y.sum(0) / (len(parts) if kind == "mean" else 1)


FUNCTIONS = {
    "reshard": lambda keys, x: x * 1, "transpose": transpose, "slice": slice_of, "pad": pad,
    "reverse": lambda keys, x: torch.flip(x, ints(keys["dims"])), "roll": lambda keys, x: torch.roll(x, int(keys["by"]), int(keys["dim"])),
    "shift": shift, "concatenate": lambda keys, *x: torch.cat(x, int(keys["dim"])), "update": update,
    "reshape": lambda keys, x: x.reshape(ints(keys["extents"])),
    "dynamic_slice": lambda keys, x: x[window(keys, x.shape, ints(keys["size"]))], "dynamic_update": dynamic_update, "take": take,
    "take_along_axis": take_along_axis, "einsum": einsum, "reduce": reduce, "statistics": statistics, "cumulative": cumulative,
    "softmax": softmax, "norms": norms, "sort": sort, "top_k": top_k, "unary": map_, "binary": map_, "convolve": convolve, "reduce_window": reduce_window,
}


def differentiable(name, keys):
    """Whether a case is one of these functions, and has no jump where its gradient is asked for."""
    if name == "map":
        return keys["f"] in UNARY or keys["f"] in BINARY
    return keys.get("kind") not in ("any", "all", "argsort") and (name, keys.get("kind")) != ("cumulative", "logsumexp")


def distinct(name, keys):
    """Whether equal elements would leave a choice."""
    return name in ("sort", "top_k") or keys.get("kind") in ("max", "min", "norminf") or keys.get("f") in ("maximum", "minimum")


def gradients(name, keys, xs, cotangent):
    """The gradients by the floating-point ones of xs; cotangent(shape) draws that of the result."""
    given = [torch.tensor(x.astype(np.float64), requires_grad=True) if x.dtype.kind == "f" else torch.tensor(x) for x in xs]
    y = FUNCTIONS[name](keys, *given)
    dy = cotangent(tuple(y.shape))
    y.backward(torch.tensor(np.asarray(dy, np.float64)))
    return dy, [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in given if x.requires_grad]
