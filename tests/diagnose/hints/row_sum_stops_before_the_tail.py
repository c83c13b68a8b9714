# expect: TW1001
# hint: `(N + 255) // 256`
"""The last, partial chunk of a row is left out."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = sum(n, X[m, n])", threads=128)
def row_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    m = tw.grid(M)
    acc = tw.zeros(f32, (256,))
    for c in tw.range(N // 256):  # here
        acc = acc + tw.load(X[m, c * 256 : c * 256 + 256], fill=0.0)
    tw.store(S[m], tw.sum(acc, axis=0))
