#include "runtime/compile_log.h"

#include <gtest/gtest.h>

namespace tw::runtime {
namespace compile_log_test {

// The texts below are what NVRTC 13.0 prints for sm_90a with --ptxas-options=-v.

TEST(CompileLog, ReadsResourcesOfEachEntryAndOfFunctionsThatWereNotInlined) {
    const auto report = parse_compile_log(
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        "ptxas info    : Function properties for k\n"
        "ptxas         .     160 bytes stack frame, 24 bytes spill stores, 28 bytes spill loads\n"
        "ptxas info    : Used 168 registers, used 9 barriers, 160 bytes cumulative stack size, 400 bytes smem, 16 bytes "
        "cmem[2]\n"
        "ptxas info    : Compile time = 4.781 ms\n"
        "ptxas info    : Function properties for _Z1gPfi\n"
        "ptxas         .     8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
        "ptxas info    : Function properties for second\n"
        "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 10 registers, used 0 barriers\n");
    ASSERT_EQ(report.kernels.size(), 3u);
    const auto* k = report.find("k");
    ASSERT_TRUE(k);
    EXPECT_TRUE(k->is_entry);
    EXPECT_EQ(k->registers, 168);
    EXPECT_EQ(k->barriers, 9);
    EXPECT_EQ(k->stack_bytes, 160);
    EXPECT_EQ(k->spill_store_bytes, 24);
    EXPECT_EQ(k->spill_load_bytes, 28);
    EXPECT_EQ(k->static_shared_bytes, 400);
    const auto* g = report.find("_Z1gPfi");
    ASSERT_TRUE(g);
    EXPECT_FALSE(g->is_entry);
    EXPECT_EQ(g->stack_bytes, 8);
    const auto* second = report.find("second");
    ASSERT_TRUE(second);
    EXPECT_EQ(second->registers, 10);
    EXPECT_EQ(second->static_shared_bytes, 0);
    EXPECT_TRUE(report.remarks.empty());
}

TEST(CompileLog, RecognisesSerializedWgmma) {
    const auto report = parse_compile_log(
        "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient "
        "register resources for the wgmma pipeline in the function 'w'\n"
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to wgmma pipeline "
        "crossing function boundary at a function call in the function 'v'\n");
    ASSERT_EQ(report.remarks.size(), 2u);
    EXPECT_EQ(report.remarks[0].kind, RemarkKind::wgmma_serialized);
    EXPECT_EQ(report.remarks[0].code, "C7511");
    EXPECT_EQ(report.remarks[0].function, "w");
    EXPECT_EQ(report.remarks[1].kind, RemarkKind::wgmma_serialized);
    EXPECT_EQ(report.remarks[1].function, "v");
    EXPECT_TRUE(report.has(RemarkKind::wgmma_serialized));
}

TEST(CompileLog, TellsInjectedWaitsAndIgnoredRegisterRequestsApart) {
    const auto report = parse_compile_log(
        "ptxas info    : (C7519) warpgroup.arrive is injected in around line 57 by compiler to allow use of registers in GMMA "
        "in "
        "function 'w'\n"
        "ptxas info    : (C7517) warpgroup.wait is injected in around line 59 by compiler to allow use of registers defined by "
        "GMMA in function 'w'\n"
        "ptxas info    : (C7508) setmaxnreg ignored to maintain minimum register requirements.\n"
        "ptxas warning : Unsupported feature\n");
    ASSERT_EQ(report.remarks.size(), 4u);
    EXPECT_EQ(report.remarks[0].kind, RemarkKind::wgmma_injected);
    EXPECT_EQ(report.remarks[1].kind, RemarkKind::wgmma_injected);
    EXPECT_EQ(report.remarks[2].kind, RemarkKind::setmaxnreg_ignored);
    EXPECT_EQ(report.remarks[3].kind, RemarkKind::other);
    EXPECT_FALSE(report.has(RemarkKind::wgmma_serialized));
}

TEST(CompileLog, IgnoresTheCompilersOwnWarningsAndForeignText) {
    const auto report = parse_compile_log("k.cu(3): warning #177-D: variable \"x\" was declared but never referenced\n\nnoise\n");
    EXPECT_TRUE(report.kernels.empty());
    EXPECT_TRUE(report.remarks.empty());
    EXPECT_TRUE(parse_compile_log("").kernels.empty());
    // Cut off in the middle: nothing invented.
    EXPECT_TRUE(parse_compile_log("ptxas info    : Used 12 registers").kernels.empty());
}

}  // namespace compile_log_test
}  // namespace tw::runtime
