"""GEMM with what follows it folded into the store: bias, activation, residual, scales, and a gated pair of products."""
import tilewright as tw
from gemm_parts import K, M, N, fill, finish, hand_over, multiply, operands, put
from tilewright import bf16, f32

ACT = tw.parameters("ACT")


@tw.inline
def gelu_tanh(x):
    half = 0.5 * x
    return half + half * tw.tanh(half * (1.5957691216057308 + 0.285419265090401 * (half * half)), approx=True)


@tw.inline
def silu(x):
    return x * tw.sigmoid(x, approx=True)


@tw.inline
def relu(x):
    return tw.maximum(x, 0.0)


@tw.inline
def same(x):
    return x


GELU = tw.record(name="gelu_tanh", short="gelu", of=gelu_tanh)
SILU = tw.record(name="silu", short="silu", of=silu)
RELU = tw.record(name="relu", short="relu", of=relu)


# What follows the product: tensors of the caller's in `given`, values that a tile needs, and a chunk of 64 columns made of them.

@tw.inline
def nothing(given, row, at, BN):
    return None


@tw.inline
def chunks(V, column):
    """The elements of V beside the four chunks of a tile."""
    parts = ()
    for j in tw.unroll(4):
        parts = parts + (tw.load(V[column + j * 64 : column + j * 64 + 64], fill=0.0),)
    return parts


@tw.inline
def biases(given, row, column, ring, sB, w):
    return chunks(given.bias, column)


@tw.inline
def with_biases(acc, e, j):
    return (acc[:, j * 64 : j * 64 + 64] + e[j].to(f32)[None, :]).to(bf16)


@tw.inline
def with_bias(acc, given, early, late, column, j):
    b = tw.load(given.bias[column : column + 64], fill=0.0).to(f32)
    return given.of(acc[:, j * 64 : j * 64 + 64] + b[None, :])


@tw.inline
def scales(given, row, column, ring, sB, w):
    r = tw.load(given.rows[row : row + 64], fill=0.0)
    return tw.record(rows=r, columns=chunks(given.columns, column))


@tw.inline
def with_scales(acc, e, j):
    return (acc[:, j * 64 : j * 64 + 64] * e.rows[:, None] * e.columns[j][None, :]).to(bf16)


@tw.inline
def row_scales(given, row, at, BN):
    return tw.load(given.rows[row : row + 64], fill=0.0)


@tw.inline
def with_scale(acc, given, early, late, column, j):
    c = tw.load(given.columns[column : column + 64], fill=0.0)
    return acc[:, j * 64 : j * 64 + 64] * late[:, None] * c[None, :]


@tw.inline
def residuals(given, row, column, ring, sB, w):
    """They came through the ring after the last k block, 128 columns a slot."""
    parts = ()
    for q in tw.unroll(2):
        slot = ring.wait()
        r = tw.load(sB[slot, w * 64 : (w + 1) * 64, :], layout=tw.wgmma_c())
        s = tw.load(sB[slot, 128 + w * 64 : 128 + (w + 1) * 64, :], layout=tw.wgmma_c())
        parts = parts + (r, s)
    return parts


@tw.inline
def with_residuals(acc, e, j):
    return (acc[:, j * 64 : j * 64 + 64] + e[j].to(f32)).to(bf16)


@tw.inline
def residual_tile(given, row, at, BN):
    return tw.load(given.R[row : row + 64, at * BN : at * BN + BN], fill=0.0)


@tw.inline
def with_residual(acc, given, early, late, column, j):
    return acc[:, j * 64 : j * 64 + 64] + early[:, j * 64 : j * 64 + 64].to(f32)


BIAS = tw.record(fetch=biases, finish=with_biases, early=nothing, late=nothing, chunk=with_bias, ring=False)
SCALE = tw.record(fetch=scales, finish=with_scales, early=nothing, late=row_scales, chunk=with_scale, ring=False)
RESIDUAL = tw.record(fetch=residuals, finish=with_residuals, early=residual_tile, late=nothing, chunk=with_residual, ring=True)


@tw.inline
def deferred(A, B, C, after, given, STAGES, GROUP):
    """A finished tile waits in four chunks, and is stored while the first k blocks of the next one are multiplied."""
    SLOTS = 3 if after.ring and STAGES < 3 else STAGES  # the last k block and both halves of a residual are held at once
    sA, sB, ring = operands(bf16, SLOTS, 128, 256, 64)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, 256, group=GROUP):
            fill(ring, sA, sB, A, B, bm * 128, bn * 256, 64)
            if after.ring:
                for q in tw.unroll(2):
                    slot = ring.acquire()
                    tw.tma_load(sB[slot, 0:128, :], given.R[bm * 128, bn * 256 + q * 128], on=ring.full(slot))
                    tw.tma_load(sB[slot, 128:256, :], given.R[bm * 128, bn * 256 + q * 128 + 64], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        acc = tw.zeros(f32, (64, 256))
        held = [tw.zeros(bf16, (64, 64))] * 4
        row = 0
        column = 0
        holds = 0
        for bm, bn in tw.tiles(M, N, 128, 256, group=GROUP):
            for j in tw.unroll(4):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T, zero=j == 0)
                tw.wgmma_wait(1)
                if j > 0:
                    ring.release(keep=1)
                if holds == 1:
                    put(C, sC[w, j % 2], done, held[j], row, column + j * 64)
            multiply(ring, acc, sA, sB, w, 64, 64, 4)
            row = bm * 128 + w * 64
            column = bn * 256
            e = after.fetch(given, row, column, ring, sB, w)
            tw.wgmma_wait(0)
            if after.ring:
                done.sync()
            ring.release()
            for j in tw.unroll(4):
                held[j] = after.finish(acc, e, j)
            holds = 1
        if holds == 1:
            for j in tw.unroll(4):
                put(C, sC[w, j % 2], done, held[j], row, column + j * 64)
        tw.tma_store_wait(0)


@tw.inline
def stored(A, B, C, after, given, BN, STAGES, GROUP):
    """A tile is stored before the next one begins."""
    sA, sB, ring = operands(bf16, STAGES, 128, BN, 64)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            fill(ring, sA, sB, A, B, bm * 128, bn * BN, 64)
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            row = bm * 128 + w * 64
            acc = tw.zeros(f32, (64, BN))
            early = after.early(given, row, bn, BN)
            multiply(ring, acc, sA, sB, w, 64, 64)
            finish(ring)
            late = after.late(given, row, bn, BN)
            for j in tw.unroll(BN // 64):
                column = bn * BN + j * 64
                y = after.chunk(acc, given, early, late, column, j)
                put(C, sC[w, j % 2], done, y.to(bf16), row, column)
        tw.tma_store_wait(0)


@tw.signature(
    name="gemm_bias_" + ACT.short, computes="C[m, n] = bf16(ACT(sum(k, f32(A[m, k]) * f32(B[n, k])) + f32(bias[n])))", dependent_launch=True, target="sm_90a"
)
def gemm_activated(
    A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), bias: tw.Tensor(bf16, N), C: tw.Tensor(bf16, M, N),
    ACT: tw.each(GELU, SILU, RELU), GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """An activation of the product and a bias per column."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)


@tw.inline
def put_left(sC, done, x):
    """The left half of a chunk, into a staging buffer whose store before last has been read."""
    tw.tma_store_wait(1, read=True)
    done.sync()
    tw.store(sC[:, 0:32], x)


@tw.inline
def put_right(C, sC, done, x, row, column):
    """The right half, and off it goes."""
    tw.store(sC[:, 32:64], x)
    hand_over(C, sC, done, row, column)


@tw.kernel(gemm_activated)
def gemm_activated_deferred(A, B, bias, C, ACT, GROUP, STAGES: tw.const(2, 3, 4) = 4):
    """After the product only the first of a tile's four chunks is finished, and waits in its staging buffer. The others wait as f32 in registers and are
    finished while the next tile's blocks are multiplied, 32 columns a block."""
    tw.assume(K > 448)
    sA, sB, ring = operands(bf16, STAGES, 128, 256, 64)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    with tw.warpgroups(0, regs=24, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, 256, group=GROUP):
            fill(ring, sA, sB, A, B, bm * 128, bn * 256, 64)
    with tw.warpgroups(1, 2, regs=240, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        acc = tw.zeros(f32, (64, 256))
        x = [tw.zeros(f32, (64, 32))] * 6  # columns 64 .. 256 of the tile before
        row = 0
        column = 0
        holds = 0
        for bm, bn in tw.tiles(M, N, 128, 256, group=GROUP):
            for j in tw.unroll(7):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T, zero=j == 0)
                tw.wgmma_wait(1)
                if j > 0:
                    ring.release(keep=1)
                if holds == 1:
                    if j == 0:
                        hand_over(C, sC[w, 0], done, row, column)
                    elif j % 2 == 1:
                        put_left(sC[w, (j + 1) // 2 % 2], done, ACT.of(x[j - 1]).to(bf16))
                    else:
                        put_right(C, sC[w, j // 2 % 2], done, ACT.of(x[j - 1]).to(bf16), row, column + j * 32)
            multiply(ring, acc, sA, sB, w, 64, 64, 7)
            row = bm * 128 + w * 64
            column = bn * 256
            b = ()
            for j in tw.unroll(8):
                b = b + (tw.load(bias[column + j * 32 : column + j * 32 + 32], fill=0.0),)
            tw.tma_store_wait(0, read=True)
            done.sync()
            finish(ring)
            for j in tw.unroll(2):
                tw.store(sC[w, 0, :, j * 32 : j * 32 + 32], ACT.of(acc[:, j * 32 : j * 32 + 32] + b[j].to(f32)[None, :]).to(bf16))  # pyright: ignore
            for j in tw.unroll(6):
                x[j] = acc[:, j * 32 + 64 : j * 32 + 96] + b[j + 2].to(f32)[None, :]  # pyright: ignore
            holds = 1
        if holds == 1:
            hand_over(C, sC[w, 0], done, row, column)
            for j in tw.unroll(3):
                put_left(sC[w, (j + 1) % 2], done, ACT.of(x[2 * j]).to(bf16))
                put_right(C, sC[w, (j + 1) % 2], done, ACT.of(x[2 * j + 1]).to(bf16), row, column + j * 64 + 64)
        tw.tma_store_wait(0)


@tw.kernel(gemm_activated)
def gemm_activated_stored(A, B, bias, C, ACT, GROUP, BN: tw.const(128, 256) = 256, STAGES: tw.const(2, 3, 4, 5, 6) = 4):
    """A tile is stored before the next one begins."""
    stored(A, B, C, BIAS, tw.record(bias=bias, of=ACT.of), BN, STAGES, GROUP)


@tw.signature(computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])) + f32(bias[n]))", dependent_launch=True, target="sm_90a")
def gemm_bias(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), bias: tw.Tensor(bf16, N), C: tw.Tensor(bf16, M, N), GROUP: tw.const(1, 4, 8, 16) = 8):
    """A bias per column."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)


@tw.kernel(gemm_bias)
def gemm_bias_deferred(A, B, bias, C, GROUP, STAGES: tw.const(2, 3, 4) = 4):
    """The store hides behind the next tile."""
    tw.assume(K > 256)
    deferred(A, B, C, BIAS, tw.record(bias=bias, of=same), STAGES, GROUP)


@tw.kernel(gemm_bias)
def gemm_bias_stored(A, B, bias, C, GROUP, BN: tw.const(128, 256) = 256, STAGES: tw.const(2, 3, 4, 5, 6) = 4):
    """A tile is stored before the next one begins."""
    stored(A, B, C, BIAS, tw.record(bias=bias, of=same), BN, STAGES, GROUP)


@tw.signature(computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])) + f32(R[m, n]))", dependent_launch=True, target="sm_90a")
def gemm_residual(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), R: tw.Tensor(bf16, M, N), C: tw.Tensor(bf16, M, N), GROUP: tw.const(1, 4, 8, 16) = 8):
    """A residual."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)


@tw.kernel(gemm_residual)
def gemm_residual_deferred(A, B, R, C, GROUP, STAGES: tw.const(2, 3, 4) = 4):
    """The store hides behind the next tile."""
    tw.assume(K > 256)
    deferred(A, B, C, RESIDUAL, tw.record(R=R), STAGES, GROUP)


@tw.kernel(gemm_residual)
def gemm_residual_stored(A, B, R, C, GROUP, BN: tw.const(128, 256) = 256, STAGES: tw.const(2, 3, 4, 5, 6) = 4):
    """A tile is stored before the next one begins."""
    stored(A, B, C, RESIDUAL, tw.record(R=R), BN, STAGES, GROUP)


@tw.signature(computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])) * rows[m] * columns[n])", dependent_launch=True, target="sm_90a")
def gemm_scaled(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), rows: tw.Tensor(f32, M), columns: tw.Tensor(f32, N), C: tw.Tensor(bf16, M, N), GROUP: tw.const(1, 4, 8, 16) = 8):
    """A scale per row and one per column."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)


@tw.kernel(gemm_scaled)
def gemm_scaled_deferred(A, B, rows, columns, C, GROUP, STAGES: tw.const(2, 3, 4) = 4):
    """The store hides behind the next tile."""
    tw.assume(K > 256)
    deferred(A, B, C, SCALE, tw.record(rows=rows, columns=columns), STAGES, GROUP)


@tw.kernel(gemm_scaled)
def gemm_scaled_stored(A, B, rows, columns, C, GROUP, BN: tw.const(128, 256) = 256, STAGES: tw.const(2, 3, 4, 5, 6) = 4):
    """A tile is stored before the next one begins."""
    stored(A, B, C, SCALE, tw.record(rows=rows, columns=columns), BN, STAGES, GROUP)


@tw.kernel(
    target="sm_90a",
    name="gemm_gated",
    computes="C[m, n] = bf16(silu(sum(k, f32(A[m, k]) * f32(G[n, k]))) * sum(k, f32(A[m, k]) * f32(B[n, k])))",
    dependent_launch=True,
)
def gemm_gated(
    A: tw.Tensor(bf16, M, K),
    G: tw.Tensor(bf16, N, K),
    B: tw.Tensor(bf16, N, K),
    C: tw.Tensor(bf16, M, N),
    STAGES: tw.const(2, 3, 4) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """Two products share the loads of A: the gate's and the value's accumulators are multiplied before the store."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    sA = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sG = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sB = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, 128, group=GROUP):
            for kt in tw.range(tw.cdiv(K, 64)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[bm * 128, kt * 64], on=ring.full(slot))
                tw.tma_load(sG[slot], G[bn * 128, kt * 64], on=ring.full(slot))
                tw.tma_load(sB[slot], B[bn * 128, kt * 64], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        for bm, bn in tw.tiles(M, N, 128, 128, group=GROUP):
            gate = tw.zeros(f32, (64, 128))
            up = tw.zeros(f32, (64, 128))
            for kt in tw.range(tw.cdiv(K, 64)):
                slot = ring.wait()
                with tw.wgmma_batch():
                    tw.wgmma(gate, sA[slot, w * 64 : (w + 1) * 64, :], sG[slot].T)
                    tw.wgmma(up, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T)
                tw.wgmma_wait(1)
                ring.release(keep=1)
            finish(ring)
            for j in tw.unroll(2):
                y = silu(gate[:, j * 64 : j * 64 + 64]) * up[:, j * 64 : j * 64 + 64]
                put(C, sC[w, j % 2], done, y.to(bf16), bm * 128 + w * 64, bn * 128 + j * 64)
        tw.tma_store_wait(0)
