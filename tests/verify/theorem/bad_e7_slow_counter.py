"""BUG: a counter that goes up every 50th iteration"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=128)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    bm = tw.grid(tw.cdiv(M, 32))
    s = tw.shared(f32, (32, 32), pad=1)
    a = 0
    for c in tw.range(tw.cdiv(N, 32)):
        if a < 40:
            tw.sync()
        tw.store(s, tw.load(X[bm * 32 : bm * 32 + 32, c * 32 : c * 32 + 32], fill=0.0))
        tw.sync()
        tw.store(Y[c * 32 : c * 32 + 32, bm * 32 : bm * 32 + 32], tw.load(s.T))
        if c % 50 == 49:
            a = a + 1
