// A short tile of a triangle and the long one that complements it are one item: two stores, one at i, one at its mirror image. And a branch
// that is a shorter way to what the other one makes.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace mirrored_test {

using namespace testing_kernels;

bool proved(const std::string& text) {
    diagnose::CheckOptions options;
    options.search = false;
    return diagnose::check(kernel_of_text(text), options).proved();
}

std::string pairs(const std::string& loop, const std::string& second) {
    return R"(import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n] * 2")
def pairs(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
)" + loop + R"(        tw.store(Y[i * 128], tw.load(X[i * 128 : i * 128 + 128], fill=0.0) * 2.0)
        j = )" +
           second + R"(
        tw.store(Y[j * 128], tw.load(X[j * 128 : j * 128 + 128], fill=0.0) * 2.0)
)";
}

const std::string kPersistent = "    for t in tw.persistent(tw.cdiv(N, 256)):\n        i = t % tw.cdiv(N, 256)\n",
                  kMirror = "2 * tw.cdiv(N, 256) - 1 - i";

TEST(MirroredStores, CoverAllRows) { EXPECT_TRUE(proved(pairs(kPersistent, kMirror))); }

TEST(MirroredStores, MustMeetTheirImage) {
    EXPECT_FALSE(proved(pairs(kPersistent, "2 * tw.cdiv(N, 256) - i")));      // one too far
    EXPECT_FALSE(proved(pairs(kPersistent, "2 * tw.cdiv(N, 256) - 2 - i")));  // the last but one twice
    EXPECT_FALSE(proved(pairs(kPersistent, "2 * tw.cdiv(N, 128) - 1 - i")));  // of another number
    EXPECT_FALSE(proved(pairs(kPersistent, "tw.cdiv(N, 128) - 1 - i")));      // an odd number of tiles: the middle one twice
    EXPECT_FALSE(proved(pairs("    for t in tw.persistent(tw.cdiv(N, 512)):\n        i = t % tw.cdiv(N, 512)\n",
                              "2 * tw.cdiv(N, 512) - 1 - i")));  // too few pairs
}

std::string branches(const std::string& condition, const std::string& quick) {
    return R"py(import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = sum(n, X[m, n])")
def branches(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    m = tw.grid(M)
    total = 0.0
    for c in tw.range(tw.cdiv(N, 128)):
        x = tw.load(X[m, c * 128 : c * 128 + 128], fill=5.0)
        part = 0.0
        if )py" +
           condition + R"py(:
            part = tw.sum()py" +
           quick + R"py(, axis=0)
        else:
            part = tw.sum(tw.where(tw.coord(x, 0) < N - c * 128, x, 0.0), axis=0)
        total = total + part
    tw.store(S[m], total)
)py";
}

TEST(Branches, OneMayBeAShorterWayToTheOther) { EXPECT_TRUE(proved(branches("(c + 1) * 128 <= N", "x"))); }

TEST(Branches, ThatDifferAreNotJoined) {
    EXPECT_FALSE(proved(branches("(c + 1) * 128 <= N + 1", "x")));  // a fill gets in
    EXPECT_FALSE(proved(branches("(c + 1) * 128 <= N", "x * 2.0")));
}

}  // namespace mirrored_test
}  // namespace tw::verify
