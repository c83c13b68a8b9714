# expect: TW0207 at 11:24
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a")
def kernel(Y: tw.Tensor(bf16, N)):
    x = tw.zeros(f32, (128,))
    tw.store(Y[0:128], x)
