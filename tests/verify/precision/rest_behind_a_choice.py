# expect: not proved: 
"""A rounded number is chosen from twice and taken away from itself: what rounding left is no part of Z."""
import tilewright as tw
from tilewright import bf16, f16, f32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[n] = f32(bf16(Z[n]))", threads=128)
def rest_behind_a_choice(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    h = x.to(bf16).to(f32)
    tw.store(Y[i : i + 128], z + 1000000.0 * (x - tw.where(x > 0.0, h, h)))
