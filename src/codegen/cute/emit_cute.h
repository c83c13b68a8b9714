// CuTe C++ from the last IR: the same program as the CUDA text, in the words of CuTe.
//
// A distribution is a thread-value layout, so a load or store is a TiledCopy with exactly that layout; a shared buffer is a Tensor with the
// buffer's strides after its swizzle; a matrix product is a TiledMMA whose permutation puts the warps where the distribution has them.
// Nothing is decided here: docs/cute.md has the table. A construct that has no text is refused with its place, never left out.
#pragma once

#include <string>
#include <vector>

#include "codegen/emit.h"

namespace tw::codegen {

struct CuteKernel {
    std::string entry;     // the kernel's function
    std::string launcher;  // extern "C": the tensors' pointers, sizes, scalars, a stream; gives a cudaError_t
    std::string source;    // one .cu that needs CUTLASS's headers only
};

// `number`: which kernel of its name in the file it is, from 1 on; 0: the only one. Pre: the last form, as for `emit`.
Expected<CuteKernel, EmitFailure> emit_cute(const ir::Kernel& kernel, const std::string& file, int number = 0);

// The variants of one kernel as a candidate of the loop: device code alone, without templates, with lines of comment that say how each is
// launched (runtime/cute_candidate.h). Pre: the kernels have one signature.
Expected<std::string, EmitFailure> emit_cute_candidate(const std::vector<const ir::Kernel*>& kernels, const std::string& file);
// The same for a program of the module: its buffers and calls, and every kernel that it launches with the parameters it has.
Expected<std::string, EmitFailure> emit_cute_candidate(const ir::Module& module, const ir::Program& program, const std::string& file);

struct CuteFile {
    std::string name, arch;  // "softmax.cu", "sm_80"
};
// A CMake file that builds the sources into one shared library.
std::string cute_cmake(const std::string& project, const std::vector<CuteFile>& files);

}  // namespace tw::codegen
