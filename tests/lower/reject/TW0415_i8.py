# expect: TW0415 at 10:5
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a")
def kernel(Y: tw.Tensor(i8, N)):
    tw.atomic_add(Y[0:128], tw.zeros(i8, (128,)))
