# Groups of eight rows of tiles, written out; the last group is as high as what is left.
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    for t in tw.persistent(tw.cdiv(M, 32) * tw.cdiv(N, 32)):
        R = tw.cdiv(M, 32)
        Cc = tw.cdiv(N, 32)
        g = t // (8 * Cc)
        rows = tw.min(R - g * 8, 8)
        r = g * 8 + t % (8 * Cc) % rows
        c = t % (8 * Cc) // rows
        tw.store(Y[r * 32, c * 32], tw.load(X[r * 32 : r * 32 + 32, c * 32 : c * 32 + 32], fill=0.0))
