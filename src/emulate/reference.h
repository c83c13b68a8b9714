// The reference: `computes` evaluated in fp64 on the CPU, element by element, straight from the equation.
//
// Casts in the equation are honoured only as far as `round_casts` says: with it, bf16(x) rounds as the kernel must; without
// it every step is fp64, which is what errors are measured against.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "emulate/emulator.h"

namespace tw::emulate {

struct ReferenceOptions {
    bool round_casts = false;
    bool single_precision = false;  // every step is rounded to f32, as a kernel would that follows the equation word by word
    bool doubts_steps = false;      // a floor or an integer that f32 arithmetic may decide otherwise has an infinite `rounding`
    std::int64_t operation_limit = 2'000'000'000;  // term evaluations; beyond it the reference refuses
};

// One output's values in row-major order of its equation's extents.
struct ReferenceOutput {
    int tensor = 0;
    std::vector<std::int64_t> dims;
    std::vector<std::int64_t> starts;  // where in the tensor it begins; empty: at 0
    std::vector<double> values;
    std::vector<double> rounding;  // for each value: a first-order bound of what rounding loses, in units of the type computed in
};

Expected<std::vector<ReferenceOutput>, std::string> reference(const ir::Computes& computes, const std::vector<std::int64_t>& sizes,
                                                              const std::vector<double>& scalars, const std::vector<TensorData>& tensors,
                                                              const ReferenceOptions& options = {});

// Largest error of `actual` relative to the output's own scale (root mean square of the reference), and the place.
struct ErrorSummary {
    double relative_frobenius = 0;  // ||actual - reference|| / ||reference||
    double worst = 0;               // max (|actual - reference| - what f32 arithmetic may lose) / max(|reference|, rms)
    std::vector<std::int64_t> where;
    double actual = 0, expected = 0;
    bool has_nan = false;      // in `actual` where the reference has none, or where nothing was written
    std::int64_t excused = 0;  // elements that differ, and on which the equation itself says too little (Sensitivity)
};

// What is known of how an equation's values depend on rounding. `single`: the same equation with every step in f32; an element may be off
// by four times what that is. `own_data`: the inputs are ours, and nobody asked for them: where the equation overflows or is not defined on
// them (a denominator that cancels, a logarithm of a negative number), a difference is the data's fault.
struct Sensitivity {
    const ReferenceOutput* single = nullptr;
    bool own_data = false;
    bool infinities_meant = false;  // the equation names an infinity: one in the result is no overflow
};
// A NaN is right where the reference has one too and the kernel wrote it; poison that is left is never right.
ErrorSummary compare(const ReferenceOutput& reference, const TensorData& actual, const Sensitivity& sensitivity = {});

}  // namespace tw::emulate
