// Rows of any pitch, each from the multiple of 16 bytes at or before its start.
#include "diagnose/check.h"
#include "ir/row_starts.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace {

using namespace testing_kernels;

std::string rows(const std::string& longest, const std::string& shift) {
    return "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n"
           "@tw.kernel(target=\"sm_80\", computes=\"Y[m, n] = X[m, n] - sum(k, X[m, k])\", threads=32)\n"
           "def rows(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):\n"
           "    tw.assume(N <= " + longest + ")\n"
           "    m = tw.grid(M)\n"
           "    n = -(" + shift + ")\n"
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

TEST(ShiftedRows, AnotherShiftIsNoVector) {   // right, but one element at a time
    for (const char* shift : {"N % 4", "(m + 1) % 4 * (N % 4) % 4", "m % 4 * (N % 4) % 3"}) EXPECT_EQ(width(kernel_of_text(rows("125", shift))), 4) << shift;
    EXPECT_EQ(width(kernel_of_text(rows("125", "m % 2 * (N % 2) % 2"))), 8);
}

TEST(ShiftedRows, AWiderAccessThanTheShiftAllowsIsNotProved) {
    ir::Kernel k = kernel_of_text(rows("125", "m % 2 * (N % 2) % 2"));
    ir::for_each_stmt(k.body, [&](ir::Stmt& s) {
        if (auto* l = std::get_if<ir::LoadGlobal>(&s.op)) l->vector_bytes = 16;
    });
    EXPECT_FALSE(diagnose::check(k, {}).proved());
}

}  // namespace
}  // namespace tw::verify
