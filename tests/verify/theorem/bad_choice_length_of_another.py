"""The length of the first sequence for all."""
import tilewright as tw
from tilewright import f32, i32

B, N = tw.sizes("B N")


@tw.kernel(target="sm_80", computes="Y[b, t] = where(t < len[b], X[b, t], 0)", threads=128)
def choice_length_of_another(X: tw.Tensor(f32, B, N), len: tw.Tensor(i32, B), Y: tw.Tensor(f32, B, N)):
    i, b = tw.grid(tw.cdiv(N, 128), B)
    x = tw.load(X[b, i * 128 : i * 128 + 128], fill=0.0)
    tw.store(Y[b, i * 128 : i * 128 + 128], tw.where(tw.arange(128) + i * 128 < len[0], x, 0.0))
