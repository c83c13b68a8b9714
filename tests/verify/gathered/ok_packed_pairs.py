"""Elements that fulfil a condition."""
import tilewright as tw
from tilewright import f32, i32

T, B = tw.sizes("T B")


@tw.kernel(target="sm_80", computes="H[b] = sum(t, where(X[t] == b and W[t] > 0.0, 1, 0))", threads=128)
def packed_pairs(X: tw.Tensor(i32, T), W: tw.Tensor(f32, T), H: tw.Tensor(i32, B, zeroed=True)):
    i = tw.grid(tw.cdiv(T, 1024)) * 1024
    x = tw.load(X[i : i + 1024], fill=-1)
    tw.atomic_add(H[x], tw.where(tw.load(W[i : i + 1024], fill=0.0) > 0.0, 1, 0))
