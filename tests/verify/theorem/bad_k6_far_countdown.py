"""BUG: after 1000 rounds waits for one less"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=128)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    tw.assume(N % 4 == 0)
    bm = tw.grid(tw.cdiv(M, 32))
    s = tw.shared(f32, (3, 32, 32))
    steps = tw.cdiv(N, 32)
    for v in tw.unroll(2):
        tw.cp_async(s[v], X[bm * 32 : bm * 32 + 32, v * 32 : v * 32 + 32])
        tw.cp_async_commit()
    left = 1000
    for kt in tw.range(steps):
        if left > 0:
            tw.cp_async_wait(1)
        else:
            tw.cp_async_wait(2)
        tw.sync()
        nxt = kt + 2
        if nxt < steps:
            tw.cp_async(s[nxt % 3], X[bm * 32 : bm * 32 + 32, nxt * 32 : nxt * 32 + 32])
        tw.cp_async_commit()
        left = left - 1
        tw.store(Y[kt * 32 : kt * 32 + 32, bm * 32 : bm * 32 + 32], tw.load(s[kt % 3].T))
