"""Modules and kernels as Python objects."""
import ast
import ctypes
import inspect
import json
import re

from ._library import Tensor, TilewrightError, check, library
from ._tensors import current_stream, describe


class Kernel:
    """All variants of one name. Call it with the parameters in order (tensors and scalars) or by name."""

    def __init__(self, module, name, variants):
        self._module, self.name, self.variants = module, name, variants
        self.__doc__ = variants[0]["doc"]
        self._parameters = variants[0]["parameters"]

    @property
    def computes(self):
        return self.variants[0]["computes"]

    def source(self, variant=0):
        """The CUDA C++ of a variant."""
        if self.variants[variant]["index"] is None:
            raise TilewrightError(1, f"{self.name} is a program of several launches\n  fix: ask the kernels it launches")
        text = ctypes.c_char_p()
        check(library().tw_module_source(self._module._handle, self.variants[variant]["index"], ctypes.byref(text)))
        return text.value.decode()

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

    def __call__(self, *given, stream=None, **named):
        values = self._bound(given, named)
        count = sum(p["kind"] == "tensor" for p in self._parameters)
        tensors, keep, scalars = (Tensor * max(1, count))(), [], []
        for p, v in zip(self._parameters, values):
            if p["kind"] == "tensor":
                keep.append(describe(tensors[len(keep)], p["name"], v))
            elif isinstance(v, (int, float)):
                scalars.append(float(v))
            else:
                raise TilewrightError(1, f"{self.name}: {p['name']} is a number; {type(v).__name__} was given")
        where = current_stream() if stream is None else getattr(stream, "cuda_stream", stream)
        numbers = (ctypes.c_double * max(1, len(scalars)))(*scalars)
        check(library().tw_module_launch(self._module._handle, self.name.encode(), tensors, count, numbers, len(scalars), where))

    def __repr__(self):
        names = ", ".join(p["name"] for p in self._parameters)
        return f"<kernel {self.name}({names}), {len(self.variants)} variant{'s' if len(self.variants) > 1 else ''}>"


class Module:
    """The kernels of one file, as attributes."""

    def __init__(self, request):
        handle = ctypes.c_void_p()
        check(library().tw_module_load(json.dumps(request).encode(), ctypes.byref(handle)))
        self._handle = handle
        described = json.loads(library().tw_module_describe(handle).decode())
        self.file = described["file"]
        self.kernels = {}
        by_name = {}
        for index, k in enumerate(described["kernels"]):
            by_name.setdefault(k["name"], []).append(dict(k, index=index))
        for p in described.get("programs", []):
            by_name[p["name"]] = [dict(p, index=None)]
        for name, variants in by_name.items():
            self.kernels[name] = Kernel(self, name, variants)

    def __getattr__(self, name):
        kernels = self.__dict__.get("kernels", {})
        if name in kernels:
            return kernels[name]
        raise AttributeError(f"{self.__dict__.get('file', 'the module')} has no kernel '{name}' (it has {', '.join(kernels) or 'none'})")

    def __dir__(self):
        return list(super().__dir__()) + list(self.kernels)

    def __repr__(self):
        return f"<tilewright module {self.file}: {', '.join(self.kernels)}>"

    # No __del__: a module lives as long as the process; a captured graph may still hold its kernels.


def load(path, **constants):
    """A kernel file; keywords set const parameters: load("kernels/gemm_sm90.py", BN=128)."""
    return Module({"path": str(path), "constants": constants})


def loads(source, name="kernel.py", **constants):
    """Kernels from text."""
    return Module({"source": source, "name": name, "constants": constants})


def only_kernels(text):
    """The part of a Python file that is in the language: imports of tilewright, functions with its decorators, and the module's assignments
    that these use. Everything else becomes empty lines, so that diagnostics name the lines of the file."""
    tree = ast.parse(text)
    aliases, keep = set(), []
    for node in tree.body:
        if isinstance(node, ast.Import) and any(a.name == "tilewright" for a in node.names):
            aliases |= {a.asname or a.name for a in node.names if a.name == "tilewright"}
            if len(node.names) == 1:
                keep.append(node)
        elif isinstance(node, ast.ImportFrom) and node.module == "tilewright":
            keep.append(node)

    def ours(decorator):
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        return isinstance(call, ast.Attribute) and call.attr in ("kernel", "inline", "program") and isinstance(call.value, ast.Name) and call.value.id in aliases

    keep += [n for n in tree.body if isinstance(n, ast.FunctionDef) and any(ours(d) for d in n.decorator_list)]
    assignments = [n for n in tree.body if isinstance(n, (ast.Assign, ast.AnnAssign))]
    used, grew = set(), True
    while grew:
        used = {x.id for n in keep for x in ast.walk(n) if isinstance(x, ast.Name)}
        # `computes` names constants in its text.
        used |= {w for n in keep for x in ast.walk(n) if isinstance(x, ast.Constant) and isinstance(x.value, str) for w in re.findall(r"[A-Za-z_]\w*", x.value)}
        more = [a for a in assignments if a not in keep and any(x.id in used for t in (a.targets if isinstance(a, ast.Assign) else [a.target]) for x in ast.walk(t) if isinstance(x, ast.Name))]
        keep += more
        grew = bool(more)
    lines, out = text.splitlines(), []
    wanted = set()
    for n in keep:
        first = min([n.lineno] + [d.lineno for d in getattr(n, "decorator_list", [])])
        wanted |= set(range(first, n.end_lineno + 1))
    for number, line in enumerate(lines, 1):
        out.append(line if number in wanted else "")
    return "\n".join(out) + "\n"


class Deferred:
    """A decorated function: the kernels of the file it stands in are compiled at the first call, when all names in it are there."""

    def __init__(self, function, name):
        self._function, self._kernel = function, None
        self.__doc__, self.__name__ = function.__doc__, name

    def _resolve(self):
        if self._kernel is None:
            file = inspect.getsourcefile(self._function)
            if file is None:
                raise TilewrightError(1, f"the source of {self.__name__} cannot be found\n  fix: put it into a file and use tilewright.load")
            with open(file, encoding="utf-8") as f:
                module = loads(only_kernels(f.read()), name=file)
            if self.__name__ not in module.kernels:
                raise TilewrightError(1, f"{file} has no kernel named {self.__name__}")
            self._kernel = module.kernels[self.__name__]
        return self._kernel

    def __call__(self, *given, **named):
        return self._resolve()(*given, **named)


def deferred(function, name):
    return Deferred(function, name)
