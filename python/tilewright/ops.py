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
from ._dispatch import FallbackWarning, fallbacks
from ._elements import bias_gelu, gelu, relu, sigmoid, silu, swiglu
from ._experts import gathered_gemm, gathered_swiglu, grouped_gemm
from ._matrices import linear, matmul, matmul_gated
from ._operations import OPERATIONS, _take_torch
from ._rows import argmax, argmin, cross_entropy, cumprod, cumsum, layernorm, logsumexp, mean, rmsnorm, rmsnorm_residual, rope, softmax, transpose
from ._rows import max_ as max
from ._rows import min_ as min
from ._rows import sum_ as sum

__all__ = ["FallbackWarning", "argmax", "argmin", "attention", "attention_with_lse", "bias_gelu", "cross_entropy", "cumprod", "cumsum", "fallbacks", "gathered_gemm", "gathered_swiglu", "gelu",
           "grouped_gemm", "layernorm", "linear", "logsumexp", "matmul", "matmul_gated", "max", "mean", "min", "relu", "rmsnorm", "rmsnorm_residual", "rope", "sigmoid",
           "silu", "softmax", "sum", "swiglu", "transpose"]

if importlib.util.find_spec("torch") is not None:
    from . import _torch_ops

    _take_torch(_torch_ops.torch)
    _torch_ops.register(OPERATIONS)
