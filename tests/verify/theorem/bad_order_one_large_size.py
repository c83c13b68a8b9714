import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]", threads=128)
def kern(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    """No grid that is small is admitted."""
    tw.assume(M >= 5000)
    for t in tw.persistent(tw.cdiv(M, 32) * tw.cdiv(N, 32)):
        rows = tw.cdiv(M, 32)
        cols = tw.cdiv(N, 32)
        r = t % rows
        c = t % cols
        tw.store(Y[r * 32 : r * 32 + 32, c * 32 : c * 32 + 32], tw.load(X[r * 32 : r * 32 + 32, c * 32 : c * 32 + 32], fill=0.0))
