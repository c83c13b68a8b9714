"""cumsum(1/x) - 1/x where x may be 0"""
import tilewright as tw
from tilewright import bf16, e4m3, e5m2, f16, f32, f64, i8, i16, i32, i64, tf32, u8, u32

B, H, M, N, K, D, T, G, E, P = tw.sizes("B H M N K D T G E P")


@tw.kernel(target="sm_80", computes="Y[m, n] = sum(k in 0:n, 1 / X[m, k])", threads=128)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 64)
    m = tw.grid(M)
    x = tw.load(X[m, 0:64], fill=1.0)
    r = 1.0 / x
    tw.store(Y[m, 0:64], tw.cumsum(r, axis=0) - r)
