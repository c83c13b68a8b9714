// Families of random kernels that lean on what is promised or stated: contents of index tensors, strides, invariants, branches on data,
// rows that start anywhere.
#include "diagnose/random_writer.h"

namespace tw::diagnose {
namespace {

// Sums over what names a place: rows, numbers, their weights; onto what is there or onto zeros.
std::string sums_by_place(RandomWriter& w) {
    const int BM = w.pick({8, 16}), BN = w.pick({16, 32});
    const bool onto = w.chance(40), said = w.chance(40), promised = w.chance(40);
    for (const char* s : {"P", "V"}) w.size(s);
    const std::string places = fmt::format("at: tw.Tensor(i32, P{})", promised ? ", range=(-1, V)" : "");
    const std::string started = onto ? "" : ", zeroed=True";
    if (w.chance(30)) {  // how often each number occurs
        w.parameter(places);
        w.parameter(fmt::format("H: tw.Tensor(i32, V{})", started));
        w.line(fmt::format("i = tw.grid(tw.cdiv(P, {0})) * {0}", 4 * BN));
        w.line(fmt::format("tw.atomic_add(H[tw.load(at[i : i + {0}], fill=-1)], tw.full(i32, ({0},), 1))", 4 * BN));
        return w.file("sm_80", said ? fmt::format("H[v] = {}sum(p, where(at[p] == v, 1, 0))", onto ? "H[v] + " : "") : "H[at[p]] += 1",
                      "threads=32");
    }
    w.size("N");
    const bool weighed = w.chance(30);
    const std::string row = weighed ? "W[p] * X[p, n]" : "X[p, n]";
    w.parameter("X: tw.Tensor(f32, P, N)");
    if (weighed) w.parameter("W: tw.Tensor(f32, P)");
    w.parameter(places);
    w.parameter(fmt::format("G: tw.Tensor(f32, V, N{})", started));
    const bool loops = w.chance(30);
    w.line(loops ? fmt::format("bn = tw.grid(tw.cdiv(N, {}))", BN)
                 : fmt::format("bn, bp = tw.grid(tw.cdiv(N, {}), tw.cdiv(P, {}))", BN, BM));
    if (loops) w.open(fmt::format("for bp in tw.range(tw.cdiv(P, {})):", BM));
    w.line(fmt::format("place = tw.load(at[bp * {0} : bp * {0} + {0}], fill={1})", BM, w.chance(70) ? -1 : 0));
    w.line(fmt::format("x = tw.load(X[bp * {0} : bp * {0} + {0}, bn * {1} : bn * {1} + {1}], fill=0.0)", BM, BN));
    if (weighed) w.line(fmt::format("x = x * tw.load(W[bp * {0} : bp * {0} + {0}], fill=0.0)[:, None]", BM));
    w.line(fmt::format("tw.atomic_add(G[place, bn * {0} : bn * {0} + {0}], x)", BN));
    if (loops) w.close();
    return w.file("sm_80",
                  said ? fmt::format("G[v, n] = {}sum(p, where(at[p] == v, {}, 0.0))", onto ? "G[v, n] + " : "", row)
                       : fmt::format("G[at[p], n] += {}", row),
                  "threads=64");
}

// Rows by group: offsets, permutations, tables of tiles, places in a range.
std::string groups(RandomWriter& w) {
    const int BM = w.pick({8, 16}), BN = w.pick({16, 32});
    const int kind = w.below(5);
    if (kind == 4) return sums_by_place(w);
    const std::string f = RandomWriter::zero("f32");
    if (kind == 0) {  // every group by itself
        for (const char* s : {"P", "E", "N"}) w.size(s);
        w.parameter("X: tw.Tensor(f32, P, N)");
        w.parameter("W: tw.Tensor(f32, E, N)");
        w.parameter("expert: tw.Tensor(i32, P)");
        w.parameter("starts: tw.Tensor(i32, E + 1, offsets_of=\"expert\")");
        w.parameter("Y: tw.Tensor(f32, P, N)");
        w.line(fmt::format("bn, e = tw.grid(tw.cdiv(N, {}), E)", BN));
        w.line("end = starts[e + 1]");
        w.line(fmt::format("w = tw.load(W[e, bn * {} : bn * {} + {}], fill=0.0)", BN, BN, BN));
        w.open(fmt::format("for m in tw.range(tw.cdiv(end - starts[e], {})):", BM));
        w.line(fmt::format("row = starts[e] + m * {}", BM));
        w.line(fmt::format("x = tw.load(X[row : row + {}, bn * {} : bn * {} + {}], fill=0.0)", BM, BN, BN, BN));
        w.line(fmt::format("tw.store(Y[row, bn * {}], x * w[None, :], limit=(end, None))", BN));
        w.close();
        return w.file("sm_80", "Y[p, n] = X[p, n] * W[expert[p], n]", fmt::format("threads={}", w.pick({32, 64, 128})));
    }
    if (kind == 1) {  // to their places, which are a permutation
        for (const char* s : {"P", "N"}) w.size(s);
        w.parameter("X: tw.Tensor(f32, P, N)");
        w.parameter("to: tw.Tensor(i32, P)");
        w.parameter("source: tw.Tensor(i32, P, inverse_of=\"to\")");
        w.parameter("Y: tw.Tensor(f32, P, N)");
        w.line(fmt::format("bn, bp = tw.grid(tw.cdiv(N, {}), tw.cdiv(P, {}))", BN, BM));
        w.line(fmt::format("place = tw.load(to[bp * {} : bp * {} + {}], fill=-1)", BM, BM, BM));
        w.line(fmt::format("x = tw.load(X[bp * {} : bp * {} + {}, bn * {} : bn * {} + {}], fill=0.0)", BM, BM, BM, BN, BN, BN));
        w.line(fmt::format("tw.store(Y[place, bn * {} : bn * {} + {}], x)", BN, BN, BN));
        return w.file("sm_80", "Y[i, n] = X[source[i], n]", "threads=64");
    }
    if (kind == 2) {  // by a table of tiles
        for (const char* s : {"P", "E", "N", "TILES"}) w.size(s);
        w.parameter("X: tw.Tensor(f32, P, N)");
        w.parameter("W: tw.Tensor(f32, E, N)");
        w.parameter("expert: tw.Tensor(i32, P, range=E)");
        w.parameter("first: tw.Tensor(i32, TILES)");
        w.parameter(fmt::format("end: tw.Tensor(i32, TILES, tile_ends=(\"first\", {}, \"expert\"))", BM));
        w.parameter("Y: tw.Tensor(f32, P, N)");
        w.line(fmt::format("bn, t = tw.grid(tw.cdiv(N, {}), TILES)", BN));
        w.line("row = first[t]");
        w.line(fmt::format("w = tw.load(W[expert[row], bn * {} : bn * {} + {}], fill=0.0)", BN, BN, BN));
        w.line(fmt::format("x = tw.load(X[row : row + {}, bn * {} : bn * {} + {}], fill=0.0)", BM, BN, BN, BN));
        w.line(fmt::format("tw.store(Y[row, bn * {}], x * w[None, :], limit=(end[t], None))", BN));
        return w.file("sm_80", "Y[p, n] = X[p, n] * W[expert[p], n]", "threads=64");
    }
    for (const char* s : {"P", "T", "N"}) w.size(s);
    w.parameter("X: tw.Tensor(f32, T, N)");
    w.parameter(fmt::format("rows: tw.Tensor(i32, P, range=T{})", w.chance(30) ? ", sorted=True" : ""));
    w.parameter("Y: tw.Tensor(f32, P, N)");
    w.line("tw.assume(T >= 1)");
    w.line(fmt::format("bn, bp = tw.grid(tw.cdiv(N, {}), tw.cdiv(P, {}))", BN, BM));
    w.line(fmt::format("x = tw.load(X[tw.load(rows[bp * {} : bp * {} + {}], fill=0), bn * {} : bn * {} + {}], fill=0.0)", BM, BM, BM, BN,
                       BN, BN));
    w.line(fmt::format("tw.store(Y[bp * {}, bn * {}], x + 1.0)", BM, BN));
    return w.file("sm_80", "Y[p, n] = X[rows[p], n] + 1.0", "threads=64");
}

// Tensors whose rows lie apart, or side by side; a part of the output alone; a number.
std::string strided(RandomWriter& w) {
    const int BN = w.pick({32, 64}), kind = w.below(4);
    for (const char* s : {"M", "N"}) w.size(s);
    if (kind == 0) {
        const int apart = w.pick({1, 3, 8});
        w.parameter(fmt::format("X: tw.Tensor(f32, M, N, strides=(N + {}, 1))", apart));
        w.parameter(fmt::format("Y: tw.Tensor(f32, M, N, strides=({}, 1))", w.word({"N + 1", "2 * N", "N + 4"})));
        w.line(fmt::format("bn, m = tw.grid(tw.cdiv(N, {}), M)", BN));
        w.line(fmt::format("tw.store(Y[m, bn * {} : bn * {} + {}], tw.load(X[m, bn * {} : bn * {} + {}], fill=0.0) + 1.0)", BN, BN, BN, BN,
                           BN, BN));
        return w.file("sm_80", "Y[m, n] = X[m, n] + 1.0", "threads=32");
    }
    if (kind == 1) {  // by columns
        w.parameter("X: tw.Tensor(f32, M, N, strides=(1, M))");
        w.parameter("Y: tw.Tensor(f32, N, M)");
        w.line(fmt::format("bm, n = tw.grid(tw.cdiv(M, {}), N)", BN));
        w.line(
            fmt::format("tw.store(Y[n, bm * {} : bm * {} + {}], tw.load(X[bm * {} : bm * {} + {}, n], fill=0.0))", BN, BN, BN, BN, BN, BN));
        return w.file("sm_80", "Y[n, m] = X[m, n]", "threads=32");
    }
    if (kind == 2) {  // one number
        w.parameter("X: tw.Tensor(f32, M, N)");
        w.parameter("L: tw.Tensor(f32, zeroed=True)");
        w.line(fmt::format("bn, m = tw.grid(tw.cdiv(N, {}), M)", BN));
        w.line(fmt::format("x = tw.load(X[m, bn * {} : bn * {} + {}], fill=0.0)", BN, BN, BN));
        w.line("tw.atomic_add(L, tw.sum(x * x, axis=0))");
        return w.file("sm_80", "L = sum((m, n), X[m, n] * X[m, n])", "threads=32");
    }
    const int first = w.pick({1, 4, 7});
    w.parameter("X: tw.Tensor(f32, M, N)");
    w.parameter("Y: tw.Tensor(f32, M, N)");
    w.line(fmt::format("tw.assume(N >= {})", first + 1));
    w.line(fmt::format("bn, m = tw.grid(tw.cdiv(N - {}, {}), M)", first, BN));
    w.line(fmt::format("i = {} + bn * {}", first, BN));
    w.line(fmt::format("tw.store(Y[m, i : i + {}], tw.load(X[m, i - {} : i - {} + {}], fill=0.0))", BN, first, first, BN));
    return w.file("sm_80", fmt::format("Y[m, n in {}:N] = X[m, n - {}]", first, first), "threads=32");
}

// What a reader states beside the code, and branches that change nothing.
std::string stated(RandomWriter& w) {
    const int kind = w.below(4);
    if (kind == 0) {  // a product with its invariants
        for (const char* s : {"M", "N", "K"}) w.size(s);
        w.parameter("A: tw.Tensor(bf16, M, K)");
        w.parameter("B: tw.Tensor(bf16, N, K)");
        w.parameter("C: tw.Tensor(f32, M, N)");
        w.line("tw.assume(K % 8 == 0)");
        w.line("tw.tag(A[row, depth], step=depth // 32)");
        w.line("bn, bm = tw.grid(tw.cdiv(N, 32), tw.cdiv(M, 32))");
        w.line("sA = tw.shared(bf16, (32, 32), swizzle=64)");
        w.line("sB = tw.shared(bf16, (32, 32), swizzle=64)");
        w.line("acc = tw.zeros(f32, (32, 32), layout=tw.mma_c(warps=(2, 2)))");
        w.line("tw.expect(tw.fresh(acc))");
        w.open("for kt in tw.range(tw.cdiv(K, 32)):");
        w.line("tw.sync()");
        w.line("tw.cp_async(sA, A[bm * 32, kt * 32])");
        w.line("tw.cp_async(sB, B[bn * 32, kt * 32])");
        w.line("tw.cp_async_commit()");
        w.line("tw.cp_async_wait(0)");
        w.line("tw.sync()");
        w.line("tw.expect(sA[i, q].k == sB[j, q].k)");
        w.line("a = tw.load(sA, layout=tw.mma_a())");
        w.line("tw.expect(a.step == kt)");
        w.line("tw.mma(acc, a, tw.load(sB, layout=tw.mma_b()))");
        w.close();
        w.line("tw.expect(tw.covers(acc.k, 0, K))");
        w.line("tw.store(C[bm * 32, bn * 32], acc)");
        return w.file("sm_80", "C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))", "threads=128");
    }
    if (kind == 1) {
        w.size("N");
        w.parameter("X: tw.Tensor(f32, N)");
        w.parameter("Y: tw.Tensor(f32, N)");
        w.line("tw.assume(N >= 128)");
        w.line("tw.tag(X[n])");
        w.line("low = tw.load(X[0:64])");
        w.line("high = tw.load(X[64:128])");
        w.line("tw.expect(tw.disjoint(low.n, high.n))");
        w.line("tw.expect(high.n == low.n + 64)");
        w.line("tw.store(Y[0:64], low - high)");
        return w.file("sm_80", "Y[n in 0:64] = X[n] - X[n + 64]", "threads=64");
    }
    for (const char* s : {"M", "N"}) w.size(s);
    w.parameter("X: tw.Tensor(f32, M, N)");
    w.parameter("S: tw.Tensor(f32, M)");
    if (kind == 2 && !w.exact()) {  // a sum relative to the first element, again where it leaves the range
        w.line("tw.assume(1 <= N and N <= 64)");
        w.line("m = tw.grid(tw.cdiv(M, 4)) * 4");
        w.line("x = tw.load(X[m : m + 4, 0:64], fill=float(\"-inf\"), layout=tw.warp_rows(vector=2))");
        w.line("first = tw.load(X[m : m + 4, 0], fill=0.0)");
        w.line("total = tw.sum(tw.exp(x - first[:, None]), axis=1)");
        w.line("s = first + tw.log(total)");
        w.open("if tw.any((total > 1.0e30) | (total < 1.0e-30)):");
        w.line("top = tw.max(x, axis=1)");
        w.line("s = top + tw.log(tw.sum(tw.exp(x - top[:, None]), axis=1))");
        w.close();
        w.line("tw.store(S[m : m + 4], s)");
        return w.file("sm_80", "S[m] = logsumexp(n, X[m, n])", "threads=128");
    }
    w.line("m = tw.grid(tw.cdiv(M, 4)) * 4");  // a running maximum, asked first
    w.line("top = tw.full(f32, (4,), float(\"-inf\"))");
    w.open("for c in tw.range(tw.cdiv(N, 64)):");
    w.line("x = tw.load(X[m : m + 4, c * 64 : c * 64 + 64], fill=float(\"-inf\"), layout=tw.warp_rows(vector=2))");
    w.open("if tw.any(x >= top[:, None]):");
    w.line("top = tw.maximum(top, tw.max(x, axis=1))");
    w.close();
    w.close();
    w.line("tw.store(S[m : m + 4], top)");
    return w.file("sm_80", "S[m] = max(n, X[m, n])", "threads=128");
}

// Rows that begin anywhere: in whole vectors from the multiple before, copied by cp.async, or shifted in shared memory.
std::string odd_rows(RandomWriter& w) {
    for (const char* s : {"M", "N"}) w.size(s);
    const int kind = w.below(3);
    if (kind == 0) {
        const int p = w.pick({1, 3, 5, 7});
        w.parameter("X: tw.Tensor(bf16, M, N)");
        w.parameter("Y: tw.Tensor(bf16, N, M)");
        w.line(fmt::format("tw.assume(N % 8 == {})", p));
        w.line("bm, bn = tw.grid(tw.cdiv(M, 32), tw.cdiv(N, 32))");
        w.line(fmt::format("s = tw.shared(bf16, (32, 32), pad={})", 8 + p));
        w.line("tw.cp_async(s, X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], whole_vectors=True)");
        w.line("tw.cp_async_commit()");
        w.line("tw.cp_async_wait(0)");
        w.line("tw.sync()");
        w.line("tw.store(Y[bn * 32, bm * 32], tw.load(s.T))");
        return w.file("sm_80", "Y[n, m] = X[m, n]", "threads=64");
    }
    w.parameter("X: tw.Tensor(bf16, M, N)");
    w.parameter("Y: tw.Tensor(bf16, M, N)");
    if (kind == 1) {
        w.line("tw.assume(1 <= N and N + 7 <= 128)");
        w.line("m = tw.grid(M)");
        w.line("n = -(m % 8 * (N % 8) % 8)");
        w.line("x = tw.load(X[m, n : n + 128], fill=0.0)");
        w.line("tw.store(Y[m, n : n + 128], x + x)");
        return w.file("sm_80", "Y[m, n] = X[m, n] + X[m, n]", "threads=32");
    }
    const int modulus = w.pick({4, 8, 16});  // a place in shared memory that depends on a residue of the size
    w.line("m, bn = tw.grid(M, tw.cdiv(N, 64))");
    w.line(fmt::format("shift = N % {}", modulus));
    w.line(fmt::format("s = tw.shared(bf16, ({},))", 64 + modulus));
    w.line("tw.store(s[shift : shift + 64], tw.load(X[m, bn * 64 : bn * 64 + 64], fill=0.0))");
    w.line("tw.sync()");
    w.line("tw.store(Y[m, bn * 64 : bn * 64 + 64], tw.load(s[shift : shift + 64]))");
    return w.file("sm_80", "Y[m, n] = X[m, n]", "threads=64");
}

// A raster of tiles written by hand: groups of rows, the last one ragged.
std::string raster(RandomWriter& w) {
    const int B = w.pick({8, 16, 32}), group = w.pick({2, 3, 4, 8, 16});
    for (const char* s : {"M", "N"}) w.size(s);
    w.parameter("X: tw.Tensor(f32, M, N)");
    w.parameter("Y: tw.Tensor(f32, M, N)");
    w.parameter(fmt::format("T: tw.const = {}", B));
    const int kind = w.below(3);
    if (kind == 0) {
        w.open(fmt::format("for bm, bn in tw.tiles(M, N, T, T, group={}):", group));
    } else if (kind == 1) {
        w.line("rows = tw.cdiv(M, T)");
        w.line("columns = tw.cdiv(N, T)");
        w.open("for t in tw.persistent(tw.cdiv(M, T) * tw.cdiv(N, T)):");
        w.line(fmt::format("first = t // ({} * columns) * {}", group, group));
        w.line(fmt::format("high = tw.min(rows - first, {})", group));
        w.line("bm = first + (t - first * columns) % high");
        w.line("bn = (t - first * columns) // high");
    } else {
        w.line("columns = tw.cdiv(N, T)");
        w.open("for t in tw.persistent(tw.cdiv(M, T) * tw.cdiv(N, T)):");
        w.line("bm = t // columns");
        w.line("bn = t % columns");
    }
    w.line("tw.store(Y[bm * T, bn * T], tw.load(X[bm * T : bm * T + T, bn * T : bn * T + T], fill=0.0) * 2.0)");
    w.close();
    return w.file("sm_80", "Y[m, n] = X[m, n] * 2.0", fmt::format("threads={}", w.pick({32, 64})));
}

}  // namespace

std::vector<NamedFamily> promise_families() {
    return {{"groups", groups, 5}, {"strided", strided, 5}, {"stated", stated, 4}, {"odd_rows", odd_rows, 5}, {"raster", raster, 7}};
}

}  // namespace tw::diagnose
