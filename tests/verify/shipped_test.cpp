// The shipped kernels that the verifier proves completely, for all sizes, as shipped.
#include <algorithm>
#include <filesystem>
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

// Every file of kernels/ but those that only others import.
std::vector<std::string> shipped_files() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(repository("kernels"))) {
        const std::string name = entry.path().stem().string();
        if (entry.path().extension() == ".py" && !name.ends_with("_parts")) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

class Shipped : public ::testing::TestWithParam<std::string> {};

TEST_P(Shipped, IsProvedWithoutSearch) {
    for (const ir::Kernel& kernel : kernels_of("kernels/" + GetParam() + ".py")) {
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

INSTANTIATE_TEST_SUITE_P(Kernels, Shipped, ::testing::ValuesIn(shipped_files()), [](const auto& given) { return given.param; });

TEST(Shipped, EveryFileIsChecked) { EXPECT_GT(shipped_files().size(), 40u); }

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
