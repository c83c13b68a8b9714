"""What the PyTorch front end writes for one operator, without torch: the rule is called with a stand-in for the traced node, and the kernels run on the emulator."""
import json
import math
import os
import pathlib
import subprocess
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import tilewright  # noqa: E402
from tilewright import _open_sizes, _torch_rules, graph  # noqa: E402

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM", "tilewright")
TYPES = {"float32": "f32", "int64": "i64", "int32": "i32", "bool": "bool"}


class Value:
    """What torch's fake tensors tell of a result."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), f"torch.{dtype}"


class Node:
    def __init__(self, name, op, values, overload="default", args=()):
        self.name, self.args = name, args
        self.target = type("Target", (), {"_opname": op, "_overloadname": overload, "__str__": lambda self: op})()
        self.meta = {"val": values}


class Known:
    """Which arguments have a value that is known: here those of `args` that are no names."""

    def value(self, v):
        return v


def written(op, arrays, results, arguments, keywords=None, overload="default", known=()):
    """The graph of one operator. `arrays`: its inputs by name; `results`: (shape, type) of each; `arguments`: names, numbers and lists."""
    g = graph._Graph(op)
    g.known = Known()
    for name, x in arrays.items():
        g.leaf("inputs", name, Value(x.shape, x.dtype.name))
    values = [Value(*r) for r in results]
    n = Node("n", op, values if len(values) > 1 else values[0], overload, known)
    a, k = _torch_rules.Arguments(arguments), _torch_rules.Keywords(keywords or {})
    made = _torch_rules.operator_table()[op](g, n, a, k)
    outputs = [made] if made is not None else [g.several["n"][i](Node(f"result{i}", "getitem", v)) for i, v in enumerate(values)]
    return g.to_json(outputs)


def run(made, arrays, folder):
    """(the results on the emulator, the report); every kernel is proved."""
    path, out = folder / "graph.json", folder / "out"
    path.write_text(json.dumps(made))
    done = subprocess.run([PROGRAM, "generate", str(path), "-o", str(out), "--limit-seconds", "10"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout[-2000:]
    report, plan = json.loads((out / "report.json").read_text()), json.loads((out / "plan.json").read_text())
    assert report["proved"], [(k["kernel"], k.get("why", "")[:300]) for k in report["kernels"] if k["verdict"] != "proved"]
    if plan.get("sizes"):
        plan = _open_sizes.bound(plan, _open_sizes.sizes_of(plan, [arrays[p["name"]].shape for p in plan["inputs"]]))
    kernels = tilewright.loads((out / "kernels.py").read_text(), name="rule.py").kernels
    names = {v: k for k, v in TYPES.items()}
    values = {name: _room(x.shape, x.dtype, x) for name, x in arrays.items()}
    for p in plan["parameters"]:
        dtype = numpy.dtype(names[p["dtype"]])
        values[p["name"]] = _room(p["shape"], dtype, numpy.array([float(v) if isinstance(v, str) else v for v in p["values"]], dtype).reshape(p["shape"]))
    for launch in plan["launches"]:
        views = []
        for a in launch["arguments"]:
            if a["buffer"] not in values:
                about = plan["buffers"][a["buffer"]]
                values[a["buffer"]] = _room(about["shape"], numpy.dtype(names[about["dtype"]]))
            flat = values[a["buffer"]].reshape(-1)[a["offset"]:]
            views.append(numpy.lib.stride_tricks.as_strided(flat, a["shape"], [s * flat.itemsize for s in a["strides"]]))
        kernels[launch["kernel"]](*views)
    return [values[o["buffer"]].reshape(o["shape"]) for o in plan["outputs"]], report


def _room(shape, dtype, values=None):
    """An array that begins at a multiple of 16 bytes; what is not said is set to what no result is."""
    room = numpy.full(math.prod(shape) * dtype.itemsize + 16, 0x7B, numpy.uint8)
    at = -room.ctypes.data % 16
    x = room[at:at + math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)
    if values is not None:
        x[...] = values
    return x
