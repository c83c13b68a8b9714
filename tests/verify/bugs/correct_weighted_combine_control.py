# expect: proved
"""The rows of a token's experts, weighted and added: a gather per expert."""
import tilewright as tw
from tilewright import f32, i32

T, P, N = tw.sizes("T P N")


@tw.kernel(target="sm_80", computes="Y[t, n] = sum(j in 0:4, weight[t, j] * X[slot[t, j], n])", threads=128)
def combine(X: tw.Tensor(f32, P, N), slot: tw.Tensor(i32, T, 4, range=P), weight: tw.Tensor(f32, T, 4), Y: tw.Tensor(f32, T, N)):
    bn, bt = tw.grid(tw.cdiv(N, 32), tw.cdiv(T, 16))
    acc = tw.zeros(f32, (16, 32))
    for j in tw.unroll(4):
        row = tw.load(slot[bt * 16 : bt * 16 + 16, j], fill=0)
        w = tw.load(weight[bt * 16 : bt * 16 + 16, j], fill=0.0)
        acc += w[:, None] * tw.load(X[row, bn * 32 : bn * 32 + 32], fill=0.0)
    tw.store(Y[bt * 16, bn * 32], acc)
