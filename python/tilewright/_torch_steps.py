"""Several nodes for one torch operator: each step's shape and type are worked out from its operands."""
import math


_MOST_INPUTS = 64  # of a node


def is_name(value):
    return isinstance(value, str)


class Steps:
    """Nodes on the way to `n`. A call adds one: its shape is that to which the operands broadcast, its type the first tensor's, where nothing else is said."""
    TRUTHS = {"lt", "le", "gt", "ge", "eq", "ne", "logical_and", "logical_or", "logical_not"}

    def __init__(self, g, n):
        self.g, self.n = g, n

    def __call__(self, op, *inputs, shape=None, dtype=None, **attributes):
        tensors = [v for v in inputs if is_name(v)]
        shape = broadcast([self.shape(v) for v in tensors]) if shape is None else list(shape)
        dtype = "bool" if op in self.TRUTHS else dtype or self.dtype(tensors[1] if op == "where" and len(tensors) > 1 else tensors[0])
        return self.g.extra(self.n, op, list(inputs), attributes or None, shape=shape, dtype=dtype)

    def shape(self, x):
        return self.g.shape(x)

    def dtype(self, x):
        return self.g.dtype(x)

    def reshape(self, x, shape):
        return x if self.shape(x) == list(shape) else self("reshape", x, shape=shape)

    def permute(self, x, order):
        return x if list(order) == sorted(order) else self("permute", x, shape=[self.shape(x)[d] for d in order], order=list(order))

    def expand(self, x, shape):
        return x if self.shape(x) == list(shape) else self("expand", x, shape=shape)

    def cast(self, x, dtype):
        return x if self.dtype(x) == dtype else self("cast", x, dtype=dtype)

    def slice(self, x, dim, start, count):
        shape = self.shape(x)
        if count == shape[dim]:
            return x
        return self("slice", x, shape=shape[:dim] + [count] + shape[dim + 1:], starts=[start if d == dim else 0 for d in range(len(shape))])

    def fold(self, op, x, count=1, dtype=None):
        """Over the last dimensions."""
        rank = len(self.shape(x))
        return self(op, x, shape=self.shape(x)[:rank - count], dtype=dtype, dims=list(range(rank - count, rank)), keepdim=False)

    def positions(self, count, dtype="f32", start=0):
        """The numbers from `start` on, as a vector."""
        return self.g.numbers(self.n, range(start, start + count), [count], dtype)

    def line_last(self, x, dim):
        """The tensor with one dimension behind all others."""
        rank = len(self.shape(x))
        return self.permute(x, [d for d in range(rank) if d != dim] + [dim])

    def line_back(self, x, dim):
        """The last dimension where it was before `line_last`."""
        rank = len(self.shape(x))
        order = list(range(rank - 1))
        order.insert(dim, rank - 1)
        return self.permute(x, order)

    def few(self, parts, dim):
        """As many parts as one node takes: neighbours are joined before."""
        while len(parts) > _MOST_INPUTS:
            joined = []
            for i in range(0, len(parts), _MOST_INPUTS):
                some = parts[i:i + _MOST_INPUTS]
                shape = self.shape(some[0])
                whole = sum(self.shape(p)[dim] for p in some)
                joined.append(some[0] if len(some) == 1 else self("cat", *some, shape=shape[:dim] + [whole] + shape[dim + 1:], dim=dim))
            parts = joined
        return parts

    def done(self, x, at=None):
        """The value of `n`, or of one of its results."""
        node = at or self.n
        to = [int(s) for s in _value_of(node).shape]
        return self.g.node(node, "reshape" if self.shape(x) != to else "copy", [x])


def _value_of(node):
    value = node.meta["val"]
    return value[0] if isinstance(value, (list, tuple)) else value


def broadcast(shapes):
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for s in shapes:
        for d, size in enumerate(s):
            at = rank - len(s) + d
            out[at] = size if out[at] == 1 else out[at]
    return out


def count_of(shape):
    return math.prod(shape)


def floating(dtype):
    return dtype in ("f32", "f16", "bf16")
