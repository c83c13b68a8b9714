# expect: TW1001
# says: foreign is 1e-05 + 1 
# hint: -
"""The epsilon is added to the root's reciprocal: no fill has a part in it."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = rsqrt(sum(n, X[m, n] * X[m, n]) + 1e-5)", threads=128)
def scale(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    tw.assume(N <= 256)
    m = tw.grid(M)
    x = tw.load(X[m, 0:256], fill=0.0)
    tw.store(S[m], tw.rsqrt(tw.sum(x * x, axis=0)) + 1.0e-5)  # here
