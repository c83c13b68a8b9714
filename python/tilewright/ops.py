"""Operations on tensors of any shape: one call each, outputs allocated, the kernel chosen for the shape.

    import torch, tilewright.ops as ops
    y = ops.linear(x, weight, bias, activation="gelu_tanh")
    o = ops.attention(q, k, v, causal=True)

torch tensors on a GPU launch proved kernels on the current stream; torch tensors on the CPU and numpy arrays run the same kernels on the emulator, which is
for small shapes. What no kernel takes is left to torch, with the reason, once (FallbackWarning); `strict=True` raises it instead. With torch each is also
torch.ops.tilewright.NAME: torch.compile has no graph break at it, gradients go through where docs/python.md says so.
"""
import importlib.util

from ._attention import attention, attention_with_lse
from ._caches import attention_packed, attention_variant
from ._caches import cache_update_ as cache_update
from ._caches import decode, decode_paged
from ._dispatch import FallbackWarning, fallbacks
from ._elements import bias_gelu, gelu, relu, sigmoid, silu, swiglu
from ._experts import gathered_gemm, gathered_swiglu, grouped_gemm, moe
from ._matrices import linear, matmul, matmul_gated
from ._operations import OPERATIONS, _take_torch
from ._precision import linear_w4, matmul_f32, matmul_fp8, matmul_fp8_blocks, matmul_int8, quantize_fp8, quantize_fp8_blocks
from ._random import dropout
from ._rows import argmax, argmin, cross_entropy, cumprod, cumsum, layernorm, logsumexp, mean, rmsnorm, rmsnorm_residual, rope, softmax, transpose
from ._rows import max_ as max
from ._rows import min_ as min
from ._rows import sum_ as sum
from ._training import adam_ as adam
from ._training import attention_backward, bincount, cross_entropy_with_gradient
from ._training import index_add_ as index_add
from ._training import layernorm_backward, rmsnorm_backward

__all__ = ["FallbackWarning", "adam", "argmax", "argmin", "attention", "attention_backward", "attention_packed", "attention_variant", "attention_with_lse", "bias_gelu", "bincount",
           "cache_update", "cross_entropy", "cross_entropy_with_gradient", "cumprod", "cumsum", "decode", "decode_paged", "dropout", "fallbacks", "gathered_gemm", "gathered_swiglu", "gelu", "grouped_gemm", "index_add",
           "layernorm", "layernorm_backward", "linear", "linear_w4", "logsumexp", "matmul", "matmul_f32", "matmul_fp8", "matmul_fp8_blocks", "matmul_gated", "matmul_int8", "max", "mean", "min", "moe",
           "quantize_fp8", "quantize_fp8_blocks", "relu", "rmsnorm", "rmsnorm_backward", "rmsnorm_residual", "rope", "sigmoid", "silu", "softmax", "sum", "swiglu", "transpose"]

if importlib.util.find_spec("torch") is not None:
    from . import _torch_ops

    _take_torch(_torch_ops.torch)
    _torch_ops.register(OPERATIONS)
