"""Complex numbers of torch between real ones: two tensors, which products and views take together (rotary positions are written so)."""
from ._torch_steps import Steps


class Complex:
    """The names of the real and the imaginary part."""

    def __init__(self, real, imaginary):
        self.real, self.imaginary = real, imaginary


def constant(g, n, value):
    """A known tensor, of complex numbers or not."""
    import torch
    if not value.is_complex():
        return g.constant(n, value)
    whole = torch.view_as_real(value.resolve_conj().to(torch.complex64))
    return Complex(g.constant(n, whole[..., 0]), g.constant(n, whole[..., 1]))


def concerns(name, args):
    return name in _MAKERS or any(isinstance(v, Complex) for v in list.__iter__(args))


def write(g, n, name, args, kwargs):
    """The value of a node that makes complex numbers, or takes some: a name, or a Complex."""
    rule = _MAKERS.get(name) or _RULES.get(name)
    if rule is None:
        g.refuse(n)
    args[:]
    for key in kwargs:
        kwargs.get(key)
    return rule(Steps(g, n), n, list(args))


def _shape(n):
    return [int(v) for v in n.meta["val"].shape]


def _from_real(s, n, a):
    """(..., 2) as complex numbers."""
    shape = s.shape(a[0])
    return Complex(*[s.reshape(s.slice(a[0], len(shape) - 1, i, 1), shape[:-1]) for i in (0, 1)])


def _to_real(s, n, a):
    one = s.shape(a[0].real) + [1]
    return s.g.node(n, "cat", [s.reshape(a[0].real, one), s.reshape(a[0].imaginary, one)], {"dim": len(one) - 1})


def _polar(s, n, a):
    return Complex(s("mul", a[0], s("cos", a[1], dtype="f32"), dtype="f32"), s("mul", a[0], s("sin", a[1], dtype="f32"), dtype="f32"))


def _parts(v):
    return (v.real, v.imaginary) if isinstance(v, Complex) else (v, None)


def _product(s, n, a):
    (r, i), (u, v) = _parts(a[0]), _parts(a[1])
    times = lambda x, y: s("mul", x, y, dtype="f32")  # noqa: E731
    if i is None or v is None:
        return Complex(times(r, u), times(r if i is None else i, u if v is None else v))
    return Complex(s("sub", times(r, u), times(i, v)), s("add", times(r, v), times(i, u)))


def _sum(op):
    def write_sum(s, n, a):
        (r, i), (u, v) = _parts(a[0]), _parts(a[1])
        if i is None or v is None or len(a) > 2:
            s.g.refuse(n)
        return Complex(s(op, r, u), s(op, i, v))
    return write_sum


def _both(change):
    return lambda s, n, a: Complex(change(s, n, a, a[0].real), change(s, n, a, a[0].imaginary))


def _turned(s, n, a, x):
    rank = len(s.shape(x))
    order = list(range(rank))
    i, j = a[1] % rank, a[2] % rank
    order[i], order[j] = order[j], order[i]
    return s.permute(x, order)


def _length(s, n, a):
    square = s("add", s("mul", a[0].real, a[0].real), s("mul", a[0].imaginary, a[0].imaginary))
    return s.g.node(n, "sqrt", [square])


_MAKERS = {"view_as_complex": _from_real, "polar": _polar, "complex": lambda s, n, a: Complex(a[0], a[1])}
_RULES = {"view_as_real": _to_real, "mul": _product, "add": _sum("add"), "sub": _sum("sub"), "abs": _length, "transpose": _both(_turned),
          "expand": _both(lambda s, n, a, x: s.expand(x, _shape(n))), "permute": _both(lambda s, n, a, x: s.permute(x, [d % len(a[1]) for d in a[1]])),
          "_conj": lambda s, n, a: Complex(a[0].real, s("neg", a[0].imaginary)), "real": lambda s, n, a: s.done(a[0].real), "imag": lambda s, n, a: s.done(a[0].imaginary)}
for _name in ("view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "flatten"):
    _RULES[_name] = _both(lambda s, n, a, x: s.reshape(x, _shape(n)))
for _name in ("clone", "alias", "detach", "resolve_conj", "_to_copy", "contiguous"):
    _RULES[_name] = lambda s, n, a: a[0]
