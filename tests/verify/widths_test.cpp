// Widths of vector accesses: what the lowering chose is shown, what nobody may choose is not.
#include "verify/widths.h"

#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace widths_test {

using namespace testing_kernels;

TEST(Widths, WhatTheLoweringChoosesIsAligned) {
    for (const char* file : {"kernels/vector_add.py", "kernels/gemm_sm80.py", "kernels/reductions.py"}) {
        const auto obligations = check_widths(kernel_of(file));
        for (const Obligation& o : obligations) EXPECT_EQ(o.status, Status::proved) << file << ": " << o.reason;
    }
}

TEST(Widths, AWiderAccessThanTheAssumptionsAllowIsNotProved) {
    ir::Kernel k = kernel_of("kernels/gemm_sm80.py");  // copies of 16 bytes lean on K % 8 == 0
    ASSERT_EQ(check_widths(k).size(), 1u);
    k.assumptions.clear();
    EXPECT_EQ(check_widths(k).front().status, Status::not_proved);
    k = kernel_of("kernels/reductions.py");  // nothing is assumed of N
    int wider = 0;
    ir::for_each_stmt(k.body, [&](ir::Stmt& s) {
        if (auto* l = std::get_if<ir::LoadGlobal>(&s.op)) l->vector_bytes *= 2, ++wider;
    });
    ASSERT_GT(wider, 0);
    ASSERT_EQ(check_widths(k).size(), 1u);
    EXPECT_EQ(check_widths(k).front().status, Status::not_proved);
}

TEST(Widths, FourLanesThatStoreTogether) {
    const auto with_store = [](ir::Kernel k, auto change) {
        int found = 0;
        ir::for_each_stmt(k.body, [&](ir::Stmt& s) {
            if (auto* st = std::get_if<ir::StoreGlobal>(&s.op); st && st->by_quads) change(*st), ++found;
        });
        EXPECT_EQ(found, 1);
        return check_widths(k).front().status;
    };
    ir::Kernel k = kernel_of("kernels/gemm_sm80.py");  // rows are multiples of 8 elements, tiles may end beyond them
    EXPECT_EQ(with_store(k, [](ir::StoreGlobal&) {}), Status::proved);
    EXPECT_EQ(with_store(k, [](ir::StoreGlobal& st) { st.vector_bytes = 8; }), Status::not_proved);
    EXPECT_EQ(with_store(k, [](ir::StoreGlobal& st) { st.dst.origin[1] = st.dst.origin[1] + ir::Expr(4); }), Status::not_proved);
    EXPECT_EQ(with_store(k, [](ir::StoreGlobal& st) { st.dst.limit = {std::nullopt, ir::Expr(100)}; }), Status::not_proved);
}

TEST(Widths, LayoutsAreOneToOne) {
    for (const char* file : {"kernels/gemm_sm80.py", "kernels/gemm_sm90.py", "kernels/transpose.py"}) {
        ir::Kernel k = kernel_of(file);
        EXPECT_TRUE(check_buffers(k).empty()) << file;
        for (ir::SharedDim& d : k.buffers[0].dims) {
            for (int& stride : d.strides) stride = stride > 1 ? stride / 2 : stride;
        }
        ASSERT_EQ(check_buffers(k).size(), 1u) << file;
        EXPECT_EQ(check_buffers(k).front().status, Status::not_proved);
    }
    ir::Kernel k = kernel_of("kernels/transpose.py");  // steps that interleave are fine where no sum repeats
    k.buffers[0].dims = {{{2}, {3}}, {{2}, {2}}};
    EXPECT_TRUE(check_buffers(k).empty());
    k.buffers[0].dims = {{{3}, {2}}, {{2}, {4}}};
    EXPECT_EQ(check_buffers(k).size(), 1u);
}

TEST(Widths, GridsAreWholeClusters) {
    ir::Kernel k = kernel_of("kernels/gemm_cluster_sm90.py");
    EXPECT_TRUE(check_grid(k).empty());
    k.grid[0] = k.grid[0] - ir::Expr(1);
    ASSERT_EQ(check_grid(k).size(), 1u);
    EXPECT_EQ(check_grid(k).front().status, Status::not_proved);
}

}  // namespace widths_test
}  // namespace tw::verify
