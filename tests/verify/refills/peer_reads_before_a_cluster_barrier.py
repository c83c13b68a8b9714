"""What is read lies in the other block of the cluster."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] * 3.0", cluster=(2, 1, 1), threads=128)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 8 == 0)
    tw.assume(M % 64 == 0)
    rank, bm = tw.grid(2, M // 64)
    s = tw.shared(f32, (32, 32))
    full = tw.mbarrier(1)
    for c in tw.range(tw.cdiv(N, 32)):
        full[0].expect(32 * 32 * 4)
        tw.tma_load(s, X[bm * 64 + (1 - rank) * 32, c * 32], on=full[0])
        full[0].wait(c % 2)
        tw.cluster_sync()
        x = tw.load(s, rank=1 - rank)
        tw.cluster_sync()
        tw.store(Y[bm * 64 + rank * 32, c * 32], x * 3.0)
