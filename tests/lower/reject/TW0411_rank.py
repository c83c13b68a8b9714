# expect: TW0411 at 11:31
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a", cluster=(2, 1, 1))
def kernel(X: tw.Tensor(f32, 128)):
    s = tw.shared(f32, (128,))
    tw.store(X[0], tw.load(s, rank=2))
