"""a key packed in f32"""
import tilewright as tw
from tilewright import bf16, e4m3, e5m2, f16, f32, f64, i8, i16, i32, i64, tf32, u8, u32

B, H, M, N, K, D, T, G, E, P = tw.sizes("B H M N K D T G E P")


@tw.kernel(target="sm_80", computes="Y[n] = X[n] * 4096 + Z[n]", threads=128)
def k(X: tw.Tensor(i32, N, range=100000), Z: tw.Tensor(i32, N, range=4096), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0).to(f32)
    z = tw.load(Z[i : i + 128], fill=0).to(f32)
    tw.store(Y[i], (x * 4096.0 + z).to(i32))
