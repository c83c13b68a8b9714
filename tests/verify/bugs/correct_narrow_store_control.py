# expect: proved
"""A tile of 64 elements held twice by 128 threads is stored once: no race of a store with itself."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    bn, m = tw.grid(tw.cdiv(N, 64), M)
    s = tw.shared(f32, (64,))
    tw.store(s, tw.load(X[m, bn * 64 : bn * 64 + 64], fill=0.0))
    tw.sync()
    tw.store(Y[m, bn * 64 : bn * 64 + 64], tw.load(s))
