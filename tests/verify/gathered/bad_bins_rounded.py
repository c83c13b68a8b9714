"""Bins of rounded numbers."""
import tilewright as tw
from tilewright import bf16, f32, i32

T, S = tw.sizes("T S")


@tw.kernel(target="sm_80", computes="H[b] = sum(t, where(i32(floor(X[t])) == b, 1, 0))", threads=128)
def bins_rounded(X: tw.Tensor(f32, T), H: tw.Tensor(i32, S, zeroed=True)):
    i = tw.grid(tw.cdiv(T, 1024)) * 1024
    x = tw.load(X[i : i + 1024], fill=-1.0)
    p = i32(tw.floor(x.to(bf16).to(f32)))
    tw.atomic_add(H[p], tw.full(i32, (1024,), 1))
