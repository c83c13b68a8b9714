"""PyTorch modules to graph JSON (docs/graph.md).

    python3 -m tilewright.graph FILE.py -o graph.json     # a file with Model, get_inputs and get_init_inputs

The module is traced with fake tensors: nothing of its size is allocated and nothing is computed. Operators that have no entry here are named in
`Unsupported`; nothing is guessed.
"""
import argparse
import json
import sys

FORMAT = {"format": "tilewright-graph", "version": 1}
_DTYPES = {"torch.float32": "f32", "torch.float16": "f16", "torch.bfloat16": "bf16", "torch.int32": "i32", "torch.int64": "i64", "torch.bool": "bool"}


class Unsupported(Exception):
    """An operator, an attribute or a type that graphs do not have. `names`: of all operators that are not supported."""

    def __init__(self, message, names=()):
        super().__init__(message)
        self.names = list(names)


def _unary(op):
    return lambda g, n, a, k: g.node(n, op, [a[0]])


def _binary(op):
    def write(g, n, a, k):
        alpha = k.get("alpha", 1)
        b = a[1]
        if alpha != 1:
            b = b * alpha if isinstance(b, (int, float)) else g.extra(n, "mul", [b, alpha], like=b)
        return g.node(n, op, [a[0], b])
    return write


def _get(a, i, default=None):
    return a[i] if len(a) > i and a[i] is not None else default


def _dims(value):
    return None if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def _fold(op):
    def write(g, n, a, k):
        attributes = {"keepdim": bool(_get(a, 2, k.get("keepdim", False)))}
        dims = _dims(_get(a, 1))
        if dims:
            attributes["dims"] = dims
        return g.node(n, op, [a[0]], attributes)
    return write


def _window(value, count):
    value = _dims(value) or [1]
    return value * count if len(value) == 1 else value


def _pool(op, count):
    def write(g, n, a, k):
        kernel = _window(a[1], count)
        attributes = {"dims": count, "kernel": kernel, "stride": _window(a[2], count) if _get(a, 2) else kernel, "padding": _window(_get(a, 3, 0), count)}
        if op == "max_pool":
            attributes["dilation"] = _window(_get(a, 4, 1), count)
            attributes["ceil_mode"] = bool(_get(a, 5, False))
        else:
            attributes["ceil_mode"] = bool(_get(a, 4, False))
            attributes["count_include_pad"] = bool(_get(a, 5, True))
            if _get(a, 6) is not None:
                raise Unsupported("avg_pool with divisor_override", ["avg_pool"])
        return g.node(n, op, [a[0]], attributes)
    return write


def _conv(g, n, a, k):
    x, w, bias, stride, padding, dilation, transposed, output_padding, groups = a
    count = len(g.shape(x)) - 2
    attributes = {"stride": _window(stride, count), "padding": _window(padding, count), "dilation": _window(dilation, count), "groups": groups}
    if not _rounded(g.shape(x)[1] // groups, count, groups, transposed):
        attributes["tf32"] = False
    elif transposed or all(size == 1 for size in g.shape(w)[2:]):
        attributes["tf32"] = "even"
    if transposed:
        attributes.update(transposed=True, output_padding=_window(output_padding, count))
    return g.node(n, "conv", [x, w] + ([bias] if bias is not None else []), attributes)


def _rounded(channels, dims, groups, transposed):
    """Whether torch's library rounds the operands of such a convolution to tf32 where it may: measured on an H200, torch 2.11 (bench/kernelbench/precision.py)."""
    return groups == 1 and (transposed or dims < 3 or channels % 4 == 0)


def _dropout(g, n, a, k):
    """Zeros with probability p, by numbers that are drawn anew for each call."""
    x, p, training = a[0], float(a[1]), _get(a, 2, True)
    if not training or p == 0.0:
        return g.node(n, "copy", [x])
    u = g.random(n)
    kept = g.extra(n, "ge", [u, p], like=x, dtype="bool")
    return g.node(n, "where", [kept, g.extra(n, "mul", [x, 1.0 / (1.0 - p)], like=x), 0.0])


def _bernoulli(g, n, a, k):
    kept = g.extra(n, "lt", [g.random(n), float(_get(a, 1, 0.5))], shape=n_shape(n), dtype="bool")
    return g.node(n, "cast", [kept])


def _in_place(write):
    """Of an operator that overwrites its operand: only where nobody else reads that."""
    def checked(g, n, a, k):
        if len(n.args[0].users) != 1:
            g.refuse(n)
        return write(g, n, a, k)
    return checked


def _batch_norm(g, n, a, k):
    x, weight, bias = a[0], a[1], a[2]
    training = next((v for v in a[3:] if isinstance(v, bool)), True)
    numbers = [v for v in a[3:] if isinstance(v, float)]
    if training:
        if any(isinstance(v, str) for v in a[3:5]):
            g.notes.append("running statistics are not updated")
        return g.node(n, "batch_norm", _present(g, x, weight, bias), {"eps": numbers[-1]})
    mean, var = a[3], a[4]
    shape = [1, -1] + [1] * (len(g.shape(x)) - 2)
    channels = g.shape(x)[1]
    to = [channels if d == -1 else d for d in shape]
    part = lambda v: g.extra(n, "reshape", [v], shape=to)  # noqa: E731
    y = g.extra(n, "sub", [x, part(mean)], like=x)
    scale = g.extra(n, "rsqrt", [g.extra(n, "add", [part(var), numbers[-1]], shape=to)], shape=to)
    y = g.extra(n, "mul", [y, scale], like=x)
    if weight is not None:
        y = g.extra(n, "mul", [y, part(weight)], like=x)
    return g.node(n, "add", [y, part(bias) if bias is not None else 0.0])


def _present(g, x, weight, bias):
    if weight is None and bias is not None:
        raise Unsupported("a norm with a bias and no weight", ["norm"])
    return [v for v in (x, weight, bias) if v is not None]


def _group_norm(g, n, a, k):
    x, weight, bias, groups, eps = a[0], a[1], a[2], a[-2], a[-1]
    return g.node(n, "group_norm", _present(g, x, weight, bias), {"groups": groups, "eps": eps})


def _layer_norm(g, n, a, k):
    return g.node(n, "layer_norm", _present(g, a[0], _get(a, 2), _get(a, 3)), {"dims": len(a[1]), "eps": _get(a, 4, 1e-5)})


def _rms_norm(g, n, a, k):
    return g.node(n, "rms_norm", [a[0]] + ([a[2]] if _get(a, 2) is not None else []), {"dims": len(a[1]), "eps": _get(a, 3, 1.1920928955078125e-07)})


def _addmm(g, n, a, k):
    if k.get("alpha", 1) != 1 or k.get("beta", 1) != 1:
        raise Unsupported("addmm with alpha or beta", ["addmm"])
    return g.node(n, "add", [g.extra(n, "matmul", [a[1], a[2]], shape=n_shape(n)), a[0]])


def _attention(g, n, a, k):
    attributes = {"causal": bool(_get(a, 5, k.get("is_causal", False)))}
    if float(_get(a, 4, k.get("dropout_p", 0.0))) != 0.0:
        raise Unsupported("attention with dropout", ["dropout"])
    scale = k.get("scale", _get(a, 6))
    if isinstance(scale, (int, float)):
        attributes["scale"] = float(scale)
    mask = _get(a, 3, k.get("attn_mask"))
    return g.node(n, "attention", list(a[:3]) + ([mask] if isinstance(mask, str) else []), attributes)


def _slice(g, n, a, k):
    shape, dim = g.shape(a[0]), _get(a, 1, 0) % len(g.shape(a[0]))
    if _get(a, 4, 1) != 1:
        raise Unsupported("a slice with a step", ["slice"])
    start = _get(a, 2, 0)
    starts = [0] * len(shape)
    starts[dim] = min(shape[dim], start + shape[dim] if start < 0 else start)
    return g.node(n, "slice", [a[0]], {"starts": starts})


def _select(g, n, a, k):
    shape, dim = g.shape(a[0]), a[1] % len(g.shape(a[0]))
    starts = [0] * len(shape)
    starts[dim] = a[2] % shape[dim]
    kept = [1 if d == dim else s for d, s in enumerate(shape)]
    return g.node(n, "reshape", [g.extra(n, "slice", [a[0]], {"starts": starts}, shape=kept)])


def _permute(g, n, a, k):
    return g.node(n, "permute", [a[0]], {"order": [d % len(a[1]) for d in a[1]]})


def _transpose(g, n, a, k):
    rank = len(g.shape(a[0]))
    order = list(range(rank))
    if len(a) == 1:
        order.reverse()
    else:
        i, j = a[1] % rank, a[2] % rank
        order[i], order[j] = order[j], order[i]
    return g.node(n, "permute", [a[0]], {"order": order})


def _clamp(g, n, a, k):
    low, high = _get(a, 1, k.get("min")), _get(a, 2, k.get("max"))
    x = a[0]
    if isinstance(low, str):
        x = g.extra(n, "maximum", [x, low], like=x)
        low = None
    if isinstance(high, str):
        x = g.extra(n, "minimum", [x, high], like=x)
        high = None
    return g.node(n, "clamp", [x], {key: float(v) for key, v in (("min", low), ("max", high)) if v is not None})


def _nll(g, n, a, k):
    if _get(a, 2) is not None:
        raise Unsupported("a loss with class weights", ["nll_loss"])
    made = next((m for m in g.nodes if m["name"] == a[0]), None)
    if made is not None and made["op"] == "log_softmax" and made["attributes"]["dim"] in (1, -1) and len(made["shape"]) == 2:
        return g.node(n, "cross_entropy", [made["inputs"][0], a[1]], {"reduction": ["none", "mean", "sum"][a[3]]})
    return g.node(n, "cross_entropy", a[:2], {"log_probabilities": True, "reduction": ["none", "mean", "sum"][a[3]]})


def _loss(op, extra=()):
    def write(g, n, a, k):
        attributes = {"reduction": ["none", "mean", "sum"][_get(a, 2, 1)]}
        for position, key in extra:
            if _get(a, position) is not None:
                attributes[key] = float(a[position])
        return g.node(n, op, a[:2], attributes)
    return write


def _norm(g, n, a, k):
    attributes = {"p": float(_get(a, 1, 2)), "keepdim": bool(_get(a, 3, False))}
    if _dims(_get(a, 2)):
        attributes["dims"] = _dims(a[2])
    return g.node(n, "norm", [a[0]], attributes)


def _full(value):
    def write(g, n, a, k):
        return g.node(n, "full", [], {"value": float(value if value is not None else a[1])})
    return write


def _extreme(op, arg):
    """max(dim) and min(dim): values are the first result, places the second."""
    def write(g, n, a, k):
        attributes = {"keepdim": bool(_get(a, 2, False))}
        g.several[n.name] = [lambda m: g.node(m, op, [a[0]], dict(attributes, dims=[a[1]])), lambda m: g.node(m, arg, [a[0]], dict(attributes, dim=a[1]))]
        return None
    return write


def n_shape(n):
    value = n.meta["val"]
    return list((value[0] if isinstance(value, (list, tuple)) else value).shape)


def _table():
    t = {}
    for name in "exp log sqrt rsqrt tanh sigmoid erf abs neg floor ceil sin cos relu silu mish hardsigmoid hardswish reciprocal square log1p logical_not".split():
        t[name] = _unary(name)
    for name in "add sub mul div pow minimum maximum lt le gt ge eq ne logical_and logical_or".split():
        t[name] = _binary(name)
    t["xlogy"] = _xlogy
    t["rsub"] = lambda g, n, a, k: g.node(n, "sub", [a[1], a[0]])
    for aten, op in (("sum", "sum"), ("mean", "mean"), ("amax", "amax"), ("amin", "amin"), ("prod", "prod"), ("logsumexp", "logsumexp")):
        t[aten] = _fold(op)
    for count in (1, 2, 3):
        t[f"max_pool{count}d"] = t[f"max_pool{count}d_with_indices"] = _pool("max_pool", count)
        t[f"avg_pool{count}d"] = _pool("avg_pool", count)
        t[f"_adaptive_avg_pool{count}d"] = t[f"adaptive_avg_pool{count}d"] = lambda g, n, a, k, c=count: g.node(n, "adaptive_avg_pool", [a[0]], {"dims": c, "size": _window(a[1], c)})
    for name in ("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional", "_native_batch_norm_legit_no_training", "cudnn_batch_norm", "_batch_norm_with_update", "_batch_norm_with_update_functional"):
        t[name] = _batch_norm
    t["_native_batch_norm_legit_no_training"] = lambda g, n, a, k: _batch_norm(g, n, list(a[:5]) + [False] + list(a[5:]), k)
    t["native_group_norm"] = lambda g, n, a, k: _group_norm(g, n, [a[0], a[1], a[2], a[6], a[7]], k)
    t["native_layer_norm"] = t["layer_norm"] = _layer_norm
    t["rms_norm"] = t["_fused_rms_norm"] = _rms_norm
    t["convolution"] = _conv
    t["mm"] = t["bmm"] = t["matmul"] = t["mv"] = t["dot"] = lambda g, n, a, k: g.node(n, "matmul", a[:2])
    t["addmm"] = _addmm
    t["linear"] = lambda g, n, a, k: g.node(n, "linear", [v for v in a if v is not None])
    t["_scaled_dot_product_flash_attention_for_cpu"] = lambda g, n, a, k: _attention(g, n, [a[0], a[1], a[2], k.get("attn_mask"), _get(a, 3, 0.0), _get(a, 4, False)], k)
    t["_scaled_dot_product_flash_attention"] = lambda g, n, a, k: _attention(g, n, [a[0], a[1], a[2], None, _get(a, 3, 0.0), _get(a, 4, False)], k)
    t["_scaled_dot_product_efficient_attention"] = lambda g, n, a, k: _attention(g, n, [a[0], a[1], a[2], _get(a, 3), _get(a, 5, 0.0), _get(a, 6, False)], k)
    t["scaled_dot_product_attention"] = t["_scaled_dot_product_attention_math"] = _attention
    t["_softmax"] = t["softmax"] = lambda g, n, a, k: g.node(n, "softmax", [a[0]], {"dim": a[1]})
    t["_log_softmax"] = t["log_softmax"] = lambda g, n, a, k: g.node(n, "log_softmax", [a[0]], {"dim": a[1]})
    t["cumsum"] = lambda g, n, a, k: g.node(n, "cumsum", [a[0]], {"dim": a[1]})
    t["cumprod"] = lambda g, n, a, k: g.node(n, "cumprod", [a[0]], {"dim": a[1]})
    for name in ("argmax", "argmin"):
        t[name] = lambda g, n, a, k, op=name: g.node(n, op, [a[0]], dict({"keepdim": bool(_get(a, 2, False))}, **({} if _get(a, 1) is None else {"dim": a[1]})))
    t["max"], t["min"] = _extreme("amax", "argmax"), _extreme("amin", "argmin")
    t["linalg_vector_norm"] = _norm
    t["gelu"] = lambda g, n, a, k: g.node(n, "gelu", [a[0]], {"tanh": k.get("approximate", "none") == "tanh"})
    t["leaky_relu"] = lambda g, n, a, k: g.node(n, "leaky_relu", [a[0]], {"negative_slope": float(_get(a, 1, 0.01))})
    t["elu"] = _elu
    t["celu"] = lambda g, n, a, k: g.node(n, "elu", [a[0]], {"alpha": float(_get(a, 1, 1.0))}) if _get(a, 1, 1.0) == 1.0 else g.refuse(n)
    t["softplus"] = lambda g, n, a, k: g.node(n, "softplus", [a[0]], {"beta": float(_get(a, 1, 1.0))})
    t["hardtanh"] = lambda g, n, a, k: g.node(n, "hardtanh", [a[0]], {"min": float(_get(a, 1, -1.0)), "max": float(_get(a, 2, 1.0))})
    t["clamp"] = _clamp
    t["clamp_min"] = lambda g, n, a, k: _clamp(g, n, [a[0], a[1]], {})
    t["clamp_max"] = lambda g, n, a, k: _clamp(g, n, [a[0], None, a[1]], {})
    t["where"] = lambda g, n, a, k: g.node(n, "where", a[:3])
    for name in ("triu", "tril"):
        t[name] = lambda g, n, a, k, op=name: g.node(n, op, [a[0]], {"diagonal": _get(a, 1, 0)})
    for name in ("view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "flatten"):
        t[name] = lambda g, n, a, k: g.node(n, "reshape", [a[0]])
    for name in ("clone", "detach", "alias", "contiguous", "lift_fresh_copy"):
        t[name] = lambda g, n, a, k: g.node(n, "copy", [a[0]])
    t["_to_copy"] = lambda g, n, a, k: g.node(n, "cast", [a[0]])
    t["permute"], t["transpose"], t["t"] = _permute, _transpose, _transpose
    t["expand"] = lambda g, n, a, k: g.node(n, "expand", [a[0]])
    t["slice"], t["select"] = _slice, _select
    t["mse_loss"] = _loss("mse_loss")
    t["l1_loss"] = _loss("l1_loss")
    t["smooth_l1_loss"] = _loss("smooth_l1_loss", [(3, "beta")])
    t["huber_loss"] = _loss("huber_loss", [(3, "delta")])
    t["native_dropout"] = t["dropout"] = _dropout
    t["bernoulli_"] = _in_place(_bernoulli)
    for name in ("add", "sub", "mul", "div"):
        t[name + "_"] = _in_place(_binary(name))
    t["empty_like"] = _full(0)
    t["nll_loss_forward"] = t["nll_loss"] = _nll
    t["full"] = _full(None)
    t["full_like"] = _full(None)
    t["zeros"] = t["zeros_like"] = _full(0)
    t["ones"] = t["ones_like"] = _full(1)
    t["scalar_tensor"] = lambda g, n, a, k: g.node(n, "full", [], {"value": float(a[0])})
    return t


def _xlogy(g, n, a, k):
    """x log y, 0 where x is 0."""
    shape = n_shape(n)
    zero = g.extra(n, "eq", [a[0], 0.0], shape=g.shape(a[0]), dtype="bool")
    return g.node(n, "where", [zero, 0.0, g.extra(n, "mul", [a[0], g.extra(n, "log", [a[1]], shape=g.shape(a[1]))], shape=shape)])


def _elu(g, n, a, k):
    scale, input_scale = float(_get(a, 2, 1.0)), float(_get(a, 3, 1.0))
    if input_scale != 1.0:
        raise Unsupported("elu with an input scale", ["elu"])
    return g.node(n, "elu", [a[0]], {"alpha": float(_get(a, 1, 1.0)), "scale": scale})


class _Graph:
    def __init__(self, name):
        self.name, self.inputs, self.parameters, self.nodes, self.notes = name, [], [], [], []
        self.values, self.several, self._shapes, self._dtypes, self._count = {}, {}, {}, {}, 0

    def shape(self, value):
        return self._shapes.get(value, [])

    def _add(self, name, op, inputs, attributes, shape, dtype):
        entry = {"name": name, "op": op, "inputs": [float(v) if isinstance(v, (int, float)) else v for v in inputs], "shape": list(shape), "dtype": dtype}
        if attributes:
            entry["attributes"] = attributes
        self.nodes.append(entry)
        self._shapes[name], self._dtypes[name] = list(shape), dtype
        return name

    def node(self, n, op, inputs, attributes=None):
        value = n.meta["val"]
        value = value[0] if isinstance(value, (list, tuple)) else value
        return self._add(n.name, op, inputs, attributes, [int(s) for s in value.shape], dtype_of(value))

    def extra(self, n, op, inputs, attributes=None, like=None, shape=None, dtype=None):
        """A node of our own on the way to `n`."""
        self._count += 1
        value = n.meta["val"]
        value = value[0] if isinstance(value, (list, tuple)) else value
        return self._add(f"{n.name}.{self._count}", op, inputs, attributes, self._shapes[like] if like is not None else shape, dtype or dtype_of(value))

    def random(self, n):
        self._count += 1
        name = f"u{self._count}"
        self.inputs.append({"name": name, "shape": n_shape(n), "dtype": "f32", "random": "uniform"})
        self._shapes[name], self._dtypes[name] = n_shape(n), "f32"
        self.notes.append("the numbers of dropout are drawn by torch, outside of the kernels")
        return name

    def refuse(self, n):
        raise Unsupported(f"{n.target} with these attributes is not supported", [str(n.target)])

    def leaf(self, kind, name, value):
        entry = {"name": name, "shape": [int(s) for s in value.shape], "dtype": dtype_of(value)}
        getattr(self, kind).append(entry)
        self._shapes[name], self._dtypes[name] = entry["shape"], entry["dtype"]

    def to_json(self, outputs):
        return dict(FORMAT, name=self.name, inputs=self.inputs, parameters=self.parameters, nodes=self.nodes, outputs=outputs)


def dtype_of(value):
    name = _DTYPES.get(str(value.dtype))
    if name is None:
        raise Unsupported(f"the type {value.dtype}", [str(value.dtype)])
    return name


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
    return getattr(n.target, "_opname", "") in _table()


def _zeros(n):
    while getattr(n.target, "_opname", "") in ("unsqueeze", "view", "expand", "clone", "reshape"):
        n = n.args[0]
    name = getattr(n.target, "_opname", "")
    return name in ("zeros", "zeros_like") or (name in ("full", "full_like") and n.args[1] == 0)


def from_fx(gm, placeholders, name="graph"):
    """A traced aten graph; `placeholders`: for each of its arguments ("inputs" or "parameters", name)."""
    table, g, missing, outputs, index = _table(), _Graph(name), [], [], 0
    _patterns(gm)
    _drop_unused(gm)

    def value(v):
        if isinstance(v, (list, tuple)):
            return [value(x) for x in v]
        return g.values[v.name] if hasattr(v, "op") and hasattr(v, "name") else v

    for n in gm.graph.nodes:
        if n.op == "placeholder":
            kind, label = placeholders[index]
            index += 1
            g.leaf(kind, label, n.meta["val"])
            g.values[n.name] = label
        elif n.op == "output":
            flat = n.args[0] if isinstance(n.args[0], (list, tuple)) else [n.args[0]]
            outputs = [value(v) for v in flat if v is not None]
        elif n.op == "get_attr":
            constant = getattr(gm, n.target)
            if constant.numel() != 1:
                missing.append(f"constant tensor {n.target}")
                g.values[n.name] = n.name
                continue
            n.meta["val"] = constant
            g.values[n.name] = g.node(n, "full", [], {"value": float(constant)})
        elif n.op == "call_function":
            if n.meta.get("skip"):
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
                continue
            opname = getattr(n.target, "_opname", str(n.target))
            write = table.get(opname)
            if write is None or (opname in ("max", "min") and len(n.args) < 2):
                if opname in ("max", "min"):
                    write = _fold("a" + opname)
                else:
                    missing.append(opname)
                    g.values[n.name] = n.name
                    continue
            if missing:
                g.values[n.name] = n.name
                continue
            g.values[n.name] = write(g, n, [value(v) for v in n.args], {k: value(v) for k, v in n.kwargs.items()})
    if missing:
        raise Unsupported("not supported: " + ", ".join(sorted(set(missing))), sorted(set(missing)))
    return g.to_json(outputs), g.notes


def _drop_unused(gm):
    """In-place updates of buffers and what feeds only them."""
    for n in reversed(list(gm.graph.nodes)):
        if n.op == "call_function" and not n.users and "tilewright" not in n.meta:
            gm.graph.erase_node(n)


def parameter_name(name):
    """What a module's parameter or buffer is called in its graph."""
    return "p_" + name.replace(".", "_")


def traced(module, inputs, fake_mode=None):
    """(aten graph, names of the parameters in order) of a module called with these inputs, which may be fake."""
    import torch
    from torch._decomp import get_decompositions
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    aten = torch.ops.aten
    decompositions = get_decompositions([aten.addmv, aten.baddbmm, aten.triplet_margin_loss, aten.cosine_embedding_loss,
                                         aten.hinge_embedding_loss, aten.soft_margin_loss, aten.margin_ranking_loss, aten.diag_embed, aten.std, aten.var_mean,
                                         aten.norm, aten.selu, aten.addcmul, aten.addcdiv, aten.lerp, aten.softshrink, aten.threshold, aten.logit, aten.glu])
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
        return v if fake_mode is not None or not isinstance(v, torch.Tensor) else mode.from_tensor(v)

    with mode, torch.no_grad():
        gm = make_fx(call, decomposition_table=decompositions, tracing_mode="real", _allow_non_fake_inputs=True)([fake(v.detach()) for v in values], [fake(v) for v in inputs])
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
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._pytree import tree_map
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    scope = _run_file(path)
    with mode:
        torch.manual_seed(42)
        module = scope["Model"](*scope["get_init_inputs"]())
        inputs = scope["get_inputs"]()
    inputs = tree_map(lambda v: v if not isinstance(v, torch.Tensor) else v, inputs)
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
