# expect: proved
"""The same product, stated."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="C[m, n] = sum(k, f32(tf32(A[m, k])) * f32(tf32(B[n, k])))")
def tf32_stated(A: tw.Tensor(f32, M, K), B: tw.Tensor(f32, N, K), C: tw.Tensor(f32, M, N)):
    tw.assume(K % 8 == 0)
    bn, bm = tw.grid(tw.cdiv(N, 64), tw.cdiv(M, 64))
    acc = tw.zeros(f32, (64, 64), layout=tw.mma_c(warps=(2, 2)))
    for kt in tw.range(tw.cdiv(K, 32)):
        a = tw.load(A[bm * 64 : bm * 64 + 64, kt * 32 : kt * 32 + 32], fill=0.0, layout=tw.mma_a())
        b = tw.load(B[bn * 64 : bn * 64 + 64, kt * 32 : kt * 32 + 32], fill=0.0, layout=tw.mma_b())
        tw.mma(acc, a.to(tf32), b.to(tf32))
    tw.store(C[bm * 64, bn * 64], acc)
