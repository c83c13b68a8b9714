"""The row of the first source."""
import tilewright as tw
from tilewright import i32

T, S, B = tw.sizes("T S B")


@tw.kernel(target="sm_80", computes="C[a[t], b[t]] += 1", threads=128)
def confusion_first(a: tw.Tensor(i32, T, range=S), b: tw.Tensor(i32, T), C: tw.Tensor(i32, S, B, zeroed=True)):
    t = tw.grid(T)
    tw.atomic_add(C[a[0], tw.load(b[t : t + 1], fill=-1)], tw.full(i32, (1,), 1))
