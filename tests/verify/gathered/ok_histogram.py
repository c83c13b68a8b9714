"""How often each number occurs."""
import tilewright as tw
from tilewright import i32

T, B = tw.sizes("T B")


@tw.kernel(target="sm_80", computes="H[b] = sum(t, where(X[t] == b, 1, 0))", threads=128)
def histogram(X: tw.Tensor(i32, T), H: tw.Tensor(i32, B, zeroed=True)):
    i = tw.grid(tw.cdiv(T, 1024)) * 1024
    x = tw.load(X[i : i + 1024], fill=-1)
    tw.atomic_add(H[x], tw.full(i32, (1024,), 1))
