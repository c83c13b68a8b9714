// The fp64 reference where what stands between is beyond fp64's range: exponentials that underflow or overflow.
#include <cmath>

#include "emulate/reference.h"
#include "verify/kernel_test_support.h"

namespace tw::emulate {
namespace range_test {

using namespace testing_kernels;

// The reference of Y, an output of M rows and N columns (N 0: of M elements), for X of 2 x 3 filled with these.
std::vector<double> reference_of(const std::string& computes, const std::string& output, const std::vector<double>& x,
                                 bool single_precision = false) {
    const ir::Kernel k = kernel_of_text(
        "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n@tw.kernel(target=\"sm_80\", computes=\"" +
        computes + "\")\ndef k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, " + output + ")):\n    m = tw.grid(M)\n    tw.store(Y[" +
        (output == "M" ? "m" : "m, 0 : 128") + "], " + (output == "M" ? "tw.load(X[m, 0])" : "tw.load(X[m, 0:128], fill=0.0)") + ")\n");
    std::vector<TensorData> tensors;
    tensors.push_back(make_tensor(target::DType::F32, {2, 3}, {3, 1}));
    for (int i = 0; i < 6; ++i) tensors[0].set({i / 3, i % 3}, x[static_cast<std::size_t>(i)]);
    tensors.push_back(output == "M" ? make_tensor(target::DType::F32, {2}, {1}) : make_tensor(target::DType::F32, {2, 3}, {3, 1}));
    ReferenceOptions options;
    options.single_precision = single_precision;
    const auto r = reference(k.computes, named_sizes(k, {{"M", 2}, {"N", 3}}), {}, tensors, options);
    EXPECT_TRUE(r.has_value());
    return r ? (*r)[0].values : std::vector<double>{};
}

const std::vector<double> kSmall = {-1000, -1001, -1002, -800, -900, -750}, kLarge = {1000, 1001, 1002, 800, 900, 750};

// log(e^0 + e^-1 + e^-2) = 0.40760596444438, added to the largest element.
TEST(ReferenceRange, LogsumexpOfVerySmallAndVeryLargeElements) {
    const auto small = reference_of("Y[m] = logsumexp(n, X[m, n])", "M", kSmall);
    ASSERT_EQ(small.size(), 2u);
    EXPECT_NEAR(small[0], -1000 + 0.40760596444438, 1e-9);
    EXPECT_NEAR(small[1], -750, 1e-9);
    const auto large = reference_of("Y[m] = logsumexp(n, X[m, n])", "M", kLarge);
    EXPECT_NEAR(large[0], 1002 + 0.40760596444438, 1e-9);
    EXPECT_NEAR(large[1], 900, 1e-9);
}

TEST(ReferenceRange, SoftmaxOfThem) {
    for (const auto& data : {kSmall, kLarge}) {
        const auto p = reference_of("Y[m, n] = softmax(n, X[m, n])", "M, N", data);
        ASSERT_EQ(p.size(), 6u);
        EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-12);
        EXPECT_NEAR(std::fabs(std::log(p[0] / p[1])), 1, 1e-9);
        EXPECT_NEAR(p[3] + p[4] + p[5], 1, 1e-12);
    }
}

TEST(ReferenceRange, WrittenOutAndOfParts) {
    EXPECT_NEAR(reference_of("Y[m] = log(sum(n, exp(X[m, n]) * 2.0))", "M", kSmall)[0], -1000 + 0.40760596444438 + std::log(2.0), 1e-9);
    EXPECT_NEAR(reference_of("Y[m] = log2(sum(n, where(n < 2, exp(X[m, n]), 0.0)))", "M", kSmall)[1], -800 / std::log(2.0), 1e-9);
}

// A logarithm of nothing stays what it is, and the f32 reference keeps f32's range: it is there to tell what f32 cannot hold.
TEST(ReferenceRange, WhatIsMeantStays) {
    EXPECT_EQ(reference_of("Y[m] = log(sum(n, exp(X[m, n]) * 0.0))", "M", kSmall)[0], -std::numeric_limits<double>::infinity());
    EXPECT_EQ(reference_of("Y[m] = logsumexp(n, X[m, n])", "M", kSmall, true)[0], -std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(reference_of("Y[m] = X[m, 0] * 0.0 / (X[m, 1] * 0.0)", "M", kSmall)[0]));
}

}  // namespace range_test
}  // namespace tw::emulate
