# expect: TW1001
# says: is not what `computes` says: missing is X[
# hint: -
"""The two numbers of a message change places: what a team hands over is no fill."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="S[m] = sum(n, X[m, n]); Q[m] = sum(n, X[m, n] * X[m, n])", threads=128)
def sums(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M), Q: tw.Tensor(f32, M)):
    tw.assume(N <= 1024)
    rank = tw.grid(2)
    row = tw.team(2, messages=M, depth=2)
    for m in tw.range(M):
        x = tw.load(X[m, rank * 512 : rank * 512 + 512], fill=0.0)
        row.send(m, x * x, x)  # here
        s, q = row.receive(m)
        if rank == 0:
            tw.store(S[m], s)
            tw.store(Q[m], q)
