"""The registry of tilewright.ops: one function an operation, the same under torch.ops.tilewright."""
import functools
import math
import numbers
import operator
import re

from . import _dispatch, _tables
from ._arrays import arrays_of
from ._dispatch import Unfit
from ._library import TilewrightError

_found_torch = None
_is_traced = bool  # torch's question whether torch.compile reads this, where there is torch
OPERATIONS = {}  # name: (function, schema)


def _operation(schema, again=True):
    """Registers a function as an operation. Its schema is torch.library's; the last argument of the function is always `strict`. `again`: calls of one signature
    are launched again without Python; not where a number of it is another one in each call."""

    def register(function):
        name = function.__name__.rstrip("_")
        parameters = _parameters(schema)
        OPERATIONS[name] = (function, schema)

        table = launch = None  # what was recorded, from the first call on

        def slow(given, named):
            nonlocal table, launch
            _look_at_types(name, parameters, given, named)
            torch = _torch()
            if torch is None or _tables.is_recording():
                return function(*given, **named)
            if torch.compiler.is_compiling():  # an export that runs Python
                return getattr(torch.ops.tilewright, name)(*given, **named)
            if _requires_dispatch(torch, given, named):
                return getattr(torch.ops.tilewright, name)(*given, **named)
            if not again:
                return function(*given, **named)
            if table is None:
                table = _tables.table(False)
                launch = _tables.runner(table)
            return _tables.record(table, name, function, given, named, torch)

        @functools.wraps(function)
        def call(*given, **named):
            if _is_traced():
                return getattr(_found_torch.ops.tilewright, name)(*given, **named)
            if launch is not None:
                done = launch(given, named)
                if done is not NotImplemented:
                    return done
            return slow(given, named)

        call.__name__ = call.__qualname__ = name
        return call

    return register


def _requires_dispatch(torch, given, named):
    """A gradient is wanted, or a tensor is of a type of its own: torch decides what is called."""
    grad = torch.is_grad_enabled()
    return any(isinstance(v, torch.Tensor) and ((grad and v.requires_grad) or type(v) not in (torch.Tensor, torch.nn.Parameter)) for v in (*given, *named.values()))


def _parameters(schema):
    """[(name, type, may it be None?)] of a schema, in its order."""
    found = re.findall(r"(Tensor|str|int|float|bool)(?:\([a-z]!\))?(\?)? (\w+)", schema.split("->")[0])
    return [(name, kind, bool(optional)) for kind, optional, name in found]


def _fits_type(value, kind):
    if kind == "Tensor":
        try:
            arrays_of(value)
        except TypeError:
            return False
        return True
    if kind == "int":
        try:
            operator.index(value)
        except TypeError:
            return False
        return True
    return isinstance(value, {"str": str, "float": numbers.Real, "bool": (bool, numbers.Integral)}[kind])


def _look_at_types(name, parameters, given, named):
    """What is no tensor, number or text where one is expected is an error that says so; what is missing is Python's own."""
    words = {"Tensor": "a torch tensor or a numpy array", "str": "a string", "int": "a whole number", "float": "a number", "bool": "True or False"}
    for i, (parameter, kind, optional) in enumerate(parameters):
        value = given[i] if i < len(given) else named.get(parameter, _look_at_types)
        if value is _look_at_types or (value is None and optional) or _fits_type(value, kind):
            continue
        raise TilewrightError(1, f"{name}: {parameter} is {words[kind]}; {type(value).__name__} was given")


def _broadcasts(name, what, value, shape):
    """What does not broadcast to the shape of the result is an error, as it is for torch."""
    if len(value.shape) > len(shape) or any(a not in (1, b) for a, b in zip(reversed(value.shape), reversed(shape))):
        raise TilewrightError(1, f"{name}: {what} {tuple(value.shape)} does not fit the result {tuple(shape)}")


def _count_of(name, what, value, most):
    """One number for each row or column, or one for all."""
    if arrays_of(value).size(value) not in (1, most):
        raise TilewrightError(1, f"{name}: {what} has {arrays_of(value).size(value)} elements; one, or {most} are expected")


def _torch():
    return _found_torch


def _take_torch(torch):
    global _found_torch, _is_traced
    _found_torch, _is_traced = torch, torch.compiler.is_dynamo_compiling


def _or_torch(name, strict, ours, theirs):
    """`ours`, or what torch makes of it where no kernel fits."""
    try:
        return ours()
    except Unfit as reason:
        if strict or _torch() is None:
            raise TilewrightError(1, f"tilewright.ops.{name}: no kernel takes these arguments: {reason}") from None
        _dispatch.left_to_torch(name, str(reason))
        return theirs()


def _axis(dim, rank, name):
    dim = operator.index(dim)
    if not -rank <= dim < rank:
        raise TilewrightError(1, f"{name}: there is no dimension {dim} in a tensor of {rank}")
    return dim % rank


def _rows(x, arrays):
    if not x.ndim:
        raise Unfit("rows are taken, this is a single number")
    return arrays.contiguous(x.reshape(-1, x.shape[-1]) if x.shape[-1] else x.reshape(math.prod(x.shape[:-1]), 0))


def _taken(x, arrays):
    dtype = arrays.dtype(x)
    if dtype not in ("bf16", "f32"):
        raise Unfit(f"bf16 or f32 is taken, this is {dtype}")
    return dtype


def _vector(given, value, x, dtype, arrays):
    if given is None:
        return arrays.full((x.shape[-1],), value, dtype, x)
    if arrays.dtype(given) != dtype:
        raise Unfit(f"weight and bias have the type of x, {dtype}, not {arrays.dtype(given)}")
    return arrays.contiguous(given)
