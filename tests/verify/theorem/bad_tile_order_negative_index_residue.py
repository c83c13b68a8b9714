"""BUG: reads Z before its start where N % 8 == 7"""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n]", threads=128)
def k(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    for t in tw.persistent(tw.cdiv(N, 128)):
        u = t - N % 8 // 7
        x = tw.load(X[t * 128 : t * 128 + 128], fill=0.0)
        z = tw.load(Z[u * 128 : u * 128 + 128], fill=0.0)
        tw.store(Y[t * 128], tw.where(tw.coord(x, 0) < 0, z, x))
