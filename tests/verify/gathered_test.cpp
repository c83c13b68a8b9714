// Updates at places that data name, G[idx[t], n] += X[t, n]: each file of gathered/ is a small kernel. `ok_*` are right and have to be
// proved, `bad_*` are wrong and may not be; a kernel of gathered/ that runs on the emulator without a fault and is called wrong has its
// reason here.
#include "diagnose/check.h"
#include "emulate/contents.h"
#include "emulate/trial.h"
#include "verify/kernel_test_support.h"
#include "verify/program.h"

namespace tw::verify {
namespace gathered_test {

using namespace testing_kernels;

class Gathered : public ::testing::TestWithParam<std::string> {};

TEST_P(Gathered, WhatIsRightIsProvedAndNothingElse) {
    const ir::Kernel kernel = kernel_of("tests/verify/gathered/" + GetParam() + ".py");
    diagnose::CheckOptions options;
    options.search = false;
    const diagnose::CheckResult result = diagnose::check(kernel, options);
    std::string reasons;
    for (const Obligation& o : result.obligations) {
        if (o.status != Status::proved) reasons += o.kind + ": " + o.reason + "\n";
    }
    EXPECT_EQ(result.proved(), GetParam().starts_with("ok_")) << reasons;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Gathered, ::testing::ValuesIn(python_files("tests/verify/gathered")),
                         [](const auto& given) { return given.param; });

std::vector<std::int64_t> sizes_of(const ir::Kernel& kernel, std::int64_t rows, std::int64_t places, std::int64_t columns) {
    std::vector<std::int64_t> sizes;
    for (const std::string& name : kernel.sizes) sizes.push_back(name == "T" ? rows : name == "S" ? places : columns);
    return sizes;
}

// Two sources for one place, a place that nobody names, and sources that name none.
TEST(GatheredRuns, SourcesOfOnePlaceAddUpAndOthersKeepWhatTheyHeld) {
    const ir::Kernel kernel = kernel_of("tests/verify/gathered/ok_add_rows_kept.py");
    emulate::TrialOptions options;
    options.inputs["idx"] = {2, 0, 2, -1, 9};
    const auto sizes = sizes_of(kernel, 5, 4, 3);
    const auto before = emulate::random_inputs(kernel, sizes, options.seed, false);
    const emulate::Trial trial = emulate::run_trial(kernel, sizes, options);
    EXPECT_EQ(trial.refused, "");
    EXPECT_FALSE(trial.failed()) << trial.summary(kernel);
    for (std::int64_t n = 0; n < 3; ++n) {
        for (const std::int64_t v : {1, 3}) EXPECT_EQ(trial.tensors[2].get({v, n}), before[2].get({v, n}));
        const double x0 = before[0].get({0, n}), x2 = before[0].get({2, n});
        EXPECT_NEAR(trial.tensors[2].get({2, n}), before[2].get({2, n}) + x0 + x2, 1e-6);
        EXPECT_NEAR(trial.tensors[2].get({0, n}), before[2].get({0, n}) + before[0].get({1, n}), 1e-6);
    }
}

// Without a promise the contents name places of the output, so that a run sees sums, and one on each side that is none.
TEST(GatheredRuns, WhatIsComparedWithAPlaceNamesPlaces) {
    const ir::Kernel kernel = kernel_of("tests/verify/gathered/ok_add_rows_said.py");
    const auto inputs = emulate::random_inputs(kernel, sizes_of(kernel, 64, 4, 2), 3, false);
    std::set<double> seen;
    for (std::int64_t t = 0; t < 64; ++t) seen.insert(inputs[1].get({t}));
    EXPECT_EQ(seen, (std::set<double>{-1, 0, 1, 2, 3, 4}));
}

// Programs: zeros and then the additions of launches, against the sum that is stated of both.
std::string program_of(const std::string& computes, const std::string& launches) {
    return R"py(import tilewright as tw
from tilewright import f32, i32

T, S, N = tw.sizes("T S N")


@tw.kernel(target="sm_80", computes="G[v, n] = 0.0", threads=128)
def fill(G: tw.Tensor(f32, S, N)):
    bn, bv = tw.grid(tw.cdiv(N, 128), tw.cdiv(S, 16))
    tw.store(G[bv * 16, bn * 128], tw.zeros(f32, (16, 128)))


@tw.kernel(target="sm_80", computes="G[idx[t], n] += X[t, n]", threads=128)
def add_rows(X: tw.Tensor(f32, T, N), idx: tw.Tensor(i32, T), G: tw.Tensor(f32, S, N)):
    bn, bt = tw.grid(tw.cdiv(N, 128), tw.cdiv(T, 16))
    place = tw.load(idx[bt * 16 : bt * 16 + 16], fill=-1)
    x = tw.load(X[bt * 16 : bt * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.atomic_add(G[place, bn * 128 : bn * 128 + 128], x)


@tw.program(computes=")py" +
           computes + R"py(")
def summed(X: tw.Tensor(f32, T, N), Z: tw.Tensor(f32, T, N), idx: tw.Tensor(i32, T), other: tw.Tensor(i32, T), G: tw.Tensor(f32, S, N)):
)py" + launches;
}

bool proved(const std::string& computes, const std::string& launches) {
    SourceMap sources;
    DiagnosticSink sink;
    const auto module = lower::compile_text(sources, "program.py", program_of(computes, launches), {}, sink);
    EXPECT_TRUE(module.has_value()) << render_text(sink, sources);
    if (!module) return false;
    const auto obligations = check_program(*module, module->programs.at(0));
    return std::all_of(obligations.begin(), obligations.end(), [](const Obligation& o) { return o.status == Status::proved; });
}

TEST(GatheredPrograms, ZerosAndAdditionsAreTheSumThatIsStated) {
    const std::string sum = "G[v, n] = sum(t, where(idx[t] == v, X[t, n], 0.0))";
    const std::string fill = "    fill(G)\n", add = "    add_rows(X, idx, G)\n";
    EXPECT_TRUE(proved(sum, fill + add));
    EXPECT_TRUE(proved("G[idx[t], n] += X[t, n]", add));
    EXPECT_TRUE(proved("G[v, n] = G[v, n] + sum(t, where(idx[t] == v, X[t, n], 0.0)) + sum(t, where(idx[t] == v, Z[t, n], 0.0))",
                       add + "    add_rows(Z, idx, G)\n"));
    EXPECT_FALSE(proved(sum, add));
    EXPECT_FALSE(proved(sum, add + fill));
    EXPECT_FALSE(proved(sum, fill + add + add));
    EXPECT_FALSE(proved(sum, fill + "    add_rows(X, other, G)\n"));
    EXPECT_FALSE(proved(sum, fill + "    add_rows(Z, idx, G)\n"));
}

}  // namespace gathered_test
}  // namespace tw::verify
