"""Few tokens against many weights: the time is that of reading the weights once, so every block keeps a deep ring of them in flight."""
import tilewright as tw
from tilewright import bf16, f32

M, N, K = tw.sizes("M N K")


@tw.kernel(
    target="sm_90a",
    name="gemm_skinny",
    computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))",
    dependent_launch=True,
)
def gemm_skinny(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K, stable=True),
    C: tw.Tensor(bf16, M, N),
    TOKENS: tw.const(8, 16, 32, 64, 128) = 16,
    BK: tw.const(64, 128, 256) = 128,
    STAGES: tw.const(2, 3, 4, 5, 6, 7, 8, 10, 11, 12) = 10,
):
    """B's rows are the M side of the wgmma and the tokens its N side, so that no tensor work is spent on rows that do not
    exist. B is `stable`: its loads begin before the kernel before has ended."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    tw.assume(M <= TOKENS)
    sA = tw.shared(bf16, (STAGES, TOKENS, BK), swizzle=128)
    sB = tw.shared(bf16, (STAGES, 64, BK), swizzle=128)
    sC = tw.shared(bf16, (TOKENS, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=1, producers=2)
    bn = tw.grid(tw.cdiv(N, 64))
    with tw.warps(0, name="weights"):
        for kt in tw.range(tw.cdiv(K, BK)):
            slot = ring.acquire()
            tw.tma_load(sB[slot], B[bn * 64, kt * BK], on=ring.full(slot), hint="evict_first")
    with tw.warps(1, name="tokens"):
        for kt in tw.range(tw.cdiv(K, BK)):
            slot = ring.acquire()
            tw.tma_load(sA[slot], A[0, kt * BK], on=ring.full(slot), hint="evict_last")
    with tw.warpgroups(1, name="consumer"):
        done = tw.named_barrier(1, 128)
        acc = tw.zeros(f32, (64, TOKENS))
        for kt in tw.range(tw.cdiv(K, BK)):
            slot = ring.wait()
            tw.wgmma(acc, sB[slot], sA[slot].T)
            tw.wgmma_wait(1)
            ring.release(keep=1)
        tw.wgmma_wait(0)
        ring.release()
        tw.store(sC.T, acc.to(bf16))
        tw.fence_async()
        done.sync()
        tw.tma_store(C[0, bn * 64], sC)
        tw.tma_store_commit()
        tw.tma_store_wait(0)
