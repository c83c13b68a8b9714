"""What the GEMM kernels for Hopper share: operands that come through a ring of k blocks, a tile's products, and its way out through staging buffers.

A block has a producer and two consumers; consumer w has rows w * HM .. (w + 1) * HM of every tile."""
import tilewright as tw

M, N, K = tw.sizes("M N K")


@tw.inline
def operands(T, STAGES, BM, BN, BK, CONSUMERS=2):
    """Slots for k blocks of BM rows of A and BN of B, and their ring."""
    sA = tw.shared(T, (STAGES, BM, BK), swizzle=128)
    sB = tw.shared(T, (STAGES, BN, BK), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=CONSUMERS)
    return sA, sB, ring


@tw.inline
def fill(ring, sA, sB, A, B, row, column, BK):
    """One tile's k blocks into the ring."""
    for kt in tw.range(tw.cdiv(K, BK)):
        slot = ring.acquire()
        tw.tma_load(sA[slot], A[row, kt * BK], on=ring.full(slot))
        tw.tma_load(sB[slot], B[column, kt * BK], on=ring.full(slot))


@tw.inline
def produce(ring, sA, sB, A, B, BM, BN, BK, GROUP):
    """The producer: the k blocks of all tiles."""
    for bm, bn in tw.tiles(M, N, BM, BN, group=GROUP):
        for kt in tw.range(tw.cdiv(K, BK)):
            slot = ring.acquire()
            tw.tma_load(sA[slot], A[bm * BM, kt * BK], on=ring.full(slot))
            tw.tma_load(sB[slot], B[bn * BN, kt * BK], on=ring.full(slot))


@tw.inline
def multiply(ring, acc, sA, sB, w, HM, BK, first=0):
    """A tile's k blocks from the first-th on out of the ring. The last wgmma is still under way."""
    for kt in tw.range(first, tw.cdiv(K, BK)):
        slot = ring.wait()
        tw.wgmma(acc, sA[slot, w * HM : (w + 1) * HM, :], sB[slot].T)
        tw.wgmma_wait(1)
        ring.release(keep=1)


@tw.inline
def finish(ring):
    """The last wgmma is over, and so is the use of its slot."""
    tw.wgmma_wait(0)
    ring.release()


@tw.inline
def hand_over(C, sC, done, row, column):
    """Hands a staged chunk to TMA."""
    tw.fence_async()
    done.sync()
    tw.tma_store(C[row, column], sC)
    tw.tma_store_commit()


@tw.inline
def put(C, sC, done, x, row, column):
    """Stores a chunk through a staging buffer whose store before last has been read."""
    tw.tma_store_wait(1, read=True)
    done.sync()
    tw.store(sC, x)
    hand_over(C, sC, done, row, column)


@tw.inline
def put_tile(C, sC, done, acc, bm, bn, w, BM, HM, BN, T):
    """A consumer's rows of a tile, 64 columns at a time through its two staging buffers."""
    for j in tw.unroll(BN // 64):
        tw.tma_store_wait(1, read=True)
        done.sync()
        tw.store(sC[j % 2], acc[:, j * 64 : j * 64 + 64].to(T))
        tw.fence_async()
        done.sync()
        tw.tma_store(C[bm * BM + w * HM, bn * BN + j * 64], sC[j % 2])
        tw.tma_store_commit()
