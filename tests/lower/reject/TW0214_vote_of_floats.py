# expect: TW0214 at 11:8
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a")
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    x = tw.load(X[0:128])
    if tw.any(x):
        x = x + 1.0
