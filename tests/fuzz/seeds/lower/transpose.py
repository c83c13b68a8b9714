"""Matrix transpose through a padded tile in shared memory, so that both sides of memory see whole rows."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=256)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M), BM: tw.const(32, 64) = 32, BN: tw.const(32, 64) = 32):
    """One element of padding a row keeps column reads free of bank conflicts."""
    bn, bm = tw.grid(tw.cdiv(N, BN), tw.cdiv(M, BM))
    s = tw.shared(f32, (BM, BN), pad=1)
    tw.store(s, tw.load(X[bm * BM : bm * BM + BM, bn * BN : bn * BN + BN], fill=0.0))
    tw.sync()
    tw.store(Y[bn * BN, bm * BM], tw.load(s.T))
