"""BUG: the double buffer stands still at row 1000"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_90a", computes="S[m] = sum(n, X[m, n])", cluster=(2, 1, 1), threads=128)
def row_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    rank = tw.grid(2)
    part = tw.shared(f32, (2,))
    tw.assume(N <= 2048)
    off = 0
    for m in tw.range(M):
        if m == 1000:
            off = 1
        x = tw.load(X[m, rank * 1024 : rank * 1024 + 1024], fill=0.0)
        tw.store(part[(m + off) % 2], tw.sum(x, axis=0))
        tw.cluster_sync()
        total = tw.load(part[(m + off) % 2], rank=0) + tw.load(part[(m + off) % 2], rank=1)
        if rank == 0:
            tw.store(S[m], total)
