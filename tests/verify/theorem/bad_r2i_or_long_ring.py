"""BUG: the slot after the loop was read last where the count % 122 == 84"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]; Z[k] = 2 * W[k]", threads=32)
def transpose(X: tw.Tensor(f32, M, N), W: tw.Tensor(f32, K), Y: tw.Tensor(f32, N, M), Z: tw.Tensor(f32, K)):
    tw.assume(N % 16 == 0 or K > 1000)
    tw.assume(K <= 1024)
    tw.assume(M <= 16)
    tw.grid(1)
    s = tw.shared(f32, (122, 16, 16), pad=1)
    for c in tw.range(tw.cdiv(N, 16)):
        tw.store(s[c % 122], tw.load(X[0:16, c * 16 : c * 16 + 16], fill=0.0))
        tw.sync()
        tw.store(Y[c * 16 : c * 16 + 16, 0:16], tw.load(s[c % 122].T))
    tw.store(s[83], tw.load(X[0:16, 0:16], fill=0.0))
    tw.sync()
    z = tw.load(s[83].T)
    tw.store(Z[0:1024], tw.load(W[0:1024], fill=0.0) * 2.0 + tw.sum(z) * 0.0)
