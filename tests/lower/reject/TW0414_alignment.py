# expect: TW0414 at 11:5
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80")
def kernel(A: tw.Tensor(bf16, M, K)):
    s = tw.shared(bf16, (64, 64))
    tw.cp_async(s, A[0, 0])
