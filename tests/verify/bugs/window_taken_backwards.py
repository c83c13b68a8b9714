# expect: TW1001
# hint: line 17: the index: `j` instead of `3 - j`
# rebuilds: convolution where correlation was meant: the taps are applied in reverse
"""The taps meet the window's rows from its other end."""
import tilewright as tw
from tilewright import bf16, f32

B, S, D = tw.sizes("B S D")


@tw.kernel(target="sm_80", threads=128, computes="Y[b, s, d] = bf16(sum(j in 0:4, f32(W[j, d]) * f32(X[b, s + j, d])))")
def convolve(X: tw.Tensor(bf16, B, S + 3, D), W: tw.Tensor(bf16, 4, D), Y: tw.Tensor(bf16, B, S, D), BS: tw.const(32) = 32, BD: tw.const(64) = 64):
    s, d, b = tw.grid(tw.cdiv(S, BS), tw.cdiv(D, BD), B)
    acc = tw.zeros(f32, (BS, BD))
    for j in tw.range(4, unroll=True):
        x = tw.load(X[b, s * BS + j : s * BS + j + BS, d * BD : d * BD + BD], fill=0.0).to(f32)
        w = tw.load(W[3 - j, d * BD : d * BD + BD], fill=0.0).to(f32)
        acc = acc + x * w[None, :]
    tw.store(Y[b, s * BS : s * BS + BS, d * BD : d * BD + BD], acc.to(bf16))  # here
