"""BUG: s holds the last tile, claimed is tile 38: all instances have N = 4992"""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n in 0:128] = X[4864 + 127 - n]", threads=128)
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, 128)):
    tw.assume(N >= 4992)
    tw.assume(N % 128 == 0)
    s = tw.shared(f32, (128,))
    for c in tw.range(tw.cdiv(N, 128)):
        tw.sync()
        tw.store(s, tw.load(X[c * 128 : c * 128 + 128]))
    tw.sync()
    for i in tw.range(128):
        tw.store(Y[i], tw.load(s[127 - i]))
