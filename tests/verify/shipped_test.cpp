// The shipped kernels that the verifier proves completely, for all sizes, as shipped.
#include <set>

#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace {

using namespace testing_kernels;

class Shipped : public ::testing::TestWithParam<const char*> {};

TEST_P(Shipped, IsProvedWithoutSearch) {
    for (const ir::Kernel& kernel : kernels_of(std::string("kernels/") + GetParam() + ".py")) {
        diagnose::CheckOptions options;
        options.search = false;
        const diagnose::CheckResult result = diagnose::check(kernel, options);
        EXPECT_TRUE(result.proved()) << kernel.name << " at line " << kernel.loc.line;
        EXPECT_GT(result.instances, 0);
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
                         ::testing::Values("vector_add", "bias_gelu", "softmax", "layernorm", "rmsnorm", "transpose", "gemm_sm80", "gemm_sm90", "gemm_cluster_sm90", "attention_sm90", "reductions", "cumsum", "split_k"),
                         [](const auto& info) { return std::string(info.param); });

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

}  // namespace
}  // namespace tw::verify
