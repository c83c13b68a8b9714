// Precision as part of the claim: each file of precision/ states on its first line what the check must say about it.
//   # expect: proved            # expect: proved; remark: PHRASE            # expect: not proved: PHRASE of the reason
#include <fmt/format.h>

#include "diagnose/check.h"
#include "emulate/trial.h"
#include "verify/kernel_test_support.h"
#include "verify/rounding.h"
#include "verify/rounding_bound.h"
#include "verify/rounding_value.h"

namespace tw::verify {
namespace precision_test {

using namespace testing_kernels;

class Precision : public ::testing::TestWithParam<std::string> {};

TEST_P(Precision, IsWhatTheFileSays) {
    const std::string file = "tests/verify/precision/" + GetParam() + ".py";
    std::string first = read_text(repository(file));
    first = first.substr(0, first.find('\n'));
    ASSERT_TRUE(first.starts_with("# expect: "));
    const std::string expected = first.substr(10);
    diagnose::CheckOptions options;
    options.search = false;
    const diagnose::CheckResult result = diagnose::check(kernel_of(file), options);
    std::string reason, remarks;
    for (const Obligation& o : result.obligations) {
        if (o.kind == "precision" && o.status != Status::proved) reason += o.reason;
    }
    for (const auto& r : result.warnings) remarks += r.message + "\n";
    if (expected.starts_with("proved")) {
        EXPECT_TRUE(result.proved()) << reason;
        for (const Obligation& o : result.obligations) EXPECT_EQ(o.status, Status::proved) << o.kind << ": " << o.text << "\n" << o.reason;
        const auto at = expected.find("remark: ");
        if (at == std::string::npos) EXPECT_EQ(remarks, "");
        else EXPECT_NE(remarks.find(expected.substr(at + 8)), std::string::npos) << remarks;
        return;
    }
    EXPECT_FALSE(result.proved());
    ASSERT_TRUE(expected.starts_with("not proved: "));
    EXPECT_NE(reason.find(expected.substr(12)), std::string::npos) << "reason: " << reason;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Precision, ::testing::ValuesIn(python_files("tests/verify/precision")),
                         [](const auto& given) { return given.param; });

ir::Module module_of_text(const std::string& text) {
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "program.py", text, {}, sink);
    EXPECT_TRUE(module.has_value()) << render_text(sink, sources);
    return module ? std::move(*module) : ir::Module{};
}

std::string two_launches(const std::string& buffer, const std::string& stated) {
    return "import tilewright as tw\nfrom tilewright import bf16, f32\nN = tw.sizes(\"N\")\n"
           "@tw.kernel(target=\"sm_80\", computes=\"P[i] = X[i] * 3\", threads=128)\n"
           "def first(X: tw.Tensor(f32, N), P: tw.Tensor(" +
           buffer +
           ", N)):\n"
           "    i = tw.grid(tw.cdiv(N, 512)) * 512\n"
           "    tw.store(P[i : i + 512], (tw.load(X[i : i + 512], fill=0.0) * 3.0).to(" +
           buffer +
           "))\n"
           "@tw.kernel(target=\"sm_80\", computes=\"Y[i] = f32(P[i]) + 1\", threads=128)\n"
           "def second(P: tw.Tensor(" +
           buffer +
           ", N), Y: tw.Tensor(f32, N)):\n"
           "    i = tw.grid(tw.cdiv(N, 512)) * 512\n"
           "    tw.store(Y[i : i + 512], tw.load(P[i : i + 512], fill=0.0).to(f32) + 1.0)\n"
           "@tw.program(computes=\"Y[i] = " +
           stated +
           "\")\n"
           "def both(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):\n"
           "    P = tw.buffer(" +
           buffer + ", N)\n    first(X, P)\n    second(P, Y)\n";
}

bool program_is_precise(const std::string& text) {
    const ir::Module module = module_of_text(text);
    if (module.programs.empty()) return false;
    for (const Obligation& o : check_program_rounding(module, module.programs[0])) {
        if (o.status != Status::proved) return false;
    }
    return true;
}

TEST(Rounding, ABufferBetweenLaunchesCounts) {
    EXPECT_TRUE(program_is_precise(two_launches("f32", "X[i] * 3 + 1")));
    EXPECT_FALSE(program_is_precise(two_launches("bf16", "X[i] * 3 + 1")));
    EXPECT_TRUE(program_is_precise(two_launches("bf16", "f32(bf16(X[i] * 3)) + 1")));
}

// The tolerance of tests follows what is stated, never what the kernel uses.
double tolerance_of(const std::string& name) {
    const ir::Kernel k = kernel_of("tests/verify/precision/" + name + ".py");
    return emulate::stated_tolerance(k.computes, k.tensors, k.computes.equations[0].output);
}

TEST(Tolerance, ComesFromTheCastsOfComputesAlone) {
    EXPECT_EQ(tolerance_of("tf32_in_one_pass"), 1e-5);
    EXPECT_EQ(tolerance_of("bf16_operands"), 1e-5);
    EXPECT_EQ(tolerance_of("fp8_sums_that_grow"), 1e-5);  // tensors of fp8, a sum in f32
    EXPECT_EQ(tolerance_of("tf32_stated"), 4 * 0x1p-10);
    EXPECT_EQ(tolerance_of("fp8_sums_stated_in_f16"), 4 * 0x1p-10);
    EXPECT_EQ(tolerance_of("accumulator_in_f32"), 4 * 0x1p-7);  // a bf16 output
}

emulate::Trial tried(const std::string& name, double tolerance = 0) {
    const ir::Kernel k = kernel_of("tests/verify/precision/" + name + ".py");
    emulate::TrialOptions options;
    options.tolerance = tolerance;
    return emulate::run_trial(k, named_sizes(k, {{"M", 64}, {"N", 64}, {"K", 64}}), options);
}

TEST(Tolerance, OnePassOfTf32FailsWhereF32IsStated) {
    EXPECT_TRUE(tried("tf32_in_one_pass").failed());
    EXPECT_TRUE(tried("bf16_operands").failed());
    EXPECT_TRUE(tried("split_without_low_times_high").failed());
    EXPECT_FALSE(tried("tf32_stated").failed());
    EXPECT_FALSE(tried("tf32_in_three_products").failed());
    EXPECT_FALSE(tried("bf16_in_three_products").failed());
}

TEST(Tolerance, OneThatIsGivenIsHonoured) {
    EXPECT_FALSE(tried("tf32_in_one_pass", 0.1).failed());
    EXPECT_TRUE(tried("tf32_in_three_products", 1e-9).failed());  // f32 itself is not as good
}

TEST(Rounding, ASplitIsAsWrongAsTheFirstProductThatIsLeftOut) {
    Parts p;
    p.x = 0, p.y = 1;
    p.x_unit = p.y_unit = 0x1p-11;
    p.coefficients[{0, 0}] = 1;
    EXPECT_NEAR(p.error(), 2 * 0x1p-11, 1e-6);  // the two products with a rest
    p.coefficients[{0, 1}] = 1;
    EXPECT_NEAR(p.error(), 0x1p-11, 1e-6);
    p.coefficients[{1, 0}] = 1;
    EXPECT_NEAR(p.error(), 3 * 0x1p-22, 1e-9);  // low * low, and what is left of each
    p.coefficients[{1, 0}] = 2;
    EXPECT_NEAR(p.error(), 0x1p-11, 1e-6);
}

TEST(Rounding, CountsAreAPolynomialInTripCounts) {
    Trips trips;
    const int k = trips.symbol("cdiv(K, 64)");
    const Count c = Count::of(3) + trips.times(Count::of(70), k);
    EXPECT_EQ(trips.text(c), "3 + 70 * cdiv(K, 64)");
    EXPECT_TRUE(beyond(c, Count::of(2)).empty());
    EXPECT_FALSE(beyond(Count::of(2), c).empty());
    EXPECT_EQ(larger(c, Count::of(5)), Count::of(5) + trips.times(Count::of(70), k));
}

TEST(Rounding, UnitsAreHalfALastPlace) {
    EXPECT_EQ(unit_roundoff(ir::DType::BF16), 0x1p-8);
    EXPECT_EQ(unit_roundoff(ir::DType::F16), 0x1p-11);
    EXPECT_EQ(unit_roundoff(ir::DType::TF32), 0x1p-11);
    EXPECT_EQ(unit_roundoff(ir::DType::F32), single_unit);
    EXPECT_EQ(unit_roundoff(ir::DType::I32), 0);
}

}  // namespace precision_test
}  // namespace tw::verify
