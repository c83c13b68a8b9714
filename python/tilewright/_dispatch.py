"""Which kernel serves a call: one table over all kernel files, and their tuned data.

kernels/dispatch.json names the candidates of every operation in order of preference; they take the same tensors in the same order. Each candidate is asked
whether it takes these tensors, and how long it would take by the times in its .tuned.json (for shapes that were not tuned, by the nearest ones:
src/runtime/tuned.h). The shortest time is taken; where no candidate has times, the first that fits.
"""
import json
import os
import warnings

from . import _paths, _tables
from ._arrays import Unfit
from ._library import TilewrightError
from ._module import load
from ._tensors import HOST, is_torch, torch_module

_MOST_PLANS = 8192
_CLEARLY_SHORTER = 0.99


class FallbackWarning(UserWarning):
    """An operation was left to torch."""


class Plan:
    """A kernel that was chosen for a signature, and its launch on a GPU."""

    __slots__ = ("kernel", "choice", "call")

    def __init__(self, kernel, choice):
        self.kernel, self.choice, self.call = kernel, choice, None

    def run(self, values, device):
        if device == HOST:
            self.kernel(*values)
            return
        if self.call is None:
            self.call = self.kernel.call_for(values)
        _tables.note_launch(self.call, values)
        self.kernel._launch(self.call, torch_module(), *values)


_table = None
_modules = {}
_plans = {}
_told = set()


def table():
    """{operation: [(file, kernel), ...]} of kernels/dispatch.json."""
    global _table
    if _table is None:
        with open(os.path.join(_paths.kernels(), "dispatch.json"), encoding="utf-8") as f:
            _table = {name: [tuple(c) for c in candidates] for name, candidates in json.load(f)["operations"].items()}
    return _table


def _kernel(file, name, constants):
    key = (file, tuple(sorted(constants.items())))
    if key not in _modules:
        try:
            _modules[key] = load(os.path.join(_paths.kernels(), file), **constants)
        except TilewrightError as error:
            _modules[key] = error
    if isinstance(_modules[key], TilewrightError):
        raise _modules[key]
    return _modules[key].kernels[name]


def device_of(x):
    """HOST, or the number of the GPU that holds it."""
    return x.get_device() if is_torch(x) and x.is_cuda else HOST


def _too_new(launches, device):
    """An architecture that this GPU does not have."""
    if device == HOST:
        return None
    major, minor = torch_module().cuda.get_device_capability(device)
    for launch in launches:
        if launch["arch"] == "sm_90a" and (major, minor) != (9, 0):
            return f"written for sm_90a, this GPU is sm_{major}{minor}"
    return None


def preferred(times):
    """The number of the candidate to take, by predicted times in the table's order. A later one must be clearly shorter than an earlier one: what
    differs by less than it does from run to run says nothing. One without a time (None) comes after those that have one."""
    best = None
    for number, us in enumerate(times):
        if us is not None and (best is None or times[best] is None or us < times[best] * _CLEARLY_SHORTER):
            best = number
        elif best is None:
            best = number
    return best


def _choose(operation, values, constants, device):
    if operation not in table():
        raise Unfit(f"no kernel computes {operation}")
    fitting, reasons = [], []
    for file, name in table()[operation]:
        try:
            kernel = _kernel(file, name, constants)
            choice = kernel.choose(*values)
        except TilewrightError as error:
            reasons.append(f"{name} of {file}: {str(error).splitlines()[0]}")
            continue
        lacks = _too_new(choice["launches"], device)
        if lacks:
            reasons.append(f"{name} of {file}: {lacks}")
            continue
        fitting.append((kernel, choice))
    if not fitting:
        raise Unfit("; ".join(dict.fromkeys(reasons)))
    return Plan(*fitting[preferred([choice["predicted_us"] for _, choice in fitting])])


def run(operation, arrays, inputs, outputs, scalars=(), constants=None):
    """Computes the operation into `outputs`. Unfit: no kernel takes these tensors."""
    tensors = (*inputs, *outputs)
    device = device_of(inputs[0])
    if device != HOST and device != torch_module()._C._cuda_getDevice():
        with torch_module().cuda.device(device):
            return _run(operation, arrays, tensors, scalars, constants, device)
    return _run(operation, arrays, tensors, scalars, constants, device)


def _run(operation, arrays, tensors, scalars, constants, device):
    key = (operation, device, tuple(constants.items()) if constants else (), *[arrays.key(t) for t in tensors])
    plan = _plans.get(key)
    values = (*tensors, *scalars)
    if plan is None:
        plan = _choose(operation, values, constants or {}, device)
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        _plans[key] = plan
    plan.run(values, device)


def left_to_torch(operation, reason):
    """Says once that torch computes an operation, and why."""
    if (operation, reason) in _told:
        return
    _told.add((operation, reason))
    warnings.warn(f"tilewright.ops.{operation} is left to torch: {reason}", FallbackWarning, stacklevel=4)


def fallbacks():
    """[(operation, reason)] of what was left to torch so far."""
    return sorted(_told)
