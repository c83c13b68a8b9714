"""sum(log x) - log x[0] for sum from 1"""
import tilewright as tw
from tilewright import bf16, e4m3, e5m2, f16, f32, f64, i8, i16, i32, i64, tf32, u8, u32

B, H, M, N, K, D, T, G, E, P = tw.sizes("B H M N K D T G E P")


@tw.kernel(target="sm_80", computes="Y[m] = sum(k in 1:N, log(X[m, k]))", threads=128)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    tw.assume(1 <= N and N <= 64)
    m = tw.grid(M)
    x = tw.load(X[m, 0:64], fill=1.0)
    tw.store(Y[m], tw.sum(tw.log(x), axis=0) - tw.log(tw.load(X[m, 0])))
