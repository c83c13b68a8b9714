// The kernels of a CuTe candidate, each compiled by a process of its own.
//
// Most of a compile is CuTe's templates, which NVRTC instantiates for one text at a time in a process. A text of several kernels is
// therefore compiled as several: each with the other kernels left out. What a rewrite did not change is then found in the cache, too.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compile.h"
#include "runtime/cute_candidate.h"

namespace tw::runtime {

// The text without comment lines and without the kernels other than `entry`, and without their types (`using <kernel>_...` lines).
// The whole text where it has one kernel, or where its kernels cannot be told apart by reading (conditional text, macros that make
// kernels).
std::string cute_unit(std::string_view text, const std::vector<CuteEntry>& entries, const std::string& entry);

class CuteBuild {
public:
    // Starts the compilers: to be made while no other thread of this process compiles.
    CuteBuild(std::string text, std::string name, std::string arch, std::vector<CuteEntry> entries);
    ~CuteBuild();
    CuteBuild(const CuteBuild&) = delete;
    CuteBuild& operator=(const CuteBuild&) = delete;

    // One result for each entry. A mistake is told of the whole text, with its own lines.
    Result<std::vector<CompiledKernels>> finish();

private:
    std::string text_, name_, arch_;
    std::vector<CuteEntry> entries_;
    std::vector<int> compilers_;  // processes
    const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// One entry's machine code, here and now; the compiler's cache is asked first.
Result<CompiledKernels> compile_cute_kernel(const std::string& text, const std::string& name, const std::string& arch,
                                            const std::vector<CuteEntry>& entries, const std::string& entry);

}  // namespace tw::runtime
