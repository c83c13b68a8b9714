"""Tilewright from Python: kernels of the tile language, called with tensors.

    import tilewright
    gemm = tilewright.load("kernels/gemm_sm90.py").gemm
    gemm(a, b, c)                                  # torch tensors, on torch's current stream

    @tilewright.kernel(target="sm_80", computes=...)   # or in your own file: its text is compiled, the function never runs
    def add(A: tilewright.Tensor(f32, N), ...): ...

Pure Python over libtilewright.so (ctypes); needs Python 3.9 and nothing else. Tensors that are not torch's are taken through
DLPack. What the compiler or the launcher has to say is raised as TilewrightError.
"""
from ._language import DTYPES, Tensor, const, inline, kernel, program, scalar, sizes
from ._library import TilewrightError, library_path, version
from ._module import Kernel, Module, load, loads

globals().update(DTYPES)


def optimize(module, example_inputs, strict=False, tf32="conv"):
    """A PyTorch module on generated kernels (tilewright.compiled)."""
    from .compiled import optimize as of_module
    return of_module(module, example_inputs, strict, tf32)


def register_backend():
    """After this, torch.compile(model, backend="tilewright") works."""
    from .compiled import register
    register()


__all__ = ["Kernel", "Module", "Tensor", "TilewrightError", "const", "inline", "kernel", "library_path", "load", "loads", "optimize", "program", "register_backend", "scalar",
           "sizes", "version", *DTYPES]
