"""Row softmax: rows that fit a tile in one pass, longer rows online in chunks."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")
LOG2E = 1.4426950408889634


@tw.kernel(target="sm_80", name="softmax", computes="Y[m, n] = softmax(n, X[m, n])", threads=128)
def softmax_short(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N), BM: tw.const(1, 2, 4) = 4, BN: tw.const(256, 512, 1024, 2048) = 1024):
    """The whole row in registers: read once, written once."""
    tw.assume(N <= BN)
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=float("-inf"))
    top = tw.max(x, axis=1)
    e = tw.exp2((x - top[:, None]) * LOG2E)
    total = tw.sum(e, axis=1)
    tw.store(Y[m : m + BM, 0:BN], e / total[:, None])


@tw.kernel(target="sm_80", name="softmax", computes="Y[m, n] = softmax(n, X[m, n])", threads=256)
def softmax_online(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N), BN: tw.const(1024, 2048) = 1024):
    """One row per block: a running maximum and a running sum relative to it, then a second pass that writes."""
    m = tw.grid(M)
    chunks = tw.cdiv(N, BN)
    top = tw.full(f32, (), float("-inf"))
    total = tw.zeros(f32, ())
    for c in tw.range(chunks):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=float("-inf"))
        new_top = tw.maximum(top, tw.max(x, axis=0))
        total = total * tw.exp2((top - new_top) * LOG2E) + tw.sum(tw.exp2((x - new_top) * LOG2E), axis=0)
        top = new_top
    for c in tw.range(chunks):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=float("-inf"))
        tw.store(Y[m, c * BN : c * BN + BN], tw.exp2((x - top) * LOG2E) / total)
