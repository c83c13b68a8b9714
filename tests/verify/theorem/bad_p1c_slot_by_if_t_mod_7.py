"""BUG: the slot is t % 7, by branches: with 7 blocks it never changes"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=128)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    tw.assume(N <= 32)
    s = tw.shared(f32, (7, 32, 32), pad=1)
    slot = 0
    for t in tw.persistent(tw.cdiv(M, 32)):
        for v in tw.unroll(7):
            if t % 7 == v:
                slot = v
        tw.store(s[slot % 7], tw.load(X[t * 32 : t * 32 + 32, 0:32], fill=0.0))
        tw.sync()
        tw.store(Y[0:32, t * 32 : t * 32 + 32], tw.load(s[slot % 7].T))
