// Step `counters`: slots and phases advanced by hand.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::lower {
namespace counters_test {

using namespace testing_kernels;

// A copy through a ring of three slots, with this text after each round of a role.
std::string ring(const std::string& advance, const std::string& producer_start = "slot = 0\n        phase = 1") {
    const std::string after = "            " + advance + "\n";
    return R"py(import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] * 2.0")
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 8 == 0)
    bm = tw.grid(tw.cdiv(M, 64))
    s = tw.shared(f32, (3, 64, 32))
    full = tw.mbarrier(3)
    empty = tw.mbarrier(3)
    with tw.warpgroups(0, name="producer"):
        )py" +
           producer_start +
           R"py(
        for c in tw.range(tw.cdiv(N, 32)):
            empty[slot].wait(phase)
            full[slot].expect(64 * 32 * 4)
            tw.tma_load(s[slot], X[bm * 64, c * 32], on=full[slot])
)py" + after +
           R"py(    with tw.warpgroups(1, name="consumer"):
        met = tw.named_barrier(1, 128)
        slot = 0
        phase = 0
        for c in tw.range(tw.cdiv(N, 32)):
            full[slot].wait(phase)
            x = tw.load(s[slot])
            met.sync()
            empty[slot].arrive()
            tw.store(Y[bm * 64, c * 32], x * 2.0)
)py" + after;
}

int branches(const ir::Kernel& k) {
    int count = 0;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) { count += std::holds_alternative<ir::If>(s.op); });
    return count;
}

const std::string kForms[] = {
    "slot += 1\n            if slot == 3:\n                slot = 0\n                phase ^= 1",
    "slot += 1\n            if slot == 3:\n                phase = 1 - phase\n                slot = 0",
    "slot = (slot + 1) % 3\n            if slot == 0:\n                phase ^= 1",
    "phase = phase ^ 1 if slot == 2 else phase\n            slot = 0 if slot == 2 else slot + 1",
    "slot += 1\n            if slot == 2:\n                slot = 0\n                phase ^= 1",  // two of the three slots
};

TEST(Counters, EachFormIsProved) {
    for (const std::string& form : kForms) {
        const ir::Kernel k = kernel_of_text(ring(form));
        EXPECT_EQ(branches(k), 0) << form;
        EXPECT_TRUE(diagnose::check(k, {}).proved()) << form;
    }
}

TEST(Counters, MistakesAreNotProved) {
    const std::string wrong[] = {
        "slot += 1\n            if slot == 3:\n                slot = 1\n                phase ^= 1",
        "slot += 1\n            if slot == 4:\n                slot = 0\n                phase ^= 1",
        "slot = (slot + 1) % 3\n            if slot == 1:\n                phase ^= 1",
        "slot += 1\n            if slot == 3:\n                slot = 0",
        "phase = phase ^ 1 if slot == 1 else phase\n            slot = 0 if slot == 2 else slot + 1",
    };
    for (const std::string& form : wrong) EXPECT_FALSE(diagnose::check(kernel_of_text(ring(form)), {}).proved()) << form;
    const diagnose::CheckResult r = diagnose::check(kernel_of_text(ring(kForms[0], "slot = 0\n        phase = 0")), {});
    EXPECT_FALSE(r.proved());
    EXPECT_TRUE(r.violated());
}

// A slot that starts again while its phase goes on: no counter tells both.
TEST(Counters, AStartOfOneAloneIsLeftAlone) {
    std::string text = ring(kForms[0]);
    const std::string wait = "            full[slot].wait(phase)\n";
    text.replace(text.rfind(wait), wait.size(), "            if c == 5:\n                slot = 0\n" + wait);
    const ir::Kernel k = kernel_of_text(text);
    EXPECT_GE(branches(k), 1);
    EXPECT_FALSE(diagnose::check(k, {}).proved());
}

}  // namespace counters_test
}  // namespace tw::lower
