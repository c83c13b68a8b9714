# expect: TW2001
# hint: add tw.sync() before line 16
# rebuilds: shared tile overwritten by the next iteration while others still read
"""The next iteration overwrites the tile while slow warps still read it."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=128)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    bm = tw.grid(tw.cdiv(M, 32))
    s = tw.shared(f32, (32, 32), pad=1)
    for bn in tw.range(tw.cdiv(N, 32)):
        tw.store(s, tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0))  # here
        tw.sync()
        tw.store(Y[bn * 32, bm * 32], tw.load(s.T))  # here
