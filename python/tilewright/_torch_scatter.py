"""Elements of torch that are stored or read at places of an index tensor. What is stored is found from its place: of each place all elements of the index are looked at, so the order is
that of the index, equal places included, and nothing is added up by atomics. A line of P places and J stored elements costs P * J comparisons."""
import math

from ._torch_steps import Steps, broadcast, count_of, floating, is_name

_MOST_COMPARISONS = 1 << 36


def _get(a, i, default=None):
    return a[i] if len(a) > i and a[i] is not None else default


class _Line:
    """x with the places last, (lead, P), and an index, (lead, J), whose leading dimensions may be 1."""

    def __init__(self, s, x, index, what):
        self.s, self.x, self.index = s, x, index
        self.places, self.stored = s.shape(x)[-1], s.shape(index)[-1]
        cost = count_of(s.shape(x)) * self.stored
        if cost > _MOST_COMPARISONS:
            from ._torch_rules import Unsupported
            raise Unsupported(f"{what} of {self.stored} elements into {self.places} places of {count_of(s.shape(x)) // self.places} lines: all of them are compared, up to {_MOST_COMPARISONS} in all", [what])
        shape = s.shape(index)
        self.hit = s("eq", s.reshape(index, shape[:-1] + [1, self.stored]), s.reshape(s.positions(self.places, "i64"), [self.places, 1]))

    def beside(self, source):
        """What is stored, beside the places: (lead, 1, J), or a number."""
        if not is_name(source):
            return source
        shape = self.s.shape(source)
        return self.s.reshape(source, shape[:-1] + [1, shape[-1]]) if shape else source

    def some(self):
        """Whether anything is stored at a place."""
        s = self.s
        return s("gt", s.fold("amax", s.cast(self.hit, "f32")), 0.5)

    def last(self, source):
        """Of several elements that one place gets, the last one."""
        s, x, dtype = self.s, self.x, self.s.dtype(self.x)
        if not is_name(source):
            if dtype == "bool":
                return s("logical_or", x, self.some()) if source else s("logical_and", x, s("logical_not", self.some()))
            return s("where", self.some(), source, x, dtype=dtype)
        source = s.cast(source, dtype)
        if self.stored == 1:
            hit = s.reshape(self.hit, s.shape(self.hit)[:-1])
            return s("where", hit, source, x, dtype=dtype)
        count = s.positions(self.stored, start=1)
        at = s.fold("amax", s("where", self.hit, count, 0.0, dtype="f32"))
        some = s("gt", at, 0.5)
        if floating(dtype):
            chosen = s("eq", s.reshape(at, s.shape(at) + [1]), count)
            found = s.fold("sum", s("where", chosen, s.cast(self.beside(source), "f32"), 0.0, dtype="f32"))
            return s("where", some, s.cast(found, dtype), x, dtype=dtype)
        which = s.cast(s("maximum", s("sub", at, 1.0), 0.0), "i64")
        lines = broadcast([s.shape(at)[:-1], s.shape(source)[:-1]])
        source = s.expand(source, lines + s.shape(source)[-1:])
        found = s("gather", source, s.expand(which, lines + [self.places]), shape=lines + [self.places], dtype=dtype, dim=len(lines))
        if dtype == "bool":
            return s("logical_or", s("logical_and", some, found), s("logical_and", s("logical_not", some), x))
        return s("where", some, found, x, dtype=dtype)

    def folded(self, source, how, own):
        """x and what is stored at its place, added up and so on; `own`: x itself takes part."""
        s, dtype = self.s, self.s.dtype(self.x)
        wide = self.beside(s.cast(source, "f32") if is_name(source) else float(source))
        x = s.cast(self.x, "f32")
        rest = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": float("-inf"), "amin": float("inf")}[how]
        made = s.fold({"mean": "sum"}.get(how, how), s("where", self.hit, wide, rest, dtype="f32"))
        both = {"sum": "add", "mean": "add", "prod": "mul", "amax": "maximum", "amin": "minimum"}[how]
        if own:
            made = s(both, x, made)
        if how == "mean":
            count = s.fold("sum", s.cast(self.hit, "f32"))
            made = s("div", made, s("add", count, 1.0) if own else s("maximum", count, 1.0))
        return s.cast(made if own else s("where", self.some(), made, x, dtype="f32"), dtype)


def _into(g, n, x, dim, index, source, how, own=True):
    s = Steps(g, n)
    what, shape = n.target._opname, g.shape(x)
    if how != "last" and not floating(g.dtype(x)):
        g.refuse(n)
    if not shape:
        x, index, source, dim = s.reshape(x, [1]), s.reshape(index, [1]), s.reshape(source, [1]) if is_name(source) and not g.shape(source) else source, 0
        shape = [1]
    dim %= len(shape)
    stored = g.shape(index) or [1]
    index = s.reshape(index, stored)
    if is_name(source) and g.shape(source) != stored:
        source = s("slice", source, shape=stored, starts=[0] * len(stored))
    for d, size in enumerate(shape):  # an index that is shorter names no place there
        if d != dim and stored[d] != size:
            rest = [size - stored[d] if i == d else e for i, e in enumerate(stored)]
            stored = [size if i == d else e for i, e in enumerate(stored)]
            index = s("cat", index, s("full", shape=rest, dtype="i64", value=-1.0), shape=stored, dtype="i64", dim=d)
            if is_name(source):
                source = s("cat", source, s("full", shape=rest, dtype=g.dtype(source), value=0.0), shape=stored, dim=d)
    line = _Line(s, s.line_last(x, dim), s.line_last(index, dim), what)
    source = s.line_last(source, dim) if is_name(source) else source
    y = line.last(source) if how == "last" else line.folded(source, how, own)
    return s.done(s.line_back(y, dim))


_REDUCTIONS = {"add": "sum", "multiply": "prod", "sum": "sum", "prod": "prod", "mean": "mean", "amax": "amax", "amin": "amin"}


def _scatter(g, n, a, k):
    how = k.get("reduce", _get(a, 4))
    return _into(g, n, a[0], a[1], a[2], _get(a, 3, k.get("value", k.get("src"))), "last" if how is None else _REDUCTIONS[how])


def _scatter_add(g, n, a, k):
    return _into(g, n, a[0], a[1], a[2], a[3], "sum")


def _scatter_reduce(g, n, a, k):
    return _into(g, n, a[0], a[1], a[2], a[3], _REDUCTIONS[a[4]], bool(k.get("include_self", _get(a, 5, True))))


def _along(g, n, x, dim, index, source, how, own=True):
    """One index, a vector, for all lines."""
    s = Steps(g, n)
    if how != "last" and not floating(g.dtype(x)):
        g.refuse(n)
    shape = g.shape(x)
    dim %= max(1, len(shape))
    if is_name(source) and len(g.shape(source)) == len(shape) and shape:
        source = s.line_last(source, dim)
    line = _Line(s, s.line_last(x, dim) if shape else s.reshape(x, [1]), s.reshape(index, [count_of(g.shape(index))]), n.target._opname)
    y = line.last(source) if how == "last" else line.folded(source, how, own)
    return s.done(s.line_back(y, dim) if shape else y)


def _index_add(g, n, a, k):
    alpha, source, s = k.get("alpha", _get(a, 4, 1)), a[3], Steps(g, n)
    if alpha != 1:
        source = s("mul", source, float(alpha))
    return _along(g, n, a[0], a[1], a[2], source, "sum")


def _index_copy(g, n, a, k):
    return _along(g, n, a[0], a[1], a[2], a[3], "last")


def _index_fill(g, n, a, k):
    value = a[3]
    if is_name(value):
        value = Steps(g, n).reshape(value, [1])
    return _along(g, n, a[0], a[1], _inside(Steps(g, n), a[2], g.shape(a[0])[a[1]] if g.shape(a[0]) else 1), value, "last")


def _index_reduce(g, n, a, k):
    return _along(g, n, a[0], a[1], a[2], a[3], _REDUCTIONS[a[4]], bool(k.get("include_self", _get(a, 5, True))))


# x[i, :, j]: several indices are one, into the dimensions that they choose from.

def _inside(s, index, extent):
    """Places that are counted from the end, from the start."""
    made = next((m for m in s.g.nodes if m["name"] == index), None)
    while made is not None and made["op"] in ("reshape", "expand", "permute", "copy", "slice"):
        made = next((m for m in s.g.nodes if m["name"] == made["inputs"][0]), None)
    constant = next((p for p in s.g.parameters if p["name"] == index and "values" in p), None)
    if made is not None and made["op"] in ("argmax", "argmin", "remainder") or constant is not None and min(constant["values"], default=0) >= 0:
        return index
    return s("where", s("lt", index, 0), s("add", index, extent), index, dtype=s.dtype(index))


class _Places:
    """The dimensions of x that have an index, as one dimension, and one index into it."""

    def __init__(self, g, n, x, indices):
        s = self.s = Steps(g, n)
        dims = [d for d, i in enumerate(indices) if i is not None]
        if not dims or any(g.dtype(i) not in ("i32", "i64") for i in indices if i is not None):
            g.refuse(n)
        shape = g.shape(x)
        apart = dims != list(range(dims[0], dims[0] + len(dims)))  # then the index's dimensions come first
        self.order = dims + [d for d in range(len(shape)) if d not in dims] if apart else list(range(len(shape)))
        self.first, self.count, self.chosen = 0 if apart else dims[0], len(dims), [shape[d] for d in dims]
        self.x = s.permute(x, self.order)
        self.index = None
        for d in dims:
            one = s.cast(_inside(s, indices[d], shape[d]), "i64") if len(dims) > 1 else _inside(s, indices[d], shape[d])
            self.index = one if self.index is None else s("add", s("mul", self.index, shape[d]), one)
        self.shape = s.shape(self.index)
        at = s.shape(self.x)
        self.before, self.behind = at[:self.first], at[self.first + self.count:]
        self.flat = s.reshape(self.x, self.before + [math.prod(self.chosen)] + self.behind)


def index(g, n, a, k):
    """Places that are not known: negative ones are counted from the end."""
    x, indices = a[0], a[1]
    p = _Places(g, n, x, indices)
    return g.node(n, "index_select", [p.flat, p.index], {"dim": p.first})


def _index_put(g, n, a, k):
    x, indices, values, add = a[0], a[1], a[2], bool(k.get("accumulate", _get(a, 3, False)))
    p = _Places(g, n, x, indices)
    s = p.s
    if add and not floating(g.dtype(x)):
        g.refuse(n)
    count, wide = count_of(p.shape), p.before + p.shape + p.behind
    one = is_name(values) and count_of(g.shape(values)) == 1
    if one:
        values = s.reshape(values, [1])
        values = s.expand(values, [count]) if count > 1 else values
    else:
        values = s.reshape(s.expand(s.reshape(values, [1] * (len(wide) - len(g.shape(values))) + g.shape(values)), wide), p.before + [count] + p.behind)
        values = s.line_last(values, p.first)
    line = _Line(s, s.line_last(p.flat, p.first), s.reshape(p.index, [count]), "index_put")
    y = line.folded(values, "sum", True) if add else line.last(values)
    y = s.reshape(s.line_back(y, p.first), s.shape(p.x))
    return s.done(s.permute(y, [p.order.index(d) for d in range(len(p.order))]))


def _take(g, n, a, k):
    s = Steps(g, n)
    flat = s.reshape(a[0], [count_of(g.shape(a[0]))])
    return g.node(n, "index_select", [flat, _inside(s, a[1], g.shape(flat)[0])], {"dim": 0})


def _embedding_bag(g, n, a, k):
    """Bags of one length, which are known."""
    offsets = g.known.value(n.args[2])
    mode, weights, last = _get(a, 4, 0), _get(a, 6), bool(_get(a, 7, False))
    a[:]
    if offsets is None or _get(a, 8, -1) not in (-1, None):
        g.refuse(n)
    s, at, total = Steps(g, n), offsets.tolist(), count_of(g.shape(a[1]))
    at = at if last else at + [total]
    length = at[1] - at[0] if len(at) > 1 else 0
    if length < 1 or at != list(range(0, total + 1, length)):
        g.refuse(n)
    width = g.shape(a[0])[1]
    rows = s("index_select", a[0], s.reshape(a[1], [total]), shape=[total, width], dim=0)
    if weights is not None:
        rows = s("mul", rows, s.reshape(weights, [total, 1]))
    rows = s.reshape(rows, [total // length, length, width])
    y = s(["sum", "mean", "amax"][mode], rows, shape=[total // length, width], dims=[1], keepdim=False)
    g.several[n.name] = [lambda m: s.done(y, m)]


def _fold(g, n, a, k):
    """Patches added up where they lie: a transposed convolution, each of whose channels has one tap."""
    x, size, kernel, dilation, padding, stride = a[0], a[1], a[2], a[3], a[4], a[5]
    s, shape = Steps(g, n), g.shape(a[0])
    if len(shape) == 2:
        x, shape = s.reshape(x, [1] + shape), [1] + shape
    taps = kernel[0] * kernel[1]
    channels = shape[1] // taps
    counts = [(size[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1 for d in (0, 1)]
    made = [(counts[d] - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel[d] - 1) + 1 for d in (0, 1)]
    one = [1.0 if i == t else 0.0 for i in range(taps) for t in range(taps)]
    weight = g.numbers(n, one, [taps, 1, *kernel], "f32")
    x = s.reshape(x, [shape[0] * channels, taps, *counts])
    y = s("conv", s.cast(x, "f32"), weight, shape=[shape[0] * channels, 1, *size], stride=list(stride), padding=list(padding), dilation=list(dilation), groups=1, tf32=False,
          transposed=True, output_padding=[size[d] - made[d] for d in (0, 1)])
    return s.done(s.cast(y, g.dtype(a[0])))


def _grid_sample(g, n, a, k):
    """Between the four elements around each point; what is outside is 0, or the nearest one at the edge."""
    x, points, mode, padding, corners = a[0], a[1], a[2], a[3], bool(a[4])
    if mode != 0 or padding not in (0, 1) or not floating(g.dtype(x)):
        g.refuse(n)
    s = Steps(g, n)
    batch, channels, *extents = g.shape(x)
    out = g.shape(points)[1:-1]
    count = count_of(out)
    points = s.cast(points, "f32")
    sides = []  # by dimension, x and then y: for both neighbours the place, its weight
    for d, extent in ((0, extents[1]), (1, extents[0])):
        at = s.reshape(s.slice(points, 3, d, 1), [batch, 1, count])
        at = s("add", s("mul", at, (extent - 1) / 2 if corners else extent / 2), (extent - 1) / 2)
        if padding == 1:
            at = s("clamp", at, min=0.0, max=float(extent - 1))
        low = s("floor", at)
        share = s("sub", at, low)
        both = []
        for place, weight in ((low, s("sub", 1.0, share)), (s("add", low, 1.0), share)):
            inside = s("logical_and", s("ge", place, 0.0), s("le", place, float(extent - 1)))
            both.append((s("clamp", place, min=0.0, max=float(extent - 1)), s("where", inside, weight, 0.0, dtype="f32")))
        sides.append(both)
    flat, total = s.reshape(x, [batch, channels, count_of(extents)]), None
    for column, share in sides[0]:
        for row, part in sides[1]:
            place = s("add", s("mul", s.cast(row, "i64"), extents[1]), s.cast(column, "i64"))
            found = s("gather", flat, s.expand(place, [batch, channels, count]), shape=[batch, channels, count], dtype=g.dtype(x), dim=2)
            term = s("mul", s.cast(found, "f32"), s("mul", share, part))
            total = term if total is None else s("add", total, term)
    return s.done(s.cast(total, g.dtype(x)))


def table():
    t = {"scatter": _scatter, "scatter_add": _scatter_add, "scatter_reduce": _scatter_reduce, "index_add": _index_add, "index_copy": _index_copy, "index_fill": _index_fill,
         "index_reduce": _index_reduce, "index_put": _index_put, "_unsafe_index_put": _index_put, "take": _take, "col2im": _fold, "grid_sampler_2d": _grid_sample}
    t["_embedding_bag_forward_only"] = t["_embedding_bag"] = _embedding_bag
    return t
