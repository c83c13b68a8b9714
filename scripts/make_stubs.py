#!/usr/bin/env python3
"""make_stubs.py [--check]: python/tilewright/__init__.pyi from the table of the language's names (python/tilewright/_names.py)."""
import importlib.util
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(ROOT, "python", "tilewright", "__init__.pyi")
DTYPES = ("f64", "f32", "tf32", "bf16", "f16", "e4m3", "e5m2", "i64", "i32", "u32", "i16", "i8", "u8")
HEAD = '''# Made by scripts/make_stubs.py; do not edit.
from typing import Any, Callable, overload
from . import ops as ops

class TilewrightError(RuntimeError):
    """What the library reported. `code` is one of the TW_ERROR_* numbers of runtime/capi.h."""
    code: int

class UnprovedKernelWarning(UserWarning):
    """A kernel is launched that no check has proved."""

class CheckResult:
    """What a check said. True where everything is proved."""
    verdict: str
    text: str
    json: dict[str, Any]
    def __bool__(self) -> bool: ...

class Kernel:
    """All variants of one name. Call it with the parameters in order (tensors and scalars) or by name."""
    name: str
    variants: list[dict[str, Any]]
    @property
    def computes(self) -> str: ...
    @property
    def verdict(self) -> str | None:
        """What the last check of this kernel with these constants said, or None when there was none."""
    def check(self, *, search: float | None = ..., audit: float | None = ..., timeout: float = ...) -> CheckResult:
        """Proves the kernel for all sizes, or gives a counterexample."""
    def choose(self, *given: Any, **named: Any) -> dict[str, Any]:
        """What a launch with these arguments would take; nothing runs."""
    def source(self, variant: int = ...) -> str:
        """The CUDA C++ of a variant."""
    def __call__(self, *given: Any, stream: Any = ..., **named: Any) -> None: ...

class Module:
    """The kernels of one file, as attributes."""
    file: str
    kernels: dict[str, Kernel]
    constants: dict[str, Any]
    def check(self, *, search: float | None = ..., audit: float | None = ..., timeout: float = ...) -> CheckResult: ...
    def __getattr__(self, name: str) -> Kernel: ...

class Tensor:
    """A parameter in global memory: dtype and dimensions; options are promises on strides and contents."""
    def __init__(self, dtype: Any, *dims: Any, **options: Any) -> None: ...

def loads(source: str, name: str = ..., **constants: Any) -> Module:
    """Kernels from text."""
def version() -> str: ...
def library_path() -> str: ...
def load(path: Any, *given: Any, **constants: Any) -> Any:
    """A kernel file as a Module, or one of the package's by its name: load("attention_sm90.py", D=256). In a kernel: reads a tile from memory."""
class Signature:
    """What the kernels of one name take and compute."""
    name: str

def signature(*, name: str = ..., computes: str = ..., **options: Any) -> Callable[[Callable[..., Any]], Signature]:
    """The parameters and `computes` that kernels share."""
@overload
def kernel(function: Callable[..., Any]) -> Kernel:
    """A function of the language, as a kernel that can be called with tensors."""
@overload
def kernel(signature: "Signature", *, target: str = ..., name: str = ..., threads: Any = ..., **options: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """A variant of the kernel that a signature declares: parameters without annotations are the signature's."""
@overload
def kernel(*, target: str = ..., name: str = ..., computes: str = ..., threads: Any = ..., **options: Any) -> Callable[[Callable[..., Any]], Kernel]: ...
@overload
def program(function: Callable[..., Any]) -> Kernel:
    """Several launches as one call, with buffers between them."""
@overload
def program(signature: "Signature", *, name: str = ..., computes: str = ...) -> Callable[[Callable[..., Any]], Kernel]:
    """A program with the parameters of a signature."""
@overload
def program(*, name: str = ..., computes: str = ...) -> Callable[[Callable[..., Any]], Kernel]: ...
def inline(function: Callable[..., Any]) -> Any:
    """A function of the language that is written out where it is called."""
'''


def stubs():
    spec = importlib.util.spec_from_file_location("names", os.path.join(ROOT, "python", "tilewright", "_names.py"))
    names = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(names)
    text = HEAD
    for name, (parameters, result, about) in names.NAMES.items():
        if "**" not in parameters:  # approx=, unroll=, layout=: docs/language.md says what each takes
            parameters += (", " if parameters else "") + "**options: Any"
        text += f'def {name}({parameters}) -> {result}:\n    """{about}"""\n'
    return text + "".join(f"{d}: Any\n" for d in DTYPES)


def main():
    text = stubs()
    if "--check" in sys.argv:
        with open(OUT, encoding="utf-8") as f:
            sys.exit(0 if f.read() == text else "python/tilewright/__init__.pyi is stale: run scripts/make_stubs.py")
    with open(OUT, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
