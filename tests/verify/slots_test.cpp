// Running maxima and rescaled sums that every lane keeps for each of its places, met only after the loop.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace slots_test {

using namespace testing_kernels;

std::string text(const std::string& computes, const std::string& body) {
    return "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n@tw.kernel(target=\"sm_80\", computes=\"" +
           computes + "\", threads=64)\ndef rows(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):\n    m = tw.grid(M)\n" + body;
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

// A maximum for each place of a vector: each iteration folds a window of four elements, far from the one before.
const std::string by_vectors =
    text("S[m] = logsumexp(n, X[m, n])",
         "    tw.assume(N % 4 == 0)\n"
         "    s = tw.shared(f32, (256,))\n"
         "    v = tw.overlay(s, f32, (64, 4))\n"
         "    top = tw.full(f32, (64,), -1e30)\n"
         "    total = tw.zeros(f32, (64,))\n"
         "    for c in tw.range(N // 256):\n"
         "        tw.cp_async(s, X[m, c * 256 : c * 256 + 256])\n"
         "        tw.cp_async_commit()\n"
         "        tw.cp_async_wait(0)\n"
         "        x = tw.load(v, layout=tw.rows())\n"
         "        new_top = tw.maximum(top, tw.max(x, axis=1))\n"
         "        total = total * tw.exp(top - new_top) + tw.sum(tw.exp(x - new_top[:, None]), axis=1)\n"
         "        top = new_top\n"
         "    rest = tw.load(X[m, N // 256 * 256 : N // 256 * 256 + 256], fill=float('-inf'))\n"
         "    whole = tw.maximum(tw.max(top, axis=0), tw.max(rest, axis=0))\n"
         "    tw.store(S[m], whole + tw.log(tw.sum(total * tw.exp(top - whole), axis=0) + tw.sum(tw.exp(rest - whole), axis=0)))\n");

TEST(Slots, ALogSumExpPerVectorIsProved) { EXPECT_TRUE(checked(by_vectors).proved()); }

TEST(Slots, BrokenFormsPerVectorAreShown) {
    for (const auto& [was, now] : {std::pair("total * tw.exp(top - new_top)", "total"),                          // no rescale
                                   std::pair("X[m, c * 256 : c * 256 + 256]", "X[m, c * 128 : c * 128 + 256]"),  // windows that meet others
                                   std::pair("N // 256 * 256 : N // 256 * 256 + 256", "0 : 256")}) {  // the first chunk for the rest
        const auto r = checked(edited(by_vectors, was, now));
        ASSERT_TRUE(r.violated()) << now;
        EXPECT_TRUE(r.counterexample->confirmed) << now;
    }
}

}  // namespace slots_test
}  // namespace tw::verify
