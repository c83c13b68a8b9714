"""Matrix instructions of the types that the GEMMs of kernels/ do not use: one kernel per form. wgmma adds products of fp8 in 13 bits, so those sums are stated in f16."""
import tilewright as tw
from tilewright import bf16, e4m3, e5m2, f32, i8, i32, tf32, u8

M, N, K = tw.sizes("M N K")


@tw.inline
def through_mma(A, B, C, TA, TB, ACC, BK, SWIZZLE):
    bn, bm = tw.grid(tw.cdiv(N, 64), tw.cdiv(M, 64))
    sA = tw.shared(TA, (64, BK), swizzle=SWIZZLE)
    sB = tw.shared(TB, (64, BK), swizzle=SWIZZLE)
    acc = tw.zeros(ACC, (64, 64), layout=tw.mma_c(warps=(2, 2)))
    for kt in tw.range(tw.cdiv(K, BK)):
        tw.cp_async(sA, A[bm * 64, kt * BK])
        tw.cp_async(sB, B[bn * 64, kt * BK])
        tw.cp_async_commit()
        tw.cp_async_wait(0)
        tw.sync()
        tw.mma(acc, tw.load(sA, layout=tw.mma_a()), tw.load(sB, layout=tw.mma_b()))
        tw.sync()
    tw.store(C[bm * 64, bn * 64], acc)


@tw.inline
def through_wgmma(A, B, C, TA, TB, ACC, BN):
    BK = 128 // TA.bytes
    sA = tw.shared(TA, (2, 64, BK), swizzle=128)
    sB = tw.shared(TB, (2, BN, BK), swizzle=128)
    ring = tw.pipeline(2)
    with tw.warpgroups(0):
        for bm, bn in tw.tiles(M, N, 64, BN):
            for kt in tw.range(tw.cdiv(K, BK)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[bm * 64, kt * BK], on=ring.full(slot))
                tw.tma_load(sB[slot], B[bn * BN, kt * BK], on=ring.full(slot))
    with tw.warpgroups(1):
        for bm, bn in tw.tiles(M, N, 64, BN):
            acc = tw.zeros(ACC, (64, BN))
            for kt in tw.range(tw.cdiv(K, BK)):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot], sB[slot].T)
                tw.wgmma_wait(0)
                ring.release()
            tw.store(C[bm * 64, bn * BN], acc)


@tw.inline
def from_registers(A, B, C, T, BN):
    """A goes from global memory to registers, B through shared memory."""
    BK = 128 // T.bytes
    bn, bm = tw.grid(tw.cdiv(N, BN), tw.cdiv(M, 64))
    sB = tw.shared(T, (BN, BK), swizzle=128)
    acc = tw.zeros(f32, (64, BN))
    for kt in tw.range(tw.cdiv(K, BK)):
        a = tw.load(A[bm * 64 : bm * 64 + 64, kt * BK : kt * BK + BK], fill=0.0)
        tw.store(sB, tw.load(B[bn * BN : bn * BN + BN, kt * BK : kt * BK + BK], fill=0.0))
        tw.fence_async()
        tw.sync()
        tw.wgmma(acc, a, sB.T)
        tw.wgmma_wait(0)
        tw.sync()
    tw.store(C[bm * 64, bn * BN], acc)


@tw.kernel(target="sm_80", computes="C[m, n] = sum(k, i32(A[m, k]) * i32(B[n, k]))")
def mma_i8(A: tw.Tensor(i8, M, K), B: tw.Tensor(i8, N, K), C: tw.Tensor(i32, M, N)):
    tw.assume(K % 16 == 0)
    through_mma(A, B, C, i8, i8, i32, 64, 64)


@tw.kernel(target="sm_80", computes="C[m, n] = sum(k, i32(A[m, k]) * i32(B[n, k]))")
def mma_u8_i8(A: tw.Tensor(u8, M, K), B: tw.Tensor(i8, N, K), C: tw.Tensor(i32, M, N)):
    tw.assume(K % 16 == 0)
    through_mma(A, B, C, u8, i8, i32, 64, 64)


@tw.kernel(target="sm_80", computes="C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))")
def mma_tf32(A: tw.Tensor(tf32, M, K), B: tw.Tensor(tf32, N, K), C: tw.Tensor(f32, M, N)):
    tw.assume(K % 4 == 0)
    through_mma(A, B, C, tf32, tf32, f32, 32, 128)


@tw.kernel(target="sm_90a", computes="C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))")
def mma_e4m3(A: tw.Tensor(e4m3, M, K), B: tw.Tensor(e4m3, N, K), C: tw.Tensor(f32, M, N)):
    tw.assume(K % 16 == 0)
    through_mma(A, B, C, e4m3, e4m3, f32, 64, 64)


@tw.kernel(target="sm_90a", computes="C[m, n] = sum(k, bf16(A[m, k]) * bf16(B[n, k]))")
def wgmma_e4m3(A: tw.Tensor(e4m3, M, K), B: tw.Tensor(e4m3, N, K), C: tw.Tensor(f32, M, N)):
    tw.assume(K % 16 == 0)
    through_wgmma(A, B, C, e4m3, e4m3, f32, 72)


@tw.kernel(target="sm_90a", computes="C[m, n] = sum(k, bf16(A[m, k]) * bf16(B[n, k]))")
def wgmma_e4m3_e5m2(A: tw.Tensor(e4m3, M, K), B: tw.Tensor(e5m2, N, K), C: tw.Tensor(f32, M, N)):
    tw.assume(K % 16 == 0)
    through_wgmma(A, B, C, e4m3, e5m2, f32, 64)


@tw.kernel(target="sm_90a", computes="C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))")
def wgmma_tf32(A: tw.Tensor(tf32, M, K), B: tw.Tensor(tf32, N, K), C: tw.Tensor(f32, M, N)):
    tw.assume(K % 4 == 0)
    through_wgmma(A, B, C, tf32, tf32, f32, 64)


@tw.kernel(target="sm_90a", computes="C[m, n] = sum(k, i32(A[m, k]) * i32(B[n, k]))")
def wgmma_i8(A: tw.Tensor(i8, M, K), B: tw.Tensor(i8, N, K), C: tw.Tensor(i32, M, N)):
    tw.assume(K % 16 == 0)
    through_wgmma(A, B, C, i8, i8, i32, 48)


@tw.kernel(target="sm_90a", computes="C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))")
def wgmma_bf16_n40(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(f32, M, N)):
    tw.assume(K % 8 == 0)
    through_wgmma(A, B, C, bf16, bf16, f32, 40)


@tw.kernel(target="sm_90a", computes="C[m, n] = sum(k, bf16(A[m, k]) * bf16(B[n, k]))")
def wgmma_e4m3_registers(A: tw.Tensor(e4m3, M, K), B: tw.Tensor(e4m3, N, K), C: tw.Tensor(f32, M, N)):
    from_registers(A, B, C, e4m3, 32)


@tw.kernel(target="sm_90a", computes="C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))")
def wgmma_tf32_registers(A: tw.Tensor(tf32, M, K), B: tw.Tensor(tf32, N, K), C: tw.Tensor(f32, M, N)):
    from_registers(A, B, C, tf32, 64)
