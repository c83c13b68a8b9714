"""Slot 0 is taken for none."""
import tilewright as tw
from tilewright import f32, i32

T, S, N = tw.sizes("T S N")


@tw.kernel(target="sm_80", computes="cache[slot[t], n] = X[t, n]", threads=128)
def scatter_slot_zero_skipped(X: tw.Tensor(f32, T, N), slot: tw.Tensor(i32, T, range=(-1, S), distinct=True), cache: tw.Tensor(f32, S, N)):
    t = tw.grid(T)
    place = slot[t]
    if place > 0:
        for c in tw.range(tw.cdiv(N, 512)):
            tw.store(cache[place, c * 512 : c * 512 + 512], tw.load(X[t, c * 512 : c * 512 + 512], fill=0.0))
