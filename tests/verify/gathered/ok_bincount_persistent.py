"""Blocks take turns."""
import tilewright as tw
from tilewright import i32

T, B = tw.sizes("T B")


@tw.kernel(target="sm_80", computes="H[X[t]] += 1", threads=128)
def bincount_persistent(X: tw.Tensor(i32, T), H: tw.Tensor(i32, B, zeroed=True)):
    for i in tw.persistent(tw.cdiv(T, 1024)):
        x = tw.load(X[i * 1024 : i * 1024 + 1024], fill=-1)
        tw.atomic_add(H[x], tw.full(i32, (1024,), 1))
