"""Products with one matrix an expert. Rows are sorted by expert; the table of tiles is made on the tensors' device, without waiting for it."""
from . import _dispatch
from ._arrays import arrays_of
from ._dispatch import Unfit
from ._library import TilewrightError
from ._operations import _operation, _or_torch, _torch


def _tiles(ends, rows, high, step, together):
    """(expert of each row, first row and end of each tile): tiles of one expert are nearly equal, of at most `high` rows and multiples of `step` but
    for the last. As many tiles as these rows can need; spare ones are empty."""
    torch = _torch()
    ends = ends.to(torch.int64)
    begins = torch.cat((ends.new_zeros(1), ends[:-1]))
    counts = ends - begins
    number, units = (counts + high - 1) // high, (counts + step - 1) // step
    last = number.cumsum(0)
    room = -(-(rows // high + ends.numel()) // together) * together
    slot = torch.arange(room, device=ends.device)
    expert = torch.searchsorted(last, slot, right=True).clamp(max=ends.numel() - 1)
    within = slot - (last - number)[expert]
    low, more = units[expert] // number[expert].clamp(min=1), units[expert] % number[expert].clamp(min=1)
    first = begins[expert] + step * (within * low + torch.minimum(within, more))
    end = torch.minimum(first + step * (low + (within < more)), ends[expert])
    spare = slot >= last[-1]
    of_row = torch.searchsorted(ends, torch.arange(rows, device=ends.device), right=True).clamp(max=ends.numel() - 1)
    as_int = lambda t: t.to(torch.int32)  # noqa: E731
    return as_int(of_row), as_int(first.masked_fill(spare, 0)), as_int(end.masked_fill(spare, 0))


def _constants(rows, experts):
    average = rows // (experts if experts else 1)
    return {"HIGH": 256 if average >= 192 else 128 if average >= 96 else 64, "STEP": 32, "TOGETHER": 8}


def _run(name, x, w, ends, rows, strict, theirs):
    arrays = arrays_of(x)
    if w.shape[0] != ends.shape[0] or x.shape[-1] != w.shape[-1]:
        raise TilewrightError(1, f"{name}: {tuple(x.shape)}, {tuple(w.shape)} and {tuple(ends.shape)} ends do not fit")

    def ours():
        if _torch() is None or arrays.dtype(x) != "bf16" or arrays.dtype(w) != "bf16":
            raise Unfit("torch tensors of bf16 are taken")
        count = x.shape[0] if rows is None else rows.shape[0]
        out = arrays.empty((count, w.shape[-2]), "bf16", x)
        if not arrays.size(out):
            return out
        constants = _constants(count, w.shape[0])
        expert, first, end = _tiles(ends, count, constants["HIGH"], constants["STEP"], constants["TOGETHER"])
        gathered = () if rows is None else (arrays.contiguous(arrays.indices(rows)),)
        _dispatch.run(name, arrays, (arrays.contiguous(x), arrays.contiguous(w), *gathered, expert, first, end), (out,), (), constants)
        return out

    return _or_torch(name, strict, ours, theirs)


def _by_expert(x, w, ends, product):
    torch = _torch()
    parts, begin = [], 0
    for e, end in enumerate(ends.tolist()):
        parts.append(product(x[begin:end], w[e]))
        begin = end
    return torch.cat(parts)


@_operation("(Tensor x, Tensor w, Tensor ends, *, bool strict=False) -> Tensor")
def grouped_gemm(x, w, ends, *, strict=False):
    """Rows of x (P, K) times the matrix of their expert, w (E, N, K) transposed. Rows are sorted by expert; ends[e] is where those of expert e end, ends[-1] = P."""
    return _run("grouped_gemm", x, w, ends, None, strict, lambda: _by_expert(x, w, ends, lambda a, b: a @ b.t()))


@_operation("(Tensor x, Tensor w, Tensor rows, Tensor ends, *, bool strict=False) -> Tensor")
def gathered_gemm(x, w, rows, ends, *, strict=False):
    """grouped_gemm of x[rows], which is never written: rows (P,) names the token of each row of the result."""
    return _run("gathered_gemm", x, w, ends, rows, strict, lambda: _by_expert(x[rows.long()], w, ends, lambda a, b: a @ b.t()))


@_operation("(Tensor x, Tensor w, Tensor rows, Tensor ends, *, bool strict=False) -> Tensor")
def gathered_swiglu(x, w, rows, ends, *, strict=False):
    """silu(x[rows] @ gate) * (x[rows] @ up) of each row's expert; w is (E, 2, N, K): gate, then up."""
    silu = lambda a: _torch().nn.functional.silu(a)  # noqa: E731
    return _run("gathered_swiglu", x, w, ends, rows, strict, lambda: _by_expert(x[rows.long()], w, ends, lambda a, b: silu(a @ b[0].t()) * (a @ b[1].t())))


def _moe_constants(rows, experts, top):
    """Tiles as high as an expert has rows on average; for few rows low ones and more slots, because the weights' stream is all that counts."""
    average = rows // (experts if experts else 1)
    if average >= 96:
        return {"TOP": top, "HIGH": 256 if average >= 192 else 128, "STEP": 32, "TOGETHER": 7}
    return {"TOP": top, "HIGH": 64, "STEP": 16, "STAGES": 7, "LAG": 4, "TOGETHER": 8}


def _moe_in_torch(x, scores, w, v, top):
    torch = _torch()
    best, expert = torch.sort(scores.float(), dim=1, descending=True, stable=True)
    weight, expert = torch.softmax(best[:, :top], 1), expert[:, :top]
    out = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
    for e in range(w.shape[0]):
        token, k = torch.nonzero(expert == e, as_tuple=True)
        h = (torch.nn.functional.silu((x[token] @ w[e, 0].t()).float()) * (x[token] @ w[e, 1].t()).float()).to(x.dtype)
        out.index_add_(0, token, (h @ v[e].t()).float() * weight[token, k, None])
    return out.to(x.dtype)


@_operation("(Tensor x, Tensor scores, Tensor w, Tensor v, int top, *, bool strict=False) -> Tensor")
def moe(x, scores, w, v, top, *, strict=False):
    """A layer of experts. Each token of x (T, K) goes to the `top` experts with the largest scores (T, E), the first of equal ones first; w (E, 2, N, K) holds their gate and up matrices,
    v (E, K, N) their last ones. The results are added with the softmax of those scores as weights."""
    arrays = arrays_of(x)
    if len(w.shape) != 4 or tuple(v.shape) != (w.shape[0], w.shape[3], w.shape[2]) or tuple(scores.shape) != (x.shape[0], w.shape[0]) or x.shape[-1] != w.shape[-1]:
        raise TilewrightError(1, f"moe: {tuple(x.shape)}, {tuple(scores.shape)}, {tuple(w.shape)} and {tuple(v.shape)} do not fit")

    def ours():
        if _torch() is None or any(arrays.dtype(t) != "bf16" for t in (x, scores, w, v)):
            raise Unfit("torch tensors of bf16 are taken")
        if not 1 <= top <= 8:
            raise Unfit("at most 8 experts a token are taken")
        out = arrays.empty(tuple(x.shape), "bf16", x)
        if arrays.size(out):
            given = tuple(arrays.contiguous(t) for t in (x, scores, w, v))
            _dispatch.run("moe", arrays, given, (out,), (), _moe_constants(x.shape[0] * top, w.shape[0], top))
        return out

    return _or_torch("moe", strict, ours, lambda: _moe_in_torch(x, scores, w, v, top))
