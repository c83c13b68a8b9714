# expect: TW2001 TW2005
# hint: add tw.sync()
"""No barrier between the stores and the reads."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=128)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    bm, bn = tw.grid(tw.cdiv(M, 32), tw.cdiv(N, 32))
    s = tw.shared(f32, (32, 32), pad=1)
    tw.store(s, tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0))  # here
    tw.store(Y[bn * 32 : bn * 32 + 32, bm * 32 : bm * 32 + 32], tw.load(s.T))  # here
