"""A transpose through shared memory that forgets the barrier between writing and reading: `tilewright check` shows the race."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=128)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M), B: tw.const(32) = 32):
    """Reads a tile by rows, hands it over through shared memory, writes it by columns. tw.sync() is missing in the middle."""
    bm, bn = tw.grid(tw.cdiv(M, B), tw.cdiv(N, B))
    tile = tw.shared(f32, (B, B), pad=1)
    x = tw.load(X[bm * B : bm * B + B, bn * B : bn * B + B], fill=0.0)
    tw.store(tile, x)
    tw.store(Y[bn * B : bn * B + B, bm * B : bm * B + B], tw.load(tile.T))
