# expect: proved
"""Each block writes its maximum into every block of the cluster, at a place that its index names: a control."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] - max(k, X[m, k])", cluster=(2, 1, 1), threads=128)
def shifted(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 1024)
    rank, m = tw.grid(2, M)
    tops = tw.shared(f32, (2,))
    x = tw.load(X[m, rank * 512 : rank * 512 + 512], fill=float("-inf"))
    top = tw.max(x, axis=0)
    tw.store(tops[rank], top, rank=0)
    tw.store(tops[rank], top, rank=1)
    tw.cluster_sync()
    both = tw.maximum(tw.load(tops[0]), tw.load(tops[1]))
    tw.store(Y[m, rank * 512 : rank * 512 + 512], x - both)
