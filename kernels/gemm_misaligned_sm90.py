"""GEMM for rows that TMA cannot address (any M, N, K): A and B are copied to rows that start on 128-byte lines, C is stored element by element."""
import tilewright as tw
from tilewright import bf16, f32

M, N, K, R = tw.sizes("M N K R")


@tw.kernel(target="sm_90a", computes="Y[r, k] = X[r, k]", threads=256, dependent_launch=True)
def pad_rows(X: tw.Tensor(bf16, R, K), Y: tw.Tensor(bf16, R, K, strides=((K + 63) // 64 * 64, 1)), ROWS: tw.const(4, 8, 16) = 8):
    """Rows of any pitch to rows of whole 128-byte lines; what lies between the rows is never read."""
    bk, br = tw.grid(tw.cdiv(K, 512), tw.cdiv(R, ROWS))
    x = tw.load(X[br * ROWS : br * ROWS + ROWS, bk * 512 : bk * 512 + 512], fill=0.0)
    tw.store(Y[br * ROWS, bk * 512], x)


@tw.kernel(target="sm_90a", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))", dependent_launch=True)
def gemm_padded(
    A: tw.Tensor(bf16, M, K, strides=((K + 63) // 64 * 64, 1)),
    B: tw.Tensor(bf16, N, K, strides=((K + 63) // 64 * 64, 1)),
    C: tw.Tensor(bf16, M, N),
    BM: tw.const(128, 256) = 128,
    BN: tw.const(64, 128, 192, 256) = 192,
    STAGES: tw.const(2, 3, 4, 5, 6) = 5,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """64 columns at a time go through shared memory, so that a warp stores neighbouring elements of a row."""
    HM = BM // 2
    sA = tw.shared(bf16, (STAGES, BM, 64), swizzle=128)
    sB = tw.shared(bf16, (STAGES, BN, 64), swizzle=128)
    sC = tw.shared(bf16, (2, HM, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, BM, BN, group=GROUP):
            for kt in tw.range(tw.cdiv(K, 64)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[bm * BM, kt * 64], on=ring.full(slot))
                tw.tma_load(sB[slot], B[bn * BN, kt * 64], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        for bm, bn in tw.tiles(M, N, BM, BN, group=GROUP):
            acc = tw.zeros(f32, (HM, BN))
            for kt in tw.range(tw.cdiv(K, 64)):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, w * HM : (w + 1) * HM, :], sB[slot].T)
                tw.wgmma_wait(1)
                ring.release(keep=1)
            tw.wgmma_wait(0)
            ring.release()
            for j in tw.unroll(BN // 64):
                done.sync()
                tw.store(sC[w], acc[:, j * 64 : j * 64 + 64].to(bf16))
                done.sync()
                tw.store(C[bm * BM + w * HM, bn * BN + j * 64], tw.load(sC[w], layout=tw.blocked(vector=1)))


@tw.program(computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))")
def gemm_misaligned(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(bf16, M, N)):
    PA = tw.buffer(bf16, M, K, strides=((K + 63) // 64 * 64, 1))
    PB = tw.buffer(bf16, N, K, strides=((K + 63) // 64 * 64, 1))
    pad_rows(A, PA)
    pad_rows(B, PB)
    gemm_padded(PA, PB, C)
