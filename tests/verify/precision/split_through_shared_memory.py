# expect: proved
"""Both parts of B go through shared memory, those of A stay in registers."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a", computes="C[m, n] = sum(k, A[m, k] * B[n, k])")
def split_through_shared_memory(A: tw.Tensor(f32, M, K), B: tw.Tensor(f32, N, K), C: tw.Tensor(f32, M, N)):
    bn, bm = tw.grid(tw.cdiv(N, 64), tw.cdiv(M, 64))
    bh = tw.shared(tf32, (64, 32), swizzle=128)
    bl = tw.shared(tf32, (64, 32), swizzle=128)
    acc = tw.zeros(f32, (64, 64))
    for kt in tw.range(tw.cdiv(K, 32)):
        a = tw.load(A[bm * 64 : bm * 64 + 64, kt * 32 : kt * 32 + 32], fill=0.0)
        b = tw.load(B[bn * 64 : bn * 64 + 64, kt * 32 : kt * 32 + 32], fill=0.0)
        ah = a.to(tf32)
        al = (a - ah.to(f32)).to(tf32)
        h = b.to(tf32)
        tw.store(bh, h)
        tw.store(bl, (b - h.to(f32)).to(tf32))
        tw.fence_async()
        tw.sync()
        tw.wgmma(acc, ah, bh.T)
        tw.wgmma_wait(0)
        tw.wgmma(acc, ah, bl.T)
        tw.wgmma_wait(0)
        tw.wgmma(acc, al, bh.T)
        tw.wgmma_wait(0)
        tw.sync()
    tw.store(C[bm * 64, bn * 64], acc)
