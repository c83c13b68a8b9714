"""BUG: deep ring only wrong where N > 320 and K has 4 tiles"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_80", computes="Y[n, k, m] = X[n, m, k]", threads=128)
def transpose(X: tw.Tensor(f32, N, M, K), Y: tw.Tensor(f32, N, K, M)):
    n, bm = tw.grid(N, tw.cdiv(M, 32))
    s = tw.shared(f32, (4, 33, 32), pad=1)
    deep = 0
    if N > 320:
        deep = 1
    for c in tw.range(tw.cdiv(K, 32)):
        slot = c % 4 - deep % 2 * (c % 4 // 3)
        tw.store(s[slot, n % 2 : n % 2 + 32, :], tw.load(X[n, bm * 32 : bm * 32 + 32, c * 32 : c * 32 + 32], fill=0.0))
        tw.sync()
        tw.store(Y[n, c * 32 : c * 32 + 32, bm * 32 : bm * 32 + 32], tw.load(s[slot, n % 2 : n % 2 + 32, :].T))
