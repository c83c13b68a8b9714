// One trial: random inputs, poisoned outputs, one launch on the emulator, comparison with the fp64 reference.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emulate/contents.h"
#include "emulate/emulator.h"
#include "emulate/reference.h"

namespace tw::emulate {

struct TrialOptions {
    std::uint64_t seed = 1;
    Options emulator;
    double tolerance = 0;                               // 0: from `computes` (stated_tolerance)
    std::map<std::string, double> tolerances;           // by output, before `tolerance`
    std::int64_t memory_limit = std::int64_t{8} << 30;  // bytes; sizes that need more are refused
    ReferenceOptions reference;                         // what the reference may cost
    bool small_integers = false;                        // inputs are small integers, so that sums are exact and any slip is visible
    bool own_data = false;  // nobody asked for these inputs: what the equation does not define on them is not held against the kernel
    std::map<std::string, double> scalars;                         // given by name instead of drawn
    std::map<std::string, std::vector<double>> inputs;             // contents by name, in memory order, instead of random ones
    std::shared_ptr<const std::vector<ReferenceOutput>> expected;  // of these inputs, where the caller has it already
};

struct OutputError {
    int tensor = 0;
    ErrorSummary error;
    double tolerance = 0;
    bool unwritten = false;  // a poisoned element was left
    bool wrong = false;
};

struct Trial {
    std::vector<std::int64_t> sizes;
    Outcome outcome;
    std::string refused;   // the launch or the reference is impossible, or the run gave up; nothing was learned
    bool gave_up = false;  // refused because of a limit on time or statements
    std::vector<OutputError> outputs;
    std::vector<TensorData> tensors;  // after the run
    double seconds = 0;
    bool failed() const;
    // One sentence: the first fault or the worst output.
    std::string summary(const ir::Kernel& kernel) const;
};

std::vector<TensorData> random_inputs(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, std::uint64_t seed,
                                      bool small_integers);
// Bytes a trial needs for its tensors: themselves, the inputs kept for the reference, race detection and the reference's
// results. Saturates.
std::int64_t memory_needed(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes);
// Why these sizes cannot be tried within the limit; empty when they can.
std::string too_large(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, std::int64_t memory_limit);
// The tensors of a launch whose integer tensors hold what is promised (zeros where nothing is), and whose others have no data.
std::vector<TensorData> index_contents(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, Spread spread, std::uint64_t seed);
// Drawn from the seed, or as given by name; rounded to their types.
std::vector<double> random_scalars(const std::vector<ir::ScalarParam>& params, std::uint64_t seed,
                                   const std::map<std::string, double>& given = {});
// The input of this name; nothing: there is none.
const ir::Tensor* input_named(const std::vector<ir::Tensor>& tensors, const std::string& name);
// The first name that is no scalar parameter's; empty: all are.
// A value given for a scalar that was promised to be positive and is not: in words, or empty.
std::string broken_scalar(const std::vector<ir::ScalarParam>& params, const std::vector<double>& values);
std::string unknown_scalar(const std::vector<ir::ScalarParam>& params, const std::map<std::string, double>& given);
// What a trial starts with: its tensors and scalars, random or as the options give them. Refuses what does not fit the signature.
struct Start {
    std::vector<TensorData> tensors;
    std::vector<double> scalars;
    std::string refused;
};
Start starting_values(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, const TrialOptions& options);
// Compares the tensors of a clean trial with the reference on `inputs`.
void note_refusal(Trial& trial);  // from the faults of its outcome
void judge_outputs(Trial& trial, const ir::Kernel& kernel, const std::vector<TensorData>& inputs, const std::vector<double>& scalars,
                   const TrialOptions& options);
Trial run_trial(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, const TrialOptions& options);

// The error that an output may have relative to max(|reference|, root mean square), from what `computes` says alone: four units of the
// coarsest type that its value is cast to or stored in, at least 1e-5. What a kernel computes in has no part in it.
double stated_tolerance(const ir::Computes& computes, const std::vector<ir::Tensor>& tensors, int tensor);

}  // namespace tw::emulate
