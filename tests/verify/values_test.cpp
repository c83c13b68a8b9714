// What tiles are made of: each file of values/ has kernels of one class, `ok_*` are right and have to be proved, `bad_*` are wrong and may
// not be. Programs likewise.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace values_test {

using namespace testing_kernels;

class MadeOf : public ::testing::TestWithParam<std::string> {};

TEST_P(MadeOf, WhatIsRightIsProvedAndNothingElse) {
    const std::vector<ir::Kernel> kernels = kernels_of("tests/verify/values/" + GetParam() + ".py");
    ASSERT_FALSE(kernels.empty());
    diagnose::CheckOptions options;
    options.search = false;
    for (const ir::Kernel& kernel : kernels) {
        const diagnose::CheckResult result = diagnose::check(kernel, options);
        std::string reasons;
        for (const Obligation& o : result.obligations) {
            if (o.status != Status::proved) reasons += o.kind + ": " + o.reason + "\n";
        }
        ASSERT_TRUE(kernel.name.starts_with("ok_") || kernel.name.starts_with("bad_")) << kernel.name;
        EXPECT_EQ(result.proved(), kernel.name.starts_with("ok_")) << kernel.name << "\n" << reasons;
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, MadeOf, ::testing::ValuesIn(python_files("tests/verify/values")),
                         [](const auto& given) { return given.param; });

// A map that permutes chunks of 16 bytes leaves the first row where it is, and no other.
TEST(MadeOf, RowsThatTheMapPermutesAndTheBufferDoesNotAreNotProved) {
    for (const target::SwizzleMode mode : {target::SwizzleMode::B32, target::SwizzleMode::B64, target::SwizzleMode::B128}) {
        ir::Kernel kernel = kernel_of("tests/verify/values/ring_of_rows.py");
        ASSERT_EQ(kernel.tensor_maps.size(), 1u);
        kernel.tensor_maps[0].swizzle = mode;
        diagnose::CheckOptions options;
        options.search = false;
        EXPECT_FALSE(diagnose::check(kernel, options).proved());
    }
}

}  // namespace values_test
}  // namespace tw::verify
