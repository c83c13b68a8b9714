"""BUG: the same, slot 0 and 32"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]; Z[k] = 2 * W[k]", threads=128)
def transpose(X: tw.Tensor(f32, M, N), W: tw.Tensor(f32, K), Y: tw.Tensor(f32, N, M), Z: tw.Tensor(f32, K)):
    tw.assume(N % 32 == 0 or K > 100)
    tw.assume(K <= 1024)
    tw.assume(M <= 32)
    tw.grid(1)
    s = tw.shared(f32, (3, 32, 32), pad=1)
    for c in tw.range(tw.cdiv(N, 32)):
        tw.store(s[c % 3], tw.load(X[0:32, c * 32 : c * 32 + 32], fill=0.0))
        tw.sync()
        tw.store(Y[c * 32 : c * 32 + 32, 0:32], tw.load(s[c % 3].T))
    tw.store(s[2], tw.load(X[0:32, 0:32], fill=0.0))
    tw.sync()
    z = tw.load(s[2].T)
    tw.store(Z[0:1024], tw.load(W[0:1024], fill=0.0) * 2.0 + tw.sum(z) * 0.0)
