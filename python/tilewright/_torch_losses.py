"""The loss of one class for each row: with weights of classes, and rows that are left out."""
from ._torch_steps import Steps


def _get(a, i, default=None):
    return a[i] if len(a) > i and a[i] is not None else default


def _are_classes(g, target):
    """Whether a target is known to name a class in each row."""
    made = next((m for m in g.nodes if m["name"] == target), None)
    return made is not None and made["op"] in ("argmax", "argmin") or any(p["name"] == target and min(p.get("values") or [-1]) >= 0 for p in g.parameters)


def _logits(g, x):
    """What was normalised, where a logarithm of probabilities over the classes was just made; else nothing."""
    made = next((m for m in g.nodes if m["name"] == x), None)
    fits = made is not None and made["op"] == "log_softmax" and made["attributes"]["dim"] in (1, -1) and len(made["shape"]) == 2
    return made["inputs"][0] if fits else None


def _nll(g, n, a, k):
    """Rows whose target is `ignore_index` have no part in it; the mean is by the weights of the others."""
    x, target, weight, how, ignored = a[0], a[1], _get(a, 2), ["none", "mean", "sum"][_get(a, 3, 1)], _get(a, 4, -100)
    s = Steps(g, n)
    one = len(g.shape(x)) == 1
    if one:
        x, target = s.reshape(x, [1, *g.shape(x)]), s.reshape(target, [1])
    rows, classes = g.shape(x)
    logits = _logits(g, x)
    attributes = {} if logits else {"log_probabilities": True}
    all_count = weight is None and _are_classes(g, target) and not 0 <= ignored < classes
    if all_count and not one:
        return g.node(n, "cross_entropy", [logits or x, target], dict(attributes, reduction=how))
    kept = s("ne", target, ignored)
    safe = s("where", kept, target, 0, dtype=s.dtype(target))
    each = s("cross_entropy", logits or x, safe, shape=[rows], dtype=s.dtype(x), reduction="none", **attributes)
    each = s("where", kept, each, 0.0, dtype=s.dtype(x))
    share = s.cast(kept, "f32")
    if weight is not None:
        share = s("where", kept, s("index_select", weight, safe, shape=[rows], dim=0), 0.0, dtype="f32")
        each = s("mul", each, share)
    if how == "none":
        return s.done(each)
    count = s("sum", share, shape=[], dims=[0], keepdim=False) if how == "mean" else None  # before the other one: the rows are then one kernel
    total = s("sum", each, shape=[], dims=[0], keepdim=False)
    return s.done(total if how == "sum" else s("div", total, count, shape=[], dtype=s.dtype(x)))


def table():
    return {"nll_loss_forward": _nll, "nll_loss": _nll}
