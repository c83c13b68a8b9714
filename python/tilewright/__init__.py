"""Tilewright from Python: kernels of the tile language, called with tensors.

    import tilewright
    gemm = tilewright.load("kernels/gemm_sm90.py").gemm
    gemm(a, b, c)                                  # torch tensors, on torch's current stream

    @tilewright.kernel(target="sm_80", computes=...)   # or in your own file: its text is compiled, the function never runs
    def add(A: tilewright.Tensor(f32, N), ...): ...

Pure Python over libtilewright.so (ctypes); needs Python 3.9 and nothing else. Tensors that are not torch's are taken through
DLPack. What the compiler or the launcher has to say is raised as TilewrightError.
"""
from . import _imports as _imports
from ._language import DTYPES, OTHERS, Tensor, inline, kernel, parameters, program, signature, sizes, table
from ._library import TilewrightError, library_path, version
from ._module import Kernel, Module, UnprovedKernelWarning, load, loads

globals().update(DTYPES)
globals().update(OTHERS)


def optimize(module, example_inputs, strict=False, tf32="conv", dynamic_shapes=None):
    """A PyTorch module on generated kernels (tilewright.compiled)."""
    from .compiled import optimize as of_module
    return of_module(module, example_inputs, strict, tf32, dynamic_shapes)


def register_backend():
    """After this, torch.compile(model, backend="tilewright") works."""
    from .compiled import register
    register()


__all__ = ["Kernel", "Module", "Tensor", "TilewrightError", "UnprovedKernelWarning", "inline", "kernel", "library_path", "load", "loads", "optimize", "parameters", "program", "register_backend",
           "signature", "sizes", "table", "version", *DTYPES]
