"""Modules and kernels as Python objects."""
import ctypes
import inspect
import json
import operator
import os
import struct
import warnings

from . import _paths, _proof, _tables
from ._library import Tensor, TilewrightError, check, library
from ._tensors import HOST, current_stream, describe, is_torch, one_place, torch_module

_MOST_CALLS = 4096  # signatures that a kernel remembers; a caller whose shapes never come back must not fill the memory


class _Call:
    """One kernel for one signature on one GPU: a launch needs addresses and scalars (runtime/call.h)."""

    __slots__ = ("device", "handle", "pack", "pack_scalars", "workspace_bytes")

    def __init__(self, handle, tensors, scalars, device):
        self.handle, self.device = handle.value, device
        self.pack = struct.Struct(f"{tensors}Q").pack
        self.pack_scalars = struct.Struct(f"{max(1, scalars)}d").pack
        self.workspace_bytes = library().tw_call_workspace_bytes(handle)


def _fast(is_tensor):
    """The two functions of a launch whose signature is known, written out for this number of tensors and scalars: loops over the arguments would take as long as the launch itself.

    key(*values): what follows from types, shapes, strides and devices. launch(call, torch, *values): addresses and scalars to the current stream.
    """
    names = [f"a{i}" for i in range(len(is_tensor))]
    tensors = [n for n, tensor in zip(names, is_tensor) if tensor]
    scalars = [n for n, tensor in zip(names, is_tensor) if not tensor]
    everything = "".join(n + ", " for n in names)
    key = "".join(f"{t}.dtype, {t}.shape, {t}.stride(), {t}.get_device(), " for t in tensors)
    text = f"""
def key({everything}):
    return ({key})

def launch(call, torch, {everything}):
    device, kept, workspace = call.device, None, 0
    if call.workspace_bytes:
        # torch's allocator hands memory out in the stream's order, and keeps what a captured graph uses.
        kept = torch.empty(call.workspace_bytes, dtype=torch.uint8, device=device)
        workspace = kept.data_ptr()
    code = enqueue(call.handle, call.pack({", ".join(t + ".data_ptr()" for t in tensors)}), {f"call.pack_scalars({', '.join(scalars)})" if scalars else "none"}, workspace,
                   torch._C._cuda_getCurrentRawStream(device))
    if code:
        check(code)
"""
    scope = {"enqueue": library().tw_call_launch, "check": check, "none": struct.pack("d", 0.0)}
    exec(text, scope)  # of our own text alone
    return scope["key"], scope["launch"]


class Kernel:
    """All variants of one name. Call it with the parameters in order (tensors and scalars) or by name.

    Tensors on a GPU are launched on torch's current stream; tensors in the CPU's memory run on the emulator, for small shapes.
    """

    def __init__(self, module, name, variants):
        self._module, self.name, self.variants = module, name, variants
        self.__doc__ = variants[0]["doc"]
        self._parameters = variants[0]["parameters"]
        self._names = [p["name"] for p in self._parameters if p["kind"] == "tensor"]
        self._is_tensor = [p["kind"] == "tensor" for p in self._parameters]
        self._scalars = len(self._parameters) - len(self._names)
        self._calls = {}
        self._seen = set()
        self._key, self._launch = _fast(self._is_tensor)
        self._table = _tables.table(True)
        _tables.equip(Kernel)

    @property
    def computes(self):
        return self.variants[0]["computes"]

    @property
    def verdict(self):
        """What the last check of this kernel with these constants said: "proved", "violated", "not proved", or None when there was none."""
        return _proof.recorded(self._module.text_digest, self._module.constants, self.name)

    def check(self, **options):
        """Proves the kernel for all sizes, or gives a counterexample: the result of `tilewright check`, true where everything is proved."""
        return _proof.check(self._module.file, self._module.constants, self.name, self._module.source, **options)

    def source(self, variant=0):
        """The CUDA C++ of a variant."""
        if not 0 <= operator.index(variant) < len(self.variants):
            raise TilewrightError(1, f"{self.name} has {len(self.variants)} variants, and none of the number {variant}")
        if self.variants[variant]["index"] is None:
            raise TilewrightError(1, f"{self.name} is a program of several launches\n  fix: ask the kernels it launches")
        text = ctypes.c_char_p()
        check(library().tw_module_source(self._module._handle, self.variants[variant]["index"], ctypes.byref(text)))
        return text.value.decode()

    def choose(self, *given, **named):
        """What a launch with these arguments would take: {"constants", "predicted_us", "launches"}. Nothing runs."""
        tensors, scalars, _, _ = self._described(self._bound(given, named))
        choice = ctypes.c_char_p()
        check(library().tw_module_choose(*self._request(tensors, scalars), ctypes.byref(choice)))
        return json.loads(choice.value.decode())

    def _bound(self, given, named):
        parameters = self._parameters
        if len(given) > len(parameters):
            raise TilewrightError(1, f"{self.name} takes {len(parameters)} arguments; {len(given)} were given")
        values = list(given)
        for p in parameters[len(given):]:
            if p["name"] not in named:
                raise TilewrightError(1, f"{self.name}: the argument {p['name']} is missing")
            values.append(named.pop(p["name"]))
        if named:
            raise TilewrightError(1, f"{self.name} has no parameter {next(iter(named))}")
        return values

    def _described(self, values):
        tensors, keep, places, scalars = (Tensor * max(1, len(self._names)))(), [], [], []
        for p, v in zip(self._parameters, values):
            if p["kind"] == "tensor":
                kept, place = describe(tensors[len(keep)], p["name"], v)
                keep.append(kept)
                places.append(place)
            elif isinstance(v, (int, float)):
                try:
                    scalars.append(float(v))
                except OverflowError:
                    raise TilewrightError(1, f"{self.name}: {p['name']} is beyond the numbers of 64 bits") from None
            else:
                raise TilewrightError(1, f"{self.name}: {p['name']} is a number; {type(v).__name__} was given")
        return tensors, scalars, keep, one_place(self._names, places)

    def _request(self, tensors, scalars):
        numbers = (ctypes.c_double * max(1, len(scalars)))(*scalars)
        return self._module._handle, self.name.encode(), tensors, len(self._names), numbers, len(scalars)

    def _slow(self, *given, stream=None, **named):
        _tables.spoil()
        torch = torch_module()
        if torch is not None and not named and stream is None:
            # Where the library cannot read torch's tensors by itself (_tables): what follows from types, shapes and strides was decided at the first call with them.
            try:
                call = self._calls.get(self._key(*given))
            except (AttributeError, TypeError):
                call = None
            if call is not None and torch._C._cuda_getDevice() == call.device:
                return self._launch(call, torch, *given)
        return self._first(given, named, stream)

    __call__ = _slow  # until _tables.equip()

    def _first(self, given, named, stream):
        values = self._bound(given, named)
        tensors, scalars, keep, place = self._described(values)
        request = self._request(tensors, scalars)
        self._ask_for_proof(request)
        if place == HOST:
            check(library().tw_module_emulate(*request))
        elif all(is_torch(v) for v in keep) and stream is None:
            self._launch(self._made(request, values, place), torch_module(), *values)
        else:
            where = current_stream() if stream is None else getattr(stream, "cuda_stream", stream)
            check(library().tw_module_launch(*request, where))

    def _made(self, request, values, place):
        """The call for a signature on a GPU, kept for the next one."""
        handle = ctypes.c_void_p()
        check(library().tw_call_create(*request, ctypes.byref(handle)))
        if len(self._calls) >= _MOST_CALLS:
            self._calls.clear()
        call = self._calls[self._key(*values)] = _Call(handle, len(self._names), self._scalars, place)
        _tables.remember_kernel(self, call, values, torch_module())
        return call

    def call_for(self, values):
        """The same for tensors of torch on a GPU, without a launch: what the table of operations keeps."""
        known = self._calls.get(self._key(*values))
        if known is not None:
            return known
        tensors, scalars, _, place = self._described(self._bound(values, {}))
        request = self._request(tensors, scalars)
        self._ask_for_proof(request)
        return self._made(request, values, place)

    def _ask_for_proof(self, request):
        """A kernel that nobody proved is launched with a warning, once for each set of constants; TILEWRIGHT_REQUIRE_PROOF=1 refuses it."""
        required = os.environ.get("TILEWRIGHT_REQUIRE_PROOF", "0") not in ("", "0")
        if self._module.shipped and not required:
            return
        choice = ctypes.c_char_p()
        check(library().tw_module_choose(*request, ctypes.byref(choice)))
        constants = {**self._module.constants, **json.loads(choice.value.decode())["constants"]}
        key = json.dumps(constants, sort_keys=True)
        if key in self._seen:
            return
        verdict = _proof.recorded(self._module.text_digest, constants, self.name)
        if verdict is None and required:
            verdict = _proof.check(self._module.file, constants, self.name, self._module.source).verdict
        if verdict != "proved":
            said = f"{self.name} of {self._module.file} is {verdict}" if verdict else f"{self.name} of {self._module.file} was not checked"
            fix = f"tilewright check {self._module.file}" + "".join(f" --set {n}={v}" for n, v in constants.items())
            if required:
                raise TilewrightError(1, f"{said}, and TILEWRIGHT_REQUIRE_PROOF is set\n  fix: {fix}")
            warnings.warn(f"{said}: it is launched without a proof ({fix}, or kernel.check())", UnprovedKernelWarning, stacklevel=4)
        self._seen.add(key)

    def __repr__(self):
        names = ", ".join(p["name"] for p in self._parameters)
        return f"<kernel {self.name}({names}), {len(self.variants)} variant{'s' if len(self.variants) > 1 else ''}>"


class UnprovedKernelWarning(UserWarning):
    """A kernel is launched that no check has proved."""


class Module:
    """The kernels of one file, as attributes."""

    def __init__(self, request):
        handle = ctypes.c_void_p()
        check(library().tw_module_load(json.dumps(request).encode(), ctypes.byref(handle)))
        self._handle = handle
        described = json.loads(library().tw_module_describe(handle).decode())
        self.file = described["file"]
        self.text_digest = described["text"]
        self.source = request.get("source")  # None: what the file holds
        self.constants = dict(request.get("constants", {}))
        self.shipped = self.source is None and os.path.dirname(os.path.abspath(self.file)) == os.path.abspath(_paths.kernels())
        self.kernels = {}
        by_name = {}
        for index, k in enumerate(described["kernels"]):
            by_name.setdefault(k["name"], []).append(dict(k, index=index))
        for p in described.get("programs", []):
            by_name[p["name"]] = [dict(p, index=None)]
        for name, variants in by_name.items():
            self.kernels[name] = Kernel(self, name, variants)

    def check(self, **options):
        """The result of `tilewright check` on the file; true where everything is proved."""
        return _proof.check(self.file, self.constants, None, self.source, **options)

    def __getattr__(self, name):
        kernels = self.__dict__.get("kernels", {})
        if name in kernels:
            return kernels[name]
        import difflib

        near = difflib.get_close_matches(name, kernels, 1)
        hint = f"; did you mean {near[0]}?" if near else f" (it has {', '.join(kernels) or 'none'})"
        raise AttributeError(f"{self.__dict__.get('file', 'the module')} has no kernel '{name}'{hint}")

    def __dir__(self):
        return list(super().__dir__()) + list(self.kernels)

    def __repr__(self):
        return f"<tilewright module {self.file}: {', '.join(self.kernels)}>"

    # No __del__: a module lives as long as the process; a captured graph may still hold its kernels.


def load(path, **constants):
    """A kernel file, or one of the package's by its name; keywords set const parameters: load("attention_sm90.py", D=256). Constants that are not
    given come from tuned data, by the shapes of a call."""
    return Module({"path": _paths.kernel_file(path), "constants": constants})


def loads(source, name="kernel.py", **constants):
    """Kernels from text."""
    if not isinstance(source, str) or not isinstance(name, str):
        raise TilewrightError(1, f"loads takes a kernel file's text and its name, not {type(source).__name__} and {type(name).__name__}")
    return Module({"source": source, "name": name, "constants": constants})


class Deferred:
    """A decorated function: the kernels of the file it stands in are compiled at the first use, when all names in it are there."""

    def __init__(self, function, name):
        self._function, self._kernel = function, None
        self.__doc__, self.__name__, self.__module__ = function.__doc__, name, function.__module__

    def _resolve(self):
        if self._kernel is None:
            file = inspect.getsourcefile(self._function)
            if file is None or not os.path.exists(file):
                raise TilewrightError(1, f"the source of {self.__name__} cannot be found\n  fix: put it into a file and use tilewright.load")
            module = load(file)
            if self.__name__ not in module.kernels:
                raise TilewrightError(1, f"{file} has no kernel named {self.__name__}")
            self._kernel = module.kernels[self.__name__]
        return self._kernel

    def __call__(self, *given, **named):
        return self._resolve()(*given, **named)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._resolve(), name)

    def __repr__(self):
        return f"<kernel {self.__name__}>"


def deferred(function, name):
    return Deferred(function, name)
