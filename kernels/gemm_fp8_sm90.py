"""GEMM of fp8 (e4m3) numbers for Hopper, with scales: of the tensors, of rows and columns, or of 128 x 128 blocks.

The matrix unit adds products of fp8 in 13 bits. gemm_fp8_fast and gemm_fp8_rows_fast leave a sum there from the first k to the last and say so in what they compute. The others move it to f32
every 128 steps of k: a partial sum has registers of its own, so a consumer has 128 rows in two halves, and one half's sum is added while the other consumer multiplies.
"""
import tilewright as tw
from gemm_parts import K, M, N, finish, hand_over, multiply, operands, produce, put
from tilewright import bf16, e4m3, f32

NB, KB = tw.sizes("NB KB")
DEPENDENT = tw.parameters("DEPENDENT")


@tw.inline
def start_tensor(sa, sb, row):
    """What is known of the scales before the products; it arrives while they are made."""
    return tw.load(sa) * tw.load(sb)


@tw.inline
def scaled_tensor(x, scale, sb, column, WIDE):
    return x * scale


@tw.inline
def start_rows(sa, sb, row):
    return tw.load(sa[row : row + 64], fill=0.0)


@tw.inline
def scaled_rows(x, rows, sb, column, WIDE):
    columns = tw.load(sb[column : column + WIDE], fill=0.0)
    return x * rows[:, None] * columns[None, :]


@tw.inline
def unpromoted(A, B, sa, sb, C, start, DEFERRED, BN, STAGES, GROUP, ROWS):
    """128 x BN tiles; a consumer has 64 rows. `start` gives the scales of rows or of the tensors; those of columns (ROWS) come after the tile's last k block."""
    sA, sB, ring = operands(e4m3, STAGES, 128, BN, 128)
    sC = tw.shared(bf16, (2, 2, 64, 64), swizzle=128)
    if ROWS:
        sS = tw.shared(f32, (BN,))
        columns = tw.pipeline(1, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
            for kt in tw.range(tw.cdiv(K, 128)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[bm * 128, kt * 128], on=ring.full(slot))
                tw.tma_load(sB[slot], B[bn * BN, kt * 128], on=ring.full(slot))
            if ROWS:
                c = columns.acquire()  # last: the tile before has read them by now
                tw.tma_load(sS, sb[bn * BN : bn * BN + BN], on=columns.full(c))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        if DEFERRED:
            acc = tw.zeros(f32, (64, BN))
            held = tw.zeros(bf16, (64, BN))  # the finished tile, its first row and column, and whether there is one
            row = 0
            column = 0
            holds = 0
            for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
                scale = start(sa, sb, bm * 128 + w * 64)
                for j in tw.unroll(BN // 64):
                    slot = ring.wait()
                    tw.wgmma(acc, sA[slot, w * 64 : (w + 1) * 64, :], sB[slot].T, zero=j == 0)
                    tw.wgmma_wait(1)
                    if j > 0:
                        ring.release(keep=1)
                    if holds == 1:
                        put(C, sC[w, j % 2], done, held[:, j * 64 : j * 64 + 64], row, column + j * 64)
                multiply(ring, acc, sA, sB, w, 64, 128, BN // 64)
                finish(ring)
                if ROWS:
                    columns.wait()
                    held = (acc * scale[:, None] * tw.load(sS)[None, :]).to(bf16)
                    done.sync()
                    columns.release()
                else:
                    held = (acc * scale).to(bf16)
                row = bm * 128 + w * 64
                column = bn * BN
                holds = 1
            if holds == 1:
                for j in tw.unroll(BN // 64):
                    put(C, sC[w, j % 2], done, held[:, j * 64 : j * 64 + 64], row, column + j * 64)
        else:
            for bm, bn in tw.tiles(M, N, 128, BN, group=GROUP):
                scale = start(sa, sb, bm * 128 + w * 64)
                acc = tw.zeros(f32, (64, BN))
                multiply(ring, acc, sA, sB, w, 64, 128)
                finish(ring)
                if ROWS:
                    columns.wait()
                    acc = acc * scale[:, None] * tw.load(sS)[None, :]
                    done.sync()
                    columns.release()
                else:
                    acc = acc * scale
                for j in tw.unroll(BN // 64):
                    put(C, sC[w, j % 2], done, acc[:, j * 64 : j * 64 + 64].to(bf16), bm * 128 + w * 64, bn * BN + j * 64)
        tw.tma_store_wait(0)


@tw.signature(target="sm_90a", dependent_launch=DEPENDENT)
def scaled_tensors(
    A: tw.Tensor(e4m3, M, K), B: tw.Tensor(e4m3, N, K), sa: tw.Tensor(f32), sb: tw.Tensor(f32), C: tw.Tensor(bf16, M, N),
    STAGES: tw.const(2, 3, 4) = 4, GROUP: tw.const(1, 4, 8, 16) = 8, DEPENDENT: tw.const(0, 1) = 0,
):
    """One scale for each tensor."""
    tw.assume(K % 16 == 0)
    tw.assume(N % 8 == 0)


@tw.signature(target="sm_90a", dependent_launch=DEPENDENT)
def scaled_both_rows(
    A: tw.Tensor(e4m3, M, K), B: tw.Tensor(e4m3, N, K), sa: tw.Tensor(f32, M), sb: tw.Tensor(f32, N), C: tw.Tensor(bf16, M, N),
    STAGES: tw.const(2, 3, 4) = 4, GROUP: tw.const(1, 4, 8, 16) = 8, DEPENDENT: tw.const(0, 1) = 0,
):
    """A scale for each row of A and each row of B."""
    tw.assume(K % 16 == 0)
    tw.assume(N % 8 == 0)


# DEFERRED: a tile is stored after the next one's first k blocks, where there are as many as chunks of columns.

@tw.kernel(scaled_tensors, name="gemm_fp8_fast", computes="C[m, n] = bf16(sa * sb * sum(k, bf16(A[m, k]) * bf16(B[n, k])))")
def gemm_fp8_fast(A, B, sa, sb, C, DEFERRED: tw.each(1, 0), STAGES, GROUP, DEPENDENT, BN: tw.const(128, 256) = 256):
    """Sums stay in the matrix unit, in 13 bits: what `use_fast_accum=True` asks of the libraries."""
    if DEFERRED:
        tw.assume(K > (BN // 64 - 1) * 128)
    unpromoted(A, B, sa, sb, C, start_tensor, DEFERRED, BN, STAGES, GROUP, 0)


@tw.kernel(scaled_both_rows, name="gemm_fp8_rows_fast", computes="C[m, n] = bf16(sa[m] * sb[n] * sum(k, bf16(A[m, k]) * bf16(B[n, k])))")
def gemm_fp8_rows_fast(A, B, sa, sb, C, DEFERRED: tw.each(1, 0), STAGES, GROUP, DEPENDENT, BN: tw.const(128, 256) = 256):
    """The same with a scale for each row of A and each row of B."""
    if DEFERRED:
        tw.assume(K > (BN // 64 - 1) * 128)
    unpromoted(A, B, sa, sb, C, start_rows, DEFERRED, BN, STAGES, GROUP, 1)


@tw.inline
def promoted(A, B, sa, sb, C, start, scaled, STAGES, GROUP):
    """256 x 128 tiles; a consumer has 128 rows. `start` and `scaled` apply the scales."""
    sA, sB, ring = operands(e4m3, STAGES, 256, 128, 128)
    sC = tw.shared(bf16, (2, 128, 64), swizzle=128)
    with tw.warpgroups(0, regs=40, name="producer"):
        produce(ring, sA, sB, A, B, 256, 128, 128, GROUP)
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        part = tw.zeros(f32, (64, 128))
        for bm, bn in tw.tiles(M, N, 256, 128, group=GROUP):
            row = bm * 256 + w * 128
            of_upper = start(sa, sb, row)
            of_lower = start(sa, sb, row + 64)
            upper = tw.zeros(f32, (64, 128))
            lower = tw.zeros(f32, (64, 128))
            for kt in tw.range(tw.cdiv(K, 128)):
                slot = ring.wait()
                tw.wgmma(part, sA[slot, w * 128 : w * 128 + 64, :], sB[slot].T, zero=True)
                tw.wgmma_wait(0)
                upper = upper + part
                tw.wgmma(part, sA[slot, w * 128 + 64 : w * 128 + 128, :], sB[slot].T, zero=True)
                tw.wgmma_wait(0)
                ring.release()
                lower = lower + part
            for j in tw.unroll(2):
                column = bn * 128 + j * 64
                tw.tma_store_wait(0, read=True)
                done.sync()
                tw.store(sC[w, 0:64, :], scaled(upper[:, j * 64 : j * 64 + 64], of_upper, sb, column, 64).to(bf16))
                tw.store(sC[w, 64:128, :], scaled(lower[:, j * 64 : j * 64 + 64], of_lower, sb, column, 64).to(bf16))
                hand_over(C, sC[w], done, row, column)
        tw.tma_store_wait(0)


@tw.kernel(scaled_tensors, name="gemm_fp8", computes="C[m, n] = bf16(sa * sb * sum(k, f32(A[m, k]) * f32(B[n, k])))")
def gemm_fp8(A, B, sa, sb, C, STAGES, GROUP, DEPENDENT):
    """One scale for each tensor."""
    promoted(A, B, sa, sb, C, start_tensor, scaled_tensor, STAGES, GROUP)


@tw.kernel(scaled_both_rows, name="gemm_fp8_rows", computes="C[m, n] = bf16(sa[m] * sb[n] * sum(k, f32(A[m, k]) * f32(B[n, k])))")
def gemm_fp8_rows(A, B, sa, sb, C, STAGES, GROUP, DEPENDENT):
    """A scale for each row of A and each row of B."""
    promoted(A, B, sa, sb, C, start_rows, scaled_rows, STAGES, GROUP)


@tw.kernel(
    target="sm_90a",
    name="gemm_fp8_blocks",
    computes="C[m, c, n] = bf16(sum(b, sa[b, m] * sb[c, b] * sum(k, f32(A[m, b, k]) * f32(B[c, n, b, k]))))",
    dependent_launch=DEPENDENT,
)
def gemm_fp8_blocks(
    A: tw.Tensor(e4m3, M, KB, 128),
    B: tw.Tensor(e4m3, NB, 128, KB, 128),
    sa: tw.Tensor(f32, KB, M),  # of 128 elements of a row; those of one place in all rows are neighbours
    sb: tw.Tensor(f32, NB, KB),  # of 128 x 128 elements
    C: tw.Tensor(bf16, M, NB, 128),
    COPIED: tw.each(1, 0),  # the scales of A come with its tile; TMA takes rows of multiples of 16 bytes
    STAGES: tw.const(2, 3, 4) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
    DEPENDENT: tw.const(0, 1) = 0,
):
    """A scale for every 128 elements of a row of A and every 128 x 128 of B: activations and weights of DeepSeek's form. K = 128 KB and N = 128 NB: a matrix
    of rows of K elements is the same memory."""
    if COPIED:
        tw.assume(M % 4 == 0)
        tw.assume(KB % 4 == 0)
    sA, sB, ring = operands(e4m3, STAGES, 256, 128, 128)
    sC = tw.shared(bf16, (2, 128, 32), swizzle=64)
    sS = tw.shared(f32, (STAGES, 256))
    sT = tw.shared(f32, (STAGES, 32))
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, NB, 256, 1, group=GROUP):
            for kt in tw.range(KB):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[bm * 256 : bm * 256 + 256, kt, 0:128], on=ring.full(slot))
                tw.tma_load(sB[slot], B[bn, 0:128, kt, 0:128], on=ring.full(slot))
                if COPIED:
                    tw.tma_load(sS[slot], sa[kt, bm * 256 : bm * 256 + 256], on=ring.full(slot))
                    tw.tma_load(sT[slot], sb[bn, kt // 4 * 4 : kt // 4 * 4 + 32], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        part = tw.zeros(f32, (64, 128))
        for bm, bn in tw.tiles(M, NB, 256, 1, group=GROUP):
            row = bm * 256 + w * 128
            upper = tw.zeros(f32, (64, 128))
            lower = tw.zeros(f32, (64, 128))
            for kt in tw.range(KB):
                slot = ring.wait()
                tw.wgmma(part, sA[slot, w * 128 : w * 128 + 64, :], sB[slot].T, zero=True)
                if COPIED:
                    of_block = tw.load(sT[slot, kt % 4])
                    of_upper = tw.load(sS[slot, w * 128 : w * 128 + 64])
                    of_lower = tw.load(sS[slot, w * 128 + 64 : w * 128 + 128])
                    done.sync()  # all have read before one of them releases the slot
                else:  # they arrive while the products are made
                    of_block = tw.load(sb[bn, kt])
                    of_upper = tw.load(sa[kt, row : row + 64], fill=0.0)
                    of_lower = tw.load(sa[kt, row + 64 : row + 128], fill=0.0)
                tw.wgmma_wait(0)
                upper = upper + part * (of_upper * of_block)[:, None]
                tw.wgmma(part, sA[slot, w * 128 + 64 : w * 128 + 128, :], sB[slot].T, zero=True)
                tw.wgmma_wait(0)
                ring.release()
                lower = lower + part * (of_lower * of_block)[:, None]
            for j in tw.unroll(4):
                tw.tma_store_wait(0, read=True)
                done.sync()
                tw.store(sC[w, 0:64, :], upper[:, j * 32 : j * 32 + 32].to(bf16))
                tw.store(sC[w, 64:128, :], lower[:, j * 32 : j * 32 + 32].to(bf16))
                tw.fence_async()
                done.sync()
                tw.tma_store(C[row : row + 128, bn, j * 32 : j * 32 + 32], sC[w])
                tw.tma_store_commit()
        tw.tma_store_wait(0)
