"""Grouped GEMM with gathered rows (mixture of experts): each tile belongs to one expert, its rows come from anywhere."""
import tilewright as tw
from tilewright import bf16, f32, i32

T, P, E, N, K, TILES = tw.sizes("T P E N K TILES")
BM = tw.parameters("BM")

@tw.kernel(
    target="sm_80",
    name="grouped_gemm",
    computes="Y[p, n] = bf16(sum(k, f32(X[rows[p], k]) * f32(W[expert[p], n, k])))",
    threads=128,
)
def grouped_gemm(
    X: tw.Tensor(bf16, T, K),
    W: tw.Tensor(bf16, E, N, K),
    rows: tw.Tensor(i32, P, range=T),  # the token of each position
    expert: tw.Tensor(i32, P, range=E),  # the expert of each position; positions are sorted by it
    tile_first: tw.Tensor(i32, TILES),  # first position of each tile
    tile_end: tw.Tensor(i32, TILES, tile_ends=("tile_first", BM, "expert")),  # end of the expert's positions, for the ragged last tile
    Y: tw.Tensor(bf16, P, N),
    BM: tw.const(64, 128) = 64,
    BN: tw.const(64, 128) = 128,
    BK: tw.const(32, 64) = 32,
    STAGES: tw.const(2, 3, 4) = 3,
):
    """Rows past the expert's end gather row 0 and are never stored: `limit` ends the tile where the next expert begins."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    t, bn = tw.grid(TILES, tw.cdiv(N, BN))
    first = tile_first[t]
    end = tile_end[t]
    e = expert[first]
    sA = tw.shared(bf16, (STAGES, BM, BK), swizzle=64)
    sB = tw.shared(bf16, (STAGES, BN, BK), swizzle=64)
    token = tw.load(rows[first : first + BM], fill=0, limit=(end,))
    acc = tw.zeros(f32, (BM, BN), layout=tw.mma_c(warps=(2, 2)))
    steps = tw.cdiv(K, BK)
    for s in tw.unroll(STAGES - 1):
        tw.cp_async(sA[s], X[token, s * BK : s * BK + BK])
        tw.cp_async(sB[s], W[e, bn * BN, s * BK])
        tw.cp_async_commit()
    for kt in tw.range(steps):
        tw.cp_async_wait(STAGES - 2)
        tw.sync()
        nxt = kt + STAGES - 1
        if nxt < steps:
            tw.cp_async(sA[nxt % STAGES], X[token, nxt * BK : nxt * BK + BK])
            tw.cp_async(sB[nxt % STAGES], W[e, bn * BN, nxt * BK])
        tw.cp_async_commit()
        slot = kt % STAGES
        for kk in tw.unroll(BK // 16):
            a = tw.load(sA[slot, :, kk * 16 : kk * 16 + 16], layout=tw.mma_a())
            b = tw.load(sB[slot, :, kk * 16 : kk * 16 + 16], layout=tw.mma_b())
            tw.mma(acc, a, b)
    tw.store(Y[first, bn * BN], acc.to(bf16), limit=(end, None))
