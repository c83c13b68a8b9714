"""Few tokens against weights of 4 bits (W4A16), for Hopper: the time is that of reading the weights once. They become bf16 in registers, on their way to the matrix unit.

A byte of W holds two weights of a row, 64 places apart: of the 128 that share a scale, byte j has weight j in its low four bits and weight j + 64 in its high four bits. A number from 0 to 15
stands for itself less 8.
"""
import tilewright as tw
from tilewright import bf16, f32, i32, u8

M, N, KB = tw.sizes("M N KB")


@tw.inline
def weights_times_tokens(sW, sS, sA, ring, own, first, end, TOKENS):
    """The sum over the blocks of k from `first` to `end`. A block's weights are made while the products of the one before are."""
    acc = tw.zeros(f32, (64, TOKENS))
    low = tw.zeros(bf16, (64, 64))  # of the products on their way
    high = tw.zeros(bf16, (64, 64))
    for i in tw.range(first, end):
        slot = ring.wait()
        w = tw.load(sW[slot]).to(i32)
        scale = tw.load(sS[slot]).to(f32)
        less = scale * -8.0
        even = tw.fma((w % 16).to(f32), scale[:, None], less[:, None])
        odd = tw.fma((w // 16).to(f32), scale[:, None], less[:, None])
        tw.wgmma_wait(0)
        low = even.to(bf16)
        high = odd.to(bf16)
        own.sync()  # all have read the slot before: a release is one arrival
        ring.release(keep=1)
        tw.wgmma(acc, low, sA[slot, :, 0:64].T)
        tw.wgmma(acc, high, sA[slot, :, 64:128].T)
    tw.wgmma_wait(0)
    own.sync()
    ring.release()
    return acc


@tw.kernel(
    target="sm_90a",
    name="gemm_w4",
    computes="""
        C[m, n] = bf16(sum(b, sum(j in 0:64, f32(A[m, b, j]) * f32(bf16((i32(W[n, b, j]) % 16 - 8) * f32(scales[b, n]))) + f32(A[m, b, j + 64]) * f32(bf16((i32(W[n, b, j]) // 16 - 8) * f32(scales[b, n]))))))
    """,
)
def gemm_w4(
    A: tw.Tensor(bf16, M, KB, 128),
    W: tw.Tensor(u8, N, KB, 64),
    scales: tw.Tensor(bf16, KB, N),
    C: tw.Tensor(bf16, M, N),
    TOKENS: tw.each(8, 16, 32, 64),
    STAGES: tw.const(2, 3, 4, 6, 8) = 8,
):
    """A block has 64 rows of weights. Two consumers share out k: each has a ring of its own, and the first adds up both sums."""
    tw.assume(M <= TOKENS)
    tw.assume(N % 8 == 0)
    DEPTH = tw.min(STAGES, 4) if TOKENS == 64 else STAGES
    sW = tw.shared(u8, (2, DEPTH, 64, 64), swizzle=64)
    sS = tw.shared(bf16, (2, DEPTH, 64))
    sA = tw.shared(bf16, (2, DEPTH, TOKENS, 128), swizzle=128)
    sP = tw.shared(f32, (64, TOKENS), pad=4)
    sC = tw.shared(bf16, (TOKENS, 64), swizzle=128)
    low = tw.pipeline(DEPTH)
    high = tw.pipeline(DEPTH)
    bn = tw.grid(tw.cdiv(N, 64))
    half = tw.cdiv(KB, 2)
    with tw.warps(0, name="load_first"):
        for i in tw.range(half):
            slot = low.acquire()
            tw.tma_load(sW[0, slot], W[bn * 64 : bn * 64 + 64, i, 0:64], on=low.full(slot), hint="evict_first")
            tw.tma_load(sS[0, slot], scales[i, bn * 64 : bn * 64 + 64], on=low.full(slot))
            tw.tma_load(sA[0, slot], A[0:TOKENS, i, 0:128], on=low.full(slot), hint="evict_last")
    with tw.warps(1, name="load_second"):
        for i in tw.range(half, KB):
            slot = high.acquire()
            tw.tma_load(sW[1, slot], W[bn * 64 : bn * 64 + 64, i, 0:64], on=high.full(slot), hint="evict_first")
            tw.tma_load(sS[1, slot], scales[i, bn * 64 : bn * 64 + 64], on=high.full(slot))
            tw.tma_load(sA[1, slot], A[0:TOKENS, i, 0:128], on=high.full(slot), hint="evict_last")
    both = tw.named_barrier(1, 256)
    with tw.warpgroups(1, name="second"):
        acc = weights_times_tokens(sW[1], sS[1], sA[1], high, tw.named_barrier(3, 128), half, KB, TOKENS)
        tw.store(sP, acc)
        both.sync()
    with tw.warpgroups(2, name="first"):
        own = tw.named_barrier(2, 128)
        acc = weights_times_tokens(sW[0], sS[0], sA[0], low, own, 0, half, TOKENS)
        both.sync()
        tw.store(sC.T, (acc + tw.load(sP, layout=tw.wgmma_c())).to(bf16))
        tw.fence_async()
        own.sync()
        tw.tma_store(C[0, bn * 64], sC)
        tw.tma_store_commit()
        tw.tma_store_wait(0)
