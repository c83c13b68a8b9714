# expect: TW0527 at 8:42
import tilewright as tw
from tilewright import bf16, f16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="let X[n] = 2.0 * Z[n]; Y[n] = X[n]", threads=128)
def copy(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(X[i : i + 128], fill=0.0))
