# expect: proved
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[n] = sum(m, X[m, n])")
def column_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, N, zeroed=True)):
    for t in tw.persistent(tw.cdiv(N, 64)):
        for c in tw.range(tw.cdiv(M, 64)):
            x = tw.load(X[c * 64 : c * 64 + 64, t * 64 : t * 64 + 64], fill=0.0)
            tw.atomic_add(S[t * 64], tw.sum(x, axis=0))
