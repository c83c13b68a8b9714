#include "emulate/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "emulate/computes_evaluator.h"
#include "emulate/poison.h"
#include "ir/element_math.h"
#include "ir/term_type.h"

namespace tw::emulate {

Expected<std::vector<ReferenceOutput>, std::string> reference(const ir::Computes& computes, const std::vector<std::int64_t>& sizes,
                                                              const std::vector<double>& scalars, const std::vector<TensorData>& tensors,
                                                              const ReferenceOptions& options) {
    std::vector<ReferenceOutput> outputs;
    for (const ir::Equation& e : computes.equations) {
        ReferenceOutput out;
        out.tensor = e.output;
        std::int64_t total = 1;
        for (const ir::Expr& extent : e.output_extents) {
            auto v = size_value(extent, sizes);
            if (!v) return Unexpected{std::string("an output extent of `computes` has no value")};
            out.dims.push_back(std::max<std::int64_t>(0, *v));  // n in 4:N is empty where N is less
            if (__builtin_mul_overflow(total, out.dims.back(), &total)) total = std::numeric_limits<std::int64_t>::max();
        }
        for (const ir::Expr& start : e.output_starts) {
            auto v = size_value(start, sizes);
            if (!v || *v < 0) return Unexpected{std::string("the start of an output range of `computes` has no value")};
            out.starts.push_back(*v);
        }
        if (static_cast<std::size_t>(e.output) < tensors.size() &&
            tensors[static_cast<std::size_t>(e.output)].dims.size() == out.dims.size()) {
            for (std::size_t d = 0; d < out.dims.size(); ++d) {
                const std::int64_t end = out.dims[d] + (d < out.starts.size() ? out.starts[d] : 0);
                if (total > 0 && end > tensors[static_cast<std::size_t>(e.output)].dims[d])
                    return Unexpected{std::string("an output range of `computes` ends beyond the tensor")};
            }
        }
        if (total > options.operation_limit) return Unexpected{std::string("the output is too large for the CPU reference")};
        out.values.resize(static_cast<std::size_t>(total));
        out.rounding.resize(static_cast<std::size_t>(total));
        ComputesEvaluator evaluator(e, sizes, scalars, tensors, options);
        const target::DType from = ir::type_of(e.value, [&](int tensor) { return tensors[static_cast<std::size_t>(tensor)].dtype; });
        const bool is_number = out.dims.empty();
        const std::int64_t row = is_number ? 1 : out.dims.back();
        std::vector<std::int64_t> index(out.dims.size(), 0);
        for (std::int64_t n = 0; n < total; n += row) {
            for (std::size_t d = 0; d + 1 < index.size(); ++d) evaluator.bind(e.output_vars[d], index[d]);
            evaluator.evaluate(is_number ? -1 : e.output_vars.back(), 0, row, &out.values[static_cast<std::size_t>(n)],
                               &out.rounding[static_cast<std::size_t>(n)]);
            if (!evaluator.error.empty()) return Unexpected{evaluator.error};
            if (static_cast<std::size_t>(e.output) < tensors.size() &&
                !target::info(tensors[static_cast<std::size_t>(e.output)].dtype).is_float) {
                for (std::int64_t i = n; i < n + row; ++i)
                    out.values[static_cast<std::size_t>(i)] =
                        ir::converted(out.values[static_cast<std::size_t>(i)], from, tensors[static_cast<std::size_t>(e.output)].dtype);
            }
            for (std::size_t d = index.size() - (is_number ? 0 : 1); d-- > 0;) {
                if (++index[d] < out.dims[d]) break;
                index[d] = 0;
            }
        }
        outputs.push_back(std::move(out));
    }
    return outputs;
}

namespace {

// May the element be anything, because the equation says too little of it on these inputs?
bool says_too_little(const ReferenceOutput& reference, std::size_t n, const Sensitivity& sensitivity) {
    const double want = reference.values[n];
    if (std::isfinite(want) && n < reference.rounding.size() && std::isinf(reference.rounding[n])) return true;
    if (!sensitivity.own_data) return false;
    if (std::isnan(want) || (std::isinf(want) && !sensitivity.infinities_meant)) return true;
    return std::isfinite(want) && sensitivity.single && !std::isfinite(sensitivity.single->values[n]);
}

}  // namespace

ErrorSummary compare(const ReferenceOutput& reference, const TensorData& actual, const Sensitivity& sensitivity) {
    ErrorSummary summary;
    double norm = 0, difference = 0;
    std::int64_t finite = 0;
    for (double v : reference.values) {
        if (!std::isfinite(v)) continue;
        norm += v * v;
        ++finite;
    }
    const double rms = finite ? std::sqrt(norm / static_cast<double>(finite)) : 0;
    std::vector<std::int64_t> index(reference.dims.size(), 0);
    for (std::size_t n = 0; n < reference.values.size(); ++n) {
        std::vector<std::int64_t> place = index;
        for (std::size_t d = 0; d < reference.starts.size(); ++d) place[d] += reference.starts[d];
        const double want = reference.values[n], got = actual.get(place);
        double error = 0;
        const bool left = std::isnan(got) && is_poison(bits_at(actual, place), actual.dtype);
        if (std::isnan(want) && std::isnan(got) && !left) {
            error = 0;
        } else if (std::isnan(got)) {
            summary.has_nan = true;
            error = std::numeric_limits<double>::infinity();
        } else if (!std::isfinite(want) || !std::isfinite(got)) {
            error = want == got ? 0 : std::numeric_limits<double>::infinity();
        } else {
            const double d = std::fabs(got - want);
            difference += d * d;
            // What f32 arithmetic may lose on the way is no error: results that cancel are as exact as their parts.
            double allowed =
                16 * 0x1p-24 * (n < reference.rounding.size() && std::isfinite(reference.rounding[n]) ? reference.rounding[n] : 0.0);
            if (sensitivity.single && std::isfinite(sensitivity.single->values[n]))
                allowed = std::max(allowed, 4 * std::fabs(sensitivity.single->values[n] - want));
            error = std::max(0.0, d - allowed) / std::max(std::fabs(want), rms > 0 ? rms : 1.0);
        }
        if (error > 0 && !left && target::info(actual.dtype).is_float && says_too_little(reference, n, sensitivity)) {
            ++summary.excused;
            error = 0;
        }
        if (error > summary.worst || (n == 0 && summary.where.empty())) {
            summary.worst = error;
            summary.where = place;
            summary.actual = got;
            summary.expected = want;
        }
        for (std::size_t d = index.size(); d-- > 0;) {
            if (++index[d] < reference.dims[d]) break;
            index[d] = 0;
        }
    }
    summary.relative_frobenius = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
    if (std::isinf(summary.worst)) summary.relative_frobenius = std::numeric_limits<double>::infinity();
    return summary;
}

}  // namespace tw::emulate
