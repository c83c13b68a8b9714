"""Products of matrices, with what follows them."""
import functools
import math

from . import _dispatch
from ._arrays import arrays_of
from ._dispatch import Unfit
from ._elements import gelu, relu, sigmoid, silu
from ._library import TilewrightError
from ._operations import OPERATIONS, _broadcasts, _count_of, _operation, _or_torch, _torch

_FUSED = ("gelu_tanh", "silu", "relu")
_ACTIVATIONS = (None, "relu", "silu", "sigmoid", "gelu", "gelu_tanh")


def _form(x, arrays):
    """A matrix as kernels take it: (rows that follow one another, is it the transpose?)."""
    if arrays.is_contiguous(x):
        return arrays.contiguous(x), False
    turned = arrays.transposed(x)
    if arrays.is_contiguous(turned):
        return arrays.contiguous(turned), True
    return arrays.contiguous(x), False


def _product(a, b, arrays):
    """a (M, K) times b (K, N) by a bare GEMM."""
    dtype = arrays.dtype(a)
    if dtype not in ("bf16", "f16") or arrays.dtype(b) != dtype:
        raise Unfit(f"matrices of bf16 or f16 are taken, these are {dtype} and {arrays.dtype(b)}")
    out = arrays.empty((a.shape[0], b.shape[1]), dtype, a)
    if not arrays.size(out):
        return out
    if a.shape[1] == 0:
        return arrays.full(tuple(out.shape), 0, dtype, a)
    first, a_turned = _form(a, arrays)
    second, b_turned = _form(b, arrays)
    form = ("n" if a_turned else "t") + ("n" if b_turned else "t")
    try:
        _dispatch.run("matmul_" + form, arrays, (first, second), (out,))
    except Unfit as reason:
        if form == "tn":
            raise
        # Rows of A and columns of B in memory order: this form has kernels for every shape.
        try:
            _dispatch.run("matmul_tn", arrays, (arrays.contiguous(a), arrays.contiguous(arrays.transposed(b))), (out,))
        except Unfit:
            raise reason from None
    return out


def _fused(a, b, bias, activation, residual, row_scale, column_scale, arrays):
    """The part of an epilogue that a kernel has: (result, what is left to do), or None."""
    second, turned = _form(b, arrays)
    if not turned or arrays.dtype(a) != "bf16" or arrays.dtype(b) != "bf16" or not a.shape[1]:
        return None
    m, n = a.shape[0], b.shape[1]
    extra, left = [], [("bias", bias), ("activation", activation), ("residual", residual)]
    if row_scale is not None or column_scale is not None:
        operation = "matmul_scaled"
        extra = [arrays.full((m,), 1.0, "f32", a) if row_scale is None else arrays.contiguous(arrays.cast(row_scale.reshape(m), "f32")),
                 arrays.full((n,), 1.0, "f32", a) if column_scale is None else arrays.contiguous(arrays.cast(column_scale.reshape(n), "f32"))]
    elif bias is not None or activation in _FUSED:
        operation = "matmul_bias" + (f"_{activation}" if activation in _FUSED else "")
        extra = [arrays.full((n,), 0.0, "bf16", a) if bias is None else arrays.contiguous(arrays.cast(bias, "bf16"))]
        left = [("activation", None if activation in _FUSED else activation), ("residual", residual)]
    elif residual is not None and activation is None:
        operation, extra, left = "matmul_residual", [arrays.contiguous(arrays.cast(residual, "bf16"))], []
    else:
        return None
    out = arrays.empty((m, n), "bf16", a)
    if not arrays.size(out):
        return out, []
    try:
        _dispatch.run(operation, arrays, (arrays.contiguous(a), second, *extra), (out,))
    except Unfit:
        return None
    return out, left


def _matmul2(a, b, bias, activation, residual, row_scale, column_scale, arrays):
    done = None
    if bias is not None or activation is not None or residual is not None or row_scale is not None or column_scale is not None:
        done = _fused(a, b, bias, activation, residual, row_scale, column_scale, arrays)
    if done is None:
        out, left = _product(a, b, arrays), [("bias", bias), ("activation", activation), ("residual", residual)]
        if row_scale is not None:
            out = out * arrays.cast(row_scale.reshape(-1, 1), arrays.dtype(out))
        if column_scale is not None:
            out = out * arrays.cast(column_scale.reshape(1, -1), arrays.dtype(out))
    else:
        out, left = done
    for what, value in left:
        if value is None:
            continue
        out = _activated(out, value) if what == "activation" else out + arrays.cast(value, arrays.dtype(out))
    return out


def _activated(x, activation):
    return {"relu": relu, "silu": silu, "sigmoid": sigmoid, "gelu": gelu, "gelu_tanh": functools.partial(gelu, approximate="tanh")}[activation](x)


@_operation("(Tensor a, Tensor b, Tensor? bias=None, str? activation=None, Tensor? residual=None, Tensor? row_scale=None, Tensor? column_scale=None, *, bool strict=False) -> Tensor")
def matmul(a, b, bias=None, activation=None, residual=None, row_scale=None, column_scale=None, *, strict=False):
    """activation(a @ b * row_scale[:, None] * column_scale + bias) + residual.

    a is (..., M, K), b (K, N) or (..., K, N); either may be a transposed view, which is not copied. activation: None, "relu", "silu", "sigmoid", "gelu" (with erf)
    or "gelu_tanh".
    """
    if activation not in _ACTIVATIONS:
        raise TilewrightError(1, f"matmul: activation is one of {', '.join(map(str, _ACTIVATIONS))}, not {activation!r}")
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise TilewrightError(1, f"matmul: {tuple(a.shape)} and {tuple(b.shape)} do not fit: the last dimension of a is the last but one of b")
    arrays = arrays_of(a)
    shape = (*a.shape[:-1], b.shape[-1])
    for what, value in (("the bias", bias), ("the residual", residual)):
        if value is not None:
            _broadcasts("matmul", what, value, shape)
    if residual is not None and tuple(residual.shape) != tuple(shape):
        residual = arrays.spread(residual, shape)
    if row_scale is not None:
        _count_of("matmul", "row_scale", row_scale, math.prod(a.shape[:-1] if b.ndim == 2 else a.shape[-2:-1]))
    if column_scale is not None:
        _count_of("matmul", "column_scale", column_scale, b.shape[-1])

    def ours():
        if b.ndim == 2:
            rows = a if a.ndim == 2 else a.reshape(-1, a.shape[-1])
            added = None if residual is None else residual.reshape(-1, b.shape[-1])
            return _matmul2(rows, b, bias, activation, added, row_scale, column_scale, arrays).reshape(shape)
        if tuple(a.shape[:-2]) != tuple(b.shape[:-2]):
            raise Unfit(f"batches {tuple(a.shape[:-2])} and {tuple(b.shape[:-2])} differ, and broadcasting is not done by a kernel")
        first, second = a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:])
        if not strict and first.shape[0] > 4 and a.shape[-1] * a.shape[-2] * b.shape[-1] < 1 << 27:
            raise Unfit("a batch of small products has no kernel of its own")
        added = None if residual is None else residual.reshape(-1, *shape[-2:])
        parts = [_matmul2(first[i], second[i], bias, activation, None if added is None else added[i], row_scale, column_scale, arrays) for i in range(first.shape[0])]
        out = arrays.empty((len(parts), *shape[-2:]), arrays.dtype(a), a)
        for i, part in enumerate(parts):
            out[i] = part
        return out.reshape(shape)

    def theirs():
        torch = _torch()
        out = torch.matmul(a, b)
        if row_scale is not None:
            out = out * row_scale.reshape(-1, 1).to(out.dtype)
        if column_scale is not None:
            out = out * column_scale.to(out.dtype)
        if bias is not None:
            out = out + bias
        if activation is not None:
            nn = torch.nn.functional
            out = nn.gelu(out, approximate="tanh") if activation == "gelu_tanh" else torch.sigmoid(out) if activation == "sigmoid" else getattr(nn, activation)(out)
        return out if residual is None else out + residual

    return _or_torch("matmul", strict, ours, theirs)


@_operation("(Tensor x, Tensor weight, Tensor? bias=None, str? activation=None, Tensor? residual=None, *, bool strict=False) -> Tensor")
def linear(x, weight, bias=None, activation=None, residual=None, *, strict=False):
    """activation(x @ weight.T + bias) + residual, with weight (N, K) as torch.nn.Linear has it."""
    if weight.ndim != 2:
        raise TilewrightError(1, f"linear: weight (N, K) is expected, not {tuple(weight.shape)}")
    return OPERATIONS["matmul"][0](x, arrays_of(x).transposed(weight), bias=bias, activation=activation, residual=residual, strict=strict)


@_operation("(Tensor x, Tensor gate, Tensor up, *, bool strict=False) -> Tensor")
def matmul_gated(x, gate, up, *, strict=False):
    """silu(x @ gate.T) * (x @ up.T), both products in one kernel; gate and up are (N, K)."""
    arrays = arrays_of(x)
    shape = (*x.shape[:-1], gate.shape[0])

    def ours():
        if arrays.dtype(x) != "bf16":
            raise Unfit(f"bf16 is taken, this is {arrays.dtype(x)}")
        rows = arrays.contiguous(x.reshape(-1, x.shape[-1]))
        out = arrays.empty((rows.shape[0], gate.shape[0]), "bf16", x)
        if arrays.size(out):
            _dispatch.run("matmul_gated", arrays, (rows, arrays.contiguous(gate), arrays.contiguous(up)), (out,))
        return out.reshape(shape)

    nn = lambda: _torch().nn.functional  # noqa: E731
    return _or_torch("matmul_gated", strict, ours, lambda: nn().silu(nn().linear(x, gate)) * nn().linear(x, up))
