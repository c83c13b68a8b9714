# expect: TW0412 at 12:5
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80")
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    s = tw.shared(bf16, (64, 12))
    acc = tw.zeros(f32, (64, 64))
    tw.mma(acc, tw.load(s), tw.load(s))
