"""The ends of a layer of experts: the choice of two experts a token with their weights, and the sum of what they gave. Between them stand gathered_swiglu_sm90.py and grouped_gemm_sm90.py."""
import tilewright as tw
from tilewright import bf16, f32, i32

T, E, P, N, TOP = tw.sizes("T E P N TOP")


@tw.kernel(
    target="sm_90a",
    name="moe_gate",
    computes="""
        let a[t] = argmax(e, f32(X[t, e]))
        let c[t] = argmax(e, where(e == a[t], -1.0e30, f32(X[t, e])))
        expert[t, k in 0:1] = a[t]
        expert[t, k in 1:2] = c[t]
        weight[t, k in 0:1] = 1 / (1 + exp(max(e, where(e == a[t], -1.0e30, f32(X[t, e]))) - max(e, f32(X[t, e]))))
        weight[t, k in 1:2] = 1 - 1 / (1 + exp(max(e, where(e == a[t], -1.0e30, f32(X[t, e]))) - max(e, f32(X[t, e]))))
    """,
    threads=128,
)
def moe_gate(X: tw.Tensor(bf16, T, E), expert: tw.Tensor(i32, T, 2), weight: tw.Tensor(f32, T, 2), BE: tw.each(64, 256)):
    """The two experts with the largest scores of each token, and the softmax of these two scores."""
    tw.assume(2 <= E and E <= BE)
    t = tw.grid(tw.cdiv(T, 4)) * 4
    x = tw.load(X[t : t + 4, 0:BE], fill=float("-inf")).to(f32)
    a = tw.argmax(x, axis=1, limit=E)
    rest = tw.where(tw.coord(x, 1) == a[:, None], -1.0e30, x)
    share = 1.0 / (1.0 + tw.exp(tw.max(tw.where(tw.coord(x, 1) < E, rest, float("-inf")), axis=1) - tw.max(x, axis=1)))
    tw.store(expert[t : t + 4, 0], a)
    tw.store(expert[t : t + 4, 1], tw.argmax(rest, axis=1, limit=E))
    tw.store(weight[t : t + 4, 0], share)
    tw.store(weight[t : t + 4, 1], 1.0 - share)


@tw.kernel(
    target="sm_90a",
    name="moe_combine",
    computes="O[t, n] = bf16(sum(k in 0:TOP, weight[t, k] * f32(Y[place[t, k], n])))",
    threads=128,
)
def moe_combine(
    Y: tw.Tensor(bf16, P, N),
    place: tw.Tensor(i32, T, TOP, range=P),  # the rows of Y of each token
    weight: tw.Tensor(f32, T, TOP),
    O: tw.Tensor(bf16, T, N),
    BN: tw.const(512, 1024) = 1024,
):
    """Each token's rows times their weights, always in the same order."""
    tw.assume(N % 8 == 0)
    b, t = tw.grid(tw.cdiv(N, BN), T)
    total = tw.zeros(f32, (BN,))
    for k in tw.range(TOP, unroll=2):
        total = total + tw.load(Y[place[t, k], b * BN : b * BN + BN], fill=0.0).to(f32) * tw.load(weight[t, k])
    tw.store(O[t, b * BN : b * BN + BN], total.to(bf16))
