// Rows of any pitch, each from the multiple of 16 bytes at or before its start.
#include "diagnose/check.h"
#include "ir/row_starts.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace shifted_test {

using namespace testing_kernels;

std::string rows(const std::string& longest, const std::string& shift) {
    return "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n"
           "@tw.kernel(target=\"sm_80\", computes=\"Y[m, n] = X[m, n] - sum(k, X[m, k])\", threads=32)\n"
           "def rows(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):\n"
           "    tw.assume(N <= " +
           longest +
           ")\n"
           "    m = tw.grid(M)\n"
           "    n = -(" +
           shift +
           ")\n"
           "    x = tw.load(X[m, n : n + 128], fill=0.0)\n"
           "    tw.store(Y[m, n : n + 128], x - tw.sum(x, axis=0))\n";
}

int width(const ir::Kernel& k) {
    int bytes = 0;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* l = std::get_if<ir::LoadGlobal>(&s.op)) bytes = l->vector_bytes;
    });
    return bytes;
}

TEST(ShiftedRows, AreVectorsAndProved) {
    const ir::Kernel k = kernel_of_text(rows("125", "m % 4 * (N % 4) % 4"));
    EXPECT_EQ(width(k), 16);
    EXPECT_TRUE(diagnose::check(k, {}).proved());
}

TEST(ShiftedRows, ATileThatDoesNotReachTheEndIsNotProved) {
    EXPECT_FALSE(diagnose::check(kernel_of_text(rows("127", "m % 4 * (N % 4) % 4")), {}).proved());
}

TEST(ShiftedRows, AnotherShiftIsNoVector) {  // right, but one element at a time
    for (const char* shift : {"N % 4", "(m + 1) % 4 * (N % 4) % 4", "m % 4 * (N % 4) % 3"})
        EXPECT_EQ(width(kernel_of_text(rows("125", shift))), 4) << shift;
    EXPECT_EQ(width(kernel_of_text(rows("125", "m % 2 * (N % 2) % 2"))), 8);
}

TEST(ShiftedRows, AWiderAccessThanTheShiftAllowsIsNotProved) {
    ir::Kernel k = kernel_of_text(rows("125", "m % 2 * (N % 2) % 2"));
    ir::for_each_stmt(k.body, [&](ir::Stmt& s) {
        if (auto* l = std::get_if<ir::LoadGlobal>(&s.op)) l->vector_bytes = 16;
    });
    EXPECT_FALSE(diagnose::check(k, {}).proved());
}

std::string running_sums(const std::string& start, const std::string& chunks) {
    return "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n"
           "@tw.kernel(target=\"sm_80\", computes=\"Y[m, n] = sum(j in 0:n+1, X[m, j])\", threads=32)\n"
           "def running_sums(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):\n"
           "    m = tw.grid(M)\n"
           "    n0 = -(m % 4 * (N % 4) % 4)\n"
           "    carry = tw.full(f32, (), " +
           start +
           ")\n"
           "    for c in tw.range(" +
           chunks +
           "):\n"
           "        x = tw.load(X[m, n0 + c * 128 : n0 + c * 128 + 128], fill=0.0)\n"
           "        tw.store(Y[m, n0 + c * 128 : n0 + c * 128 + 128], tw.cumsum(x, axis=0) + carry)\n"
           "        carry = carry + tw.sum(x, axis=0)\n";
}

TEST(ShiftedRows, ACarryOverChunksOfWhichTheFirstIsCutOff) {
    EXPECT_TRUE(diagnose::check(kernel_of_text(running_sums("0.0", "tw.cdiv(N + 3, 128)")), {}).proved());
    EXPECT_FALSE(diagnose::check(kernel_of_text(running_sums("1.0", "tw.cdiv(N + 3, 128)")), {}).proved());
    EXPECT_FALSE(diagnose::check(kernel_of_text(running_sums("0.0", "tw.cdiv(N, 128)")), {}).proved());
}

// The sum of an element and the one before it: a tile that begins one element before its place.
std::string pairs(const std::string& before) {
    return "import tilewright as tw\nfrom tilewright import f32\n\nN = tw.sizes(\"N\")\n\n\n"
           "@tw.kernel(target=\"sm_80\", computes=\"Y[n] = X[n] + where(n >= 1, X[n - 1], 0)\", threads=32)\n"
           "def pairs(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):\n"
           "    i = tw.grid(tw.cdiv(N, 128)) * 128\n"
           "    x = tw.load(X[i : i + 128], fill=0.0)\n"
           "    y = tw.load(X[i - " +
           before + " : i - " + before +
           " + 128], fill=0.0)\n"
           "    tw.store(Y[i : i + 128], x + y)\n";
}

TEST(ShiftedRows, AnOriginThatTakesAConstantAwayMayLieBeforeTheTensor) {
    EXPECT_TRUE(diagnose::check(kernel_of_text(pairs("1")), {}).proved());
    EXPECT_FALSE(diagnose::check(kernel_of_text(pairs("2")), {}).proved());
}

}  // namespace shifted_test
}  // namespace tw::verify
