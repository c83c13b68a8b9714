"""BUG: the slot is t % 2, by a branch"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=128)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    tw.assume(N <= 32)
    s = tw.shared(f32, (2, 32, 32), pad=1)
    slot = 0
    for t in tw.persistent(tw.cdiv(M, 32)):
        slot = 0
        if t % 2 == 1:
            slot = 1
        tw.store(s[slot % 2], tw.load(X[t * 32 : t * 32 + 32, 0:32], fill=0.0))
        tw.sync()
        tw.store(Y[0:32, t * 32 : t * 32 + 32], tw.load(s[slot % 2].T))
