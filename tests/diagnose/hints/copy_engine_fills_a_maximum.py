# expect: TW1001
# says: in the maximum: 0$
"""The copy engine fills with 0 what lies beyond the row."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="S[m] = max(n, X[m, n])")
def largest(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    tw.assume(N % 4 == 0)
    tw.assume(N >= 4 and N <= 256)
    m = tw.grid(tw.cdiv(M, 8)) * 8
    buf = tw.shared(f32, (8, 256))
    full = tw.mbarrier(1)
    with tw.warpgroups(0):
        full[0].expect(8 * 256 * 4)
        tw.tma_load(buf, X[m, 0], on=full[0])
    with tw.warpgroups(1):
        full[0].wait(0)
        tw.store(S[m : m + 8], tw.max(tw.load(buf), axis=1))  # here
