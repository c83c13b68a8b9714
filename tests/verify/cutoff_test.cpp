// From instances to all sizes: kernels whose fault shows only far away from every small instance. None may be proved.
#include <fmt/format.h>

#include "verify/kernel_test_support.h"
#include "verify/order.h"
#include "verify/steering.h"

namespace tw::verify {
namespace cutoff_test {

using namespace testing_kernels;

// Rows through one shared tile, read by other threads than wrote it. `before_write` keeps a tile from being overwritten while
// it is still read; where it is left out there is a race.
std::string copy(const std::string& before_write, const std::string& top = "", const std::string& slot = "",
                 const std::string& parameters = "") {
    std::string guard;
    std::istringstream lines(before_write);
    for (std::string line; std::getline(lines, line);) guard += "        " + line + "\n";
    return fmt::format(R"(import tilewright as tw
from tilewright import f32, i32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(f32, M, N), {}Y: tw.Tensor(f32, M, N)):
    {}
    bm = tw.grid(tw.cdiv(M, 32))
    s = tw.shared(f32, (2, 32, 32), pad=1)
    for c in tw.range(tw.cdiv(N, 32)):
        x = tw.load(X[bm * 32 : bm * 32 + 32, c * 32 : c * 32 + 32], fill=0.0)
{}        tw.store(s[{}], x)
        tw.sync()
        tw.store(Y[bm * 32, c * 32], tw.load(s[{}], layout=tw.rows()))
)",
                       parameters, top.empty() ? "pass" : top, guard, slot.empty() ? "0" : slot, slot.empty() ? "0" : slot);
}

bool proved(const std::string& text) {
    const OrderResult r = check_order(kernel_of_text(text));
    return std::all_of(r.obligations.begin(), r.obligations.end(), [](const Obligation& o) { return o.status == Status::proved; });
}

TEST(Cutoff, TheKernelItselfIsFine) {
    EXPECT_TRUE(proved(copy("tw.sync()")));
    EXPECT_TRUE(proved(copy("if c > 0:\n    tw.sync()"))) << "near the start";
    EXPECT_TRUE(proved(copy("if c < tw.cdiv(N, 32):\n    tw.sync()"))) << "always true, near the end";
    EXPECT_TRUE(proved(copy("tw.sync()", "tw.assume(N >= 1000)")));
    EXPECT_TRUE(proved(copy("tw.sync()", "tw.assume(M == 2 * N)")));
    EXPECT_TRUE(proved(copy("", "", "c % 2"))) << "two slots: the barrier of the round before is enough";
    EXPECT_FALSE(proved(copy("")));
}

TEST(Cutoff, AConditionThatTurnsFarInsideALoop) {
    EXPECT_FALSE(proved(copy("if c < 50:\n    tw.sync()")));
    EXPECT_FALSE(proved(copy("if c < 5000:\n    tw.sync()")));
    EXPECT_FALSE(proved(copy("if c < tw.cdiv(N, 32) - 70:\n    tw.sync()")));
    EXPECT_FALSE(proved(copy("if 2 * c < tw.cdiv(N, 32):\n    tw.sync()")));
    EXPECT_FALSE(proved(copy("if c * 7 < M:\n    tw.sync()")));
}

TEST(Cutoff, APeriodLongerThanTheRing) {
    EXPECT_FALSE(proved(copy("if c // 40 % 2 == 0:\n    tw.sync()")));
    EXPECT_FALSE(proved(copy("if c % 90 != 89:\n    tw.sync()")));
    EXPECT_FALSE(proved(copy("if c // 1000 % 2 == 0:\n    tw.sync()"))) << "too long to be tried: not proved";
    EXPECT_EQ(steering_of(kernel_of_text(copy("if c // 40 % 2 == 0:\n    tw.sync()"))).period, 80);
}

TEST(Cutoff, AConditionOnSizes) {
    EXPECT_FALSE(proved(copy("if N < 5000:\n    tw.sync()")));
    EXPECT_FALSE(proved(copy("if M != N + 5:\n    tw.sync()")));
    EXPECT_FALSE(proved(copy("if N % 977 != 3:\n    tw.sync()")));
    EXPECT_TRUE(proved(copy("if N < 5000:\n    tw.sync()\nelse:\n    tw.sync()")));
}

TEST(Cutoff, AConditionOnTheBlock) {
    EXPECT_FALSE(proved(copy("if bm != 40:\n    tw.sync()")));
    EXPECT_FALSE(proved(copy("if bm < 1000:\n    tw.sync()")));
}

TEST(Cutoff, AssumptionsThatNoSmallInstanceMeets) {
    EXPECT_FALSE(proved(copy("", "tw.assume(N >= 1000)")));
    EXPECT_FALSE(proved(copy("", "tw.assume(M == 3 * N + 7)")));
    EXPECT_FALSE(proved(copy("", "tw.assume(M * N == 391)"))) << "no instance is found: not proved";
}

TEST(Cutoff, ALoopThatSmallInstancesDoNotEnter) {
    const std::string late = R"(for d in tw.range(N - 3000):
    tw.store(s[1], x)
    x = tw.load(s[1], layout=tw.rows())
tw.sync())";
    EXPECT_FALSE(proved(copy(late)));
}

TEST(Cutoff, ASlotThatLeavesItsBuffer) {
    EXPECT_FALSE(proved(copy("tw.sync()", "", "c // 30"))) << "two slots are enough for the first 60 rounds only";
    EXPECT_FALSE(proved(copy("tw.sync()", "", "bm // 30")));
    EXPECT_FALSE(proved(copy("tw.sync()", "", "tw.min(c // 30, 9)")));
}

TEST(Cutoff, AnOrderThatDependsOnData) {
    const std::string index = "idx: tw.Tensor(i32, M), ";
    EXPECT_FALSE(proved(copy("if idx[0] == 0:\n    tw.sync()", "", "", index))) << "zeros hide it";
    EXPECT_FALSE(proved(
        copy("for d in tw.range(idx[0]):\n    tw.store(s[1], x)\n    x = tw.load(s[1], layout=tw.rows())\ntw.sync()", "", "", index)));
}

}  // namespace cutoff_test
}  // namespace tw::verify
