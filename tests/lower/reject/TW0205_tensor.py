# expect: TW0205 at 10:17
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a")
def kernel(A: tw.Tensor(f32, M, N)):
    x = tw.load(A[0:8])
