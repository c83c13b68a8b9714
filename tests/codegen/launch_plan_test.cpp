// Arguments that do not fit are refused in words that name them.
#include "runtime/launch_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "lower/lower.h"

namespace tw::runtime {
namespace launch_plan_test {

ir::Module kernels_of(const std::string& file) {
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_file(sources, std::string(TW_SOURCE_DIR) + "/kernels/" + file, {}, sink);
    EXPECT_TRUE(module) << render_text(sink, sources);
    return module ? *std::move(module) : ir::Module{};
}

TensorArgument matrix(std::uint64_t address, std::int64_t m, std::int64_t n, target::DType dtype = target::DType::BF16) {
    return {address, dtype, {m, n}, {n, 1}};
}

LaunchArguments gemm_arguments(std::int64_t m, std::int64_t n, std::int64_t k) {
    return {{matrix(1 << 20, m, k), matrix(1 << 24, n, k), matrix(1 << 28, m, n)}, {}};
}

struct Gemm : testing::Test {
    ir::Module module = kernels_of("gemm_sm90.py");
    const ir::Kernel& kernel = module.kernels[0];

    std::string refusal(const LaunchArguments& a) {
        auto bound = bind(kernel, a);
        return bound ? "accepted" : bound.error().text();
    }
};

TEST_F(Gemm, BindsSizesAndGrid) {
    auto bound = bind(kernel, gemm_arguments(300, 520, 136));
    ASSERT_TRUE(bound) << bound.error().text();
    for (std::size_t i = 0; i < kernel.sizes.size(); ++i) {
        EXPECT_EQ(bound->sizes[i], kernel.sizes[i] == "M" ? 300 : kernel.sizes[i] == "N" ? 520 : 136);
    }
    EXPECT_EQ(bound->grid[0], 3u * 3u);
    EXPECT_EQ(resident_grid(kernel, bound->grid[0], 132), 9u);
    EXPECT_EQ(resident_grid(kernel, 1000, 132), 132u);
}

TEST_F(Gemm, NamesTheArgumentThatDoesNotFit) {
    auto a = gemm_arguments(128, 256, 64);
    a.tensors[1] = matrix(1 << 24, 256, 72);
    EXPECT_NE(refusal(a).find("K is 72 as dimension 1 of B, but 64 as dimension 1 of A"), std::string::npos) << refusal(a);
    a = gemm_arguments(128, 256, 64);
    a.tensors[0].dtype = target::DType::F32;
    EXPECT_NE(refusal(a).find("A is f32, bf16 is expected"), std::string::npos) << refusal(a);
    a = gemm_arguments(128, 256, 64);
    a.tensors[2].strides = {1, 128};
    EXPECT_NE(refusal(a).find("give C memory with these strides"), std::string::npos) << refusal(a);  // a copy of an output is no output
    a = gemm_arguments(128, 256, 64);
    a.tensors[0].strides = {1, 128};
    EXPECT_NE(refusal(a).find("pass A.contiguous()"), std::string::npos) << refusal(a);
    a = gemm_arguments(128, 256, 64);
    a.tensors[0].address += 2;
    EXPECT_NE(refusal(a).find("A starts at an address that is not a multiple of 16"), std::string::npos) << refusal(a);
    a = gemm_arguments(128, 256, 64);
    a.tensors[2].address = a.tensors[0].address + 64;
    EXPECT_NE(refusal(a).find("C and A share memory"), std::string::npos) << refusal(a);
    EXPECT_NE(refusal(gemm_arguments(128, 256, 63)).find("K % 8 == 0"), std::string::npos) << refusal(gemm_arguments(128, 256, 63));
    a = gemm_arguments(128, 256, 64);
    a.tensors.pop_back();
    EXPECT_NE(refusal(a).find("takes 3 tensors"), std::string::npos) << refusal(a);
}

TEST_F(Gemm, AnOutputWhoseElementsMeetIsRefused) {
    for (const std::vector<std::int64_t>& strides : {std::vector<std::int64_t>{0, 1}, {255, 1}, {256, 0}, {1, 1}, {1, 127}}) {
        auto a = gemm_arguments(128, 256, 64);
        a.tensors[2].strides = strides;
        EXPECT_NE(refusal(a).find("two of its (128, 256) elements are one place"), std::string::npos) << refusal(a);
    }
    auto a = gemm_arguments(128, 256, 64);
    a.tensors[2].strides = {-256, 1};
    EXPECT_NE(refusal(a).find("not negative"), std::string::npos) << refusal(a);
    a = gemm_arguments(1, 256, 64);
    a.tensors[2].strides = {0, 1};  // one row: its stride says nothing
    EXPECT_EQ(refusal(a), "accepted");
    a = gemm_arguments(128, 256, 64);
    a.tensors[0].strides = {0, 1};
    EXPECT_NE(refusal(a).find("dimension 0 must step by"), std::string::npos) << refusal(a);
}

TEST_F(Gemm, InputsMayShareMemory) {
    auto a = gemm_arguments(256, 256, 64);
    a.tensors[1].address = a.tensors[0].address;
    EXPECT_EQ(refusal(a), "accepted");
}

TEST_F(Gemm, AnEmptyOutputIsNoLaunch) {
    auto bound = bind(kernel, gemm_arguments(0, 256, 64));
    ASSERT_TRUE(bound) << bound.error().text();
    EXPECT_TRUE(bound->empty);
}

// A size that is no dimension by itself is worked out from one that it is a factor of.
TEST(Sizes, AreSolvedFromProducts) {
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "batches.py", R"(import tilewright as tw
from tilewright import f32

B, N = tw.sizes("B N")

@tw.kernel(target="sm_80", computes="Y[n in 0:N] = X[n]", threads=32)
def batches(X: tw.Tensor(f32, 8 * B + N), Y: tw.Tensor(f32, N)):
    n = tw.grid(tw.cdiv(N, 32)) * 32
    tw.store(Y[n], tw.load(X[n : n + 32], fill=0.0))
)",
                                      {}, sink);
    ASSERT_TRUE(module) << render_text(sink, sources);
    const ir::Kernel& kernel = module->kernels[0];
    auto vectors = [](std::int64_t x, std::int64_t y) {
        return LaunchArguments{{{1 << 20, target::DType::F32, {x}, {1}}, {1 << 24, target::DType::F32, {y}, {1}}}, {}};
    };
    auto bound = bind(kernel, vectors(8 * 5 + 33, 33));
    ASSERT_TRUE(bound) << bound.error().text();
    for (std::size_t i = 0; i < kernel.sizes.size(); ++i) EXPECT_EQ(bound->sizes[i], kernel.sizes[i] == "B" ? 5 : 33);
    auto odd = bind(kernel, vectors(8 * 5 + 34, 33)), short_one = bind(kernel, vectors(25, 33));
    ASSERT_TRUE(!odd && !short_one);
    EXPECT_NE(odd.error().message.find("dimension 0 of X is 74"), std::string::npos) << odd.error().message;
}

// Proofs take uniform integers for whole numbers without bound; the emitted text has 32 bits for them.
struct Counting : testing::Test {
    static std::string refusal(const std::string& body, std::int64_t m, std::int64_t n) {
        SourceMap sources;
        DiagnosticSink sink;
        auto module = lower::compile_text(sources, "count.py", R"(import tilewright as tw
from tilewright import f32, i32

M, N, R = tw.sizes("M N R")

@tw.kernel(target="sm_80", computes="Y[m in 0:M] = X[m]", threads=32)
def count(X: tw.Tensor(f32, M), Y: tw.Tensor(f32, M), W: tw.Tensor(i32, N, range=R), V: tw.Tensor(f32, R)):
    m = tw.grid(tw.cdiv(M, 32)) * 32
    x = tw.load(X[m : m + 32], fill=0.0)
)" + body + "\n    tw.store(Y[m], x)\n",
                                          {}, sink);
        if (!module) return render_text(sink, sources);
        auto vector = [](std::int64_t length, int at) {
            return TensorArgument{std::uint64_t{1} << at, at == 44 ? target::DType::I32 : target::DType::F32, {length}, {1}};
        };
        auto bound = bind(module->kernels[0], {{vector(m, 40), vector(m, 42), vector(n, 44), vector(std::int64_t{1} << 30, 46)}, {}});
        return bound ? "accepted" : bound.error().text();
    }
};

TEST_F(Counting, AProductPast32BitsIsRefused) {
    const std::string body = "    if m * N < 1000:\n        x = x + 0.0";
    EXPECT_EQ(refusal(body, 46000, 46000), "accepted");
    const std::string refused = refusal(body, 65536, 65536);
    EXPECT_NE(refused.find("count counts with 32 bits, and for M = 65536, N = 65536, R = 1073741824 that may not be enough for"),
              std::string::npos)
        << refused;
    EXPECT_NE(refused.find("* N"), std::string::npos) << refused;
}

TEST_F(Counting, WhatIsDividedAgainWasTooLongBefore) {
    EXPECT_NE(refusal("    if M * N // N < 3:\n        x = x + 0.0", 65536, 65536).find("M * N"), std::string::npos);
    EXPECT_EQ(refusal("    if M // 3 * 3 + N % 7 < 3:\n        x = x + 0.0", 1 << 30, 1 << 30), "accepted");
}

TEST_F(Counting, ElementsHaveTheRangeThatIsPromisedOfThem) {
    EXPECT_EQ(refusal("    if W[0] * 1 < 3:\n        x = x + 0.0", 64, 64), "accepted");
    EXPECT_NE(refusal("    if W[0] * 4 < 3:\n        x = x + 0.0", 64, 64).find("W[0]"), std::string::npos);
}

TEST_F(Counting, LoopsAreBoundedByTheirTripCounts) {
    const std::string body = "    for i in tw.range(0, tw.cdiv(N, 64)):\n        if i * 64 * M < 5:\n            x = x + 0.0";
    EXPECT_EQ(refusal(body, 1 << 10, 1 << 20), "accepted");
    EXPECT_NE(refusal(body, 1 << 12, 1 << 20).find("* M"), std::string::npos);
}

TEST_F(Counting, ABranchThatIsNotTakenCountsNothing) {
    EXPECT_EQ(refusal("    if M < 100:\n        if m * N * N * N < 7:\n            x = x + 0.0", 100, 65536), "accepted");
}

TEST_F(Gemm, LargeSizesAreNotRefusedForTheirCounts) {
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{16384, 16384, 16384}, {1 << 20, 1 << 14, 1 << 12}, {128, 256, 1 << 28}}) {
        auto a = gemm_arguments(m, n, k);
        for (std::size_t i = 0; i < 3; ++i) a.tensors[i].address = (i + 1) << 44;
        EXPECT_EQ(refusal(a), "accepted") << m << " " << n << " " << k;
    }
}

TEST(Variants, TheFirstThatFitsIsTaken) {
    const ir::Module module = kernels_of("bias_gelu.py");
    std::vector<const ir::Kernel*> variants;
    for (const auto& k : module.kernels) variants.push_back(&k);
    ASSERT_EQ(variants.size(), 2u);
    auto arguments = [](std::int64_t n) {
        return LaunchArguments{{matrix(1 << 20, 4, n), {1 << 24, target::DType::BF16, {n}, {1}}, matrix(1 << 28, 4, n)}, {}};
    };
    auto aligned = choose(variants, arguments(64)), any = choose(variants, arguments(63));
    ASSERT_TRUE(aligned && any);
    EXPECT_EQ(aligned->variant, 0u);
    EXPECT_EQ(any->variant, 1u);
    auto wrong = arguments(64);
    wrong.tensors[1].dims = {65};
    auto none = choose(variants, wrong);
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message.find("N is 65"), std::string::npos) << none.error().message;
}

}  // namespace launch_plan_test
}  // namespace tw::runtime
