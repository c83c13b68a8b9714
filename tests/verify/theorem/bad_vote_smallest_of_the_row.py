import tilewright as tw
from tilewright import f32

M = tw.sizes("M")


@tw.kernel(target="sm_80", computes="Z[m, n] = minimum(X[m, n], min(j in 0:64, Y[m, j]))", threads=128)
def bad_vote_smallest_of_the_row(X: tw.Tensor(f32, M, 64), Y: tw.Tensor(f32, M, 64), Z: tw.Tensor(f32, M, 64)):
    tw.assume(M % 4 == 0)
    m = tw.grid(M // 4) * 4
    low = tw.load(X[m : m + 4, 0:64], layout=tw.warp_rows(vector=2))
    y = tw.load(Y[m : m + 4, 0:64], layout=tw.warp_rows(vector=2))
    if tw.any(y <= low):
        low = tw.minimum(low, tw.min(y, axis=1)[:, None])
    tw.store(Z[m : m + 4, 0:64], low)
