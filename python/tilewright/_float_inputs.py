"""Floats that torch.compile gives to a graph as inputs (a norm's epsilon, a scale), so that other values need no new graph.

They come as tensors of one number that the graph asks for it by `.item()`. Kernels have them as constants: there is a set for each combination of values that is met, a few of them.
"""
MOST_SETS = 8


def places(gm, inputs):
    """The inputs that are such floats."""
    import torch
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    return [i for i, (n, x) in enumerate(zip(placeholders, inputs))
            if isinstance(x, torch.Tensor) and x.dim() == 0 and x.dtype == torch.float64 and n.users and all(_asks(u) for u in n.users)]


def _asks(node):
    return node.op == "call_method" and node.target == "item"


def _with_values(gm, at, values):
    import torch
    given = dict(zip((n for i, n in enumerate(n for n in gm.graph.nodes if n.op == "placeholder") if i in at), values))
    to, known = torch.fx.Graph(), {}
    for n in gm.graph.nodes:
        if n in given:
            continue
        known[n] = given[n.args[0]] if _asks(n) and n.args[0] in given else to.node_copy(n, lambda m: known[m])
    return torch.fx.GraphModule(gm, to)


def by_value(gm, inputs, at, make):
    """A callable for the graph's inputs. `make(gm, inputs)` compiles the graph without those at `at`; the first time for the values that they have in `inputs`."""
    import logging
    made = {}

    def compiled(inputs):
        values = [float(inputs[i]) for i in at]
        rest = [x for i, x in enumerate(inputs) if i not in at]
        key = tuple(v.hex() for v in values)
        if key not in made:
            if len(made) >= MOST_SETS:
                logging.getLogger("tilewright").warning("left to torch: kernels for %d combinations of float inputs are made already", MOST_SETS)
                return gm.forward, inputs
            made[key] = make(_with_values(gm, at, values), rest)
        return made[key], rest

    first, _ = compiled(inputs)

    def call(*inputs):
        do, rest = compiled(inputs)
        return do(*rest)
    call.report = getattr(first, "report", None)
    return call
