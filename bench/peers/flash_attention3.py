"""FlashAttention-3 as a peer, where it is installed: its own package `flash_attn_interface`, or xformers 0.0.34, whose wheel carries its operators. It is not part of this project.

Suites take it as a torch peer: `"prelude": "from peers import flash_attention3 as fa3"`, `"torch": "fa3.attention(Q, K, V, False)"` (bench/suites/attention.json). Where it is
missing, the suite leaves these peers out and says so. Tensors are [batch, heads, length, head dimension], as in the suites; its own are [batch, length, heads, head dimension], which is
another view of the same memory.
"""
import functools
import importlib.util
import os

import torch


@functools.lru_cache(maxsize=None)
def _operators():
    """torch.ops.flash_attn_3, with its library loaded."""
    if importlib.util.find_spec("flash_attn_interface"):
        import flash_attn_interface  # noqa: F401  (registers the operators)
        return torch.ops.flash_attn_3
    # The library alone: importing xformers would ask for the torch it was made for.
    found = importlib.util.find_spec("xformers")
    for folder in found.submodule_search_locations or () if found else ():
        library = os.path.join(folder, "flash_attn_3", "_C.so")
        if os.path.exists(library):
            torch.ops.load_library(library)
            return torch.ops.flash_attn_3
    raise RuntimeError("FlashAttention-3 is not installed: neither the package flash_attn_interface nor xformers with its operators (0.0.34)")


def _turned(*tensors):
    return tuple(t.transpose(1, 2) for t in tensors)


def attention(q, k, v, causal):
    """(O, LSE), with the usual scale."""
    out, lse, *_ = _operators().fwd(*_turned(q, k, v), is_causal=causal)
    return out.transpose(1, 2), lse


def gradients(dout, q, k, v, out, lse, causal):
    """(DQ, DK, DV) of `attention`."""
    dq, dk, dv, *_ = _operators().bwd(*_turned(dout, q, k, v, out), lse, is_causal=causal)
    return _turned(dq, dk, dv)


def _one_query(q, k, v, **words):
    """q: [batch, heads of the cache, queries of each, d]."""
    b, heads, group, d = q.shape
    out, *_ = _operators().fwd(q.reshape(b, 1, heads * group, d), *_turned(k, v), is_causal=False, **words)
    return out.reshape(b, heads, group, d)


def decode(q, k, v):
    """One query a head to a whole cache [batch, heads, length, d], with the usual scale."""
    return _one_query(q, k, v)


def paged_decode(q, k, v, table, lengths):
    """The same to caches [pages, heads, page, d]."""
    return _one_query(q, k, v, seqused_k=lengths, page_table=table)
