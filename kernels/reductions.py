"""Sums over the rows and over the columns of a matrix."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = sum(n, X[m, n])", threads=128)
def row_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M), BM: tw.const(4, 8) = 4, BN: tw.const(256, 512, 1024) = 512):
    """A warp per row: each lane adds up its part of every chunk, the lanes meet once at the end."""
    m = tw.grid(tw.cdiv(M, BM)) * BM
    partial = tw.zeros(f32, (BM, BN), layout=tw.warp_rows())
    for c in tw.range(tw.cdiv(N, BN)):
        partial += tw.load(X[m : m + BM, c * BN : c * BN + BN], fill=0.0)
    tw.store(S[m : m + BM], tw.sum(partial, axis=1))


@tw.kernel(target="sm_80", computes="S[n] = sum(m, X[m, n])", threads=256)
def column_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, N), BM: tw.const(8, 16, 32) = 32, BN: tw.const(32, 64, 128) = 32):
    """Neighbouring threads take neighbouring columns; the rows of a block meet through shared memory."""
    n = tw.grid(tw.cdiv(N, BN)) * BN
    partial = tw.zeros(f32, (BM, BN))
    for c in tw.range(tw.cdiv(M, BM)):
        partial += tw.load(X[c * BM : c * BM + BM, n : n + BN], fill=0.0)
    tw.store(S[n : n + BN], tw.sum(partial, axis=0))


@tw.kernel(target="sm_80", name="column_sum_atomic", computes="S[n] = sum(m, X[m, n])", threads=256)
def column_sum_atomic(
    X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, N, zeroed=True), BM: tw.const(64, 128, 256) = 64, BN: tw.const(32, 64) = 32
):
    """Blocks along the rows as well: each adds its part to the zeroed result."""
    bn, bm = tw.grid(tw.cdiv(N, BN), tw.cdiv(M, BM))
    x = tw.load(X[bm * BM : bm * BM + BM, bn * BN : bn * BN + BN], fill=0.0)
    tw.atomic_add(S[bn * BN : bn * BN + BN], tw.sum(x, axis=0))
