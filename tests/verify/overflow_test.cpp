// Numbers beyond 64 bits: what a proof made of them is not believed.
#include "diagnose/check.h"
#include "verify/integer.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace overflow_test {

using namespace testing_kernels;

TEST(Overflow, OfACoefficientIsCounted) {
    Integers ints;
    const Poly n = Poly::of(ints.symbol("N"));
    const std::uint64_t before = coefficient_overflows();
    EXPECT_EQ((Poly(1) + n) - n, Poly(1));
    EXPECT_EQ(coefficient_overflows(), before);
    (void)(Poly(INT64_MAX) * n * Poly(2));
    EXPECT_GT(coefficient_overflows(), before);
    const std::uint64_t then = coefficient_overflows();
    (void)(Poly(INT64_MAX) * n + Poly(INT64_MAX) * n);
    EXPECT_GT(coefficient_overflows(), then);
}

// 128 * 2^62 * 4 is 2^71: 0 to who counts in 64 bits, and then the condition always held.
TEST(Overflow, InAConditionProvesNothing) {
    const ir::Kernel k = kernel_of_text(R"py(
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n]")
def copy(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    far = i * 4611686018427387904 * 4
    if far < 7:
        tw.store(Y[i], tw.load(X[i : i + 128], fill=0.0))
)py");
    const diagnose::CheckResult result = diagnose::check(k, {});
    EXPECT_FALSE(result.proved());
    for (const Obligation& o : result.obligations) EXPECT_NE(o.kind == "output value" && o.status == Status::proved, true) << o.text;
}

}  // namespace overflow_test
}  // namespace tw::verify
