"""The names that a kernel file uses at module level and in annotations.

A kernel file is never executed to be compiled: its text is. These stand-ins exist so that a file with kernels can also be
imported by Python, for its other functions and for `@tilewright.kernel(...)` on a function beside them. An annotation that names a
const parameter of the same function needs `from __future__ import annotations` then.
"""
from ._module import deferred


class Symbol:
    """A size or a type: has a name, and arithmetic on it is accepted and means nothing here."""

    def __init__(self, name):
        self.name = name

    def _absorb(self, *_):
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = _absorb

    def __repr__(self):
        return self.name


DTYPES = {n: Symbol(n) for n in ("f64", "f32", "tf32", "bf16", "f16", "e4m3", "e5m2", "i64", "i32", "u32", "i16", "i8", "u8")}


def sizes(names):
    made = [Symbol(n) for n in names.replace(",", " ").split()]
    return made[0] if len(made) == 1 else tuple(made)


class Tensor:
    def __init__(self, dtype, *dims, **options):
        self.dtype, self.dims, self.options = dtype, dims, options


def scalar(dtype, positive=False):
    return Symbol(f"scalar({dtype})")


def const(*choices):
    return Symbol(f"const{choices}")


def inline(function):
    return function


def kernel(function=None, **options):
    """As in the language; the result is callable with tensors. The function's file is read, the function never runs."""
    if function is not None:
        return deferred(function, function.__name__)
    return lambda f: deferred(f, options.get("name", f.__name__))


def program(function=None, **options):
    return kernel(function, **options)
