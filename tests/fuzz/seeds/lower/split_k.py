"""Split-K as a program: partial products into a buffer, then a sum over the splits."""
import tilewright as tw
from tilewright import bf16, f32

M, N, K = tw.sizes("M N K")
SPLITS = 4


@tw.kernel(
    target="sm_80",
    computes="P[s, m, n] = sum(k in minimum(s * ((K + 127) // 128 * 32), K) : minimum((s + 1) * ((K + 127) // 128 * 32), K), f32(A[m, k]) * f32(B[n, k]))",
    threads=128,
)
def partial_products(
    A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), P: tw.Tensor(f32, SPLITS, M, N), BM: tw.const(64) = 64, BN: tw.const(64) = 64
):
    """Split s takes the k tiles of 32 from s * chunk on."""
    tw.assume(K % 8 == 0)
    bm, bn, s = tw.grid(tw.cdiv(M, BM), tw.cdiv(N, BN), SPLITS)
    sA = tw.shared(bf16, (BM, 32), swizzle=64)
    sB = tw.shared(bf16, (BN, 32), swizzle=64)
    acc = tw.zeros(f32, (BM, BN))
    chunk = tw.cdiv(K, 32 * SPLITS)
    for kt in tw.range(s * chunk, tw.min((s + 1) * chunk, tw.cdiv(K, 32))):
        tw.sync()
        tw.cp_async(sA, A[bm * BM, kt * 32])
        tw.cp_async(sB, B[bn * BN, kt * 32])
        tw.cp_async_commit()
        tw.cp_async_wait(0)
        tw.sync()
        for kk in tw.unroll(2):
            a = tw.load(sA[:, kk * 16 : kk * 16 + 16])
            b = tw.load(sB[:, kk * 16 : kk * 16 + 16])
            tw.mma(acc, a, b)
    tw.store(P[s, bm * BM, bn * BN], acc)


@tw.kernel(target="sm_80", computes="C[m, n] = bf16(sum(s, P[s, m, n]))", threads=128)
def sum_splits(P: tw.Tensor(f32, SPLITS, M, N), C: tw.Tensor(bf16, M, N), BN: tw.const(256, 512) = 512):
    """One row chunk per block."""
    bn, m = tw.grid(tw.cdiv(N, BN), M)
    total = tw.zeros(f32, (BN,))
    for s in tw.unroll(SPLITS):
        total = total + tw.load(P[s, m, bn * BN : bn * BN + BN], fill=0.0)
    tw.store(C[m, bn * BN : bn * BN + BN], total.to(bf16))


@tw.program(computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))")
def split_k(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(bf16, M, N)):
    P = tw.buffer(f32, SPLITS, M, N)
    partial_products(A, B, P)
    sum_splits(P, C)
