"""It reads what it adds to."""
import tilewright as tw
from tilewright import i32

T, S = tw.sizes("T S")


@tw.kernel(target="sm_80", computes="H[X[t]] += 1", threads=128)
def reads_own(X: tw.Tensor(i32, T), H: tw.Tensor(i32, S, zeroed=True)):
    i = tw.grid(tw.cdiv(T, 1024)) * 1024
    x = tw.load(X[i : i + 1024], fill=-1)
    tw.atomic_add(H[x], tw.full(i32, (1024,), 1))
    h = tw.load(H[x], fill=0)
    tw.atomic_add(H[x], h - h)
