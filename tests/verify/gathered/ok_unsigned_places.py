"""Places without a sign."""
import tilewright as tw
from tilewright import u32

T, S = tw.sizes("T S")


@tw.kernel(target="sm_80", computes="H[X[t]] += 1", threads=128)
def unsigned_places(X: tw.Tensor(u32, T), H: tw.Tensor(u32, S, zeroed=True)):
    i = tw.grid(tw.cdiv(T, 1024)) * 1024
    x = tw.load(X[i : i + 1024], fill=0)
    tw.atomic_add(H[x], tw.where(tw.arange(1024) + i < T, tw.full(u32, (1024,), 1), tw.full(u32, (1024,), 0)))
