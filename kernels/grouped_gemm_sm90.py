"""Grouped GEMM for Hopper (mixture of experts): rows sorted by expert, every expert with weights of its own, ragged and empty groups.

The rows are cut into tiles of at most HIGH rows of one expert by a table that comes with them (`tile_table` of bench/suite_inputs.py makes a good
one: nearly equal tiles of multiples of STEP rows). Weights are the M side of wgmma and rows its N side, so that a tile costs what its own
height costs, rounded up to STEP.
"""
import tilewright as tw
from grouped_parts import BATCHES, K, N, consume_tiles, place, produce_gathered, rows_of_experts
from tilewright import bf16, i32

T, P, E = tw.sizes("T P E")
TOGETHER, HIGH = tw.parameters("TOGETHER HIGH")


@tw.signature(name="grouped_gemm", target="sm_90a", computes="Y[p, n] = bf16(sum(k, f32(X[p, k]) * f32(W[expert[p], n, k])))")
def grouped(
    X: tw.Tensor(bf16, P, K),
    W: tw.Tensor(bf16, E, N, K),
    expert: tw.Tensor(i32, P, range=E),  # the expert of each row; rows are sorted by it
    tile_first: tw.Tensor(i32, BATCHES * TOGETHER),  # the first row of each tile
    tile_end: tw.Tensor(i32, BATCHES * TOGETHER, tile_ends=("tile_first", HIGH, "expert")),  # the row after its last one
    Y: tw.Tensor(bf16, P, N),
    HIGH: tw.const(64, 128, 256) = 256,  # most rows of a tile
    STEP: tw.const(16, 32, 64) = 32,
    STAGES: tw.const(2, 3, 4, 5, 6, 7, 8) = 4,
    TOGETHER: tw.const(1, 2, 4, 5, 7, 8, 16) = 8,
):
    """Each row with the weights of its expert."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)


@tw.kernel(grouped)
def grouped_gemm_deferred(X, W, expert, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER):
    """A tile is stored behind the next one's first k blocks, but for low ones, which wait for their weights all the same."""
    tw.assume(K > HIGH)
    rows_of_experts(X, W, expert, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER, True)


@tw.kernel(grouped)
def grouped_gemm(X, W, expert, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER):
    """A tile is stored before the next one begins, for any K."""
    rows_of_experts(X, W, expert, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER, False)


@tw.kernel(target="sm_90a", name="gathered_gemm", computes="Y[p, n] = bf16(sum(k, f32(X[rows[p], k]) * f32(W[expert[p], n, k])))")
def gathered_gemm(
    X: tw.Tensor(bf16, T, K),
    W: tw.Tensor(bf16, E, N, K),
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
    """grouped_gemm with the rows gathered on the way by cp.async: the tokens are never copied in global memory."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    sX = tw.shared(bf16, (STAGES, HIGH, 64), swizzle=128)
    sW = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sY = tw.shared(bf16, (2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2, producers=2)
    with tw.warpgroups(0, regs=88, name="producer"):
        for t in tw.persistent(BATCHES * TOGETHER * tw.cdiv(N, 128)):
            i, bn = place(t, tw.cdiv(N, 128), TOGETHER)
            first = tile_first[i]
            end = tile_end[i]
            if end > first:
                e = expert[first]
                if STEP == HIGH or end <= first + STEP:
                    produce_gathered(X, W, rows, sX, sW, ring, first, end, e, bn, STEP, STAGES, LAG)
                for h in tw.unroll(1, HIGH // STEP):
                    if end > first + h * STEP:
                        if h == HIGH // STEP - 1:
                            produce_gathered(X, W, rows, sX, sW, ring, first, end, e, bn, HIGH, STAGES, LAG)
                        elif end <= first + (h + 1) * STEP:
                            produce_gathered(X, W, rows, sX, sW, ring, first, end, e, bn, (h + 1) * STEP, STAGES, LAG)
    with tw.warpgroups(1, 2, regs=208, name="consumer") as w:
        consume_tiles(Y, tile_first, tile_end, sX, sW, sY, ring, w, HIGH, STEP, TOGETHER)
