"""Operations on single elements, and the gated pair."""
from . import _dispatch
from ._arrays import arrays_of
from ._dispatch import Unfit
from ._library import TilewrightError
from ._operations import _operation, _or_torch, _taken, _torch, _rows, _vector


def _elementwise(name, operation, x, strict, theirs):
    arrays = arrays_of(x)

    def ours():
        dtype = _taken(x, arrays)
        flat = arrays.contiguous(x).reshape(-1)
        out = arrays.empty(tuple(flat.shape), dtype, x)
        if arrays.size(out):
            _dispatch.run(operation, arrays, (flat,), (out,))
        return out.reshape(x.shape)

    return _or_torch(name, strict, ours, theirs)


@_operation("(Tensor x, *, bool strict=False) -> Tensor")
def relu(x, *, strict=False):
    """The greater of x and 0."""
    return _elementwise("relu", "relu", x, strict, lambda: _torch().relu(x))


@_operation("(Tensor x, *, bool strict=False) -> Tensor")
def silu(x, *, strict=False):
    """x * sigmoid(x)."""
    return _elementwise("silu", "silu", x, strict, lambda: _torch().nn.functional.silu(x))


@_operation("(Tensor x, *, bool strict=False) -> Tensor")
def sigmoid(x, *, strict=False):
    """1 / (1 + exp(-x))."""
    return _elementwise("sigmoid", "sigmoid", x, strict, lambda: _torch().sigmoid(x))


@_operation("(Tensor x, str approximate='none', *, bool strict=False) -> Tensor")
def gelu(x, approximate="none", *, strict=False):
    """x * Phi(x), with erf; approximate="tanh" is the form with tanh."""
    if approximate not in ("none", "tanh"):
        raise TilewrightError(1, f'gelu: approximate is "none" or "tanh", not {approximate!r}')
    return _elementwise("gelu", "gelu" if approximate == "none" else "gelu_tanh", x, strict, lambda: _torch().nn.functional.gelu(x, approximate=approximate))


@_operation("(Tensor x, *, bool strict=False) -> Tensor")
def swiglu(x, *, strict=False):
    """silu of the first half of each row times its second half; the last dimension is halved."""
    arrays = arrays_of(x)
    if x.shape[-1] % 2:
        raise TilewrightError(1, f"swiglu: the last dimension is {x.shape[-1]}, an even one is expected")

    def ours():
        dtype = _taken(x, arrays)
        rows = _rows(x, arrays)
        out = arrays.empty((rows.shape[0], x.shape[-1] // 2), dtype, x)
        if arrays.size(out):
            _dispatch.run("swiglu", arrays, (rows,), (out,))
        return out.reshape(*x.shape[:-1], x.shape[-1] // 2)

    def theirs():
        a, b = x.chunk(2, -1)
        return _torch().nn.functional.silu(a) * b

    return _or_torch("swiglu", strict, ours, theirs)


@_operation("(Tensor x, Tensor bias, *, bool strict=False) -> Tensor")
def bias_gelu(x, bias, *, strict=False):
    """gelu(x + bias), with erf; bias is a vector of the last dimension."""
    arrays = arrays_of(x)

    def ours():
        if arrays.dtype(x) != "bf16":
            raise Unfit(f"bf16 is taken, this is {arrays.dtype(x)}")
        rows = _rows(x, arrays)
        out = arrays.empty(tuple(rows.shape), "bf16", x)
        if arrays.size(out):
            _dispatch.run("bias_gelu", arrays, (rows, _vector(bias, 0.0, x, "bf16", arrays)), (out,))
        return out.reshape(x.shape)

    return _or_torch("bias_gelu", strict, ours, lambda: _torch().nn.functional.gelu(x + bias))
