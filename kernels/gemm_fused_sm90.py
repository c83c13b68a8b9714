"""GEMM with what follows it folded into the store: bias, activation, residual, scales, and a gated pair of products."""
import tilewright as tw
from tilewright import bf16, f32

M, N, K = tw.sizes("M N K")


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


@tw.inline
def produce(ring, sA, sB, A, B, row, column):
    """One tile's k blocks into the ring."""
    for kt in tw.range(tw.cdiv(K, 64)):
        slot = ring.acquire()
        tw.tma_load(sA[slot], A[row, kt * 64], on=ring.full(slot))
        tw.tma_load(sB[slot], B[column, kt * 64], on=ring.full(slot))


@tw.inline
def multiply(ring, acc, sA, sB, w):
    """One tile's k blocks out of the ring; at the end acc belongs to ordinary code."""
    for kt in tw.range(tw.cdiv(K, 64)):
        slot = ring.wait()
        tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T)
        tw.wgmma_wait(1)
        ring.release(keep=1)
    tw.wgmma_wait(0)
    ring.release()


@tw.inline
def put(C, sC, done, x, row, column):
    """Stores a finished 64 x 64 chunk through a staging buffer whose store before last has been read."""
    tw.tma_store_wait(1, read=True)
    done.sync()
    tw.store(sC, x)
    tw.fence_async()
    done.sync()
    tw.tma_store(C[row, column], sC)
    tw.tma_store_commit()


@tw.inline
def multiply_behind(C, ring, acc, sA, sB, sC, done, h0, h1, h2, h3, row, column, holds, w):
    """One tile's k blocks; behind the first four, the chunks of the tile before are stored."""
    for j in tw.unroll(4):
        slot = ring.wait()
        tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T, zero=j == 0)
        tw.wgmma_wait(1)
        if j > 0:
            ring.release(keep=1)
        if holds == 1:
            put(C, sC[w, j % 2], done, (h0, h1, h2, h3)[j], row, column + j * 64)
    for kt in tw.range(4, tw.cdiv(K, 64)):
        slot = ring.wait()
        tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T)
        tw.wgmma_wait(1)
        ring.release(keep=1)


@tw.inline
def put_all(C, sC, done, h0, h1, h2, h3, row, column, w):
    """Stores a tile that waits in four chunks."""
    for j in tw.unroll(4):
        put(C, sC[w, j % 2], done, (h0, h1, h2, h3)[j], row, column + j * 64)


@tw.inline
def bias_deferred(A, B, bias, C, STAGES, GROUP):
    """The product and a bias per column; the store hides behind the next tile."""
    sA = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sB = tw.shared(bf16, (STAGES, 256, 64), swizzle=128)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, 256, group=GROUP):
            produce(ring, sA, sB, A, B, bm * 128, bn * 256)
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        acc = tw.zeros(f32, (64, 256))
        h0 = tw.zeros(bf16, (64, 64))  # the finished tile waits in four chunks
        h1 = tw.zeros(bf16, (64, 64))
        h2 = tw.zeros(bf16, (64, 64))
        h3 = tw.zeros(bf16, (64, 64))
        row = 0
        column = 0
        holds = 0
        for bm, bn in tw.tiles(M, N, 128, 256, group=GROUP):
            multiply_behind(C, ring, acc, sA, sB, sC, done, h0, h1, h2, h3, row, column, holds, w)
            row = bm * 128 + w * 64
            column = bn * 256
            b0 = tw.load(bias[column + 0 : column + 64], fill=0.0)
            b1 = tw.load(bias[column + 64 : column + 128], fill=0.0)
            b2 = tw.load(bias[column + 128 : column + 192], fill=0.0)
            b3 = tw.load(bias[column + 192 : column + 256], fill=0.0)
            tw.wgmma_wait(0)
            ring.release()
            h0 = (acc[:, 0:64] + b0.to(f32)[None, :]).to(bf16)
            h1 = (acc[:, 64:128] + b1.to(f32)[None, :]).to(bf16)
            h2 = (acc[:, 128:192] + b2.to(f32)[None, :]).to(bf16)
            h3 = (acc[:, 192:256] + b3.to(f32)[None, :]).to(bf16)
            holds = 1
        if holds == 1:
            put_all(C, sC, done, h0, h1, h2, h3, row, column, w)
        tw.tma_store_wait(0)


@tw.inline
def hand_over(C, sC, done, row, column):
    """Hands a staged chunk to TMA."""
    tw.fence_async()
    done.sync()
    tw.tma_store(C[row, column], sC)
    tw.tma_store_commit()


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


@tw.inline
def activated_deferred(A, B, bias, C, activation, STAGES, GROUP):
    """An activation of the product and a bias per column. Behind the product only the first of a tile's four chunks is finished, and waits in its staging buffer. The
    others wait as f32 in registers and are finished behind the next tile's blocks, 32 columns a block."""
    sA = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sB = tw.shared(bf16, (STAGES, 256, 64), swizzle=128)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=24, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, 256, group=GROUP):
            produce(ring, sA, sB, A, B, bm * 128, bn * 256)
    with tw.warpgroups(1, 2, regs=240, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        acc = tw.zeros(f32, (64, 256))
        x2 = tw.zeros(f32, (64, 32))  # columns 64 .. 256 of the tile before
        x3 = tw.zeros(f32, (64, 32))
        x4 = tw.zeros(f32, (64, 32))
        x5 = tw.zeros(f32, (64, 32))
        x6 = tw.zeros(f32, (64, 32))
        x7 = tw.zeros(f32, (64, 32))
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
                        put_left(sC[w, (j + 1) // 2 % 2], done, activation((x2, x4, x6)[j // 2]).to(bf16))
                    else:
                        put_right(C, sC[w, j // 2 % 2], done, activation((x3, x5, x7)[j // 2 - 1]).to(bf16), row, column + j * 32)
            for kt in tw.range(7, tw.cdiv(K, 64)):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T)
                tw.wgmma_wait(1)
                ring.release(keep=1)
            row = bm * 128 + w * 64
            column = bn * 256
            b0 = tw.load(bias[column + 0 : column + 32], fill=0.0)
            b1 = tw.load(bias[column + 32 : column + 64], fill=0.0)
            b2 = tw.load(bias[column + 64 : column + 96], fill=0.0)
            b3 = tw.load(bias[column + 96 : column + 128], fill=0.0)
            b4 = tw.load(bias[column + 128 : column + 160], fill=0.0)
            b5 = tw.load(bias[column + 160 : column + 192], fill=0.0)
            b6 = tw.load(bias[column + 192 : column + 224], fill=0.0)
            b7 = tw.load(bias[column + 224 : column + 256], fill=0.0)
            tw.tma_store_wait(0, read=True)
            done.sync()
            tw.wgmma_wait(0)
            ring.release()
            tw.store(sC[w, 0, :, 0:32], activation(acc[:, 0:32] + b0.to(f32)[None, :]).to(bf16))
            tw.store(sC[w, 0, :, 32:64], activation(acc[:, 32:64] + b1.to(f32)[None, :]).to(bf16))
            x2 = acc[:, 64:96] + b2.to(f32)[None, :]
            x3 = acc[:, 96:128] + b3.to(f32)[None, :]
            x4 = acc[:, 128:160] + b4.to(f32)[None, :]
            x5 = acc[:, 160:192] + b5.to(f32)[None, :]
            x6 = acc[:, 192:224] + b6.to(f32)[None, :]
            x7 = acc[:, 224:256] + b7.to(f32)[None, :]
            holds = 1
        if holds == 1:
            hand_over(C, sC[w, 0], done, row, column)
            for j in tw.unroll(3):
                put_left(sC[w, (j + 1) % 2], done, activation((x2, x4, x6)[j]).to(bf16))
                put_right(C, sC[w, (j + 1) % 2], done, activation((x3, x5, x7)[j]).to(bf16), row, column + j * 64 + 64)
        tw.tma_store_wait(0)


@tw.inline
def bias_stored(A, B, bias, C, activation, BN, STAGES, GROUP):
    """An activation of the product and a bias per column; a tile is stored before the next one begins."""
    sA = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sB = tw.shared(bf16, (STAGES, BN, 64), swizzle=128)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            produce(ring, sA, sB, A, B, bm * 128, bn * BN)
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            row = bm * 128 + w * 64
            acc = tw.zeros(f32, (64, BN))
            multiply(ring, acc, sA, sB, w)
            for j in tw.unroll(BN // 64):
                column = bn * BN + j * 64
                b = tw.load(bias[column : column + 64], fill=0.0).to(f32)
                y = activation(acc[:, j * 64 : j * 64 + 64] + b[None, :])
                put(C, sC[w, j % 2], done, y.to(bf16), row, column)
        tw.tma_store_wait(0)


@tw.kernel(target="sm_90a", name="gemm_bias_gelu", computes="C[m, n] = bf16(gelu_tanh(sum(k, f32(A[m, k]) * f32(B[n, k])) + f32(bias[n])))", dependent_launch=True)
def gemm_bias_gelu_deferred(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    bias: tw.Tensor(bf16, N),
    C: tw.Tensor(bf16, M, N),
    STAGES: tw.const(2, 3, 4) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """gelu_tanh of the product and a bias per column; the store hides behind the next tile."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    tw.assume(K > 448)
    activated_deferred(A, B, bias, C, gelu_tanh, STAGES, GROUP)


@tw.kernel(target="sm_90a", name="gemm_bias_gelu", computes="C[m, n] = bf16(gelu_tanh(sum(k, f32(A[m, k]) * f32(B[n, k])) + f32(bias[n])))", dependent_launch=True)
def gemm_bias_gelu(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    bias: tw.Tensor(bf16, N),
    C: tw.Tensor(bf16, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """gelu_tanh of the product and a bias per column."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    bias_stored(A, B, bias, C, gelu_tanh, BN, STAGES, GROUP)


@tw.kernel(target="sm_90a", name="gemm_bias_silu", computes="C[m, n] = bf16(silu(sum(k, f32(A[m, k]) * f32(B[n, k])) + f32(bias[n])))", dependent_launch=True)
def gemm_bias_silu_deferred(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    bias: tw.Tensor(bf16, N),
    C: tw.Tensor(bf16, M, N),
    STAGES: tw.const(2, 3, 4) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """silu of the product and a bias per column; the store hides behind the next tile."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    tw.assume(K > 448)
    activated_deferred(A, B, bias, C, silu, STAGES, GROUP)


@tw.kernel(target="sm_90a", name="gemm_bias_silu", computes="C[m, n] = bf16(silu(sum(k, f32(A[m, k]) * f32(B[n, k])) + f32(bias[n])))", dependent_launch=True)
def gemm_bias_silu(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    bias: tw.Tensor(bf16, N),
    C: tw.Tensor(bf16, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """silu of the product and a bias per column."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    bias_stored(A, B, bias, C, silu, BN, STAGES, GROUP)


@tw.kernel(target="sm_90a", name="gemm_bias_relu", computes="C[m, n] = bf16(relu(sum(k, f32(A[m, k]) * f32(B[n, k])) + f32(bias[n])))", dependent_launch=True)
def gemm_bias_relu_deferred(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    bias: tw.Tensor(bf16, N),
    C: tw.Tensor(bf16, M, N),
    STAGES: tw.const(2, 3, 4) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """relu of the product and a bias per column; the store hides behind the next tile."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    tw.assume(K > 448)
    activated_deferred(A, B, bias, C, relu, STAGES, GROUP)


@tw.kernel(target="sm_90a", name="gemm_bias_relu", computes="C[m, n] = bf16(relu(sum(k, f32(A[m, k]) * f32(B[n, k])) + f32(bias[n])))", dependent_launch=True)
def gemm_bias_relu(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    bias: tw.Tensor(bf16, N),
    C: tw.Tensor(bf16, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """relu of the product and a bias per column."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    bias_stored(A, B, bias, C, relu, BN, STAGES, GROUP)


@tw.kernel(target="sm_90a", name="gemm_bias", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])) + f32(bias[n]))", dependent_launch=True)
def gemm_bias_deferred(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    bias: tw.Tensor(bf16, N),
    C: tw.Tensor(bf16, M, N),
    STAGES: tw.const(2, 3, 4) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """A bias per column; the store hides behind the next tile."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    tw.assume(K > 256)
    bias_deferred(A, B, bias, C, STAGES, GROUP)


@tw.kernel(target="sm_90a", name="gemm_bias", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])) + f32(bias[n]))", dependent_launch=True)
def gemm_bias(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    bias: tw.Tensor(bf16, N),
    C: tw.Tensor(bf16, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """A bias per column."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    bias_stored(A, B, bias, C, same, BN, STAGES, GROUP)


@tw.kernel(target="sm_90a", name="gemm_residual", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])) + f32(R[m, n]))", dependent_launch=True)
def gemm_residual_deferred(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    R: tw.Tensor(bf16, M, N),
    C: tw.Tensor(bf16, M, N),
    STAGES: tw.const(2, 3, 4) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """The residual comes through the ring behind the last k block, 128 columns a slot; the store hides behind the next tile."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    tw.assume(K > 256)
    SLOTS = STAGES if STAGES > 2 else 3  # the last k block and both halves of the residual are held at once
    sA = tw.shared(bf16, (SLOTS, 128, 64), swizzle=128)
    sB = tw.shared(bf16, (SLOTS, 256, 64), swizzle=128)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(SLOTS, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, 256, group=GROUP):
            produce(ring, sA, sB, A, B, bm * 128, bn * 256)
            for q in tw.unroll(2):
                slot = ring.acquire()
                tw.tma_load(sB[slot, 0:128, :], R[bm * 128, bn * 256 + q * 128], on=ring.full(slot))
                tw.tma_load(sB[slot, 128:256, :], R[bm * 128, bn * 256 + q * 128 + 64], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        acc = tw.zeros(f32, (64, 256))
        h0 = tw.zeros(bf16, (64, 64))  # the finished tile waits in four chunks
        h1 = tw.zeros(bf16, (64, 64))
        h2 = tw.zeros(bf16, (64, 64))
        h3 = tw.zeros(bf16, (64, 64))
        row = 0
        column = 0
        holds = 0
        for bm, bn in tw.tiles(M, N, 128, 256, group=GROUP):
            multiply_behind(C, ring, acc, sA, sB, sC, done, h0, h1, h2, h3, row, column, holds, w)
            row = bm * 128 + w * 64
            column = bn * 256
            slot = ring.wait()
            r0 = tw.load(sB[slot, w * 64 : (w + 1) * 64, :], layout=tw.wgmma_c())
            r1 = tw.load(sB[slot, 128 + w * 64 : 128 + (w + 1) * 64, :], layout=tw.wgmma_c())
            slot = ring.wait()
            r2 = tw.load(sB[slot, w * 64 : (w + 1) * 64, :], layout=tw.wgmma_c())
            r3 = tw.load(sB[slot, 128 + w * 64 : 128 + (w + 1) * 64, :], layout=tw.wgmma_c())
            tw.wgmma_wait(0)
            done.sync()
            ring.release()
            h0 = (acc[:, 0:64] + r0.to(f32)).to(bf16)
            h1 = (acc[:, 64:128] + r1.to(f32)).to(bf16)
            h2 = (acc[:, 128:192] + r2.to(f32)).to(bf16)
            h3 = (acc[:, 192:256] + r3.to(f32)).to(bf16)
            holds = 1
        if holds == 1:
            put_all(C, sC, done, h0, h1, h2, h3, row, column, w)
        tw.tma_store_wait(0)


@tw.kernel(target="sm_90a", name="gemm_residual", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])) + f32(R[m, n]))", dependent_launch=True)
def gemm_residual(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    R: tw.Tensor(bf16, M, N),
    C: tw.Tensor(bf16, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """The residual waits in registers while the product is made."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    sA = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sB = tw.shared(bf16, (STAGES, BN, 64), swizzle=128)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            produce(ring, sA, sB, A, B, bm * 128, bn * BN)
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            row = bm * 128 + w * 64
            acc = tw.zeros(f32, (64, BN))
            r = tw.load(R[row : row + 64, bn * BN : bn * BN + BN], fill=0.0)
            multiply(ring, acc, sA, sB, w)
            for j in tw.unroll(BN // 64):
                column = bn * BN + j * 64
                y = acc[:, j * 64 : j * 64 + 64] + r[:, j * 64 : j * 64 + 64].to(f32)
                put(C, sC[w, j % 2], done, y.to(bf16), row, column)
        tw.tma_store_wait(0)


@tw.kernel(target="sm_90a", name="gemm_scaled", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])) * rows[m] * columns[n])", dependent_launch=True)
def gemm_scaled_deferred(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    rows: tw.Tensor(f32, M),
    columns: tw.Tensor(f32, N),
    C: tw.Tensor(bf16, M, N),
    STAGES: tw.const(2, 3, 4) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """A scale per row and one per column; the store hides behind the next tile."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    tw.assume(K > 256)
    sA = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sB = tw.shared(bf16, (STAGES, 256, 64), swizzle=128)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, 256, group=GROUP):
            produce(ring, sA, sB, A, B, bm * 128, bn * 256)
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        acc = tw.zeros(f32, (64, 256))
        h0 = tw.zeros(bf16, (64, 64))  # the finished tile waits in four chunks
        h1 = tw.zeros(bf16, (64, 64))
        h2 = tw.zeros(bf16, (64, 64))
        h3 = tw.zeros(bf16, (64, 64))
        row = 0
        column = 0
        holds = 0
        for bm, bn in tw.tiles(M, N, 128, 256, group=GROUP):
            multiply_behind(C, ring, acc, sA, sB, sC, done, h0, h1, h2, h3, row, column, holds, w)
            row = bm * 128 + w * 64
            column = bn * 256
            r = tw.load(rows[row : row + 64], fill=0.0)
            c0 = tw.load(columns[column + 0 : column + 64], fill=0.0)
            c1 = tw.load(columns[column + 64 : column + 128], fill=0.0)
            c2 = tw.load(columns[column + 128 : column + 192], fill=0.0)
            c3 = tw.load(columns[column + 192 : column + 256], fill=0.0)
            tw.wgmma_wait(0)
            ring.release()
            h0 = (acc[:, 0:64] * r[:, None] * c0[None, :]).to(bf16)
            h1 = (acc[:, 64:128] * r[:, None] * c1[None, :]).to(bf16)
            h2 = (acc[:, 128:192] * r[:, None] * c2[None, :]).to(bf16)
            h3 = (acc[:, 192:256] * r[:, None] * c3[None, :]).to(bf16)
            holds = 1
        if holds == 1:
            put_all(C, sC, done, h0, h1, h2, h3, row, column, w)
        tw.tma_store_wait(0)


@tw.kernel(target="sm_90a", name="gemm_scaled", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])) * rows[m] * columns[n])", dependent_launch=True)
def gemm_scaled(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    rows: tw.Tensor(f32, M),
    columns: tw.Tensor(f32, N),
    C: tw.Tensor(bf16, M, N),
    BN: tw.const(128, 256) = 256,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """A scale per row and one per column."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    sA = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sB = tw.shared(bf16, (STAGES, BN, 64), swizzle=128)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            produce(ring, sA, sB, A, B, bm * 128, bn * BN)
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            row = bm * 128 + w * 64
            acc = tw.zeros(f32, (64, BN))
            multiply(ring, acc, sA, sB, w)
            r = tw.load(rows[row : row + 64], fill=0.0)
            for j in tw.unroll(BN // 64):
                column = bn * BN + j * 64
                c = tw.load(columns[column : column + 64], fill=0.0)
                y = acc[:, j * 64 : j * 64 + 64] * r[:, None] * c[None, :]
                put(C, sC[w, j % 2], done, y.to(bf16), row, column)
        tw.tma_store_wait(0)


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
            tw.wgmma_wait(0)
            ring.release()
            for j in tw.unroll(2):
                y = silu(gate[:, j * 64 : j * 64 + 64]) * up[:, j * 64 : j * 64 + 64]
                put(C, sC[w, j % 2], done, y.to(bf16), bm * 128 + w * 64, bn * 128 + j * 64)
        tw.tma_store_wait(0)
