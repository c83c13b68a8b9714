# expect: proved
"""All four products."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="C[m, n] = sum(k, A[m, k] * B[n, k])")
def four_products(A: tw.Tensor(f32, M, K), B: tw.Tensor(f32, N, K), C: tw.Tensor(f32, M, N)):
    tw.assume(K % 8 == 0)
    bn, bm = tw.grid(tw.cdiv(N, 64), tw.cdiv(M, 64))
    acc = tw.zeros(f32, (64, 64), layout=tw.mma_c(warps=(2, 2)))
    for kt in tw.range(tw.cdiv(K, 32)):
        a = tw.load(A[bm * 64 : bm * 64 + 64, kt * 32 : kt * 32 + 32], fill=0.0, layout=tw.mma_a())
        b = tw.load(B[bn * 64 : bn * 64 + 64, kt * 32 : kt * 32 + 32], fill=0.0, layout=tw.mma_b())
        ah = a.to(tf32)
        al = (a - ah.to(f32)).to(tf32)
        bh = b.to(tf32)
        bl = (b - bh.to(f32)).to(tf32)
        tw.mma(acc, ah, bh)
        tw.mma(acc, ah, bl)
        tw.mma(acc, al, bh)
        tw.mma(acc, al, bl)
    tw.store(C[bm * 64, bn * 64], acc)
