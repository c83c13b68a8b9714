// A text of several kernels is compiled as several texts: what each of them keeps.
#include "runtime/cute_units.h"

#include <gtest/gtest.h>

namespace tw::runtime {
namespace {

const std::vector<CuteEntry> two = {{"first_kernel", {}}, {"second_kernel", {}}};

const std::string text = R"(// sketch: x
#include <cute/tensor.hpp>
CUTE_DEVICE int twice(int x) { return 2 * x; }
using first_kernel_Tma0 = int;
// launch first_kernel
//   grid 1
extern "C" __global__ void __launch_bounds__(128, 1) first_kernel(int const* __restrict__ x) {
  asm volatile("{ not a bracket" ::: "memory");   // } nor this
  if (*x) { twice('{'); }
}
using second_kernel_Tma0 = int;
// launch second_kernel
extern "C" __global__ void second_kernel(int* y) { *y = twice(1'000); }
)";

TEST(CuteUnits, AKernelKeepsItselfAndWhatIsShared) {
    const std::string first = cute_unit(text, two, "first_kernel"), second = cute_unit(text, two, "second_kernel");
    EXPECT_NE(first.find("void __launch_bounds__(128, 1) first_kernel("), std::string::npos);
    EXPECT_NE(first.find("if (*x) { twice('{'); }\n}\n"), std::string::npos);
    EXPECT_EQ(first.find("second_kernel"), std::string::npos) << first;
    EXPECT_EQ(second.find("first_kernel"), std::string::npos) << second;
    EXPECT_NE(second.find("*y = twice(1'000);"), std::string::npos);
    for (const std::string& unit : {first, second}) {
        EXPECT_NE(unit.find("#include <cute/tensor.hpp>\nCUTE_DEVICE int twice"), std::string::npos) << unit;
        EXPECT_EQ(unit.find("sketch"), std::string::npos) << unit;
    }
    EXPECT_NE(first.find("using first_kernel_Tma0"), std::string::npos);
}

// What a rewrite of one kernel leaves alone is the same text, and so found in the cache.
TEST(CuteUnits, ChangesOfOneKernelAreNotInTheOthers) {
    std::string changed = text;
    changed.replace(changed.find("sketch: x"), 9, "sketch: another");
    changed.replace(changed.find("*y = "), 5, "*y =\n 1 + ");
    EXPECT_EQ(cute_unit(text, two, "first_kernel"), cute_unit(changed, two, "first_kernel"));
    EXPECT_NE(cute_unit(text, two, "second_kernel"), cute_unit(changed, two, "second_kernel"));
}

// Kernels that cannot be told apart by reading stay together.
TEST(CuteUnits, WhatIsNotReadForSureStaysWhole) {
    EXPECT_EQ(cute_unit(text, {two[0]}, "first_kernel"), text);
    for (const char* more : {"#if 1\n#endif\n", "#define K extern \"C\" __global__\n", "const char* s = R\"(})\";\n",
                             "__global__ void third(int) {}\n", "// a comment that goes on \\\n}\n"})
        EXPECT_EQ(cute_unit(text + more, two, "first_kernel"), text + more) << more;
    EXPECT_EQ(cute_unit(text, {two[0], {"not_there", {}}}, "first_kernel"), text);
}

}  // namespace
}  // namespace tw::runtime
