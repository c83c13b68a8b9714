"""Order of elements in torch: sort, topk, kthvalue, median, running extremes. An element's rank is the number of those before it; a line of n elements costs n * n comparisons."""
from ._torch_steps import Steps, count_of, floating

_MOST_COMPARISONS = 1 << 36  # about a second of a GPU's time
_SHORT = 1024                # up to here ranks cost less than one pass over the line for each of a few places
_MOST_ROUNDS = 64
_LOWEST = -3.4028234663852886e38


def _get(a, i, default=None):
    return a[i] if len(a) > i and a[i] is not None else default


def _lines(s, x, dim):
    """(the tensor with the dimension last, the dimension's number); one number is a line of one."""
    if not s.shape(x):
        return s.reshape(x, [1]), 0
    dim %= len(s.shape(x))
    return s.line_last(x, dim), dim


def _affordable(s, x, what):
    shape = s.shape(x)
    if count_of(shape) * shape[-1] > _MOST_COMPARISONS:
        from ._torch_rules import Unsupported
        raise Unsupported(f"{what} of {count_of(shape) // shape[-1]} lines of {shape[-1]} elements: each line costs the square of its length, up to {_MOST_COMPARISONS} comparisons in all", [what])


def _pairs(s, x):
    """Each element beside each other one: x_i with 1 as its last extent, x_j with 1 before it."""
    shape = s.shape(x)
    return s.reshape(x, shape + [1]), s.reshape(x, shape[:-1] + [1, shape[-1]])


def _ranks(s, x, descending):
    """By element: how many come before it; of equal ones the first is first."""
    n = s.shape(x)[-1]
    i, j = _pairs(s, x)
    ahead = s("gt" if descending else "lt", j, i)
    earlier = s("lt", s.reshape(s.positions(n), [1, n]), s.reshape(s.positions(n), [n, 1]))
    before = s("logical_or", ahead, s("logical_and", s("eq", j, i), earlier))
    return s.fold("sum", s("cast", before, dtype="f32"))


class _Chosen:
    """The elements of the ranks from `first` on, `count` of them: values and places are made when they are asked for."""

    def __init__(self, s, x, ranks, first, count):
        shape = s.shape(x)
        self.s, self.x, self.wide = s, x, shape[:-1] + [1, shape[-1]]
        self.hit = s("eq", s.reshape(ranks, self.wide), s.reshape(s.positions(count, start=first), [count, 1]))

    def values(self):
        s = self.s
        if not floating(s.dtype(self.x)):
            return s("gather", self.x, self.places(), shape=s.shape(self.hit)[:-1], dtype=s.dtype(self.x), dim=len(self.wide) - 2)
        found = s("where", self.hit, s.reshape(self.x, self.wide), float("-inf"), dtype=s.dtype(self.x))
        return s.fold("amax", found)

    def places(self):
        s = self.s
        return s.cast(s.fold("sum", s("where", self.hit, s.positions(self.wide[-1]), 0.0, dtype="f32")), "i64")


class _Rounds:
    """The first `count` elements, one after the other: the largest, then the largest of the others."""

    def __init__(self, s, x, count, descending):
        n, shape = s.shape(x)[-1], s.shape(x)
        left = s.cast(x, "f32")
        left = s("maximum", left if descending else s("neg", left), _LOWEST)  # what is taken is below all that is not
        self.s, self.x, self.hits, self.at = s, x, [], []
        for _ in range(count):
            at = s("argmax", left, shape=shape[:-1] + [1], dtype="i64", dim=len(shape) - 1, keepdim=True)
            hit = s("eq", at, s.positions(n, "i64"))
            left = s("where", hit, float("-inf"), left, dtype="f32")
            self.hits.append(hit)
            self.at.append(at)

    def _side_by_side(self, parts):
        s = self.s
        return parts[0] if len(parts) == 1 else s("cat", *parts, shape=s.shape(parts[0])[:-1] + [len(parts)], dtype=s.dtype(parts[0]), dim=len(s.shape(parts[0])) - 1)

    def values(self):
        s, dtype = self.s, self.s.dtype(self.x)
        tops = [s.fold("amax", s("where", hit, self.x, float("-inf"), dtype=dtype)) for hit in self.hits]
        return self._side_by_side([s.reshape(t, s.shape(t) + [1]) for t in tops])

    def places(self):
        return self._side_by_side(self.at)


def _both(g, n, s, chosen, dim, drop=False):
    """The two results, values and places, each with the line where it was."""
    def write(make):
        def result(m):
            y = make()
            y = s.reshape(y, s.shape(y)[:-1]) if drop else s.line_back(y, dim)
            return s.done(y, m)
        return result
    g.several[n.name] = [write(chosen.values), write(chosen.places)]


def _sort(g, n, a, k):
    stable_first = n.target._overloadname == "stable" and len(a) > 1 and isinstance(a[1], bool) and len(a) > 2 and not isinstance(a[2], bool)
    k.get("stable")
    at = 2 if stable_first else 1
    dim, descending = k.get("dim", _get(a, at, -1)), bool(k.get("descending", _get(a, at + 1, False)))
    a[:]
    s = Steps(g, n)
    x, dim = _lines(s, a[0], dim)
    _affordable(s, x, "sort")
    _both(g, n, s, _Chosen(s, x, _ranks(s, x, descending), 0, s.shape(x)[-1]), dim)


def _topk(g, n, a, k):
    count, dim, largest = a[1], k.get("dim", _get(a, 2, -1)), bool(k.get("largest", _get(a, 3, True)))
    k.get("sorted", _get(a, 4, True))  # in order is one of the orders
    s = Steps(g, n)
    x, dim = _lines(s, a[0], dim)
    length = s.shape(x)[-1]
    few = count <= _MOST_ROUNDS and floating(s.dtype(x))
    if few and length > _SHORT and (count <= 8 or count_of(s.shape(x)) * length > _MOST_COMPARISONS):
        return _both(g, n, s, _Rounds(s, x, count, largest), dim)
    _affordable(s, x, "topk")
    return _both(g, n, s, _Chosen(s, x, _ranks(s, x, largest), 0, count), dim)


def _one_rank(g, n, x, dim, rank, keepdim):
    s = Steps(g, n)
    x, dim = _lines(s, x, dim)
    _affordable(s, x, n.target._opname)
    place = rank if rank is not None else (s.shape(x)[-1] - 1) // 2
    return s, _Chosen(s, x, _ranks(s, x, False), place, 1), dim, not keepdim


def _kthvalue(g, n, a, k):
    s, chosen, dim, drop = _one_rank(g, n, a[0], k.get("dim", _get(a, 2, -1)), a[1] - 1, bool(k.get("keepdim", _get(a, 3, False))))
    _both(g, n, s, chosen, dim, drop)


def _median(g, n, a, k):
    """The lower one of the two in the middle."""
    if len(a) == 1 and "dim" not in k:
        s = Steps(g, n)
        flat = s.reshape(a[0], [count_of(s.shape(a[0]))])
        _affordable(s, flat, "median")
        return s.done(_Chosen(s, flat, _ranks(s, flat, False), (s.shape(flat)[0] - 1) // 2, 1).values())
    s, chosen, dim, drop = _one_rank(g, n, a[0], k.get("dim", _get(a, 1)), None, bool(k.get("keepdim", _get(a, 2, False))))
    return _both(g, n, s, chosen, dim, drop)


def _up_to(s, x):
    """(x_i, x_j, whether j is no later than i)."""
    n = s.shape(x)[-1]
    i, j = _pairs(s, x)
    return i, j, s("le", s.reshape(s.positions(n), [1, n]), s.reshape(s.positions(n), [n, 1]))


class _Running:
    """The largest or smallest element so far, and the last place where it stands."""

    def __init__(self, s, x, op):
        self.s, self.x, self.op = s, x, op
        _, self.j, self.seen = _up_to(s, x)

    def values(self):
        s, dtype = self.s, self.s.dtype(self.x)
        worst = float("-inf") if self.op == "amax" else float("inf")
        return s.fold(self.op, s("where", self.seen, self.j, worst, dtype=dtype))

    def places(self):
        s = self.s
        top = s.reshape(self.values(), s.shape(self.x) + [1])
        here = s("logical_and", self.seen, s("eq", self.j, top))
        return s.cast(s.fold("amax", s("where", here, s.positions(s.shape(self.x)[-1]), 0.0, dtype="f32")), "i64")


def _running(op):
    def write(g, n, a, k):
        s = Steps(g, n)
        x, dim = _lines(s, a[0], k.get("dim", _get(a, 1)))
        if not floating(s.dtype(x)):
            g.refuse(n)
        _affordable(s, x, n.target._opname)
        _both(g, n, s, _Running(s, x, op), dim)
    return write


def _logcumsumexp(g, n, a, k):
    s = Steps(g, n)
    x, dim = _lines(s, a[0], k.get("dim", _get(a, 1)))
    _affordable(s, x, "logcumsumexp")
    _, j, seen = _up_to(s, x)
    y = s.fold("logsumexp", s("where", seen, j, float("-inf"), dtype=s.dtype(x)))
    return s.done(s.line_back(y, dim))


def table():
    return {"sort": _sort, "topk": _topk, "kthvalue": _kthvalue, "median": _median, "cummax": _running("amax"), "cummin": _running("amin"), "logcumsumexp": _logcumsumexp}
