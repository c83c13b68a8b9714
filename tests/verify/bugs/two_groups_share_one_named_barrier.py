# expect: TW2001 TW2002 TW2007
# hint: line 19: the 2 instances of `mover` share named barrier 1 (line 19): give each its own number, tw.named_barrier(1 + w, 128)
# rebuilds: named barrier id shared by two warpgroups
"""Two warpgroups each mean a barrier of their own, and both take number 1."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[n, m] = X[m, n]", threads=256)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    bn, bm = tw.grid(tw.cdiv(N, 32), tw.cdiv(M, 64))
    s = tw.shared(f32, (2, 32, 32), pad=1)
    with tw.warpgroups(0, 1, name="mover") as w:
        done = tw.named_barrier(1, 128)
        row = bm * 64 + w * 32
        tw.store(s[w], tw.load(X[row : row + 32, bn * 32 : bn * 32 + 32], fill=0.0))  # here
        done.sync()  # here
        tw.store(Y[bn * 32, row], tw.load(s[w].T))  # here
