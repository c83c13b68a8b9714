# expect: proved
"""A persistent loop over tiles in mirrored order: a control."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] * 2", threads=128)
def scale(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    columns = tw.cdiv(N, 64)
    for t in tw.persistent(tw.cdiv(M, 8) * tw.cdiv(N, 64)):
        bm = t // columns
        bn = columns - 1 - t % columns
        tw.store(Y[bm * 8, bn * 64], 2.0 * tw.load(X[bm * 8 : bm * 8 + 8, bn * 64 : bn * 64 + 64], fill=0.0))
