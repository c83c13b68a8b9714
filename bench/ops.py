#!/usr/bin/env python3
"""tilewright.ops against fp64 on random shapes, strides and types; what was left to torch is named.

    python3 bench/ops.py OUT.json [--cases 300] [--seed 1] [--seconds 140] [--device cuda|cpu]

Inputs are contiguous, transposed, cut out of something larger, or begin at an odd place. An output is right when the norm of its error is within the type's
rounding and no element is further off than a few units of it. On the CPU the emulator computes, on smaller shapes.
"""
import argparse
import functools
import json
import math
import os
import random
import sys
import time
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if not os.path.isdir(os.path.join(ROOT, "site-packages")):
    sys.path.insert(0, os.path.join(ROOT, "python"))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import tilewright.ops as ops  # noqa: E402
from tilewright import _tables  # noqa: E402

ROUNDING = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 6e-3}  # of an output's norm


class Draw:
    """Random arguments, from a seed."""

    def __init__(self, seed, device):
        self.random, self.device = random.Random(seed), device
        self.generator = torch.Generator(device=device).manual_seed(seed)
        self.large = device != "cpu"

    def size(self, low, high):
        value = int(math.exp(self.random.uniform(math.log(low), math.log(high if self.large else max(low, min(high, 96))))))
        kind = self.random.random()
        return max(low, value // 128 * 128 if kind < 0.3 and value >= 128 else value // 8 * 8 if kind < 0.6 and value >= 8 else value)

    def dtype(self, *choices):
        return self.random.choice(choices or (torch.bfloat16, torch.float32))

    def tensor(self, *shape, dtype=torch.bfloat16, scale=1.0):
        """Random values in memory that may be strided, cut out or shifted."""
        kind = self.random.random()
        make = lambda s: (torch.randn(s, generator=self.generator, device=self.device) * scale).to(dtype)  # noqa: E731
        if kind < 0.55 or len(shape) < 2:
            return make(shape)
        if kind < 0.7:
            return make((*shape[:-2], shape[-1], shape[-2])).transpose(-1, -2)
        if kind < 0.85:
            return make((*shape[:-1], shape[-1] + self.random.randint(1, 9)))[..., : shape[-1]]
        return make((math.prod(shape) + 1,))[1:].reshape(shape)


def f64(*tensors):
    return [t.double() for t in tensors]


def matmul(d):
    m, n, k = d.size(1, 3000), d.size(1, 3000), d.size(1, 3000)
    dtype = d.dtype(torch.bfloat16, torch.bfloat16, torch.float16, torch.float32)
    batch = d.random.choice([(), (), (2,), (3, 2)])
    a, b = d.tensor(*batch, m, k, dtype=dtype), d.tensor(k, n, dtype=dtype, scale=k ** -0.5)
    return (a, b), {}, lambda: torch.matmul(*f64(a, b))


def linear(d):
    m, n, k = d.size(1, 3000), d.size(8, 3000), d.size(8, 3000)
    x, w, bias, res = d.tensor(m, k), d.tensor(n, k, scale=k ** -0.5), d.tensor(n), d.tensor(m, n)
    act = d.random.choice([None, "relu", "silu", "gelu_tanh", "gelu", "sigmoid"])
    kw = {"bias": bias if d.random.random() < 0.7 else None, "activation": act, "residual": res if d.random.random() < 0.4 else None}

    def reference():
        y = x.double() @ w.double().t()
        y = y + kw["bias"].double() if kw["bias"] is not None else y
        y = {None: lambda v: v, "relu": F.relu, "silu": F.silu, "sigmoid": torch.sigmoid, "gelu": F.gelu, "gelu_tanh": lambda v: F.gelu(v, approximate="tanh")}[act](y)
        return y + kw["residual"].double() if kw["residual"] is not None else y

    return (x, w), kw, reference


def matmul_gated(d):
    m, n, k = d.size(1, 2000), d.size(8, 2000), d.size(8, 2000)
    x, g, u = d.tensor(m, k), d.tensor(n, k, scale=k ** -0.5), d.tensor(n, k, scale=k ** -0.5)
    return (x, g, u), {}, lambda: F.silu(x.double() @ g.double().t()) * (x.double() @ u.double().t())


def attention(d):
    group, heads = d.random.choice([1, 1, 2, 4, 8, 3]), d.random.randint(1, 3)
    width, causal = d.random.choice([64, 64, 128, 128, 256, 80]), d.random.random() < 0.5
    s, t = d.size(1, 1500), d.size(1, 1500)
    dtype = d.dtype(torch.bfloat16, torch.bfloat16, torch.float16)
    q, k, v = (d.tensor(1, h, n, width, dtype=dtype) for h, n in ((heads * group, s), (heads, t), (heads, t)))

    def reference():
        kk, vv = (x.double().repeat_interleave(group, 1) for x in (k, v))
        scores = q.double() @ kk.transpose(-1, -2) / math.sqrt(width)
        if causal:
            scores = scores.masked_fill(torch.arange(t, device=q.device)[None] > torch.arange(s, device=q.device)[:, None], -math.inf)
        return scores.softmax(-1) @ vv

    return (q, k, v), {"causal": causal}, reference


def along(name, function, low=1, scale=1.0, shift=0.0):
    def draw(d):
        dtype = d.dtype(torch.bfloat16, torch.bfloat16, torch.float32, torch.float32, torch.float16)
        shape = d.random.choice([(d.size(1, 4000), d.size(low, 9000)), (d.size(1, 60), d.size(1, 60), d.size(low, 900))])
        x = d.tensor(*shape, dtype=dtype, scale=scale)
        x = x + shift if shift else x
        dim = d.random.choice([-1, -1, 0])
        return (x, dim), {}, lambda: function(x.double(), dim)

    draw.__name__ = name
    return draw


def norm(name):
    def draw(d):
        dtype = d.dtype()
        m, n = d.size(1, 4000), d.size(2, 20000)
        x, w, b = d.tensor(m, n, dtype=dtype), d.tensor(n, dtype=dtype), d.tensor(n, dtype=dtype)
        if name == "layernorm":
            return (x, w, b), {}, lambda: F.layer_norm(x.double(), (n,), w.double(), b.double())
        return (x, w), {}, lambda: F.rms_norm(x.double(), (n,), w.double(), 1e-6)

    draw.__name__ = name
    return draw


def cross_entropy(d):
    m, n, dtype = d.size(1, 2000), d.size(2, 30000), d.dtype()
    x, target = d.tensor(m, n, dtype=dtype), torch.randint(0, n, (m,), device=d.device)
    return (x, target), {"reduction": "none"}, lambda: F.cross_entropy(x.double(), target, reduction="none")


def rope(d):
    dtype, length, heads, half = d.dtype(), d.size(1, 800), d.random.randint(1, 16), d.random.choice([16, 32, 64, 48, 20])
    x, c, s = d.tensor(d.random.randint(1, 3), length, heads, 2 * half, dtype=dtype), d.tensor(length, half, dtype=dtype), d.tensor(length, half, dtype=dtype)

    def reference():
        a, b = x.double().chunk(2, -1)
        cc, ss = c.double()[:, None], s.double()[:, None]
        return torch.cat((a * cc - b * ss, b * cc + a * ss), -1)

    return (x, c, s), {}, reference


def transpose(d):
    x = d.tensor(d.size(1, 4000), d.size(1, 4000), dtype=d.dtype())
    return (x,), {}, lambda: x.double().t()


def elementwise(name, function):
    def draw(d):
        x = d.tensor(d.size(1, 900), d.size(1, 3000), dtype=d.dtype(torch.bfloat16, torch.float32, torch.float16))
        return (x,), {}, lambda: function(x.double())

    draw.__name__ = name
    return draw


def swiglu(d):
    x = d.tensor(d.size(1, 2000), 2 * d.size(1, 3000), dtype=d.dtype())
    return (x,), {}, lambda: F.silu(x.double().chunk(2, -1)[0]) * x.double().chunk(2, -1)[1]


def grouped_gemm(d):
    experts, n, k = d.random.randint(1, 12), 8 * d.size(1, 200), 8 * d.size(1, 200)
    ends = torch.tensor([d.random.choice([0, d.size(1, 300)]) for _ in range(experts)]).cumsum(0).to(torch.int32).to(d.device)
    x, w = d.tensor(int(ends[-1]), k), d.tensor(experts, n, k, scale=k ** -0.5)

    def reference():
        edges = [0, *ends.tolist()]
        return torch.cat([x[a:b].double() @ w[e].double().t() for e, (a, b) in enumerate(zip(edges, edges[1:]))])

    return (x, w, ends), {}, reference


def moe(d):
    experts, top = d.random.randint(1, 12 if d.large else 3), d.random.randint(1, 8)
    top = min(top, experts)
    tokens, n, k = d.size(1, 300 if d.large else 6), 8 * d.size(1, 60 if d.large else 6), 8 * d.size(1, 60 if d.large else 6)
    x, scores, w, v = d.tensor(tokens, k), d.tensor(tokens, experts), d.tensor(experts, 2, n, k, scale=k ** -0.5), d.tensor(experts, k, n, scale=n ** -0.5)

    def reference():
        best, expert = torch.sort(scores.double(), dim=1, descending=True, stable=True)
        weight, out = torch.softmax(best[:, :top], 1), torch.zeros(tokens, k, dtype=torch.float64, device=x.device)
        for e in range(experts):
            token, j = torch.nonzero(expert[:, :top] == e, as_tuple=True)
            h = F.silu(x[token].double() @ w[e, 0].double().t()) * (x[token].double() @ w[e, 1].double().t())
            out.index_add_(0, token, h @ v[e].double().t() * weight[token, j, None])
        return out

    return (x, scores, w, v, top), {}, reference


def fp8(d, *shape):
    return torch.randn(shape, generator=d.generator, device=d.device).to(torch.float8_e4m3fn)


def matmul_fp8(d):
    m, n, k = d.size(1, 1500), d.size(8, 1500), d.size(16, 3000)
    a, b = fp8(d, m, k), fp8(d, n, k)
    rows = d.random.random() < 0.5
    sa, sb = (torch.rand(shape, device=d.device) + 0.5 for shape in (((m,), (n,)) if rows else ((), ())))
    return (a, b, sa, sb), {"fast": d.random.random() < 0.5}, lambda: a.double() @ b.double().t() * ((sa[:, None] * sb[None, :]) if rows else sa * sb).double()


def matmul_fp8_blocks(d):
    m, nb, kb = d.size(1, 700), d.random.randint(1, 8 if d.large else 1), d.random.randint(1, 12 if d.large else 2)
    a, b = fp8(d, m, kb * 128), fp8(d, nb * 128, kb * 128)
    sa, sb = torch.rand(kb, m, device=d.device) + 0.5, torch.rand(nb, kb, device=d.device) + 0.5
    wide = lambda t, *dims: functools.reduce(lambda x, dim: x.repeat_interleave(128, dim), dims, t.double())  # noqa: E731
    return (a, b, sa, sb), {}, lambda: (a.double() * wide(sa.t(), 1)) @ (b.double() * wide(sb, 0, 1)).t()


def matmul_f32(d):
    m, n, k = d.size(1, 1500), d.size(4, 1500), d.size(8, 3000)
    a, b = (torch.randn(r, k, generator=d.generator, device=d.device) for r in (m, n))
    precision = d.random.choice(("f32", "tf32", "tf32_fast"))
    if precision != "f32":  # numbers that tf32 has
        a, b = ((x.view(torch.int32) & -8192).view(torch.float32) for x in (a, b))
    return (a, b), {"precision": precision}, lambda: a.double() @ b.double().t()


def matmul_int8(d):
    m, n, k = d.size(1, 1500), d.size(8, 1500), d.size(16, 3000)
    a, b = (torch.randint(-128, 128, (r, k), dtype=torch.int8, device=d.device) for r in (m, n))
    sa, sb = torch.rand(m, device=d.device), torch.rand(n, device=d.device)
    return (a, b, sa, sb), {}, lambda: a.double() @ b.double().t() * sa.double()[:, None] * sb.double()


def linear_w4(d):
    m, n, kb = d.size(1, 64), 8 * d.size(1, 200), d.random.randint(1, 16 if d.large else 2)
    x, w, scales = d.tensor(m, kb * 128), torch.randint(0, 256, (n, kb, 64), dtype=torch.uint8, device=d.device), (torch.rand(kb, n, device=d.device) + 0.5).bfloat16()

    def reference():
        whole = ((torch.cat((w % 16, w // 16), -1).float() - 8) * scales.t().float()[:, :, None]).bfloat16()
        return x.double() @ whole.double().reshape(n, -1).t()

    return (x, w, scales), {}, reference


def masked(q, k, v, seen, change=lambda s: s):
    group = q.shape[-3] // k.shape[-3]
    kk, vv = (t.double().repeat_interleave(group, -3) for t in (k, v))
    return change(q.double() @ kk.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~seen, -math.inf).softmax(-1) @ vv


def attention_variant(d):
    group, heads, s = d.random.choice([1, 2, 4]), d.random.randint(1, 2), d.size(1, 1500)
    q, k, v = (d.tensor(1, h, s, d.random.choice([64]) if not d.large else 128) for h in (heads * group, heads, heads))
    place = torch.arange(s, device=d.device)
    distance, kind = place[:, None] - place[None, :], d.random.choice(["window", "softcap", "slopes"])
    if kind == "window":
        return (q, k, v), {"window": 128}, lambda: masked(q, k, v, (distance >= 0) & (distance < 128))
    if kind == "softcap":
        return (q, k, v), {"softcap": 3.0}, lambda: masked(q, k, v, distance >= 0, lambda x: 3 * torch.tanh(x / 3))
    slopes = torch.rand(heads * group, device=d.device) * 0.2
    return (q, k, v, slopes), {}, lambda: masked(q, k, v, distance >= 0, lambda x: x - slopes.double()[:, None, None] * distance)


def attention_packed(d):
    ends = torch.tensor([d.random.choice([0, d.size(1, 500)]) for _ in range(d.random.randint(1, 6))] + [d.size(1, 100)]).cumsum(0).to(d.device)
    rows, group = int(ends[-1]), d.random.choice([1, 2])
    q, k, v = (d.tensor(h, rows, 64) for h in (2 * group, 2, 2))
    place = torch.arange(rows, device=d.device)
    document = torch.searchsorted(ends, place, right=True)
    return (q, k, v, ends), {}, lambda: masked(q, k, v, (document[:, None] == document[None, :]) & (place[None, :] <= place[:, None]))


def decode(d):
    batch, heads, group, keys = d.random.randint(1, 40 if d.large else 2), d.random.randint(1, 8 if d.large else 2), d.random.choice([1, 4, 5, 8]), d.size(1, 3000)
    width = d.random.choice([64, 128, 40])
    q, k, v = d.tensor(batch, heads * group, width), d.tensor(batch, heads, keys, width), d.tensor(batch, heads, keys, width)
    lengths = torch.randint(1, keys + 1, (batch,), device=d.device)
    seen = torch.arange(keys, device=d.device)[None, None, None, :] < lengths[:, None, None, None]
    return (q, k, v, lengths), {}, lambda: masked(q[:, :, None], k, v, seen)[:, :, 0]


def decode_paged(d):
    batch, heads, group, each = d.random.randint(1, 20 if d.large else 2), d.random.randint(1, 4 if d.large else 1), d.random.choice([1, 4, 8]), d.random.randint(1, 20 if d.large else 2)
    pages = batch * each + 3
    q, k, v = d.tensor(batch, heads * group, 64), d.tensor(pages, heads, 128, 64), d.tensor(pages, heads, 128, 64)
    table, lengths = torch.randint(0, pages, (batch, each), device=d.device), torch.randint(1, each * 128 + 1, (batch,), device=d.device)
    seen = torch.arange(each * 128, device=d.device)[None, None, None, :] < lengths[:, None, None, None]
    return (q, k, v, table, lengths), {}, lambda: masked(q[:, :, None], *(t[table].permute(0, 2, 1, 3, 4).reshape(batch, heads, -1, 64) for t in (k, v)), seen)[:, :, 0]


def gradient(name):
    def draw(d):
        m, n = d.size(1, 3000), 8 * d.size(1, 1000)
        grad, x, w = d.tensor(m, n), d.tensor(m, n), d.tensor(n)

        def reference():
            with torch.enable_grad():
                leaves = [t.double().requires_grad_() for t in (x, w)]
                if name == "layernorm_backward":
                    leaves.append(torch.zeros(n, device=d.device, dtype=torch.float64, requires_grad=True))
                    F.layer_norm(leaves[0], (n,), leaves[1], leaves[2]).backward(grad.double())
                else:
                    F.rms_norm(leaves[0], (n,), leaves[1], 1e-6).backward(grad.double())
            return tuple(t.grad for t in leaves)

        return (grad, x, w), {}, reference

    draw.__name__ = name
    return draw


def index_add(d):
    v, p, n = d.size(1, 3000), d.size(1, 5000), d.size(1, 2000)
    out, rows = torch.randn(v, n, generator=d.generator, device=d.device), d.tensor(p, n, dtype=d.dtype())
    index = torch.randint(-2, v + 2, (p,), generator=d.generator, device=d.device).to(d.dtype(torch.int32, torch.int64))
    want = torch.cat([out.double(), torch.zeros(1, n, device=d.device, dtype=torch.float64)]).index_add_(0, torch.where((index < 0) | (index >= v), v, index).long(), rows.double())[:v]
    return (out, index, rows), {}, lambda: want


def bincount(d):
    length = d.size(1, 5000)
    x = torch.randint(-2, length + 2, [d.size(1, 3000) for _ in range(d.random.randint(1, 2))], generator=d.generator, device=d.device).to(d.dtype(torch.int32, torch.int64))
    want = torch.bincount(x[(x >= 0) & (x < length)].long().reshape(-1), minlength=length).to(torch.int32)
    return (x, length), {}, lambda: want


def dropout(d):
    from tilewright._random import uniform, words_of
    x, seed, offset = d.tensor(*(d.size(1, 300) for _ in range(d.random.randint(1, 3)))), d.random.getrandbits(62), d.random.getrandbits(40)
    kept = uniform(x.shape, (*words_of(seed), *words_of(offset)), device=d.device) >= 0.25
    return (x, 0.25), {"seed": seed, "offset": offset}, lambda: kept * x.double() / 0.75


def dropout_add(d):
    (x, p), named, dropped = dropout(d)
    residual = d.tensor(*x.shape, dtype=x.dtype)
    return (x, p, residual), named, lambda: dropped() + residual.double()


IN_PLACE = {"index_add"}
OPERATION = {"dropout_add": "dropout"}  # cases that are another form of an operation


def call(name, given, named):
    """What an operation gives; where it works in place, its first argument."""
    made = getattr(ops, OPERATION.get(name, name))(*given, **named)
    return given[0] if made is None else made


CASES = [matmul, matmul, matmul, matmul, linear, linear, linear, matmul_gated, attention, attention, attention, along("softmax", lambda x, dim: torch.softmax(x, dim)),
         along("logsumexp", lambda x, dim: torch.logsumexp(x, dim)), along("sum", lambda x, dim: x.sum(dim)), along("mean", lambda x, dim: x.mean(dim)),
         along("max", lambda x, dim: x.amax(dim)), along("min", lambda x, dim: x.amin(dim)), along("argmax", lambda x, dim: x.argmax(dim)), along("cumsum", lambda x, dim: x.cumsum(dim)),
         along("cumprod", lambda x, dim: x.cumprod(dim), scale=0.01, shift=1.0), norm("layernorm"), norm("layernorm"), norm("rmsnorm"), cross_entropy, rope, transpose,
         elementwise("relu", F.relu), elementwise("silu", F.silu), elementwise("sigmoid", torch.sigmoid), elementwise("gelu", F.gelu), swiglu, grouped_gemm, moe,
         matmul_fp8, matmul_fp8, matmul_fp8_blocks, matmul_f32, matmul_f32, matmul_int8, linear_w4, attention_variant, attention_packed, decode, decode_paged, gradient("rmsnorm_backward"), gradient("layernorm_backward"), dropout, dropout_add, index_add, bincount]


def judge(got, want):
    if isinstance(got, tuple):
        return max((judge(g, w) for g, w in zip(got, want)), key=lambda both: both[0] / both[1])
    if got.dtype in (torch.int64, torch.int32):
        return float((got != want).float().mean()), 0.0
    if not want.numel():
        return 0.0, 1.0
    error, norm = (got.double() - want).norm(), want.norm()
    tolerance = ROUNDING[got.dtype]
    return float(error / norm) if float(norm) > 0 else float(error), tolerance


def shapes_of(result):
    return [tuple(t.shape) for t in (result if isinstance(result, tuple) else (result,))]


def again(name, given, named, want):
    """The same call with its arguments elsewhere in memory, the first ones overwritten before it runs: a call that is launched from what was written down (tilewright/_tables.py) must take
    the new addresses. (how it went, error, is it right)"""
    move = lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device).copy_(t) if isinstance(t, torch.Tensor) else t  # noqa: E731
    moved, moved_named = [move(v) for v in given], {n: move(v) for n, v in named.items()}
    for t in (*given, *named.values()):
        if isinstance(t, torch.Tensor) and t.dtype.is_floating_point and t.element_size() > 1:
            t.fill_(float("nan"))
    through, record = [], _tables.record
    _tables.record = lambda *a: (through.append(1), record(*a))[1]
    try:
        with torch.no_grad():
            got = call(name, moved, moved_named)
            torch.cuda.synchronize()
    finally:
        _tables.record = record
    error, tolerance = judge(got, want)
    return "through Python" if through else "from the table", error, error <= tolerance


def first_of_equal(x, dim):
    """fp64 keeps what bf16 made equal, so ties are torch's own."""
    return x.argmax(dim)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("out")
    arguments.add_argument("--cases", type=int, default=300)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--seconds", type=float, default=140)
    arguments.add_argument("--device", default="cuda")
    arguments.add_argument("--only", default="")
    o = arguments.parse_args()
    warnings.simplefilter("ignore", ops.FallbackWarning)
    begin, rows, wrong = time.time(), [], []
    draw = Draw(o.seed, o.device)
    cases = [c for c in CASES if not o.only or c.__name__ in o.only.split(",")]
    for i in range(o.cases):
        if time.time() - begin > o.seconds:
            break
        case = cases[i % len(cases)]
        given, named, reference = case(draw)
        kept = [v.clone() if isinstance(v, torch.Tensor) and case.__name__ in IN_PLACE else v for v in given]  # of what is updated in place
        before = set(ops.fallbacks())
        shapes = [f"{str(t.dtype)[6:]}{list(t.shape)}" + ("" if t.is_contiguous() else f" strides {list(t.stride())}") for t in given if isinstance(t, torch.Tensor)]
        row = {"operation": case.__name__, "arguments": shapes, "options": {k: (v if not isinstance(v, torch.Tensor) else "tensor") for k, v in named.items() if v is not None}}
        started = time.time()
        try:
            with torch.no_grad():
                got = call(case.__name__, given, named)
                if o.device != "cpu":
                    torch.cuda.synchronize()
            want = reference()
            error, tolerance = judge(got, want)
            row.update(error=error, tolerance=tolerance, right=shapes_of(got) == shapes_of(want) and error <= tolerance)
            if o.device != "cpu":
                row["again"], error, right = again(case.__name__, kept, named, want)
                row.update(error_again=error, right=row["right"] and right)
        except Exception as problem:  # noqa: BLE001
            row.update(right=False, problem=f"{type(problem).__name__}: {problem}"[:600])
        row["seconds"] = round(time.time() - started, 3)
        new = set(ops.fallbacks()) - before
        row["left_to_torch"] = [reason for _, reason in sorted(new)]
        rows.append(row)
        if not row["right"]:
            wrong.append(row)
    counts = {}
    for row in rows:
        n = counts.setdefault(row["operation"], [0, 0])
        n[0] += 1
        n[1] += row["right"]
    table = sum(row.get("again") == "from the table" for row in rows)
    fallbacks = [{"operation": name, "reason": reason} for name, reason in ops.fallbacks()]
    result = {"schema": "tilewright ops 1", "cases": len(rows), "right": len(rows) - len(wrong), "wrong": wrong, "left_to_torch": fallbacks, "by_operation": counts, "seconds": round(time.time() - begin, 1), "again_from_the_table": table,
              "seed": o.seed, "torch": torch.__version__, "device": torch.cuda.get_device_name() if o.device != "cpu" else "emulator", "rows": rows}
    with open(o.out, "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)
    for row in wrong:
        print("WRONG", row["operation"], row["arguments"], row["options"], row.get("problem", f"error {row.get('error', 0):.1e}"))
    print(f"{table} of {sum('again' in row for row in rows)} second calls were launched from what was written down")
    print(f"{len(rows)} cases, {len(rows) - len(wrong)} right, {len(wrong)} wrong, {len(fallbacks)} reasons to leave something to torch, {result['seconds']} s")
    for name, (n, right) in sorted(counts.items()):
        print(f"  {name:14} {right} of {n} right")
    for f in fallbacks:
        print(f"  left to torch: {f['operation']}: {f['reason'][:160]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
