"""What each operator of PyTorch is as nodes of a graph (docs/graph.md). A writer takes the graph, the traced node and its arguments; `operator_table` has them all, with those of _torch_places.py."""
import math

from . import _torch_functions, _torch_losses, _torch_order, _torch_places, _torch_scatter, _torch_whole

DTYPES = {"torch.float32": "f32", "torch.float16": "f16", "torch.bfloat16": "bf16", "torch.int32": "i32", "torch.int64": "i64", "torch.bool": "bool"}


class Unsupported(Exception):
    """An operator, an attribute or a type that graphs do not have. `names`: of all operators that are not supported."""

    def __init__(self, message, names=()):
        super().__init__(message)
        self.names = list(names)


def dtype_of(value):
    name = DTYPES.get(str(value.dtype))
    if name is None:
        raise Unsupported(f"the type {value.dtype}", [str(value.dtype)])
    return name


class Arguments(list):
    """An operator's arguments, which note what is looked at: what is not, and is no default, would silently be another operator."""

    def __init__(self, values):
        super().__init__(values)
        self.seen = set()

    def __getitem__(self, i):
        self.seen.update(range(*i.indices(len(self))) if isinstance(i, slice) else [i % len(self)])
        return super().__getitem__(i)

    def __iter__(self):
        self.seen.update(range(len(self)))
        return super().__iter__()


class Keywords(dict):
    """The same of arguments by name. `dtype` is that of the result; the rest says where and how a tensor lies."""
    SEEN = {"dtype", "layout", "device", "pin_memory", "memory_format", "generator", "non_blocking", "implicit", "_stacklevel"}

    def __init__(self, values):
        super().__init__(values)
        self.seen = set(self.SEEN)

    def __getitem__(self, key):
        self.seen.add(key)
        return super().__getitem__(key)

    def get(self, key, otherwise=None):
        self.seen.add(key)
        return super().get(key, otherwise)


def unread_arguments(n, args, kwargs):
    """Names of arguments that no writer has looked at and that are not their defaults."""
    schema = getattr(n.target, "_schema", None)
    if schema is None:
        return []
    about = list(schema.arguments)
    positions = [(a.name, a, v) for i, (a, v) in enumerate(zip(about, list.__iter__(args))) if i not in args.seen]
    names = {a.name: a for a in about}
    given = positions + [(k, names.get(k), v) for k, v in dict.items(kwargs) if k not in kwargs.seen]
    plain = Keywords.SEEN | _IGNORED.get(n.target._opname, set())
    return [name for name, a, v in given if v is not None and name not in plain and not (a is not None and a.has_default_value() and a.default_value == v)]


# Arguments that say how something is computed, or whether something else is made beside the result.
_IGNORED = {"native_group_norm": {"N", "C", "HxW"}, "embedding": {"padding_idx", "scale_grad_by_freq", "sparse"}, "embedding_bag": {"scale_grad_by_freq", "sparse"},
            "convolution": {"output_padding"}, "_native_batch_norm_legit_no_training": {"momentum"}, "_softmax": {"half_to_float"}, "_log_softmax": {"half_to_float"},
            "native_batch_norm": {"momentum", "running_mean", "running_var"}, "_native_batch_norm_legit": {"momentum", "running_mean", "running_var"},
            "_native_batch_norm_legit_functional": {"momentum", "running_mean", "running_var"}, "_batch_norm_with_update": {"momentum", "running_mean", "running_var"},
            "_batch_norm_with_update_functional": {"momentum", "running_mean", "running_var"}, "cudnn_batch_norm": {"exponential_average_factor", "running_mean", "running_var"},
            "full": {"size"}, "zeros": {"size"}, "ones": {"size"}, "full_like": {"self"}, "zeros_like": {"self"}, "ones_like": {"self"}, "empty_like": {"self"},
            "new_full": {"self", "size"}, "new_zeros": {"self", "size"}, "new_ones": {"self", "size"}, "empty": {"size"}, "new_empty": {"self", "size"},
            "view": {"size"}, "reshape": {"shape"}, "_unsafe_view": {"size"}, "unsqueeze": {"dim"}, "squeeze": {"dim"}, "flatten": {"start_dim", "end_dim"}, "expand": {"size"},
            "slice": {"end"}, "_scaled_dot_product_flash_attention": {"return_debug_mask"}, "_scaled_dot_product_efficient_attention": {"compute_log_sumexp"}, "_scaled_dot_product_cudnn_attention": {"compute_log_sumexp", "return_debug_mask"},
            "native_dropout": {"train"}, "rand": {"size"}, "rand_like": {"self"}, "uniform": {"self"}, "bernoulli": {"self"}, "bernoulli_": {"self"}, "linalg_vector_norm": {"dtype"},
            "rrelu_with_noise": {"noise", "lower", "upper"}, "rrelu_with_noise_functional": {"noise"}, "split": {"split_size"}, "unsafe_split": {"split_size"}, "split_with_sizes": {"split_sizes"}, "unbind": {"dim"}, "scalar_tensor": set(),
            "upsample_nearest1d": {"scales"}, "upsample_nearest2d": {"scales_h", "scales_w"}, "_weight_norm_interface": {"dim"}, "repeat": {"repeats"}, "clone": {"memory_format"}, "index_put": {"unsafe"}, "_embedding_bag_forward_only": {"scale_grad_by_freq", "sparse"}, "_embedding_bag": {"scale_grad_by_freq", "sparse"}}


def _unary(op):
    return lambda g, n, a, k: g.node(n, op, [a[0]])


def _binary(op):
    def write(g, n, a, k):
        alpha = k.get("alpha", a[2] if len(a) > 2 else 1)
        b = a[1]
        if alpha != 1:
            b = b * alpha if isinstance(b, (int, float)) else g.extra(n, "mul", [b, alpha], like=b)
        return g.node(n, op, [a[0], b])
    return write


def _get(a, i, default=None):
    return a[i] if len(a) > i and a[i] is not None else default


def _dims(value):
    return None if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def fold(op):
    def write(g, n, a, k):
        attributes = {"keepdim": bool(_get(a, 2, k.get("keepdim", False)))}
        dims = _dims(_get(a, 1))
        if dims and g.shape(a[0]):
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
            include, taken = bool(_get(a, 5, True)), _get(a, 6)
            share = None if taken is None else math.prod(kernel) / taken
            if share is None and (not include or attributes["ceil_mode"]):
                share = _shares(g.shape(a[0])[-count:], n_shape(n)[-count:], kernel, attributes["stride"], attributes["padding"], include)
            if share is not None:
                mean = g.extra(n, op, [a[0]], attributes, shape=n_shape(n))
                return g.node(n, "mul", [mean, share if isinstance(share, float) else g.constant(n, share)])
        return g.node(n, op, [a[0]], attributes)
    return write


def _shares(extents, places, kernel, stride, padding, include):
    """By position: the number of taps over that of the elements which torch divides by; nothing where they are the same everywhere."""
    import torch
    share = torch.ones(places, dtype=torch.float64)
    for d, (extent, count) in enumerate(zip(extents, places)):
        starts = torch.arange(count) * stride[d] - padding[d]
        ends = torch.minimum(starts + kernel[d], torch.tensor(extent + padding[d]))
        counted = ends - starts if include else ends.clamp(max=extent) - starts.clamp(min=0)
        share = share * (kernel[d] / counted.double()).reshape([count if i == d else 1 for i in range(len(places))])
    return None if bool((share == 1).all()) else share.float()


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


def _dropped(g, n, a, k):
    """bernoulli(x, p) as a tensor of its own."""
    p = _get(a, 1, 0.5)
    if not isinstance(p, (int, float)):
        g.refuse(n)
    kept = g.extra(n, "lt", [g.random(n), float(p)], shape=n_shape(n), dtype="bool")
    return g.node(n, "cast", [kept])


def _uniform(g, n, a, k):
    """From `low` to `high`; rand and rand_like: from 0 to 1."""
    low, high = (float(_get(a, 1, 0.0)), float(_get(a, 2, 1.0))) if n.target._opname == "uniform" else (0.0, 1.0)
    u = g.random(n)
    if (low, high) == (0.0, 1.0):
        return g.node(n, "cast", [u])
    return g.node(n, "add", [g.extra(n, "mul", [u, high - low], shape=n_shape(n), dtype="f32"), low])


def _drawn_by(g, n, a, k):
    """bernoulli(x): of each element's own probability, or of one number."""
    if isinstance(_get(a, 1), (int, float)):
        return _dropped(g, n, a, k)
    kept = g.extra(n, "lt", [g.random(n), a[0]], shape=n_shape(n), dtype="bool")
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
        for kept in n.args[3:5]:
            if any(user is not n and n < user and "batch_norm" not in str(user.target) for user in getattr(kept, "users", ())):
                raise Unsupported("running statistics that are read after they were updated", [str(n.target)])
        if any(isinstance(v, str) for v in a[3:5]):
            g.notes.append("running statistics are not updated")
        return g.node(n, "batch_norm", _present(g, n, weight, bias, x, [g.shape(x)[1]]), {"eps": numbers[-1]})
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


def _present(g, n, weight, bias, x, of):
    """The operands of a norm; beside a bias alone, a weight of ones."""
    if weight is None and bias is not None:
        weight = g.extra(n, "full", [], {"value": 1.0}, shape=of)
    return [v for v in (x, weight, bias) if v is not None]


def _group_norm(g, n, a, k):
    x, weight, bias, groups, eps = a[0], a[1], a[2], a[-2], a[-1]
    return g.node(n, "group_norm", _present(g, n, weight, bias, x, [g.shape(x)[1]]), {"groups": groups, "eps": eps})


def _layer_norm(g, n, a, k):
    return g.node(n, "layer_norm", _present(g, n, _get(a, 2), _get(a, 3), a[0], list(a[1])), {"dims": len(a[1]), "eps": _get(a, 4, 1e-5)})


def _rms_norm(g, n, a, k):
    return g.node(n, "rms_norm", [a[0]] + ([a[2]] if _get(a, 2) is not None else []), {"dims": len(a[1]), "eps": _get(a, 3, 1.1920928955078125e-07)})


def _addmm(g, n, a, k):
    alpha, beta = k.get("alpha", 1), k.get("beta", 1)
    product = g.extra(n, "matmul", [a[1], a[2]], shape=n_shape(n))
    if alpha != 1:
        product = g.extra(n, "mul", [product, alpha], shape=n_shape(n))
    if beta == 0:
        return g.node(n, "copy", [product])
    return g.node(n, "add", [product, a[0] if beta == 1 else g.extra(n, "mul", [a[0], beta], like=a[0])])


def _shared_heads(g, n, x, heads):
    b, own, length, depth = g.shape(x)
    one = g.extra(n, "reshape", [x], shape=[b, own, 1, length, depth], type_of=x)
    wide = g.extra(n, "expand", [one], shape=[b, own, heads // own, length, depth], type_of=x)
    return g.extra(n, "reshape", [wide], shape=[b, heads, length, depth], type_of=x)


def _with_dropout(g, n, given, attributes, p, last=False):
    """Attention whose weights are dropped between the softmax and the second product."""
    (q, key, value), mask = given[:3], given[3] if len(given) > 3 else None
    *lead, rows, depth = g.shape(q)
    columns = g.shape(key)[-2]
    shape, turned = [*lead, rows, columns], [*lead, depth, columns]
    order = [*range(len(lead)), len(lead) + 1, len(lead)]
    across = g.extra(n, "permute", [key], {"order": order}, shape=turned, type_of=key)
    scores = g.extra(n, "matmul", [q, across], shape=shape, dtype="f32")
    scores = g.extra(n, "mul", [scores, attributes.get("scale", 1.0 / math.sqrt(depth))], shape=shape, dtype="f32")
    if attributes["causal"]:
        later = g.numbers(n, [0.0 if j <= i else float("-inf") for i in range(rows) for j in range(columns)], [rows, columns], "f32")
        scores = g.extra(n, "add", [scores, later], shape=shape, dtype="f32")
    if mask is not None:
        if g.dtype(mask) == "bool":
            scores = g.extra(n, "where", [mask, scores, float("-inf")], shape=shape, dtype="f32")
        else:
            scores = g.extra(n, "add", [scores, mask], shape=shape, dtype="f32")
    weights = g.extra(n, "softmax", [scores], {"dim": len(shape) - 1}, shape=shape, dtype="f32")
    kept = g.extra(n, "ge", [g.random(n, shape), p], shape=shape, dtype="bool")
    dropped = g.extra(n, "where", [kept, g.extra(n, "mul", [weights, 1.0 / (1.0 - p)], shape=shape, dtype="f32"), 0.0], shape=shape, dtype=g.dtype(value))
    return g.node(n, "matmul", [dropped, value]) if last else g.extra(n, "matmul", [dropped, value], shape=n_shape(n))


def _attention(g, n, a, k):
    attributes = {"causal": bool(_get(a, 5, k.get("is_causal", False)))}
    p = float(_get(a, 4, k.get("dropout_p", 0.0)))
    scale = k.get("scale", _get(a, 6))
    if isinstance(scale, (int, float)):
        attributes["scale"] = float(scale)
    mask = _get(a, 3, k.get("attn_mask"))
    k.get("enable_gqa")
    heads = g.shape(a[0])
    if len(heads) == 4 and g.shape(a[1])[1] != heads[1]:  # several heads of queries share keys and values
        a = [a[0], *[_shared_heads(g, n, v, heads[1]) for v in a[1:3]]]
    given = [*a[:3], mask] if isinstance(mask, str) else list(a[:3])
    if not isinstance(mask, str) or _leaves_some(g, mask):
        return g.node(n, "attention", given, attributes) if p == 0.0 else _with_dropout(g, n, given, attributes, p, last=True)
    # Of a query that may look at no key the result is 0.
    shape, of = n_shape(n), g.shape(mask)
    made = g.extra(n, "attention", given, attributes, shape=shape) if p == 0.0 else _with_dropout(g, n, given, attributes, p)
    size = g.extra(n, "cast", [mask], shape=of, dtype="f32") if g.dtype(mask) == "bool" else mask
    most = g.extra(n, "amax", [size], {"dims": [len(of) - 1], "keepdim": True}, shape=of[:-1] + [1], type_of=size)
    some = g.extra(n, "gt", [most, 0.5 if g.dtype(mask) == "bool" else -math.inf], shape=of[:-1] + [1], dtype="bool")
    return g.node(n, "where", [some, made, 0.0])


def _leaves_some(g, mask):
    """Whether each row of a mask is known to leave a key."""
    about = next((p for p in g.parameters if p["name"] == mask and "values" in p), None)
    length = g.shape(mask)[-1]
    out = 0 if g.dtype(mask) == "bool" else "-inf"
    return about is not None and all(any(v != out for v in about["values"][i:i + length]) for i in range(0, len(about["values"]), length))


def _slice(g, n, a, k):
    shape, dim = g.shape(a[0]), _get(a, 1, 0) % len(g.shape(a[0]))
    start, step, starts = _get(a, 2, 0), _get(a, 4, 1), [0] * len(shape)
    starts[dim] = max(0, min(shape[dim], start + shape[dim] if start < 0 else start))
    if step != 1:
        return _every(g, n, a[0], dim, starts[dim], step)
    return g.node(n, "slice", [a[0]], {"starts": starts})


def _every(g, n, x, dim, start, step):
    """Each `step`-th element: of pieces of that length the one at a place, where there are whole pieces; else by index."""
    shape, count = g.shape(x), n_shape(n)[dim]
    first = min(start, shape[dim] - count * step)
    if first < 0 or len(shape) >= 8:
        return g.take(n, x, dim, [start + i * step for i in range(count)])
    starts = [0] * len(shape)
    starts[dim] = first
    piece = shape[:dim] + [count * step] + shape[dim + 1:]
    x = x if piece == shape else g.extra(n, "slice", [x], {"starts": starts}, shape=piece, type_of=x)
    cut = shape[:dim] + [count, step] + shape[dim + 1:]
    x = g.extra(n, "reshape", [x], shape=cut, type_of=x)
    starts = [0] * len(cut)
    starts[dim + 1] = start - first
    one = g.extra(n, "slice", [x], {"starts": starts}, shape=cut[:dim + 1] + [1] + cut[dim + 2:], type_of=x)
    return g.node(n, "reshape", [one])


def _select(g, n, a, k):
    shape, dim = g.shape(a[0]), a[1] % len(g.shape(a[0]))
    starts = [0] * len(shape)
    starts[dim] = a[2] % shape[dim]
    kept = [1 if d == dim else s for d, s in enumerate(shape)]
    return g.node(n, "reshape", [g.extra(n, "slice", [a[0]], {"starts": starts}, shape=kept, type_of=a[0])])


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


def _loss(op, extra=()):
    def write(g, n, a, k):
        attributes = {"reduction": ["none", "mean", "sum"][_get(a, 2, 1)]}
        for position, key in extra:
            if _get(a, position) is not None:
                attributes[key] = float(a[position])
        return g.node(n, op, a[:2], attributes)
    return write


def _norm(g, n, a, k):
    p, attributes = float(_get(a, 1, 2)), {"keepdim": bool(_get(a, 3, False))}
    if _dims(_get(a, 2)):
        attributes["dims"] = _dims(a[2])
    if p in (1.0, 2.0):
        return g.node(n, "norm", [a[0]], dict(attributes, p=p))
    size = g.extra(n, "abs", [a[0]], like=a[0])
    if abs(p) == math.inf:
        return g.node(n, "amax" if p > 0 else "amin", [size], attributes)
    if p == 0:
        some = g.extra(n, "cast", [g.extra(n, "ne", [a[0], 0.0], like=a[0], dtype="bool")], like=a[0])
        return g.node(n, "sum", [some], attributes)
    total = g.extra(n, "sum", [g.extra(n, "pow", [size, p], like=a[0])], attributes, shape=n_shape(n))
    return g.node(n, "pow", [total, 1.0 / p])


def _full(value):
    def write(g, n, a, k):
        value_of = value if value is not None else a[1]
        return g.node(n, "full", [], {"value": float(value_of)})
    return write


def _extreme(op, arg):
    """max(dim) and min(dim): values are the first result, places the second."""
    def write(g, n, a, k):
        attributes = {"keepdim": bool(_get(a, 2, False))}
        x, dim = a[0], a[1]
        g.several[n.name] = [lambda m: g.node(m, op, [x], dict(attributes, dims=[dim])), lambda m: g.node(m, arg, [x], dict(attributes, dim=dim))]
        return None
    return write


def n_shape(n):
    value = n.meta["val"]
    return list((value[0] if isinstance(value, (list, tuple)) else value).shape)


def operator_table():
    t = {}
    for name in "exp log sqrt rsqrt tanh sigmoid erf abs neg floor ceil sin cos relu silu mish hardsigmoid hardswish reciprocal square log1p logical_not".split():
        t[name] = _unary(name)
    for name in "add sub mul div pow minimum maximum lt le gt ge eq ne logical_and logical_or".split():
        t[name] = _binary(name)
    t["xlogy"] = _xlogy
    t["rsub"] = lambda g, n, a, k: _binary("sub")(g, n, [a[1], a[0], *a[2:]], k)
    t["div"] = _div
    for aten, op in (("sum", "sum"), ("mean", "mean"), ("amax", "amax"), ("amin", "amin"), ("prod", "prod"), ("logsumexp", "logsumexp")):
        t[aten] = fold(op)
    for count in (1, 2, 3):
        t[f"max_pool{count}d"] = t[f"max_pool{count}d_with_indices"] = _pool("max_pool", count)
        t[f"avg_pool{count}d"] = _pool("avg_pool", count)
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
    t["_scaled_dot_product_cudnn_attention"] = t["_scaled_dot_product_efficient_attention"]
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
    t["celu"] = _celu
    t["softplus"] = _softplus
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
    t["bernoulli"] = _drawn_by
    t["rand"] = t["rand_like"] = t["uniform"] = _uniform
    for name in ("add", "sub", "mul", "div"):
        t[name + "_"] = _in_place(t[name])
    t["empty_like"] = t["empty"] = t["new_empty"] = _full(0)
    t["full"] = _full(None)
    t["full_like"] = _full(None)
    t["zeros"] = t["zeros_like"] = _full(0)
    t["ones"] = t["ones_like"] = _full(1)
    t["new_full"] = lambda g, n, a, k: g.node(n, "full", [], {"value": float(a[2])})
    t["new_zeros"], t["new_ones"] = _full(0), _full(1)
    t.update(_torch_places.table())
    for made in (_torch_functions, _torch_losses, _torch_order, _torch_scatter):
        t.update(made.table())
    t.update(_torch_whole.exact_for_integers(t))
    t.update(_of_one_number(t))
    t["fmax"], t["fmin"] = _binary("maximum"), _binary("minimum")  # of a number and NaN both take the number
    t["scalar_tensor"] = lambda g, n, a, k: g.node(n, "full", [], {"value": float(a[0])})
    return t


def _of_one_number(table):
    """Along dimension 0 of a tensor without dimensions: 0 and 1 where the number is finite."""
    def either(name):
        plain = table[name]

        def write(g, n, a, k):
            if g.shape(a[0]):
                return plain(g, n, a, k)
            a.seen.update(range(len(a)))
            if name in ("cumsum", "cumprod", "argmax", "argmin"):
                return g.node(n, "copy", [a[0]]) if name[0] == "c" else plain(g, n, Arguments([a[0]]), k)
            zero = g.extra(n, "sub", [a[0], a[0]], shape=[])
            return g.node(n, "copy" if "log" in name else "exp", [zero])
        return write
    return {name: either(name) for name in ("_softmax", "softmax", "_log_softmax", "log_softmax", "cumsum", "cumprod", "argmax", "argmin")}


def _xlogy(g, n, a, k):
    """x log y, 0 where x is 0."""
    shape = n_shape(n)
    zero = g.extra(n, "eq", [a[0], 0.0], shape=g.shape(a[0]), dtype="bool")
    return g.node(n, "where", [zero, 0.0, g.extra(n, "mul", [a[0], g.extra(n, "log", [a[1]], shape=g.shape(a[1]))], shape=shape)])


def _div(g, n, a, k):
    """True division, rounded down, or towards zero."""
    mode = k.get("rounding_mode")
    if mode is None:
        return g.node(n, "div", a[:2])
    if dtype_of(n.meta["val"])[0] == "i" or mode == "floor":
        return _torch_places.floor_divide(g, n, a, k) if mode == "floor" else g.refuse(n)
    made = g.extra(n, "div", a[:2], shape=n_shape(n))
    return _torch_places.trunc(g, n, made)


def _softplus(g, n, a, k):
    beta, threshold = float(_get(a, 1, 1.0)), float(_get(a, 2, 20.0))
    soft = {"beta": beta}
    if threshold >= 15.0:  # log(1 + e^-15) is below half a unit of f32 in the last place of 15
        return g.node(n, "softplus", [a[0]], soft)
    above = g.extra(n, "gt", [g.extra(n, "mul", [a[0], beta], like=a[0]), threshold], like=a[0], dtype="bool")
    return g.node(n, "where", [above, a[0], g.extra(n, "softplus", [a[0]], soft, like=a[0])])


def _celu(g, n, a, k):
    """max(x, 0) + alpha (e^(min(x, 0) / alpha) - 1)."""
    alpha = float(_get(a, 1, 1.0))
    if alpha == 1.0:
        return g.node(n, "elu", [a[0]], {"alpha": 1.0})
    scaled = g.extra(n, "mul", [a[0], 1.0 / alpha], like=a[0])
    return g.node(n, "mul", [g.extra(n, "elu", [scaled], {"alpha": 1.0}, like=a[0]), alpha])


def _elu(g, n, a, k):
    scale, input_scale = float(_get(a, 2, 1.0)), float(_get(a, 3, 1.0))
    if input_scale != 1.0:
        raise Unsupported("elu with an input scale", ["elu"])
    return g.node(n, "elu", [a[0]], {"alpha": float(_get(a, 1, 1.0)), "scale": scale})
