"""ldmatrix reads through the generic proxy."""
import tilewright as tw
from tilewright import bf16, f32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))", threads=128)
def k(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(bf16, M, N)):
    tw.assume(K % 8 == 0)
    bn, bm = tw.grid(tw.cdiv(N, 64), tw.cdiv(M, 64))
    sA = tw.shared(bf16, (64, 64), swizzle=128)
    sB = tw.shared(bf16, (64, 64), swizzle=128)
    full = tw.mbarrier(1)
    acc = tw.zeros(f32, (64, 64), layout=tw.mma_c(warps=(2, 2)))
    for kt in tw.range(tw.cdiv(K, 64)):
        full[0].expect(2 * 64 * 64 * 2)
        tw.tma_load(sA, A[bm * 64, kt * 64], on=full[0])
        tw.tma_load(sB, B[bn * 64, kt * 64], on=full[0])
        full[0].wait(kt % 2)
        a = tw.load(sA, layout=tw.mma_a())
        b = tw.load(sB, layout=tw.mma_b())
        tw.sync()
        tw.mma(acc, a, b)
    tw.store(C[bm * 64, bn * 64], acc.to(bf16))
