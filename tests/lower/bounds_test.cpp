// Which dimensions of an access are claimed to be inside: those that the constants of grid and loops leave nowhere else.
#include <gtest/gtest.h>

#include "lower_test_support.h"

namespace tw::lower {
namespace bounds_test {

// The claims of the only load of a kernel over X of 40 x 4095 elements.
std::vector<bool> claims(const std::string& body, const std::string& rows = "40") {
    const auto c = compile(
        "import tilewright as tw\nfrom tilewright import f32\n\nM = tw.sizes(\"M\")\n\n"
        "@tw.kernel(target=\"sm_80\", threads=128)\n"
        "def k(X: tw.Tensor(f32, " +
        rows + ", 4095), Y: tw.Tensor(f32, 4, 128)):\n" + body);
    if (!c.module) {
        ADD_FAILURE() << c.report();
        return {};
    }
    std::vector<bool> found;
    ir::for_each_stmt(c.module->kernels[0].body, [&](const ir::Stmt& s) {
        if (const auto* load = std::get_if<ir::LoadGlobal>(&s.op)) found = load->src.in_bounds;
    });
    return found;
}

std::string loop(int rounds, const std::string& view, const std::string& more = "") {
    return "    i = tw.grid(31)\n    x = tw.zeros(f32, (4, 128))\n    for c in tw.range(" + std::to_string(rounds) +
           "):\n        x = x + tw.load(X[" + view + "], fill=0.0" + more + ")\n    tw.store(Y[0:4, 0:128], x)\n";
}

using Claims = std::vector<bool>;

TEST(Bounds, GridAndLoopsOfConstantExtent) {
    EXPECT_EQ(claims(loop(10, "c * 4 : c * 4 + 4, i * 128 : i * 128 + 128")), (Claims{true, true}));       // 36 + 4, 30 * 128 + 128 = 3968
    EXPECT_EQ(claims(loop(11, "c * 4 : c * 4 + 4, i * 132 : i * 132 + 128")), (Claims{false, true}));      // one round too many; 4088
    EXPECT_EQ(claims(loop(10, "c * 4 : c * 4 + 4, i * 133 : i * 133 + 128")), (Claims{true, false}));      // 3990 + 128
    EXPECT_EQ(claims(loop(10, "c * 4 - 1 : c * 4 + 3, i * 128 : i * 128 + 128")), (Claims{false, true}));  // begins before the tensor
}

TEST(Bounds, DivisionsAndMinima) {
    EXPECT_EQ(claims(loop(99, "c % 10 * 4 : c % 10 * 4 + 4, c // 4 * 128 : c // 4 * 128 + 128")), (Claims{true, true}));
    EXPECT_EQ(claims(loop(99, "tw.min(c, 36) : tw.min(c, 36) + 4, c // 3 * 128 : c // 3 * 128 + 128")), (Claims{true, false}));
    EXPECT_EQ(claims(loop(99, "tw.max(c - 70, 8) : tw.max(c - 70, 8) + 4, 0:128")), (Claims{true, true}));
}

TEST(Bounds, NothingOfRunTimeSizesAndLimits) {
    EXPECT_EQ(claims(loop(10, "c * 4 : c * 4 + 4, i * 128 : i * 128 + 128"), "M"), (Claims{false, true}));
    EXPECT_EQ(claims(loop(10, "c * 4 : c * 4 + 4, i * 128 : i * 128 + 128", ", limit=(7, None)")), (Claims{false, true}));
}

}  // namespace bounds_test
}  // namespace tw::lower
