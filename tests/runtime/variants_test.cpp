#include "runtime/variants.h"

#include <gtest/gtest.h>

namespace tw::runtime {
namespace variants_test {

TEST(Variants, AFileWithoutLinesHasOneVariantWithoutOptions) {
    const auto head = read_source_head("// a kernel\n\nint x;\n// tw-variants: -DLATE=1\n");
    ASSERT_TRUE(head);
    ASSERT_EQ(head->variants.size(), 1u);
    EXPECT_TRUE(head->variants[0].defines.empty());
    EXPECT_EQ(head->arch, "");
}

TEST(Variants, EachLineOfTheHeadIsOneSetOfOptions) {
    const auto head = read_source_head(
        "// tw-arch: sm_80\n//   tw-variants: -DBM=128 -DFAST\n\n// words between\n// tw-variants: -DBM=64 "
        "--maxrregcount=128\nint x;");
    ASSERT_TRUE(head);
    EXPECT_EQ(head->arch, "sm_80");
    ASSERT_EQ(head->variants.size(), 2u);
    using Defines = std::vector<std::pair<std::string, std::string>>;
    EXPECT_EQ(head->variants[0].defines, (Defines{{"BM", "128"}, {"FAST", ""}}));
    EXPECT_EQ(head->variants[1].defines, (Defines{{"BM", "64"}}));
    EXPECT_EQ(head->variants[1].options, std::vector<std::string>{"--maxrregcount=128"});
}

TEST(Variants, ADefinitionWithoutANameIsRefused) {
    for (const char* text : {"=1", "", "1A=2", "A-B=1"}) EXPECT_FALSE(parse_define(text)) << text;
    EXPECT_FALSE(read_source_head("// tw-variants: -D=3\n"));
    EXPECT_EQ(parse_define("A=b=c")->second, "b=c");
}

}  // namespace variants_test
}  // namespace tw::runtime
