"""BUG: the wait for the phase before the first blocks when the 20th arrival has ended that"""
import tilewright as tw
from tilewright import bf16, f16, f32, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]")
def k(X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N)):
    tw.assume(N % 8 == 0)
    bm = tw.grid(tw.cdiv(M, 64))
    s = tw.shared(bf16, (2, 64, 64), swizzle=128)
    full = tw.mbarrier(2)
    empty = tw.mbarrier(3, arrivals=1)
    extra = tw.mbarrier(1, arrivals=20)
    with tw.warpgroups(0):
        for c in tw.range(tw.cdiv(N, 64)):
            if c >= 2:
                empty[c % 2].wait((c // 2 + 1) % 2)
            full[c % 2].expect(64 * 64 * 2)
            tw.tma_load(s[c % 2], X[bm * 64, c * 64], on=full[c % 2])
    with tw.warpgroups(1):
        done = tw.named_barrier(1, 128)
        for c in tw.range(tw.cdiv(N, 64)):
            full[c % 2].wait(c // 2 % 2)
            x = tw.load(s[c % 2])
            done.sync()
            empty[c % 2].arrive()
            extra[0].arrive()
            extra[0].wait(1)
            tw.store(Y[bm * 64, c * 64], x)
