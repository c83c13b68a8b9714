"""Elements of one byte, and rounding to types that have no arithmetic of their own."""
import tilewright as tw
from tilewright import bf16, e4m3, e5m2, f16, f32, i8, i32, tf32, u8

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Q[m, n] = e4m3(X[m, n] * scale[m])", threads=128)
def quantize_e4m3(X: tw.Tensor(f32, M, N), scale: tw.Tensor(f32, M), Q: tw.Tensor(e4m3, M, N)):
    bn, m = tw.grid(tw.cdiv(N, 256), M)
    s = tw.load(scale[m])
    x = tw.load(X[m, bn * 256 : bn * 256 + 256], fill=0.0)
    tw.store(Q[m, bn * 256 : bn * 256 + 256], (x * s).to(e4m3))


@tw.kernel(target="sm_80", computes="Y[m, n] = bf16(f32(Q[m, n]) * scale[m])", threads=128)
def dequantize_e5m2(Q: tw.Tensor(e5m2, M, N), scale: tw.Tensor(f32, M), Y: tw.Tensor(bf16, M, N)):
    bn, m = tw.grid(tw.cdiv(N, 256), M)
    s = tw.load(scale[m])
    q = tw.load(Q[m, bn * 256 : bn * 256 + 256], fill=0.0)
    tw.store(Y[m, bn * 256 : bn * 256 + 256], (q.to(f32) * s).to(bf16))


@tw.kernel(target="sm_80", computes="Y[m, n] = f32(Q[m, n]) * scale[n]", threads=128)
def dequantize_i8(Q: tw.Tensor(i8, M, N), scale: tw.Tensor(f32, N), Y: tw.Tensor(f32, M, N)):
    bn, m = tw.grid(tw.cdiv(N, 256), M)
    s = tw.load(scale[bn * 256 : bn * 256 + 256], fill=0.0)
    q = tw.load(Q[m, bn * 256 : bn * 256 + 256], fill=0)
    tw.store(Y[m, bn * 256 : bn * 256 + 256], q.to(f32) * s)


@tw.kernel(target="sm_80", computes="Y[n] = u8(X[n])", threads=128)
def to_bytes(X: tw.Tensor(i32, N), Y: tw.Tensor(u8, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0)
    tw.store(Y[i : i + 512], x.to(u8))


@tw.kernel(target="sm_80", computes="Y[n] = f32(tf32(X[n]))", threads=128)
def round_to_tf32(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    tw.store(Y[i : i + 512], x.to(tf32).to(f32))


@tw.kernel(target="sm_80", computes="S[n] = sum(m, f16(X[m, n]))", threads=128)
def add_f16(X: tw.Tensor(f16, M, N), S: tw.Tensor(f16, N, zeroed=True)):
    bn, m = tw.grid(tw.cdiv(N, 256), M)
    x = tw.load(X[m, bn * 256 : bn * 256 + 256], fill=0.0)
    tw.atomic_add(S[bn * 256 : bn * 256 + 256], x)


@tw.kernel(target="sm_80", computes="S[n] = sum(m, bf16(X[m, n]))", threads=128)
def add_bf16(X: tw.Tensor(bf16, M, N), S: tw.Tensor(bf16, N, zeroed=True)):
    bn, m = tw.grid(tw.cdiv(N, 256), M)
    x = tw.load(X[m, bn * 256 : bn * 256 + 256], fill=0.0)
    tw.atomic_add(S[bn * 256 : bn * 256 + 256], x)
