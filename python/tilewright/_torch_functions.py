"""Functions of torch that graphs have no operator for, written in those they have: errors of a few units in the last place of f32."""
import math

from ._torch_steps import Steps, is_name

_INF = float("inf")


def _get(a, i, default=None):
    return a[i] if len(a) > i and a[i] is not None else default


def _of_one(formula):
    """A function of one element, in f32."""
    def write(g, n, a, k):
        s = Steps(g, n)
        y = formula(s, s.cast(a[0], "f32"))
        return s.done(y if s.dtype(y) == "bool" else s.cast(y, _result(g, n)))
    return write


def _result(g, n):
    from ._torch_rules import dtype_of
    return dtype_of(n.meta["val"])


def polynomial(s, x, coefficients):
    """The highest power first."""
    y = coefficients[0]
    for c in coefficients[1:]:
        y = s("add", s("mul", x, y), c)
    return y


def with_sign(s, x, y):
    """y, negative where x is."""
    return s("where", s("lt", x, 0.0), s("neg", y), y, dtype="f32")


# The approximations are those of the Cephes library for single precision (S. Moshier): arguments are brought near 0 by the functions' own identities.

def _arctangent_of_size(s, size):
    far, middle = s("gt", size, 2.414213562373095), s("gt", size, 0.4142135623730950)
    near = s("where", middle, s("div", s("sub", size, 1.0), s("add", size, 1.0)), size, dtype="f32")
    x = s("where", far, s("neg", s("reciprocal", size)), near, dtype="f32")
    base = s("where", far, math.pi / 2, s("where", middle, math.pi / 4, 0.0, shape=s.shape(size), dtype="f32"), dtype="f32")
    z = s("mul", x, x)
    p = polynomial(s, z, [8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1])
    return s("add", base, s("add", s("mul", s("mul", p, z), x), x))


def _atan(s, x):
    return with_sign(s, x, _arctangent_of_size(s, s("abs", x)))


def _atan2(g, n, a, k):
    s = Steps(g, n)
    y, x = s.cast(a[0], "f32"), s.cast(a[1], "f32")
    height, width = s("abs", y), s("abs", x)
    most, least = s("maximum", height, width), s("minimum", height, width)
    alike = s("where", s("eq", most, 0.0), 0.0, 1.0, shape=s.shape(most), dtype="f32")
    angle = _arctangent_of_size(s, s("where", s("eq", most, least), alike, s("div", least, most), dtype="f32"))
    angle = s("where", s("gt", height, width), s("sub", math.pi / 2, angle), angle, dtype="f32")
    angle = s("where", _negative(s, x), s("sub", math.pi, angle), angle, dtype="f32")
    return s.done(s("where", _negative(s, y), s("neg", angle), angle, dtype="f32"))


def _negative(s, x):
    """Below 0, or -0."""
    return s("logical_or", s("lt", x, 0.0), s("lt", s("reciprocal", x), 0.0))


def _arcsine_of_size(s, size):
    """(whether the argument is above 1/2, and what is then half of the arc's cosine's angle; else the arc itself)"""
    large = s("gt", size, 0.5)
    rest = s("mul", s("sub", 1.0, size), 0.5)
    z = s("where", large, rest, s("mul", size, size), dtype="f32")
    x = s("where", large, s("sqrt", rest), size, dtype="f32")
    p = polynomial(s, z, [4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1])
    return large, s("add", s("mul", s("mul", p, z), x), x)


def _asin(s, x):
    large, p = _arcsine_of_size(s, s("abs", x))
    return with_sign(s, x, s("where", large, s("sub", math.pi / 2, s("mul", p, 2.0)), p, dtype="f32"))


def _acos(s, x):
    large, p = _arcsine_of_size(s, s("abs", x))
    twice = s("mul", p, 2.0)
    outer = s("where", s("lt", x, 0.0), s("sub", math.pi, twice), twice, dtype="f32")
    return s("where", large, outer, s("sub", math.pi / 2, with_sign(s, x, p)), dtype="f32")


_FAR = 1e9  # squares of larger numbers are too large, and 1 is nothing beside them


def _asinh(s, x):
    size = s("abs", x)
    square = s("mul", size, size)
    near = s("log1p", s("add", size, s("div", square, s("add", s("sqrt", s("add", square, 1.0)), 1.0))))
    return with_sign(s, x, s("where", s("gt", size, _FAR), s("add", s("log", size), math.log(2)), near, dtype="f32"))


def _acosh(s, x):
    t = s("sub", x, 1.0)
    near = s("log1p", s("add", t, s("sqrt", s("mul", t, s("add", t, 2.0)))))
    return s("where", s("gt", x, _FAR), s("add", s("log", x), math.log(2)), near, dtype="f32")


def _atanh(s, x):
    size = s("abs", x)
    return with_sign(s, x, s("mul", s("log1p", s("div", s("mul", size, 2.0), s("sub", 1.0, size))), 0.5))


def _erfinv(s, x):
    """M. Giles, Approximating the erfinv function (2012)."""
    w = s("neg", s("log", s("mul", s("sub", 1.0, x), s("add", x, 1.0))))
    near = polynomial(s, s("sub", w, 2.5), [2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941])
    far = polynomial(s, s("sub", s("sqrt", w), 3.0), [-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682])
    y = s("mul", s("where", s("lt", w, 5.0), near, far, dtype="f32"), x)
    return s("where", s("eq", s("abs", x), 1.0), s("mul", x, _INF), y, dtype="f32")


# NaN is no smaller than infinity, nor equal to it.

def _isnan(s, x):
    return s("logical_not", s("le", s("abs", x), _INF))


def _isinf(s, x):
    return s("eq", s("abs", x), _INF)


def _isfinite(s, x):
    return s("lt", s("abs", x), _INF)


# Whole numbers.

def _power_of_two(v):
    return isinstance(v, int) and not isinstance(v, bool) and v > 0 and v & (v - 1) == 0


def masked_bits(g, n, a):
    """x & (2^k - 1) of integers: what is left of a division; nothing: another mask."""
    x, mask = a[0], a[1]
    if is_name(mask) or not is_name(x) or g.dtype(x)[0] != "i" or not _power_of_two(mask + 1):
        return None
    return g.node(n, "remainder", [x, mask + 1])


def _shift(op):
    def write(g, n, a, k):
        if is_name(a[1]) or g.dtype(a[0])[0] != "i" or not 0 <= a[1] < 31:
            g.refuse(n)
        return g.node(n, op, [a[0], 1 << a[1]])
    return write


def _counted(g, n, sorted_line, x, right):
    """How many numbers of a line are below x, or at most x."""
    s = Steps(g, n)
    shape, line = s.shape(x), s.shape(sorted_line)
    line = s.reshape(sorted_line, line[:-1] + [1, line[-1]]) if len(line) > 1 else sorted_line
    before = s("le" if right else "lt", line, s.reshape(x, shape + [1]))
    return s.done(s.cast(s.fold("sum", s.cast(before, "f32")), _result(g, n)))


def _side(a, k, at):
    return bool(k.get("right", _get(a, at, False))) or k.get("side") == "right"


def _bucketize(g, n, a, k):
    k.get("out_int32")
    if not is_name(a[0]):
        g.refuse(n)
    return _counted(g, n, a[1], a[0], _side(a, k, 3))


def _searchsorted(g, n, a, k):
    k.get("out_int32")
    if not is_name(a[1]) or k.get("sorter") is not None:
        g.refuse(n)
    return _counted(g, n, a[0], a[1], _side(a, k, 3))


def _trilinear(g, n, a, k):
    """The product of three tensors, each with dimensions of one put in, added up over some."""
    s, wide = Steps(g, n), []
    for x, put in zip(a[:3], a[3:6]):
        shape = g.shape(x)
        for d in sorted(put):
            shape = shape[:d] + [1] + shape[d:]
        wide.append(s.reshape(x, shape))
    dims = list(a[6])
    a[:]
    product = s("mul", s("mul", wide[0], wide[1]), wide[2])
    return g.node(n, "sum", [product], {"dims": dims, "keepdim": False})


def table():
    t = {name: _of_one(formula) for name, formula in
         (("atan", _atan), ("asin", _asin), ("acos", _acos), ("asinh", _asinh), ("acosh", _acosh), ("atanh", _atanh), ("erfinv", _erfinv), ("special_erfinv", _erfinv),
          ("isnan", _isnan), ("isinf", _isinf), ("isfinite", _isfinite))}
    t["atan2"] = _atan2
    t["bitwise_left_shift"] = t["__lshift__"] = _shift("mul")
    t["bitwise_right_shift"] = t["__rshift__"] = _shift("floor_divide")
    t["bucketize"], t["searchsorted"] = _bucketize, _searchsorted
    t["_trilinear"] = _trilinear
    return t
