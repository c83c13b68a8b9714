"""GEMM for Hopper in clusters of two blocks along M: each block fetches half of the B tile and multicasts it to both."""
import tilewright as tw
from gemm_parts import K, M, N, finish, multiply, operands, put_tile
from tilewright import bf16, f32


@tw.kernel(target="sm_90a", name="gemm_cluster", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))", cluster=(2, 1, 1))
def gemm_cluster(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    C: tw.Tensor(bf16, M, N),
    BM: tw.const(128) = 128,
    BN: tw.const(128, 256) = 256,
    BK: tw.const(64) = 64,
    STAGES: tw.const(2, 3, 4) = 4,
    GROUP: tw.const(1, 4, 8) = 4,
):
    """A slot is refilled only after the consumers of both blocks have released it, because both receive both halves of B."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    HM = BM // 2
    HB = BN // 2
    sA, sB, ring = operands(bf16, STAGES, BM, BN, BK)
    sC = tw.shared(bf16, (2, 2, HM, 64), swizzle=128)  # two buffers for each consumer
    with tw.warpgroups(0, regs=40, name="producer"):
        rank = tw.cluster_rank()
        for bm, bn in tw.tiles(M, N, BM, BN, group=GROUP):
            for kt in tw.range(tw.cdiv(K, BK)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[bm * BM, kt * BK], on=ring.full(slot))
                tw.tma_load(
                    sB[slot, rank * HB : (rank + 1) * HB, :], B[bn * BN + rank * HB, kt * BK], on=ring.full(slot), multicast=3
                )
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        for bm, bn in tw.tiles(M, N, BM, BN, group=GROUP):
            acc = tw.zeros(f32, (HM, BN))
            multiply(ring, acc, sA, sB, w, HM, BK)
            finish(ring)
            put_tile(C, sC[w], done, acc, bm, bn, w, BM, HM, BN, bf16)
        tw.tma_store_wait(0)
