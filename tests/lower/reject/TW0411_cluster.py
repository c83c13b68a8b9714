# expect: TW0411 at 8:37
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a", cluster=(16, 2, 1))
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    pass
