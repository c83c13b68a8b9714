"""Modules of which only parts can be graphs: kernels for these, torch's operators between them."""
from . import graph as _graph
from ._library import TilewrightError


class Parts:
    """A callable; `report` has the kernels of all parts and the names of the operators that stay with torch."""

    def __init__(self, gm, parameters, report):
        self._gm, self._parameters, self.report = gm, parameters, report

    def __call__(self, *inputs):
        import torch
        inputs = [torch.full((), v, dtype=torch.float32) if isinstance(v, float) else v for v in inputs]
        with torch.no_grad():
            out = self._gm(self._parameters, inputs)
        return tuple(out) if isinstance(out, list) else out


def _checked(gm, error):
    """An operator that overwrites its operand would need to know who else sees it."""
    for n in gm.graph.nodes:
        name = getattr(n.target, "_opname", "")
        kept = name == "copy_" and not n.users and n.args[0].op == "placeholder"  # of what the caller sees
        if n.op == "call_function" and name.endswith("_") and not name.endswith("__") and not kept:
            raise error


def in_parts(module, example, tf32, error):
    """`error`: why the whole is no graph; raised again where no part is one either."""
    import torch
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import OperatorSupportBase
    from .compiled import Compiled, generate

    class Known(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return _graph.knows(node)

    gm, names = _graph.traced(module, example)
    _checked(gm, error)
    fused = CapabilityBasedPartitioner(gm, Known(), allows_single_node_partition=True).partition_and_fuse()
    report = {"graph": type(module).__name__, "kernels": [], "unsupported": set(), "notes": [], "proved": True, "composition": "parts, run one after the other by torch"}
    parts = 0
    for n in fused.graph.nodes:
        if n.op == "call_function" and getattr(n.target, "__name__", "") != "getitem":
            report["unsupported"].add(getattr(n.target, "_opname", str(n.target)))
        if n.op != "call_module":
            continue
        part = getattr(fused, n.target)
        try:
            inputs = [p for p in part.graph.nodes if p.op == "placeholder"]
            for p, given in zip(inputs, n.args):
                p.meta.setdefault("val", given.meta["val"])
            made, notes = _graph.from_fx(part, [("inputs", f"x{i}") for i in range(len(inputs))], f"part{parts}")
            source, plan, about = generate(made, False, tf32)
        except (_graph.Unsupported, TilewrightError) as refused:
            report["unsupported"].update(getattr(refused, "names", []) or [str(refused).splitlines()[0]])
            continue
        compiled = Compiled(source, plan, about, {})
        setattr(fused, n.target, _Part(compiled))
        report["kernels"] += [dict(k, part=parts) for k in about["kernels"]]
        report["proved"] = report["proved"] and about["proved"]
        report["notes"] += notes
        parts += 1
    if parts == 0:
        raise error
    report["unsupported"] = sorted(report["unsupported"])
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    return Parts(fused, [state[name].detach() for name in names], report)


def _Part(compiled):
    import torch

    class Part(torch.nn.Module):
        def forward(self, *inputs):
            return compiled(*inputs)
    return Part()
