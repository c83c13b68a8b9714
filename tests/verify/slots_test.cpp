// Running maxima and rescaled sums that every lane keeps for each of its places, met only after the loop.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace {

using namespace testing_kernels;

std::string text(const std::string& computes, const std::string& body) {
    return "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n@tw.kernel(target=\"sm_80\", computes=\"" + computes +
           "\", threads=64)\ndef rows(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):\n    m = tw.grid(M)\n" + body;
}

diagnose::CheckResult checked(const std::string& source) {
    diagnose::CheckOptions options;
    options.search_seconds = 5;
    return diagnose::check(kernel_of_text(source), options);
}

std::string edited(std::string s, const std::string& was, const std::string& now) {
    const auto at = s.find(was);
    EXPECT_NE(at, std::string::npos) << was;
    return at == std::string::npos ? s : s.replace(at, was.size(), now);
}

const std::string logsumexp = text("S[m] = logsumexp(n, X[m, n])",
                                   "    top = tw.full(f32, (128,), -1e30)\n"
                                   "    total = tw.zeros(f32, (128,))\n"
                                   "    for c in tw.range(tw.cdiv(N, 128)):\n"
                                   "        x = tw.load(X[m, c * 128 : c * 128 + 128], fill=float('-inf'))\n"
                                   "        new_top = tw.maximum(top, x)\n"
                                   "        total = total * tw.exp(top - new_top) + tw.exp(x - new_top)\n"
                                   "        top = new_top\n"
                                   "    whole = tw.max(top, axis=0)\n"
                                   "    tw.store(S[m], whole + tw.log(tw.sum(total * tw.exp(top - whole), axis=0)))\n");

TEST(Slots, ALogSumExpPerSlotIsProved) { EXPECT_TRUE(checked(logsumexp).proved()); }

TEST(Slots, ADroppedRescaleIsShown) {
    const auto inside = checked(edited(logsumexp, "total * tw.exp(top - new_top)", "total"));
    ASSERT_TRUE(inside.violated());
    EXPECT_TRUE(inside.counterexample->confirmed);
    const auto after = checked(edited(logsumexp, "total * tw.exp(top - whole)", "total"));
    ASSERT_TRUE(after.violated());
    EXPECT_TRUE(after.counterexample->confirmed);
}

TEST(Slots, ACutChunkIsShown) {
    const auto r = checked(edited(logsumexp, "tw.cdiv(N, 128)", "N // 128"));
    ASSERT_TRUE(r.violated());
    EXPECT_TRUE(r.counterexample->confirmed);
}

}  // namespace
}  // namespace tw::verify
