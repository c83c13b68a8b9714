// A kernel in CuTe C++ that is tested and timed as any other: device code, and lines of comment that say how it is launched.
//
//   // launch gemm_kernel
//   //   when K % 8 == 0 and N % 8 == 0                     optional: the first launch whose condition holds is taken
//   //   grid (M + 127) // 128, (N + 127) // 128            over the task's sizes, as in the tile language
//   //   threads 384
//   //   shared 98304                                       optional: bytes of dynamic shared memory
//   //   persistent 1                                       optional: at most so many blocks a multiprocessor
//   //   cluster 2, 1, 1                                    optional
//   //   map tma_a = A, box (128, 64), swizzle 128          optional: a TMA descriptor of a tensor, box in the order of its dimensions
//   //   zero C                                             optional: outputs that start at zero
//   //   arguments tma_a, A, B, C, M, N, K                  optional: maps, tensors, sizes (int), scalars, in this order
//   extern "C" __global__ void gemm_kernel(...)
//
// Several launches with buffers between them are a program. Its kernels have names and parameters of their own:
//
//   // program
//   //   buffer H f16 (M, K), strides ((K + 7) // 8 * 8, 1)  memory that lives for the call
//   //   call split A, H                                     a kernel's name and what it gets: tensors and buffers, then scalars
//   //   call multiply H, B, C
//   // launch split_kernel
//   //   of split                                            the kernel of the program that this is (a variant of)
//   //   tensor X f32 (M, K)
//   //   tensor Y out f16 (M, K), strides ((K + 7) // 8 * 8, 1)
//   //   scalar alpha f32
//   //   grid ...
//
// There is no host code, so that nothing of a candidate runs in our process: we read the lines, encode the descriptors and launch.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "codegen/emit.h"
#include "ir/ir.h"
#include "runtime/compile.h"

namespace tw::runtime {

struct CuteProblem {
    int line = 0;
    std::string message, hint;
};

struct CuteMap {
    std::string name, tensor;
    std::vector<int> box;  // in the order of the tensor's dimensions
    int swizzle_bytes = 0;
};

// A buffer of a program, or a parameter of one of its kernels.
struct CuteTensor {
    std::string name, dtype, dims, strides;  // the last two without their brackets; no strides: row after row
    bool output = false;
};

struct CuteLaunch {
    int line = 0;
    std::string kernel, when, grid;
    std::string of;                                                    // of a program: the kernel that this is a variant of
    std::vector<CuteTensor> tensors;                                   // its parameters
    std::vector<std::string> scalars;                                  // "alpha: tw.scalar(f32)"
    int threads = 0, shared_bytes = 0, blocks_per_multiprocessor = 0;  // the last: 0 when it is not persistent
    int cluster[3] = {1, 1, 1};
    std::vector<CuteMap> maps;
    std::vector<std::string> zeroed;     // outputs that the kernel adds to
    std::vector<std::string> arguments;  // empty: the usual order
};

// What a candidate may not hold: includes beside CuTe's, CUTLASS's and the device headers of CUDA, other lines for the preprocessor, host
// code, launches, variables that outlive a launch.
std::optional<CuteProblem> cute_text_problem(std::string_view text);

Expected<std::vector<CuteLaunch>, CuteProblem> cute_launches(std::string_view text);

struct CuteCall {
    int line = 0;
    std::string kernel;
    std::vector<std::string> arguments;
};
struct CuteProgram {
    int line = 0;
    std::vector<CuteTensor> buffers;
    std::vector<CuteCall> calls;
};
// Nothing: the text describes one kernel and its variants.
Expected<std::optional<CuteProgram>, CuteProblem> cute_program(std::string_view text);

struct CuteEntry {
    std::string entry;
    std::vector<codegen::Argument> arguments;
};
struct CuteModule {
    ir::Module module;  // one kernel without statements for each launch: signature, grid, conditions, maps; the program
    std::vector<CuteEntry> entries;
};
// `signature`: the task's signature as a kernel file (tasks::signature_source).
Expected<CuteModule, CuteProblem> cute_module(const std::string& signature, const std::vector<CuteLaunch>& launches,
                                              const std::optional<CuteProgram>& program = std::nullopt);

// The candidate's text as a request: CUTLASS's and CUDA's headers, no other folder.
Result<CompileRequest> request_for_cute(const std::string& text, const std::string& name, const std::string& arch);

// Sizes of the parameters of a cubin's entry, in order; nothing when it has no such entry.
std::optional<std::vector<int>> parameter_bytes(const std::string& cubin, const std::string& entry);
// What is wrong with them for these arguments: the driver copies as many bytes as the kernel declares.
std::optional<std::string> parameter_problem(const ir::Kernel& kernel, const CuteEntry& entry, const std::string& cubin);

}  // namespace tw::runtime
