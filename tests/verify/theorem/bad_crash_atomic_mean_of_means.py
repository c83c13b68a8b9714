import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, f64, i8, i16, i32, i64, tf32, u8, u32

M, N = tw.sizes("M N")

@tw.kernel(target="sm_80", computes="S[n] = mean(m, X[m, n])", threads=128)
def s(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, N, zeroed=True)):
    tw.assume(M >= 1)
    bn, bm = tw.grid(tw.cdiv(N, 128), tw.cdiv(M, 64))
    x = tw.load(X[bm * 64 : bm * 64 + 64, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.atomic_add(S[bn * 128], tw.sum(x, axis=0) / (tw.min(64, M - bm * 64) * tw.cdiv(M, 64)))
