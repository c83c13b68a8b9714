"""The weight where its square is said."""
import tilewright as tw
from tilewright import i32

T, S = tw.sizes("T S")


@tw.kernel(target="sm_80", computes="H[X[t]] += Wt[t] * Wt[t]", threads=128)
def integers_wrap_said(X: tw.Tensor(i32, T), Wt: tw.Tensor(i32, T), H: tw.Tensor(i32, S, zeroed=True)):
    i = tw.grid(tw.cdiv(T, 1024)) * 1024
    x = tw.load(X[i : i + 1024], fill=-1)
    wt = tw.load(Wt[i : i + 1024], fill=0)
    tw.atomic_add(H[x], wt)
