"""Rows to places that an index tensor names: new keys and values into a cache (paged or contiguous: its pages one after the other are rows), and a permutation of rows."""
import tilewright as tw
from tilewright import bf16, f16, f32, i32

T, S, N = tw.sizes("T S N")
DT = tw.parameters("DT")


@tw.kernel(target="sm_90a", name="cache_update", computes="KC[slot[t], n] = K[t, n]; VC[slot[t], n] = V[t, n]", threads=128)
def cache_update(
    K: tw.Tensor(DT, T, N),  # a row a token: all heads
    V: tw.Tensor(DT, T, N),
    slot: tw.Tensor(i32, T, range=(-1, S), distinct=True),  # page * rows of a page + row in the page; -1: the token is not kept
    KC: tw.Tensor(DT, S, N),
    VC: tw.Tensor(DT, S, N),
    DT: tw.each(bf16, f16, f32),
    BN: tw.const(1024, 2048) = 2048,
):
    """A block a token. Rows of the caches that no token names keep what they hold."""
    tw.assume(N % (16 // DT.bytes) == 0)
    c, t = tw.grid(tw.cdiv(N, BN), T)
    place = slot[t]
    if place >= 0:
        n = c * BN
        k = tw.load(K[t, n : n + BN], fill=0.0)
        v = tw.load(V[t, n : n + BN], fill=0.0)
        tw.store(KC[place, n : n + BN], k)
        tw.store(VC[place, n : n + BN], v)


@tw.kernel(target="sm_90a", name="permute_rows", computes="Y[to[t], n] = X[t, n]", threads=128)
def permute_rows(
    X: tw.Tensor(DT, T, N),
    to: tw.Tensor(i32, T, range=T, distinct=True),  # where each row goes: all rows of Y are written
    Y: tw.Tensor(DT, T, N),
    DT: tw.each(bf16, f16, f32),
    BM: tw.const(8, 16) = 8,
    BN: tw.const(256, 512) = 512,
):
    """Whole rows of a tile to their places."""
    tw.assume(N % (16 // DT.bytes) == 0)
    c, b = tw.grid(tw.cdiv(N, BN), tw.cdiv(T, BM))
    place = tw.load(to[b * BM : b * BM + BM], fill=-1)  # -1: nowhere
    x = tw.load(X[b * BM : b * BM + BM, c * BN : c * BN + BN], fill=0.0)
    tw.store(Y[place, c * BN : c * BN + BN], x)
