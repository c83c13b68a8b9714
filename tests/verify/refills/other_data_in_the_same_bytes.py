"""What is read was stored, through another buffer of the same bytes."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] + Z[m, n]", threads=128)
def k(X: tw.Tensor(f32, M, N), Z: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 8 == 0)
    bm, bn = tw.grid(tw.cdiv(M, 32), tw.cdiv(N, 32))
    s = tw.shared(f32, (32, 32))
    t = tw.overlay(s, f32, (32, 32))
    full = tw.mbarrier(1)
    tw.store(s, tw.load(Z[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0))
    tw.fence_async()
    tw.sync()
    z = tw.load(s)
    tw.sync()
    full[0].expect(32 * 32 * 4)
    tw.tma_load(t, X[bm * 32, bn * 32], on=full[0])
    full[0].wait(0)
    tw.store(Y[bm * 32, bn * 32], tw.load(t) + z)
