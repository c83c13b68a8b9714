import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=128)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    tw.grid(1)
    s = tw.shared(f32, (2, 32, 32), pad=1)
    for m in tw.range(tw.cdiv(M, 32)):
        for c in tw.range(tw.cdiv(N, 32)):
            slot = c % 2
            if c == 0:
                tw.sync()
            tw.store(s[slot], tw.load(X[m * 32 : m * 32 + 32, c * 32 : c * 32 + 32], fill=0.0))
            tw.sync()
            tw.store(Y[c * 32 : c * 32 + 32, m * 32 : m * 32 + 32], tw.load(s[slot].T))
