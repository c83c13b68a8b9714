"""Whole numbers, exactly: kernels fold in f32, which holds 24 bits, so numbers are folded by digits, and what f32 would round is written by sums and choices."""
import math

from ._torch_steps import Steps, is_name

_DIGIT, _WIDE_DIGIT = 12, 20  # bits: 4096 digits add up to less than 2^24; a largest one of 20 bits is held as it is


def _get(a, i, default=None):
    return a[i] if len(a) > i and a[i] is not None else default


def _is_whole(g, x):
    return is_name(x) and g.dtype(x) in ("i32", "i64")


def _of_truths(g, x):
    """Whether a value is known to be 0 or 1 everywhere."""
    made = next((m for m in g.nodes if m["name"] == x), None)
    while made is not None and made["op"] in ("cast", "reshape", "permute", "expand", "slice", "copy"):
        x = made["inputs"][0]
        if g.dtype(x) == "bool":
            return True
        made = next((m for m in g.nodes if m["name"] == x), None)
    return False


def _lines(s, x, dims):
    """The folded dimensions as one, behind the others."""
    shape = s.shape(x)
    dims = sorted(d % len(shape) for d in dims) if dims else list(range(len(shape)))
    kept = [d for d in range(len(shape)) if d not in dims]
    x = s.permute(x, kept + dims)
    return s.reshape(x, [shape[d] for d in kept] + [math.prod(shape[d] for d in dims)])


def _by_digits(s, x, fold, most):
    """A linear fold: of each digit, put together again as torch's integers wrap around."""
    g, parts = s.g, []
    if _of_truths(g, x):
        return s.cast(fold(s.cast(x, "f32")), "i64")
    if most > 1 << (24 - _DIGIT):
        from ._torch_rules import Unsupported
        raise Unsupported(f"a sum of {most} integers: up to {1 << (24 - _DIGIT)} of them are added up exactly", [s.n.target._opname])
    bits = 32 if g.dtype(x) == "i32" else 64
    left = s.cast(x, "i64")
    for low in range(0, bits, _DIGIT):
        digit = left
        if low + _DIGIT < bits:
            digit, left = s("remainder", left, 1 << _DIGIT), s("floor_divide", left, 1 << _DIGIT)
        part = s.cast(fold(s.cast(digit, "f32")), "i64")
        parts.append(part)
    total = parts.pop()
    while parts:
        total = s("add", s("mul", total, 1 << _DIGIT), parts.pop())
    return total


def _sum(g, n, a, k):
    dims = _get(a, 1)
    _get(a, 2, k.get("keepdim"))
    s = Steps(g, n)
    lines = _lines(s, a[0], dims if dims is None or isinstance(dims, (list, tuple)) else [dims])
    return _done(s, _by_digits(s, lines, lambda v: s.fold("sum", v), s.shape(lines)[-1]))


def _done(s, y, at=None):
    from ._torch_rules import dtype_of
    value = (at or s.n).meta["val"]
    return s.done(s.cast(y, dtype_of(value[0] if isinstance(value, (list, tuple)) else value)), at)


def _cumsum(g, n, a, k):
    s, shape = Steps(g, n), g.shape(a[0])
    dim = a[1] % len(shape)
    return _done(s, _by_digits(s, a[0], lambda v: s("cumsum", v, dim=dim), shape[dim]))


def _extreme(s, lines, op):
    """Of the largest leading digits the largest of what follows them."""
    x, n = s.cast(lines, "i64"), len(s.shape(lines))
    worst = -1.0 if op == "amax" else float(1 << _WIDE_DIGIT)
    best, among = None, None
    for low in (2 * _WIDE_DIGIT, _WIDE_DIGIT, 0):
        digit = s("floor_divide", x, 1 << low) if low else x
        digit = s("remainder", digit, 1 << _WIDE_DIGIT) if low < 2 * _WIDE_DIGIT else digit
        digit = s.cast(digit, "f32")
        top = s(op, digit if among is None else s("where", among, digit, worst, dtype="f32"), shape=s.shape(lines)[:-1] + [1], dims=[n - 1], keepdim=True)
        here = s("eq", digit, top)
        among = here if among is None else s("logical_and", among, here)
        whole = s("mul", s.cast(top, "i64"), 1 << low) if low else s.cast(top, "i64")
        best = whole if best is None else s("add", best, whole)
    return best, among


def _largest(op):
    def write(g, n, a, k):
        dims = _get(a, 1, k.get("dim"))
        _get(a, 2, k.get("keepdim"))
        s = Steps(g, n)
        lines = _lines(s, a[0], dims if dims is None or isinstance(dims, (list, tuple)) else [dims])
        return _done(s, _extreme(s, lines, op)[0])
    return write


def _place(op):
    def write(g, n, a, k):
        s, dim = Steps(g, n), _get(a, 1, k.get("dim"))
        _get(a, 2, k.get("keepdim"))
        return _done(s, _first(s, _lines(s, a[0], None if dim is None else [dim]), op))
    return write


def _first(s, lines, op):
    best = s.cast(_extreme(s, lines, op)[1], "f32")
    return s("argmax", best, shape=s.shape(lines)[:-1], dtype="i64", dim=len(s.shape(lines)) - 1, keepdim=False)


def _with_place(op):
    def write(g, n, a, k):
        s, dim = Steps(g, n), _get(a, 1, k.get("dim"))
        _get(a, 2, k.get("keepdim"))
        lines = _lines(s, a[0], None if dim is None else [dim])
        g.several[n.name] = [lambda m: _done(s, _extreme(s, lines, op)[0], m), lambda m: _done(s, _first(s, lines, op), m)]
    return write


def _negative(g, n, a, k):
    return g.node(n, "sub", [0, a[0]])


def _size(g, n, a, k):
    s = Steps(g, n)
    return g.node(n, "maximum", [a[0], s("sub", 0, a[0])])


def _sign(g, n, a, k):
    s = Steps(g, n)
    return g.node(n, "minimum", [s("maximum", a[0], -1), 1])


def _same(g, n, a, k):
    return g.node(n, "copy", [a[0]])


def _power(g, n, a, k):
    """By a small whole number: products."""
    e = a[1]
    if not isinstance(e, int) or not 1 <= e <= 8:
        g.refuse(n)
    s, y = Steps(g, n), a[0]
    for _ in range(e - 1):
        y = s("mul", y, a[0])
    return g.node(n, "copy", [y])


def _bounded(low_of, high_of):
    def write(g, n, a, k):
        s, y = Steps(g, n), a[0]
        low, high = low_of(a, k), high_of(a, k)
        for op, bound in (("maximum", low), ("minimum", high)):
            if isinstance(bound, float) and math.isinf(bound):
                continue
            if bound is not None:
                y = s(op, y, int(bound) if isinstance(bound, float) and bound.is_integer() else bound)
        return _done(s, y)
    return write


def _towards_zero(g, n, a, k):
    """The quotient by a positive number: rounded down, and one more where something is left of a negative one."""
    mode, by = k.get("rounding_mode"), a[1]
    if mode != "trunc" or not isinstance(by, int) or by < 1:
        return None
    s = Steps(g, n)
    low, left = s("floor_divide", a[0], by), s("remainder", a[0], by)
    up = s("logical_and", s("lt", a[0], 0), s("ne", left, 0))
    return g.node(n, "add", [low, s.cast(s.cast(up, "f32"), s.dtype(a[0]))])


def _left_of_trunc(g, n, a, k):
    """What is left then: of the sign of what is divided."""
    by = a[1]
    if not isinstance(by, int) or by == 0:
        g.refuse(n)
    s, by = Steps(g, n), abs(by)
    left = s("remainder", a[0], by)
    below = s("logical_and", s("lt", a[0], 0), s("ne", left, 0))
    return g.node(n, "where", [below, s("sub", left, by), left])


def _triangle(op):
    """By a table of which elements stay."""
    def write(g, n, a, k):
        s, diagonal = Steps(g, n), _get(a, 1, 0)
        rows, columns = g.shape(a[0])[-2:]
        down, along = s.reshape(s.positions(rows, "i64"), [rows, 1]), s.positions(columns, "i64")
        return g.node(n, "where", [s("ge" if op == "triu" else "le", s("sub", along, down), diagonal), a[0], 0])
    return write


def _either(plain):
    """Division: what is not towards zero is written as of floats, which refuses what it does not hold."""
    def write(g, n, a, k):
        return (k.get("rounding_mode") == "trunc" and _towards_zero(g, n, a, k)) or plain(g, n, a, k)
    return write


_EXACT = {"neg": _negative, "abs": _size, "sign": _sign, "sgn": _sign, "floor": _same, "ceil": _same, "round": _same, "trunc": _same, "pow": _power,
          "square": lambda g, n, a, k: g.node(n, "mul", [a[0], a[0]]), "fmod": _left_of_trunc, "triu": _triangle("triu"), "tril": _triangle("tril"),
          "clamp": _bounded(lambda a, k: _get(a, 1, k.get("min")), lambda a, k: _get(a, 2, k.get("max"))), "clamp_min": _bounded(lambda a, k: a[1], lambda a, k: None),
          "clamp_max": _bounded(lambda a, k: None, lambda a, k: a[1]), "hardtanh": _bounded(lambda a, k: _get(a, 1, -1), lambda a, k: _get(a, 2, 1)), "sum": _sum, "cumsum": _cumsum, "amax": _largest("amax"), "amin": _largest("amin"), "argmax": _place("amax"), "argmin": _place("amin"),
          "max": _with_place("amax"), "min": _with_place("amin")}


def exact_for_integers(table):
    """The same rules, but for integers whose result is one too."""
    def either(name):
        plain, whole = table.get(name, lambda g, n, a, k: g.refuse(n)), _EXACT[name]
        return lambda g, n, a, k: (whole if _is_whole(g, a[0]) and _gives_whole(n) else plain)(g, n, a, k)
    return {**{name: either(name) for name in _EXACT}, "div": _either(table["div"])}


def _gives_whole(n):
    value = n.meta["val"]
    value = value[0] if isinstance(value, (list, tuple)) else value
    return str(value.dtype) in ("torch.int32", "torch.int64")
