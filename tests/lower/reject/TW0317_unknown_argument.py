# expect: TW0317 at 15:10
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80")
def copy(X: tw.Tensor(f32, N)):
    pass


@tw.program()
def program(X: tw.Tensor(f32, N)):
    copy(Z)
