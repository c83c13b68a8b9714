// Families of random kernels fed by cp.async: rings of chunks, products on mma.sync.
#include "diagnose/random_writer.h"

namespace tw::diagnose {
namespace {

using Filled = RandomWriter::Filled;

// Chunks of columns through a ring filled by cp.async: copied out, or folded along rows.
std::string cp_ring(RandomWriter& w) {
    const std::string t = w.word({"f32", "bf16", "i32", "f16"});
    const bool fold = t != "i32" && w.chance(40);
    const int stages = w.pick({2, 3, 4}), BM = w.pick({8, 16}), BN = w.pick({32, 64});
    for (const char* s : {"M", "N"}) w.size(s);
    w.parameter(fmt::format("X: tw.Tensor({}, M, N)", t));
    w.parameter(fold ? "Y: tw.Tensor(f32, M)" : fmt::format("Y: tw.Tensor({}, M, N)", t));
    w.parameter(fmt::format("BM: tw.const = {}", BM));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    w.parameter(fmt::format("STAGES: tw.const = {}", stages));
    w.line("tw.assume(N % 8 == 0)");
    w.line("bm = tw.grid(tw.cdiv(M, BM))");
    w.line(fmt::format("s = tw.shared({}, (STAGES, BM, BN){})", t, w.buffer_options(t, BM, BN, Filled::by_copies)));
    w.line("steps = tw.cdiv(N, BN)");
    if (fold) w.line("r = tw.zeros(f32, (BM,))");
    w.open("for p in tw.unroll(STAGES - 1):");
    if (w.chance(30)) {
        w.open("if p < steps:");
        w.line("tw.cp_async(s[p], X[bm * BM, p * BN])");
        w.close();
    } else {
        w.line("tw.cp_async(s[p], X[bm * BM, p * BN])");
    }
    w.line("tw.cp_async_commit()");
    w.close();
    w.open("for c in tw.range(steps):");
    w.line("tw.cp_async_wait(STAGES - 2)");
    w.line("tw.sync()");
    w.line("nxt = c + STAGES - 1");
    w.open("if nxt < steps:");
    w.line("tw.cp_async(s[nxt % STAGES], X[bm * BM, nxt * BN])");
    w.close();
    w.line("tw.cp_async_commit()");
    w.line("x = tw.load(s[c % STAGES])");
    std::string spec;
    if (fold) {
        w.line(fmt::format("r = r + tw.sum({}, axis=1)", t == "f32" ? "x" : "x.to(f32)"));
        spec = t == "f32" ? "Y[m] = sum(n, X[m, n])" : "Y[m] = sum(n, f32(X[m, n]))";
    } else {
        const Twin y = w.down(w.elementwise({w.up({"x", "X[m, n]"}, t)}, RandomWriter::computed(t), w.below(3)), t);
        w.line(fmt::format("tw.store(Y[bm * BM, c * BN], {})", y.code));
        spec = "Y[m, n] = " + y.spec;
    }
    w.close();
    if (fold) w.line("tw.store(Y[bm * BM : bm * BM + BM], r)");
    return w.file("sm_80", spec, fmt::format("threads={}", w.pick({64, 128})));
}

// Products on mma.sync: operands through shared memory (registers, cp.async, a ring), either orientation of B, an epilogue.
std::string mma(RandomWriter& w) {
    const std::string t = w.word({"bf16", "f16"});
    const int BM = w.pick({32, 64}), BN = w.pick({32, 64}), BK = w.pick({16, 32}), stages = w.pick({1, 2, 3});
    const bool columns_of_b = w.chance(35), bias = w.chance(30), narrow = w.chance(50);
    const std::string out = narrow ? t : "f32";
    for (const char* s : {"M", "N", "K"}) w.size(s);
    w.parameter(fmt::format("A: tw.Tensor({}, M, K)", t));
    w.parameter(columns_of_b ? fmt::format("B: tw.Tensor({}, K, N)", t) : fmt::format("B: tw.Tensor({}, N, K)", t));
    if (bias) w.parameter("v: tw.Tensor(f32, N)");
    w.parameter(fmt::format("C: tw.Tensor({}, M, N)", out));
    w.parameter(fmt::format("BM: tw.const = {}", BM));
    w.parameter(fmt::format("BN: tw.const = {}", BN));
    w.parameter(fmt::format("BK: tw.const = {}", BK));
    w.line("tw.assume(K % 8 == 0)");
    w.line("tw.assume(N % 8 == 0)");
    w.line("bm, bn = tw.grid(tw.cdiv(M, BM), tw.cdiv(N, BN))");
    const std::string lead = stages > 1 ? fmt::format("{}, ", stages) : "";
    const std::string a_swizzle = BK == 32 ? w.word({", swizzle=64", ", swizzle=32", ""}) : w.word({", swizzle=32", ""});
    const std::string b_swizzle =
        columns_of_b ? (BN == 64 ? w.word({", swizzle=128", ", swizzle=64", ""}) : w.word({", swizzle=64", ""})) : a_swizzle;
    w.line(fmt::format("sA = tw.shared({}, ({}BM, BK){})", t, lead, a_swizzle));
    w.line(fmt::format("sB = tw.shared({}, ({}{}){})", t, lead, columns_of_b ? "BK, BN" : "BN, BK", b_swizzle));
    w.line(fmt::format("acc = tw.zeros(f32, (BM, BN){})", w.chance(60) ? ", layout=tw.mma_c(warps=(2, 2))" : ""));
    auto b_of = [&](const std::string& k) {
        return columns_of_b ? fmt::format("B[{} * BK, bn * BN]", k) : fmt::format("B[bn * BN, {} * BK]", k);
    };
    auto product = [&](const std::string& slot) {
        w.open("for kk in tw.unroll(BK // 16):");
        w.line(fmt::format("a = tw.load(sA[{}:, kk * 16 : kk * 16 + 16], layout=tw.mma_a())", slot));
        w.line(columns_of_b ? fmt::format("b = tw.load(sB[{}kk * 16 : kk * 16 + 16, :].T, layout=tw.mma_b())", slot)
                            : fmt::format("b = tw.load(sB[{}:, kk * 16 : kk * 16 + 16], layout=tw.mma_b())", slot));
        w.line("tw.mma(acc, a, b)");
        w.close();
    };
    w.line("steps = tw.cdiv(K, BK)");
    if (stages == 1) {
        w.open("for kt in tw.range(steps):");
        w.line("tw.sync()");
        if (w.chance(50)) {
            w.line("tw.cp_async(sA, A[bm * BM, kt * BK])");
            w.line(fmt::format("tw.cp_async(sB, {})", b_of("kt")));
            w.line("tw.cp_async_commit()");
            w.line("tw.cp_async_wait(0)");
        } else {
            w.line("tw.store(sA, tw.load(A[bm * BM : bm * BM + BM, kt * BK : kt * BK + BK], fill=0.0))");
            w.line(columns_of_b ? "tw.store(sB, tw.load(B[kt * BK : kt * BK + BK, bn * BN : bn * BN + BN], fill=0.0))"
                                : "tw.store(sB, tw.load(B[bn * BN : bn * BN + BN, kt * BK : kt * BK + BK], fill=0.0))");
        }
        w.line("tw.sync()");
        product("");
        w.close();
    } else {
        w.open(fmt::format("for p in tw.unroll({}):", stages - 1));
        w.line("tw.cp_async(sA[p], A[bm * BM, p * BK])");
        w.line(fmt::format("tw.cp_async(sB[p], {})", b_of("p")));
        w.line("tw.cp_async_commit()");
        w.close();
        w.open("for kt in tw.range(steps):");
        w.line(fmt::format("tw.cp_async_wait({})", stages - 2));
        w.line("tw.sync()");
        w.line(fmt::format("nxt = kt + {}", stages - 1));
        w.open("if nxt < steps:");
        w.line(fmt::format("tw.cp_async(sA[nxt % {}], A[bm * BM, nxt * BK])", stages));
        w.line(fmt::format("tw.cp_async(sB[nxt % {}], {})", stages, b_of("nxt")));
        w.close();
        w.line("tw.cp_async_commit()");
        product(fmt::format("kt % {}, ", stages));
        w.close();
    }
    Twin y = {"acc", fmt::format("sum(k, f32(A[m, k]) * f32({}))", columns_of_b ? "B[k, n]" : "B[n, k]")};
    if (bias) {
        w.line("b0 = tw.load(v[bn * BN : bn * BN + BN], fill=0.0)");
        y = {fmt::format("({} + b0[None, :])", y.code), fmt::format("({} + v[n])", y.spec)};
    }
    if (w.chance(25)) y = {fmt::format("tw.maximum({}, 0.0)", y.code), fmt::format("maximum({}, 0.0)", y.spec)};
    if (narrow) y = w.down(y, t);
    w.line(fmt::format("tw.store(C[bm * BM, bn * BN], {})", y.code));
    return w.file("sm_80", "C[m, n] = " + y.spec, "threads=128");
}

}  // namespace

std::vector<NamedFamily> copy_families() { return {{"cp_ring", cp_ring, 8}, {"mma", mma, 7}}; }

}  // namespace tw::diagnose
