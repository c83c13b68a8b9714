"""Masks over products of coordinates: one uniform test for the chunks that lie inside."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = sum(n, X[m, n])", threads=64)
def vector_sums(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    m = tw.grid(M)
    s = tw.shared(f32, (256,))
    vectors = tw.overlay(s, f32, (64, 4))
    total = tw.zeros(f32, (64,))
    for c in tw.range(tw.cdiv(N, 256)):
        tw.sync()
        tw.store(s, tw.load(X[m, c * 256 : c * 256 + 256], fill=1.0, layout=tw.blocked(vector=1)))
        tw.sync()
        x = tw.load(vectors, layout=tw.rows())
        total = total + tw.sum(tw.where(tw.coord(x, 0) * 4 + tw.coord(x, 1) + c * 256 < N, x, 0.0), axis=1)
    tw.store(S[m], tw.sum(total, axis=0))
