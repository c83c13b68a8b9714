# expect: not proved: 
"""Two products of a matrix unit whose sum is a thousandth of the first, with the second rounded once more."""
import tilewright as tw
from tilewright import bf16, f16, f32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[m, n] = 0.001 * sum(k, f32(bf16(A[m, k])) * f32(B[n, k]))", threads=128)
def product_less_most_of_a_rounded_one(A: tw.Tensor(f32, 64, 32), B: tw.Tensor(bf16, 64, 32), Y: tw.Tensor(f32, 64, 64)):
    g = tw.grid(1)
    high = tw.shared(bf16, (64, 32))
    again = tw.shared(bf16, (64, 32))
    t = tw.shared(bf16, (64, 32))
    h = tw.load(A[0:64, 0:32]).to(bf16)
    tw.store(high, h)
    tw.store(again, (h.to(f32) * -0.999).to(bf16))
    tw.store(t, tw.load(B[0:64, 0:32]))
    tw.sync()
    acc = tw.zeros(f32, (64, 64), layout=tw.mma_c(warps=(2, 2)))
    for kk in tw.unroll(2):
        b = tw.load(t[:, kk * 16 : kk * 16 + 16], layout=tw.mma_b())
        tw.mma(acc, tw.load(high[:, kk * 16 : kk * 16 + 16], layout=tw.mma_a()), b)
        tw.mma(acc, tw.load(again[:, kk * 16 : kk * 16 + 16], layout=tw.mma_a()), b)
    tw.store(Y[0, 0], acc)
