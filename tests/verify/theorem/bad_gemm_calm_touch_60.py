"""BUG: the accumulator is in flight when it is touched in iteration 60"""
import tilewright as tw
from tilewright import bf16, f16, f32, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_90a", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))")
def k(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(bf16, M, N)):
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    sA = tw.shared(bf16, (3, 128, 64), swizzle=128)
    sB = tw.shared(bf16, (3, 128, 64), swizzle=128)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(3, consumers=2)
    with tw.warpgroups(0, regs=40):
        for bm, bn in tw.tiles(M, N, 128, 128, group=8):
            for kt in tw.range(tw.cdiv(K, 64)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[bm * 128, kt * 64], on=ring.full(slot))
                tw.tma_load(sB[slot], B[bn * 128, kt * 64], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232) as w:
        done = tw.named_barrier(1 + w, 128)
        for bm, bn in tw.tiles(M, N, 128, 128, group=8):
            acc = tw.zeros(f32, (64, 128))
            for kt in tw.range(tw.cdiv(K, 64)):
                if kt == 0 or kt == 60:
                    acc = acc * 1.0
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T)
                tw.wgmma_wait(1)
                ring.release(keep=1)
            tw.wgmma_wait(0)
            ring.release()
            for j in tw.unroll(2):
                tw.tma_store_wait(1, read=True)
                done.sync()
                tw.store(sC[w, j % 2], acc[:, j * 64 : j * 64 + 64].to(bf16))
                tw.fence_async()
                done.sync()
                tw.tma_store(C[bm * 128 + w * 64, bn * 128 + j * 64], sC[w, j % 2])
                tw.tma_store_commit()
        tw.tma_store_wait(0)
