// Families of random kernels about order: slots and phases over several loops, masks and shifts for rings, arrivals of copies, named
// barriers, batches, sums between blocks of a cluster and of a team.
#include "diagnose/random_writer.h"

namespace tw::diagnose {
namespace {

// A count modulo the stages, in one of the ways people write it.
std::string slot_of(RandomWriter& w, const std::string& count, int stages) {
    const bool power = (stages & (stages - 1)) == 0;
    if (stages == 2 && w.chance(20)) return fmt::format("0 if {} % 2 == 0 else 1", count);
    switch (w.below(power ? 5 : 3)) {
        case 0: return fmt::format("{} % {}", count, stages);
        case 1: return fmt::format("{} - {} // {} * {}", count, count, stages, stages);
        case 2: return fmt::format("({} + {}) % {}", count, stages, stages);
        case 3: return fmt::format("{} & {}", count, stages - 1);
        default: return fmt::format("({} ^ {}) & {}", count, stages > 1 ? 1 : 0, stages - 1);
    }
}

// Two loops, one ring of buffers: the slot follows the count of all rounds.
std::string nested(RandomWriter& w) {
    const std::string t = w.word({"f32", "bf16", "i32"});
    const int B = w.pick({8, 16, 32}), stages = w.pick({1, 2, 2, 3, 4, 6, 8});
    for (const char* s : {"M", "N"}) w.size(s);
    const bool transposed = w.chance(60);
    w.parameter(fmt::format("X: tw.Tensor({}, M, N)", t));
    w.parameter(transposed ? fmt::format("Y: tw.Tensor({}, N, M)", t) : fmt::format("Y: tw.Tensor({}, M, N)", t));
    w.parameter(fmt::format("T: tw.const = {}", B));
    w.line(fmt::format("s = tw.shared({}, ({}, T, T), pad=1)", t, stages));
    const int outer = w.below(3);  // one block for all, a persistent loop, a loop of chunks
    if (outer == 0) w.line("tw.grid(1)");
    if (outer == 2) w.line("first = tw.grid(tw.cdiv(M, 2 * T)) * 2");
    const bool counted = w.chance(60);
    if (counted) w.line("count = 0");
    if (outer == 0) w.open("for m in tw.range(tw.cdiv(M, T)):");
    if (outer == 1) w.open("for m in tw.persistent(tw.cdiv(M, T)):");
    if (outer == 2) w.open("for r in tw.range(2):"), w.line("m = first + r");
    w.open("for c in tw.range(tw.cdiv(N, T)):");
    // The same number without a counter: the round's own, where it is known.
    const std::string round = outer == 1 ? "c" : fmt::format("({} * tw.cdiv(N, T) + c)", outer == 2 ? "r" : "m");
    const bool joint = counted || outer != 1;
    w.line(fmt::format("slot = {}", slot_of(w, counted ? "count" : round, stages)));
    // A number that starts again in every round of a persistent loop, or one slot: a barrier before the slot is written again.
    if (!joint || stages == 1) w.line("tw.sync()");
    w.line(fmt::format("tw.store(s[slot], tw.load(X[m * T : m * T + T, c * T : c * T + T], fill={}))", RandomWriter::zero(t)));
    w.line("tw.sync()");
    w.line(transposed ? "tw.store(Y[c * T : c * T + T, m * T : m * T + T], tw.load(s[slot].T))"
                      : "tw.store(Y[m * T : m * T + T, c * T : c * T + T], tw.load(s[slot]))");
    if (counted) w.line("count = count + 1");
    w.close();
    w.close();
    return w.file("sm_80", transposed ? "Y[n, m] = X[m, n]" : "Y[m, n] = X[m, n]", fmt::format("threads={}", w.pick({32, 64, 128})));
}

// A persistent loop of a producer and a consumer with raw mbarriers: phases count the rounds of this block, not the tiles of all.
std::string persistent_phases(RandomWriter& w) {
    const int stages = w.pick({1, 1, 2, 3, 4}), BM = w.pick({16, 32});
    const bool inner = w.chance(50);  // chunks of columns inside each tile
    for (const char* s : {"M", "N"}) w.size(s);
    w.parameter("X: tw.Tensor(f32, M, N)");
    w.parameter("Y: tw.Tensor(f32, M, N)");
    w.line(inner ? "tw.assume(N % 4 == 0)" : "tw.assume(N == 32)");
    w.line(fmt::format("s = tw.shared(f32, ({}, {}, 32))", stages, BM));
    w.line(fmt::format("full = tw.mbarrier({})", stages));
    w.line(fmt::format("empty = tw.mbarrier({})", stages));
    auto loops = [&] {
        w.line("n = 0");
        w.open(fmt::format("for t in tw.persistent(tw.cdiv(M, {})):", BM));
        if (inner) w.open("for c in tw.range(tw.cdiv(N, 32)):");
    };
    const std::string column = inner ? "c * 32" : "0";
    auto end_loops = [&] {
        w.line("n = n + 1");
        if (inner) w.close();
        w.close(), w.close();
    };
    const std::string slot = slot_of(w, "n", stages), phase = stages == 1 ? "n" : fmt::format("(n // {})", stages);
    w.open("with tw.warpgroups(0, name=\"producer\"):");
    loops();
    w.line("slot = " + slot);
    w.line(fmt::format("empty[slot].wait(({} + 1) % 2)", phase));
    w.line(fmt::format("full[slot].expect({} * 32 * 4)", BM));
    w.line(fmt::format("tw.tma_load(s[slot], X[t * {}, {}], on=full[slot])", BM, column));
    end_loops();
    w.open("with tw.warpgroups(1, name=\"consumer\"):");
    w.line("readers = tw.named_barrier(1, 128)");
    loops();
    w.line("slot = " + slot);
    w.line(fmt::format("full[slot].wait({} % 2)", phase));
    w.line("x = tw.load(s[slot])");
    w.line("readers.sync()");
    w.open("with tw.elected():");
    w.line("empty[slot].arrive()");
    w.close();
    w.line(fmt::format("tw.store(Y[t * {}, {}], x * 2.0)", BM, column));
    end_loops();
    return w.file("sm_90a", "Y[m, n] = X[m, n] * 2.0", "");
}

// Copies that arrive on an mbarrier by themselves.
std::string arrivals(RandomWriter& w) {
    const int BN = w.pick({128, 256, 512}), threads = w.pick({32, 64, 128});
    w.size("N");
    const bool each = w.chance(60);  // every copy counts as an arrival; or none does, and one thread arrives after all have asked
    w.parameter("X: tw.Tensor(f32, N)");
    w.parameter("Y: tw.Tensor(f32, N)");
    w.line("tw.assume(N % 4 == 0)");
    w.line(fmt::format("s = tw.shared(f32, ({},))", BN));
    w.line(fmt::format("landed = tw.mbarrier(1, arrivals={})", each ? threads : 1));
    const bool loops = w.chance(50);
    if (loops) {
        w.line("start = tw.grid(tw.cdiv(N, 4 * " + std::to_string(BN) + ")) * 4");
        w.open("for r in tw.range(4):");
        w.line(fmt::format("i = (start + r) * {}", BN));
        w.line("tw.sync()");
    } else {
        w.line(fmt::format("i = tw.grid(tw.cdiv(N, {})) * {}", BN, BN));
    }
    w.line(fmt::format("tw.cp_async(s, X[i : i + {}])", BN));
    if (each) {
        w.line("tw.cp_async_arrive(landed[0], noinc=True)");
    } else {
        w.line("tw.cp_async_arrive(landed[0], noinc=False)");
        w.line("tw.sync()");
        w.line("landed[0].arrive()");
    }
    w.line(loops ? "landed[0].wait(r % 2)" : "landed[0].wait(0)");
    w.line(fmt::format("tw.store(Y[i : i + {}], tw.load(s, layout=tw.blocked(vector={})))", BN, w.pick({1, 2, 4})));
    if (loops) w.close();
    return w.file("sm_80", "Y[n] = X[n]", fmt::format("threads={}", threads));
}

// A row over the blocks of a cluster, with the peers' partial sums.
std::string cluster_sums(RandomWriter& w) {
    const int blocks = w.pick({2, 4}), chunk = w.pick({64, 128});
    const bool halves = w.chance(50), second = w.chance(40);
    for (const char* s : {"M", "N"}) w.size(s);
    w.parameter("X: tw.Tensor(f32, M, N)");
    w.parameter(second ? "Y: tw.Tensor(f32, M, N)" : "S: tw.Tensor(f32, M)");
    w.line(fmt::format("tw.assume(N <= {})", blocks * chunk));
    w.line(fmt::format("rank, m = tw.grid({}, M)", blocks));
    w.line("part = tw.shared(f32, (1,))");
    w.line(fmt::format("x = tw.load(X[m, rank * {} : rank * {} + {}], fill=0.0)", chunk, chunk, chunk));
    w.line("tw.store(part[0], tw.sum(x, axis=0))");
    if (halves) w.line("tw.cluster_arrive()"), w.line("tw.cluster_wait()");
    else w.line("tw.cluster_sync()");
    w.line("total = tw.load(part[0], rank=0)");
    w.open(fmt::format("for r in tw.unroll({}):", blocks - 1));
    w.line("total = total + tw.load(part[0], rank=r + 1)");
    w.close();
    w.line("tw.cluster_sync()");
    if (second) {
        w.line(fmt::format("tw.store(Y[m, rank * {} : rank * {} + {}], x - total)", chunk, chunk, chunk));
        return w.file("sm_90a", "Y[m, n] = X[m, n] - sum(k, X[m, k])", fmt::format("cluster=({}, 1, 1), threads=64", blocks));
    }
    w.open("if rank == 0:");
    w.line("tw.store(S[m], total)");
    w.close();
    return w.file("sm_90a", "S[m] = sum(n, X[m, n])", fmt::format("cluster=({}, 1, 1), threads=64", blocks));
}

// A row over all blocks of the grid: messages of a team, sent ahead.
std::string team(RandomWriter& w) {
    const int blocks = w.pick({2, 4}), chunk = w.pick({64, 128}), ahead = w.pick({0, 1, 2});
    for (const char* s : {"M", "N"}) w.size(s);
    w.parameter("X: tw.Tensor(f32, M, N)");
    w.parameter("Y: tw.Tensor(f32, M, N)");
    w.line(fmt::format("tw.assume(N <= {})", blocks * chunk));
    w.line(fmt::format("rank = tw.grid({})", blocks));
    w.line(fmt::format("n = rank * {}", chunk));
    w.line(fmt::format("row = tw.team(1, messages=M, depth={})", ahead + 1));
    const std::string part = fmt::format("n : n + {}", chunk);
    if (ahead > 0) {
        w.open(fmt::format("for k in tw.range({}):", ahead));
        w.open("if k < M:");
        w.line(fmt::format("row.send(k, tw.load(X[k, {}], fill=0.0))", part));
        w.close(), w.close();
    }
    w.open("for m in tw.range(M):");
    if (ahead > 0) w.open(fmt::format("if m + {} < M:", ahead));
    w.line(fmt::format("row.send(m + {}, tw.load(X[m + {}, {}], fill=0.0))", ahead, ahead, part));
    if (ahead > 0) w.close();
    w.line("total = row.receive(m)");
    w.line(fmt::format("tw.store(Y[m, {}], tw.load(X[m, {}], fill=0.0) - total)", part, part));
    w.close();
    return w.file("sm_90a", "Y[m, n] = X[m, n] - sum(i, X[m, i])", "threads=64");
}

// Sums through TMA, a batch of products, windows of an accumulator.
std::string batches(RandomWriter& w) {
    const int kind = w.below(3);
    if (kind == 0) {  // tiles added to their place by TMA
        for (const char* s : {"M", "N"}) w.size(s);
        w.parameter("X: tw.Tensor(f32, M, N)");
        w.parameter("Y: tw.Tensor(f32, 16, N, zeroed=True)");
        w.line("tw.assume(N % 4 == 0)");
        w.line("bm, bn = tw.grid(tw.cdiv(M, 16), tw.cdiv(N, 32))");
        w.line("s = tw.shared(f32, (16, 32))");
        w.line("tw.store(s, tw.load(X[bm * 16 : bm * 16 + 16, bn * 32 : bn * 32 + 32], fill=0.0))");
        w.line("tw.fence_async()");
        w.line("tw.sync()");
        w.line("tw.tma_reduce_add(Y[0, bn * 32], s)");
        w.line("tw.tma_store_commit()");
        w.line("tw.tma_store_wait(0)");
        return w.file("sm_90a", "Y[r, n] = sum(t in 0:(M + 15) // 16, where(t * 16 + r < M, X[minimum(t * 16 + r, M - 1), n], 0.0))",
                      "threads=128");
    }
    for (const char* s : {"M", "N", "K"}) w.size(s);
    w.parameter("A: tw.Tensor(bf16, M, K)");
    w.parameter("B: tw.Tensor(bf16, N, K)");
    w.parameter("C: tw.Tensor(f32, M, N)");
    w.line("tw.assume(K % 8 == 0)");
    w.line("bm, bn = tw.grid(tw.cdiv(M, 64), tw.cdiv(N, 64))");
    w.line("sA = tw.shared(bf16, (64, 64), swizzle=128)");
    w.line("sB = tw.shared(bf16, (64, 64), swizzle=128)");
    w.line("bar = tw.mbarrier(1)");
    w.line("acc = tw.zeros(f32, (64, 64), layout=tw.wgmma_c())");
    w.open("for kt in tw.range(tw.cdiv(K, 64)):");
    w.line("bar[0].expect(2 * 64 * 64 * 2)");
    w.line("tw.tma_load(sA, A[bm * 64, kt * 64], on=bar[0])");
    w.line("tw.tma_load(sB, B[bn * 64, kt * 64], on=bar[0])");
    w.line("bar[0].wait(kt % 2)");
    w.open("with tw.wgmma_batch():");
    w.line("tw.wgmma(acc, sA, sB.T)");
    w.close();
    w.line("tw.wgmma_wait(0)");
    w.line("tw.sync()");
    w.close();
    if (kind == 1) {
        w.line("tw.store(C[bm * 64, bn * 64], acc)");
        return w.file("sm_90a", "C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))", "threads=128");
    }
    w.open("for j in tw.unroll(2):");
    w.line("tw.store(C[bm * 64, bn * 64 + j * 32], acc[:, j * 32 : j * 32 + 32] * 0.5)");
    w.close();
    return w.file("sm_90a", "C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k])) * 0.5", "threads=128");
}

// Warps hand lines to one another through named barriers and warp-level ones.
std::string warps(RandomWriter& w) {
    const int count = w.pick({2, 3, 4});
    w.size("N");
    w.parameter("X: tw.Tensor(f32, N)");
    w.parameter("Y: tw.Tensor(f32, N)");
    w.line(fmt::format("i = tw.grid(tw.cdiv(N, {})) * {}", 32 * count, 32 * count));
    w.line(fmt::format("bars = tw.mbarrier({}, arrivals=1)", count));
    w.line(fmt::format("s = tw.shared(f32, ({}, 32))", count));
    std::string list = "0";
    for (int n = 1; n < count; ++n) list += fmt::format(", {}", n);
    w.open(fmt::format("with tw.warps({}) as w:", list));
    w.line("tw.store(s[w], tw.load(X[i + w * 32 : i + w * 32 + 32], fill=0.0) * 3.0)");
    w.line("tw.syncwarp()");
    w.open("with tw.elected():");
    w.line("bars[w].arrive()");
    w.close();
    w.close();
    w.open(fmt::format("with tw.warps({}):", count));
    w.open(fmt::format("for n in tw.unroll({}):", count));
    w.line("bars[n].wait(0)");
    w.line("tw.store(Y[i + n * 32 : i + n * 32 + 32], tw.load(s[n]))");
    w.close();
    w.close();
    return w.file("sm_90a", "Y[n] = X[n] * 3.0", "");
}

}  // namespace

std::vector<NamedFamily> order_families() {
    return {{"nested", nested, 12}, {"phases", persistent_phases, 8}, {"arrivals", arrivals, 4}, {"cluster_sums", cluster_sums, 4},
            {"team", team, 3},      {"batches", batches, 3},          {"warps", warps, 2}};
}

}  // namespace tw::diagnose
