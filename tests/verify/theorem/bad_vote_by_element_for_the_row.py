import tilewright as tw
from tilewright import f32

M = tw.sizes("M")


@tw.kernel(target="sm_80", computes="Z[m, n] = maximum(X[m, n], max(j in 0:64, Y[m, j]))", threads=128)
def bad_vote_by_element_for_the_row(X: tw.Tensor(f32, M, 64), Y: tw.Tensor(f32, M, 64), Z: tw.Tensor(f32, M, 64)):
    tw.assume(M % 4 == 0)
    m = tw.grid(M // 4) * 4
    top = tw.load(X[m : m + 4, 0:64], layout=tw.warp_rows(vector=2))
    y = tw.load(Y[m : m + 4, 0:64], layout=tw.warp_rows(vector=2))
    if tw.any(y >= top):
        top = tw.maximum(top, tw.max(y, axis=1)[:, None])
    tw.store(Z[m : m + 4, 0:64], top)
