# expect: TW1001
# hint: line 16: `a - b` instead of `b - a`
# rebuilds: operands of a non-commutative operation exchanged
"""B - A where A - B is asked for."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="C[m, n] = A[m, n] - B[m, n]", threads=128)
def subtract(A: tw.Tensor(f32, M, N), B: tw.Tensor(f32, M, N), C: tw.Tensor(f32, M, N)):
    bn, m = tw.grid(tw.cdiv(N, 128), M)
    a = tw.load(A[m, bn * 128 : bn * 128 + 128], fill=0.0)
    b = tw.load(B[m, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.store(C[m, bn * 128 : bn * 128 + 128], b - a)  # here
