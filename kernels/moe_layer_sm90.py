"""The whole layer of experts as one program: the choice of experts, the order of rows by expert, the gathered SwiGLU product, the second product, the weighted sum.

The order is that of a stable sort by expert. It is made by counting: how often each block of rows has each expert, sums of that over the blocks before and over the experts before, and the
rank of a row among those of its block. The tiles of rows of the products come from the counts too.
"""
import tilewright as tw
from grouped_parts import BATCHES, K, N, rows_of_experts
from swiglu_parts import gathered_rows
from tilewright import bf16, f32, i32

T, P, E, F, B = tw.sizes("T P E F B")  # F: E + 1
TOP, HIGH, STEP, TOGETHER = tw.parameters("TOP HIGH STEP TOGETHER")
MOST = 1 << 20  # rows: counts of them and sums of counts fit 32 bits


# The rank of each expert among those of its token, the first of equal ones first; the TOP first ones and the softmax of their scores.
RANKS = """
    let x[t, e] = f32(scores[t, e])
    let rank[t, e] = sum(f in 0:E, where(f < e, where(x[t, f] >= x[t, e], 1, 0), where(x[t, f] > x[t, e], 1, 0)))
    let share[t, e] = exp(x[t, e] - max(f in 0:E, x[t, f]))
"""
EXPERT = "expert[t, k in 0:TOP] = minimum(sum(e in 0:E, where(rank[t, e] == k, e, 0)), E - 1)\n"
WEIGHT = "weight[t, k in 0:TOP] = sum(e in 0:E, where(rank[t, e] == k, share[t, e], 0)) / sum(e in 0:E, where(rank[t, e] < TOP, share[t, e], 0))\n"


@tw.kernel(target="sm_90a", computes=RANKS + EXPERT + WEIGHT, threads=128, dependent_launch=True)
def moe_gate(
    scores: tw.Tensor(bf16, T, E),
    expert: tw.Tensor(i32, T, TOP),
    weight: tw.Tensor(f32, T, TOP),
    BE: tw.each(8, 32, 64, 128, 256),
    TOP: tw.const(1, 2, 3, 4, 5, 6, 7, 8) = 2,
):
    """The TOP experts with the largest scores of each token, and their weights. All experts of 1024 / BE tokens in a block."""
    tw.assume(TOP <= E)
    tw.assume(E <= BE)
    BT = 1024 // BE
    t = tw.grid(tw.cdiv(T, BT)) * BT
    x = tw.load(scores[t : t + BT, 0:BE], fill=float("-inf")).to(f32)
    rank = tw.zeros(i32, (BT, BE))
    for f in tw.range(E, unroll=4):
        y = tw.load(scores[t : t + BT, f], fill=0.0).to(f32)
        rank = rank + tw.where(tw.coord(x, 1) > f, tw.where(y[:, None] >= x, 1, 0), tw.where(y[:, None] > x, 1, 0))
    share = tw.exp(x - tw.max(x, axis=1)[:, None])
    inside = tw.coord(x, 1) < E
    total = tw.sum(tw.where(inside & (rank < TOP), share, 0.0), axis=1)
    for k in tw.unroll(TOP):
        here = inside & (rank == k)
        tw.store(expert[t : t + BT, k], tw.minimum(tw.sum(tw.where(here, tw.coord(x, 1), 0), axis=1), E - 1))
        tw.store(weight[t : t + BT, k], tw.sum(tw.where(here, share, 0.0), axis=1) / total)


@tw.kernel(target="sm_90a", computes="counts[b, e] = sum(i in b * 256 : minimum(b * 256 + 256, P), where(expert[i] == e, 1, 0))", threads=256, dependent_launch=True)
def expert_counts(expert: tw.Tensor(i32, P), counts: tw.Tensor(i32, (P + 255) // 256, E)):
    """How often each block of 256 rows has each expert."""
    tw.assume(1 <= P and P <= MOST)
    b, c = tw.grid(tw.cdiv(P, 256), tw.cdiv(E, 256))
    total = tw.zeros(i32, (32, 256))
    for j in tw.range(8):
        g = tw.load(expert[b * 256 + j * 32 : b * 256 + j * 32 + 32], fill=-1)
        total = total + tw.where(g[:, None] == tw.coord(total, 1) + c * 256, 1, 0)
    tw.store(counts[b, c * 256 : c * 256 + 256], tw.sum(total, axis=0))


@tw.kernel(target="sm_90a", computes="before[b, e] = sum(a in 0:b, counts[a, e]); total[e] = sum(b, counts[b, e])", threads=256, dependent_launch=True)
def counts_before(counts: tw.Tensor(i32, B, E), before: tw.Tensor(i32, B, E), total: tw.Tensor(i32, E)):
    """The rows of each expert in the blocks before each block, and in all of them."""
    e = tw.grid(tw.cdiv(E, 16)) * 16
    so_far = tw.zeros(i32, (16,))
    for j in tw.range(tw.cdiv(B, 128)):
        x = tw.load(counts[j * 128 : j * 128 + 128, e : e + 16], fill=0)
        tw.store(before[j * 128 : j * 128 + 128, e : e + 16], tw.cumsum(x, axis=0) - x + so_far[None, :])
        so_far = so_far + tw.sum(x, axis=0)
    tw.store(total[e : e + 16], so_far)


@tw.inline
def tiles_of(rows, HIGH):
    return (rows + (HIGH - 1)) // HIGH


@tw.kernel(
    target="sm_90a",
    computes="""
        offsets[e in 0:E+1] = sum(f in 0:e, total[f])
        first_tile[e in 0:E+1] = sum(f in 0:e, (total[f] + (HIGH - 1)) // HIGH)
        units[e] = sum(j in 0:HIGH // STEP, where(i32(i32((total[e] + (HIGH - 1)) // HIGH) * (STEP * j)) < total[e], 1, 0))
    """,
    threads=256,
    dependent_launch=True,
)
def expert_offsets(
    total: tw.Tensor(i32, E, range=MOST + 1),
    offsets: tw.Tensor(i32, E + 1),
    first_tile: tw.Tensor(i32, E + 1),
    units: tw.Tensor(i32, E),
    HIGH: tw.const(64, 128, 256) = 256,
    STEP: tw.const(16, 32, 64) = 32,
):
    """The first row and the first tile of each expert, and how high its tiles are in steps: the least height with which they take all of its rows."""
    tw.assume(E <= 256)
    x = tw.load(total[0:512], fill=0)
    tw.store(offsets[0:512], tw.cumsum(x, axis=0) - x)
    n = tiles_of(x, HIGH)
    tw.store(first_tile[0:512], tw.cumsum(n, axis=0) - n)
    u = tw.zeros(i32, (512,))
    for j in tw.unroll(HIGH // STEP):
        u = u + tw.where(n * (STEP * j) < x, 1, 0)
    tw.store(units[0:512], u)


@tw.kernel(
    target="sm_90a",
    computes="place[p] = offsets[expert[p]] + before[p // 256, expert[p]] + sum(i in p // 256 * 256 : p, where(expert[i] == expert[p], 1, 0))",
    threads=256,
    dependent_launch=True,
)
def row_places(
    expert: tw.Tensor(i32, P, range=E),
    offsets: tw.Tensor(i32, E + 1),
    before: tw.Tensor(i32, (P + 255) // 256, E),
    place: tw.Tensor(i32, P),
):
    """Where each row goes: after the rows of the experts before its own, and after those of its own that stand before it."""
    b = tw.grid(tw.cdiv(P, 256)) * 256
    g = tw.load(expert[b : b + 256], fill=-1)
    same = tw.zeros(i32, (256, 32))
    for j in tw.range(8):
        h = tw.load(expert[b + j * 32 : b + j * 32 + 32], fill=-2)
        same = same + tw.where((g[:, None] == h[None, :]) & (tw.coord(same, 1) + j * 32 < tw.coord(same, 0)), 1, 0)
    tw.store(place[b : b + 256], tw.load(offsets[g], fill=0) + tw.load(before[b // 256, g], fill=0) + tw.sum(same, axis=1))


@tw.kernel(target="sm_90a", computes="rows[place[p]] = p // TOP; group[place[p]] = expert[p]", threads=256, dependent_launch=True)
def rows_in_order(
    place: tw.Tensor(i32, P, range=P, distinct=True), expert: tw.Tensor(i32, P), rows: tw.Tensor(i32, P), group: tw.Tensor(i32, P), TOP: tw.const(1, 2, 3, 4, 5, 6, 7, 8) = 2
):
    """The token and the expert of each place."""
    b = tw.grid(tw.cdiv(P, 256)) * 256
    to = tw.load(place[b : b + 256], fill=-1)
    tw.store(rows[to], (tw.arange(256) + b) // TOP)
    tw.store(group[to], tw.load(expert[b : b + 256], fill=0))


@tw.kernel(target="sm_90a", computes="owner[i] = sum(e in 1:F-1, where(first_tile[e] <= i, 1, 0))", threads=128, dependent_launch=True)
def tile_owners(first_tile: tw.Tensor(i32, F), owner: tw.Tensor(i32, BATCHES * TOGETHER), TOGETHER: tw.const(1, 2, 4, 5, 7, 8, 16) = 8):
    """The expert of each tile: the last one whose first tile is not after it."""
    b = tw.grid(tw.cdiv(BATCHES * TOGETHER, 32)) * 32
    total = tw.zeros(i32, (32, 32))
    for j in tw.range(tw.cdiv(F - 1, 32)):
        f = tw.load(first_tile[j * 32 + 1 : j * 32 + 33], fill=0)
        total = total + tw.where((f[None, :] <= tw.coord(total, 0) + b) & (tw.coord(total, 1) + j * 32 + 1 < F - 1), 1, 0)
    tw.store(owner[b : b + 32], tw.sum(total, axis=1))


@tw.kernel(
    target="sm_90a",
    computes="""
        let first[i] = i32(offsets[owner[i]] + (i - first_tile[owner[i]]) * (units[owner[i]] * STEP))
        tile_first[i] = where(i < first_tile[E], minimum(first[i], offsets[owner[i] + 1]), 0)
        tile_end[i] = where(i < first_tile[E], minimum(i32(first[i] + units[owner[i]] * STEP), offsets[owner[i] + 1]), 0)
    """,
    threads=128,
    dependent_launch=True,
)
def tile_rows(
    offsets: tw.Tensor(i32, E + 1, range=MOST + 1),
    first_tile: tw.Tensor(i32, E + 1, range=(1 << 28) // HIGH + 1),
    units: tw.Tensor(i32, E, range=HIGH // STEP + 1),
    owner: tw.Tensor(i32, BATCHES * TOGETHER, range=E),
    tile_first: tw.Tensor(i32, BATCHES * TOGETHER),
    tile_end: tw.Tensor(i32, BATCHES * TOGETHER),
    HIGH: tw.const(64, 128, 256) = 256,
    STEP: tw.const(16, 32, 64) = 32,
    TOGETHER: tw.const(1, 2, 4, 5, 7, 8, 16) = 8,
):
    """The rows of each tile. Spare tiles are empty."""
    tw.assume(BATCHES * TOGETHER <= MOST)
    i = tw.grid(tw.cdiv(BATCHES * TOGETHER, 128)) * 128
    e = tw.load(owner[i : i + 128], fill=0)
    high = tw.load(units[e], fill=0) * STEP
    first = tw.load(offsets[e], fill=0) + (tw.arange(128) + i - tw.load(first_tile[e], fill=0)) * high
    end = tw.load(offsets[e + 1], fill=0)
    used = tw.arange(128) + i < first_tile[E]
    tw.store(tile_first[i : i + 128], tw.where(used, tw.minimum(first, end), 0))
    tw.store(tile_end[i : i + 128], tw.where(used, tw.minimum(first + high, end), 0))


@tw.kernel(
    target="sm_90a",
    computes="""
        let g[p, n] = sum(k, f32(X[rows[p], k]) * f32(W[group[p], 0, n, k]))
        let u[p, n] = sum(k, f32(X[rows[p], k]) * f32(W[group[p], 1, n, k]))
        H[p, n] = bf16(g[p, n] / (1 + exp(-g[p, n])) * u[p, n])
    """,
    dependent_launch=True,
)
def expert_hidden(
    X: tw.Tensor(bf16, T, K),
    W: tw.Tensor(bf16, E, 2, N, K),  # gate, then up
    rows: tw.Tensor(i32, P, range=T),
    group: tw.Tensor(i32, P, range=E),
    tile_first: tw.Tensor(i32, BATCHES * TOGETHER),
    tile_end: tw.Tensor(i32, BATCHES * TOGETHER, tile_ends=("tile_first", HIGH, "group")),
    H: tw.Tensor(bf16, P, N),
    HIGH: tw.const(64, 128, 256) = 256,
    STEP: tw.const(16, 32, 64) = 32,
    STAGES: tw.const(2, 3, 4, 5, 6, 7, 8) = 4,
    TOGETHER: tw.const(1, 2, 4, 5, 7, 8, 16) = 8,
    LAG: tw.const(0, 1, 2, 3, 4) = 2,
):
    """The first two products and SwiGLU."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    gathered_rows(X, W, rows, group, tile_first, tile_end, H, HIGH, STEP, STAGES, TOGETHER, LAG)


@tw.signature(name="expert_outputs", target="sm_90a", computes="Y[p, n] = bf16(sum(k, f32(X[p, k]) * f32(W[group[p], n, k])))", dependent_launch=True)
def outputs(
    X: tw.Tensor(bf16, P, K),
    W: tw.Tensor(bf16, E, N, K),
    group: tw.Tensor(i32, P, range=E),
    tile_first: tw.Tensor(i32, BATCHES * TOGETHER),
    tile_end: tw.Tensor(i32, BATCHES * TOGETHER, tile_ends=("tile_first", HIGH, "group")),
    Y: tw.Tensor(bf16, P, N),
    HIGH: tw.const(64, 128, 256) = 256,
    STEP: tw.const(16, 32, 64) = 32,
    STAGES: tw.const(2, 3, 4, 5, 6, 7, 8) = 4,
    TOGETHER: tw.const(1, 2, 4, 5, 7, 8, 16) = 8,
):
    """The second product."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)


@tw.kernel(outputs)
def expert_outputs(X, W, group, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER):
    """A tile is stored behind the next one's first k blocks."""
    tw.assume(K > HIGH)
    rows_of_experts(X, W, group, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER, True)


@tw.kernel(outputs)
def expert_outputs_at_once(X, W, group, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER):
    """For any K."""
    rows_of_experts(X, W, group, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER, False)


@tw.kernel(target="sm_90a", computes="O[t, n] = bf16(sum(k in 0:TOP, weight[t, k] * f32(Y[place[t * TOP + k], n])))", threads=128, dependent_launch=True)
def weighted_sum(
    Y: tw.Tensor(bf16, T * TOP, N),
    place: tw.Tensor(i32, T * TOP, range=T * TOP),
    weight: tw.Tensor(f32, T, TOP),
    O: tw.Tensor(bf16, T, N),
    TOP: tw.const(1, 2, 3, 4, 5, 6, 7, 8) = 2,
    BN: tw.const(512, 1024) = 1024,
):
    """Each token's rows times their weights, always in the same order."""
    tw.assume(N % 8 == 0)
    b, t = tw.grid(tw.cdiv(N, BN), T)
    total = tw.zeros(f32, (BN,))
    for k in tw.unroll(TOP):
        total = total + tw.load(Y[place[t * TOP + k], b * BN : b * BN + BN], fill=0.0).to(f32) * tw.load(weight[t, k])
    tw.store(O[t, b * BN : b * BN + BN], total.to(bf16))


MLP = """
    let g[t, k, n] = sum(j, f32(X[t, j]) * f32(W[expert[t, k], 0, n, j]))
    let u[t, k, n] = sum(j, f32(X[t, j]) * f32(W[expert[t, k], 1, n, j]))
    let h[t, k, n] = bf16(g[t, k, n] / (1 + exp(-g[t, k, n])) * u[t, k, n])
    let y[t, k, c] = bf16(sum(n in 0:N, f32(h[t, k, n]) * f32(V[expert[t, k], c, n])))
    O[t, c] = bf16(sum(k in 0:TOP, weight[t, k] * f32(y[t, k, c])))
"""


@tw.program(computes=RANKS + "let " + EXPERT + "let " + WEIGHT + MLP)
def moe_layer(
    X: tw.Tensor(bf16, T, K),
    scores: tw.Tensor(bf16, T, E),
    W: tw.Tensor(bf16, E, 2, N, K),  # gate, then up
    V: tw.Tensor(bf16, E, K, N),
    O: tw.Tensor(bf16, T, K),
    TOP: tw.const(1, 2, 3, 4, 5, 6, 7, 8) = 2,
    HIGH: tw.const(64, 128, 256) = 256,
    TOGETHER: tw.const(1, 2, 4, 5, 7, 8, 16) = 8,
):
    expert = tw.buffer(i32, T, TOP)
    expert_of = tw.view(expert, T * TOP)
    weight = tw.buffer(f32, T, TOP)
    counts = tw.buffer(i32, (T * TOP + 255) // 256, E)
    before = tw.buffer(i32, (T * TOP + 255) // 256, E)
    total = tw.buffer(i32, E)
    offsets = tw.buffer(i32, E + 1)
    first_tile = tw.buffer(i32, E + 1)
    units = tw.buffer(i32, E)
    place = tw.buffer(i32, T * TOP)
    rows = tw.buffer(i32, T * TOP)
    group = tw.buffer(i32, T * TOP)
    owner = tw.buffer(i32, (T * TOP // HIGH + E + TOGETHER - 1) // TOGETHER * TOGETHER)
    tile_first = tw.buffer(i32, (T * TOP // HIGH + E + TOGETHER - 1) // TOGETHER * TOGETHER)
    tile_end = tw.buffer(i32, (T * TOP // HIGH + E + TOGETHER - 1) // TOGETHER * TOGETHER)
    hidden = tw.buffer(bf16, T * TOP, N)
    Y = tw.buffer(bf16, T * TOP, K)
    moe_gate(scores, expert, weight)
    expert_counts(expert_of, counts)
    counts_before(counts, before, total)
    expert_offsets(total, offsets, first_tile, units)
    row_places(expert_of, offsets, before, place)
    rows_in_order(place, expert_of, rows, group)
    tile_owners(first_tile, owner)
    tile_rows(offsets, first_tile, units, owner, tile_first, tile_end)
    expert_hidden(X, W, rows, group, tile_first, tile_end, hidden)
    expert_outputs(hidden, V, group, tile_first, tile_end, Y)
    weighted_sum(Y, place, weight, O)
