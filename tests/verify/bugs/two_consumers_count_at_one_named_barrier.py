# expect: TW2001 TW2002 TW2007
# hint: line 29: the 2 instances of `consumer` share named barrier 1 (line 29): give each its own number, tw.named_barrier(1 + w, 128)
# rebuilds: named barrier id shared by the warpgroups of one role, which run apart in a ring
"""Each consumer means a barrier of its own before it releases a slot, and both take number 1."""
import tilewright as tw
from tilewright import bf16

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]")
def copy(X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N)):
    tw.assume(N % 8 == 0)
    bm = tw.grid(tw.cdiv(M, 128))
    s = tw.shared(bf16, (3, 128, 64), swizzle=128)
    full = tw.mbarrier(3)
    empty = tw.mbarrier(3, arrivals=2)
    with tw.warpgroups(0, name="producer"):
        for c in tw.range(tw.cdiv(N, 64)):
            if c >= 3:
                empty[c % 3].wait((c // 3 + 1) % 2)
            full[c % 3].expect(128 * 64 * 2)
            tw.tma_load(s[c % 3], X[bm * 128, c * 64], on=full[c % 3])
    with tw.warpgroups(1, 2, name="consumer") as w:
        done = tw.named_barrier(1, 128)
        for c in tw.range(tw.cdiv(N, 64)):
            full[c % 3].wait(c // 3 % 2)
            x = tw.load(s[c % 3, w * 64 : (w + 1) * 64, :])
            done.sync()  # here
            empty[c % 3].arrive()  # here
            tw.store(Y[bm * 128 + w * 64, c * 64], x)
