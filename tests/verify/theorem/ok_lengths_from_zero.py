"""Sequences may be empty: the loop is as long as an element says."""
import tilewright as tw
from tilewright import f32, i32

B, N = tw.sizes("B N")


@tw.kernel(target="sm_80", computes="Y[b] = sum(t in 0:len[b], X[b, t])", threads=128)
def lengths_from_zero(X: tw.Tensor(f32, B, N), len: tw.Tensor(i32, B, range=N + 1), Y: tw.Tensor(f32, B)):
    b = tw.grid(B)
    s = tw.zeros(f32, (128,))
    for c in tw.range(tw.cdiv(len[b], 128)):
        s += tw.load(X[b, c * 128 : c * 128 + 128], fill=0.0, limit=(len[b],))
    tw.store(Y[b], tw.sum(s, axis=0))
