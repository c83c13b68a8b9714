// Additions by blocks whose loops start at different places (below a diagonal): each element receives exactly what its own blocks add.

#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace triangle_sums_test {

using namespace testing_kernels;

// Block bm adds its rows to the columns from its own tile on; `rows`: the tiles of columns it goes through, `mask`: what it adds of a row.
bool proved(const std::string& rows, const std::string& mask, const std::string& over = "m in 0:minimum(M, n + 1)") {
    const std::string text = R"py(
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[n] = sum()py" +
                             over + R"py(, X[m, n])", threads=64)
def above(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, N, zeroed=True)):
    bm = tw.grid(tw.cdiv(M, 128))
    for bn in tw.range()py" + rows +
                             R"py():
        total = tw.zeros(f32, (64,))
        for m in tw.range(tw.min(128, M - bm * 128)):
            x = tw.load(X[bm * 128 + m, bn * 64 : bn * 64 + 64], fill=0.0)
            total = total + )py" +
                             mask + R"py(
        tw.atomic_add(S[bn * 64], total)
)py";
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "kernel.py", text, {}, sink);
    if (!module) return ADD_FAILURE() << render_text(sink, sources), true;
    diagnose::CheckOptions options;
    options.search = false;
    return diagnose::check(module->kernels.at(0), options).proved();
}

const std::string kBelow = "tw.where(bm * 128 + m <= tw.coord(x, 0) + bn * 64, x, 0.0)";

TEST(SumsOverATriangle, ABlockStartsAtItsOwnTile) {
    EXPECT_TRUE(proved("2 * bm, tw.cdiv(N, 64)", kBelow));
    EXPECT_TRUE(proved("0, tw.cdiv(N, 64)", kBelow));  // what is masked everywhere may be gone through
}

TEST(SumsOverATriangle, NotLater) {
    EXPECT_FALSE(proved("2 * bm + 1, tw.cdiv(N, 64)", kBelow));
    EXPECT_FALSE(proved("2 * bm + 2, tw.cdiv(N, 64)", kBelow));
    EXPECT_FALSE(proved("1, tw.cdiv(N, 64)", kBelow));
    EXPECT_FALSE(proved("2 * bm, N // 64", kBelow));
}

// The start may be before the first tile: there is no element there, and the load says so.
TEST(SumsOverATriangle, NotBeforeTheFirstTile) { EXPECT_FALSE(proved("2 * bm - 1, tw.cdiv(N, 64)", kBelow)); }

TEST(SumsOverATriangle, TheMaskAndTheRangeCount) {
    EXPECT_FALSE(proved("2 * bm, tw.cdiv(N, 64)", "x"));
    EXPECT_FALSE(proved("2 * bm, tw.cdiv(N, 64)", "tw.where(bm * 128 + m < tw.coord(x, 0) + bn * 64, x, 0.0)"));
    EXPECT_FALSE(proved("2 * bm, tw.cdiv(N, 64)", kBelow, "m in 0:M"));
    EXPECT_FALSE(proved("2 * bm, tw.cdiv(N, 64)", kBelow, "m in 0:minimum(M, n)"));
}

}  // namespace triangle_sums_test
}  // namespace tw::verify
