"""The column counts by whole groups, also in the last one."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    pid = tw.grid(tw.cdiv(M, 32) * tw.cdiv(N, 32))
    rows = tw.cdiv(M, 32)
    columns = tw.cdiv(N, 32)
    in_group = 8 * columns
    first = pid // in_group * 8
    height = tw.min(rows - first, 8)
    bm = first + pid % in_group % height
    bn = pid % in_group // 8
    tw.store(Y[bm * 32, bn * 32], tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0))
