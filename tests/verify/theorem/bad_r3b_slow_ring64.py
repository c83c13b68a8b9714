"""BUG: goes up every 64th iteration"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=128)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    bm = tw.grid(tw.cdiv(M, 32))
    s = tw.shared(f32, (7, 32, 32), pad=1)
    n = 0
    for c in tw.range(tw.cdiv(N, 32)):
        tw.sync()
        tw.store(s[n % 8], tw.load(X[bm * 32 : bm * 32 + 32, c * 32 : c * 32 + 32], fill=0.0))
        tw.sync()
        tw.store(Y[c * 32 : c * 32 + 32, bm * 32 : bm * 32 + 32], tw.load(s[n % 8].T))
        for j in tw.range(c % 64 // 63):
            tw.syncwarp()
            n = n + 1
