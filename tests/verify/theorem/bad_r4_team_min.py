"""BUG: sends at most 1000 of M messages"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]", threads=128)
def team(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 8 * 512)
    rank = tw.grid(8)
    n = rank * 512
    row = tw.team(1, messages=M, depth=3)
    for m in tw.range(tw.min(M, 1000)):
        row.send(m, tw.load(X[m, n : n + 512], fill=0.0))
        total = row.receive(m)
    for m in tw.range(M):
        tw.store(Y[m, n : n + 512], tw.load(X[m, n : n + 512], fill=0.0))
