# expect: TW0322 at 16:5
import tilewright as tw
from tilewright import bf16, f16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", name="scaled", computes="Y[n] = 2.0 * X[n]", threads=128)
def even(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    tw.assume(N % 4 == 0)
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(X[i : i + 128], fill=0.0) * 2.0)


@tw.kernel(target="sm_80", name="scaled", computes="Y[n] = 3.0 * X[n]", threads=128)
def odd(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(X[i : i + 128], fill=0.0) * 3.0)
