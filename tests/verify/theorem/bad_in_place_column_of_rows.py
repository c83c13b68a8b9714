import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="P[m, n] = P[m, n] - P[m, 0]", threads=128)
def bad_in_place_column_of_rows(P: tw.Tensor(f32, M, N)):
    tw.assume(N >= 1)
    b, m = tw.grid(tw.cdiv(N, 128), M)
    x = tw.load(P[m, b * 128 : b * 128 + 128], fill=0.0)
    tw.store(P[m, b * 128 : b * 128 + 128], x - tw.load(P[m, 0]))
