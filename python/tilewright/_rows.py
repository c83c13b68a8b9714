"""Operations along a dimension: norms, reductions, scans, losses; and what moves rows."""
import math

from . import _dispatch
from ._arrays import arrays_of
from ._dispatch import Unfit
from ._library import TilewrightError
from ._operations import _axis, _operation, _or_torch, _rows, _taken, _torch, _vector


def _by_rows(name, operation, x, dim, strict, theirs, out_dtype=None, keeps=True, scalars=(), beside=()):
    """An operation on rows, along any dimension. `keeps`: the result has the shape of x; otherwise `dim` is gone."""
    arrays = arrays_of(x)
    axis = _axis(dim, x.ndim, name)

    def ours():
        dtype = _taken(x, arrays)
        moved = x if axis == x.ndim - 1 else arrays.moved(x, axis, -1)
        shape = tuple(moved.shape)
        if not arrays.size(x):
            raise Unfit("the tensor has no element")
        rows = _rows(moved, arrays)
        out = arrays.empty(tuple(rows.shape) if keeps else (rows.shape[0],), out_dtype or dtype, x)
        _dispatch.run(operation, arrays, (rows, *(b(dtype) for b in beside)), (out,), scalars)
        if not keeps:
            return out.reshape(shape[:-1])
        out = out.reshape(shape)
        return out if axis == x.ndim - 1 else arrays.moved(out, -1, axis)

    return _or_torch(name, strict, ours, theirs)


@_operation("(Tensor x, int dim=-1, *, bool strict=False) -> Tensor")
def softmax(x, dim=-1, *, strict=False):
    """exp(x) / sum(exp(x)) along a dimension."""
    return _by_rows("softmax", "softmax", x, dim, strict, lambda: _torch().softmax(x, dim))


@_operation("(Tensor x, int dim=-1, *, bool strict=False) -> Tensor")
def logsumexp(x, dim=-1, *, strict=False):
    """log(sum(exp(x))) along a dimension, which is gone in the result."""
    return _by_rows("logsumexp", "logsumexp", x, dim, strict, lambda: _torch().logsumexp(x, dim), keeps=False)


@_operation("(Tensor x, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, *, bool strict=False) -> Tensor")
def layernorm(x, weight=None, bias=None, eps=1e-5, *, strict=False):
    """(x - mean) / sqrt(variance + eps) * weight + bias along the last dimension."""
    arrays = arrays_of(x)
    beside = [lambda dtype: _vector(weight, 1.0, x, dtype, arrays), lambda dtype: _vector(bias, 0.0, x, dtype, arrays)]
    return _by_rows("layernorm", "layernorm", x, -1, strict, lambda: _torch().nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps), scalars=(float(eps),), beside=beside)


@_operation("(Tensor x, Tensor? weight=None, float eps=1e-06, *, bool strict=False) -> Tensor")
def rmsnorm(x, weight=None, eps=1e-6, *, strict=False):
    """x / sqrt(mean(x * x) + eps) * weight along the last dimension."""
    arrays = arrays_of(x)
    return _by_rows("rmsnorm", "rmsnorm", x, -1, strict, lambda: _torch().nn.functional.rms_norm(x, (x.shape[-1],), weight, eps), scalars=(float(eps),),
                    beside=[lambda dtype: _vector(weight, 1.0, x, dtype, arrays)])


@_operation("(Tensor x, Tensor residual, Tensor? weight=None, float eps=1e-06, *, bool strict=False) -> (Tensor, Tensor)")
def rmsnorm_residual(x, residual, weight=None, eps=1e-6, *, strict=False):
    """(s, rmsnorm(s)) of the sum s = x + residual, both in one pass."""
    if residual.shape != x.shape:
        raise TilewrightError(1, f"rmsnorm_residual: a residual with the shape of x, {tuple(x.shape)}, is expected, not {tuple(residual.shape)}")
    arrays = arrays_of(x)

    def ours():
        dtype = _taken(x, arrays)
        rows = _rows(x, arrays)
        total, out = arrays.empty(tuple(rows.shape), dtype, x), arrays.empty(tuple(rows.shape), dtype, x)
        if arrays.size(out):
            _dispatch.run("rmsnorm_residual", arrays, (rows, _rows(residual, arrays), _vector(weight, 1.0, x, dtype, arrays)), (total, out), (float(eps),))
        return total.reshape(x.shape), out.reshape(x.shape)

    def theirs():
        total = x + residual
        return total, _torch().nn.functional.rms_norm(total, (x.shape[-1],), weight, eps)

    return _or_torch("rmsnorm_residual", strict, ours, theirs)


@_operation("(Tensor logits, Tensor target, *, int ignore_index=-100, str reduction='mean', bool strict=False) -> Tensor")
def cross_entropy(logits, target, *, ignore_index=-100, reduction="mean", strict=False):
    """-log(softmax(logits)[target]) of each row, in f32; reduction: "mean", "sum" or "none". Targets are classes, below the row's length, or ignore_index."""
    if reduction not in ("mean", "sum", "none"):
        raise TilewrightError(1, f'cross_entropy: reduction is "mean", "sum" or "none", not {reduction!r}')
    arrays = arrays_of(logits)
    if not logits.ndim or tuple(target.shape) != tuple(logits.shape[:-1]):
        raise TilewrightError(1, f"cross_entropy: logits (..., N) and target (...) are expected, not {tuple(logits.shape)} and {tuple(target.shape)}")

    def ours():
        _taken(logits, arrays)
        rows = _rows(logits, arrays)
        if not arrays.size(rows):
            raise Unfit("the tensor has no element")
        flat = target.reshape(-1)
        counted = flat != ignore_index
        classes = arrays.contiguous(arrays.indices(flat * counted))
        loss = arrays.empty((rows.shape[0],), "f32", logits)
        _dispatch.run("cross_entropy", arrays, (rows, classes), (loss,))
        loss = loss * counted
        if reduction == "none":
            return loss.reshape(target.shape)
        return loss.sum() if reduction == "sum" else loss.sum() / counted.sum()

    def theirs():
        flat = logits.reshape(-1, logits.shape[-1]).float()
        loss = _torch().nn.functional.cross_entropy(flat, target.reshape(-1).long(), ignore_index=ignore_index, reduction=reduction)
        return loss.reshape(target.shape) if reduction == "none" else loss

    return _or_torch("cross_entropy", strict, ours, theirs)


def _reduction(name, x, dim, keepdim, strict, theirs):
    arrays = arrays_of(x)

    def ours():
        dtype = _taken(x, arrays)
        if not arrays.size(x):
            raise Unfit("the tensor has no element")
        rank = x.ndim
        axis = 0 if dim is None else _axis(dim, rank, name)
        if dim is None or axis == rank - 1:
            rows = arrays.contiguous(x.reshape(1, -1) if dim is None else x.reshape(-1, x.shape[-1]))
            out = arrays.empty((rows.shape[0],), dtype, x)
            _dispatch.run("row_" + name, arrays, (rows,), (out,))
        else:
            before, after = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1:])
            blocks = arrays.contiguous(x).reshape(before, x.shape[axis], after)
            out = arrays.empty((before, after), dtype, x)
            _dispatch.run("axis_" + name, arrays, (blocks,), (out,))
        if dim is None:
            return out.reshape((1,) * rank if keepdim else ())
        return out.reshape(*x.shape[:axis], *((1,) if keepdim else ()), *x.shape[axis + 1:])

    return _or_torch(name, strict, ours, theirs)


@_operation("(Tensor x, int? dim=None, bool keepdim=False, *, bool strict=False) -> Tensor")
def sum_(x, dim=None, keepdim=False, *, strict=False):
    """The sum along a dimension, or of all elements; added in f32."""
    return _reduction("sum", x, dim, keepdim, strict, lambda: _torch().sum(x, dim, keepdim=keepdim) if dim is not None else x.sum().reshape((1,) * x.ndim if keepdim else ()))


@_operation("(Tensor x, int? dim=None, bool keepdim=False, *, bool strict=False) -> Tensor")
def mean(x, dim=None, keepdim=False, *, strict=False):
    """The mean along a dimension, or of all elements; added in f32."""
    return _reduction("mean", x, dim, keepdim, strict, lambda: _torch().mean(x, dim, keepdim=keepdim) if dim is not None else x.mean().reshape((1,) * x.ndim if keepdim else ()))


@_operation("(Tensor x, int? dim=None, bool keepdim=False, *, bool strict=False) -> Tensor")
def max_(x, dim=None, keepdim=False, *, strict=False):
    """The greatest value along a dimension, or of all elements."""
    return _reduction("max", x, dim, keepdim, strict, lambda: x.amax(dim, keepdim=keepdim) if dim is not None else x.amax().reshape((1,) * x.ndim if keepdim else ()))


@_operation("(Tensor x, int? dim=None, bool keepdim=False, *, bool strict=False) -> Tensor")
def min_(x, dim=None, keepdim=False, *, strict=False):
    """The least value along a dimension, or of all elements."""
    return _reduction("min", x, dim, keepdim, strict, lambda: x.amin(dim, keepdim=keepdim) if dim is not None else x.amin().reshape((1,) * x.ndim if keepdim else ()))


@_operation("(Tensor x, int dim=-1, *, bool strict=False) -> Tensor")
def argmax(x, dim=-1, *, strict=False):
    """Where the greatest value along a dimension is: the first of equal ones."""
    return _by_rows("argmax", "argmax", x, dim, strict, lambda: _torch().argmax(x, dim), out_dtype="i64", keeps=False)


@_operation("(Tensor x, int dim=-1, *, bool strict=False) -> Tensor")
def argmin(x, dim=-1, *, strict=False):
    """Where the least value along a dimension is: the first of equal ones."""
    return _by_rows("argmin", "argmin", x, dim, strict, lambda: _torch().argmin(x, dim), out_dtype="i64", keeps=False)


@_operation("(Tensor x, int dim=-1, *, bool strict=False) -> Tensor")
def cumsum(x, dim=-1, *, strict=False):
    """Sums of the elements up to each one along a dimension; added in f32."""
    return _by_rows("cumsum", "cumsum", x, dim, strict, lambda: _torch().cumsum(x, dim))


@_operation("(Tensor x, int dim=-1, *, bool strict=False) -> Tensor")
def cumprod(x, dim=-1, *, strict=False):
    """Products of the elements up to each one along a dimension; multiplied in f32."""
    return _by_rows("cumprod", "cumprod", x, dim, strict, lambda: _torch().cumprod(x, dim))


@_operation("(Tensor x, *, bool strict=False) -> Tensor")
def transpose(x, *, strict=False):
    """A matrix with rows and columns exchanged in memory."""
    arrays = arrays_of(x)

    def ours():
        dtype = _taken(x, arrays)
        if x.ndim != 2 or not arrays.size(x):
            raise Unfit("a matrix with elements is taken")
        out = arrays.empty((x.shape[1], x.shape[0]), dtype, x)
        _dispatch.run("transpose", arrays, (arrays.contiguous(x),), (out,))
        return out

    return _or_torch("transpose", strict, ours, lambda: x.transpose(-1, -2).contiguous())


@_operation("(Tensor x, Tensor cosine, Tensor sine, *, bool strict=False) -> Tensor")
def rope(x, cosine, sine, *, strict=False):
    """Rotary position embedding, halves form. x is (..., L, H, D), cosine and sine (L, D / 2) for positions 0 to L - 1."""
    arrays = arrays_of(x)
    if x.ndim < 3 or x.shape[-1] % 2 or tuple(cosine.shape) != (x.shape[-3], x.shape[-1] // 2) or tuple(sine.shape) != tuple(cosine.shape):
        raise TilewrightError(1, f"rope: x (..., L, H, D) and tables (L, D / 2) are expected, not {tuple(x.shape)}, {tuple(cosine.shape)} and {tuple(sine.shape)}")

    def ours():
        dtype = _taken(x, arrays)
        heads, half = x.shape[-2], x.shape[-1] // 2
        flat = arrays.contiguous(x).reshape(-1, heads, 2, half)
        # A batch is more tokens, and the tables are repeated for them.
        batch = flat.shape[0] // x.shape[-3] if x.shape[-3] else 0
        tables = [arrays.contiguous(arrays.repeated(arrays.cast(t, dtype), batch)) for t in (cosine, sine)]
        out = arrays.empty(tuple(flat.shape), dtype, x)
        if arrays.size(x):
            _dispatch.run("rope", arrays, (flat, *tables), (out,))
        return out.reshape(x.shape)

    def theirs():
        torch = _torch()
        a, b = x.float().chunk(2, -1)
        c, s = cosine.float()[:, None, :], sine.float()[:, None, :]
        return torch.cat((a * c - b * s, b * c + a * s), -1).to(x.dtype)

    return _or_torch("rope", strict, ours, theirs)
