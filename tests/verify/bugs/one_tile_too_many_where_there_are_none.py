# expect: TW2005
# hint: line 14: the loop ends at `((M + 7) // 8) * ((N + 63) // 64)` instead of `(((M + 7) // 8) * ((N + 63) // 64)) + 1`
# rebuilds: persistent loop over an empty problem divides by its number of tiles
"""One tile more than there are: masked for every size but 0, where the number of columns is divided by."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] * 2", threads=128)
def scale(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    columns = tw.cdiv(N, 64)
    for t in tw.persistent(tw.cdiv(M, 8) * tw.cdiv(N, 64) + 1):
        bm = t // columns  # here
        bn = t % columns
        tw.store(Y[bm * 8, bn * 64], 2.0 * tw.load(X[bm * 8 : bm * 8 + 8, bn * 64 : bn * 64 + 64], fill=0.0))
