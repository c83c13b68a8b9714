// The shipped kernels that the verifier proves completely, for all sizes, as shipped.
#include <set>

#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace shipped_test {

using namespace testing_kernels;

// The bars: no kernel over a second of processor time, the Hopper GEMM under 100 ms, attention under 300 ms
// (bench/results/verdicts.json has what was measured). Ten times that for the two, four times for all: a slow machine passes, a proof
// that has become quadratic does not.
void expect_quick(const ir::Kernel& kernel, const diagnose::CheckResult& result) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return;  // time says nothing here
#endif
    const double limit = kernel.name == "gemm" ? 1000 : kernel.name == "attention" ? 3000 : 4000;
    EXPECT_LT(result.milliseconds, limit) << kernel.name << " at line " << kernel.loc.line << ": milliseconds of processor time";
}

class Shipped : public ::testing::TestWithParam<const char*> {};

TEST_P(Shipped, IsProvedWithoutSearch) {
    for (const ir::Kernel& kernel : kernels_of(std::string("kernels/") + GetParam() + ".py")) {
        diagnose::CheckOptions options;
        options.search = false;
        const diagnose::CheckResult result = diagnose::check(kernel, options);
        EXPECT_TRUE(result.proved()) << kernel.name << " at line " << kernel.loc.line;
        EXPECT_GT(result.instances, 0);
        expect_quick(kernel, result);
        std::set<std::string> kinds;
        for (const Obligation& o : result.obligations) {
            kinds.insert(o.kind);
            EXPECT_EQ(o.status, Status::proved) << kernel.name << ": " << o.kind << ": " << o.text << "\n" << o.reason;
            EXPECT_FALSE(o.prover.empty()) << o.kind;
        }
        // A proof that forgot to ask is no proof.
        EXPECT_TRUE(kinds.count("output value") && kinds.count("written once")) << kernel.name;
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Shipped,
                         ::testing::Values("vector_add", "bias_gelu", "softmax", "layernorm", "rmsnorm", "transpose", "gemm_sm80",
                                           "gemm_sm90", "gemm_cluster_sm90", "attention_sm90", "reductions", "cumsum", "split_k"),
                         [](const auto& info) { return std::string(info.param); });

const std::vector<std::string> slow_files = {"gemm_deferred_sm90", "gemm_split_sm90",   "gemm_fused_sm90",
                                             "softmax_sm90",       "grouped_gemm_sm90", "gathered_swiglu_sm90"};

// The files with the most to prove, whatever the verdict.
TEST(Shipped, NoKernelIsFarOverTheBar) {
    for (const std::string& file : slow_files) {
        SCOPED_TRACE(file);
        for (const ir::Kernel& kernel : kernels_of("kernels/" + file + ".py")) {
            diagnose::CheckOptions options;
            options.search = false;
            expect_quick(kernel, diagnose::check(kernel, options));
        }
    }
}

// A kernel that says nothing of what it computes has nothing to prove about its outputs, and must not come out as if it had.
TEST(Shipped, TheSameKernelWithAnotherEquationIsNotProved) {
    std::string text = read_text(repository("kernels/vector_add.py"));
    const std::string right = "C[i] = A[i] + B[i]";
    ASSERT_NE(text.find(right), std::string::npos);
    text.replace(text.find(right), right.size(), "C[i] = A[i] - B[i]");
    const auto result = diagnose::check(kernel_of_text(text), {});
    EXPECT_FALSE(result.proved());
    ASSERT_TRUE(result.violated());
    EXPECT_EQ(result.counterexample->code, "TW1001");
}

}  // namespace shipped_test
}  // namespace tw::verify
