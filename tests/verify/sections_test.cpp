// Tiles in sections whose width is a quotient of a size that no tile has: the last section may be narrower. Whatever the quotient, every
// tile is reached once.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace sections_test {

using namespace testing_kernels;

const std::string kSection = "tw.min(tw.max(1, 4096 // T), 4 * H)", kWidth = "tw.min(section, 4 * H - first)",
                  kHead = "first + (t - first * n) % width";

bool proved(const std::string& section, const std::string& width, const std::string& head, const std::string& shared = "h // 4") {
    diagnose::CheckOptions options;
    options.search = false;
    return diagnose::check(kernel_of_text(R"(import tilewright as tw
from tilewright import f32

H, N, T = tw.sizes("H N T")


@tw.kernel(target="sm_80", computes="Y[h, n] = X[h // 4, n] * 2")
def by_sections(X: tw.Tensor(f32, H, N), Y: tw.Tensor(f32, H * 4, N), Z: tw.Tensor(f32, T)):
    tw.assume(T >= 1)
    for t in tw.persistent(4 * H * tw.cdiv(N, 128)):
        n = tw.cdiv(N, 128)
        section = )" + section + R"(
        first = t // (section * n) * section
        width = )" + width + R"(
        k = (t - first * n) // width
        h = )" + head + R"(
        tw.store(Y[h, k * 128 : k * 128 + 128], tw.load(X[)" +
                                          shared + R"(, k * 128 : k * 128 + 128], fill=0.0) * 2.0)
)"),
                           options)
        .proved();
}

TEST(SectionsOfTiles, ReachEveryTileOnce) { EXPECT_TRUE(proved(kSection, kWidth, kHead)); }

TEST(SectionsOfTiles, TheLastMayBeNarrower) { EXPECT_FALSE(proved(kSection, "section", kHead)); }

TEST(SectionsOfTiles, AreNeverEmpty) { EXPECT_FALSE(proved("tw.min(4096 // T, 4 * H)", kWidth, kHead)); }

TEST(SectionsOfTiles, DoNotOverlap) {
    EXPECT_FALSE(proved(kSection, kWidth, "(t - first * n) % width"));
    EXPECT_FALSE(proved(kSection, kWidth, "first + (t - first * n) % section"));
}

TEST(SectionsOfTiles, SayHowFarAQuotientOfATileGoes) { EXPECT_FALSE(proved(kSection, kWidth, kHead, "h // 2")); }

}  // namespace sections_test
}  // namespace tw::verify
