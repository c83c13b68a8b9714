"""count of positives in f32, any N"""
import tilewright as tw
from tilewright import bf16, e4m3, e5m2, f16, f32, f64, i8, i16, i32, i64, tf32, u8, u32

B, H, M, N, K, D, T, G, E, P = tw.sizes("B H M N K D T G E P")


@tw.kernel(target="sm_80", computes="Y[m] = sum(n, where(X[m, n] > 0, 1, 0))", threads=128)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(i32, M)):
    m = tw.grid(M)
    a = tw.zeros(f32, ())
    for c in tw.range(tw.cdiv(N, 128)):
        x = tw.load(X[m, c * 128 : c * 128 + 128], fill=0.0)
        a = a + tw.sum(tw.where(x > 0.0, tw.full(f32, (128,), 1.0), 0.0), axis=0)
    tw.store(Y[m], a.to(i32))
