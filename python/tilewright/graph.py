"""PyTorch modules to graph JSON (docs/graph.md).

    python3 -m tilewright.graph FILE.py -o graph.json     # a file with Model, get_inputs and get_init_inputs

The module is traced with fake tensors: nothing of its size is allocated and nothing is computed. Operators that have no entry here are named in
`Unsupported`; nothing is guessed.
"""
import argparse
import json
import math
import sys
import warnings

from . import _torch_complex
from ._torch_rules import DTYPES, Arguments, Keywords, Unsupported, dtype_of, n_shape, operator_table, unread_arguments

FORMAT = {"format": "tilewright-graph", "version": 1}


class _Graph:
    def __init__(self, name):
        self.name, self.inputs, self.parameters, self.nodes, self.notes = name, [], [], [], []
        self.values, self.several, self._shapes, self._dtypes, self._count, self._streams = {}, {}, {}, {}, 0, 0

    def shape(self, value):
        return self._shapes.get(value, [])

    def _add(self, name, op, inputs, attributes, shape, dtype):
        if 0 in shape:
            self._shapes[name], self._dtypes[name] = list(shape), dtype
            return name  # nothing is computed of nothing: it may only be a part of a concatenation
        empty = [v for v in inputs if isinstance(v, str) and 0 in self.shape(v)]
        if empty and op != "cat":
            raise Unsupported("a tensor without elements", ["empty tensor"])
        inputs = [v for v in inputs if v not in empty]
        entry = {"name": name, "op": op, "inputs": [_number(v) if isinstance(v, (int, float)) else v for v in inputs], "shape": list(shape), "dtype": dtype}
        if attributes:
            entry["attributes"] = {key: _number(v) if isinstance(v, float) else v for key, v in attributes.items()}
        self.nodes.append(entry)
        self._shapes[name], self._dtypes[name] = list(shape), dtype
        return name

    def node(self, n, op, inputs, attributes=None):
        value = n.meta["val"]
        value = value[0] if isinstance(value, (list, tuple)) else value
        return self._add(n.name, op, inputs, attributes, [int(s) for s in value.shape], dtype_of(value))

    def extra(self, n, op, inputs, attributes=None, like=None, shape=None, dtype=None, type_of=None):
        """A node of our own on the way to `n`, of its type, or of that of another value."""
        self._count += 1
        value = n.meta["val"]
        value = value[0] if isinstance(value, (list, tuple)) else value
        dtype = self._dtypes[type_of] if type_of is not None else dtype
        return self._add(f"{n.name}.{self._count}", op, inputs, attributes, self._shapes[like] if like is not None else shape, dtype or dtype_of(value))

    def dtype(self, value):
        return self._dtypes.get(value, "f32")

    def constant(self, n, value):
        """A tensor that is known, as a parameter with values."""
        import torch
        if value.numel() > _MOST_CONSTANT:
            raise Unsupported(f"a constant of {value.numel()} elements", ["constant"])
        value = value.detach().contiguous()
        flat = value.reshape(-1).tolist()
        if value.is_floating_point() and bool(torch.isnan(value).any()):
            raise Unsupported("a constant that holds NaN", ["constant"])
        name = f"constant_{n.name}_{len(self.parameters)}"
        self.leaf("parameters", name, value)
        self.parameters[-1]["values"] = [_number(v) if isinstance(v, float) else int(v) for v in flat]
        return name

    def numbers(self, n, values, shape, dtype):
        """The same of plain numbers."""
        values = list(values)
        for p in self.parameters:  # one vector of positions serves all that ask for it
            if p.get("values") == values and p["shape"] == list(shape) and p["dtype"] == dtype:
                return p["name"]
        name = f"constant_{n.name}_{len(self.parameters)}"
        self.parameters.append({"name": name, "shape": list(shape), "dtype": dtype, "values": values})
        self._shapes[name], self._dtypes[name] = list(shape), dtype
        return name

    def take(self, n, x, dim, places, last=True, shape=None):
        """Along a dimension, the elements at these places, which are known."""
        import torch
        index = self.constant(n, torch.as_tensor(places, dtype=torch.int64))
        if last:
            return self.node(n, "index_select", [x, index], {"dim": dim})
        to = self.shape(x)
        return self.extra(n, "index_select", [x, index], {"dim": dim}, shape=shape or to[:dim] + [len(places)] + to[dim + 1:], type_of=x)

    def random(self, n, shape=None):
        """Uniform numbers from 0 to 1: another stream of the same four words for each call, and other words for each launch of the graph."""
        if not self._streams:
            self.inputs.append({"name": "random_words", "shape": [4], "dtype": "i32", "random": "words"})
            self._shapes["random_words"], self._dtypes["random_words"] = [4], "i32"
            self.notes.append("random numbers are made in the kernels, from four words that torch's generator draws for each call; they are not torch's own numbers")
        self._streams += 1
        return self.extra(n, "uniform", ["random_words"], {"stream": self._streams - 1}, shape=n_shape(n) if shape is None else shape, dtype="f32")

    def refuse(self, n):
        raise Unsupported(f"{n.target} with these attributes is not supported", [str(n.target)])

    def leaf(self, kind, name, value):
        if 0 in value.shape:
            return self.held(name, value)  # as a node without elements
        entry = {"name": name, "shape": [int(s) for s in value.shape], "dtype": dtype_of(value)}
        getattr(self, kind).append(entry)
        self._shapes[name], self._dtypes[name] = entry["shape"], entry["dtype"]

    def held(self, name, value):
        """A tensor of which only shape and type are known."""
        self._shapes[name], self._dtypes[name] = [int(s) for s in value.shape], dtype_of(value)

    def to_json(self, outputs):
        return dict(FORMAT, name=self.name, inputs=self.inputs, parameters=self.parameters, nodes=self.nodes, outputs=outputs)


_MOST_CONSTANT = 1 << 22


def _number(v):
    """JSON has no infinite numbers."""
    v = float(v)
    if math.isnan(v):
        raise Unsupported("a number that is NaN", ["NaN"])
    return v if math.isfinite(v) else "inf" if v > 0 else "-inf"


def constants(graph):
    """The parameters of a graph whose values it has itself, by name."""
    return {p["name"]: constant_of(p) for p in graph["parameters"] if "values" in p}


def constant_of(about):
    import torch
    names = {v: k for k, v in DTYPES.items()}
    return torch.tensor([float(v) if isinstance(v, str) else v for v in about["values"]], dtype=getattr(torch, names[about["dtype"]].split(".")[1])).reshape(about["shape"])


class _Constants:
    """What an aten graph makes of nothing: positions, tables. Nodes that graphs have an operator for stay nodes, unless they use such a value."""

    def __init__(self, gm, table):
        self._gm, self.table, self._values = gm, table, {}

    def value(self, n):
        """A tensor, or nothing where the node depends on an argument."""
        if n.name not in self._values:
            self._values[n.name] = self._evaluated(n)
        return self._values[n.name]

    def folds(self, n):
        """Whether a node is taken as a constant: its operator is unknown, or it uses one that is so."""
        import torch
        if n.op == "get_attr":
            return True
        if n.op != "call_function" or not isinstance(self.value(n), torch.Tensor) or self.value(n).numel() > _MOST_CONSTANT:
            return False
        return getattr(n.target, "_opname", "") not in self.table or any(self.folds(i) for i in n.all_input_nodes)

    def _evaluated(self, n):
        import torch
        from torch._subclasses.fake_tensor import unset_fake_temporarily
        if n.op == "get_attr":
            found = getattr(self._gm, n.target)
            return getattr(found, "constant", None) if isinstance(found, torch._subclasses.fake_tensor.FakeTensor) else found.detach()
        if n.op != "call_function" or any(self.value(i) is None for i in n.all_input_nodes):
            return None
        name = getattr(n.target, "_opname", getattr(n.target, "__name__", ""))
        if name in _DRAWN or name.endswith("_") and not name.endswith("__"):
            return None
        args = torch.fx.node.map_arg(n.args, self.value)
        kwargs = {k: "cpu" if k == "device" else v for k, v in torch.fx.node.map_arg(n.kwargs, self.value).items()}
        try:
            with unset_fake_temporarily(), torch.no_grad():
                return n.target(*args, **kwargs)
        except (RuntimeError, TypeError, ValueError, NotImplementedError):
            return None


_DRAWN = {"rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "bernoulli", "native_dropout", "dropout", "normal", "multinomial", "empty", "empty_like", "new_empty", "uniform"}


def _patterns(gm):
    """Idioms that are one operator: flip(cumsum(flip(x))) and cat([0, cumsum(x without its last)])."""
    for n in list(gm.graph.nodes):
        name = getattr(n.target, "_opname", "")
        if name == "flip" and getattr(getattr(n.args[0], "target", None), "_opname", "") == "cumsum":
            scan = n.args[0]
            inner = scan.args[0]
            rank = n.args[0].meta["val"].dim()
            if getattr(getattr(inner, "target", None), "_opname", "") == "flip" and [d % rank for d in inner.args[1]] == [d % rank for d in n.args[1]] == [scan.args[1] % rank] and len(scan.users) == 1:
                n.meta["tilewright"] = ("cumsum", inner.args[0], {"dim": scan.args[1], "reverse": True})
                scan.meta["skip"] = True
                if len(inner.users) == 1:
                    inner.meta["skip"] = True
        if name == "cat" and len(n.args[0]) == 2:
            dim = (n.args[1] if len(n.args) > 1 else 0) % n.meta["val"].dim()
            first, scan = n.args[0]
            part = scan.args[0] if getattr(scan.target, "_opname", "") == "cumsum" else None
            if part is None or scan.args[1] % n.meta["val"].dim() != dim or first.meta["val"].shape[dim] != 1 or getattr(part.target, "_opname", "") != "slice":
                continue
            source = part.args[0]
            start = part.args[2] if len(part.args) > 2 else 0
            if not start and part.meta["val"].shape[dim] == source.meta["val"].shape[dim] - 1 and source.meta["val"].shape == n.meta["val"].shape and _zeros(first):
                n.meta["tilewright"] = ("cumsum", source, {"dim": dim, "exclusive": True})
                for used in (scan, part):
                    used.meta["skip"] = True


def knows(n):
    """Whether a node of an aten graph is an operator with an entry here, by its name; its attributes may still be refused."""
    if n.op != "call_function":
        return False
    if getattr(n.target, "__name__", "") == "getitem":
        return knows(n.args[0])
    return getattr(n.target, "_opname", "") in operator_table()


def _zeros(n):
    while getattr(n.target, "_opname", "") in ("unsqueeze", "view", "expand", "clone", "reshape"):
        n = n.args[0]
    name = getattr(n.target, "_opname", "")
    return name in ("zeros", "zeros_like") or (name in ("full", "full_like") and n.args[1] == 0)


def from_fx(gm, placeholders, name="graph"):
    """A traced aten graph; `placeholders`: for each of its arguments ("inputs" or "parameters", name)."""
    from torch.utils._pytree import tree_flatten
    table, g, missing, outputs, index = operator_table(), _Graph(name), [], [], 0
    _patterns(gm)
    _drop_unused(gm, g.notes)
    known = _Constants(gm, table)

    def value(v):
        if isinstance(v, (list, tuple)):
            return [value(x) for x in v]
        if not (hasattr(v, "op") and hasattr(v, "name")):
            return v
        if g.values[v.name] is None:
            g.values[v.name] = _torch_complex.constant(g, v, known.value(v))
        return g.values[v.name]

    for n in gm.graph.nodes:
        if n.op == "placeholder":
            kind, label = placeholders[index]
            index += 1
            g.leaf(kind, label, n.meta["val"])
            g.values[n.name] = label
        elif n.op == "output":
            flat = tree_flatten(n.args[0])[0]
            if not missing:
                outputs = [value(v) for v in flat if v is not None]
                if any(isinstance(v, str) and 0 in g.shape(v) for v in outputs):
                    raise Unsupported("a tensor without elements", ["empty tensor"])
                if any(isinstance(v, _torch_complex.Complex) for v in outputs):
                    raise Unsupported("a result of complex numbers", ["complex"])
        elif n.op == "get_attr":
            n.meta["val"] = constant = known.value(n)
            if constant is None and n.users and all(_overwrites(user, n) for user in n.users):
                g.values[n.name] = n.name  # nobody reads what it held
                g.held(n.name, getattr(gm, n.target))
                g.notes.append(f"{n.target}, a tensor that the module keeps, is not overwritten")
            elif constant is None:
                missing.append(f"constant tensor {n.target}")
                g.values[n.name] = n.name
            elif constant.numel() == 0:
                g.held(n.name, constant)
                g.values[n.name] = n.name
            elif constant.numel() == 1 and constant.is_floating_point():
                g.values[n.name] = g.node(n, "full", [], {"value": float(constant)})
            else:
                g.values[n.name] = None  # written where it is used
        elif n.op == "call_function":
            if n.meta.get("skip"):
                continue
            if known.folds(n):
                g.values[n.name] = None
                continue
            if "tilewright" in n.meta:
                op, source, attributes = n.meta["tilewright"]
                g.values[n.name] = g.node(n, op, [value(source)], attributes)
                continue
            if getattr(n.target, "__name__", "") == "getitem":
                source, which = n.args
                if source.name in g.several:
                    g.values[n.name] = g.several[source.name][which](n)
                elif which == 0:
                    g.values[n.name] = g.values.get(source.name)
                else:
                    missing.append(f"result {which} of {source.target}")
                    g.values[n.name] = n.name
                continue
            opname = getattr(n.target, "_opname", str(n.target))
            args, kwargs = Arguments(value(v) for v in n.args), Keywords((k, value(v)) for k, v in n.kwargs.items())
            if _torch_complex.concerns(opname, args):
                g.values[n.name] = n.name if missing else _torch_complex.write(g, n, opname, args, kwargs)
                continue
            write = table.get("copy" if opname == "copy_" and _overwrites(n, n.args[0]) else opname)
            if write is None or (opname in ("max", "min") and len(n.args) < 2):
                if opname in ("max", "min"):
                    write = table["a" + opname]
                else:
                    missing.append(opname)
                    g.values[n.name] = n.name
                    continue
            if missing:
                g.values[n.name] = n.name
                continue
            g.known = known
            g.values[n.name] = write(g, n, args, kwargs)
            unread = unread_arguments(n, args, kwargs)
            if unread:
                raise Unsupported(f"{n.target} with {', '.join(unread)} is not supported", [str(n.target)])
    if missing:
        raise Unsupported("not supported: " + ", ".join(sorted(set(missing))), sorted(set(missing)))
    return g.to_json(outputs), g.notes


def _overwrites(n, held):
    """Whether a node puts something in place of all that a tensor of the module holds."""
    return getattr(n.target, "_opname", "") == "copy_" and n.args[0] is held and held.op == "get_attr"


def _drop_unused(gm, notes):
    """In-place updates of buffers and what feeds only them."""
    for n in gm.graph.nodes:
        if n.op == "call_function" and getattr(n.target, "_opname", "") == "copy_" and not n.users:
            notes.append(f"{n.args[0]} is not overwritten, as the module would")
    for n in reversed(list(gm.graph.nodes)):
        written = getattr(n.target, "_opname", "").endswith("_") and n.args[0].op != "placeholder"
        if n.op == "call_function" and not n.users and "tilewright" not in n.meta and not written:
            gm.graph.erase_node(n)


def parameter_name(name):
    """What a module's parameter or buffer is called in its graph."""
    return "p_" + name.replace(".", "_")


_MOST_NODES = 4096  # of a graph: a loop over many steps is written out


def _counted():
    """A mode in which a module that would have too many nodes is refused at once, not after minutes."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counted(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += 1
            if self.count > 2 * _MOST_NODES:
                raise Unsupported(f"more than {_MOST_NODES} operators: a loop over many steps is written out", ["loop"])
            return func(*args, **(kwargs or {}))
    return Counted()


# Operators whose decomposition gives other values than the operator: of targets that end before the last class, torch 2.11 counts the rest too.
_NOT_AS_WRITTEN = {"multilabel_margin_loss_forward"}


def traced(module, inputs, fake_mode=None):
    """(aten graph, names of the parameters in order) of a module called with these inputs, which may be fake."""
    import torch
    from torch._decomp import core_aten_decompositions, get_decompositions
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
    aten = torch.ops.aten
    decompositions = get_decompositions([aten.addmv, aten.baddbmm, aten.triplet_margin_loss, aten.cosine_embedding_loss,
                                         aten.hinge_embedding_loss, aten.soft_margin_loss, aten.margin_ranking_loss, aten.diag_embed, aten.std,
                                         aten.norm, aten.selu, aten.addcmul, aten.addcdiv, aten.lerp, aten.softshrink, aten.threshold, aten.logit, aten.glu])
    # What has no entry here is written in simpler operators, where torch knows how.
    entries = operator_table()
    for op, rule in core_aten_decompositions().items():
        if getattr(op, "_opname", "") not in entries and getattr(op, "_opname", "") not in _NOT_AS_WRITTEN:
            decompositions.setdefault(op, rule)
    state = dict(module.named_parameters())
    buffers = dict(module.named_buffers())
    names = list(state) + list(buffers)
    values = list(state.values()) + list(buffers.values())
    mode = fake_mode or FakeTensorMode(allow_non_fake_inputs=True)

    # A float is a tensor without dimensions; a whole number, a truth value or None is part of the graph.
    inputs = [torch.empty((), dtype=torch.float32) if isinstance(v, float) else v for v in inputs]
    if not all(isinstance(v, torch.Tensor) for v in inputs):
        raise Unsupported("inputs that are neither tensors nor floats", ["inputs"])

    def call(values, inputs):
        return torch.func.functional_call(module, dict(zip(names, values)), tuple(inputs))

    def fake(v):
        known = not isinstance(v, torch.Tensor) or isinstance(v, torch._subclasses.fake_tensor.FakeTensor) and fake_mode is not None
        return v if known else mode.from_tensor(v, static_shapes=True)

    with mode, torch.no_grad():
        given = [fake(v.detach()) for v in values], [fake(v) for v in inputs]
        for step in (call, None):  # written in simple operators; then without those that overwrite their operands
            step = step or torch.func.functionalize(gm, remove="mutations")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of settings of a library that are looked at on the way
                    # Recurrent layers are one operator of that library.
                    with torch.backends.mkldnn.flags(enabled=False), _counted():
                        gm = make_fx(step, decomposition_table=decompositions, tracing_mode="real", _allow_non_fake_inputs=True)(*given)
            except (DataDependentOutputException, DynamicOutputShapeException) as error:
                raise Unsupported(f"{error.func}: what follows depends on the values of a tensor, not on shapes alone", [str(error.func)]) from None
            except GuardOnDataDependentSymNode as error:
                raise Unsupported(f"what follows depends on the value of a tensor, {error.cond}, not on shapes alone", ["item"]) from None
            except RuntimeError as error:  # of torch's own: what still overwrites an operand is refused below, or known to be harmless
                if step is call or "INTERNAL ASSERT" not in str(error):
                    raise
    return gm, names


def trace(module, inputs, name="graph", fake_mode=None):
    """(graph JSON, notes, names of the parameters in order) of a module called with these inputs, which may be fake."""
    gm, names = traced(module, inputs, fake_mode)
    placeholders = [("parameters", parameter_name(n)) for n in names] + [("inputs", f"x{i}") for i in range(len(inputs))]
    graph, notes = from_fx(gm, placeholders, name)
    used = {v for node in graph["nodes"] for v in node["inputs"] if isinstance(v, str)} | set(graph["outputs"])
    graph["parameters"] = [p for p in graph["parameters"] if p["name"] in used]
    return graph, notes, names


def _run_file(path):
    import runpy
    return runpy.run_path(path, run_name="tilewright_task")


def import_file(path, name=None):
    """A file with Model, get_inputs and get_init_inputs; nothing in it is computed: tensors are fake."""
    import os
    import torch
    from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    scope = _run_file(path)
    torch.manual_seed(42)
    try:
        with mode:
            module = scope["Model"](*scope["get_init_inputs"]())
            inputs = scope["get_inputs"]()
    except DataDependentOutputException:  # a module that looks at values while it is made
        mode = None
        module, inputs = scope["Model"](*scope["get_init_inputs"]()), scope["get_inputs"]()
    return trace(module, inputs, name or os.path.splitext(os.path.basename(path))[0], fake_mode=mode)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="tilewright.graph", description="a PyTorch file (Model, get_inputs, get_init_inputs) to graph JSON")
    parser.add_argument("file")
    parser.add_argument("-o", "--output", default="-")
    options = parser.parse_args(arguments)
    try:
        graph, notes, _ = import_file(options.file)
    except Unsupported as error:
        print(f"tilewright import: {error}", file=sys.stderr)
        return 3
    text = json.dumps(graph, indent=1) + "\n"
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if options.output == "-":
        sys.stdout.write(text)
    else:
        with open(options.output, "w", encoding="utf-8") as f:
            f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
