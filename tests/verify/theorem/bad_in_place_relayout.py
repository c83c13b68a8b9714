import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="P[m, n] = P[m, n] * 2", threads=128)
def bad_in_place_relayout(P: tw.Tensor(f32, M, N)):
    m = tw.grid(tw.cdiv(M, 32)) * 32
    x = tw.load(P[m : m + 32, 0:128], fill=0.0, layout=tw.rows())
    tw.assume(N <= 128)
    tw.store(P[m : m + 32, 0:128], tw.relayout(x * 2.0, tw.blocked(vector=1)))
