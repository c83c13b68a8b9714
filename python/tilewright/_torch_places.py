"""Torch operators that are written in several of a graph's: functions, masks, and whatever moves elements to known places (graph.py)."""
import math

from . import _torch_functions, _torch_scatter
from ._torch_steps import Steps


def _shape(n):
    value = n.meta["val"]
    return list((value[0] if isinstance(value, (list, tuple)) else value).shape)


def _get(a, i, default=None):
    return a[i] if len(a) > i and a[i] is not None else default


# Functions of one element.

def _chain(*steps):
    """Steps of (op, inputs): "x" is the operand, a number's text "#2" the step of that number; the last one is the node."""
    def write(g, n, a, k):
        made, x = [], a[0]
        for i, (op, inputs, *more) in enumerate(steps):
            values = [x if v == "x" else made[int(v[1:])] if isinstance(v, str) else v for v in inputs]
            dtype = more[0] if more else None
            if i + 1 == len(steps):
                return g.node(n, op, values)
            made.append(g.extra(n, op, values, like=x, dtype=dtype))
    return write


def trunc(g, n, x):
    """Towards zero."""
    shape = _shape(n)
    above = g.extra(n, "ge", [x, 0.0], shape=shape, dtype="bool")
    return g.node(n, "where", [above, g.extra(n, "floor", [x], shape=shape), g.extra(n, "ceil", [x], shape=shape)])


def _round(g, n, a, k):
    """To the nearest whole number, ties to the even one: exact, whatever the size."""
    x = a[0]
    e = lambda op, *inputs, **more: g.extra(n, op, list(inputs), like=x, **more)  # noqa: E731
    low = e("floor", x)
    rest = e("sub", x, low)
    odd = e("ne", e("mul", e("floor", e("mul", low, 0.5)), 2.0), low, dtype="bool")
    tie = e("logical_and", e("eq", rest, 0.5, dtype="bool"), odd, dtype="bool")
    up = e("cast", e("logical_or", e("gt", rest, 0.5, dtype="bool"), tie, dtype="bool"))
    return g.node(n, "add", [low, up])


def floor_divide(g, n, a, k):
    """Of floats, by powers of two: a quotient that is rounded to a whole number is not the one that torch rounds down."""
    if g.dtype(a[0])[0] == "i" and isinstance(a[1], int) and a[1] > 0:
        return g.node(n, "floor_divide", [a[0], a[1]])
    if g.dtype(a[0])[0] == "i" or not isinstance(a[1], (int, float)) or a[1] == 0 or abs(math.frexp(a[1])[0]) != 0.5:
        g.refuse(n)
    return g.node(n, "floor", [g.extra(n, "div", [a[0], a[1]], like=a[0])])


def _remainder(g, n, a, k):
    y = a[1]
    if g.dtype(a[0])[0] == "i" and isinstance(y, int) and y > 0:
        return g.node(n, "remainder", [a[0], y])
    if g.dtype(a[0])[0] == "i" or not isinstance(y, (int, float)) or y == 0 or abs(math.frexp(y)[0]) != 0.5:
        g.refuse(n)
    low = g.extra(n, "floor", [g.extra(n, "div", [a[0], y], like=a[0])], like=a[0])
    return g.node(n, "sub", [a[0], g.extra(n, "mul", [low, y], like=a[0])])


def _pair(*steps):
    """As _chain, of two operands "x" and "y"; each step has the result's shape."""
    def write(g, n, a, k):
        made = []
        for i, (op, inputs, *more) in enumerate(steps):
            values = [a[0] if v == "x" else a[1] if v == "y" else made[int(v[1:])] if isinstance(v, str) else v for v in inputs]
            if i + 1 == len(steps):
                return g.node(n, op, values)
            made.append(g.extra(n, op, values, shape=_shape(n), dtype=more[0] if more else None))
    return write


def _logical(op):
    def write(g, n, a, k):
        if any(isinstance(v, str) and g.dtype(v) != "bool" for v in a):
            return (op == "logical_and" and _torch_functions.masked_bits(g, n, a)) or g.refuse(n)
        return g.node(n, op, list(a))
    return write


def _xor(g, n, a, k):
    x, y = [v if not isinstance(v, str) or g.dtype(v) == "bool" else g.refuse(n) for v in a]
    one = g.extra(n, "logical_and", [x, g.extra(n, "logical_not", [y], like=y, dtype="bool")], shape=_shape(n), dtype="bool")
    other = g.extra(n, "logical_and", [g.extra(n, "logical_not", [x], like=x, dtype="bool"), y], shape=_shape(n), dtype="bool")
    return g.node(n, "logical_or", [one, other])


def _copy(g, n, a, k):
    """x overwritten by another tensor."""
    a[0]
    if not isinstance(a[1], str):
        return g.node(n, "full", [], {"value": float(a[1])})
    y = a[1] if g.dtype(a[1]) == g.dtype(a[0]) else g.extra(n, "cast", [a[1]], like=a[1])
    return g.node(n, "expand", [y])


def _masked_fill(g, n, a, k):
    return g.node(n, "where", [a[1], a[2], a[0]])


def _prelu(g, n, a, k):
    above = g.extra(n, "gt", [a[0], 0.0], like=a[0], dtype="bool")
    return g.node(n, "where", [above, a[0], g.extra(n, "mul", [a[0], a[1]], like=a[0])])


def _rrelu(g, n, a, k):
    lower, upper = float(_get(a, 2, 0.125)), float(_get(a, 3, 1.0 / 3))
    if _get(a, 4, k.get("training", False)):
        g.refuse(n)
    return g.node(n, "leaky_relu", [a[0]], {"negative_slope": (lower + upper) / 2})


# Folds.

def _variance(g, a, k):
    dims = _get(a, 1)
    correction = k.get("correction", _get(a, 2))
    attributes = {"correction": 1.0 if correction is None else float(correction), "keepdim": bool(k.get("keepdim", _get(a, 3, False)))}
    if isinstance(dims, bool):  # var(x, unbiased)
        attributes["correction"], dims = float(dims), None
    elif isinstance(correction, bool):  # var(x, dims, unbiased)
        attributes["correction"] = float(correction)
    if dims is not None and dims != []:
        attributes["dims"] = list(dims) if isinstance(dims, (list, tuple)) else [dims]
    return attributes


def _var(g, n, a, k):
    return g.node(n, "var", [a[0]], _variance(g, a, k))


def _var_mean(g, n, a, k):
    attributes = _variance(g, a, k)
    others = {key: v for key, v in attributes.items() if key != "correction"}
    x = a[0]
    g.several[n.name] = [lambda m: g.node(m, "var", [x], attributes), lambda m: g.node(m, "mean", [x], others)]


def _of_truth(op):
    def write(g, n, a, k):
        x, dims = a[0], _get(a, 1)
        attributes = {"keepdim": bool(_get(a, 2, k.get("keepdim", False)))}
        if dims is not None and dims != []:
            attributes["dims"] = list(dims) if isinstance(dims, (list, tuple)) else [dims]
        if g.dtype(x) != "bool":
            x = g.extra(n, "ne", [x, 0.0], like=x, dtype="bool")
        x = g.extra(n, "cast", [x], like=x, dtype="f32")
        made = g.extra(n, op, [x], attributes, shape=_shape(n), dtype="f32")
        return g.node(n, "cast", [made]) if op == "sum" else g.node(n, "gt", [made, 0.5])
    return write


def _aminmax(g, n, a, k):
    dim = k.get("dim", _get(a, 1))
    attributes = dict({"keepdim": bool(k.get("keepdim", _get(a, 2, False)))}, **({} if dim is None else {"dims": [dim]}))
    x = a[0]
    g.several[n.name] = [lambda m: g.node(m, "amin", [x], attributes), lambda m: g.node(m, "amax", [x], attributes)]


# Parts of tensors.

def _cat(g, n, a, k):
    parts = [p for p in a[0] if g.shape(p) != [0]]
    dim = _get(a, 1, 0) % len(_shape(n))
    return g.node(n, "cat", Steps(g, n).few(parts, dim), {"dim": dim})


def _stack(g, n, a, k):
    dim = _get(a, 1, 0) % len(_shape(n))
    one = [1 if d == dim else s for d, s in enumerate(_shape(n))]
    return g.node(n, "cat", Steps(g, n).few([g.extra(n, "reshape", [p], shape=one, type_of=p) for p in a[0]], dim), {"dim": dim})


def _pieces(g, n, x, dim, lengths, drop=False):
    """Results that are parts of one tensor along a dimension."""
    shape, at, made = g.shape(x), 0, []
    for length in lengths:
        starts = [0] * len(shape)
        starts[dim] = at
        at += length
        kept = shape[:dim] + [length] + shape[dim + 1:]

        def write(m, starts=starts, kept=kept):
            if not drop:
                return g.node(m, "slice", [x], {"starts": starts})
            return g.node(m, "reshape", [g.extra(m, "slice", [x], {"starts": starts}, shape=kept, type_of=x)])
        made.append(write)
    g.several[n.name] = made


def _split(g, n, a, k):
    x, dim = a[0], _get(a, 2, k.get("dim", 0)) % len(g.shape(a[0]))
    _pieces(g, n, x, dim, [int(v.shape[dim]) for v in n.meta["val"]])


def _unbind(g, n, a, k):
    x, dim = a[0], _get(a, 1, 0) % len(g.shape(a[0]))
    _pieces(g, n, x, dim, [1] * g.shape(x)[dim], drop=True)


def _padded(g, n, x, amounts, value, last=True):
    """`amounts` by dimension: (before, behind), negative ones cut off."""
    shape = g.shape(x)
    starts = [max(0, -before) for before, _ in amounts]
    kept = [s - max(0, -before) - max(0, -behind) for s, (before, behind) in zip(shape, amounts)]
    todo = [(d, before, behind) for d, (before, behind) in enumerate(amounts) if before > 0 or behind > 0]
    if kept != shape:
        if not todo and last:
            return g.node(n, "slice", [x], {"starts": starts})
        x = g.extra(n, "slice", [x], {"starts": starts}, shape=kept, type_of=x)
    for i, (d, before, behind) in enumerate(todo):
        shape, parts, whole = g.shape(x), [], g.shape(x)[d]
        for count, at in ((before, 0), (0, 1), (behind, 2)):
            if at == 1:
                parts.append(x)
            elif count > 0:
                whole += count
                parts.append(g.extra(n, "full", [], {"value": value}, shape=shape[:d] + [count] + shape[d + 1:], type_of=x))
        if i + 1 == len(todo) and last:
            return g.node(n, "cat", parts, {"dim": d})
        x = g.extra(n, "cat", parts, {"dim": d}, shape=shape[:d] + [whole] + shape[d + 1:], type_of=x)
    return x if not last else g.node(n, "copy", [x])


def _constant_pad(g, n, a, k):
    shape, pads = g.shape(a[0]), a[1]
    amounts = [(0, 0)] * len(shape)
    for i in range(len(pads) // 2):
        amounts[len(shape) - 1 - i] = (pads[2 * i], pads[2 * i + 1])
    return _padded(g, n, a[0], amounts, float(_get(a, 2, 0.0)))


def _taken(g, n, x, by_dim):
    """The elements at known places of each of some dimensions."""
    for i, (dim, places) in enumerate(by_dim):
        last = i + 1 == len(by_dim)
        x = g.take(n, x, dim, places, last)
    return x if by_dim else g.node(n, "copy", [x])


def _edge_pad(place):
    """reflection and replication: `place` of (position, extent) is the element that is seen there."""
    def write(g, n, a, k):
        shape, pads, by_dim = g.shape(a[0]), a[1], []
        for i in range(len(pads) // 2):
            d = len(shape) - 1 - i
            if pads[2 * i] or pads[2 * i + 1]:
                by_dim.append((d, [place(p, shape[d]) for p in range(-pads[2 * i], shape[d] + pads[2 * i + 1])]))
        return _taken(g, n, a[0], by_dim)
    return write


def _flip(g, n, a, k):
    shape = g.shape(a[0])
    return _taken(g, n, a[0], [(d % len(shape), list(reversed(range(shape[d])))) for d in a[1] if shape[d] > 1])


def _roll(g, n, a, k):
    x, shape = a[0], g.shape(a[0])
    shifts, dims = a[1] if isinstance(a[1], (list, tuple)) else [a[1]], _get(a, 2, [])
    dims = dims if isinstance(dims, (list, tuple)) else [dims]
    if not dims:
        count = math.prod(shape)
        flat = g.extra(n, "reshape", [x], shape=[count], type_of=x)
        return g.node(n, "reshape", [g.take(n, flat, 0, [(i - shifts[0]) % count for i in range(count)], last=False)])
    return _taken(g, n, x, [(d % len(shape), [(i - s) % shape[d] for i in range(shape[d])]) for s, d in zip(shifts, dims)])


def _repeat(g, n, a, k):
    times, shape = list(a[1]), g.shape(a[0])
    shape = [1] * (len(times) - len(shape)) + shape
    apart, wide = [], []
    for t, s in zip(times, shape):
        apart += [1, s] if t > 1 and s > 1 else [s]
        wide += [t, s] if t > 1 and s > 1 else [t * s]
    if len(wide) > 8:
        g.refuse(n)
    x = g.extra(n, "reshape", [a[0]], shape=apart, type_of=a[0])
    return g.node(n, "reshape", [g.extra(n, "expand", [x], shape=wide, type_of=x)])


def _unfold(g, n, a, k):
    """Windows along a dimension, as a last one."""
    x, shape = a[0], g.shape(a[0])
    dim, size, step = a[1] % len(shape), a[2], a[3]
    count = (shape[dim] - size) // step + 1
    places = [[i * step + j for j in range(size)] for i in range(count)]
    made = g.take(n, x, dim, places, last=False, shape=shape[:dim] + [count, size] + shape[dim + 1:])
    rank = len(shape) + 1
    return g.node(n, "permute", [made], {"order": [d for d in range(rank) if d != dim + 1] + [dim + 1]})


def _as_strided(g, n, a, k):
    """The elements at these places in memory: another shape where they follow one another, else by index."""
    x, size, strides, start, step = a[0], list(a[1]), list(a[2]), _get(a, 3, 0) or 0, 1
    if not n.args[0].meta["val"].is_contiguous() or n.args[0].meta["val"].storage_offset():
        g.refuse(n)
    dense = start == 0 and math.prod(size) == math.prod(g.shape(x))
    for s, stride in reversed(list(zip(size, strides))):
        dense = dense and (s == 1 or stride == step)
        step *= s
    if dense:
        return g.node(n, "reshape", [x])
    import torch
    places = torch.full((), start, dtype=torch.int64)
    for s, stride in zip(size, strides):
        places = places.unsqueeze(-1) + torch.arange(s) * stride
    flat = g.extra(n, "reshape", [x], shape=[math.prod(g.shape(x))], type_of=x)
    return g.node(n, "index_select", [flat, g.constant(n, places)], {"dim": 0})


def _im2col(g, n, a, k):
    x, shape = a[0], g.shape(a[0])
    kernel, dilation, padding, stride = a[1], a[2], a[3], a[4]
    batched = len(shape) == 4
    if not batched:
        x, shape = g.extra(n, "reshape", [x], shape=[1] + shape, type_of=x), [1] + shape
    if any(padding):
        x = _padded(g, n, x, [(0, 0), (0, 0), (padding[0], padding[0]), (padding[1], padding[1])], 0.0, last=False)
    counts = []
    for d in (1, 0):  # the last dimension first
        extent = g.shape(x)[2 + d]
        count = (extent - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1
        counts.insert(0, count)
        places = [[t * dilation[d] + i * stride[d] for i in range(count)] for t in range(kernel[d])]
        at = g.shape(x)
        x = g.take(n, x, 2 + d, places, last=False, shape=at[:2 + d] + [kernel[d], count] + at[3 + d:])
    to = [shape[0], shape[1], kernel[0], kernel[1], *counts]
    return g.node(n, "reshape", [g.extra(n, "permute", [x], {"order": [0, 1, 2, 4, 3, 5]}, shape=to, type_of=x)])


def _diagonal(g, n, a, k):
    x, shape = a[0], g.shape(a[0])
    offset, one, two = _get(a, 1, 0), _get(a, 2, 0) % len(shape), _get(a, 3, 1) % len(shape)
    order = [d for d in range(len(shape)) if d not in (one, two)] + [one, two]
    rows, columns = shape[one], shape[two]
    if order != list(range(len(shape))):
        x = g.extra(n, "permute", [x], {"order": order}, shape=[shape[d] for d in order], type_of=x)
    flat = g.extra(n, "reshape", [x], shape=[shape[d] for d in order[:-2]] + [rows * columns], type_of=x)
    places = [i * columns + i + offset for i in range(rows) if 0 <= i + offset < columns]
    return g.take(n, flat, len(shape) - 2, places)


def _scattered(g, n, x, part, dim, places):
    """x with the elements of `part` at known places of a dimension."""
    shape = g.shape(x)
    where = {p: i for i, p in enumerate(places)}
    if list(places) == list(range(places[0], places[0] + len(places))):
        pieces = []
        for start, length in ((0, places[0]), (None, 0), (places[-1] + 1, shape[dim] - places[-1] - 1)):
            if start is None:
                pieces.append(part)
            elif length > 0:
                starts = [0] * len(shape)
                starts[dim] = start
                pieces.append(g.extra(n, "slice", [x], {"starts": starts}, shape=shape[:dim] + [length] + shape[dim + 1:], type_of=x))
        return g.node(n, "cat", pieces, {"dim": dim})
    both = g.extra(n, "cat", [x, part], {"dim": dim}, shape=shape[:dim] + [shape[dim] + len(places)] + shape[dim + 1:], type_of=x)
    return g.take(n, both, dim, [shape[dim] + where[i] if i in where else i for i in range(shape[dim])])


def _slice_scatter(g, n, a, k):
    shape = g.shape(a[0])
    dim, step = _get(a, 2, k.get("dim", 0)) % len(shape), _get(a, 5, k.get("step", 1))
    places = list(range(shape[dim]))[slice(_get(a, 3, k.get("start")), _get(a, 4, k.get("end")), step)]
    if not places:
        return g.node(n, "copy", [a[0]])
    return _scattered(g, n, a[0], a[1], dim, places)


def _select_scatter(g, n, a, k):
    shape = g.shape(a[0])
    dim, at = a[2] % len(shape), a[3] % shape[a[2] % len(shape)]
    part = g.extra(n, "reshape", [a[1]], shape=shape[:dim] + [1] + shape[dim + 1:], type_of=a[1])
    return _scattered(g, n, a[0], part, dim, [at])


# Elements by index.

def _index(g, n, a, k):
    """x[i], x[:, i, j], x[i, :, j]: places that are known become one constant."""
    import torch
    x, shape, given = a[0], g.shape(a[0]), [(d, i) for d, i in enumerate(n.args[1]) if i is not None]
    dims = [d for d, _ in given]
    known = [g.known.value(i) for _, i in given]
    if dims != list(range(dims[0], dims[0] + len(dims))) or not all(isinstance(v, torch.Tensor) and v.dtype == torch.int64 for v in known):
        return _torch_scatter.index(g, n, a, k)
    flat = torch.zeros((), dtype=torch.int64)
    for d, v in zip(dims, known):
        flat = flat * shape[d] + torch.where(v < 0, v + shape[d], v)
    if len(dims) > 1:
        to = shape[:dims[0]] + [math.prod(shape[d] for d in dims)] + shape[dims[-1] + 1:]
        x = g.extra(n, "reshape", [x], shape=to, type_of=x)
    a[1]  # looked at
    return g.node(n, "index_select", [x, g.constant(n, flat)], {"dim": dims[0]})


def _index_select(g, n, a, k):
    shape = g.shape(a[0])
    return g.node(n, "index_select", [a[0], a[2]], {"dim": a[1] % len(shape)})


def _gather(g, n, a, k):
    k.get("sparse_grad")
    return g.node(n, "gather", [a[0], a[2]], {"dim": a[1] % max(1, len(g.shape(a[0])))})


# Resizing: along each dimension a product with a known matrix, or a choice of elements.

def _matrices(n, shape, count):
    """By spatial dimension: the matrix (input, output) that the operator is along it, found by giving it unit vectors."""
    import torch
    from torch._subclasses.fake_tensor import unset_fake_temporarily
    made = []
    out = _shape(n)[-count:]
    names = [argument.name for argument in n.target._schema.arguments]
    given = dict(zip(names[1:], n.args[1:]), **n.kwargs)
    for d in range(count):
        extent = shape[-count + d]
        # The other dimensions have two elements: of one, torch's antialiased kernel takes channels for neighbours.
        eye = torch.eye(extent).reshape([extent, 1] + [extent if i == d else 1 for i in range(count)])
        eye = eye.expand([extent, 1] + [extent if i == d else 2 for i in range(count)]).contiguous()
        mine = dict(given, output_size=[out[i] if i == d else 2 for i in range(count)])
        factors = mine.pop("scale_factors", None)
        scales = [name for name in mine if name.startswith("scales")]
        for i, name in enumerate(scales):
            if i != d:
                mine[name] = None
        if factors is not None:
            return None
        with unset_fake_temporarily(), torch.no_grad():
            y = n.target(eye, **mine)
        y = y[0] if isinstance(y, tuple) else y
        made.append(y[(slice(None), 0, *[slice(None) if i == d else 0 for i in range(count)])])
    return made


def _by_matrices(g, n, x, matrices, nearest=False):
    count, lead = len(matrices), len(g.shape(x)) - len(matrices)
    todo = [(lead + d, m) for d, m in enumerate(matrices) if m.shape[0] != m.shape[1] or not bool((m == _eye(m)).all())]
    for i, (dim, m) in enumerate(todo):
        last, shape = i + 1 == len(todo), g.shape(x)
        to = shape[:dim] + [m.shape[1]] + shape[dim + 1:]
        if nearest:
            places = m.argmax(0).tolist()
            times = m.shape[1] // m.shape[0]
            if times * m.shape[0] == m.shape[1] and places == [p // times for p in range(m.shape[1])] and len(shape) < 8:
                one = g.extra(n, "reshape", [x], shape=shape[:dim + 1] + [1] + shape[dim + 1:], type_of=x)
                wide = g.extra(n, "expand", [one], shape=shape[:dim + 1] + [times] + shape[dim + 1:], type_of=x)
                x = g.node(n, "reshape", [wide]) if last else g.extra(n, "reshape", [wide], shape=to, type_of=x)
            else:
                x = g.take(n, x, dim, places, last)
            continue
        outer, inner = math.prod(shape[:dim]), math.prod(shape[dim + 1:])
        if inner == 1:
            flat = g.extra(n, "reshape", [x], shape=[outer, shape[dim]], type_of=x)
            y = g.extra(n, "matmul", [flat, g.constant(n, m)], shape=[outer, m.shape[1]], type_of=x)
        else:
            flat = g.extra(n, "reshape", [x], shape=[outer, shape[dim], inner], type_of=x)
            turned = g.extra(n, "reshape", [g.constant(n, m.t())], shape=[1, m.shape[1], m.shape[0]], dtype="f32")
            wide = g.extra(n, "expand", [turned], shape=[outer, m.shape[1], m.shape[0]], dtype="f32")
            y = g.extra(n, "matmul", [wide, flat], shape=[outer, m.shape[1], inner], type_of=x)
        x = g.node(n, "reshape", [y]) if last else g.extra(n, "reshape", [y], shape=to, type_of=x)
    return x if todo else g.node(n, "copy", [x])


def _eye(m):
    import torch
    return torch.eye(m.shape[0])


def _resized(count, nearest):
    def write(g, n, a, k):
        list(a)
        for key in k:
            k.get(key)
        matrices = _matrices(n, g.shape(a[0]), count)
        return g.refuse(n) if matrices is None else _by_matrices(g, n, a[0], matrices, nearest)
    return write


def _adaptive_average(count):
    def write(g, n, a, k):
        size, shape = _shape(n)[-count:], g.shape(a[0])[-count:]
        a[1]
        if all(s % t == 0 for s, t in zip(shape, size)):
            return g.node(n, "adaptive_avg_pool", [a[0]], {"dims": count, "size": size})
        return _by_matrices(g, n, a[0], [_averages(s, t) for s, t in zip(shape, size)])
    return write


def _windows(extent, size):
    return [range(i * extent // size, -(-(i + 1) * extent // size)) for i in range(size)]


def _averages(extent, size):
    import torch
    m = torch.zeros(extent, size)
    for i, window in enumerate(_windows(extent, size)):
        m[window[0]:window[-1] + 1, i] = 1.0 / len(window)
    return m


def _adaptive_largest(count):
    """Windows of one length: of a shorter one the last element is there several times."""
    def write(g, n, a, k):
        x, size = a[0], _shape(n)[-count:]
        a[1]
        lead = len(g.shape(x)) - count
        todo = [d for d in range(count) if g.shape(x)[lead + d] != size[d]]
        for i, d in enumerate(todo):
            dim, shape = lead + d, g.shape(x)
            windows = _windows(shape[dim], size[d])
            longest = max(len(w) for w in windows)
            cut = shape[:dim] + [size[d], longest] + shape[dim + 1:]
            if longest * size[d] == shape[dim]:
                x = g.extra(n, "reshape", [x], shape=cut, type_of=x)
            else:
                x = g.take(n, x, dim, [[w[min(j, len(w) - 1)] for j in range(longest)] for w in windows], last=False, shape=cut)
            to = shape[:dim] + [size[d]] + shape[dim + 1:]
            attributes = {"dims": [dim + 1], "keepdim": False}
            x = g.node(n, "amax", [x], attributes) if i + 1 == len(todo) else g.extra(n, "amax", [x], attributes, shape=to, type_of=x)
        return x if todo else g.node(n, "copy", [x])
    return write


def _cdist(g, n, a, k):
    x, y, p = a[0], a[1], float(a[2])
    _get(a, 3)
    if p not in (1.0, 2.0):
        g.refuse(n)
    s, t = g.shape(x), g.shape(y)
    left = g.extra(n, "reshape", [x], shape=s[:-1] + [1, s[-1]])
    right = g.extra(n, "reshape", [y], shape=t[:-2] + [1] + t[-2:])
    apart = g.extra(n, "sub", [left, right], shape=_shape(n) + [s[-1]])
    return g.node(n, "norm", [apart], {"p": p, "dims": [len(_shape(n))], "keepdim": False})


def table():
    t = {}
    t["sign"] = t["sgn"] = _chain(("gt", ["x", 0.0], "bool"), ("lt", ["x", 0.0], "bool"), ("cast", ["#0"]), ("cast", ["#1"]), ("sub", ["#2", "#3"]))
    t["trunc"] = t["fix"] = lambda g, n, a, k: trunc(g, n, a[0])
    t["round"] = _round
    t["exp2"] = _chain(("pow", [2.0, "x"]))
    t["log2"] = _chain(("log", ["x"]), ("mul", ["#0", 1.0 / math.log(2)]))
    t["log10"] = _chain(("log", ["x"]), ("mul", ["#0", 1.0 / math.log(10)]))
    # tanh(x / 2) (e^x + 1): nothing cancels near 0.
    small = lambda sign: (("mul", ["x", 0.5 * sign]), ("tanh", ["#0"]), ("mul", ["x", 1.0 * sign]), ("exp", ["#2"]), ("add", ["#3", 1.0]))  # noqa: E731
    t["expm1"] = _chain(*small(1), ("mul", ["#1", "#4"]))
    t["sinh"] = _chain(("mul", ["x", 0.5]), ("tanh", ["#0"]), ("exp", ["x"]), ("neg", ["x"]), ("exp", ["#3"]), ("add", ["#2", 1.0]), ("add", ["#4", 1.0]),
                       ("add", ["#5", "#6"]), ("mul", ["#1", "#7"]), ("mul", ["#8", 0.5]))
    t["cosh"] = _chain(("exp", ["x"]), ("neg", ["x"]), ("exp", ["#1"]), ("add", ["#0", "#2"]), ("mul", ["#3", 0.5]))
    t["tan"] = _chain(("sin", ["x"]), ("cos", ["x"]), ("div", ["#0", "#1"]))
    t["erfc"] = _chain(("erf", ["x"]), ("sub", [1.0, "#0"]))
    t["floor_divide"] = floor_divide
    t["remainder"] = _remainder
    t["hypot"] = _pair(("mul", ["x", "x"]), ("mul", ["y", "y"]), ("add", ["#0", "#1"]), ("sqrt", ["#2"]))
    # Of two equal ones, infinite ones among them, no difference is taken.
    t["logaddexp"] = _pair(("maximum", ["x", "y"]), ("sub", ["x", "y"]), ("abs", ["#1"]), ("neg", ["#2"]), ("exp", ["#3"]), ("log1p", ["#4"]), ("add", ["#0", "#5"]),
                           ("eq", ["x", "y"], "bool"), ("add", ["x", math.log(2)]), ("where", ["#7", "#8", "#6"]))
    for name, op in (("bitwise_and", "logical_and"), ("bitwise_or", "logical_or"), ("bitwise_not", "logical_not")):
        t[name] = _logical(op)
    t["bitwise_xor"] = t["logical_xor"] = _xor
    t["copy"] = _copy
    t["masked_fill"] = _masked_fill
    t["_prelu_kernel"] = _prelu
    t["rrelu_with_noise"] = t["rrelu_with_noise_functional"] = _rrelu
    t["var"], t["var_mean"] = _var, _var_mean
    t["any"], t["all"], t["count_nonzero"] = _of_truth("amax"), _of_truth("amin"), _of_truth("sum")
    t["aminmax"] = _aminmax
    t["cat"], t["stack"] = _cat, _stack
    t["split"] = t["split_with_sizes"] = t["unsafe_split"] = _split
    t["unbind"] = _unbind
    t["constant_pad_nd"] = _constant_pad
    for count in (1, 2, 3):
        t[f"reflection_pad{count}d"] = _edge_pad(lambda p, extent: abs(p) if p < extent else 2 * (extent - 1) - p)
        t[f"replication_pad{count}d"] = _edge_pad(lambda p, extent: min(max(p, 0), extent - 1))
        for name in (f"upsample_nearest{count}d", f"_upsample_nearest_exact{count}d"):
            t[name] = _resized(count, True)
        t[f"_adaptive_avg_pool{count}d"] = t[f"adaptive_avg_pool{count}d"] = _adaptive_average(count)
        t[f"adaptive_max_pool{count}d"] = _adaptive_largest(count)
    t["upsample_linear1d"], t["upsample_trilinear3d"] = _resized(1, False), _resized(3, False)
    for name in ("upsample_bilinear2d", "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
        t[name] = _resized(2, False)
    t["flip"], t["roll"], t["repeat"] = _flip, _roll, _repeat
    t["as_strided"] = _as_strided
    t["unfold"], t["im2col"], t["diagonal"] = _unfold, _im2col, _diagonal
    t["slice_scatter"], t["select_scatter"] = _slice_scatter, _select_scatter
    t["index"] = t["_unsafe_index"] = _index
    t["index_select"], t["gather"] = _index_select, _gather
    t["embedding"] = lambda g, n, a, k: g.node(n, "index_select", a[:2], {"dim": 0})
    t["_cdist_forward"] = _cdist
    return t
