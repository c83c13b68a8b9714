# expect: TW0108 at 9:12
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a")
def kernel(N: tw.Tensor(f32, M)):
    pass
