// Kernels broken on purpose: the check must refute every real mutant of a fixed sample, and prove none of them.
#include <gtest/gtest.h>

#include <set>

#include "diagnose/audit.h"
#include "diagnose/mutate.h"
#include "ir/legality.h"
#include "lower/lower.h"

namespace tw::diagnose {
namespace mutate_test {

struct Loaded {
    SourceMap sources;
    DiagnosticSink sink;
    std::optional<ir::Module> module;
};

Loaded load(const std::string& file, const lower::ConstValues& constants = {}) {
    Loaded l;
    l.module = lower::compile_file(l.sources, std::string(TW_SOURCE_DIR) + "/kernels/" + file, constants, l.sink);
    return l;
}

JudgeOptions quick() {
    JudgeOptions o;
    o.search_seconds = 1;
    o.trial_seconds = 0.3;
    return o;
}

TEST(Mutate, TheSameMutantsEveryTimeAndOnlyOfTheOperatorAsked) {
    const Loaded l = load("gemm_sm90.py");
    ASSERT_TRUE(l.module) << render_text(l.sink, l.sources);
    const ir::Kernel& k = l.module->kernels[0];
    const auto once = mutants_of(k), again = mutants_of(k);
    ASSERT_EQ(once.size(), again.size());
    ASSERT_GT(once.size(), 200u);
    std::set<std::string> families, known;
    for (const auto& op : mutation_operators()) known.insert(op.name);
    std::size_t parities = 0;
    for (std::size_t i = 0; i < once.size(); ++i) {
        EXPECT_EQ(once[i].change, again[i].change);
        EXPECT_TRUE(known.count(once[i].operation)) << once[i].operation;
        families.insert(once[i].operation.substr(0, once[i].operation.find('/')));
        parities += once[i].operation == "sync/parity";
    }
    EXPECT_EQ(families, (std::set<std::string>{"collective", "index", "launch", "layout", "pipeline", "proxy", "sync", "values"}));
    EXPECT_EQ(parities, 6u);  // one wait for full slots, one for empty ones: the other parity, always 0, always 1
    EXPECT_EQ(mutants_of(k, "sync/parity").size(), parities);
    EXPECT_EQ(sampled(mutants_of(k, "index/element"), 2).size(), 2u);
}

TEST(Mutate, AMutantDiffersAndTheOriginalIsLeftAlone) {
    const Loaded l = load("transpose.py");
    ASSERT_TRUE(l.module);
    const ir::Kernel& k = l.module->kernels[0];
    const std::string before = ir::print(k);
    for (const Mutant& m : mutants_of(k)) {
        if (m.operation == "index/bound") continue;  // a promise of the code generator's that is not printed
        EXPECT_NE(ir::print(m.kernel), before) << m.operation << ": " << m.change;
    }
    EXPECT_EQ(ir::print(k), before);
}

// The kind of failure each change must be refuted with, by a counterexample that replays.
struct Known {
    const char* file;
    const char* operation;
    const char* change;  // a part of the mutant's text
    const char* kind;    // a part of the evidence
};

TEST(Mutate, KnownMistakesAreRefutedForTheRightReason) {
    const Known table[] = {
        {"transpose.py", "sync/drop", "dropped `block_sync", "race"},
        {"vector_add.py", "index/element", "load A", "wrong value"},
        {"vector_add.py", "index/access", "store C", "unwritten output"},
        {"softmax.py", "index/fill", "fill=0", "wrong value"},
    };
    for (const Known& known : table) {
        const Loaded l = load(known.file);
        ASSERT_TRUE(l.module);
        bool found = false;
        for (const Mutant& m : mutants_of(l.module->kernels[0], known.operation)) {
            if (m.change.find(known.change) == std::string::npos) continue;
            if (m.operation == "index/fill" && m.change.find(known.change) < m.change.find("became")) continue;
            found = true;
            const Judgement j = judge(m.kernel, quick());
            EXPECT_STREQ(name_of(j.verdict), "caught") << m.change << ": " << j.evidence;
            EXPECT_EQ(j.evidence.rfind(known.kind, 0), 0u) << m.change << ": " << j.evidence;
            break;
        }
        EXPECT_TRUE(found) << known.file << " " << known.operation;
    }
}

// Operators for what a proof over the reals, or over short loops, would not see: each breaks something that the emulator shows.
TEST(Mutate, EveryNewerOperatorMakesRealMutants) {
    const std::string head = "import tilewright as tw\nfrom tilewright import f32, i32\n\nM, N = tw.sizes(\"M N\")\n\n\n";
    const std::string ring = head + R"py(@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=64)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    tw.grid(1)
    s = tw.shared(f32, (3, 16, 16), pad=1)
    count = 0
    for m in tw.range(tw.cdiv(M, 16)):
        for c in tw.range(tw.cdiv(N, 16)):
            slot = count % 3
            tw.store(s[slot], tw.load(X[m * 16 : m * 16 + 16, c * 16 : c * 16 + 16], fill=0.0))
            tw.sync()
            tw.store(Y[c * 16 : c * 16 + 16, m * 16 : m * 16 + 16], tw.load(s[slot].T))
            count = count + 1
)py";
    const std::string numbers =
        head +
        R"py(@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] / (sqrt(sum(k, X[m, k] * X[m, k])) + 1e-8) + f32(n // 3)", threads=64)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(1 <= N and N <= 512)
    m = tw.grid(M)
    x = tw.load(X[m, 0:512], fill=0.0)
    r = tw.sqrt(tw.sum(x * x, axis=0)) + 1e-8
    tw.store(Y[m, 0:512], x / r + (tw.arange(512) // 3).to(f32))
)py";
    const std::string random =
        head + R"py(@tw.kernel(target="sm_80", computes="Y[n] = uniform(philox(a, b, n // 4, 0, 1, 2, n % 4))", threads=64)
def k(Y: tw.Tensor(f32, N), a: tw.scalar(i32), b: tw.scalar(i32)):
    n = tw.arange(64) + tw.grid(tw.cdiv(N, 64)) * 64
    tw.store(Y[tw.block(0) * 64], tw.uniform(tw.philox(a, b, n // 4, 0, 1, 2, n % 4)))
)py";
    const std::pair<const char*, const std::string*> cases[] = {
        {"sync/rare", &ring},         {"pipeline/joint", &ring}, {"index/bits", &ring},          {"index/residue", &ring},
        {"index/large", &ring},       {"launch/strides", &ring}, {"values/magnitude", &numbers}, {"values/cast", &numbers},
        {"values/integer", &numbers}, {"values/sign", &numbers}, {"values/rest", &numbers},      {"values/random", &random},
    };
    for (const auto& [operation, source] : cases) {
        SourceMap sources;
        DiagnosticSink sink;
        const auto module = lower::compile_text(sources, "k.py", *source, {}, sink);
        ASSERT_TRUE(module) << render_text(sink, sources);
        bool real = false;
        for (const Mutant& m : mutants_of(module->kernels[0], operation)) {
            if (!ir::legal_last_form(m.kernel).empty()) continue;
            AuditOptions options;
            options.seconds = 60;
            options.runs = 120;
            if ((real = audit(m.kernel, options).failing > 0)) break;
        }
        EXPECT_TRUE(real) << operation;
    }
}

TEST(Mutate, NoRealMutantOfTheSampleIsProved) {
    int real = 0, caught = 0, missed = 0, false_alarms = 0;
    // `family`: only these operators, to keep the sample short.
    struct Sample {
        const char* file;
        lower::ConstValues constants;
        int limit;
        std::string family;
    };
    const Sample samples[] = {{"vector_add.py", {}, 3, ""},
                              {"transpose.py", {}, 2, ""},
                              {"rmsnorm.py", {}, 2, ""},
                              {"gemm_sm80.py", {{"BM", 64}, {"BN", 64}}, 1, "pipeline"}};
    for (const Sample& sample : samples) {
        const Loaded l = load(sample.file, sample.constants);
        ASSERT_TRUE(l.module) << render_text(l.sink, l.sources);
        const ir::Kernel& k = l.module->kernels[0];
        ASSERT_EQ(judge(k, quick()).verdict, MutantVerdict::equivalent) << sample.file << " itself is not proved";
        for (const Mutant& m : sampled(mutants_of(k), sample.limit)) {
            if (m.operation.rfind(sample.family, 0) != 0) continue;
            const Judgement j = judge(m.kernel, quick());
            real += j.real;
            caught += j.verdict == MutantVerdict::caught;
            missed += j.verdict == MutantVerdict::missed;
            false_alarms += j.verdict == MutantVerdict::false_alarm;
            EXPECT_NE(j.verdict, MutantVerdict::missed)
                << sample.file << ":" << m.loc.line << ": " << m.operation << ": " << m.change << ": " << j.evidence;
            EXPECT_NE(j.verdict, MutantVerdict::false_alarm) << sample.file << ": " << m.change;
        }
    }
    EXPECT_GE(real, 50);
    EXPECT_GE(caught * 100, real * 95) << caught << " of " << real;
    EXPECT_EQ(missed, 0);
    EXPECT_EQ(false_alarms, 0);
}

TEST(Mutate, ALaunchThatBeginsBeforeItsInputsAreThereIsNotProved) {
    const Loaded l = load("split_k.py");
    ASSERT_TRUE(l.module) << render_text(l.sink, l.sources);
    ASSERT_EQ(l.module->programs.size(), 1u);
    const auto mutants = mutants_of(*l.module, l.module->programs[0], "program/stable");
    ASSERT_EQ(mutants.size(), 1u);
    const Judgement j = judge(mutants[0], quick());
    EXPECT_TRUE(j.real);
    EXPECT_EQ(j.verdict, MutantVerdict::unproved) << j.evidence;
}

}  // namespace mutate_test
}  // namespace tw::diagnose
