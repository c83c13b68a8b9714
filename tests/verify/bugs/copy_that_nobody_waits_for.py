# expect: TW2001
# hint: line 24: `tw.cp_async_wait(0)` instead of `tw.cp_async_wait(3)`
# rebuilds: a prefetch past the end of the loop lands in what has been put to another use
"""The copies that the last iterations issue ahead are never waited for, and their slot becomes scratch."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", threads=128, computes="Y[m] = sum(n, X[m, n])")
def rows(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M), D: tw.const(4) = 4):
    tw.assume(N % 512 == 0)
    m = tw.grid(M)
    ring = tw.shared(f32, (D, 512))
    for c in tw.unroll(D - 1):
        tw.cp_async(ring[c], X[m, c * 512 : c * 512 + 512])
        tw.cp_async_commit()
    total = tw.zeros(f32, (512,))
    for c in tw.range(N // 512):
        ahead = c + D - 1
        tw.cp_async(ring[ahead % D], X[m, ahead * 512 : ahead * 512 + 512])
        tw.cp_async_commit()
        tw.cp_async_wait(D - 1)
        total = total + tw.load(ring[c % D])
    s = tw.sum(total, axis=0)
    tw.sync()
    tw.store(ring[3, 0:1], s)  # here
    tw.sync()
    tw.store(Y[m], tw.load(ring[3, 0]))
