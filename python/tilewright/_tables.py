"""Calls that were made before, launched again without Python in between (src/runtime/python_calls.cpp).

A kernel's call is written down when its signature is met first; an operation's by watching it once: what it allocates, which views it takes of its arguments and
which kernels it launches. An operation that does anything else (a copy, a cast, torch's own kernels) is not written down for that signature, and runs as it did.
"""
import ctypes
import threading

from ._library import check, library_path

_MOST_REFUSED, _MOST_OUTPUTS = 8192, 8
_functions = None
_torch_ready = None  # None: not asked yet
_recorder = None
_now = threading.local()  # .tape: of the operation that this thread records
_refused = set()  # signatures of operations that cannot be written down


def functions():
    """The library's functions for CPython, or {} where they do not work: another Python, or one without its lock."""
    global _functions
    if _functions is None:
        import sys

        _functions = {}
        if sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)():
            make = ctypes.PyDLL(library_path()).tw_python_functions
            make.restype = ctypes.py_object
            try:
                _functions = make()
            except ValueError:  # NULL: the interpreter lacks a call
                pass
    return _functions


def ready(torch):
    """True where torch's tensors can be read without Python; asked once."""
    global _torch_ready
    if _torch_ready is None:
        empty = getattr(getattr(getattr(torch._C, "_dynamo", None), "guards", None), "_empty_strided_cuda", None)
        if empty is None:
            empty = lambda sizes, strides, dtype: torch.empty_strided(sizes, strides, dtype=dtype, device="cuda")  # noqa: E731
        setup = functions().get("setup")
        _torch_ready = bool(setup and setup((torch.Tensor, torch.nn.Parameter), empty, torch.is_grad_enabled, check))
    return _torch_ready


def table(flowing):
    """A new table, or None. flowing: numbers go to the launch and are no part of the signature."""
    return functions()["table"](flowing) if functions() else None


def runner(table_of_operation):
    """launch(given, named): the result, or NotImplemented where nothing was written down."""
    return functions()["runner"](table_of_operation) if table_of_operation is not None else None


def equip(kernel_class):
    """Gives the class of kernels its call, once; without the library's functions it keeps the one in Python."""
    if "method" in functions() and kernel_class.__call__ is kernel_class._slow:
        kernel_class.__call__ = functions()["method"](kernel_class)


def remember_kernel(kernel, call, values, torch):
    """A kernel's launch for the signature of these arguments."""
    if kernel._table is None or not ready(torch) or any(getattr(v, "tilewright_dtype", None) for v in values):
        return
    count = len(kernel._names)
    outputs = (_workspace(call, torch),) if call.workspace_bytes else ()
    functions()["remember"](kernel._table, tuple(values), None, outputs, ((call.handle, tuple((i, 0) for i in range(count)), count if outputs else None, ()),), None)


def _workspace(call, torch):
    """A program's buffers as an output."""
    return (call.workspace_bytes,), (1,), torch.uint8


def note_launch(call, values):
    """A launch of the operation that this thread records, if it does."""
    tape = getattr(_now, "tape", None)
    if tape is not None:
        tape.launches.append((call, values))


def spoil():
    """What the operation of this thread does cannot be written down."""
    tape = getattr(_now, "tape", None)
    if tape is not None:
        tape.spoiled = True


def is_recording():
    return getattr(_now, "tape", None) is not None


def _signature(name, given, named, torch):
    def one(v):
        return (v.dtype, v.shape, v.stride(), v.get_device()) if isinstance(v, torch.Tensor) else (type(v), repr(v))

    return (name, *map(one, given), *[(k, one(v)) for k, v in named.items()])


def _make_recorder(torch):
    from torch.utils._python_dispatch import TorchDispatchMode

    aten = torch.ops.aten
    empty = {getattr(aten, n) for n in ("empty", "empty_strided", "new_empty", "empty_like", "new_empty_strided") if hasattr(aten, n)}
    views = {getattr(aten, n) for n in ("view", "_unsafe_view", "_reshape_alias", "alias", "detach", "transpose", "t", "permute", "as_strided", "unsqueeze", "squeeze", "select", "slice",
                                        "expand") if hasattr(aten, n)}

    class Recorder(TorchDispatchMode):
        """What an operation allocates and which tensors are views of which; launches come from note_launch()."""

        def __init__(self, arguments):
            super().__init__()
            self.sources = list(arguments)
            self.source_of = {id(t): i for i, t in enumerate(arguments)}  # the number of what a tensor is a view of
            self.kept = []  # so that no number is given twice
            self.launches, self.spoiled = [], False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            packet = func.overloadpacket
            if packet in empty:
                self.source_of[id(out)] = len(self.sources)
                self.sources.append(out)
            elif packet in views and isinstance(out, torch.Tensor) and id(args[0]) in self.source_of:
                self.source_of[id(out)] = self.source_of[id(args[0])]
                self.kept.append(out)
            else:
                self.spoiled = True
            return out

    return Recorder


def _here(t, torch):
    """On the current GPU."""
    return t.is_cuda and t.get_device() == torch._C._cuda_getDevice()


def _dense(t):
    """Its elements fill its memory from the first to the last."""
    return t.numel() > 0 and 1 + sum((d - 1) * s for d, s in zip(t.shape, t.stride())) == t.numel()


def _entry(tape, arguments, result, torch):
    """(outputs, steps, result) of what was watched, or None."""
    if tape.spoiled or not tape.launches:
        return None
    count = len(arguments)
    results = result if isinstance(result, tuple) else () if result is None else (result,)
    described = {}  # an output as the caller gets it
    for r in results:
        source = tape.source_of.get(id(r), -1) if isinstance(r, torch.Tensor) else -1
        if source < count or source in described or not _dense(r):
            return None
        made = tape.sources[source]
        if made.dtype != r.dtype or made.numel() != r.numel() or made.data_ptr() != r.data_ptr():
            return None
        described[source] = r
    outputs, number_of = [], {i: i for i in range(count)}  # allocations that are used, and their numbers

    def number(source):
        if source not in number_of:
            t = described.get(source, tape.sources[source])
            number_of[source] = count + len(outputs)
            outputs.append((tuple(t.shape), tuple(t.stride()), t.dtype))
        return number_of[source]

    steps = []
    for call, values in tape.launches:
        pointers, scalars = [], []
        for v in values:
            if not isinstance(v, torch.Tensor):
                scalars.append(float(v))
                continue
            source = tape.source_of.get(id(v))
            if source is None or not _here(v, torch):
                return None
            pointers.append((number(source), v.data_ptr() - tape.sources[source].data_ptr()))
        workspace = None
        if call.workspace_bytes:
            workspace = count + len(outputs)
            outputs.append(_workspace(call, torch))
        steps.append((call.handle, tuple(pointers), workspace, tuple(scalars)))
    numbers = tuple(number(tape.source_of[id(r)]) - count for r in results)
    if any(offset < 0 for _, pointers, _, _ in steps for _, offset in pointers) or len(outputs) > _MOST_OUTPUTS:
        return None
    return tuple(outputs), tuple(steps), numbers if isinstance(result, tuple) else numbers[0] if numbers else None


def record(table_of_operation, name, function, given, named, torch):
    """The operation's result; where all it did can be done again from addresses alone, it is written down."""
    arguments = [v for v in (*given, *named.values()) if isinstance(v, torch.Tensor)]
    usable = (table_of_operation is not None and arguments and len({id(t) for t in arguments}) == len(arguments) and ready(torch) and not is_recording()
              and all(_here(t, torch) and t.data_ptr() % 16 == 0 for t in arguments))
    signature = _signature(name, given, named, torch) if usable else None
    if not usable or signature in _refused:
        return function(*given, **named)
    global _recorder
    if _recorder is None:
        _recorder = _make_recorder(torch)
    tape = _now.tape = _recorder(arguments)
    functions()["recording"](1)
    try:
        with tape:
            result = function(*given, **named)
    finally:
        functions()["recording"](-1)
        _now.tape = None
    entry = _entry(tape, arguments, result, torch)
    if entry is None or not functions()["remember"](table_of_operation, given, named, *entry):
        if len(_refused) >= _MOST_REFUSED:
            _refused.clear()
        _refused.add(signature)
    return result
