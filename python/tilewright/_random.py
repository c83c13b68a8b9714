"""Random numbers that are functions of a counter: dropout, and what torch makes of the same numbers (Philox4x32-10; docs/language.md)."""
from . import _dispatch
from ._arrays import arrays_of
from ._dispatch import Unfit
from ._library import TilewrightError
from ._operations import _operation, _or_torch, _torch

_MASK = 0xFFFFFFFF


def words_of(number):
    """The two halves of a 64-bit number, the lower one first, as i32."""
    return [(half ^ 0x80000000) - 0x80000000 for half in (number & _MASK, number >> 32 & _MASK)]


def philox(torch, key, counter):
    """The four words of a counter. Words are tensors of i64, or numbers, from 0 to below 2^32."""
    def product(m, c):  # upper and lower half, in numbers below 2^49
        low = m * (c & 0xFFFF)
        high = m * (c >> 16) + (low >> 16)
        return high >> 16, (high & 0xFFFF) << 16 | low & 0xFFFF

    (k0, k1), (c0, c1, c2, c3) = key, counter
    for _ in range(10):
        (a, a_low), (b, b_low) = product(0xD2511F53, c0), product(0xCD9E8D57, c2)
        c0, c1, c2, c3 = b ^ c1 ^ k0, b_low, a ^ c3 ^ k1, a_low
        k0, k1 = k0 + 0x9E3779B9 & _MASK, k1 + 0xBB67AE85 & _MASK
    return c0, c1, c2, c3


def uniform(shape, words, stream=0, device="cpu"):
    """What kernels draw for a tensor of this shape: `words` are those of the key and of the counter's upper half."""
    torch = _torch()
    count = 1
    for n in shape:
        count *= n
    k0, k1, c2, c3 = (int(w) & _MASK for w in words)
    counter = torch.arange((count + 3) // 4, device=device)
    zero = torch.zeros_like(counter)
    drawn = torch.stack(philox(torch, (k0, k1), (counter & _MASK, zero + stream, zero + c2, zero + c3)), 1).reshape(-1)[:count]
    return (drawn >> 8).float().mul_(2.0 ** -24).reshape(shape)


@_operation("(Tensor x, float p=0.5, Tensor? residual=None, *, int seed, int offset=0, float? scale=None, bool strict=False) -> Tensor", again=False)
def dropout(x, p=0.5, residual=None, *, seed, offset=0, scale=None, strict=False):
    """x with each element 0 with probability p, the others times `scale` (1 / (1 - p)); `residual` is added. Which ones follows from seed and offset (64 bits each) and the
    element's place alone: the same two give the same mask, another offset an independent one."""
    arrays = arrays_of(x)
    if not 0 <= p <= 1:
        raise TilewrightError(1, f"dropout: p is a probability, not {p}")
    if residual is not None and (residual.shape != x.shape or residual.dtype != x.dtype):
        raise TilewrightError(1, f"dropout: a residual of shape {tuple(x.shape)} and the type of x is expected, not {tuple(residual.shape)} of {residual.dtype}")
    factor = float(scale) if scale is not None else 1.0 / (1.0 - p) if p < 1 else 1.0
    words = (*words_of(seed), *words_of(offset))

    def ours():
        dtype = arrays.dtype(x)
        if dtype not in ("bf16", "f16", "f32"):
            raise Unfit(f"bf16, f16 or f32 is taken, this is {dtype}")
        given = [arrays.contiguous(t).reshape(-1) for t in (x, residual) if t is not None]
        out = arrays.empty(tuple(given[0].shape), dtype, x)
        if arrays.size(out):
            _dispatch.run("dropout" if residual is None else "dropout_add", arrays, tuple(given), (out,), (float(p), factor, *words))
        return out.reshape(x.shape)

    def theirs():
        torch = _torch()
        wide = torch.promote_types(x.dtype, torch.float32)
        kept = torch.where(uniform(x.shape, words, device=x.device) < torch.tensor(p, dtype=torch.float32), 0.0, x.to(wide) * factor)
        return (kept if residual is None else residual.to(wide) + kept).to(x.dtype)

    return _or_torch("dropout", strict, ours, theirs)
