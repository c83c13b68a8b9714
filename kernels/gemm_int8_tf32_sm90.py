"""GEMM for Hopper with outputs of 32 bits: int8 into i32, tf32 into f32; and int8 with scales of rows and columns, into bf16."""
import tilewright as tw
from gemm_parts import K, M, N, finish, hand_over, multiply, operands, produce
from tilewright import bf16, f32, i8, i32, tf32

DEPENDENT = tw.parameters("DEPENDENT")


@tw.inline
def product(A, B, C, sa, sb, T, ACC, OUT, BN, STAGES, GROUP, SCALED):
    """The ring and the roles of gemm_sm90.py; a k block has 128 bytes, a stored chunk 128 bytes of columns."""
    BK = 128 // T.bytes
    BC = 128 // OUT.bytes
    sA, sB, ring = operands(T, STAGES, 128, BN, BK)
    ODD = BN // BC % 2
    sC = tw.shared(OUT, (2, 2 + ODD, 64, BC), swizzle=128)  # two buffers for each consumer; the last of an odd number of chunks has its own
    with tw.warpgroups(0, regs=40, name="producer"):
        produce(ring, sA, sB, A, B, 128, BN, BK, GROUP)
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            row = bm * 128 + w * 64
            acc = tw.zeros(ACC, (64, BN))
            if SCALED:
                rows = tw.load(sa[row : row + 64], fill=0.0)
            multiply(ring, acc, sA, sB, w, 64, BK)
            finish(ring)
            for j in tw.unroll(BN // BC):
                column = bn * BN + j * BC
                x = acc[:, j * BC : j * BC + BC]
                if SCALED:
                    columns = tw.load(sb[column : column + BC], fill=0.0)
                    x = (x.to(f32) * rows[:, None] * columns[None, :]).to(OUT)
                tw.tma_store_wait(1, read=True)  # the store before last has read this buffer
                done.sync()
                buffer = 2 if ODD and j == BN // BC - 1 else j % 2
                tw.store(sC[w, buffer], x)
                hand_over(C, sC[w, buffer], done, row, column)
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
    product(A, B, C, 0, 0, i8, i32, i32, BN, STAGES, GROUP, 0)


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
    product(A, B, C, sa, sb, i8, i32, bf16, BN, STAGES, GROUP, 1)


@tw.kernel(target="sm_90a", name="gemm_tf32", computes="C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))", dependent_launch=DEPENDENT)
def gemm_tf32(
    A: tw.Tensor(tf32, M, K),
    B: tw.Tensor(tf32, N, K),
    C: tw.Tensor(f32, M, N),
    DEPTH: tw.const(2, 3, 4) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
    DEPENDENT: tw.const(0, 1) = 0,
):
    """Numbers of 10 bits of mantissa that lie in memory as f32; of others the matrix unit leaves the low bits out. It also cuts off what it adds, so a sum stays there for 32 steps of k and is
    then added in f32, to nearest: 256 x 128 tiles, a consumer has 128 rows and one sum of 64 x 128 in the matrix unit at a time."""
    tw.assume(K % 4 == 0)
    tw.assume(N % 4 == 0)
    sA, sB, ring = operands(tf32, DEPTH, 256, 128, 32)
    sC = tw.shared(f32, (2, 128, 32), swizzle=128)
    with tw.warpgroups(0, regs=40, name="producer"):
        produce(ring, sA, sB, A, B, 256, 128, 32, GROUP)
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        part = tw.zeros(f32, (64, 128))
        for bm, bn in tw.tiles(M, N, 256, 128, group=GROUP):
            row = bm * 256 + w * 128
            upper = tw.zeros(f32, (64, 128))
            lower = tw.zeros(f32, (64, 128))
            for kt in tw.range(tw.cdiv(K, 32)):
                slot = ring.wait()
                tw.wgmma(part, sA[slot, w * 128 : w * 128 + 64, :], sB[slot].T, zero=True)
                tw.wgmma_wait(0)
                upper = upper + part
                tw.wgmma(part, sA[slot, w * 128 + 64 : w * 128 + 128, :], sB[slot].T, zero=True)
                tw.wgmma_wait(0)
                ring.release()
                lower = lower + part
            for j in tw.unroll(4):
                column = bn * 128 + j * 32
                tw.tma_store_wait(0, read=True)
                done.sync()
                tw.store(sC[w, 0:64, :], upper[:, j * 32 : j * 32 + 32])
                tw.store(sC[w, 64:128, :], lower[:, j * 32 : j * 32 + 32])
                hand_over(C, sC[w], done, row, column)
        tw.tma_store_wait(0)


@tw.kernel(target="sm_90a", name="gemm_tf32_fast", computes="C[m, n] = sum(k, tf32(A[m, k]) * tf32(B[n, k]))", dependent_launch=DEPENDENT)
def gemm_tf32_fast(
    A: tw.Tensor(tf32, M, K),
    B: tw.Tensor(tf32, N, K),
    C: tw.Tensor(f32, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
    DEPENDENT: tw.const(0, 1) = 0,
    LESS: tw.const(0, 32, 64) = 0,
):
    """Sums stay in the matrix unit, which cuts off what it adds: 2e-5 of a sum of 4096 positive products, as cuBLAS leaves it. So the sum is stated in tf32. Tiles that are LESS columns narrower
    are for outputs whose last wave they fill better."""
    tw.assume(K % 4 == 0)
    tw.assume(N % 4 == 0)
    product(A, B, C, 0, 0, tf32, f32, f32, BN - LESS, STAGES, GROUP, 0)
