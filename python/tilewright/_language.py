"""The names that a kernel file uses at module level, in annotations and in decorators.

A kernel file is never executed to be compiled: its text is. These stand-ins exist so that a file with kernels can also be imported by Python, for its other
functions and for `@tilewright.kernel(...)` on a function beside them. Const parameters that annotations and decorators name are declared for Python with
T, BN = tw.parameters("T BN").
"""
from ._module import deferred
from ._names import NAMES


class Symbol:
    """A size, a type or a constant: has a name; arithmetic on it is accepted and means nothing here."""

    def __init__(self, name):
        self.name = name

    def _absorb(self, *_, **__):
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __pow__ = __neg__ = _absorb
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __getitem__ = __call__ = _absorb

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __repr__(self):
        return self.name


DTYPES = {n: Symbol(n) for n in ("f64", "f32", "tf32", "bf16", "f16", "e4m3", "e5m2", "i64", "i32", "u32", "i16", "i8", "u8")}


def sizes(names):
    made = [Symbol(n) for n in names.replace(",", " ").split()]
    return made[0] if len(made) == 1 else tuple(made)


parameters = sizes


class Tensor:
    def __init__(self, dtype, *dims, **options):
        self.dtype, self.dims, self.options = dtype, dims, options


class table(dict):
    """Constants by key. A const parameter is no key for Python, and what it would find is a Symbol."""

    def __missing__(self, key):
        return Symbol("entry")


def inline(function):
    return function


class Signature:
    """What the kernels of one name take and compute."""

    def __init__(self, function, name):
        self.name = name
        self.__doc__ = function.__doc__


def signature(function=None, **options):
    """As in the language: the parameters and `computes` that kernels share, @tw.kernel(that_signature, ...)."""
    if function is not None:
        return Signature(function, function.__name__)
    return lambda f: Signature(f, options.get("name", f.__name__))


def kernel(function=None, **options):
    """As in the language; the result is callable with tensors. The function's file is read, the function never runs."""
    if isinstance(function, Signature):
        return lambda f: deferred(f, options.get("name", function.name))
    if function is not None:
        return deferred(function, function.__name__)
    return lambda f: deferred(f, options.get("name", f.__name__))


def program(function=None, **options):
    return kernel(function, **options)


def _stand_in(name, about):
    def function(*_, **__):
        return Symbol(name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = about
    return function


# Everything else of the language: known to Python by name, so that files import and editors complete.
OTHERS = {name: _stand_in(name, about) for name, (_, _, about) in NAMES.items() if name not in ("sizes", "parameters", "table")}
