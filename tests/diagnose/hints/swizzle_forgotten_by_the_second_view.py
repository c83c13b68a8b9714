# expect: TW1001
# hint: `plain` with the swizzle of `s`
"""The bytes are read without the swizzle they were written with."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N)):
    tw.assume(N % 8 == 0)
    bm, bn = tw.grid(tw.cdiv(M, 64), tw.cdiv(N, 64))
    s = tw.shared(bf16, (64, 64), swizzle=128)
    plain = tw.overlay(s, bf16, (64, 64))  # here
    tw.store(s, tw.load(X[bm * 64 : bm * 64 + 64, bn * 64 : bn * 64 + 64], fill=0.0))
    tw.sync()
    tw.store(Y[bm * 64 : bm * 64 + 64, bn * 64 : bn * 64 + 64], tw.load(plain))
