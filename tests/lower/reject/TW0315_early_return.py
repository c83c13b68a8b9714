# expect: TW0315 at 11:9
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.inline
def f(n):
    if n > 3:
        return n
    return 3


@tw.kernel(target="sm_90a")
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    x = f(N)
