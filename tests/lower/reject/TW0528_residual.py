# expect: TW0528 at 7:50
import tilewright as tw
from tilewright import bf16, f32

N = tw.sizes("N")

@tw.kernel(target="sm_80", computes="L[n] = bf16(X[n] - f32(bf16(X[n])))")
def s(X: tw.Tensor(f32, N), L: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(L[i], tw.zeros(bf16, (128,)))
