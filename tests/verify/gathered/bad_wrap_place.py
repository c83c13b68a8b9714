"""A place of 64 bits loses its upper half."""
import tilewright as tw
from tilewright import i32, i64

T, S = tw.sizes("T S")


@tw.kernel(target="sm_80", computes="H[X[t]] += 1", threads=128)
def wrap_place(X: tw.Tensor(i64, T), H: tw.Tensor(i32, S, zeroed=True)):
    i = tw.grid(tw.cdiv(T, 1024)) * 1024
    x = tw.load(X[i : i + 1024], fill=-1).to(i32)
    tw.atomic_add(H[x], tw.full(i32, (1024,), 1))
