"""Attention with a window, a cap, falling scores or packed documents, and attention of one token to a cache."""
import math

from . import _dispatch
from ._arrays import arrays_of
from ._dispatch import Unfit
from ._experts import _tiles
from ._library import TilewrightError
from ._operations import _operation, _or_torch, _torch

_LOG2E = math.log2(math.e)
_WINDOWS = (128, 512, 1024, 2048, 4096)


def _heads(name, q, k, v):
    if q.ndim != 4 or k.ndim != 4 or tuple(k.shape) != tuple(v.shape) or q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3] or k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise TilewrightError(1, f"{name}: q (B, H, S, D) and k, v (B, H / G, T, D) are expected, not {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}")
    return q.shape[1] // k.shape[1]


def _fits(arrays, group, factor, *tensors):
    for t in tensors:
        if arrays.dtype(t) != "bf16":
            raise Unfit(f"bf16 is taken, this is {arrays.dtype(t)}")
    if tensors[0].shape[-1] not in (64, 128):
        raise Unfit(f"heads of 64 or 128 elements are taken, not {tensors[0].shape[-1]}")
    if group not in (1, 2, 4, 8):
        raise Unfit(f"1, 2, 4 or 8 heads share keys and values, not {group}")
    if not factor > 0 or not all(arrays.size(t) for t in tensors):
        raise Unfit("there must be a query and a key, and a scale above zero")


def _reference(q, k, v, group, factor, seen, change):
    """What torch makes of it: scores in f32, `change` applied, keys that are not `seen` left out."""
    torch = _torch()
    kk, vv = (t.repeat_interleave(group, -3) if group > 1 else t for t in (k, v))
    scores = change(torch.matmul(q.float(), kk.float().transpose(-1, -2)) * factor).masked_fill(~seen, float("-inf"))
    return torch.matmul(scores.softmax(-1), vv.float()).to(q.dtype)


@_operation("(Tensor q, Tensor k, Tensor v, Tensor? slopes=None, *, int? window=None, float? softcap=None, float? scale=None, bool strict=False) -> Tensor")
def attention_variant(q, k, v, slopes=None, *, window=None, softcap=None, scale=None, strict=False):
    """Causal attention (query i sees keys up to i) with one of: window (only the last `window` keys), softcap (scores cap * tanh(s / cap)), slopes (ALiBi: a slope of each head times the distance is taken away)."""
    arrays = arrays_of(q)
    group = _heads("attention_variant", q, k, v)
    if sum(x is not None for x in (window, softcap, slopes)) != 1:
        raise TilewrightError(1, "attention_variant: one of window, softcap and slopes is given")
    factor = 1.0 / math.sqrt(q.shape[3]) if scale is None else float(scale)

    def ours():
        _fits(arrays, group, factor, q, k, v)
        constants, inputs = {"D": q.shape[3], "G": group}, [arrays.contiguous(t) for t in (q, k, v)]
        out, lse = arrays.empty(tuple(q.shape), "bf16", q), arrays.empty(tuple(q.shape[:-1]), "f32", q)
        if window is not None:
            if window not in _WINDOWS:
                raise Unfit(f"windows of {', '.join(map(str, _WINDOWS))} keys are taken, not {window}")
            _dispatch.run("attention_window", arrays, inputs, (out, lse), (factor * _LOG2E,), {**constants, "W": window})
        elif softcap is not None:
            if not softcap > 0:
                raise Unfit("the cap is above zero")
            _dispatch.run("attention_softcap", arrays, inputs, (out, lse), (factor, float(softcap)), constants)
        else:
            _dispatch.run("attention_alibi", arrays, (*inputs, arrays.contiguous(arrays.cast(slopes, "f32"))), (out, lse), (factor * _LOG2E,), constants)
        return out

    def theirs():
        torch = _torch()
        distance = torch.arange(q.shape[2], device=q.device)[:, None] - torch.arange(k.shape[2], device=q.device)[None, :]
        seen = (distance >= 0) & (distance < window) if window is not None else distance >= 0
        change = (lambda s: softcap * torch.tanh(s / softcap)) if softcap is not None else (lambda s: s - slopes.float()[:, None, None] * distance) if slopes is not None else (lambda s: s)
        return _reference(q, k, v, group, factor, seen, change)

    return _or_torch("attention_variant", strict, ours, theirs)


@_operation("(Tensor q, Tensor k, Tensor v, Tensor ends, *, float? scale=None, bool strict=False) -> Tensor")
def attention_packed(q, k, v, ends, *, scale=None, strict=False):
    """Causal attention inside packed documents: q (H, P, D), k and v (H / G, P, D); ends[e] is where document e ends, ends[-1] = P."""
    arrays = arrays_of(q)
    if q.ndim != 3 or k.ndim != 3 or tuple(k.shape) != tuple(v.shape) or q.shape[1:] != k.shape[1:] or k.shape[0] == 0 or q.shape[0] % k.shape[0]:
        raise TilewrightError(1, f"attention_packed: q (H, P, D) and k, v (H / G, P, D) are expected, not {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}")
    group, rows = q.shape[0] // k.shape[0], q.shape[1]
    factor = 1.0 / math.sqrt(q.shape[2]) if scale is None else float(scale)

    def ours():
        if _torch() is None:
            raise Unfit("torch tensors are taken")
        _fits(arrays, group, factor, q, k, v)
        document, first, end = _tiles(ends, rows, 128, 128, 1)
        torch = _torch()
        tiles = -(-(rows + ends.numel() * 128) // 128)  # as many as the kernel's assumption asks for
        first, end = (torch.nn.functional.pad(t[:tiles], (0, max(0, tiles - t.numel()))) for t in (first, end))
        starts = torch.cat((ends.new_zeros(1), ends)).to(torch.int32)
        out, lse = arrays.empty(tuple(q.shape), "bf16", q), arrays.empty(tuple(q.shape[:-1]), "f32", q)
        inputs = (*(arrays.contiguous(t) for t in (q, k, v)), *(arrays.contiguous(t) for t in (document, starts, first, end)))
        _dispatch.run("attention_packed", arrays, inputs, (out, lse), (factor * _LOG2E,), {"D": q.shape[2], "G": group})
        return out

    def theirs():
        torch = _torch()
        place = torch.arange(rows, device=q.device)
        document = torch.searchsorted(ends.to(torch.int64), place, right=True)
        seen = (document[:, None] == document[None, :]) & (place[None, :] <= place[:, None])
        return _reference(q, k, v, group, factor, seen, lambda s: s)

    return _or_torch("attention_packed", strict, ours, theirs)


def _cached(arrays, q, tensors, lengths, group, factor):
    for t in (q, *tensors):
        if arrays.dtype(t) != "bf16":
            raise Unfit(f"bf16 is taken, this is {arrays.dtype(t)}")
    if group > 64 or q.shape[-1] > 128 or q.shape[-1] % 8:
        raise Unfit("up to 64 queries share a head of the cache, of up to 128 elements, a multiple of 8")
    if not factor > 0 or not arrays.size(q) or not all(arrays.size(t) for t in tensors):
        raise Unfit("there must be a query and a key, and a scale above zero")
    return arrays.contiguous(arrays.indices(lengths))


@_operation("(Tensor q, Tensor k, Tensor v, Tensor lengths, *, float? scale=None, bool strict=False) -> Tensor")
def decode(q, k, v, lengths, *, scale=None, strict=False):
    """Attention of one token a sequence to its cache: q (B, H, D), k and v (B, H / G, T, D); sequence b has lengths[b] keys, 1 to T."""
    arrays = arrays_of(q)
    if q.ndim != 3 or k.ndim != 4 or tuple(k.shape) != tuple(v.shape) or q.shape[0] != k.shape[0] or q.shape[2] != k.shape[3] or k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise TilewrightError(1, f"decode: q (B, H, D) and k, v (B, H / G, T, D) are expected, not {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}")
    batch, heads, keys, width = k.shape
    group = q.shape[1] // heads
    factor = 1.0 / math.sqrt(width) if scale is None else float(scale)

    def ours():
        counts = _cached(arrays, q, (k, v), lengths, group, factor)
        out = arrays.empty((batch, heads, group, width), "bf16", q)
        whole = batch * heads >= 240 or keys <= 1024  # a block for each sequence and head fills the GPU, or there is nothing to share out
        _dispatch.run("decode_whole" if whole else "decode", arrays, (arrays.contiguous(q).reshape(batch, heads, group, width), arrays.contiguous(k), arrays.contiguous(v), counts), (out,), (factor * _LOG2E,))
        return out.reshape(q.shape)

    def theirs():
        torch = _torch()
        seen = torch.arange(keys, device=q.device)[None, None, None, :] < lengths.to(q.device)[:, None, None, None]
        return _reference(q[:, :, None], k, v, group, factor, seen, lambda s: s)[:, :, 0]

    return _or_torch("decode", strict, ours, theirs)


@_operation("(Tensor q, Tensor k, Tensor v, Tensor table, Tensor lengths, *, float? scale=None, bool strict=False) -> Tensor")
def decode_paged(q, k, v, table, lengths, *, scale=None, strict=False):
    """The same with a cache of pages: k and v (PAGES, H / G, 128, D); table[b] names the pages of sequence b in order, places that it does not need too (any page)."""
    arrays = arrays_of(q)
    if q.ndim != 3 or k.ndim != 4 or tuple(k.shape) != tuple(v.shape) or table.ndim != 2 or q.shape[0] != table.shape[0] or q.shape[2] != k.shape[3] or k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise TilewrightError(1, f"decode_paged: q (B, H, D), k, v (PAGES, H / G, 128, D) and table (B, PAGES OF A SEQUENCE) are expected, not {tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)} and {tuple(table.shape)}")
    heads, page, width = k.shape[1:]
    batch, group = q.shape[0], q.shape[1] // heads
    factor = 1.0 / math.sqrt(width) if scale is None else float(scale)

    def ours():
        counts = _cached(arrays, q, (k, v), lengths, group, factor)
        if page != 128 or not table.shape[1]:
            raise Unfit(f"pages of 128 keys are taken, not {page}")
        out = arrays.empty((batch, heads, group, width), "bf16", q)
        inputs = (arrays.contiguous(q).reshape(batch, heads, group, width), arrays.contiguous(k), arrays.contiguous(v), arrays.contiguous(arrays.indices(table)), counts)
        whole = batch * heads >= 240 or table.shape[1] <= 8  # as in decode
        _dispatch.run("decode_paged_whole" if whole else "decode_paged", arrays, inputs, (out,), (factor * _LOG2E,))
        return out.reshape(q.shape)

    def theirs():
        torch = _torch()
        kk, vv = (t[table.long()].permute(0, 2, 1, 3, 4).reshape(batch, heads, -1, width) for t in (k, v))
        seen = torch.arange(kk.shape[2], device=q.device)[None, None, None, :] < lengths.to(q.device)[:, None, None, None]
        return _reference(q[:, :, None], kk, vv, group, factor, seen, lambda s: s)[:, :, 0]

    return _or_torch("decode_paged", strict, ours, theirs)


@_operation("(Tensor key, Tensor value, Tensor(a!) key_cache, Tensor(b!) value_cache, Tensor slots, *, bool strict=False) -> ()")
def cache_update_(key, value, key_cache, value_cache, slots, *, strict=False):
    """Rows of key and value (T, ...) into the caches (slots, ...) or (pages, rows of a page, ...), in place: row t goes to slot slots[t] (page * rows + row), nowhere where that is negative. No two of the slots are the same: that is the caller's promise."""
    arrays = arrays_of(key)
    tokens, row = key.shape[0], tuple(key.shape[1:])
    if key.ndim < 2 or value.shape != key.shape or key_cache.shape != value_cache.shape or tuple(slots.shape) != (tokens,) or tuple(key_cache.shape[-len(row):]) != row or key_cache.ndim - key.ndim not in (0, 1):
        raise TilewrightError(1, f"cache_update: key and value (T, ...), caches (S, ...) or (pages, rows, ...) and slots (T) are expected, not {tuple(key.shape)}, {tuple(value.shape)}, {tuple(key_cache.shape)}, {tuple(value_cache.shape)} and {tuple(slots.shape)}")
    width = math.prod(row)

    def ours():
        dtype = arrays.dtype(key)
        if dtype not in ("bf16", "f16", "f32") or any(arrays.dtype(t) != dtype for t in (value, key_cache, value_cache)):
            raise Unfit("keys, values and caches of one type are taken: bf16, f16 or f32")
        if any(not arrays.is_contiguous(t) or not arrays.begins_at_a_vector(t) for t in (key_cache, value_cache)):
            raise Unfit("what is updated in place is contiguous, and begins at a multiple of 16 bytes")
        if not arrays.size(key) or not arrays.size(key_cache):
            return
        rows = [arrays.contiguous(t.reshape(tokens, width)) for t in (key, value)]
        _dispatch.run("cache_update", arrays, (*rows, arrays.contiguous(arrays.indices(slots))), [t.reshape(-1, width) for t in (key_cache, value_cache)])

    def theirs():
        kept = slots >= 0
        for new, cache in ((key, key_cache), (value, value_cache)):
            cache.view(-1, *row)[slots[kept].long()] = new[kept]

    _or_torch("cache_update", strict, ours, theirs)
