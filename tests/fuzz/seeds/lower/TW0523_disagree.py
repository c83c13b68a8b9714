# expect: TW0523 at 8:40, TW0523 at 8:43
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="C[m, n] = A[m, n] + B[m, n]")
def kernel(A: tw.Tensor(f32, M, N), B: tw.Tensor(f32, N, M), C: tw.Tensor(f32, M, N)):
    pass
