import tilewright as tw
from tilewright import f32

M, K = tw.sizes("M K")


@tw.kernel(target="sm_90a", computes="Y[m] = sum(k, A[m, k])", threads=128)
def kern(A: tw.Tensor(f32, M, K), Y: tw.Tensor(f32, M)):
    """Every k is taken in once for each row."""
    b = tw.grid(tw.cdiv(M, 32)) * 32
    acc = tw.zeros(f32, (32, 64))
    for c in tw.range(tw.cdiv(K, 64)):
        x = tw.load(A[b : b + 32, c * 64 : c * 64 + 64], fill=0.0)
        acc = acc + 0.0
        acc = acc + x
    total = tw.sum(acc, axis=1)
    h = tw.sum(total, axis=0)
    tw.expect(tw.covers(h.k, 0, K))
    tw.store(Y[b : b + 32], total)
