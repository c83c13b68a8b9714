"""Matrix transpose in bf16 and fp32: whole vectors on both sides of memory, turned in a padded tile of shared memory."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.inline
def turned(X, Y, s, BM, BN):
    bn, bm = tw.grid(tw.cdiv(N, BN), tw.cdiv(M, BM))
    tw.store(s, tw.load(X[bm * BM : bm * BM + BM, bn * BN : bn * BN + BN], fill=0.0))
    tw.sync()
    tw.store(Y[bn * BN, bm * BM], tw.load(s.T))


@tw.kernel(target="sm_80", name="transpose", computes="Y[n, m] = X[m, n]", threads=THREADS)
def transpose_aligned(
    X: tw.Tensor(T, M, N), Y: tw.Tensor(T, N, M), T: tw.each(bf16, f32), BM: tw.const(32, 64, 128) = 64, BN: tw.const(32, 64, 128) = 64, THREADS: tw.const(128, 256, 512) = 256
):
    """Rows of whole vectors in X and in Y. Four bytes of padding a row: rows and columns of a warp's accesses fall into different banks."""
    tw.assume(M % (16 // T.bytes) == 0)
    tw.assume(N % (16 // T.bytes) == 0)
    s = tw.shared(T, (BM, BN), pad=4 // T.bytes)
    turned(X, Y, s, BM, BN)


@tw.kernel(target="sm_80", name="transpose", computes="Y[n, m] = X[m, n]", threads=256)
def transpose_any(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, N, M), T: tw.each(bf16, f32), BM: tw.const(32, 64, 128) = 128, BN: tw.const(32, 64, 128) = 64):
    """Any shape, one element a lane."""
    s = tw.shared(T, (BM, BN), pad=4 // T.bytes)
    turned(X, Y, s, BM, BN)
