"""GEMM of f32 numbers on the tensor cores of Hopper: every number becomes two f16 numbers, and three of the four products of these are added up.

A row is first scaled by a power of two so that its largest element lies between 2^14 and 2^15. Then 22 bits of every element that is not 2^28 times smaller than the largest
of its row are kept, and what is lost of the others is 2^-40 of that largest one. Products of 32 steps of k are added in the matrix unit and then to f32 registers, to nearest.
"""
import tilewright as tw
from gemm_parts import K, M, N, hand_over
from tilewright import f16, f32


@tw.kernel(
    target="sm_90a",
    name="row_scales",
    computes="""
        S[m] = exp2(14 - floor(log2(maximum(max(k, abs(X[m, k])), 1.0e-30))))
        R[m] = exp2(floor(log2(maximum(max(k, abs(X[m, k])), 1.0e-30))) - 14)
    """,
    threads=256,
    dependent_launch=True,
)
def row_scales(X: tw.Tensor(f32, M, K), S: tw.Tensor(f32, M), R: tw.Tensor(f32, M), BK: tw.const(1024, 2048) = 2048):
    """The power of two that takes a row's largest element to between 2^14 and 2^15, and what undoes it."""
    tw.assume(K % 8 == 0)
    m = tw.grid(M)
    top = tw.zeros(f32, (BK,))
    for c in tw.range(tw.cdiv(K, BK)):
        top = tw.maximum(top, tw.abs(tw.load(X[m, c * BK : c * BK + BK], fill=0.0)))
    exponent = tw.floor(tw.log2(tw.maximum(tw.max(top, axis=0), 1.0e-30)))
    tw.store(S[m], tw.exp2(14.0 - exponent))
    tw.store(R[m], tw.exp2(exponent - 14.0))


@tw.kernel(
    target="sm_90a",
    name="split",
    computes="""
        H[m, k] = f16(X[m, k] * S[m])
        L[m, k] = f16(X[m, k] * S[m] - f32(f16(X[m, k] * S[m])))
    """,
    threads=256,
    dependent_launch=True,
)
def split(X: tw.Tensor(f32, M, K), S: tw.Tensor(f32, M), H: tw.Tensor(f16, M, K), L: tw.Tensor(f16, M, K), BK: tw.const(1024, 2048) = 2048):
    """A number is its f16 and, as f16, what that leaves."""
    tw.assume(K % 8 == 0)
    c, m = tw.grid(tw.cdiv(K, BK), M)
    x = tw.load(X[m, c * BK : c * BK + BK], fill=0.0) * tw.load(S[m])
    h = x.to(f16)
    tw.store(H[m, c * BK : c * BK + BK], h)
    tw.store(L[m, c * BK : c * BK + BK], (x - h.to(f32)).to(f16))


@tw.inline
def three_products(part, high, low, b_high, b_low):
    """The small ones first."""
    tw.wgmma(part, high, b_low, zero=True)
    tw.wgmma(part, low, b_high)
    tw.wgmma(part, high, b_high)


@tw.kernel(
    target="sm_90a",
    name="multiply_splits",
    computes="C[m, n] = ra[m] * rb[n] * sum(k, f32(AH[m, k]) * f32(BL[n, k]) + f32(AL[m, k]) * f32(BH[n, k]) + f32(AH[m, k]) * f32(BH[n, k]))",
    dependent_launch=True,
)
def multiply_splits(
    AH: tw.Tensor(f16, M, K),
    AL: tw.Tensor(f16, M, K),
    ra: tw.Tensor(f32, M),
    BH: tw.Tensor(f16, N, K),
    BL: tw.Tensor(f16, N, K),
    rb: tw.Tensor(f32, N),
    C: tw.Tensor(f32, M, N),
    STAGES: tw.const(2, 3, 4) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """256 x 128 tiles: a consumer has 128 rows, and one sum of 64 x 128 in the matrix unit at a time."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 4 == 0)
    sAH = tw.shared(f16, (STAGES, 256, 32), swizzle=64)
    sAL = tw.shared(f16, (STAGES, 256, 32), swizzle=64)
    sBH = tw.shared(f16, (STAGES, 128, 32), swizzle=64)
    sBL = tw.shared(f16, (STAGES, 128, 32), swizzle=64)
    sC = tw.shared(f32, (2, 128, 32), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 256, 128, group=GROUP):
            for kt in tw.range(tw.cdiv(K, 32)):
                slot = ring.acquire()
                tw.tma_load(sAH[slot], AH[bm * 256, kt * 32], on=ring.full(slot))
                tw.tma_load(sBL[slot], BL[bn * 128, kt * 32], on=ring.full(slot))
                tw.tma_load(sAL[slot], AL[bm * 256, kt * 32], on=ring.full(slot))
                tw.tma_load(sBH[slot], BH[bn * 128, kt * 32], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        part = tw.zeros(f32, (64, 128))
        for bm, bn in tw.tiles(M, N, 256, 128, group=GROUP):
            row = bm * 256 + w * 128
            upper = tw.zeros(f32, (64, 128))
            lower = tw.zeros(f32, (64, 128))
            for kt in tw.range(tw.cdiv(K, 32)):
                slot = ring.wait()
                three_products(part, sAH[slot, w * 128 : w * 128 + 64, :], sAL[slot, w * 128 : w * 128 + 64, :], sBH[slot].T, sBL[slot].T)
                tw.wgmma_wait(0)
                upper = upper + part
                three_products(part, sAH[slot, w * 128 + 64 : w * 128 + 128, :], sAL[slot, w * 128 + 64 : w * 128 + 128, :], sBH[slot].T, sBL[slot].T)
                tw.wgmma_wait(0)
                ring.release()
                lower = lower + part
            of_upper = tw.load(ra[row : row + 64], fill=0.0)
            of_lower = tw.load(ra[row + 64 : row + 128], fill=0.0)
            for j in tw.unroll(4):
                column = bn * 128 + j * 32
                columns = tw.load(rb[column : column + 32], fill=0.0)
                tw.tma_store_wait(0, read=True)
                done.sync()
                tw.store(sC[w, 0:64, :], upper[:, j * 32 : j * 32 + 32] * of_upper[:, None] * columns[None, :])
                tw.store(sC[w, 64:128, :], lower[:, j * 32 : j * 32 + 32] * of_lower[:, None] * columns[None, :])
                hand_over(C, sC[w], done, row, column)
        tw.tma_store_wait(0)


@tw.program(computes="C[m, n] = sum(k, A[m, k] * B[n, k])")
def gemm_f32(A: tw.Tensor(f32, M, K), B: tw.Tensor(f32, N, K), C: tw.Tensor(f32, M, N)):
    """What is left out is the product of the low parts: 2^-22 of a product of elements."""
    AH = tw.buffer(f16, M, K)
    AL = tw.buffer(f16, M, K)
    BH = tw.buffer(f16, N, K)
    BL = tw.buffer(f16, N, K)
    sa = tw.buffer(f32, M)
    sb = tw.buffer(f32, N)
    ra = tw.buffer(f32, M)
    rb = tw.buffer(f32, N)
    row_scales(A, sa, ra)
    row_scales(B, sb, rb)
    split(A, sa, AH, AL)
    split(B, sb, BH, BL)
    multiply_splits(AH, AL, ra, BH, BL, rb, C)
