"""Graphs whose sizes are known at launch (docs/graph.md, Open sizes).

A module is traced once with symbols for the sizes that vary. What the trace asks about them (a branch on a length) must hold for all values, or the size is no open one.
The traced operators are then written down as a graph twice, with two primes in the place of each symbol: numbers of shapes that are made of the primes are the
sizes, and everything else must be the same in both, or it hangs on the size in a way that graphs have no word for.
"""
import math

from ._torch_rules import Unsupported

_PRIMES = [10007, 10009, 10037, 10039, 10061, 10067, 10069, 10079, 10091, 10093, 10099, 10103, 10111, 10133, 10139, 10141]
LEAST = 2  # torch makes a graph of its own for lengths of 0 and 1


def trace(module, arguments, name="graph"):
    """(graph JSON without the ranges of its sizes, notes, names of the parameters). `arguments`: tensors with the names of their open dimensions, as (tensor, {dimension: name}), or
    the name of a size, where the module takes that as a number."""
    import torch
    from torch._dispatch.python import enable_python_dispatcher
    from torch._dynamo.source import ConstantSource
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
    from . import graph as _graph
    env = ShapeEnv(duck_shape=False)
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=env)
    names = sorted({n for a in arguments for n in ([a] if isinstance(a, str) else a[1].values())})
    symbols, sizes = {}, {}
    for n, hint in zip(names, _PRIMES[::-1]):
        source = ConstantSource(f"open_{n}")
        symbols[n] = env.create_symbol(hint, source=source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None)
        sizes[n] = env.create_symintnode(symbols[n], hint=hint, source=source)
    given = []
    with mode:
        for a in arguments:
            if isinstance(a, str):
                given.append(sizes[a])
            else:
                x, dims = a
                given.append(torch.empty([sizes[dims[d]] if d in dims else int(s) for d, s in enumerate(x.shape)], dtype=x.dtype, device="cpu"))
    tensors = [i for i, a in enumerate(arguments) if not isinstance(a, str)]

    def size_in(inputs, name):
        return next((x.shape[d] for x, i in zip(inputs, tensors) for d, n in arguments[i][1].items() if n == name), sizes[name])

    class Bound(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, *inputs):
            return self.module(*[inputs[tensors.index(i)] if i in tensors else size_in(inputs, a) for i, a in enumerate(arguments)])

    with enable_python_dispatcher():
        gm, held = _graph.traced(Bound(), [given[i] for i in tensors], fake_mode=mode)
    least = _least_values(env, {symbols[n]: n for n in names})
    placeholders = [("parameters", _graph.parameter_name(n)) for n in held] + [("inputs", f"x{i}") for i in range(len(tensors))]
    made = [_graph.from_fx(_at(gm, {symbols[n]: p for n, p in zip(names, primes)}), placeholders, name) for primes in (_PRIMES[:len(names)], _PRIMES[len(names):2 * len(names)])]
    texts = [_named(g, dict(zip(names, primes))) for (g, _), primes in zip(made, (_PRIMES[:len(names)], _PRIMES[len(names):2 * len(names)]))]
    if texts[0] != texts[1]:
        parted = next((a["name"] for a, b in zip(texts[0]["nodes"] + texts[0]["parameters"], texts[1]["nodes"] + texts[1]["parameters"]) if a != b), "the graph")
        raise Unsupported(f"{parted} hangs on an open size in another way than by its shape", ["open size"])
    graph = dict(texts[0], sizes=[{"name": n, "least": least[n]} for n in names])
    used = {v for node in graph["nodes"] for v in node["inputs"] if isinstance(v, str)} | set(graph["outputs"])
    graph["parameters"] = [p for p in graph["parameters"] if p["name"] in used]
    return graph, made[0][1], [n.removeprefix("module.") for n in held]


def _least_values(env, symbols):
    """By size, from which value on all is true that the trace found true: tried for every value up to 4096 of one size, and on a grid of several."""
    import itertools
    import sympy
    least = dict.fromkeys(symbols.values(), LEAST)
    for symbol, name in symbols.items():
        if env.replacements.get(symbol) is not None:
            raise Unsupported(f"the size {name} is always {env.replacements[symbol]}", ["open size"])
    for guard in env.guards:
        own = sorted(guard.expr.free_symbols, key=str)
        if not own:
            continue
        test = sympy.lambdify(own, guard.expr, modules=[_FUNCTIONS, "math"])
        line = range(LEAST, 4097) if len(own) == 1 else [*range(LEAST, 20), 31, 64, 97, 128, 1000, 1024, 4096]
        failing = [values for values in itertools.product(line, repeat=len(own)) if not test(*values)]
        if failing and (len(own) > 1 or failing[-1][0] >= _FEW):
            told = ", ".join(f"{symbols.get(s, s)} = {v}" for s, v in zip(own, failing[-1]))
            raise Unsupported(f"the module asks whether {guard.expr}, which does not hold for {told}", ["open size"])
        if failing:
            least[symbols[own[0]]] = max(least[symbols[own[0]]], failing[-1][0] + 1)
    return least


_FEW = 64  # smaller sizes may have kernels of their own, each
_FUNCTIONS = {"Mod": lambda a, b: a % b, "PythonMod": lambda a, b: a % b, "FloorDiv": lambda a, b: a // b, "CleanDiv": lambda a, b: a // b, "CeilDiv": lambda a, b: -(-a // b),
              "IntTrueDiv": lambda a, b: a / b, "FloatTrueDiv": lambda a, b: a / b, "TruncToInt": math.trunc, "FloorToInt": math.floor, "CeilToInt": math.ceil,
              "ToFloat": float, "PowByNatural": pow, "Max": max, "Min": min, "Eq": lambda a, b: a == b, "Ne": lambda a, b: a != b}


def _at(gm, values):
    """The traced graph with numbers for its symbols: what is made of sizes alone is no node any more."""
    import torch
    known, to = {}, torch.fx.Graph()

    def number(v):
        if isinstance(v, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            v = v.node.expr.subs(values) if hasattr(v.node, "expr") else v
            return int(v) if getattr(v, "is_integer", False) else float(v)
        return v

    def told(value):
        if isinstance(value, torch.Tensor):
            return torch.empty([number(s) for s in value.shape], dtype=value.dtype, device="meta")
        return type(value)(told(v) for v in value) if isinstance(value, (list, tuple)) else value

    for n in gm.graph.nodes:
        value = n.meta.get("val")
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) and n.op != "placeholder":
            known[n] = number(value)
            continue
        args, kwargs = (torch.fx.node.map_arg(v, lambda m: known[m]) for v in (n.args, n.kwargs))
        args, kwargs = (torch.fx.node.map_aggregate(v, number) for v in (args, kwargs))
        known[n] = to.create_node(n.op, n.target, args, kwargs, name=n.name, type_expr=n.type)
        known[n].meta = dict(n.meta, val=told(value))
    return torch.fx.GraphModule(gm, to)


def _named(graph, primes):
    def extent(d):
        factors = []
        for name, p in primes.items():
            while d % p == 0:
                factors.append(name)
                d //= p
        return d if not factors else "*".join(factors if d == 1 else [*factors, str(d)])

    out = dict(graph)
    for key in ("inputs", "parameters", "nodes"):
        out[key] = [dict(entry, shape=[extent(d) for d in entry["shape"]]) for entry in graph[key]]
    return out


def ranged(graph, most):
    """The graph with the range of each size."""
    return dict(graph, sizes=[dict(size, most=most[size["name"]]) for size in graph["sizes"]])


def roomy(value):
    """The largest value of a size that kernels are made for, when one such value is met: more than a few times of it, so that few sets are made."""
    return min(1 << 20, max(256, 1 << (4 * value - 1).bit_length()))


class Beyond(Exception):
    """Sizes that a set of kernels is not for."""

    def __init__(self, sizes):
        super().__init__(f"sizes out of range: {sizes}")
        self.sizes = sizes


def sizes_of(plan, shapes):
    """The values of a plan's sizes, by the shapes of its inputs; None where the shapes are others."""
    found, later = {}, []
    for about, shape in zip((a for a in plan["inputs"] if "random" not in a), shapes):
        if len(shape) != len(about["shape"]):
            return None
        for d, s in zip(about["shape"], shape):
            if isinstance(d, list) and sum(isinstance(f, str) for f in d) == 1:
                name, count = next(f for f in d if isinstance(f, str)), math.prod(f for f in d if isinstance(f, int))
                if s % count or found.setdefault(name, s // count) != s // count:
                    return None
            later.append((d, s))
    if len(found) != len(plan["sizes"]) or any(number(d, found) != s for d, s in later):
        return None
    return found


def number(d, sizes):
    return d if isinstance(d, int) else math.prod(sizes[f] if isinstance(f, str) else f for f in d)


def bound(plan, sizes):
    """The plan with numbers for its sizes."""
    at = lambda dims: [number(d, sizes) for d in dims]  # noqa: E731
    launches = [dict(launch, arguments=[dict(a, shape=at(a["shape"]), strides=at(a["strides"]), offset=number(a["offset"], sizes)) for a in launch["arguments"]])
                for launch in plan["launches"]]
    shaped = lambda entries: [dict(e, shape=at(e["shape"])) for e in entries]  # noqa: E731
    return dict(plan, launches=launches, inputs=shaped(plan["inputs"]), parameters=shaped(plan["parameters"]), outputs=shaped(plan["outputs"]),
                buffers={k: dict(b, shape=at(b["shape"])) for k, b in plan["buffers"].items()})
