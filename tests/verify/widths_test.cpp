// Widths of vector accesses: what the lowering chose is shown, what nobody may choose is not.
#include "verify/widths.h"

#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace {

using namespace testing_kernels;

TEST(Widths, WhatTheLoweringChoosesIsAligned) {
    for (const char* file : {"kernels/vector_add.py", "kernels/gemm_sm80.py", "kernels/reductions.py"}) {
        const auto obligations = check_widths(kernel_of(file));
        for (const Obligation& o : obligations) EXPECT_EQ(o.status, Status::proved) << file << ": " << o.reason;
    }
}

TEST(Widths, AWiderAccessThanTheAssumptionsAllowIsNotProved) {
    ir::Kernel k = kernel_of("kernels/gemm_sm80.py");   // copies of 16 bytes lean on K % 8 == 0
    ASSERT_EQ(check_widths(k).size(), 1u);
    k.assumptions.clear();
    EXPECT_EQ(check_widths(k).front().status, Status::not_proved);
    k = kernel_of("kernels/reductions.py");             // nothing is assumed of N
    int wider = 0;
    ir::for_each_stmt(k.body, [&](ir::Stmt& s) {
        if (auto* l = std::get_if<ir::LoadGlobal>(&s.op)) l->vector_bytes *= 2, ++wider;
    });
    ASSERT_GT(wider, 0);
    ASSERT_EQ(check_widths(k).size(), 1u);
    EXPECT_EQ(check_widths(k).front().status, Status::not_proved);
}

}  // namespace
}  // namespace tw::verify
