"""Attention."""
import math

from . import _dispatch
from ._arrays import arrays_of
from ._dispatch import Unfit
from ._library import TilewrightError
from ._operations import OPERATIONS, _operation, _or_torch, _torch


@_operation("(Tensor q, Tensor k, Tensor v, *, bool causal=False, float? scale=None, bool strict=False) -> (Tensor, Tensor)")
def attention_with_lse(q, k, v, *, causal=False, scale=None, strict=False):
    """(output, logsumexp of the scores) of softmax(scale * q @ k.T) @ v. q is (B, H, S, D), k and v (B, H / G, T, D); causal: query i sees keys 0 to i."""
    arrays = arrays_of(q)
    if q.ndim != 4 or k.ndim != 4 or tuple(k.shape) != tuple(v.shape) or q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3] or k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise TilewrightError(1, f"attention: q (B, H, S, D) and k, v (B, H / G, T, D) are expected, not {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}")
    batch, heads, queries, width = q.shape
    group = heads // k.shape[1]
    factor = 1.0 / math.sqrt(width) if scale is None else float(scale)

    def ours():
        dtype = arrays.dtype(q)
        if dtype not in ("bf16", "f16") or arrays.dtype(k) != dtype or arrays.dtype(v) != dtype:
            raise Unfit(f"bf16 or f16 is taken, these are {dtype}, {arrays.dtype(k)} and {arrays.dtype(v)}")
        if width not in (64, 128, 256):
            raise Unfit(f"heads of 64, 128 or 256 elements are taken, not {width}")
        if group not in (1, 2, 4, 8):
            raise Unfit(f"1, 2, 4 or 8 heads share keys and values, not {group}")
        if k.shape[2] == 0 or not factor > 0:
            raise Unfit("there must be a key, and a scale above zero")
        out = arrays.empty((batch, heads, queries, width), dtype, q)
        lse = arrays.empty((batch, heads, queries), "f32", q)
        if arrays.size(out):
            _dispatch.run("attention_causal" if causal else "attention", arrays, tuple(arrays.contiguous(t) for t in (q, k, v)), (out, lse), (factor * math.log2(math.e),),
                          {"D": width, "DT": dtype, "G": group})
        return out, lse

    def theirs():
        torch = _torch()
        kk, vv = (t.repeat_interleave(group, 1) if group > 1 else t for t in (k, v))
        scores = torch.matmul(q.float(), kk.float().transpose(-1, -2)) * factor
        if causal:
            seen = torch.arange(k.shape[2], device=q.device)[None, :] <= torch.arange(queries, device=q.device)[:, None]
            scores = scores.masked_fill(~seen, float("-inf"))
        return torch.matmul(scores.softmax(-1), vv.float()).to(q.dtype), torch.logsumexp(scores, -1)

    return _or_torch("attention", strict, ours, theirs)


@_operation("(Tensor q, Tensor k, Tensor v, *, bool causal=False, float? scale=None, bool strict=False) -> Tensor")
def attention(q, k, v, *, causal=False, scale=None, strict=False):
    """softmax(scale * q @ k.T) @ v. q is (B, H, S, D), k and v (B, H / G, T, D): G heads share keys and values. causal: query i sees keys 0 to i.
    scale is 1 / sqrt(D) where none is given; attention_with_lse gives the logsumexp too."""
    inner = OPERATIONS["attention_with_lse"][0]
    torch = _torch()
    if torch is None or strict:
        return inner(q, k, v, causal=causal, scale=scale, strict=True)[0]
    try:
        return inner(q, k, v, causal=causal, scale=scale, strict=True)[0]
    except TilewrightError as reason:
        if "no kernel takes these arguments" not in str(reason):
            raise
        _dispatch.left_to_torch("attention", str(reason).split("these arguments: ", 1)[1])
        if causal and q.shape[2] != k.shape[2]:  # torch's own mask is the same only for a square
            return inner(q, k, v, causal=causal, scale=scale)[0]
        # torch's own kernels want whole vectors: with other strides or offsets they fault or err.
        q, k, v = (t if t.is_contiguous() and t.storage_offset() % 8 == 0 else t.clone(memory_format=torch.contiguous_format) for t in (q, k, v))
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=q.shape[1] != k.shape[1])
