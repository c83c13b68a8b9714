"""What kernels over rows share: how two values are joined, exponentials relative to a maximum, and a row that is asked for ahead of its use."""
import tilewright as tw
from tilewright import bf16, f32

M = tw.sizes("M")
LOG2E = 1.4426950408889634
LOWEST = -3.4028234663852886e38  # a floor for maxima of parts of a row: a part of nothing but -inf must not make inf - inf


@tw.inline
def plus(x, y):
    return x + y


@tw.inline
def larger(x, y):
    return tw.maximum(x, y)


@tw.inline
def smaller(x, y):
    return tw.minimum(x, y)


@tw.inline
def ask_row(s, X, k, n, S, BN):
    if k < M:
        tw.cp_async(s[k % S], X[k, n : n + BN])
    tw.cp_async_commit()


@tw.inline
def exponential(x, top, T):
    """e^(x - top). One fma for bf16; in f32 the difference comes first, since the rounding of top * LOG2E would show where top is large."""
    return tw.exp2(tw.fma(x, LOG2E, top * -LOG2E) if T == bf16 else (x - top) * LOG2E, approx=True)


@tw.inline
def united(state, C, floor):
    """The maximum and the sum of exponentials of the whole row, from those of the cluster's blocks."""
    tw.cluster_sync()
    top = tw.full(f32, (), floor)
    total = tw.zeros(f32, ())
    for r in tw.range(C, unroll=True):
        t = tw.load(state[0], rank=r)
        new_top = tw.maximum(top, t)
        total = total * tw.exp2((top - new_top) * LOG2E) + tw.load(state[1], rank=r) * tw.exp2((t - new_top) * LOG2E)
        top = new_top
    return top, total
