"""GEMM for rows that TMA cannot address (any M, N, K): A and B are copied to rows that start on 128-byte lines. C is stored by TMA where it can address
C's rows, else element by element."""
import tilewright as tw
from tilewright import bf16, f32

M, N, K = tw.sizes("M N K")


@tw.inline
def pad(A, B, PA, PB, VECTOR, ROWS):
    """Both operands in one launch: a block copies the same rows of A and of B."""
    bk, br = tw.grid(tw.cdiv(K, 512), tw.cdiv(max(M, N), ROWS))
    a = tw.load(A[br * ROWS : br * ROWS + ROWS, bk * 512 : bk * 512 + 512], fill=0.0, layout=tw.blocked(vector=VECTOR))
    b = tw.load(B[br * ROWS : br * ROWS + ROWS, bk * 512 : bk * 512 + 512], fill=0.0, layout=tw.blocked(vector=VECTOR))
    tw.store(PA[br * ROWS, bk * 512], a)
    tw.store(PB[br * ROWS, bk * 512], b)


@tw.signature(name="pad_rows", target="sm_90a", computes="PA[m, k] = A[m, k]; PB[n, k] = B[n, k]", threads=256, dependent_launch=True)
def padded_copies(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), PA: tw.Tensor(bf16, M, K, strides=((K + 63) // 64 * 64, 1)), PB: tw.Tensor(bf16, N, K, strides=((K + 63) // 64 * 64, 1))):
    """Both operands in rows of whole 128-byte lines."""


@tw.kernel(padded_copies)
def pad_aligned_rows(A, B, PA, PB, ROWS: tw.const(4, 8, 16) = 8):
    """Rows of whole 16-byte vectors to rows of whole 128-byte lines."""
    tw.assume(K % 8 == 0)
    pad(A, B, PA, PB, 8, ROWS)


@tw.kernel(padded_copies)
def pad_rows(A, B, PA, PB, ROWS: tw.const(4, 8, 16) = 8):
    """Rows of any pitch; what lies between the rows of the copy is never read."""
    pad(A, B, PA, PB, 2, ROWS)


@tw.inline
def multiply(A, B, C, C_BY_TMA, BM, BN, STAGES, GROUP):
    """64 columns at a time go through shared memory: to TMA, or so that a warp stores neighbouring elements of a row."""
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
                if C_BY_TMA:
                    tw.tma_store_wait(0, read=True)
                done.sync()
                tw.store(sC[w], acc[:, j * 64 : j * 64 + 64].to(bf16))
                if C_BY_TMA:
                    tw.fence_async()
                done.sync()
                if C_BY_TMA:
                    tw.tma_store(C[bm * BM + w * HM, bn * BN + j * 64], sC[w])
                    tw.tma_store_commit()
                else:
                    tw.store(C[bm * BM + w * HM, bn * BN + j * 64], tw.load(sC[w], layout=tw.blocked(vector=1)))
        if C_BY_TMA:
            tw.tma_store_wait(0)


@tw.signature(name="gemm_padded", target="sm_90a", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))", dependent_launch=True)
def product_of_padded(A: tw.Tensor(bf16, M, K, strides=((K + 63) // 64 * 64, 1)), B: tw.Tensor(bf16, N, K, strides=((K + 63) // 64 * 64, 1)), C: tw.Tensor(bf16, M, N)):
    """Their product."""


@tw.kernel(product_of_padded)
def gemm_padded_to_aligned(A, B, C, BM: tw.const(128, 256) = 128, BN: tw.const(64, 128, 192, 256) = 192, STAGES: tw.const(2, 3, 4, 5, 6) = 5, GROUP: tw.const(1, 4, 8, 16) = 8):
    """TMA can address the rows of C."""
    tw.assume(N % 8 == 0)
    multiply(A, B, C, True, BM, BN, STAGES, GROUP)


@tw.kernel(product_of_padded)
def gemm_padded(A, B, C, BM: tw.const(128, 256) = 128, BN: tw.const(64, 128, 192, 256) = 192, STAGES: tw.const(2, 3, 4, 5, 6) = 5, GROUP: tw.const(1, 4, 8, 16) = 8):
    """C of any pitch."""
    multiply(A, B, C, False, BM, BN, STAGES, GROUP)


@tw.program(computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))")
def gemm_misaligned(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(bf16, M, N)):
    PA = tw.buffer(bf16, M, K, strides=((K + 63) // 64 * 64, 1))
    PB = tw.buffer(bf16, N, K, strides=((K + 63) // 64 * 64, 1))
    pad_rows(A, B, PA, PB)
    gemm_padded(PA, PB, C)
