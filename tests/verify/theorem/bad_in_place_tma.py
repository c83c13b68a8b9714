import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="P[m, n] = P[0, n] * 2 ", threads=128)
def bad_in_place_tma(P: tw.Tensor(f32, M, N)):
    tw.assume(N % 4 == 0)
    bn, m = tw.grid(tw.cdiv(N, 32), M)
    s = tw.shared(f32, (1, 32))
    ring = tw.pipeline(1)
    with tw.warps(0):
        slot = ring.acquire()
        tw.tma_load(s, P[0, bn * 32], on=ring.full(slot))
    with tw.warps(1):
        slot = ring.wait()
        x = tw.load(s)
        tw.store(P[m : m + 1, bn * 32 : bn * 32 + 32], x * 2.0)
