import tilewright as tw
from tilewright import bf16, f16, f32, tf32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="L[n] = f16(X[n] - f32(f16(X[n])))", threads=128)
def split(X: tw.Tensor(f32, N), L: tw.Tensor(f16, N)):
    tw.assume(N % 512 == 0)
    i = tw.grid(N // 512) * 512
    x = tw.load(X[N - 512 - i : N - i])
    tw.store(L[i : i + 512], (x - x.to(f16).to(f32)).to(f16))
