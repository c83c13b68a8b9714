"""Matrix transpose in bf16 and fp32: whole vectors on both sides of memory; what lies between is turned in shared memory."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")
T = tw.parameters("T")

@tw.kernel(target="sm_90a", name="transpose", computes="Y[n, m] = X[m, n]", threads=256, blocks_per_sm=6)
def transpose_matrices(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, N, M), T: tw.each(bf16), BM: tw.const(64, 128) = 128, BN: tw.const(64, 128) = 64):
    """Rows of whole vectors of 16-bit elements: ldmatrix turns 8 x 8 matrices on their way to registers, stmatrix writes them as rows again."""
    tw.assume(M % 8 == 0)
    tw.assume(N % 8 == 0)
    bn, bm = tw.grid(tw.cdiv(N, BN), tw.cdiv(M, BM))
    s = tw.shared(T, (BM, BN), swizzle=128)
    t = tw.shared(T, (BN, BM), swizzle=128)
    tw.cp_async(s, X[bm * BM : bm * BM + BM, bn * BN : bn * BN + BN])
    tw.cp_async_commit()
    tw.cp_async_wait(0)
    tw.sync()
    tw.store(t, tw.load(s.T, layout=tw.mma_c(warps=(4, 2))))
    tw.sync()
    tw.store(Y[bn * BN, bm * BM], tw.load(t))


@tw.kernel(target="sm_80", name="transpose", computes="Y[n, m] = X[m, n]", threads=256)
def transpose_aligned(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, N, M), T: tw.each(f32), BM: tw.const(32, 64, 128) = 64, BN: tw.const(32, 64, 128) = 64):
    """Rows of whole vectors in X and in Y. Four bytes of padding a row: rows and columns of a warp's accesses fall into different banks."""
    tw.assume(M % 4 == 0)
    tw.assume(N % 4 == 0)
    bn, bm = tw.grid(tw.cdiv(N, BN), tw.cdiv(M, BM))
    s = tw.shared(T, (BM, BN), pad=1)
    tw.store(s, tw.load(X[bm * BM : bm * BM + BM, bn * BN : bn * BN + BN], fill=0.0, layout=tw.blocked(vector=4)))
    tw.sync()
    tw.store(Y[bn * BN, bm * BM], tw.load(s.T))


@tw.kernel(target="sm_80", name="transpose", computes="Y[n, m] = X[m, n]", threads=512, blocks_per_sm=3)
def transpose_odd(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, N, M), T: tw.each(bf16), P: tw.each(1, 2, 3, 4, 5, 6, 7), BM: tw.const(64, 128) = 64, BN: tw.const(256) = 256):
    """Rows of X that begin each at another place of a vector, in whole vectors to rows of shared memory that lie alike. Every row of Y is written from the sector of 32 bytes at or before
    its part of the tile, so that only the ends of a row leave sectors to two blocks: rows of a warp have one shift, and the tile has 16 rows of X more than columns of Y."""
    tw.assume(N % 8 == P)
    tw.assume(N >= BN)
    bm, bn = tw.grid(tw.cdiv(M + 15, BM), tw.cdiv(N, BN))
    m = bm * BM - 16
    s = tw.shared(T, (16 + BM, BN), pad=8 + P)
    tw.cp_async(s, X[m : m + 16 + BM, bn * BN : bn * BN + BN], whole_vectors=True)
    tw.cp_async_commit()
    tw.cp_async_wait(0)
    tw.sync()
    with tw.warps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) as w:
        shift = w * (M % 16) % 16
        for i in tw.range(BN // 16, unroll=16):
            n = bn * BN + i * 16 + w
            y = tw.load(s[16 - shift : 16 - shift + BM, i * 16 + w], layout=tw.blocked(vector=2))
            if n < N:
                tw.store(Y[n, bm * BM - shift : bm * BM - shift + BM], y)


@tw.kernel(target="sm_80", name="transpose", computes="Y[n, m] = X[m, n]", threads=256, blocks_per_sm=4)
def transpose_shifted(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, N, M), T: tw.each(bf16, f32), BM: tw.const(64, 128, 256) = 512 // T.bytes, BN: tw.const(32, 64) = 16 * T.bytes):
    """Any shape, X one element at a time; Y as above."""
    V = 32 // T.bytes
    bm, bn = tw.grid(tw.cdiv(M + V - 1, BM), tw.cdiv(N, BN))
    m = bm * BM - V
    s = tw.shared(T, (V + BM, BN), pad=1)
    tw.store(s, tw.load(X[m : m + V + BM, bn * BN : bn * BN + BN], fill=0.0, layout=tw.blocked(vector=1)))
    tw.sync()
    with tw.warps(0, 1, 2, 3, 4, 5, 6, 7) as w:
        for i in tw.range(BN // 8, unroll=4):
            n = bn * BN + i * 8 + w
            shift = n % V * (M % V) % V
            y = tw.load(s[V - shift : V - shift + BM, i * 8 + w], layout=tw.blocked(vector=4 // T.bytes))
            if n < N:
                tw.store(Y[n, bm * BM - shift : bm * BM - shift + BM], y)
