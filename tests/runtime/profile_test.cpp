// Reading what the tools print: ncu's CSV with its units, the kinds of machine instructions.
#include <gtest/gtest.h>

#include "runtime/profile.h"

namespace tw::runtime {
namespace profile_test {

TEST(Ncu, ItsCsvIsReadWithUnitsAndThousands) {
    const char* text =
        "==PROF== Connected to process 12\n"
        "right kernels/x.py\n"
        "\"ID\",\"Process ID\",\"Kernel Name\",\"Context\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
        "\"0\",\"12\",\"gemm(CUtensorMap, int)\",\"1\",\"gpu__time_duration.sum\",\"ns\",\"1,234,567\"\n"
        "\"0\",\"12\",\"gemm(CUtensorMap, int)\",\"1\",\"lts__t_sector_hit_rate.pct\",\"%\",\"61.5\"\n"
        "\"0\",\"12\",\"gemm(CUtensorMap, int)\",\"1\",\"not_there\",\"\",\"n/a\"\n";
    const auto metrics = parse_ncu_csv(text);
    ASSERT_EQ(metrics.size(), 2u);
    EXPECT_EQ(metrics[0].kernel, "gemm(CUtensorMap, int)");
    EXPECT_DOUBLE_EQ(metrics[0].value, 1234567);
    EXPECT_EQ(metrics[0].unit, "ns");
    EXPECT_EQ(metrics[1].unit, "%");
    EXPECT_TRUE(parse_ncu_csv("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n").empty());
}

TEST(Sass, InstructionsAreCountedByKind) {
    const char* text =
        "\t.headerflags\t@\"EF_CUDA_SM90\"\n"
        "        /*0000*/                   LDC R1, c[0x0][0x28] ;                       /* 0x00000a00ff017b82 */\n"
        "                                                                                /* 0x000fe20000000800 */\n"
        "        /*0010*/              @!P0 UTMALDG.2D [UR8], [UR4] ;                    /* 0x0 */\n"
        "        /*0020*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4], R24 ; /* 0x0 */\n"
        "        /*0030*/                   FFMA R1, R2, R3, R4 ;  /* 0x0 */\n"
        "        /*0040*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R1] ;  /* 0x0 */\n"
        "        /*0050*/                   IMAD.MOV.U32 R1, RZ, RZ, R2 ;  /* 0x0 */\n"
        "        /*0060*/                   EXIT ;  /* 0x0 */\n";
    const InstructionMix mix = instruction_mix(text);
    EXPECT_EQ(mix.total, 7);
    EXPECT_EQ(mix.kinds.at("tensor"), 1);
    EXPECT_EQ(mix.kinds.at("async copy"), 1);
    EXPECT_EQ(mix.kinds.at("fp32"), 1);
    EXPECT_EQ(mix.kinds.at("barrier"), 1);
    EXPECT_EQ(mix.opcodes.at("HGMMA"), 1);
    EXPECT_STREQ(instruction_kind("STS.128"), "shared store");
    EXPECT_STREQ(instruction_kind("STL"), "local memory");
}

TEST(Sanitizer, SaysWhenItIsNotThere) {
    const std::string path = getenv("PATH");
    setenv("PATH", "/nowhere", 1);
    const auto result = sanitize({{"file", "x.py"}}, "memcheck", 5);
    setenv("PATH", path.c_str(), 1);
    EXPECT_TRUE(result.contains("problem"));
    EXPECT_FALSE(result.contains("errors"));
}

}  // namespace profile_test
}  // namespace tw::runtime
