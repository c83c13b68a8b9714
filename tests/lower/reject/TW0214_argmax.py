# expect: TW0214 at 10:30
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a")
def kernel(X: tw.Tensor(i32, 128), S: tw.Tensor(i32, 1)):
    tw.store(S[0], tw.argmax(tw.load(X[0:128]), axis=0))
