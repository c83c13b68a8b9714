import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, f64, i8, i16, i32, i64, tf32, u8, u32

M, N = tw.sizes("M N")

@tw.kernel(target="sm_80", computes="S[m] = sum(n, X[m, n])", threads=128)
def s(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    tw.assume(N <= 512)
    m = tw.grid(M)
    x = tw.load(X[m, 0:512], fill=0.0)
    tw.store(S[m], tw.sum(x / N, axis=0) * N)
