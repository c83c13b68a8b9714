"""whole numbers below 16777216.5 in f32"""
import tilewright as tw
from tilewright import bf16, e4m3, e5m2, f16, f32, f64, i8, i16, i32, i64, tf32, u8, u32

B, H, M, N, K, D, T, G, E, P = tw.sizes("B H M N K D T G E P")


@tw.kernel(target="sm_80", computes="Y[n] = where(X[n] < 16777216.5, 1, 0)", threads=128)
def k(X: tw.Tensor(i32, N, range=16777217), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0).to(f32)
    tw.store(Y[i], tw.where(x < 16777216.5, tw.full(i32, (128,), 1), 0))
