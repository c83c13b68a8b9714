// The side conditions of the cut-off theorem (docs/verifier.md), lanes, arrivals and tile orders: each file of theorem/ is a small kernel.
// `bad_*` fail on some instance, mostly far from small ones, and may not be proved; `ok_*` beside them have the same form, are right, and
// should be.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace theorem_test {

using namespace testing_kernels;

class Theorem : public ::testing::TestWithParam<std::string> {};

TEST_P(Theorem, NothingWrongIsProved) {
    const ir::Kernel kernel = kernel_of("tests/verify/theorem/" + GetParam() + ".py");
    diagnose::CheckOptions options;
    options.search = false;
    const diagnose::CheckResult result = diagnose::check(kernel, options);
    std::string reasons;
    for (const Obligation& o : result.obligations) {
        if (o.status != Status::proved) reasons += o.kind + ": " + o.reason + "\n";
    }
    EXPECT_EQ(result.proved(), GetParam().starts_with("ok_")) << reasons;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Theorem, ::testing::ValuesIn(python_files("tests/verify/theorem")),
                         [](const auto& given) { return given.param; });

}  // namespace theorem_test
}  // namespace tw::verify
