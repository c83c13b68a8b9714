// Families of random kernels at edges that were found broken once: waits that an older phase lets through, trip counts that follow a
// block's index, promised data, remainders of two sizes or a count with an offset, masks over fills in rows that lie behind the tensor,
// random numbers, extremes by place.
#include "diagnose/random_writer.h"

namespace tw::diagnose {
namespace {

// A producer and a consumer with raw mbarriers go through as many chunks as sizes, a block's index or promised lengths say; counts may
// begin at an offset, in slots and phases alike.
std::string counted_chunks(RandomWriter& w) {
    const int stages = w.pick({1, 2, 2, 3, 4}), kind = w.below(5);
    const int first = w.pick({0, 0, 2, 4}) * stages;  // whole turns, so that the phases begin as those of fresh barriers
    w.size("B"), w.size("N");
    w.parameter("X: tw.Tensor(f32, B, N)");
    std::string end = "N", count, sum = "N";
    if (kind == 0) {  // the block's own length
        const std::string own = w.word({"b + 1", "b + 2", "b + 4"});
        count = fmt::format("tw.min({}, tw.cdiv(N, 32))", own);
        sum = fmt::format("minimum(N, 32 * ({}))", own);
    } else if (kind == 1) {  // a promised one
        w.parameter("length: tw.Tensor(i32, B, range=(0, N + 1))");
        end = "length[b]", count = "tw.cdiv(length[b], 32)", sum = "length[b]";
    } else if (kind == 2) {  // less than there are
        const int less = w.pick({1, 5, 40});
        count = fmt::format("tw.cdiv(tw.max(N - {}, 0), 32)", less);
        end = fmt::format("tw.max(N - {}, 0)", less), sum = fmt::format("maximum(N - {}, 0)", less);
    } else {
        count = kind == 3 ? "tw.cdiv(N, 32)" : "(N + 31) // 32";
    }
    w.parameter("S: tw.Tensor(f32, B)");
    w.line("tw.assume(N % 4 == 0)");
    w.line("b = tw.grid(B)");
    w.line(fmt::format("s = tw.shared(f32, ({}, 32))", stages));
    w.line(fmt::format("full = tw.mbarrier({})", stages));
    w.line(fmt::format("empty = tw.mbarrier({})", stages));
    const std::string slot = stages == 1 ? "0" : fmt::format("n % {}", stages), turn = stages == 1 ? "n" : fmt::format("n // {}", stages);
    const auto loop = [&] {
        w.line(fmt::format("n = {}", first));
        w.open(fmt::format("for c in tw.range({}):", count));
    };
    w.open("with tw.warpgroups(0):");
    loop();
    w.line(fmt::format("slot = {}", slot));
    w.line(fmt::format("empty[slot].wait(({} + 1) % 2)", turn));
    w.line("full[slot].expect(32 * 4)");
    w.line("tw.tma_load(s[slot], X[b, c * 32 : c * 32 + 32], on=full[slot])");
    w.line("n = n + 1");
    w.close(), w.close();
    w.open("with tw.warpgroups(1):");
    w.line("readers = tw.named_barrier(1, 128)");
    w.line("total = tw.zeros(f32, (32,))");
    loop();
    w.line(fmt::format("slot = {}", slot));
    w.line(fmt::format("full[slot].wait({} % 2)", turn));
    w.line("x = tw.load(s[slot])");
    w.line("readers.sync()");
    w.open("with tw.elected():");
    w.line("empty[slot].arrive()");
    w.close();
    w.line(fmt::format("total = total + tw.where(tw.arange(32) + c * 32 < {}, x, 0.0)", end));
    w.line("n = n + 1");
    w.close();
    w.line("tw.store(S[b], tw.sum(total, axis=0))");
    w.close();
    return w.file("sm_90a", fmt::format("S[b] = sum(n in 0:{}, X[b, n])", sum), "");
}

// Each block waits for phases one after another, or behind a meeting of all.
std::string phases_in_turn(RandomWriter& w) {
    const int rounds = w.pick({2, 3, 4, 5}), threads = w.pick({32, 64});
    const bool meet = w.chance(50);
    w.size("N");
    w.parameter("X: tw.Tensor(f32, N)");
    w.parameter("Y: tw.Tensor(f32, N)");
    w.line("tw.assume(N % 4 == 0)");
    const int chunk = 32 * rounds;
    w.line(fmt::format("i = tw.grid(tw.cdiv(N, {0})) * {0}", chunk));
    w.line(fmt::format("s = tw.shared(f32, ({}, 32))", meet ? 1 : rounds));
    w.line("bar = tw.mbarrier(1)");
    w.open(fmt::format("for r in tw.range({}):", rounds));
    w.line("bar[0].expect(32 * 4)");
    w.line(fmt::format("tw.tma_load(s[{}], X[i + r * 32 : i + r * 32 + 32], on=bar[0])", meet ? "0" : "r"));
    w.line("bar[0].wait(r % 2)");
    w.line(fmt::format("x = tw.load(s[{}])", meet ? "0" : "r"));
    if (meet) w.line("tw.fence_async()");
    w.line("tw.sync()");
    w.line("tw.store(Y[i + r * 32 : i + r * 32 + 32], x + 1.0)");
    w.close();
    return w.file("sm_90a", "Y[n] = X[n] + 1.0", fmt::format("threads={}", threads));
}

// Two sizes cut alike: one loop through the tiles of both, with a slot for each.
std::string two_sizes(RandomWriter& w) {
    const int cut = w.pick({16, 32, 64}), stages = w.pick({2, 2, 3});
    for (const char* s : {"M", "N"}) w.size(s);
    w.parameter("X: tw.Tensor(f32, M)");
    w.parameter("Z: tw.Tensor(f32, N)");
    w.parameter("S: tw.Tensor(f32, 1)");
    w.line("tw.grid(1)");
    w.line(fmt::format("s = tw.shared(f32, ({}, {}))", stages, cut));
    w.line(fmt::format("total = tw.zeros(f32, ({},))", cut));
    w.line("n = 0");
    for (const auto& [tensor, size] : {std::pair{"X", "M"}, std::pair{"Z", "N"}}) {
        w.open(fmt::format("for c in tw.range(tw.cdiv({}, {})):", size, cut));
        w.line(fmt::format("tw.store(s[n % {0}], tw.load({1}[c * {2} : c * {2} + {2}], fill=0.0))", stages, tensor, cut));
        w.line("tw.sync()");
        w.line(fmt::format("total = total + tw.load(s[n % {}], layout=tw.blocked(vector=1))", stages));
        w.line("n = n + 1");
        w.close();
    }
    w.line("tw.store(S[0], tw.sum(total, axis=0))");
    return w.file("sm_80", "S[i] = sum(m in 0:M, X[m]) + sum(n in 0:N, Z[n])", fmt::format("threads={}", w.pick({32, 64})));
}

// Rows with masks over fills, several rows a block: what lies behind the tensor is made of fills alone. (Slips that take another
// reference than the maximum leave the algebra as it is and the range of floats: they are none here.)
std::string masked_rows(RandomWriter& w) {
    const int rows = w.pick({1, 2, 4}), columns = w.pick({64, 128}), kind = w.exact() ? 2 : w.below(4);
    w.size("N");
    w.parameter("X: tw.Tensor(f32, N, N)");
    w.parameter(kind == 2 ? "Y: tw.Tensor(f32, N)" : "Y: tw.Tensor(f32, N, N)");
    w.line(fmt::format("tw.assume(1 <= N and N <= {})", columns));
    w.line(fmt::format("m = tw.grid(tw.cdiv(N, {0})) * {0}", rows));
    const int more = w.pick({0, 0, 1, 3});
    const std::string fill = w.word({"float(\"-inf\")", "0.0", "1.0"});
    w.line(fmt::format("x = tw.load(X[m : m + {}, 0:{}], fill={}, layout=tw.warp_rows(vector=2))", rows, columns, fill));
    const std::string inside = more == 0 ? "" : " & (tw.coord(x, 1) < N)";
    const std::string seen = fmt::format("(tw.coord(x, 1) <= tw.coord(x, 0) + m + {}){}", more, inside);
    const std::string range = more == 0 ? "0:m+1" : fmt::format("0:minimum(m + {}, N)", more + 1), here = fmt::format("n <= m + {}", more);
    if (kind == 2) {
        w.line(fmt::format("tw.store(Y[m : m + {}], tw.sum(tw.where({}, x, 0.0), axis=1) * 2.0)", rows, seen));
        return w.file("sm_80", fmt::format("Y[m] = 2.0 * sum(n in {}, X[m, n])", range), "threads=128");
    }
    w.line(fmt::format("kept = tw.where({}, x, float(\"-inf\"))", seen));
    w.line("top = tw.max(kept, axis=1)");
    w.line("e = tw.exp(kept - top[:, None])");
    w.line("total = tw.sum(e, axis=1)");
    const std::string spec_e = fmt::format("exp(X[m, n] - max(k in {0}, X[m, k]))", range);
    const std::string spec_total = fmt::format("sum(j in {0}, exp(X[m, j] - max(k in {0}, X[m, k])))", range);
    w.line(fmt::format("tw.store(Y[m : m + {}, 0:{}], {})", rows, columns,
                       kind == 0   ? "e / total[:, None]"
                       : kind == 1 ? "e * total[:, None]"
                                   : "e * (1.0 / total)[:, None] + 1.0"));
    const std::string value = kind == 0   ? fmt::format("{} / {}", spec_e, spec_total)
                              : kind == 1 ? fmt::format("{} * {}", spec_e, spec_total)
                                          : fmt::format("{} / {} + 1.0", spec_e, spec_total);
    return w.file("sm_80", fmt::format("Y[m, n] = where({}, {}, {})", here, value, kind == 3 ? "1.0" : "0.0"), "threads=128");
}

// Numbers drawn by place, and decisions by them.
std::string drawn(RandomWriter& w) {
    const int BN = w.pick({64, 128, 256}), kind = w.below(3);
    const std::string key = w.word({"seed, 0", "seed, 7", "0, seed"}), counter = w.word({"n, 0, 0, 0", "n // 4, 0, 3, 0", "0, n, 1, 0"});
    const std::string which = counter[0] == 'n' && counter[1] == ' ' ? "n % 4" : w.word({"0", "1", "3"});
    w.size("N");
    w.parameter("X: tw.Tensor(f32, N)");
    w.parameter(kind == 1 ? "Y: tw.Tensor(i32, N)" : "Y: tw.Tensor(f32, N)");
    w.parameter("seed: tw.scalar(i32)");
    w.line(fmt::format("i = tw.grid(tw.cdiv(N, {0})) * {0}", BN));
    w.line(fmt::format("n = (tw.arange({}) + i).to(tw.u32)", BN));
    w.line(fmt::format("u = tw.philox({}, {}, {})", key, counter, which));
    const std::string draw = fmt::format("philox({}, {}, {})", key, counter, which), part = fmt::format("i : i + {}", BN);
    if (kind == 0) {
        w.line(fmt::format("tw.store(Y[{0}], tw.where(tw.uniform(u) < 0.25, 0.0, tw.load(X[{0}], fill=0.0)))", part));
        return w.file("sm_80", fmt::format("Y[n] = where(uniform({}) < 0.25, 0.0, X[n])", draw), "threads=64");
    }
    if (kind == 1) {
        const int sides = w.pick({2, 6, 10});
        w.line(fmt::format("tw.store(Y[{}], tw.mulhi(u, {}).to(i32) + 1)", part, sides));
        return w.file("sm_80", fmt::format("Y[n] = i32(mulhi({}, {})) + 1", draw, sides), "threads=64");
    }
    w.line(fmt::format("tw.store(Y[{0}], tw.load(X[{0}], fill=0.0) + tw.uniform(u))", part));
    return w.file("sm_80", fmt::format("Y[n] = X[n] + uniform({})", draw), "threads=64");
}

// The largest or smallest of what names a place, beside what it held.
std::string extremes_by_place(RandomWriter& w) {
    const bool largest = w.chance(50), zeroed = w.chance(40);
    const std::string f = largest ? "max" : "min", fill = largest ? "float(\"-inf\")" : "float(\"inf\")";
    for (const char* s : {"P", "V"}) w.size(s);
    w.parameter("X: tw.Tensor(f32, P)");
    w.parameter("at: tw.Tensor(i32, P, range=(-1, V))");
    w.parameter(fmt::format("G: tw.Tensor(f32, V{})", zeroed ? ", zeroed=True" : ""));
    w.line("v = tw.grid(tw.cdiv(V, 32)) * 32");
    w.line(fmt::format("held = {}", zeroed ? "tw.zeros(f32, (32,))" : "tw.load(G[v : v + 32], fill=0.0)"));
    w.line(fmt::format("most = tw.full(f32, (32,), {})", fill));
    w.open("for p in tw.range(P):");
    w.line("place = tw.load(at[p])");
    w.line(fmt::format("most = tw.{}imum(most, tw.where(tw.arange(32) + v == place, tw.load(X[p]), {}))", f, fill));
    w.close();
    w.line(fmt::format("tw.store(G[v : v + 32], tw.{}imum(held, most))", f));
    return w.file("sm_80", fmt::format("G[at[p]] {}= X[p]", f), "threads=32");
}

}  // namespace

std::vector<NamedFamily> edge_families() {
    return {{"counted_chunks", counted_chunks, 7},
            {"phases_in_turn", phases_in_turn, 4},
            {"two_sizes", two_sizes, 4},
            {"masked_rows", masked_rows, 6},
            {"drawn", drawn, 4},
            {"extremes_by_place", extremes_by_place, 3}};
}

}  // namespace tw::diagnose
