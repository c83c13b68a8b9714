"""PyTorch modules on generated kernels.

    fast = tilewright.optimize(module, example_inputs)      # a callable with the module's parameters
    torch.compile(model, backend="tilewright")              # what is not supported stays with torch, and is named

`tilewright generate` makes and proves the kernels; `fast.report` says what is in which kernel, whether it is proved, and which operators stay with
torch (`unsupported`). Where there are none, only allocation and launches happen in a call.
"""
import json
import os
import shutil
import subprocess
import tempfile

from . import _float_inputs, _open_sizes
from . import graph as _graph
from ._library import TilewrightError
from ._module import loads

_TORCH = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i64": "int64", "bool": "bool", "tf32": "float32"}


def program():
    """TILEWRIGHT_PROGRAM, else beside the library or in PATH."""
    from ._library import library_path
    named = os.environ.get("TILEWRIGHT_PROGRAM")
    if named:
        return named
    beside = os.path.join(os.path.dirname(os.path.dirname(library_path())), "bin", "tilewright")
    found = beside if os.path.exists(beside) else shutil.which("tilewright")
    if not found:
        raise TilewrightError(2, "the program `tilewright` was not found\n  fix: put it into PATH, or set TILEWRIGHT_PROGRAM")
    return found


def generate(graph, strict=False, tf32="conv", folder=None):
    """The kernels, the plan and the report of a graph (docs/graph.md)."""
    with tempfile.TemporaryDirectory() as scratch:
        path, out = os.path.join(scratch, "graph.json"), folder or os.path.join(scratch, "out")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(graph, f)
        words = [program(), "generate", path, "-o", out, "--tf32", tf32, "--jobs", str(min(8, os.cpu_count() or 1))] + (["--strict"] if strict else [])
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            raise TilewrightError(done.returncode, (done.stderr or done.stdout).strip())
        return read_generated(out)


def read_generated(folder):
    text = {}
    for name in ("kernels.py", "plan.json", "report.json"):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            text[name] = f.read()
    return text["kernels.py"], json.loads(text["plan.json"]), json.loads(text["report.json"])


def _random_numbers(about, device):
    """What a graph draws anew for each call, of torch's own generator: torch.manual_seed decides it."""
    import torch
    if about["random"] == "words":
        return torch.randint(-2**31, 2**31, about["shape"], dtype=torch.int32, device=device)
    return torch.rand(about["shape"], device=device)


class Compiled:
    """The launches of a plan. Call it with the inputs; parameters are given once."""

    def __init__(self, source, plan, report, parameters):
        self.source, self.plan, self.report = source, plan, report
        self._module = loads(source, name=plan["name"] + ".py")
        self._fixed, self._numbers, self._known = {}, {}, {}
        for p in plan["parameters"]:
            if "values" not in p:
                self._fixed[p["name"]] = parameters[p["name"]].detach().contiguous()
        self._last = self._last_uses()
        self._plans = {}  # of open sizes, by their values

    def _last_uses(self):
        """By launch: the buffers that nothing reads after it."""
        kept = {o["buffer"] for o in self.plan["outputs"]}
        last = {}
        for i, launch in enumerate(self.plan["launches"]):
            for a in launch["arguments"]:
                if a["buffer"].startswith("%") and a["buffer"] not in kept:
                    last[a["buffer"]] = i
        by_launch = {}
        for name, i in last.items():
            by_launch.setdefault(i, []).append(name)
        return by_launch

    def _constants(self, device):
        """The tensors whose values the graph has itself."""
        if device not in self._known:
            self._known[device] = {p["name"]: _graph.constant_of(p).to(device) for p in self.plan["parameters"] if "values" in p}
        return self._known[device]

    def _number(self, value, device):
        """A float as a tensor; the last few are kept."""
        import torch
        if (value, device) not in self._numbers:
            if len(self._numbers) > 16:
                self._numbers.clear()
            self._numbers[value, device] = torch.full((), value, dtype=torch.float32, device=device)
        return self._numbers[value, device]

    def _plan_for(self, inputs):
        """The plan with numbers for its open sizes."""
        if not self.plan.get("sizes"):
            return self.plan
        sizes = _open_sizes.sizes_of(self.plan, [list(x.shape) if hasattr(x, "shape") else [] for x in inputs])
        if sizes is None:
            raise TilewrightError(1, f"{self.plan['name']}: inputs of the shapes {[tuple(getattr(x, 'shape', ())) for x in inputs]}; these kernels are for {[a['shape'] for a in self.plan['inputs']]}")
        if any(not about["least"] <= sizes[about["name"]] <= about["most"] for about in self.plan["sizes"]):
            raise _open_sizes.Beyond(sizes)
        key = tuple(sizes.values())
        if key not in self._plans:
            if len(self._plans) >= 64:
                self._plans.clear()
            self._plans[key] = _open_sizes.bound(self.plan, sizes)
        return self._plans[key]

    def __call__(self, *inputs):
        import torch
        given = [about for about in self.plan["inputs"] if "random" not in about]
        if len(inputs) != len(given):
            raise TilewrightError(1, f"{self.plan['name']} takes {len(given)} inputs; {len(inputs)} were given")
        plan = self._plan_for(inputs)
        given = [about for about in plan["inputs"] if "random" not in about]
        device = next((x.device for x in [*inputs, *self._fixed.values()] if isinstance(x, torch.Tensor)), "cuda")
        values = {**self._fixed, **self._constants(device)}
        for about in plan["inputs"]:
            if "random" in about:
                values[about["name"]] = _random_numbers(about, device)
        for about, x in zip(given, inputs):
            if isinstance(x, float):
                x = self._number(x, device)
            if list(x.shape) != about["shape"] or x.dtype != getattr(torch, _TORCH[about["dtype"]]):
                raise TilewrightError(1, f"{about['name']} is {tuple(x.shape)} of {x.dtype}; these kernels are for {tuple(about['shape'])} of {about['dtype']}")
            values[about["name"]] = x.contiguous()
        for i, launch in enumerate(plan["launches"]):
            views = []
            for a in launch["arguments"]:
                if a["output"] and a["buffer"] not in values:
                    made = plan["buffers"][a["buffer"]]
                    values[a["buffer"]] = torch.empty(made["shape"], dtype=getattr(torch, _TORCH[made["dtype"]]), device=device)
                view = values[a["buffer"]].as_strided(a["shape"], a["strides"], a["offset"])
                if a["buffer"].startswith("%") and plan["buffers"][a["buffer"]]["dtype"] == "tf32":
                    view.tilewright_dtype = "tf32"
                views.append(view)
            self._module.kernels[launch["kernel"]](*views)
            for name in self._last.get(i, ()):
                del values[name]
        out = [values[o["buffer"]] for o in plan["outputs"]]
        return out[0] if len(out) == 1 else tuple(out)


class Open:
    """A module whose sizes vary: kernels for ranges of them, made when a size beyond them is met, and for single sizes where these cannot be open (`report["fixed"]` says why)."""

    def __init__(self, module, example, dims, strict, tf32):
        """`dims`: for each input the names of its open dimensions, or, where the module takes the size itself, its name."""
        self._module, self._dims, self._strict, self._tf32 = module, dims, strict, tf32
        self._made, self._fixed, self.report = [], {}, {}
        self._state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        try:
            arguments = [d if isinstance(d, str) else (x, d) for x, d in zip(example, dims)]
            self._graph, self._notes, self._names = _open_sizes.trace(module, arguments)
            self._make({n: _open_sizes.roomy(v) for n, v in self._sizes(example).items()})
        except (_graph.Unsupported, TilewrightError) as error:
            if strict:
                raise
            self._graph, self.report = None, {"fixed": str(error), "proved": True, "unsupported": [], "graph": "graph", "kernels": []}

    def _sizes(self, inputs):
        of = lambda s: s if isinstance(s, int) else int(s.node.hint or 64)  # noqa: E731 - of a symbol an example, without fixing it
        return {n: of(x.shape[d]) for x, dims in zip(inputs, self._dims) if not isinstance(dims, str) for d, n in dims.items()}

    def _make(self, most):
        source, plan, report = generate(_open_sizes.ranged(self._graph, most), self._strict, self._tf32)
        report["notes"] = self._notes
        self._made.append(Compiled(source, plan, report, {_graph.parameter_name("module." + n): self._state[n] for n in self._names}))
        self.report = report
        return self._made[-1]

    def __call__(self, *inputs):
        tensors = [x for x, dims in zip(inputs, self._dims) if not isinstance(dims, str)]
        for made in reversed(self._made if self._graph else []):
            try:
                return made(*tensors)
            except _open_sizes.Beyond as beyond:
                sizes = beyond.sizes
        about_sizes = {about["name"]: about for about in self._made[-1].plan["sizes"]} if self._graph else {}
        if self._graph and all(about_sizes[n]["least"] <= v <= 1 << 18 for n, v in sizes.items()):
            before = {n: about["most"] for n, about in about_sizes.items()}
            return self._make({n: max(before[n], _open_sizes.roomy(v)) for n, v in sizes.items()})(*tensors)
        return self._for_these(inputs, tensors)

    def _for_these(self, inputs, tensors):
        """Kernels for these sizes alone."""
        import torch
        key = tuple(tuple(x.shape) for x in tensors)
        if key not in self._fixed:
            numbers, module = [None if not isinstance(dims, str) else int(x) for x, dims in zip(inputs, self._dims)], self._module

            class Bound(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.module = module

                def forward(self, *given):
                    rest = iter(given)
                    return self.module(*[next(rest) if n is None else n for n in numbers])
            self._fixed[key] = optimize(Bound(), tensors, self._strict, self._tf32)
        return self._fixed[key](*tensors)


def _dimension_names(dynamic_shapes, example):
    """For each input, the names of its open dimensions: of torch.export's Dim objects, or texts."""
    entries = list(dynamic_shapes.values()) if isinstance(dynamic_shapes, dict) else list(dynamic_shapes)
    if len(entries) != len(example):
        raise TilewrightError(1, f"dynamic_shapes has {len(entries)} entries for {len(example)} inputs")
    named = lambda d: d if isinstance(d, str) else getattr(d, "__name__", None)  # noqa: E731
    out = []
    for entry in entries:
        pairs = (entry or {}).items() if isinstance(entry, dict) or not entry else enumerate(entry)
        out.append({int(d): "".join(c for c in named(v) if c.isalnum()) for d, v in pairs if v is not None and named(v)})
    return out


def optimize(module, example_inputs, strict=False, tf32="conv", dynamic_shapes=None):
    """A callable that computes what `module` does for inputs of these shapes, on generated kernels. Operators that graphs do not have stay with torch,
    between the kernels; `report["unsupported"]` names them. `strict`: they are an error (Unsupported), and a kernel that is not proved too.
    `dynamic_shapes`: for each input the dimensions that vary, {dimension: name or torch.export.Dim}; kernels are then for all values of them."""
    example = list(example_inputs) if isinstance(example_inputs, (list, tuple)) else [example_inputs]
    if dynamic_shapes is not None:
        return Open(module, example, _dimension_names(dynamic_shapes, example), strict, tf32)
    try:
        graph, notes, names = _graph.trace(module, example)
        source, plan, report = generate(graph, strict, tf32)
    except _graph.Unsupported as error:
        if strict:
            raise
        from ._parts import in_parts
        return in_parts(module, example, tf32, error)
    report["notes"] = notes
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    return Compiled(source, plan, report, {_graph.parameter_name(n): state[n] for n in names})


def _open_dims(example_inputs):
    """Which dimensions of a graph's inputs are symbols, and which inputs are the symbols themselves; nothing: all are numbers."""
    import torch
    symbol = lambda v: "".join(c for c in str(v.node.expr) if c.isalnum()) if v.node.expr.is_symbol else None  # noqa: E731
    dims = []
    for v in example_inputs:
        if isinstance(v, torch.SymInt):
            dims.append(symbol(v))
        elif isinstance(v, torch.Tensor):
            own = {d: symbol(s) for d, s in enumerate(v.shape) if isinstance(s, torch.SymInt) and not s.node.expr.is_number}
            dims.append(None if None in own.values() else own)
        else:
            dims.append(None)
    if None in dims:
        raise _graph.Unsupported("a size that is made of others, or a number that is no size", ["inputs"])
    return dims if any(dims) else None


def backend(gm, example_inputs, strict=False):
    """For torch.compile: generated kernels for what is supported, torch's own operators between them."""
    import logging
    import torch
    log = logging.getLogger("tilewright")
    if any(getattr(v, "requires_grad", False) for v in example_inputs) and torch.is_grad_enabled():
        if strict:
            raise _graph.Unsupported("a graph that needs gradients", ["inputs"])
        log.warning("left to torch: it needs gradients")
        return gm.forward
    floats = _float_inputs.places(gm, example_inputs)
    if floats:
        return _float_inputs.by_value(gm, example_inputs, floats, lambda gm, inputs: backend(gm, inputs, strict))
    try:
        told = [n.meta.get("example_value", v) for n, v in zip((n for n in gm.graph.nodes if n.op == "placeholder"), example_inputs)]
        dims = _open_dims(told)  # the inputs themselves have numbers
        compiled = optimize(gm, list(example_inputs), strict) if dims is None else Open(gm, told, dims, strict, "conv")
    except (_graph.Unsupported, TilewrightError) as error:
        if strict:
            raise
        log.warning("left to torch: %s", error)
        return gm.forward
    report = compiled.report
    if report.get("fixed"):
        log.warning("kernels for each size by itself: %s", report["fixed"])
    if report["unsupported"]:
        log.warning("left to torch, between the kernels: %s", ", ".join(report["unsupported"]))
    if not report["proved"]:
        log.warning("%s: not every kernel is proved", report["graph"])

    def call(*inputs):
        out = compiled(*inputs)
        return out if isinstance(out, tuple) else (out,)
    call.report = report
    return call


_registered = []


def register():
    """Makes torch.compile(..., backend="tilewright") known. Importing tilewright after torch does it."""
    import functools
    from torch._dynamo import register_backend
    if _registered:
        return
    _registered.append(True)
    register_backend(backend, name="tilewright")
    register_backend(functools.partial(backend, strict=True), name="tilewright_strict")
