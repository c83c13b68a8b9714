"""GEMM whose stores hide behind the next tile: a finished tile waits in registers, as 16-bit numbers, and is stored while the first k blocks
of the next one are multiplied. For every way to store the operands, and f16.

A letter for A, then one for B. A: t is A[m, k], n is A[k, m]. B: n is B[n, k], t is B[k, n].
"""
import tilewright as tw
from tilewright import bf16, f16, f32

M, N, K = tw.sizes("M N K")


@tw.inline
def put(C, sC, done, x, row, column):
    """Stores a 64 x 64 chunk through a staging buffer whose store before last has been read."""
    tw.tma_store_wait(1, read=True)
    done.sync()
    tw.store(sC, x)
    tw.fence_async()
    done.sync()
    tw.tma_store(C[row, column], sC)
    tw.tma_store_commit()


@tw.kernel(target="sm_90a", name="gemm_deferred_tn", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))", dependent_launch=DEPENDENT)
def gemm_deferred_tn(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    C: tw.Tensor(bf16, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
    DEPENDENT: tw.const(0, 1) = 0,
):
    """Both operands are contiguous along k."""
    CHUNKS = BN // 64
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    tw.assume(K > 64 * CHUNKS)
    sA = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sB = tw.shared(bf16, (STAGES, BN, 64), swizzle=128)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            for kt in tw.range(tw.cdiv(K, 64)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[bm * 128, kt * 64], on=ring.full(slot))
                tw.tma_load(sB[slot], B[bn * BN, kt * 64], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        acc = tw.zeros(f32, (64, BN))
        held = tw.zeros(bf16, (64, BN))  # the finished tile, its first row and column, and whether there is one
        row = 0
        column = 0
        holds = 0
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            for j in tw.unroll(CHUNKS):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T, zero=j == 0)
                tw.wgmma_wait(1)
                if j > 0:
                    ring.release(keep=1)
                if holds == 1:
                    put(C, sC[w, j % 2], done, held[:, j * 64 : j * 64 + 64], row, column + j * 64)
            for kt in tw.range(CHUNKS, tw.cdiv(K, 64)):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T)
                tw.wgmma_wait(1)
                ring.release(keep=1)
            tw.wgmma_wait(0)
            ring.release()
            held = acc.to(bf16)
            row = bm * 128 + w * 64
            column = bn * BN
            holds = 1
        if holds == 1:
            for j in tw.unroll(CHUNKS):
                put(C, sC[w, j % 2], done, held[:, j * 64 : j * 64 + 64], row, column + j * 64)
        tw.tma_store_wait(0)


@tw.kernel(target="sm_90a", name="gemm_deferred_nn", computes="C[m, n] = bf16(sum(k, f32(A[k, m]) * f32(B[n, k])))", dependent_launch=DEPENDENT)
def gemm_deferred_nn(
    A: tw.Tensor(bf16, K, M),
    B: tw.Tensor(bf16, N, K),
    C: tw.Tensor(bf16, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
    DEPENDENT: tw.const(0, 1) = 0,
):
    """A is contiguous along m."""
    CHUNKS = BN // 64
    tw.assume(K % 8 == 0)
    tw.assume(M % 8 == 0)
    tw.assume(N % 8 == 0)
    tw.assume(K > 64 * CHUNKS)
    sA = tw.shared(bf16, (STAGES, 64, 128), swizzle=128)
    sB = tw.shared(bf16, (STAGES, BN, 64), swizzle=128)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            for kt in tw.range(tw.cdiv(K, 64)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[kt * 64, bm * 128], on=ring.full(slot))
                tw.tma_load(sB[slot], B[bn * BN, kt * 64], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        acc = tw.zeros(f32, (64, BN))
        held = tw.zeros(bf16, (64, BN))  # the finished tile, its first row and column, and whether there is one
        row = 0
        column = 0
        holds = 0
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            for j in tw.unroll(CHUNKS):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, :, w * 64 : (w + 1) * 64].T, sB[slot].T, zero=j == 0)
                tw.wgmma_wait(1)
                if j > 0:
                    ring.release(keep=1)
                if holds == 1:
                    put(C, sC[w, j % 2], done, held[:, j * 64 : j * 64 + 64], row, column + j * 64)
            for kt in tw.range(CHUNKS, tw.cdiv(K, 64)):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, :, w * 64 : (w + 1) * 64].T, sB[slot].T)
                tw.wgmma_wait(1)
                ring.release(keep=1)
            tw.wgmma_wait(0)
            ring.release()
            held = acc.to(bf16)
            row = bm * 128 + w * 64
            column = bn * BN
            holds = 1
        if holds == 1:
            for j in tw.unroll(CHUNKS):
                put(C, sC[w, j % 2], done, held[:, j * 64 : j * 64 + 64], row, column + j * 64)
        tw.tma_store_wait(0)


@tw.kernel(target="sm_90a", name="gemm_deferred_nt", computes="C[m, n] = bf16(sum(k, f32(A[k, m]) * f32(B[k, n])))", dependent_launch=DEPENDENT)
def gemm_deferred_nt(
    A: tw.Tensor(bf16, K, M),
    B: tw.Tensor(bf16, K, N),
    C: tw.Tensor(bf16, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
    DEPENDENT: tw.const(0, 1) = 0,
):
    """A is contiguous along m, B along n."""
    CHUNKS = BN // 64
    tw.assume(M % 8 == 0)
    tw.assume(N % 8 == 0)
    tw.assume(K > 64 * CHUNKS)
    sA = tw.shared(bf16, (STAGES, 64, 128), swizzle=128)
    sB = tw.shared(bf16, (STAGES, 64, BN), swizzle=128)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            for kt in tw.range(tw.cdiv(K, 64)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[kt * 64, bm * 128], on=ring.full(slot))
                tw.tma_load(sB[slot], B[kt * 64, bn * BN], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        acc = tw.zeros(f32, (64, BN))
        held = tw.zeros(bf16, (64, BN))  # the finished tile, its first row and column, and whether there is one
        row = 0
        column = 0
        holds = 0
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            for j in tw.unroll(CHUNKS):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, :, w * 64 : (w + 1) * 64].T, sB[slot], zero=j == 0)
                tw.wgmma_wait(1)
                if j > 0:
                    ring.release(keep=1)
                if holds == 1:
                    put(C, sC[w, j % 2], done, held[:, j * 64 : j * 64 + 64], row, column + j * 64)
            for kt in tw.range(CHUNKS, tw.cdiv(K, 64)):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, :, w * 64 : (w + 1) * 64].T, sB[slot])
                tw.wgmma_wait(1)
                ring.release(keep=1)
            tw.wgmma_wait(0)
            ring.release()
            held = acc.to(bf16)
            row = bm * 128 + w * 64
            column = bn * BN
            holds = 1
        if holds == 1:
            for j in tw.unroll(CHUNKS):
                put(C, sC[w, j % 2], done, held[:, j * 64 : j * 64 + 64], row, column + j * 64)
        tw.tma_store_wait(0)


@tw.kernel(target="sm_90a", name="gemm_deferred_tt", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[k, n])))", dependent_launch=DEPENDENT)
def gemm_deferred_tt(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, K, N),
    C: tw.Tensor(bf16, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
    DEPENDENT: tw.const(0, 1) = 0,
):
    """B is contiguous along n."""
    CHUNKS = BN // 64
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    tw.assume(K > 64 * CHUNKS)
    sA = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sB = tw.shared(bf16, (STAGES, 64, BN), swizzle=128)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            for kt in tw.range(tw.cdiv(K, 64)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[bm * 128, kt * 64], on=ring.full(slot))
                tw.tma_load(sB[slot], B[kt * 64, bn * BN], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        acc = tw.zeros(f32, (64, BN))
        held = tw.zeros(bf16, (64, BN))  # the finished tile, its first row and column, and whether there is one
        row = 0
        column = 0
        holds = 0
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            for j in tw.unroll(CHUNKS):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot], zero=j == 0)
                tw.wgmma_wait(1)
                if j > 0:
                    ring.release(keep=1)
                if holds == 1:
                    put(C, sC[w, j % 2], done, held[:, j * 64 : j * 64 + 64], row, column + j * 64)
            for kt in tw.range(CHUNKS, tw.cdiv(K, 64)):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot])
                tw.wgmma_wait(1)
                ring.release(keep=1)
            tw.wgmma_wait(0)
            ring.release()
            held = acc.to(bf16)
            row = bm * 128 + w * 64
            column = bn * BN
            holds = 1
        if holds == 1:
            for j in tw.unroll(CHUNKS):
                put(C, sC[w, j % 2], done, held[:, j * 64 : j * 64 + 64], row, column + j * 64)
        tw.tma_store_wait(0)


@tw.kernel(target="sm_90a", name="gemm_deferred_f16", computes="C[m, n] = f16(sum(k, f32(A[m, k]) * f32(B[n, k])))", dependent_launch=DEPENDENT)
def gemm_deferred_f16(
    A: tw.Tensor(f16, M, K),
    B: tw.Tensor(f16, N, K),
    C: tw.Tensor(f16, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
    DEPENDENT: tw.const(0, 1) = 0,
):
    """Both operands are contiguous along k."""
    CHUNKS = BN // 64
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    tw.assume(K > 64 * CHUNKS)
    sA = tw.shared(f16, (STAGES, 128, 64), swizzle=128)
    sB = tw.shared(f16, (STAGES, BN, 64), swizzle=128)
    sC = tw.shared(f16, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            for kt in tw.range(tw.cdiv(K, 64)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[bm * 128, kt * 64], on=ring.full(slot))
                tw.tma_load(sB[slot], B[bn * BN, kt * 64], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        acc = tw.zeros(f32, (64, BN))
        held = tw.zeros(f16, (64, BN))  # the finished tile, its first row and column, and whether there is one
        row = 0
        column = 0
        holds = 0
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            for j in tw.unroll(CHUNKS):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T, zero=j == 0)
                tw.wgmma_wait(1)
                if j > 0:
                    ring.release(keep=1)
                if holds == 1:
                    put(C, sC[w, j % 2], done, held[:, j * 64 : j * 64 + 64], row, column + j * 64)
            for kt in tw.range(CHUNKS, tw.cdiv(K, 64)):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T)
                tw.wgmma_wait(1)
                ring.release(keep=1)
            tw.wgmma_wait(0)
            ring.release()
            held = acc.to(f16)
            row = bm * 128 + w * 64
            column = bn * BN
            holds = 1
        if holds == 1:
            for j in tw.unroll(CHUNKS):
                put(C, sC[w, j % 2], done, held[:, j * 64 : j * 64 + 64], row, column + j * 64)
        tw.tma_store_wait(0)
