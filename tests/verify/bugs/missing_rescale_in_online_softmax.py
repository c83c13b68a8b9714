# expect: TW1001
# hint: parts that are relative to different maxima are added: each must be multiplied once by exp(old maximum - new maximum) when the maximum changes
# rebuilds: online softmax: running sum not rescaled at a new maximum
"""The running sum stays relative to the old maximum."""
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
        total = total + tw.sum(tw.exp(x - new_top), axis=0)
        top = new_top
    for c in tw.range(chunks):
        x = tw.load(X[m, c * 128 : c * 128 + 128], fill=float("-inf"))
        tw.store(Y[m, c * 128 : c * 128 + 128], tw.exp(x - top) / total)  # here
