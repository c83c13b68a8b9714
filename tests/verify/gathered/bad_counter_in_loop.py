"""The place is a count that goes on too fast."""
import tilewright as tw
from tilewright import f32, i32

T, S, N = tw.sizes("T S N")


@tw.kernel(target="sm_80", computes="G[idx[t], n] += X[t, n]", threads=128)
def counter_in_loop(X: tw.Tensor(f32, T, N), idx: tw.Tensor(i32, T, range=S), G: tw.Tensor(f32, S, N, zeroed=True)):
    bn = tw.grid(tw.cdiv(N, 128))
    c = 0
    for t in tw.range(T):
        tw.atomic_add(G[idx[c], bn * 128 : bn * 128 + 128], tw.load(X[t, bn * 128 : bn * 128 + 128], fill=0.0))
        c = tw.min(c + 2, T - 1)
