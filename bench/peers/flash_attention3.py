"""FlashAttention-3 as a peer: the Python package `flash_attn_interface` where it is installed. It is not part of this project.

Suites take it as a torch peer: `"prelude": "from peers import flash_attention3 as fa3"`, `"torch": "fa3.attention(Q, K, V, False)"` (bench/suites/attention.json). Where the package is
missing, the suite leaves these peers out and says so. Tensors are [batch, heads, length, head dimension], as in the suites; the package's are [batch, length, heads, head dimension], which is
another view of the same memory.
"""


def _interface():
    try:
        import flash_attn_interface
    except ImportError as error:
        raise RuntimeError(f"FlashAttention-3 is not installed (its package flash_attn_interface): {error}") from error
    return flash_attn_interface


def attention(q, k, v, causal):
    """(O, LSE), with the usual scale."""
    out, lse = _interface().flash_attn_func(*(t.transpose(1, 2) for t in (q, k, v)), causal=causal, return_attn_probs=True)[:2]
    return out.transpose(1, 2), lse
