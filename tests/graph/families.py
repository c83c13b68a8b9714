"""Random graphs of each operator family at small sizes, from a seed. No framework is needed."""
import random


class Maker:
    def __init__(self, name, seed):
        self.r = random.Random(f"{name}/{seed}")
        self.graph = {"format": "tilewright-graph", "version": 1, "name": f"{name}_{seed}", "inputs": [], "parameters": [], "nodes": [], "outputs": []}

    def leaf(self, shape, dtype="f32", kind="inputs"):
        name = f"{kind[0]}{len(self.graph[kind])}"
        self.graph[kind].append({"name": name, "shape": list(shape), "dtype": dtype})
        return name

    def node(self, op, inputs, shape, dtype="f32", **attributes):
        name = f"n{len(self.graph['nodes'])}"
        self.graph["nodes"].append({"name": name, "op": op, "inputs": inputs, "attributes": attributes, "shape": list(shape), "dtype": dtype})
        return name

    def done(self, *names):
        self.graph["outputs"] = list(names)
        return self.graph

    def shape(self, low=2, high=4, most=400):
        while True:
            s = [self.r.choice([1, 2, 3, 5, 7, 8, 13, 16, 33]) for _ in range(self.r.randint(low, high))]
            n = 1
            for d in s:
                n *= d
            if n <= most:
                return s


UNARY = "exp tanh sigmoid erf abs neg relu silu mish selu hardsigmoid hardswish gelu elu leaky_relu softplus hardtanh square".split()


def pointwise(m):
    s = m.shape()
    x = m.leaf(s)
    for _ in range(m.r.randint(1, 5)):
        x = m.node(m.r.choice(UNARY), [x], s)
        if m.r.random() < 0.6:
            other = m.leaf([d if m.r.random() < 0.6 else 1 for d in s][m.r.randint(0, len(s) - 1):])
            x = m.node(m.r.choice("add sub mul minimum maximum".split()), [x, other], s)
    return m.done(x)


def reductions(m):
    s = m.shape()
    axes = sorted(m.r.sample(range(len(s)), m.r.randint(1, len(s))))
    keep = m.r.random() < 0.5
    out = [1 if d in axes else n for d, n in enumerate(s)] if keep else [n for d, n in enumerate(s) if d not in axes]
    x = m.node(m.r.choice(["tanh", "abs", "copy"]), [m.leaf(s)], s)
    x = m.node(m.r.choice("sum mean amax amin logsumexp norm".split()), [x], out, dims=axes, keepdim=keep)
    return m.done(m.node("mul", [x, 0.5], out))


def softmax(m):
    s = m.shape()
    dim = m.r.randrange(len(s))
    x = m.leaf(s)
    x = m.node("mul", [x, 3.0], s)
    return m.done(m.node(m.r.choice(["softmax", "log_softmax"]), [x], s, dim=dim))


def norms(m):
    groups = m.r.choice([1, 2, 3])
    channels = groups * m.r.choice([1, 2, 4])
    s = [m.r.choice([1, 2, 3]), channels] + [m.r.choice([2, 5, 8]) for _ in range(m.r.randint(1, 2))]
    op = m.r.choice(["batch_norm", "instance_norm", "group_norm", "layer_norm", "rms_norm"])
    x = m.leaf(s)
    dims = m.r.randint(1, len(s) - 1)
    of = s[-dims:] if op in ("layer_norm", "rms_norm") else [channels]
    weights = [m.leaf(of, kind="parameters") for _ in range(m.r.choice([0, 1 if op == "rms_norm" else 2]))]
    attributes = {"eps": 1e-5}
    if op == "group_norm":
        attributes["groups"] = groups
    if op in ("layer_norm", "rms_norm"):
        attributes["dims"] = dims
    y = m.node(op, [x] + weights, s, **attributes)
    return m.done(m.node("relu", [y], s) if m.r.random() < 0.5 else y)


def scans(m):
    s = m.shape(1, 3)
    x = m.leaf(s)
    op = m.r.choice(["cumsum", "cumsum", "cumprod"])
    attributes = {"dim": m.r.randrange(len(s)), "reverse": m.r.random() < 0.4}
    if op == "cumsum":
        attributes["exclusive"] = m.r.random() < 0.3
    return m.done(m.node(op, [x], s, **attributes))


def losses(m):
    op = m.r.choice("mse_loss l1_loss smooth_l1_loss huber_loss cross_entropy".split())
    s = m.shape(2, 2) if op == "cross_entropy" else m.shape(1, 3)
    if op == "cross_entropy":
        return m.done(m.node(op, [m.leaf(s), m.leaf([s[0]], "i64")], [], reduction=m.r.choice(["mean", "sum"])))
    return m.done(m.node(op, [m.leaf(s), m.leaf(s)], [], reduction=m.r.choice(["mean", "sum"])))


def places(m):
    s = m.shape(1, 3)
    dim = m.r.randrange(len(s))
    return m.done(m.node(m.r.choice(["argmax", "argmin"]), [m.leaf(s)], [n for d, n in enumerate(s) if d != dim], "i64", dim=dim, keepdim=False))


def pooling(m):
    dims = m.r.randint(1, 3)
    space = [m.r.randint(4, 9) for _ in range(dims)]
    kernel = [m.r.randint(1, 3) for _ in range(dims)]
    stride = [m.r.randint(1, 3) for _ in range(dims)]
    padding = [m.r.randint(0, k // 2) for k in kernel]
    op = m.r.choice(["max_pool", "avg_pool"])
    dilation = [m.r.randint(1, 2) for _ in range(dims)] if op == "max_pool" else [1] * dims
    out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, k, s, d in zip(space, padding, kernel, stride, dilation)]
    lead = [m.r.randint(1, 2), m.r.randint(1, 3)]
    return m.done(m.node(op, [m.leaf(lead + space)], lead + out, dims=dims, kernel=kernel, stride=stride, padding=padding, dilation=dilation))


def products(m):
    lead = [m.r.randint(1, 3)] if m.r.random() < 0.4 else []
    r, k, c = (m.r.choice([1, 3, 16, 33]) for _ in range(3))
    dtype = "f32"
    a, b = (lead + [r, k]), (lead + [k, c])
    turn = [d for d in range(len(lead))] + [len(lead) + 1, len(lead)]
    x = m.node("permute", [m.leaf(lead + [k, r], dtype)], a, dtype, order=turn) if m.r.random() < 0.4 else m.leaf(a, dtype)
    y = m.node("permute", [m.leaf(lead + [c, k], dtype)], b, dtype, order=turn) if m.r.random() < 0.4 else m.leaf(b, dtype)
    z = m.node("matmul", [x, y], lead + [r, c])
    if m.r.random() < 0.6:
        z = m.node("add", [z, m.leaf([c], kind="parameters")], lead + [r, c])
        z = m.node(m.r.choice(UNARY), [z], lead + [r, c])
    return m.done(z)


def convolutions(m, transposed=False):
    dims = m.r.randint(1, 3)
    groups = m.r.choice([1, 1, 2])
    channels, outs = groups * m.r.choice([1, 3, 8]), groups * m.r.choice([1, 8, 12])
    space = [m.r.randint(6, 8) if dims < 3 else m.r.randint(5, 6) for _ in range(dims)]
    kernel = [m.r.randint(1, 3) for _ in range(dims)]
    stride = [m.r.randint(1, 3 if transposed else 2) for _ in range(dims)]
    dilation = [m.r.randint(1, 2) for _ in range(dims)]
    padding = [m.r.randint(0, min(1, d * (k - 1))) for k, d in zip(kernel, dilation)]
    extra = [m.r.randrange(max(s, d)) if transposed else 0 for s, d in zip(stride, dilation)]
    if transposed:
        out = [(n - 1) * s - 2 * p + d * (k - 1) + 1 + e for n, s, p, d, k, e in zip(space, stride, padding, dilation, kernel, extra)]
        weight = [channels, outs // groups] + kernel
    else:
        out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, k, s, d in zip(space, padding, kernel, stride, dilation)]
        weight = [outs, channels // groups] + kernel
    b = m.r.randint(1, 2)
    inputs = [m.leaf([b, channels] + space), m.leaf(weight, kind="parameters")] + ([m.leaf([outs], kind="parameters")] if m.r.random() < 0.5 else [])
    y = m.node("conv", inputs, [b, outs] + out, stride=stride, padding=padding, dilation=dilation, groups=groups, transposed=transposed, output_padding=extra)
    return m.done(m.node(m.r.choice(["relu", "tanh", "copy"]), [y], [b, outs] + out))


def _convolved(m):
    """A small convolution, ordinary or transposed, and its shape."""
    dims = m.r.choice([1, 2, 2, 3])
    channels, outs = m.r.choice([2, 3, 8]), m.r.choice([4, 8, 16])
    space = [m.r.randint(4, 7) for _ in range(dims)]
    transposed = m.r.random() < 0.4
    stride, kernel = (m.r.choice([1, 2]), 3) if transposed else (1, m.r.choice([1, 3]))
    padding = m.r.randint(0, kernel // 2)
    out = [(n - 1) * stride - 2 * padding + kernel if transposed else n + 2 * padding - kernel + 1 for n in space]
    weight = ([channels, outs] if transposed else [outs, channels]) + [kernel] * dims
    s = [m.r.choice([1, 2]), outs] + out
    inputs = [m.leaf([s[0], channels] + space), m.leaf(weight, kind="parameters"), m.leaf([outs], kind="parameters")]
    return m.node("conv", inputs, s, stride=[stride] * dims, padding=[padding] * dims, transposed=transposed), s


def _step(m, x, s):
    """One more operator of a network, and the shape that it gives."""
    dims = len(s) - 2
    what = m.r.choice(["unary", "unary", "scale", "bias", "norm", "pool", "softmax", "fold", "clamp", "global"])
    if what == "scale":
        return m.node(m.r.choice(["mul", "sub", "div"]), [x, m.r.choice([0.5, 2.0, 3.0])], s), s
    if what == "bias":
        return m.node(m.r.choice(["add", "sub", "mul"]), [x, m.leaf([s[1]] + [1] * dims, kind="parameters")], s), s
    if what == "clamp":
        return m.node("clamp", [x], s, **m.r.choice([{"min": -0.2}, {"max": 0.4}, {"min": -0.5, "max": 0.5}])), s
    if what == "norm" and dims > 0:
        op = m.r.choice(["batch_norm", "group_norm", "instance_norm", "layer_norm"])
        if op == "layer_norm":
            return m.node(op, [x], s, dims=1, eps=1e-3), s
        attributes = {"groups": m.r.choice([g for g in (1, 2, 4) if s[1] % g == 0])} if op == "group_norm" else {}
        return m.node(op, [x, m.leaf([s[1]], kind="parameters"), m.leaf([s[1]], kind="parameters")], s, eps=1e-3, **attributes), s
    if what == "pool" and 0 < dims <= 3 and min(s[2:]) >= 2:
        to = s[:2] + [n // 2 for n in s[2:]]
        return m.node(m.r.choice(["max_pool", "avg_pool"]), [x], to, dims=dims, kernel=[2] * dims, stride=[2] * dims), to
    if what == "softmax":
        return m.node(m.r.choice(["softmax", "log_softmax"]), [x], s, dim=1), s
    if what == "fold":
        dim = m.r.randrange(1, len(s))
        to = [1 if d == dim else n for d, n in enumerate(s)]
        return m.node(m.r.choice(["sum", "mean", "amax", "amin", "logsumexp"]), [x], to, dims=[dim], keepdim=True), to
    if what == "global" and dims > 0:
        to = s[:2] + [1] * dims
        return m.node("mean", [x], to, dims=list(range(2, len(s))), keepdim=True), to
    return m.node(m.r.choice(UNARY), [x], s), s


def networks(m):
    """A convolution or a linear layer, and what networks put after one."""
    if m.r.random() < 0.7:
        x, s = _convolved(m)
    else:
        s = [m.r.choice([4, 16]), m.r.choice([8, 24])]
        k = m.r.choice([5, 16])
        x = m.node("linear", [m.leaf([s[0], k]), m.leaf([s[1], k], kind="parameters"), m.leaf([s[1]], kind="parameters")], s)
    first, shape = x, s
    for _ in range(m.r.randint(2, 5)):
        x, s = _step(m, x, s)
    if s == shape and m.r.random() < 0.3:
        x = m.node("add", [x, first], s)
    return m.done(x)


def attention(m):
    s = [m.r.randint(1, 2), m.r.randint(1, 2), m.r.choice([3, 8, 17]), m.r.choice([4, 8])]
    kv = s[:2] + [m.r.choice([3, 8, 17]), s[3]]
    causal = m.r.random() < 0.3
    if causal:
        kv = s
    return m.done(m.node("attention", [m.leaf(s), m.leaf(kv), m.leaf(kv)], s, causal=causal))


def views(m):
    s = [m.r.choice([2, 3, 4]) for _ in range(3)]
    x = m.leaf(s)
    order = m.r.sample(range(3), 3)
    t = [s[d] for d in order]
    y = m.node("tanh", [m.node("permute", [x], t, order=order)], t)
    flat = [t[0] * t[1], t[2]]
    z = m.node("reshape", [y], flat)
    z = m.node("mul", [z, m.leaf([flat[0], 1])], flat)
    return m.done(m.node("sum", [z], [flat[0]], dims=[1], keepdim=False))


FAMILIES = {"pointwise": pointwise, "reductions": reductions, "softmax": softmax, "norms": norms, "scans": scans, "losses": losses, "places": places, "pooling": pooling,
            "products": products, "convolutions": convolutions, "transposed": lambda m: convolutions(m, True), "attention": attention, "views": views, "networks": networks}


def make(family, seed):
    return FAMILIES[family](Maker(family, seed))
