// Tuned constants: what `tilewright tune` found, kept as data beside the kernel file and used when it is launched.
//
// kernels/gemm.py has kernels/gemm.tuned.json: for each kernel, GPU and shape that was tuned, the time of every set of constants that is
// the best for some shape. A shape that was tuned takes its best. For another one, each set is judged by its own launches: the times of
// those nearest in blocks, in operations per element and in the alignment of rows, scaled to the rounds of blocks that this launch takes.
// The shortest is taken; where no kernel so made accepts the arguments, the constants in the file. Entries belong to one program: when its
// digest is another they are not used.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lower/lower.h"
#include "runtime/launch.h"
#include "runtime/signature.h"

namespace tw::runtime {

struct TunedEntry {
    std::string kernel, gpu;
    std::map<std::string, std::int64_t> sizes;
    lower::ConstValues constants;
    double us = 0, default_us = 0;  // of the tuned and of the file's own constants, in one run
};

struct TunedFile {
    std::string program_digest;  // of what the kernel file said
    std::vector<TunedEntry> entries;
};

// Of the program in a kernel file: its syntax tree without docstrings. Comments, blank lines and line breaks may change and tuned data
// stays.
std::string program_digest(const std::string& text);

std::string tuned_path(const std::string& kernel_file);  // "gemm.py" -> "gemm.tuned.json"
// Nothing when there is no such file; a failure when it cannot be understood.
Result<TunedFile> read_tuned(const std::string& kernel_file);
Result<void> write_tuned(const std::string& kernel_file, const TunedFile& tuned);

// Entries for this kernel and GPU, nearest first (squares of the logarithms of the sizes' ratios), for one shape the fastest first. An
// empty `gpu` takes those of every GPU.
std::vector<const TunedEntry*> nearest(const TunedFile& tuned, const std::string& kernel, const std::string& gpu,
                                       const std::map<std::string, std::int64_t>& sizes);

// Those by which sets of constants are compared at these sizes. Where several sets were timed for one shape, a set with less than half the
// entries of the one that has most, and less than four or an eighth of it, serves its own shapes alone: how it compares with the others
// elsewhere is not known.
std::vector<const TunedEntry*> comparable(std::vector<const TunedEntry*> entries, const std::map<std::string, std::int64_t>& sizes);

// The time of a launch with these sizes, by entries for the same constants and other shapes. From four entries on: a sum of parts (rounds
// of blocks, lengths of sums, bytes, work) whose weights are fitted to all of them, to near ones more, times what the nearest ones take
// more or less than that. With fewer: the mean of the logarithms of the three nearest, by their weights. Distance is by squares: of the
// logarithms of the ratios of blocks and of operations per element, and of how much of a 128-byte line the rows of each input keep to.
// Blocks that fit the GPU at once run side by side, rounds of them one after another; a block makes as many elements here as there, each in
// proportion to its operations. Nothing where no entry has a time and blocks.
std::optional<double> predicted_us(const std::vector<const TunedEntry*>& entries, const Signature& signature, const ir::Kernel& kernel,
                                   const std::map<std::string, std::int64_t>& sizes, int multiprocessors);

// The same for a program of the module: its parts are those of its launches. With fewer than four entries the time grows with what the
// whole computes or moves.
std::optional<double> predicted_program_us(const std::vector<const TunedEntry*>& entries, const KernelModule& module,
                                           const Signature& signature, const std::map<std::string, std::int64_t>& sizes,
                                           int multiprocessors);

// Those that a caller who chose some constants could have meant: entries that have these values for them.
TunedFile agreeing(TunedFile tuned, const lower::ConstValues& given);

// All entries with the caller's values in them, those that had most of them already first.
TunedFile adapted(TunedFile tuned, const lower::ConstValues& given);

// The kernel file with its own constants, and one module for each set of tuned constants that was needed so far.
class TunedModules {
public:
    // `text` is what the file holds; `given` what the caller chose, which every entry of `tuned` agrees with. Without a GPU the choice is
    // that of the GPU that the entries are for.
    TunedModules(std::string file, std::string text, KernelModule& untuned, TunedFile tuned, lower::ConstValues given = {});

    struct Picked {
        KernelModule* module = nullptr;  // with which the arguments are known to fit, if with any: a tuned one, else the untuned
        lower::ConstValues constants;
        std::optional<double> us;  // by the tuned data
    };
    Picked pick(const std::string& kernel, const LaunchArguments& arguments);

private:
    Picked choose_set(const std::string& kernel, const LaunchArguments& arguments);
    KernelModule* module_with(const lower::ConstValues& constants);  // null: the language rejects it

    std::string file_, text_, gpu_;
    int multiprocessors_ = 0;
    KernelModule& untuned_;
    TunedFile tuned_;
    lower::ConstValues given_;
    std::mutex guard_;
    std::map<lower::ConstValues, std::unique_ptr<KernelModule>> modules_;         // null: rejected
    std::map<std::pair<std::string, std::vector<std::int64_t>>, Picked> picked_;  // by kernel, types and sizes
};

// The variant of the kernel that takes the arguments, and the sizes they mean; for a program no variant.
struct Accepted {
    const ir::Kernel* variant = nullptr;
    std::map<std::string, std::int64_t> sizes;
};
std::optional<Accepted> accepted(const ir::Module& module, const std::string& kernel, const LaunchArguments& arguments);

}  // namespace tw::runtime
