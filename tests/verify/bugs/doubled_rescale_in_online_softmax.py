# expect: TW1001
# hint: line 20: `total * exp(top - new_top)` instead of `total * exp(top - new_top) * exp(top - new_top)`
# rebuilds: online softmax: correction factor applied twice
"""The running sum is rescaled twice."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = softmax(n, X[m, n])", threads=128)
def softmax(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    m = tw.grid(M)
    chunks = tw.cdiv(N, 128)
    top = tw.full(f32, (), float("-inf"))
    total = tw.zeros(f32, ())
    for c in tw.range(chunks):
        x = tw.load(X[m, c * 128 : c * 128 + 128], fill=float("-inf"))
        new_top = tw.maximum(top, tw.max(x, axis=0))
        total = total * tw.exp(top - new_top) * tw.exp(top - new_top) + tw.sum(tw.exp(x - new_top), axis=0)
        top = new_top
    for c in tw.range(chunks):
        x = tw.load(X[m, c * 128 : c * 128 + 128], fill=float("-inf"))
        tw.store(Y[m, c * 128 : c * 128 + 128], tw.exp(x - top) / total)  # here
