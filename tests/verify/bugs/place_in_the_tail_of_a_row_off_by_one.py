# expect: TW1001
# hint: line 27: `end` instead of `end + 1`
# rebuilds: an index into one part is counted from the wrong start
"""The first place of a row's maximum, from the whole vectors of the row and its two ends; places behind the vectors are counted from one too far."""
import tilewright as tw
from tilewright import bf16, f32, i64

M, N = tw.sizes("M N")


@tw.inline
def place_in(x, best, n, end):
    return tw.min(tw.where((x == best) & (tw.coord(x, 0) < end - n), tw.coord(x, 0).to(f32) + n, float("inf")), axis=0)


@tw.kernel(target="sm_80", computes="S[m] = argmax(n, f32(X[m, n]))", threads=64)
def argmax(X: tw.Tensor(bf16, M, N), S: tw.Tensor(i64, M)):
    tw.assume(N >= 8)
    tw.assume(N <= 1024)
    m = tw.grid(M)
    first = (8 - m % 8 * (N % 8) % 8) % 8
    end = first + (N - first) // 8 * 8
    x = tw.load(X[m, first : first + 1024], fill=float("-inf"), limit=(end,))
    head = tw.load(X[m, 0:8], fill=float("-inf"), limit=(first,))
    tail = tw.load(X[m, end : end + 8], fill=float("-inf"))
    best = tw.maximum(tw.max(x, axis=0), tw.maximum(tw.max(head, axis=0), tw.max(tail, axis=0)))
    edges = tw.minimum(place_in(head, best, 0, first), place_in(tail, best, end + 1, N + 1))
    tw.store(S[m], tw.minimum(place_in(x, best, first, end), edges).to(i64))  # here
