"""GEMM for every way to store the operands. gemm_deferred_*: the stores hide behind the next tile, a finished tile waits in registers, as 16-bit
numbers, and is stored while the first k blocks of the next one are multiplied. gemm_nn, gemm_nt, gemm_tt: for any K (gemm_sm90.py has tn), a tile is
stored before the next one begins.

A letter for A, then one for B. A: t is A[m, k], n is A[k, m]. B: n is B[n, k], t is B[k, n].
"""
import tilewright as tw
from gemm_parts import K, M, N, finish, put
from tilewright import bf16, f16, f32

DEPENDENT, T, WAY = tw.parameters("DEPENDENT T WAY")

# How the operands are stored: how `computes` names their elements, and whether they are contiguous along k.
TN = tw.record(name="tn", a="A[m, k]", b="B[n, k]", A=True, B=True)
NN = tw.record(name="nn", a="A[k, m]", b="B[n, k]", A=False, B=True)
NT = tw.record(name="nt", a="A[k, m]", b="B[k, n]", A=False, B=False)
TT = tw.record(name="tt", a="A[m, k]", b="B[k, n]", A=True, B=False)


@tw.inline
def load_a(sA, A, bm, kt, full, K_LAST):
    if K_LAST:
        tw.tma_load(sA, A[bm * 128, kt * 64], on=full)
    else:
        tw.tma_load(sA, A[kt * 64, bm * 128], on=full)


@tw.inline
def load_b(sB, B, bn, kt, full, K_LAST, BN):
    if K_LAST:
        tw.tma_load(sB, B[bn * BN, kt * 64], on=full)
    else:
        tw.tma_load(sB, B[kt * 64, bn * BN], on=full)


@tw.inline
def multiply(acc, sA, sB, w, zero, A_K_LAST, B_K_LAST):
    """Adds one k block of this warpgroup's 64 rows; operands that are not contiguous along k are read transposed."""
    if A_K_LAST and B_K_LAST:
        tw.wgmma(acc, sA[w * 64 : (w + 1) * 64, :], sB.T, zero=zero)
    elif A_K_LAST:
        tw.wgmma(acc, sA[w * 64 : (w + 1) * 64, :], sB, zero=zero)
    elif B_K_LAST:
        tw.wgmma(acc, sA[:, w * 64 : (w + 1) * 64].T, sB.T, zero=zero)
    else:
        tw.wgmma(acc, sA[:, w * 64 : (w + 1) * 64].T, sB, zero=zero)


@tw.inline
def produce(ring, sA, sB, A, B, A_K_LAST, B_K_LAST, BN, GROUP):
    for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
        for kt in tw.range(tw.cdiv(K, 64)):
            slot = ring.acquire()
            load_a(sA[slot], A, bm, kt, ring.full(slot), A_K_LAST)
            load_b(sB[slot], B, bn, kt, ring.full(slot), B_K_LAST, BN)


@tw.inline
def deferred(A, B, C, T, A_K_LAST, B_K_LAST, BN, STAGES, GROUP):
    """A tile is stored behind the next one's first k blocks; *_K_LAST says that an operand is contiguous along k."""
    WIDE = 64 if BN % 64 == 0 else 32  # columns of a chunk
    CHUNKS = BN // WIDE
    ODD = CHUNKS % 2  # then the last chunk has a buffer of its own: the others alternate across tiles
    sA = tw.shared(T, (STAGES, 128, 64) if A_K_LAST else (STAGES, 64, 128), swizzle=128)
    sB = tw.shared(T, (STAGES, BN, 64) if B_K_LAST else (STAGES, 64, BN), swizzle=128)
    sC = tw.shared(T, (2, 2 + ODD, 64, WIDE), swizzle=2 * WIDE)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        produce(ring, sA, sB, A, B, A_K_LAST, B_K_LAST, BN, GROUP)
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        acc = tw.zeros(f32, (64, BN))
        held = tw.zeros(T, (64, BN))  # the finished tile, its first row and column, and whether there is one
        row = 0
        column = 0
        holds = 0
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            for j in tw.unroll(CHUNKS):
                slot = ring.wait()
                multiply(acc, sA[slot], sB[slot], w, j == 0, A_K_LAST, B_K_LAST)
                tw.wgmma_wait(1)
                if j > 0:
                    ring.release(keep=1)
                if holds == 1:
                    put(C, sC[w, 2 if ODD and j == CHUNKS - 1 else j % 2], done, held[:, j * WIDE : j * WIDE + WIDE], row, column + j * WIDE)
            for kt in tw.range(CHUNKS, tw.cdiv(K, 64)):
                slot = ring.wait()
                multiply(acc, sA[slot], sB[slot], w, False, A_K_LAST, B_K_LAST)
                tw.wgmma_wait(1)
                ring.release(keep=1)
            finish(ring)
            held = acc.to(T)
            row = bm * 128 + w * 64
            column = bn * BN
            holds = 1
        if holds == 1:
            for j in tw.unroll(CHUNKS):
                put(C, sC[w, 2 if ODD and j == CHUNKS - 1 else j % 2], done, held[:, j * WIDE : j * WIDE + WIDE], row, column + j * WIDE)
        tw.tma_store_wait(0)


@tw.inline
def stored(A, B, C, T, A_K_LAST, B_K_LAST, BN, STAGES, GROUP):
    """A tile is stored before the next one begins."""
    sA = tw.shared(T, (STAGES, 128, 64) if A_K_LAST else (STAGES, 64, 128), swizzle=128)
    sB = tw.shared(T, (STAGES, BN, 64) if B_K_LAST else (STAGES, 64, BN), swizzle=128)
    sC = tw.shared(T, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        produce(ring, sA, sB, A, B, A_K_LAST, B_K_LAST, BN, GROUP)
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            acc = tw.zeros(f32, (64, BN))
            for kt in tw.range(tw.cdiv(K, 64)):
                slot = ring.wait()
                multiply(acc, sA[slot], sB[slot], w, False, A_K_LAST, B_K_LAST)
                tw.wgmma_wait(1)
                ring.release(keep=1)
            finish(ring)
            for j in tw.unroll(BN // 64):
                put(C, sC[w, j % 2], done, acc[:, j * 64 : j * 64 + 64].to(T), bm * 128 + w * 64, bn * BN + j * 64)
        tw.tma_store_wait(0)


@tw.signature(target="sm_90a", computes="C[m, n] = T(sum(k, f32(" + WAY.a + ") * f32(" + WAY.b + ")))")
def product(
    A: tw.Tensor(T, M if WAY.A else K, K if WAY.A else M),
    B: tw.Tensor(T, N if WAY.B else K, K if WAY.B else N),
    C: tw.Tensor(T, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """Rows that TMA can address."""
    tw.assume(WAY.A or M % 8 == 0)
    tw.assume(not (WAY.A or WAY.B) or K % 8 == 0)
    tw.assume(N % 8 == 0)


@tw.kernel(product, name="gemm_deferred_" + WAY.name, dependent_launch=DEPENDENT)
def gemm_deferred(A, B, C, BN, STAGES, GROUP, WAY: tw.each(TN), T: tw.each(bf16, f16), DEPENDENT: tw.const(0, 1) = 0, LESS: tw.const(0, 32, 64, 96) = 0):
    """The store hides behind the next tile. Tiles that are LESS columns narrower are for outputs whose last wave they fill better."""
    tw.assume(K > tw.max(((BN - LESS) // (64 if LESS % 64 == 0 else 32) - 1) * 64, 128))  # as many k blocks as chunks of columns, and three at least
    deferred(A, B, C, T, WAY.A, WAY.B, BN - LESS, STAGES, GROUP)


@tw.kernel(product, name="gemm_deferred_" + WAY.name, dependent_launch=DEPENDENT)
def gemm_deferred_other(A, B, C, BN, STAGES, GROUP, WAY: tw.each(NN, NT, TT), T: tw.each(bf16), DEPENDENT: tw.const(0, 1) = 0):
    """The store hides behind the next tile."""
    tw.assume(K > tw.max(BN - 64, 128))  # as many k blocks as chunks of columns, and three at least
    deferred(A, B, C, T, WAY.A, WAY.B, BN, STAGES, GROUP)


@tw.kernel(product, name="gemm_" + WAY.name)
def gemm_stored(A, B, C, BN, STAGES, GROUP, WAY: tw.each(NN, NT, TT), T: tw.each(bf16)):
    """A tile is stored before the next one begins."""
    stored(A, B, C, T, WAY.A, WAY.B, BN, STAGES, GROUP)
