import tilewright as tw
from tilewright import f32

M, K = tw.sizes("M K")


@tw.kernel(target="sm_90a", computes="Y[m] = sum(k, X[m, k])", threads=128)
def kern(X: tw.Tensor(f32, M, K), Y: tw.Tensor(f32, M, zeroed=True)):
    """Where K is 0 the sum is."""
    b, c = tw.grid(tw.cdiv(M, 32), tw.cdiv(K, 32))
    tw.atomic_add(Y[b * 32 : b * 32 + 32], tw.sum(tw.load(X[b * 32 : b * 32 + 32, c * 32 : c * 32 + 32], fill=0.0), axis=1))
