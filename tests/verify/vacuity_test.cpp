// Vacuity is mechanical: with fresh unknowns in place of what an assertion speaks of, it must not hold any more.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace {

using namespace testing_kernels;

std::string copy_with(const std::string& lines) {
    return R"(import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Z[n] = X[n]", threads=64)
def copy(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N)):
)" + lines + R"(
    i = tw.grid(tw.cdiv(N, 64)) * 64
    x = tw.load(X[i : i + 64], fill=0.0)
    tw.store(Z[i : i + 64], x)
)";
}

diagnose::CheckResult checked(const std::string& text) {
    diagnose::CheckOptions options;
    options.search = false;
    return diagnose::check(kernel_of_text(text), options);
}

Status status_of_expect(const std::string& condition) {
    for (const Obligation& o : checked(copy_with("    b = tw.block(0)\n    tw.expect(" + condition + ")")).obligations) {
        if (o.kind == "expect") return o.status;
    }
    ADD_FAILURE() << "no assertion was made of " << condition;
    return Status::violated;
}

TEST(Vacuity, ConditionsThatHoldOfAnyNumberSayNothing) {
    EXPECT_EQ(status_of_expect("b % 64 < 64"), Status::vacuous);
    EXPECT_EQ(status_of_expect("b - b == 0"), Status::vacuous);
    EXPECT_EQ(status_of_expect("b // 2 * 2 <= b"), Status::vacuous);
}

TEST(Vacuity, ConditionsThatHoldBecauseOfTheLaunchSaySomething) {
    EXPECT_EQ(status_of_expect("b >= 0"), Status::proved);
    EXPECT_EQ(status_of_expect("64 * b < N"), Status::proved);
    EXPECT_EQ(status_of_expect("b < 3"), Status::not_proved);
}

TEST(Vacuity, AVacuousAssertionIsNotAProof) {
    EXPECT_FALSE(checked(copy_with("    tw.expect(tw.block(0) - tw.block(0) == 0)")).proved());
    EXPECT_TRUE(checked(copy_with("    tw.expect(tw.block(0) >= 0)")).proved());
}

TEST(Vacuity, AssumptionsThatExcludeEachOtherProveNothing) {
    const auto result = checked(copy_with("    tw.assume(N > 10)\n    tw.assume(N < 5)"));
    for (const Obligation& o : result.obligations) EXPECT_NE(o.status, Status::proved) << o.kind << ": " << o.text;
}

}  // namespace
}  // namespace tw::verify
