# expect: TW1001 TW1002
# says: takes a root, a logarithm or a power
# hint: -
"""The logarithm of a product is the sum of the factors' logarithms only where all are positive."""
import tilewright as tw
from tilewright import f32

M = tw.sizes("M")


@tw.kernel(target="sm_80", computes="S[m] = log(prod(n in 0:4, X[m, n]))", threads=128)
def logarithm(X: tw.Tensor(f32, M, 4), S: tw.Tensor(f32, M)):
    m = tw.grid(tw.cdiv(M, 32)) * 32
    x = tw.load(X[m : m + 32, 0:4], fill=1.0)
    tw.store(S[m : m + 32], tw.sum(tw.log(x), axis=1))  # here
