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

    def __call__(self, *inputs):
        import torch
        given = [about for about in self.plan["inputs"] if "random" not in about]
        if len(inputs) != len(given):
            raise TilewrightError(1, f"{self.plan['name']} takes {len(given)} inputs; {len(inputs)} were given")
        device = next((x.device for x in [*inputs, *self._fixed.values()] if isinstance(x, torch.Tensor)), "cuda")
        values = {**self._fixed, **self._constants(device)}
        for about in self.plan["inputs"]:
            if "random" in about:
                values[about["name"]] = torch.rand(about["shape"], device=device)
        for about, x in zip(given, inputs):
            if isinstance(x, float):
                x = self._number(x, device)
            if list(x.shape) != about["shape"] or x.dtype != getattr(torch, _TORCH[about["dtype"]]):
                raise TilewrightError(1, f"{about['name']} is {tuple(x.shape)} of {x.dtype}; these kernels are for {tuple(about['shape'])} of {about['dtype']}")
            values[about["name"]] = x.contiguous()
        for i, launch in enumerate(self.plan["launches"]):
            views = []
            for a in launch["arguments"]:
                if a["output"] and a["buffer"] not in values:
                    made = self.plan["buffers"][a["buffer"]]
                    values[a["buffer"]] = torch.empty(made["shape"], dtype=getattr(torch, _TORCH[made["dtype"]]), device=device)
                view = values[a["buffer"]].as_strided(a["shape"], a["strides"], a["offset"])
                if a["buffer"].startswith("%") and self.plan["buffers"][a["buffer"]]["dtype"] == "tf32":
                    view.tilewright_dtype = "tf32"
                views.append(view)
            self._module.kernels[launch["kernel"]](*views)
            for name in self._last.get(i, ()):
                del values[name]
        out = [values[o["buffer"]] for o in self.plan["outputs"]]
        return out[0] if len(out) == 1 else tuple(out)


def optimize(module, example_inputs, strict=False, tf32="conv"):
    """A callable that computes what `module` does for inputs of these shapes, on generated kernels. Operators that graphs do not have stay with torch,
    between the kernels; `report["unsupported"]` names them. `strict`: they are an error (Unsupported), and a kernel that is not proved too."""
    example = list(example_inputs) if isinstance(example_inputs, (list, tuple)) else [example_inputs]
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


def backend(gm, example_inputs, strict=False):
    """For torch.compile: generated kernels for what is supported, torch's own operators between them."""
    import logging
    import torch
    log = logging.getLogger("tilewright")
    if any(not isinstance(v, torch.Tensor) for v in example_inputs) or any(getattr(v, "requires_grad", False) for v in example_inputs) and torch.is_grad_enabled():
        if strict:
            raise _graph.Unsupported("a graph that needs gradients, or takes sizes that change", ["inputs"])
        log.warning("left to torch: it needs gradients, or takes sizes that change")
        return gm.forward
    try:
        compiled = optimize(gm, list(example_inputs), strict)
    except (_graph.Unsupported, TilewrightError) as error:
        if strict:
            raise
        log.warning("left to torch: %s", error)
        return gm.forward
    report = compiled.report
    if report["unsupported"]:
        log.warning("left to torch, between the kernels: %s", ", ".join(report["unsupported"]))
    if not report["proved"]:
        log.warning("%s: not every kernel is proved", report["graph"])

    def call(*inputs):
        out = compiled(*inputs)
        return out if isinstance(out, tuple) else (out,)
    call.report = report
    return call


def register():
    """Makes torch.compile(..., backend="tilewright") known. Importing tilewright after torch does it."""
    import functools
    from torch._dynamo import register_backend
    register_backend(backend, name="tilewright")
    register_backend(functools.partial(backend, strict=True), name="tilewright_strict")
