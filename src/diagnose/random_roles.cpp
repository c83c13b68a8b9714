// Families of random kernels with roles: rings of mbarriers filled by TMA or by ordinary stores, wgmma, named barriers, clusters.
#include "diagnose/random_writer.h"

namespace tw::diagnose {

namespace {

using Filled = RandomWriter::Filled;

// A producer warpgroup brings chunks through a ring, consumers work on them; the ring is tw.pipeline or raw mbarriers.
std::string ring(RandomWriter& w, bool raw) {
    const std::string t = w.word({"bf16", "f32", "f16", "i32"});
    const int size = RandomWriter::bytes(t);
    const int stages = w.pick({1, 2, 3, 4}), BM = w.pick({16, 32, 64}), BN = w.pick({32, 64});
    const int consumers = raw ? 1 : w.pick({1, 1, 2});
    const bool tiles = !raw && w.chance(40), fold = t != "i32" && !tiles && w.chance(25);
    const bool by_stores = !raw && w.chance(25);  // the producer writes with ordinary stores
    const bool tma_out = !fold && w.chance(35);
    for (const char* s : {"M", "N"}) w.size(s);
    w.parameter(fmt::format("X: tw.Tensor({}, M, N)", t));
    w.parameter(fold ? "Y: tw.Tensor(f32, M)" : fmt::format("Y: tw.Tensor({}, M, N)", t));
    w.parameter(fmt::format("BM: tw.const = {}", BM));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    w.parameter(fmt::format("STAGES: tw.const = {}", stages));
    w.line("tw.assume(N % 8 == 0)");
    if (!tiles) w.line("bm = tw.grid(tw.cdiv(M, BM))");
    const int per = BM / consumers;
    w.line(fmt::format("s = tw.shared({}, (STAGES, BM, BN){})", t, w.buffer_options(t, BM, BN, Filled::by_tma)));
    if (tma_out) w.line(fmt::format("o = tw.shared({}, ({}, {}, BN){})", t, consumers, per, w.buffer_options(t, per, BN, Filled::by_tma)));
    if (raw) {
        w.line("full = tw.mbarrier(STAGES)");
        w.line("empty = tw.mbarrier(STAGES)");
    } else {
        w.line(fmt::format("ring = tw.pipeline(STAGES, consumers={})", consumers));
    }
    auto loops = [&] {
        if (tiles) w.open("for bm in tw.persistent(tw.cdiv(M, BM)):");
        w.open("for c in tw.range(tw.cdiv(N, BN)):");
    };
    auto end_loops = [&] {
        w.close();
        if (tiles) w.close();
    };
    w.open("with tw.warpgroups(0, name=\"producer\"):");
    loops();
    if (raw) {
        w.open("if c >= STAGES:");
        w.line("empty[c % STAGES].wait((c // STAGES + 1) % 2)");
        w.close();
        w.line(fmt::format("full[c % STAGES].expect(BM * BN * {})", size));
        w.line("tw.tma_load(s[c % STAGES], X[bm * BM, c * BN], on=full[c % STAGES])");
    } else if (by_stores) {
        w.line(fmt::format("x = tw.load(X[bm * BM : bm * BM + BM, c * BN : c * BN + BN], fill={})", RandomWriter::zero(t)));
        w.line("slot = ring.acquire()");
        w.line("tw.store(s[slot], x)");
        w.line("ring.commit(slot)");
    } else {
        w.line("slot = ring.acquire()");
        w.line("tw.tma_load(s[slot], X[bm * BM, c * BN], on=ring.full(slot))");
    }
    end_loops();
    w.close();
    const bool instance = consumers == 2;
    w.open(instance ? "with tw.warpgroups(1, 2, name=\"consumer\") as w:" : "with tw.warpgroups(1, name=\"consumer\"):");
    const std::string row = instance ? fmt::format("bm * BM + w * {}", per) : "bm * BM";
    w.line(instance ? "met = tw.named_barrier(1 + w, 128)" : "met = tw.named_barrier(1, 128)");
    if (fold) w.line(fmt::format("r = tw.zeros(f32, ({},))", per));
    loops();
    const std::string slot = raw ? "c % STAGES" : "slot";
    if (raw) w.line("full[c % STAGES].wait(c // STAGES % 2)");
    else w.line("slot = ring.wait()");
    w.line(instance ? fmt::format("x = tw.load(s[{}, w * {} : w * {} + {}, :])", slot, per, per, per)
                    : fmt::format("x = tw.load(s[{}])", slot));
    w.line("met.sync()");  // all warps have read, before one thread says so
    w.line(raw ? "empty[c % STAGES].arrive()" : "ring.release()");
    std::string spec;
    if (fold) {
        w.line(fmt::format("r = r + tw.sum({}, axis=1)", t == "f32" ? "x" : "x.to(f32)"));
        spec = t == "f32" ? "Y[m] = sum(n, X[m, n])" : "Y[m] = sum(n, f32(X[m, n]))";
    } else {
        const Twin y = w.down(w.elementwise({w.up({"x", "X[m, n]"}, t)}, RandomWriter::computed(t), w.below(3)), t);
        spec = "Y[m, n] = " + y.spec;
        if (tma_out) {
            const std::string out = instance ? "o[w]" : "o[0]";
            w.line("tw.tma_store_wait(0, read=True)");
            w.line("met.sync()");
            w.line(fmt::format("tw.store({}, {})", out, y.code));
            w.line("tw.fence_async()");
            w.line("met.sync()");
            w.line(fmt::format("tw.tma_store(Y[{}, c * BN], {})", row, out));
            w.line("tw.tma_store_commit()");
        } else {
            w.line(fmt::format("tw.store(Y[{}, c * BN], {})", row, y.code));
        }
    }
    end_loops();
    if (fold) w.line(fmt::format("tw.store(Y[{} : {} + {}], r)", row, row, per));
    if (tma_out) w.line("tw.tma_store_wait(0)");
    w.close();
    return w.file("sm_90a", spec, "");
}

std::string tma_ring(RandomWriter& w) { return ring(w, false); }
std::string raw_ring(RandomWriter& w) { return ring(w, true); }

// Products on wgmma, fed by a ring; A from shared memory or registers, B in either orientation.
std::string wgmma(RandomWriter& w) {
    const std::string t = w.word({"bf16", "f16"});
    const int BN = w.pick({64, 128}), stages = w.pick({1, 2, 3}), consumers = w.pick({1, 1, 2});
    const bool columns_of_b = w.chance(35), tiles = w.chance(40), late = stages > 1 && w.chance(50), narrow = w.chance(50);
    const std::string out = narrow ? t : "f32";
    for (const char* s : {"M", "N", "K"}) w.size(s);
    w.parameter(fmt::format("A: tw.Tensor({}, M, K)", t));
    w.parameter(columns_of_b ? fmt::format("B: tw.Tensor({}, K, N)", t) : fmt::format("B: tw.Tensor({}, N, K)", t));
    w.parameter(fmt::format("C: tw.Tensor({}, M, N)", out));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    w.parameter(fmt::format("STAGES: tw.const = {}", stages));
    const int BM = 64 * consumers;
    w.line("tw.assume(K % 8 == 0)");
    w.line("tw.assume(N % 8 == 0)");
    if (!tiles) w.line(fmt::format("bm, bn = tw.grid(tw.cdiv(M, {}), tw.cdiv(N, BN))", BM));
    w.line(fmt::format("sA = tw.shared({}, (STAGES, {}, 64), swizzle=128)", t, BM));
    w.line(fmt::format("sB = tw.shared({}, (STAGES, {}), swizzle=128)", t, columns_of_b ? "64, BN" : "BN, 64"));
    w.line(fmt::format("ring = tw.pipeline(STAGES, consumers={})", consumers));
    auto walk = [&] {
        if (tiles) w.open(fmt::format("for bm, bn in tw.tiles(M, N, {}, BN, group=2):", BM));
    };
    w.open("with tw.warpgroups(0, name=\"producer\"):");
    walk();
    w.open("for kt in tw.range(tw.cdiv(K, 64)):");
    w.line("slot = ring.acquire()");
    w.line(fmt::format("tw.tma_load(sA[slot], A[bm * {}, kt * 64], on=ring.full(slot))", BM));
    w.line(columns_of_b ? "tw.tma_load(sB[slot], B[kt * 64, bn * BN], on=ring.full(slot))"
                        : "tw.tma_load(sB[slot], B[bn * BN, kt * 64], on=ring.full(slot))");
    w.close();
    if (tiles) w.close();
    w.close();
    w.open(consumers == 2 ? "with tw.warpgroups(1, 2, name=\"consumer\") as w:" : "with tw.warpgroups(1, name=\"consumer\"):");
    walk();
    w.line("acc = tw.zeros(f32, (64, BN))");
    w.open("for kt in tw.range(tw.cdiv(K, 64)):");
    w.line("slot = ring.wait()");
    w.line(fmt::format("tw.wgmma(acc, {}, sB[slot]{})", consumers == 2 ? "sA[slot, w * 64 : w * 64 + 64, :]" : "sA[slot]",
                       columns_of_b ? "" : ".T"));
    w.line(late ? "tw.wgmma_wait(1)" : "tw.wgmma_wait(0)");
    w.line(late ? "ring.release(keep=1)" : "ring.release()");
    w.close();
    if (late) {
        w.line("tw.wgmma_wait(0)");
        w.line("ring.release()");
    }
    Twin y = {"acc", fmt::format("sum(k, f32(A[m, k]) * f32({}))", columns_of_b ? "B[k, n]" : "B[n, k]")};
    if (w.chance(25)) y = {fmt::format("tw.maximum({}, 0.0)", y.code), fmt::format("maximum({}, 0.0)", y.spec)};
    if (narrow) y = w.down(y, t);
    w.line(fmt::format("tw.store(C[bm * {}{}, bn * BN], {})", BM, consumers == 2 ? " + w * 64" : "", y.code));
    if (tiles) w.close();
    w.close();
    return w.file("sm_90a", "C[m, n] = " + y.spec, "");
}

// Two warpgroups hand one buffer to and fro with a pair of named barriers.
std::string ping_pong(RandomWriter& w) {
    const std::string t = w.word({"f32", "bf16", "i32"});
    const int BM = w.pick({8, 16}), BN = w.pick({32, 64});
    const bool transposed = w.chance(40);
    for (const char* s : {"M", "N"}) w.size(s);
    w.parameter(fmt::format("X: tw.Tensor({}, M, N)", t));
    w.parameter(transposed ? fmt::format("Y: tw.Tensor({}, N, M)", t) : fmt::format("Y: tw.Tensor({}, M, N)", t));
    w.parameter(fmt::format("BM: tw.const = {}", BM));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    w.line("bm = tw.grid(tw.cdiv(M, BM))");
    w.line(fmt::format("s = tw.shared({}, (BM, BN){})", t, w.buffer_options(t, BM, BN, Filled::by_stores)));
    w.open("with tw.warpgroups(0, name=\"writer\"):");
    w.line("filled = tw.named_barrier(1, 256)");
    w.line("emptied = tw.named_barrier(2, 256)");
    w.open("for c in tw.range(tw.cdiv(N, BN)):");
    w.line(fmt::format("x = tw.load(X[bm * BM : bm * BM + BM, c * BN : c * BN + BN], fill={})", RandomWriter::zero(t)));
    w.open("if c > 0:");
    w.line("emptied.sync()");
    w.close();
    w.line("tw.store(s, x)");
    w.line("filled.arrive()");
    w.close();
    w.close();
    w.open("with tw.warpgroups(1, name=\"reader\"):");
    w.line("filled = tw.named_barrier(1, 256)");
    w.line("emptied = tw.named_barrier(2, 256)");
    w.open("for c in tw.range(tw.cdiv(N, BN)):");
    w.line("filled.sync()");
    w.line(transposed ? "y = tw.load(s.T)" : "y = tw.load(s)");
    w.open("if c + 1 < tw.cdiv(N, BN):");
    w.line("emptied.arrive()");
    w.close();
    w.line(transposed ? "tw.store(Y[c * BN, bm * BM], y)" : "tw.store(Y[bm * BM, c * BN], y)");
    w.close();
    w.close();
    return w.file("sm_90a", transposed ? "Y[n, m] = X[m, n]" : "Y[m, n] = X[m, n]", "");
}

// A cluster of two: each block brings half of every chunk and multicasts it to both; each adds its own rows.
std::string cluster(RandomWriter& w) {
    const int stages = w.pick({1, 2, 3}), BN = 64;
    for (const char* s : {"M", "N"}) w.size(s);
    w.parameter("X: tw.Tensor(bf16, M, N)");
    w.parameter("V: tw.Tensor(bf16, 64, N)");
    w.parameter("Y: tw.Tensor(f32, M, N)");
    w.parameter(fmt::format("STAGES: tw.const = {}", stages));
    w.line("tw.assume(N % 8 == 0)");
    w.line("bm = tw.grid(tw.cdiv(M, 128) * 2)");
    w.line(fmt::format("s = tw.shared(bf16, (STAGES, 64, {}), swizzle=128)", BN));
    w.line("ring = tw.pipeline(STAGES)");
    w.open("with tw.warpgroups(0, name=\"producer\"):");
    w.line("rank = tw.cluster_rank()");
    w.open(fmt::format("for c in tw.range(tw.cdiv(N, {})):", BN));
    w.line("slot = ring.acquire()");
    w.line(fmt::format("tw.tma_load(s[slot, rank * 32 : (rank + 1) * 32, :], V[rank * 32, c * {}], on=ring.full(slot), multicast=3)", BN));
    w.close();
    w.close();
    w.open("with tw.warpgroups(1, name=\"consumer\"):");
    w.line("met = tw.named_barrier(1, 128)");
    w.open(fmt::format("for c in tw.range(tw.cdiv(N, {})):", BN));
    w.line(fmt::format("x = tw.load(X[bm * 64 : bm * 64 + 64, c * {} : c * {} + {}], fill=0.0)", BN, BN, BN));
    w.line("slot = ring.wait()");
    w.line("v = tw.load(s[slot])");
    w.line("met.sync()");
    w.line("ring.release()");
    w.line(fmt::format("tw.store(Y[bm * 64, c * {}], x.to(f32) + v.to(f32))", BN));
    w.close();
    w.close();
    return w.file("sm_90a", "Y[m, n] = f32(X[m, n]) + f32(V[m % 64, n])", "cluster=(2, 1, 1)");
}

}  // namespace

std::vector<NamedFamily> role_families() {
    return {
        {"tma_ring", tma_ring, 9}, {"raw_ring", raw_ring, 6}, {"wgmma", wgmma, 5}, {"ping_pong", ping_pong, 5}, {"cluster", cluster, 2}};
}

}  // namespace tw::diagnose
