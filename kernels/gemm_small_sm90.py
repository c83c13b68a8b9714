"""GEMM for small matrices: tiles of 64 x 128 with one consumer, so that a product of 1024 x 1024 already fills the machine."""
import tilewright as tw
from gemm_parts import K, M, N, finish, multiply, operands, produce, put_tile
from tilewright import bf16, f32


@tw.kernel(target="sm_90a", name="gemm_small", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))", dependent_launch=True)
def gemm_small(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    C: tw.Tensor(bf16, M, N),
    BN: tw.const(128, 256) = 128,
    STAGES: tw.const(2, 3, 4, 5, 6, 8) = 8,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """Launch and first loads are a large part of such a product: set-up overlaps the kernel before."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    assert BN % 128 == 0, "an even number of 64-column chunks, so that the two store buffers alternate across tiles"
    sA, sB, ring = operands(bf16, STAGES, 64, BN, 64, CONSUMERS=1)
    sC = tw.shared(bf16, (2, 64, 64), swizzle=128)
    with tw.warpgroups(0, regs=40, name="producer"):
        produce(ring, sA, sB, A, B, 64, BN, 64, GROUP)
    with tw.warpgroups(1, regs=232, name="consumer"):
        done = tw.named_barrier(1, 128)
        for bm, bn in tw.tiles(M, N, 64, BN, group=GROUP):
            acc = tw.zeros(f32, (64, BN))
            multiply(ring, acc, sA, sB, 0, 64, 64)
            finish(ring)
            put_tile(C, sC, done, acc, bm, bn, 0, 64, 64, BN, bf16)
        tw.tma_store_wait(0)
