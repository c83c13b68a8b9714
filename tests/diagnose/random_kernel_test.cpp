// Random kernels: the generator's promises, and a sample of the soundness cross-check (`make crosscheck` is the whole).
#include "diagnose/random_kernel.h"

#include <gtest/gtest.h>

#include <set>

#include "diagnose/check.h"
#include "diagnose/crosscheck.h"
#include "diagnose/mutate.h"
#include "ir/legality.h"
#include "lower/lower.h"

namespace tw::diagnose {
namespace random_kernel_test {

TEST(RandomKernels, ASeedIsAKernel) {
    for (std::uint64_t seed : {3u, 77u, 1234u}) {
        std::string refused;
        const auto a = random_kernel(seed, {}, refused), b = random_kernel(seed, {}, refused);
        ASSERT_TRUE(a && b) << refused;
        EXPECT_EQ(a->source, b->source);
        EXPECT_EQ(a->slip, b->slip);
        EXPECT_EQ(a->shapes, b->shapes);
        EXPECT_EQ(ir::print(a->kernel), ir::print(b->kernel));
    }
}

TEST(RandomKernels, EveryFamilyIsWrittenAndBroken) {
    for (const std::string& family : random_families()) {
        RandomOptions options;
        options.family = family;
        options.broken = 0;
        std::set<std::string> texts;
        for (std::uint64_t seed = 1; seed <= 6; ++seed) {
            std::string refused;
            const auto clean = random_kernel(seed, options, refused);
            ASSERT_TRUE(clean) << family << " seed " << seed << "\n" << refused;
            EXPECT_EQ(clean->family, family);
            EXPECT_TRUE(clean->slip.empty());
            EXPECT_FALSE(clean->shapes.empty());
            texts.insert(clean->source);
        }
        EXPECT_GT(texts.size(), 1u) << family;
        options.broken = 1;
        std::string refused;
        const auto broken = random_kernel(1, options, refused);
        ASSERT_TRUE(broken) << refused;
        EXPECT_FALSE(broken->slip.empty()) << family;
    }
}

// Seeds 1 to 40 of `tilewright crosscheck`. A failure here is a hole in the verifier, or a false alarm of the emulator.
TEST(CrossCheck, NothingThatTheEmulatorRefutesIsProved) {
    int clean = 0, proved = 0, real = 0, slipped = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        RandomOptions options;
        options.broken = 0.5;
        std::string refused;
        const auto random = random_kernel(seed, options, refused);
        ASSERT_TRUE(random) << "seed " << seed << "\n" << refused;
        CrossOptions cross;
        cross.proved_seconds = cross.other_seconds = 60;  // a bound in trials, so that a slow machine gives the same answer
        cross.trials = 24;
        const CrossResult r = cross_check(*random, cross);
        EXPECT_FALSE(r.unsound()) << "seed " << seed << ": proved, but " << r.failure << "\nslip: " << random->slip << "\n"
                                  << random->source;
        if (random->slip.empty()) {
            EXPECT_TRUE(r.failure.empty()) << "seed " << seed << ": an unbroken kernel fails: " << r.failure << "\n" << random->source;
            ++clean;
            proved += r.proved;
        } else {
            ++slipped;
            real += !r.failure.empty();
        }
    }
    EXPECT_GE(proved * 10, clean * 7) << proved << " of " << clean << " clean kernels are proved";  // 80% over many seeds; this is a sample
    EXPECT_GE(real * 10, slipped * 3) << "at least 30% are really broken";
}

// What was proved and wrong once: a text, and the slip in its last form.
TEST(CrossCheck, OldHolesStayClosed) {
    struct Hole {
        const char *source, *operation, *change;  // no operation: the text itself is wrong
    };
    const Hole holes[] = {
        // a persistent loop that leaves out the ragged last tile
        {R"(N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n]", threads=128)
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N), BN: tw.const = 256):
    for b in tw.persistent(N // BN):
        tw.store(Y[b * BN], tw.load(X[b * BN : b * BN + BN], fill=0.0))
)",
         "", ""},
        // slots released in another one's place, so that a parity comes round
        {R"(M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]")
def k(X: tw.Tensor(f16, M, N), Y: tw.Tensor(f16, M, N), BM: tw.const = 64, BN: tw.const = 32, STAGES: tw.const = 2):
    tw.assume(N % 8 == 0)
    bm = tw.grid(tw.cdiv(M, BM))
    s = tw.shared(f16, (STAGES, BM, BN))
    full = tw.mbarrier(STAGES)
    empty = tw.mbarrier(STAGES)
    with tw.warpgroups(0, name="producer"):
        for c in tw.range(tw.cdiv(N, BN)):
            if c >= STAGES:
                empty[c % STAGES].wait((c // STAGES + 1) % 2)
            full[c % STAGES].expect(BM * BN * 2)
            tw.tma_load(s[c % STAGES], X[bm * BM, c * BN], on=full[c % STAGES])
    with tw.warpgroups(1, name="consumer"):
        met = tw.named_barrier(1, 128)
        for c in tw.range(tw.cdiv(N, BN)):
            full[c % STAGES].wait(c // STAGES % 2)
            x = tw.load(s[c % STAGES])
            met.sync()
            empty[c % STAGES].arrive()
            tw.store(Y[bm * BM, c * BN], x)
)",
         "pipeline/slot", "became `mbarrier_arrive empty"},
        // shared layouts in which two elements share bytes
        {R"(M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=32)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M), T: tw.const = 32):
    s = tw.shared(f32, (T, T), swizzle=32)
    bn, bm = tw.grid(tw.cdiv(N, T), tw.cdiv(M, T))
    tw.store(s, tw.load(X[bm * T : bm * T + T, bn * T : bn * T + T], fill=0.0))
    tw.syncwarp()
    tw.store(Y[bn * T, bm * T], tw.load(s.T))
)",
         "layout/strides", "the stride of dimension 0 is 4 instead of 8"},
        // what a branch that is never taken would make, in a loop of one iteration
        {R"(M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = 0.0 - sum(i, X[m, i]) + X[m, n]", threads=64)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 256)
    rank = tw.grid(2)
    n = rank * 128
    row = tw.team(1, messages=M, depth=2)
    for k in tw.range(1):
        if k < M:
            row.send(k, tw.load(X[k, n : n + 128], fill=0.0))
    for m in tw.range(M):
        if m + 1 < M:
            row.send(m + 1, tw.load(X[m + 1, n : n + 128], fill=0.0))
        total = row.receive(m)
        tw.store(Y[m, n : n + 128], tw.load(X[m, n : n + 128], fill=0.0) - total)
)",
         "index/branch", "`if (k < M):` became `if 0:`"},
    };
    for (const Hole& hole : holes) {
        SourceMap sources;
        DiagnosticSink sink;
        const auto module = lower::compile_text(
            sources, "k.py", std::string("import tilewright as tw\nfrom tilewright import f16, f32\n\n") + hole.source, {}, sink);
        ASSERT_TRUE(module) << render_text(sink, sources);
        CheckOptions options;
        options.search = false;
        if (!*hole.operation) {
            EXPECT_FALSE(check(module->kernels[0], options).proved()) << hole.source;
            continue;
        }
        ASSERT_TRUE(check(module->kernels[0], options).proved()) << hole.source;
        int found = 0;
        for (const Mutant& m : mutants_of(module->kernels[0], hole.operation)) {
            if (m.change.find(hole.change) == std::string::npos) continue;
            ++found;
            if (!ir::legal_last_form(m.kernel).empty()) continue;  // refused before any proof
            EXPECT_FALSE(check(m.kernel, options).proved()) << m.change << "\n" << hole.source;
        }
        EXPECT_GT(found, 0) << hole.operation;
    }
}

// A buffer that is read before it is written holds anything, also where it cancels in the algebra.
TEST(CrossCheck, ABufferThatNoLaunchHasWrittenIsNothing) {
    SourceMap sources;
    DiagnosticSink sink;
    const auto module = lower::compile_text(sources, "k.py", R"(import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="C[n] = A[n] - B[n]", threads=32)
def both(A: tw.Tensor(f32, N), B: tw.Tensor(f32, N), C: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 64)) * 64
    tw.store(C[i], tw.load(A[i : i + 64], fill=0.0) - tw.load(B[i : i + 64], fill=0.0))


@tw.program(computes="Y[n] = X[n] - X[n]")
def whole(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    T = tw.buffer(f32, N)
    both(T, T, Y)
)",
                                            {}, sink);
    ASSERT_TRUE(module) << render_text(sink, sources);
    CheckOptions options;
    options.search = false;
    const CheckResult r = check_program(*module, module->programs[0], options);
    EXPECT_FALSE(r.proved());
    EXPECT_NE(r.obligations[0].reason.find("`T` is read before a launch writes it"), std::string::npos) << r.obligations[0].reason;
}

}  // namespace random_kernel_test
}  // namespace tw::diagnose
