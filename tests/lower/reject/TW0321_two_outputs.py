# expect: TW0321 at 18:16
import tilewright as tw
from tilewright import bf16, f16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n]; Z[n] = -X[n]", threads=128)
def both(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N), Z: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], x)
    tw.store(Z[i : i + 128], -x)


@tw.program(computes="Y[n] = -X[n]")
def whole(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    both(X, Y, Y)
