import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[n] = X[n]", threads=128, cluster=(2, 1, 1))
def kern(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    """No cluster where there is no element."""
    b = tw.grid(2 * tw.cdiv(N, 128))
    tw.store(Y[b * 64 : b * 64 + 64], tw.load(X[b * 64 : b * 64 + 64], fill=0.0))
