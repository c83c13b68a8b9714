// Vacuity is mechanical: with fresh unknowns in place of what an assertion speaks of, it must not hold any more.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace vacuity_test {

using namespace testing_kernels;

std::string copy_with(const std::string& lines) {
    return R"(import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Z[n] = X[n]", threads=64)
def copy(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N)):
)" + lines +
           R"(
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

TEST(Vacuity, AnExpectThatNoLaunchReachesSaysNothing) {
    auto status = [](const std::string& condition) {
        for (const Obligation& o :
             checked(copy_with("    b = tw.block(0)\n    if " + condition + ":\n        tw.expect(64 * b < N)")).obligations) {
            if (o.kind == "expect") return o.status;
        }
        ADD_FAILURE() << "no assertion was made under " << condition;
        return Status::violated;
    };
    EXPECT_EQ(status("N < 0"), Status::vacuous);
    EXPECT_EQ(status("b > N"), Status::vacuous);
    EXPECT_EQ(status("N > 1000"), Status::proved);
}

// A transpose through shared memory under a condition.
std::string transposed_if(const std::string& condition) {
    return R"(import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=128)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    bn, bm = tw.grid(tw.cdiv(N, 32), tw.cdiv(M, 32))
    s = tw.shared(f32, (32, 32), pad=1)
    if )" + condition +
           R"(:
        tw.store(s, tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0))
        tw.sync()
        tw.store(Y[bn * 32, bm * 32], tw.load(s.T))
)";
}

TEST(Vacuity, OrderOfAccessesThatNoInstanceReachesSaysNothing) {
    auto statuses = [](const std::string& condition) {
        std::map<std::string, Status> result;
        for (const Obligation& o : checked(transposed_if(condition)).obligations) {
            if (o.code == "TW2001" || o.code == "TW2002" || o.code == "TW2005") result[o.code] = o.status;
        }
        return result;
    };
    for (const auto& [code, status] : statuses("N < 0")) EXPECT_EQ(status, Status::vacuous) << code;
    for (const auto& [code, status] : statuses("N > 0")) EXPECT_EQ(status, Status::proved) << code;
    EXPECT_EQ(statuses("N < 0").size(), 3u);
}

TEST(Vacuity, OrderOfAKernelThatSharesNothingIsSettledByItsText) {
    for (const Obligation& o : checked(copy_with("")).obligations) {
        if (o.code != "TW2001") continue;
        EXPECT_EQ(o.status, Status::proved);
        EXPECT_EQ(o.prover, "syntax");
        EXPECT_NE(o.text.find("no statement that could break it"), std::string::npos) << o.text;
    }
}

}  // namespace vacuity_test
}  // namespace tw::verify
