"""GEMM for Hopper with outputs of 32 bits: int8 into i32, tf32 into f32; and int8 with scales of rows and columns, into bf16."""
import tilewright as tw
from tilewright import bf16, f32, i8, i32, tf32

M, N, K = tw.sizes("M N K")


@tw.inline
def multiply(A, B, C, sa, sb, T, ACC, OUT, BN, STAGES, GROUP, SCALED):
    """The ring and the roles of gemm_sm90.py; a k block has 128 bytes, a stored chunk 128 bytes of columns."""
    BK = 128 // T.bytes
    BC = 128 // OUT.bytes
    sA = tw.shared(T, (STAGES, 128, BK), swizzle=128)
    sB = tw.shared(T, (STAGES, BN, BK), swizzle=128)
    sC = tw.shared(OUT, (2, 2, 64, BC), swizzle=128)  # two buffers for each consumer
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            for kt in tw.range(tw.cdiv(K, BK)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[bm * 128, kt * BK], on=ring.full(slot))
                tw.tma_load(sB[slot], B[bn * BN, kt * BK], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            row = bm * 128 + w * 64
            acc = tw.zeros(ACC, (64, BN))
            if SCALED:
                rows = tw.load(sa[row : row + 64], fill=0.0)
            for kt in tw.range(tw.cdiv(K, BK)):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T)
                tw.wgmma_wait(1)
                ring.release(keep=1)
            tw.wgmma_wait(0)
            ring.release()
            for j in tw.unroll(BN // BC):
                column = bn * BN + j * BC
                x = acc[:, j * BC : j * BC + BC]
                if SCALED:
                    columns = tw.load(sb[column : column + BC], fill=0.0)
                    x = (x.to(f32) * rows[:, None] * columns[None, :]).to(OUT)
                tw.tma_store_wait(1, read=True)  # the store before last has read this buffer
                done.sync()
                tw.store(sC[w, j % 2], x)
                tw.fence_async()
                done.sync()
                tw.tma_store(C[row, column], sC[w, j % 2])
                tw.tma_store_commit()
        tw.tma_store_wait(0)


@tw.kernel(target="sm_90a", name="gemm_int8", computes="C[m, n] = sum(k, i32(A[m, k]) * i32(B[n, k]))")
def gemm_int8(
    A: tw.Tensor(i8, M, K),
    B: tw.Tensor(i8, N, K),
    C: tw.Tensor(i32, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """Exact sums, in 32 bits."""
    tw.assume(K % 16 == 0)
    tw.assume(N % 4 == 0)
    multiply(A, B, C, 0, 0, i8, i32, i32, BN, STAGES, GROUP, 0)


@tw.kernel(target="sm_90a", name="gemm_int8_rows", computes="C[m, n] = bf16(sa[m] * sb[n] * f32(sum(k, i32(A[m, k]) * i32(B[n, k]))))")
def gemm_int8_rows(
    A: tw.Tensor(i8, M, K),
    B: tw.Tensor(i8, N, K),
    sa: tw.Tensor(f32, M),
    sb: tw.Tensor(f32, N),
    C: tw.Tensor(bf16, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """Quantised activations and weights: a scale for each token and each output channel."""
    tw.assume(K % 16 == 0)
    tw.assume(N % 8 == 0)
    tw.assume(K < 131072)  # no sum of products of 2^14 leaves 32 bits
    multiply(A, B, C, sa, sb, i8, i32, bf16, BN, STAGES, GROUP, 1)


@tw.kernel(target="sm_90a", name="gemm_tf32", computes="C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))")
def gemm_tf32(
    A: tw.Tensor(tf32, M, K),
    B: tw.Tensor(tf32, N, K),
    C: tw.Tensor(f32, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """Numbers of 10 bits of mantissa that lie in memory as f32; of others the matrix unit leaves the low bits out."""
    tw.assume(K % 4 == 0)
    tw.assume(N % 4 == 0)
    multiply(A, B, C, 0, 0, tf32, f32, f32, BN, STAGES, GROUP, 0)
