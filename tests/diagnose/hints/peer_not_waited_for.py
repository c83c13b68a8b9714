# expect: TW2001 TW2005
# hint: add tw.cluster_sync()
"""No cluster barrier between a write and the read of it by the other block."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="S[m] = sum(n, X[m, n])", cluster=(2, 1, 1), threads=128)
def row_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    rank, m = tw.grid(2, M)
    part = tw.shared(f32, (1,))
    chunk = tw.cdiv(N, 2)
    first = rank * chunk
    end = tw.min(N, first + chunk)
    acc = tw.zeros(f32, (128,))
    for c in tw.range(tw.cdiv(end - first, 128)):
        acc = acc + tw.load(X[m, first + c * 128 : first + c * 128 + 128], fill=0.0, limit=(end,))
    tw.store(part[0], tw.sum(acc, axis=0))  # here
    total = tw.load(part[0], rank=0) + tw.load(part[0], rank=1)  # here
    tw.cluster_sync()
    if rank == 0:
        tw.store(S[m], total)
