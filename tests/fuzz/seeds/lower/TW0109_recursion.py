# expect: TW0109 at 10:12
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.inline
def twice(x):
    return twice(x) + x


@tw.kernel(target="sm_90a")
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    x = twice(tw.load(X[0:128]))
