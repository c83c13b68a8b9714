"""The first half of an expert MLP in one kernel for Hopper: gathered rows, gate and up products, SwiGLU (swiglu_parts.py). Tiles of rows come from a table, as in grouped_gemm_sm90.py."""
import tilewright as tw
from swiglu_parts import BATCHES, K, N, gathered_rows
from tilewright import bf16, i32

T, P, E = tw.sizes("T P E")
TOGETHER, HIGH = tw.parameters("TOGETHER HIGH")


@tw.kernel(
    target="sm_90a",
    name="gathered_swiglu",
    computes="""
        let g[p, n] = sum(k, f32(X[rows[p], k]) * f32(W[expert[p], 0, n, k]))
        let u[p, n] = sum(k, f32(X[rows[p], k]) * f32(W[expert[p], 1, n, k]))
        Y[p, n] = bf16(g[p, n] / (1 + exp(-g[p, n])) * u[p, n])
    """,
)
def gathered_swiglu(
    X: tw.Tensor(bf16, T, K),
    W: tw.Tensor(bf16, E, 2, N, K),  # gate, then up
    rows: tw.Tensor(i32, P, range=T),  # the token of each row
    expert: tw.Tensor(i32, P, range=E),  # the expert of each row; rows are sorted by it
    tile_first: tw.Tensor(i32, BATCHES * TOGETHER),  # the first row of each tile
    tile_end: tw.Tensor(i32, BATCHES * TOGETHER, tile_ends=("tile_first", HIGH, "expert")),  # the row behind its last one
    Y: tw.Tensor(bf16, P, N),
    HIGH: tw.const(64, 128, 256) = 256,  # most rows of a tile
    STEP: tw.const(16, 32, 64) = 32,
    STAGES: tw.const(2, 3, 4, 5, 6, 7, 8) = 4,
    TOGETHER: tw.const(1, 2, 4, 5, 7, 8, 16) = 8,
    LAG: tw.const(0, 1, 2, 3, 4) = 2,
):
    """The gate and up products of each row's token with the weights of its expert, and SwiGLU of them."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    gathered_rows(X, W, rows, expert, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER, LAG)
