"""GEMM with few tiles, thin or with a long K: the blocks of a cluster take parts of K side by side and add them up through each other's shared memory, in one launch."""
import tilewright as tw
from gemm_parts import K, M, N, finish, operands
from tilewright import bf16, f32

PARTS = tw.parameters("PARTS")


@tw.kernel(
    target="sm_90a",
    name="gemm_thin",
    computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))",
    cluster=(PARTS, 1, 1),
    dependent_launch=True,
)
def gemm_thin(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    C: tw.Tensor(bf16, M, N),
    BN: tw.const(64, 128) = 64,
    PARTS: tw.const(1, 2, 4, 8) = 4,
    STAGES: tw.const(2, 3, 4, 5, 6, 8) = 8,
):
    """The k blocks of 64 are dealt out evenly, so that no part has more than one block more than another. Each block adds up its share of the tile's rows."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    sA, sB, ring = operands(bf16, STAGES, 64, BN, 64, CONSUMERS=1)
    sums = tw.shared(f32, (64, BN), pad=8)
    part, bm, bn = tw.grid(PARTS, tw.cdiv(M, 64), tw.cdiv(N, BN))
    first = part * tw.cdiv(K, 64) // PARTS
    blocks = (part + 1) * tw.cdiv(K, 64) // PARTS - first
    with tw.warps(0, name="producer"):
        for kt in tw.range(blocks):
            slot = ring.acquire()
            tw.tma_load(sA[slot], A[bm * 64, (first + kt) * 64], on=ring.full(slot))
            tw.tma_load(sB[slot], B[bn * BN, (first + kt) * 64], on=ring.full(slot))
    with tw.warpgroups(1, name="consumer"):
        acc = tw.zeros(f32, (64, BN))
        for kt in tw.range(blocks):
            slot = ring.wait()
            tw.wgmma(acc, sA[slot], sB[slot].T)
            tw.wgmma_wait(1)
            ring.release(keep=1)
        finish(ring)
        tw.store(sums, acc)
    tw.cluster_sync()
    with tw.warpgroups(1):
        ROWS = 64 // PARTS
        row = part * ROWS if PARTS > 1 else 0
        total = tw.zeros(f32, (ROWS, BN))
        for r in tw.unroll(PARTS):
            total = total + tw.load(sums[row : row + ROWS, :], rank=r)
        tw.store(C[bm * 64 + row, bn * BN], total.to(bf16))
