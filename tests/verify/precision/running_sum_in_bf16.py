# expect: not proved: 
"""The running sum of an online softmax is kept in bf16."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[m, n] = softmax(n, X[m, n])", threads=256)
def running_sum_in_bf16(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    m = tw.grid(M)
    top = tw.full(f32, (), float("-inf"))
    total = tw.zeros(bf16, ())
    for c in tw.range(tw.cdiv(N, 1024)):
        x = tw.load(X[m, c * 1024 : c * 1024 + 1024], fill=float("-inf"))
        new_top = tw.maximum(top, tw.max(x, axis=0))
        total = (total.to(f32) * tw.exp(top - new_top) + tw.sum(tw.exp(x - new_top), axis=0)).to(bf16)
        top = new_top
    for c in tw.range(tw.cdiv(N, 1024)):
        x = tw.load(X[m, c * 1024 : c * 1024 + 1024], fill=float("-inf"))
        tw.store(Y[m, c * 1024 : c * 1024 + 1024], tw.exp(x - top) / total.to(f32))
