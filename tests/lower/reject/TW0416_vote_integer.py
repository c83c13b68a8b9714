# expect: TW0416 at 13:9
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a")
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    x = tw.load(X[0:128])
    n = 0
    if tw.any(x > 0.0):
        n = 1
    tw.store(Y[n : n + 128], x)
