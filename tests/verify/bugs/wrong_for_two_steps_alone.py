# expect: TW2001
# hint: add tw.sync() before line 22
# rebuilds: a barrier skipped where the start of a loop meets its end, for one trip count alone
"""The barrier before the buffer is filled again is left out when the second step is the last one: with one step, or three, nothing is wrong."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=64)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M), T: tw.const = 16):
    s = tw.shared(f32, (T, T))
    bm = tw.grid(tw.cdiv(M, T))
    steps = tw.cdiv(N, T)
    for c in tw.range(steps):
        if c == 1:
            if c + 1 < steps:
                tw.sync()
        else:
            tw.sync()
        tw.store(s, tw.load(X[bm * T : bm * T + T, c * T : c * T + T], fill=0.0))  # here
        tw.sync()
        tw.store(Y[c * T, bm * T], tw.load(s.T))  # here
