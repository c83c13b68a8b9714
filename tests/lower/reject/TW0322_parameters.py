# expect: TW0322 at 15:5
import tilewright as tw
from tilewright import bf16, f16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", name="scaled", computes="Y[n] = X[n]", threads=128)
def plain(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(X[i : i + 128], fill=0.0))


@tw.kernel(target="sm_80", name="scaled", computes="Y[n] = s * X[n]", threads=128)
def by_s(X: tw.Tensor(f32, N), s: tw.scalar(f32), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(X[i : i + 128], fill=0.0) * s)
