"""parity of a sum in f32"""
import tilewright as tw
from tilewright import bf16, e4m3, e5m2, f16, f32, f64, i8, i16, i32, i64, tf32, u8, u32

B, H, M, N, K, D, T, G, E, P = tw.sizes("B H M N K D T G E P")


@tw.kernel(target="sm_80", computes="Y[m] = sum(n, X[m, n]) % 2", threads=128)
def k(X: tw.Tensor(i32, M, N, range=16777216), Y: tw.Tensor(i32, M)):
    tw.assume(N <= 64)
    m = tw.grid(M)
    x = tw.load(X[m, 0:64], fill=0).to(f32)
    tw.store(Y[m], tw.sum(x, axis=0).to(i32) % 2)
