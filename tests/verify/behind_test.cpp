// A persistent loop that stores one iteration behind: what an iteration leaves in registers is stored by the next one, the last one's after
// the loop. Proved as one store of every iteration, and only then.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace behind_test {

using namespace testing_kernels;

std::string kernel_with(const std::string& start, const std::string& place, const std::string& left, const std::string& after) {
    return R"(import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n] * 2")
def behind(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    held = tw.zeros(f32, (128,))
    at = 0
    holds = )" +
           start + R"(
    for t in tw.persistent(tw.cdiv(N, 128)):
        if holds == 1:
            tw.store(Y[)" +
           place + " : " + place + R"( + 128], held)
        held = tw.load(X[t * 128 : t * 128 + 128], fill=0.0) * 2.0
)" + left + R"(
        holds = 1
)" + after +
           "\n";
}

const std::string kLeft = "        at = t * 128", kAfter = "    tw.store(Y[at : at + 128], held)";

bool proved(const std::string& text) {
    diagnose::CheckOptions options;
    options.search = false;
    return diagnose::check(kernel_of_text(text), options).proved();
}

TEST(StoresOneIterationBehind, TogetherWithTheLastOneAreOneStoreOfEach) { EXPECT_TRUE(proved(kernel_with("0", "at", kLeft, kAfter))); }

TEST(StoresOneIterationBehind, NeedTheLastOne) { EXPECT_FALSE(proved(kernel_with("0", "at", kLeft, ""))); }

TEST(StoresOneIterationBehind, NeedTheLastOneOnce) {
    for (const char* times : {"N // 1024", "2"})
        EXPECT_FALSE(proved(
            kernel_with("0", "at", kLeft, std::string("    for r in tw.range(") + times + "):\n        tw.store(Y[at : at + 128], held)")))
            << times;
}

TEST(StoresOneIterationBehind, GoWhereTheirElementsBelong) {
    EXPECT_FALSE(proved(kernel_with("0", "t * 128", kLeft, kAfter)));                                   // the present iteration's place
    EXPECT_FALSE(proved(kernel_with("0", "at", "        pass", kAfter)));                               // never moved
    EXPECT_FALSE(proved(kernel_with("0", "at", "        at = t * 128 + 128", kAfter)));                 // the next tile's
    EXPECT_FALSE(proved(kernel_with("0", "at", kLeft, "    tw.store(Y[at + 128 : at + 256], held)")));  // after the loop, elsewhere
}

TEST(StoresOneIterationBehind, HaveSomethingToStore) { EXPECT_FALSE(proved(kernel_with("1", "at", kLeft, kAfter))); }

TEST(StoresOneIterationBehind, StoreWhatTheIterationLeft) {
    EXPECT_FALSE(proved(kernel_with("0", "at", "        at = t * 128\n        held = held + 1.0", kAfter)));
    EXPECT_FALSE(proved(kernel_with("0", "at", kLeft, "    tw.store(Y[at : at + 128], held * 2.0)")));
}

// The store in branches of the iteration that follows: `branches` is its head.
std::string kernel_in_branches(const std::string& branches) {
    std::string text = kernel_with("0", "at", kLeft, kAfter);
    const std::string plain = "        if holds == 1:\n            tw.store(Y[at : at + 128], held)\n";
    const auto place = text.find(plain);
    EXPECT_NE(place, std::string::npos);
    return text.replace(place, plain.size(), branches);
}

std::string branch(const std::string& condition, const std::string& at = "at") {
    return "        if " + condition + ":\n            if holds == 1:\n                tw.store(Y[" + at + " : " + at + " + 128], held)\n";
}

TEST(StoresOneIterationBehind, MayBeInBranchesOfWhichOneIsTaken) {
    EXPECT_TRUE(proved(kernel_in_branches(branch("t % 2 == 0") + branch("t % 2 == 1"))));
    EXPECT_TRUE(proved(kernel_in_branches(branch("N > 1000") + branch("N <= 1000"))));
    EXPECT_TRUE(proved(kernel_in_branches(branch("t < 5") + branch("t >= 5"))));
}

// Everything is proved but that each element is written once: the reason.
std::string why_not_once(const std::string& text) {
    diagnose::CheckOptions options;
    options.search = false;
    std::string reason;
    for (const Obligation& o : diagnose::check(kernel_of_text(text), options).obligations) {
        if (o.status == Status::proved) continue;
        EXPECT_EQ(o.kind, "written once") << o.reason;
        reason = o.reason.substr(0, o.reason.find('\n'));  // the forms that pass follow
    }
    return reason;
}

TEST(StoresOneIterationBehind, AreInNoBranchTwiceOrNever) {
    const std::string never = "an iteration may take no branch that stores what the one before left",
                      twice = "two branches that store what the iteration before left may both be taken";
    EXPECT_EQ(why_not_once(kernel_in_branches(branch("t % 2 == 0"))), never);
    EXPECT_EQ(why_not_once(kernel_in_branches(branch("t < 5") + branch("t > 5"))), never);              // iteration 5
    EXPECT_EQ(why_not_once(kernel_in_branches(branch("N > 1000") + branch("N < 1000"))), never);        // at N = 1000
    EXPECT_EQ(why_not_once(kernel_in_branches(branch("t <= 5") + branch("t >= 5"))), twice);            // iteration 5
    EXPECT_FALSE(proved(kernel_in_branches(branch("t % 2 == 0") + branch("t % 2 == 1", "at + 128"))));  // one branch stores elsewhere
    std::string often = branch("t % 2 == 1");  // one branch stores as often as a loop runs
    often.replace(often.find("            if holds == 1:\n    "), 27 + 4,
                  "            for r in tw.range(N // 1024):\n                if holds == 1:\n        ");
    EXPECT_FALSE(proved(kernel_in_branches(branch("t % 2 == 0") + often)));
}

}  // namespace behind_test
}  // namespace tw::verify
