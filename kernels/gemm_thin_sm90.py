"""GEMM with few tiles, thin or with a long K: the blocks of a cluster take parts of K side by side and add them up through each other's shared memory, in one launch."""
import tilewright as tw
from gemm_parts import K, M, N, finish, operands
from tilewright import bf16, f32

PARTS, DEPENDENT = tw.parameters("PARTS DEPENDENT")


@tw.kernel(
    target="sm_90a",
    name="gemm_thin",
    computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))",
    cluster=(PARTS, 1, 1),
    dependent_launch=DEPENDENT,
)
def gemm_thin(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    C: tw.Tensor(bf16, M, N),
    BN: tw.const(32, 64, 128) = 64,
    PARTS: tw.const(1, 2, 4, 8) = 4,
    STAGES: tw.const(2, 3, 4, 5, 6, 8, 10, 12) = 8,
    STREAMED: tw.const(0, 1, 2) = 0,
    DEPENDENT: tw.const(0, 1) = 1,
):
    """The k blocks of 64 are dealt out evenly, so that no part has more than one block more than another. Each block adds up its share of the tile's rows. STREAMED: A (1) or B (2) is
    the large one, which passes through L2 while the other stays."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    sA, sB, ring = operands(bf16, STAGES, 64, BN, 64, CONSUMERS=1)
    if STAGES > 2:  # where the slots were; eight columns between rows, against conflicts of banks
        sums = tw.overlay(sB if BN > 64 else sA, f32, (64, BN + 8))
    else:
        sums = tw.shared(f32, (64, BN + 8))
    part, bm, bn = tw.grid(PARTS, tw.cdiv(M, 64), tw.cdiv(N, BN))
    first = part * tw.cdiv(K, 64) // PARTS
    blocks = (part + 1) * tw.cdiv(K, 64) // PARTS - first
    with tw.warps(0, name="producer"):
        for kt in tw.range(blocks):
            slot = ring.acquire()
            if STREAMED == 0:
                tw.tma_load(sA[slot], A[bm * 64, (first + kt) * 64], on=ring.full(slot))
                tw.tma_load(sB[slot], B[bn * BN, (first + kt) * 64], on=ring.full(slot))
            else:
                tw.tma_load(sA[slot], A[bm * 64, (first + kt) * 64], on=ring.full(slot), hint="evict_first" if STREAMED == 1 else "evict_last")
                tw.tma_load(sB[slot], B[bn * BN, (first + kt) * 64], on=ring.full(slot), hint="evict_first" if STREAMED == 2 else "evict_last")
    with tw.warpgroups(1, name="consumer"):
        done = tw.named_barrier(1, 128)
        acc = tw.zeros(f32, (64, BN))
        for kt in tw.range(blocks):
            slot = ring.wait()
            tw.wgmma(acc, sA[slot], sB[slot].T)
            tw.wgmma_wait(1)
            ring.release(keep=1)
        finish(ring)
        if PARTS > 1:
            done.sync()  # the slots are no longer read
            tw.store(sums[:, 0:BN], acc)
        else:
            tw.store(C[bm * 64, bn * BN], acc.to(bf16))
    if PARTS > 1:
        tw.cluster_sync()
        with tw.warpgroups(1):
            ROWS = 64 // PARTS
            total = tw.zeros(f32, (ROWS, BN))
            for r in tw.unroll(PARTS):
                total = total + tw.load(sums[part * ROWS : part * ROWS + ROWS, 0:BN], rank=r)
            tw.store(C[bm * 64 + part * ROWS, bn * BN], total.to(bf16))
