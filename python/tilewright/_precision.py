"""Products of narrow numbers with scales, and the rows that they take."""
from . import _dispatch
from ._arrays import arrays_of
from ._dispatch import Unfit
from ._library import TilewrightError
from ._operations import _operation, _or_torch, _rows, _torch

_BLOCK = 128  # elements that share a scale


def _of(x, arrays, *wanted):
    dtype = arrays.dtype(x)
    if dtype not in wanted:
        raise Unfit(f"{' or '.join(wanted)} is taken, this is {dtype}")
    return dtype


def _pair(name, a, b):
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise TilewrightError(1, f"{name}: a (M, K) and b (N, K) are expected, not {tuple(a.shape)} and {tuple(b.shape)}")


def _two_matrices(name, a, b, dtype):
    """What both products share: types, shapes, and the arrays of a."""
    arrays = arrays_of(a)
    _of(a, arrays, dtype), _of(b, arrays, dtype)
    if not a.shape[0] * b.shape[0] * a.shape[1]:
        raise Unfit("there is nothing to multiply")
    return arrays


@_operation("(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, *, bool fast=False, bool strict=False) -> Tensor")
def matmul_fp8(a, b, scale_a, scale_b, *, fast=False, strict=False):
    """a (M, K) times b (N, K) transposed, of e4m3, as bf16. Scales in f32: one for each tensor (no dimension), or one for each row of a and b. fast: sums stay in the matrix unit, in 13 bits."""
    _pair("matmul_fp8", a, b)
    by_rows = scale_a.ndim == 1
    if scale_a.ndim != scale_b.ndim or scale_a.ndim > 1 or (by_rows and (scale_a.shape[0] != a.shape[0] or scale_b.shape[0] != b.shape[0])):
        raise TilewrightError(1, f"matmul_fp8: scales are two numbers, or one for each row; {tuple(scale_a.shape)} and {tuple(scale_b.shape)} were given")

    def ours():
        arrays = _two_matrices("matmul_fp8", a, b, "e4m3")
        _of(scale_a, arrays, "f32"), _of(scale_b, arrays, "f32")
        out = arrays.empty((a.shape[0], b.shape[0]), "bf16", a)
        name = "matmul_fp8" + ("_rows" if by_rows else "") + ("_fast" if fast else "")
        _dispatch.run(name, arrays, tuple(arrays.contiguous(t) for t in (a, b, scale_a, scale_b)), (out,))
        return out

    def theirs():
        rows, columns = (scale_a[:, None], scale_b[None, :]) if by_rows else (scale_a, scale_b)
        return ((a.float() @ b.float().t()) * rows * columns).to(_torch().bfloat16)

    return _or_torch("matmul_fp8", strict, ours, theirs)


@_operation("(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, *, bool strict=False) -> Tensor")
def matmul_fp8_blocks(a, b, scale_a, scale_b, *, strict=False):
    """The same with a scale for every 128 elements of a row of a, (K / 128, M), and every 128 x 128 of b, (N / 128, K / 128)."""
    _pair("matmul_fp8_blocks", a, b)
    m, k, n = a.shape[0], a.shape[1], b.shape[0]
    if tuple(scale_a.shape) != (-(-k // _BLOCK), m) or tuple(scale_b.shape) != (-(-n // _BLOCK), -(-k // _BLOCK)):
        raise TilewrightError(1, f"matmul_fp8_blocks: scales of {(-(-k // _BLOCK), m)} and {(-(-n // _BLOCK), -(-k // _BLOCK))} are expected, not {tuple(scale_a.shape)} and {tuple(scale_b.shape)}")

    def ours():
        arrays = _two_matrices("matmul_fp8_blocks", a, b, "e4m3")
        if k % _BLOCK or n % _BLOCK:
            raise Unfit(f"N and K are multiples of {_BLOCK}")
        out = arrays.empty((m, n // _BLOCK, _BLOCK), "bf16", a)
        blocks = arrays.contiguous(a).reshape(m, k // _BLOCK, _BLOCK), arrays.contiguous(b).reshape(n // _BLOCK, _BLOCK, k // _BLOCK, _BLOCK)
        _dispatch.run("matmul_fp8_blocks", arrays, (*blocks, arrays.contiguous(scale_a), arrays.contiguous(scale_b)), (out,))
        return out.reshape(m, n)

    def theirs():
        rows = scale_a.t().repeat_interleave(_BLOCK, 1)[:, :k]
        blocks = scale_b.repeat_interleave(_BLOCK, 0).repeat_interleave(_BLOCK, 1)[:n, :k]
        return ((a.float() * rows) @ (b.float() * blocks).t()).to(_torch().bfloat16)

    return _or_torch("matmul_fp8_blocks", strict, ours, theirs)


@_operation("(Tensor a, Tensor b, Tensor? scale_a=None, Tensor? scale_b=None, *, bool strict=False) -> Tensor")
def matmul_int8(a, b, scale_a=None, scale_b=None, *, strict=False):
    """a (M, K) times b (N, K) transposed, of int8: exact in int32, or with a scale for each row of a and b as bf16."""
    _pair("matmul_int8", a, b)
    if (scale_a is None) != (scale_b is None):
        raise TilewrightError(1, "matmul_int8: both scales are given, or none")

    def ours():
        arrays = _two_matrices("matmul_int8", a, b, "i8")
        scales = () if scale_a is None else (arrays.contiguous(scale_a), arrays.contiguous(scale_b))
        out = arrays.empty((a.shape[0], b.shape[0]), "bf16" if scales else "i32", a)
        _dispatch.run("matmul_int8_rows" if scales else "matmul_int8", arrays, (arrays.contiguous(a), arrays.contiguous(b), *scales), (out,))
        return out

    def theirs():
        torch = _torch()
        exact = (a.double() @ b.double().t()).to(torch.int32)
        return exact if scale_a is None else (exact.float() * scale_a[:, None] * scale_b[None, :]).to(torch.bfloat16)

    return _or_torch("matmul_int8", strict, ours, theirs)


_F32_PRECISIONS = {"f32": "matmul_f32", "tf32": "matmul_tf32", "tf32_fast": "matmul_tf32_fast"}


def _as_tf32(x):
    """The same memory for a kernel that takes tf32: the matrix unit leaves the low bits of each number out."""
    x = x.view(x.shape)
    x.tilewright_dtype = "tf32"
    return x


@_operation("(Tensor a, Tensor b, *, str precision='f32', bool strict=False) -> Tensor")
def matmul_f32(a, b, *, precision="f32", strict=False):
    """a (M, K) times b (N, K) transposed, of f32. precision "f32": three products of f16 parts on the matrix unit, an error no larger than SGEMM's. "tf32": the upper 10 bits of each number's
    fraction, sums in f32. "tf32_fast": the same with sums that stay in the matrix unit, which cuts off what it adds, as the libraries' do."""
    _pair("matmul_f32", a, b)
    if precision not in _F32_PRECISIONS:
        raise TilewrightError(1, f"matmul_f32: precision is one of {', '.join(_F32_PRECISIONS)}, not {precision!r}")

    def ours():
        arrays = _two_matrices("matmul_f32", a, b, "f32")
        out = arrays.empty((a.shape[0], b.shape[0]), "f32", a)
        inputs = arrays.contiguous(a), arrays.contiguous(b)
        if precision != "f32":
            if _torch() is None or not isinstance(a, _torch().Tensor):
                raise Unfit("tf32 is taken of torch's tensors")
            inputs = _as_tf32(inputs[0]), _as_tf32(inputs[1])
        _dispatch.run(_F32_PRECISIONS[precision], arrays, inputs, (out,))
        return out

    return _or_torch("matmul_f32", strict, ours, lambda: a @ b.t())


@_operation("(Tensor x, Tensor weight, Tensor scales, *, bool strict=False) -> Tensor")
def linear_w4(x, weight, scales, *, strict=False):
    """x (..., K) times weights of 4 bits: weight (N, K / 128, 64) of uint8 holds element j of a block in the low and j + 64 in the high half of byte j, 8 too large; scales (K / 128, N) in bf16."""
    if weight.ndim != 3 or weight.shape[2] != 64 or x.shape[-1] != weight.shape[1] * _BLOCK or tuple(scales.shape) != (weight.shape[1], weight.shape[0]):
        raise TilewrightError(1, f"linear_w4: x (..., K), weight (N, K / 128, 64) and scales (K / 128, N) are expected, not {tuple(x.shape)}, {tuple(weight.shape)} and {tuple(scales.shape)}")
    arrays = arrays_of(x)

    def ours():
        _of(x, arrays, "bf16"), _of(weight, arrays, "u8"), _of(scales, arrays, "bf16")
        rows = _rows(x, arrays)
        out = arrays.empty((rows.shape[0], weight.shape[0]), "bf16", x)
        if arrays.size(out):
            _dispatch.run("linear_w4", arrays, (rows.reshape(rows.shape[0], -1, _BLOCK), arrays.contiguous(weight), arrays.contiguous(scales)), (out,))
        return out.reshape(*x.shape[:-1], weight.shape[0])

    def theirs():
        torch = _torch()
        halves = torch.cat((weight % 16, weight // 16), -1).float() - 8
        return x @ (halves * scales.t().float()[:, :, None]).to(x.dtype).reshape(weight.shape[0], -1).t()

    return _or_torch("linear_w4", strict, ours, theirs)


@_operation("(Tensor x, *, bool strict=False) -> (Tensor, Tensor)")
def quantize_fp8(x, *, strict=False):
    """(x in e4m3, scale of each row): the largest element of a row becomes 448."""
    arrays = arrays_of(x)

    def ours():
        _of(x, arrays, "bf16")
        rows = _rows(x, arrays)
        out, scale = arrays.empty(tuple(rows.shape), "e4m3", x), arrays.empty((rows.shape[0],), "f32", x)
        if arrays.size(out):
            _dispatch.run("quantize_fp8", arrays, (rows,), (out, scale))
        return out.reshape(x.shape), scale.reshape(x.shape[:-1])

    def theirs():
        top = x.float().abs().amax(-1)
        return (x.float() * (448.0 / top.clamp(min=1e-12))[..., None]).clamp(-448, 448).to(_torch().float8_e4m3fn), top / 448

    return _or_torch("quantize_fp8", strict, ours, theirs)


@_operation("(Tensor x, *, bool strict=False) -> (Tensor, Tensor)")
def quantize_fp8_blocks(x, *, strict=False):
    """(x (M, K) in e4m3, scales (K / 128, M)): the largest of every 128 elements of a row becomes 448. What matmul_fp8_blocks takes for a."""
    arrays = arrays_of(x)
    if x.ndim != 2:
        raise TilewrightError(1, f"quantize_fp8_blocks: x (M, K) is expected, not {tuple(x.shape)}")
    m, k = x.shape

    def ours():
        _of(x, arrays, "bf16")
        if k % _BLOCK or not m * k:
            raise Unfit(f"K is a multiple of {_BLOCK}")
        out, scale = arrays.empty((m, k // _BLOCK, _BLOCK), "e4m3", x), arrays.empty((k // _BLOCK, m), "f32", x)
        _dispatch.run("quantize_fp8_blocks", arrays, (arrays.contiguous(x).reshape(m, k // _BLOCK, _BLOCK),), (out, scale))
        return out.reshape(m, k), scale

    def theirs():
        torch = _torch()
        padded = torch.nn.functional.pad(x.float(), (0, -k % _BLOCK)).reshape(m, -1, _BLOCK)
        top = padded.abs().amax(-1)
        out = (padded * (448.0 / top.clamp(min=1e-12))[..., None]).clamp(-448, 448).reshape(m, -1)[:, :k]
        return out.to(torch.float8_e4m3fn), (top / 448).t().contiguous()

    return _or_torch("quantize_fp8_blocks", strict, ours, theirs)
