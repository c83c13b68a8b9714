"""GEMM with a long K and few tiles: the splits of K are computed side by side, then added."""
import tilewright as tw
from gemm_parts import K, M, N, finish, operands
from tilewright import bf16, f32

SPLITS = tw.parameters("SPLITS")


@tw.kernel(
    target="sm_90a",
    computes="""
        P[s, m, n] = sum(k in s * ((K + 64 * SPLITS - 1) // (64 * SPLITS)) * 64
                       : minimum((s + 1) * ((K + 64 * SPLITS - 1) // (64 * SPLITS)) * 64, K), f32(A[m, k]) * f32(B[n, k]))
    """,
    dependent_launch=True,
)
def split_products(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    P: tw.Tensor(f32, SPLITS, M, N),
    BN: tw.const(64, 128, 256) = 128,
    STAGES: tw.const(2, 3, 4, 5, 6) = 6,
    SPLITS: tw.const(2, 3, 4, 5, 6, 8) = 8,
):
    """Split s takes the k blocks of 64 from s * chunk on."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    sA, sB, ring = operands(bf16, STAGES, 128, BN, 64)
    sP = tw.shared(f32, (2, 2, 64, 32), swizzle=128)
    bm, bn, s = tw.grid(tw.cdiv(M, 128), tw.cdiv(N, BN), SPLITS)
    first = s * tw.cdiv(K, 64 * SPLITS)
    blocks = tw.min(tw.cdiv(K, 64 * SPLITS), tw.cdiv(K, 64) - first)
    with tw.warpgroups(0, regs=40, name="producer"):
        for kt in tw.range(blocks):
            slot = ring.acquire()
            tw.tma_load(sA[slot], A[bm * 128, (first + kt) * 64], on=ring.full(slot))
            tw.tma_load(sB[slot], B[bn * BN, (first + kt) * 64], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        acc = tw.zeros(f32, (64, BN))
        for kt in tw.range(blocks):
            slot = ring.wait()
            tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T)
            tw.wgmma_wait(1)
            ring.release(keep=1)
        finish(ring)
        for j in tw.unroll(BN // 32):
            tw.tma_store_wait(1, read=True)
            done.sync()
            tw.store(sP[w, j % 2], acc[:, j * 32 : j * 32 + 32])
            tw.fence_async()
            done.sync()
            tw.tma_store(P[s, bm * 128 + w * 64, bn * BN + j * 32], sP[w, j % 2])
            tw.tma_store_commit()
        tw.tma_store_wait(0)


@tw.kernel(target="sm_90a", computes="C[m, n] = bf16(sum(s, P[s, m, n]))", threads=128, dependent_launch=True)
def add_splits(P: tw.Tensor(f32, SPLITS, M, N), C: tw.Tensor(bf16, M, N), CHUNK: tw.const(128, 256, 512) = 512, SPLITS: tw.const(2, 3, 4, 5, 6, 8) = 8):
    """One chunk of a row per block."""
    tw.assume(N % 8 == 0)
    bn, m = tw.grid(tw.cdiv(N, CHUNK), M)
    total = tw.zeros(f32, (CHUNK,))
    for s in tw.unroll(SPLITS):
        total = total + tw.load(P[s, m, bn * CHUNK : bn * CHUNK + CHUNK], fill=0.0)
    tw.store(C[m, bn * CHUNK : bn * CHUNK + CHUNK], total.to(bf16))


@tw.program(computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))")
def gemm_split(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(bf16, M, N), SPLITS: tw.const(2, 3, 4, 5, 6, 8) = 8):
    P = tw.buffer(f32, SPLITS, M, N)
    split_products(A, B, P)
    add_splits(P, C)
