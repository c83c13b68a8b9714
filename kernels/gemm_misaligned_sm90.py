"""GEMM for rows that TMA cannot address (any M, N, K): A and B are copied to rows that start on 128-byte lines. C is stored by TMA where it can address
C's rows, else element by element."""
import tilewright as tw
from gemm_parts import K, M, N, finish, multiply, operands, produce
from tilewright import bf16, f32


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
def product(A, B, C, C_BY_TMA, BM, BN, STAGES, GROUP):
    """64 columns at a time go through shared memory: to TMA, or so that a warp stores neighbouring elements of a row."""
    HM = BM // 2
    sA, sB, ring = operands(bf16, STAGES, BM, BN, 64)
    sC = tw.shared(bf16, (2, HM, 64), swizzle=128)
    with tw.warpgroups(0, regs=40, name="producer"):
        produce(ring, sA, sB, A, B, BM, BN, 64, GROUP)
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        for bm, bn in tw.tiles(M, N, BM, BN, group=GROUP):
            acc = tw.zeros(f32, (HM, BN))
            multiply(ring, acc, sA, sB, w, HM, 64)
            finish(ring)
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
    product(A, B, C, True, BM, BN, STAGES, GROUP)


@tw.kernel(product_of_padded)
def gemm_padded(A, B, C, BM: tw.const(128, 256) = 128, BN: tw.const(64, 128, 192, 256) = 192, STAGES: tw.const(2, 3, 4, 5, 6) = 5, GROUP: tw.const(1, 4, 8, 16) = 8):
    """C of any pitch."""
    product(A, B, C, False, BM, BN, STAGES, GROUP)


@tw.program(computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))")
def gemm_misaligned(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(bf16, M, N)):
    PA = tw.buffer(bf16, M, K, strides=((K + 63) // 64 * 64, 1))
    PB = tw.buffer(bf16, N, K, strides=((K + 63) // 64 * 64, 1))
    pad_rows(A, B, PA, PB)
    gemm_padded(PA, PB, C)
