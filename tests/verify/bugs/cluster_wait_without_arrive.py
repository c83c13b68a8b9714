# expect: TW2007
# hint: tw.cluster_arrive() and tw.cluster_wait() come in pairs, in this order, in every thread of every block; tw.cluster_sync() is both
# rebuilds: barrier.cluster.wait reached by threads that never arrived
"""The second meeting of the cluster is a wait alone."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="S[m] = sum(n, X[m, n])", cluster=(4, 1, 1), threads=128)
def row_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    rank, m = tw.grid(4, M)
    part = tw.shared(f32, (1,))
    chunk = tw.cdiv(N, 4)
    first = rank * chunk
    end = tw.min(N, first + chunk)
    acc = tw.zeros(f32, (128,))
    for c in tw.range(tw.cdiv(end - first, 128)):
        acc = acc + tw.load(X[m, first + c * 128 : first + c * 128 + 128], fill=0.0, limit=(end,))
    tw.store(part[0], tw.sum(acc, axis=0))
    tw.cluster_sync()
    total = tw.load(part[0], rank=0) + tw.load(part[0], rank=1) + tw.load(part[0], rank=2) + tw.load(part[0], rank=3)
    tw.cluster_wait()  # here
    if rank == 0:
        tw.store(S[m], total)
