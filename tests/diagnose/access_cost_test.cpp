// Remarks on speed: the counts of small accesses that can be counted by hand.
#include "diagnose/access_cost.h"

#include "verify/kernel_test_support.h"

namespace tw::diagnose {
namespace access_cost_test {

using namespace testing_kernels;

std::string transpose(const std::string& options) {
    return "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n@tw.kernel(target=\"sm_80\", "
           "computes=\"Y[n, m] = X[m, n]\", threads=32)\n"
           "def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):\n    bn, bm = tw.grid(tw.cdiv(N, 32), tw.cdiv(M, 32))\n    s = "
           "tw.shared(f32, (32, 32)" +
           options +
           ")\n    tw.store(s, tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0))\n    tw.sync()\n    tw.store(Y[bn * "
           "32, bm * 32], tw.load(s.T))\n";
}

TEST(AccessCost, ColumnsOfASquareTileMeetInOneBank) {
    const AccessReport plain = access_report(kernel_of_text(transpose("")));
    const auto conflict = [](const AccessReport& report) {
        return std::find_if(report.remarks.begin(), report.remarks.end(), [](const AccessRemark& r) { return r.code == "TW3001"; });
    };
    ASSERT_NE(conflict(plain), plain.remarks.end());
    const AccessRemark& r = *conflict(plain);
    EXPECT_EQ(r.cost, 32 * 32) << "32 columns, each of 32 words in one bank";
    EXPECT_EQ(r.ideal, 32);
    EXPECT_NE(r.message.find("32-way"), std::string::npos) << r.message;
    EXPECT_EQ(r.loc.line, 13);
    EXPECT_FALSE(r.hint.empty());
    const AccessReport padded = access_report(kernel_of_text(transpose(", pad=1")));
    EXPECT_EQ(conflict(padded), padded.remarks.end());
}

TEST(AccessCost, RowsPerThreadScatter) {
    const std::string text =
        "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n@tw.kernel(target=\"sm_80\", computes=\"Y[m, "
        "n] = X[m, n]\", threads=32)\n"
        "def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):\n    bm = tw.grid(tw.cdiv(M, 32))\n    tw.assume(N <= 16)\n"
        "    x = tw.load(X[bm * 32 : bm * 32 + 32, 0:16], fill=0.0, layout=tw.rows())\n    tw.store(Y[bm * 32, 0], x)\n";
    const AccessReport report = access_report(kernel_of_text(text));
    ASSERT_FALSE(report.remarks.empty());
    EXPECT_EQ(report.remarks[0].code, "TW3002");
    EXPECT_GT(report.remarks[0].cost, report.remarks[0].ideal);
}

TEST(AccessCost, ShippedKernelsAreLookedAt) {
    const AccessReport gemm = access_report(kernel_of("kernels/gemm_sm90.py"));
    EXPECT_GT(gemm.shared_accesses, 0);
    EXPECT_TRUE(gemm.remarks.empty()) << "stmatrix into a swizzled buffer is free of conflicts";
    EXPECT_GE(gemm.registers, 128) << "64 x 256 accumulators in f32 over 128 threads";
}

}  // namespace access_cost_test
}  // namespace tw::diagnose
