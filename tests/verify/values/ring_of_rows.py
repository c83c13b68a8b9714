"""Rows that TMA brings to slots of a ring, one by one."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", threads=32, computes="Y[n] = X[n]")
def ok_ring_of_rows(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    tw.assume(N % 4 == 0)
    s = tw.shared(f32, (8, 32))
    bar = tw.mbarrier(8)
    i = tw.grid(tw.cdiv(N, 256)) * 256
    for r in tw.range(8):
        bar[r].expect(32 * 4)
        tw.tma_load(s[r], X[i + r * 32 : i + r * 32 + 32], on=bar[r])
        bar[r].wait(0)
        tw.store(Y[i + r * 32 : i + r * 32 + 32], tw.load(s[r]))
