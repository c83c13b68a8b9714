// Candidates in CuTe: what their text may hold, their launch lines, and what these become.
#include <gtest/gtest.h>

#include "runtime/compile.h"
#include "runtime/cute_candidate.h"
#include "runtime/nvrtc.h"

namespace tw::runtime::cute_candidate_test {
namespace {

const char* const kGood = R"(// launch scale_kernel
//   when N % 4 == 0 and N >= 4
//   grid (N + 1023) // 1024, M
//   threads 256
//   arguments X, Y, M, N, s
#include <cute/tensor.hpp>
#include <cuda_bf16.h>
#define WIDTH 4
#if WIDTH == 4
#pragma unroll 4
#endif
// a comment that doesn't end with a #include "x"
/* nor
#include "/etc/hostname"
does this */
using namespace cute;
constexpr int kThreads = 256;
struct Shape2 { int a; int b = 3; };
namespace tile { template <class T> CUTE_DEVICE T twice(T x) { return x + x; } }
template <int N = 3> __device__ int plus(int a) { static constexpr int k = N; return a + k; }
enum class Kind { one, two };
template <class T, class U = Layout<Shape<T, T>>> struct Pair { T a; U b; };
template <class T> using Row = decltype(make_tensor(make_gmem_ptr(static_cast<T*>(nullptr)), make_shape(0, 0)));
using Smem = decltype(composition(Swizzle<2, 3, 3>{}, Layout<Shape<Int<128>, Int<32>>, Stride<Int<32>, _1>>{}));
using Tma = decltype(make_tma_copy(SM90_TMA_LOAD{}, make_tensor(make_gmem_ptr(static_cast<float const*>(nullptr)), make_shape(0, 0), make_stride(int64_t(0), Int<1>{})), make_composed_layout(Swizzle<3, 4, 3>{}, smem_ptr_flag_bits<16>{}, Layout<Shape<_128, _64>, Stride<_64, _1>>{})));
struct Sum { template <class T> CUTE_DEVICE T operator()(T a, T b) const { return a + b; } };
template <int... Masks, class T, class Op>
CUTE_DEVICE T fold_lanes(T x, Op op) {
  ((x = op(x, __shfl_xor_sync(0xffffffffu, x, Masks))), ...);
  return x;
}
extern "C" __global__ void __launch_bounds__(256) scale_kernel(float const* X, float* Y, int M, int N, float s) {
  auto shaped = Pair<int>{}; (void)shaped;
  if (M > 0) { int k = plus<3>(M); (void)k; }
  __shared__ float part[32];
  const char c = '"'; const int big = 1'000'000; (void)c; (void)big;
  for (int i = threadIdx.x; i < N; i += 256) Y[i] = s * X[i];
  part[0] = 0;
}
)";

const char* const kSignature = R"(import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", name="scale", computes="""Y[m, n] = s * X[m, n]""")
def scale(
    X: tw.Tensor(f32, M, N),
    Y: tw.Tensor(f32, M, N),
    s: tw.scalar(f32),
):
    pass
)";

TEST(CuteCandidate, PlainTextIsTaken) {
    const auto problem = cute_text_problem(kGood);
    EXPECT_FALSE(problem) << problem->line << ": " << problem->message;
}

// Each brings a file in, runs on the host, or keeps something between launches.
TEST(CuteCandidate, WhatMayNotBeThereIsRefused) {
    const char* const bad[] = {
        "#include \"/etc/passwd\"\n",
        "#include </etc/passwd>\n",
        "#include <cute/../../../../etc/passwd>\n",
        "#include <iostream>\n",
        "#inc\\\nlude \"x\"\n",
        "/* */ #include \"x\"\n",
        "  #  include \"x\"\n",
        "%:include \"x\"\n",
        "#define X \"a\"\n#include X\n",
        "#embed \"x\"\n",
        "#line 1 \"x\"\n",
        "#error no\n",
        "#pragma message(\"x\")\n",
        "#if __has_include(\"/etc/shadow\")\n#endif\n",
        "int f(int x = 1'0 + '/*');\n#include \"/etc/passwd\"\n// */\n",
        "const char* s = R\"(\n)\";\n",
        "_Pragma(\"once\")\n",
        "int main() { return 0; }\n",
        "void go(cudaStream_t s);\n",
        "__global__ void k() {}\nvoid f() { k<<<1, 1>>>(); }\n",
        "__managed__ int x;\n",
        "__device__ int calls;\n",
        "__device__ int calls = 0;\n",
        "int calls = 0;\n",
        "namespace a { int calls; }\n",
        "static unsigned table[64];\n",
        "__device__ float cache[1024];\n",
        "__device__ int f() { static int n = 0; return ++n; }\n",
        "__constant__ float weights[4];\n",
        "template <int N> __device__ int calls;\n",
        "#define V __device__ int calls\nV;\n",
        "#define V int calls\nV;\n",
        "struct Q { int a; } state;\n",
        "union U { int a; float b; } state[2];\n",
        "// a\r#include \"/etc/passwd\"\r\n",
        "const char* s = \"open\n",
        "/* never closed",
        "asm(\".incbin \\\"x\\\"\");\nint incbin;\n",
    };
    for (const char* text : bad) EXPECT_TRUE(cute_text_problem(text)) << text;
    const auto at = cute_text_problem("int f();\n\n#include <vector>\n");
    ASSERT_TRUE(at);
    EXPECT_EQ(at->line, 3);
}

TEST(CuteCandidate, LaunchLinesBecomeAKernelsSignature) {
    const auto launches = cute_launches(kGood);
    ASSERT_TRUE(launches) << launches.error().message;
    ASSERT_EQ(launches->size(), 1u);
    const auto made = cute_module(kSignature, *launches);
    ASSERT_TRUE(made) << made.error().message;
    const ir::Kernel& k = made->module.kernels.at(0);
    EXPECT_EQ(k.name, "scale");
    EXPECT_EQ(k.warps, 8);
    ASSERT_EQ(k.assumptions.size(), 1u);
    EXPECT_EQ(ir::to_string(k.grid[0], ir::names_of(k)), "((N + 1023) // 1024)");
    EXPECT_EQ(ir::to_string(k.grid[1], ir::names_of(k)), "M");
    EXPECT_EQ(made->entries.at(0).entry, "scale_kernel");
    ASSERT_EQ(made->entries.at(0).arguments.size(), 5u);
    EXPECT_EQ(made->entries.at(0).arguments[4].kind, codegen::Argument::Kind::scalar);
}

TEST(CuteCandidate, MapsClustersAndZeroedOutputs) {
    const auto launches = cute_launches(
        "// launch k\n//   grid M\n//   threads 128\n//   shared 2048\n//   persistent 2\n//   cluster 2\n//   zero Y\n//   map t = X, box "
        "(64, 32), swizzle 128\n");
    ASSERT_TRUE(launches) << launches.error().message;
    const auto made = cute_module(kSignature, *launches);
    ASSERT_TRUE(made) << made.error().message;
    const ir::Kernel& k = made->module.kernels.at(0);
    EXPECT_TRUE(k.persistent && k.tensors[1].zero_initialised);
    EXPECT_EQ(k.min_blocks_per_sm, 2);
    EXPECT_EQ(k.cluster[0], 2);
    ASSERT_EQ(k.tensor_maps.size(), 1u);
    EXPECT_EQ(k.tensor_maps[0].box, (std::vector<int>{32, 64}));  // innermost first
    EXPECT_EQ(made->entries[0].arguments.size(), 6u);             // the map, two tensors, two sizes, the scalar
}

TEST(CuteCandidate, LaunchLinesThatMeanNothingAreNamed) {
    const std::pair<const char*, const char*> bad[] = {
        {"// launch k\n//   threads 128\n", "grid"},
        {"// launch k\n//   grid M\n//   threads 100\n", "threads"},
        {"// launch k\n//   grid M\n//   threads 128\n//   speed 9\n", "speed"},
        {"// launch k\n//   grid M; import os\n//   threads 128\n", "grid"},
        {"// launch k\n//   grid M\n//   threads 99999999999999999999\n", "threads"},
        {"// launch k\n//   grid M\n//   threads 128\n//   map t = X, box (a, 4)\n", "map"},
        {"int x;\n", "no launch"},
    };
    for (const auto& [text, word] : bad) {
        const auto launches = cute_launches(text);
        ASSERT_FALSE(launches) << text;
        EXPECT_NE(launches.error().message.find(word), std::string::npos) << launches.error().message;
    }
    const std::pair<const char*, const char*> wrong[] = {
        {"// launch k\n//   grid Q\n//   threads 128\n", "grid"},
        {"// launch k\n//   grid M, N, 1, 1\n//   threads 128\n", "three"},
        {"// launch k\n//   grid M\n//   threads 128\n//   arguments X, Z\n", "Z"},
        {"// launch k\n//   grid M\n//   threads 128\n//   zero X\n", "X"},
        {"// launch k\n//   grid M\n//   threads 128\n//   map t = X, box (4)\n", "X"},
    };
    for (const auto& [text, word] : wrong) {
        const auto launches = cute_launches(text);
        ASSERT_TRUE(launches) << text;
        const auto made = cute_module(kSignature, *launches);
        ASSERT_FALSE(made) << text;
        EXPECT_NE(made.error().message.find(word), std::string::npos) << made.error().message;
    }
}

const char* const kProgram = R"(// program
//   buffer H f16 (M, N), strides ((N + 7) // 8 * 8, 1)
//   call halves X, H, s
//   call widen H, Y
// launch halves_kernel
//   of halves
//   tensor A f32 (M, N)
//   tensor B out f16 (M, N), strides ((N + 7) // 8 * 8, 1)
//   scalar t f32
//   when N % 4 == 0
//   grid M
//   threads 128
// launch halves_any
//   of halves
//   tensor A f32 (M, N)
//   tensor B out f16 (M, N), strides ((N + 7) // 8 * 8, 1)
//   scalar t f32
//   grid M
//   threads 64
// launch widen_kernel
//   of widen
//   tensor A f16 (rows, width), strides ((width + 7) // 8 * 8, 1)
//   tensor B out f32 (rows, width)
//   map t = A, box (1, 64)
//   grid rows
//   threads 128
)";

TEST(CuteCandidate, AProgramHasBuffersAndCalls) {
    const auto launches = cute_launches(kProgram);
    const auto program = cute_program(kProgram);
    ASSERT_TRUE(launches && program && *program);
    const auto made = cute_module(kSignature, *launches, *program);
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_EQ(made->module.kernels.size(), 3u);
    ASSERT_EQ(made->module.programs.size(), 1u);
    const ir::Program& p = made->module.programs[0];
    EXPECT_EQ(p.name, "scale");
    ASSERT_EQ(p.tensors.size(), 3u);
    EXPECT_EQ(p.parameter_count, 2);
    EXPECT_EQ(p.tensors[2].dtype, target::DType::F16);
    ASSERT_EQ(p.launches.size(), 2u);
    EXPECT_EQ(made->module.kernels[0].name, "halves");
    EXPECT_EQ(made->module.kernels[1].name, "halves");  // the variant without a condition
    EXPECT_EQ(made->entries[1].entry, "halves_any");
    EXPECT_EQ(p.launches[1].kernel, 2);
    EXPECT_TRUE(made->module.kernels[2].tensors[1].is_output);
    EXPECT_EQ(made->module.kernels[2].tensor_maps.size(), 1u);
    EXPECT_FALSE(cute_program("// launch k\n//   grid M\n//   threads 128\n").value());
}

TEST(CuteCandidate, ProgramsThatMeanNothingAreNamed) {
    const auto changed = [](const std::string& from, const std::string& to) {
        std::string text = kProgram;
        text.replace(text.find(from), from.size(), to);
        return text;
    };
    const std::string wrong[] = {
        changed("call widen H, Y", "call widen Y, Y"),          // another type
        changed("call widen H, Y", "call nobody H, Y"),         // no such kernel
        changed("call widen H, Y", "call widen H"),             // an argument is missing
        changed("call halves X, H, s", "call halves X, H, H"),  // a tensor for a scalar
        changed("//   of widen\n", ""),                         // whose launch is it?
        changed("buffer H f16 (M, N), strides ((N + 7) // 8 * 8, 1)", "buffer H f16 (N, M)"),
        changed("tensor B out f32 (rows, width)", "tensor B out f32 (rows, width + 1)"),
    };
    for (const std::string& text : wrong) {
        const auto launches = cute_launches(text);
        const auto program = cute_program(text);
        ASSERT_TRUE(launches && program) << text;
        EXPECT_FALSE(cute_module(kSignature, *launches, *program)) << text;
    }
    for (const char* text : {"// program\n", "// program\n//   buffer H f17 (M)\n", "// program\n//   call f A; import os\n",
                             "// program\n//   buffer H f16 (M\n", "// program\n//   speed 9\n", "// program\n//   call f A\n// program\n"})
        EXPECT_FALSE(cute_program(text)) << text;
    // A kernel's own parameters without a program.
    const auto launches = cute_launches("// launch k\n//   of f\n//   tensor X f32 (M, N)\n//   grid M\n//   threads 128\n");
    ASSERT_TRUE(launches);
    EXPECT_FALSE(cute_module(kSignature, *launches));
}

// The driver copies as many bytes as the kernel declares, from our memory.
TEST(CuteCandidate, ParametersAreComparedWithTheArguments) {
    if (!nvrtc_identity()) GTEST_SKIP() << "no NVRTC on this machine";
    const auto compiled = [](const std::string& parameters) {
        CompileRequest request;
        request.source = "struct Big { char bytes[512]; };\nextern \"C\" __global__ void k(" + parameters + ") {}\n";
        auto made = compile(request);
        return made ? made->cubin : std::string();
    };
    const auto launches = cute_launches("// launch k\n//   grid M\n//   threads 128\n");
    const auto made = cute_module(kSignature, *launches);
    const auto problem = [&](const std::string& parameters) {
        return parameter_problem(made->module.kernels[0], made->entries[0], compiled(parameters)).value_or("");
    };
    EXPECT_EQ(problem("const float* x, float* y, int m, int n, float s"), "");
    EXPECT_NE(problem("const float* x, float* y, int m, int n"), "");
    EXPECT_NE(problem("const float* x, float* y, int m, int n, Big s"), "");
    EXPECT_NE(problem("const float* x, float* y, long long m, int n, float s"), "");
    EXPECT_FALSE(parameter_bytes(compiled("int a"), "other"));
    EXPECT_FALSE(parameter_bytes("no cubin", "k"));
}

}  // namespace
}  // namespace tw::runtime::cute_candidate_test
