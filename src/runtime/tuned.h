// Tuned constants: what `tilewright tune` found, kept as data beside the kernel file and used when it is launched.
//
// kernels/gemm.py has kernels/gemm.tuned.json: for each kernel, GPU and shape that was tuned, the best constants. A shape that was not
// tuned takes those of the nearest one (distance: squares of the logarithms of the sizes' ratios); where a kernel so made does
// not accept the arguments, the next nearest, and at last the constants in the file. Entries belong to one text of the file:
// when its digest is another they are not used.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lower/lower.h"
#include "runtime/launch.h"

namespace tw::runtime {

struct TunedEntry {
    std::string kernel, gpu;
    std::map<std::string, std::int64_t> sizes;
    lower::ConstValues constants;
    double us = 0, default_us = 0;   // of the tuned and of the file's own constants, in one run
};

struct TunedFile {
    std::string source_digest;       // of the kernel file
    std::vector<TunedEntry> entries;
};

std::string tuned_path(const std::string& kernel_file);   // "gemm.py" -> "gemm.tuned.json"
// Nothing when there is no such file; a failure when it cannot be understood.
Result<TunedFile> read_tuned(const std::string& kernel_file);
Result<void> write_tuned(const std::string& kernel_file, const TunedFile& tuned);

// Entries for this kernel and GPU, nearest first. An empty `gpu` takes those of every GPU.
std::vector<const TunedEntry*> nearest(const TunedFile& tuned, const std::string& kernel, const std::string& gpu, const std::map<std::string, std::int64_t>& sizes);

// The kernel file with its own constants, and one module for each set of tuned constants that was needed so far.
class TunedModules {
public:
    // `text` is what the file holds.
    TunedModules(std::string file, std::string text, KernelModule& untuned, TunedFile tuned);

    // The module to launch `kernel` from, and with which the arguments are known to fit: first from the tuned ones, else the untuned.
    KernelModule& pick(const std::string& kernel, const LaunchArguments& arguments);

private:
    std::string file_, text_, gpu_;
    KernelModule& untuned_;
    TunedFile tuned_;
    std::mutex guard_;
    std::map<lower::ConstValues, std::unique_ptr<KernelModule>> modules_;           // null: rejected
    std::map<std::pair<std::string, std::vector<std::int64_t>>, KernelModule*> picked_;   // by kernel and sizes
};

// Whether some variant of the kernel, or the program, takes the arguments; the sizes they mean then.
std::optional<std::map<std::string, std::int64_t>> accepted_sizes(const ir::Module& module, const std::string& kernel, const LaunchArguments& arguments);

}  // namespace tw::runtime
