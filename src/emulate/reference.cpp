#include "emulate/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "emulate/machine.h"

namespace tw::emulate {
namespace {

using ir::Term;
using ir::TermKind;

class Evaluator {
public:
    Evaluator(const std::vector<std::int64_t>& sizes, const std::vector<double>& scalars, const std::vector<TensorData>& tensors,
              const ReferenceOptions& options, std::size_t variables)
        : sizes_(sizes), scalars_(scalars), tensors_(tensors), options_(options), vars_(variables, 0), bound_(variables, 0) {}

    void bind(int var, std::int64_t value) {
        vars_[static_cast<std::size_t>(var)] = value;
        bound_[static_cast<std::size_t>(var)] = 1;
    }

    std::optional<std::int64_t> integer(const ir::Expr& e) {
        return ir::evaluate(e, [&](const ir::ExprNode& n, const std::vector<std::int64_t>& args) -> std::optional<std::int64_t> {
            switch (n.kind) {
                case ir::ExprKind::size: return sizes_[static_cast<std::size_t>(n.id)];
                case ir::ExprKind::var:
                    if (n.id < 0 || n.id >= static_cast<int>(vars_.size()) || !bound_[static_cast<std::size_t>(n.id)]) return std::nullopt;
                    return vars_[static_cast<std::size_t>(n.id)];
                case ir::ExprKind::element: {
                    const TensorData& t = tensors_[static_cast<std::size_t>(n.id)];
                    for (std::size_t i = 0; i < args.size(); ++i) {
                        if (args[i] < 0 || args[i] >= t.dims[i]) return std::nullopt;
                    }
                    return static_cast<std::int64_t>(t.get(args));
                }
                default: return std::nullopt;
            }
        });
    }

    double value(const Term& t) {
        if (++operations_ > options_.operation_limit) {
            error = "the reference would need more than " + std::to_string(options_.operation_limit) + " evaluations";
            return 0;
        }
        if (!error.empty()) return 0;
        rounding = 0;
        switch (t->kind) {
            case TermKind::constant: return t->number;
            case TermKind::scalar: return scalars_[static_cast<std::size_t>(t->id)];
            case TermKind::index: return static_cast<double>(must(t->indices[0]));
            case TermKind::element: {
                const TensorData& tensor = tensors_[static_cast<std::size_t>(t->id)];
                std::int64_t offset = 0;
                for (std::size_t i = 0; i < t->indices.size(); ++i) {
                    const std::int64_t index = must(t->indices[i]);
                    if (!error.empty()) return 0;
                    if (index < 0 || index >= tensor.dims[i]) {
                        error = "`computes` reads index " + std::to_string(index) + " of a dimension with extent " + std::to_string(tensor.dims[i]);
                        return 0;
                    }
                    offset += index * tensor.strides[i];
                }
                return load_value(&tensor.bytes[static_cast<std::size_t>(offset * target::bytes(tensor.dtype))], tensor.dtype);
            }
            case TermKind::cast: {
                const double x = value(t->args[0]);
                const bool float_type = target::info(t->dtype).is_float;
                return options_.round_casts || !float_type ? rounded(x, t->dtype) : x;
            }
            case TermKind::reduce: return fold(t);
            case TermKind::apply: return apply(t);
        }
        return 0;
    }

    std::string error;
    double rounding = 0;   // of the term that was evaluated last: a first-order bound of its rounding error, in units of the type's

private:
    std::int64_t must(const ir::Expr& e) {
        auto v = integer(e);
        if (!v && error.empty()) error = "an index of `computes` has no value";
        return v.value_or(0);
    }

    // A reduction whose free variables have values they had before has its value from then: the mean of a row is computed
    // once a row, not once an element; a score of attention once, not once for every column of the output.
    double fold(const Term& t) {
        auto [it, is_new] = remembered_.try_emplace(t.get());
        Remembered& r = it->second;   // stays where it is: references to elements survive insertions
        if (is_new) collect_free(t, r.free);
        std::vector<std::int64_t> now;
        for (int v : r.free) now.push_back(vars_[static_cast<std::size_t>(v)]);
        if (auto known = r.values.find(now); known != r.values.end()) {
            rounding = known->second.second;
            return known->second.first;
        }
        const double result = computed_fold(t);
        if (!error.empty()) return result;
        if (r.values.size() >= most_remembered) r.values.clear();
        r.values.emplace(std::move(now), std::pair(result, rounding));
        return result;
    }

    static void collect_free(const ir::Expr& e, const std::vector<int>& bound, std::vector<int>& free) {
        if (e.kind() == ir::ExprKind::var && std::find(bound.begin(), bound.end(), e->id) == bound.end() &&
            std::find(free.begin(), free.end(), e->id) == free.end()) {
            free.push_back(e->id);
        }
        for (const ir::Expr& a : e->args) collect_free(a, bound, free);
    }
    static void collect_free(const Term& t, std::vector<int>& free, std::vector<int> bound = {}) {
        for (const ir::Expr& e : t->indices) collect_free(e, bound, free);   // a reduction's bounds lie outside its variable
        if (t->kind == TermKind::reduce) bound.push_back(t->id);
        for (const Term& a : t->args) collect_free(a, free, bound);
    }

    double computed_fold(const Term& t) {
        const std::int64_t lo = must(t->indices[0]), hi = must(t->indices[1]);
        const auto var = static_cast<std::size_t>(t->id);
        const std::int64_t saved = vars_[var];
        const char saved_bound = bound_[var];
        const std::string& op = t->name;
        double acc = 0, bound = 0;
        if (op == "prod") acc = 1;
        if (op == "max") acc = -std::numeric_limits<double>::infinity();
        if (op == "min") acc = std::numeric_limits<double>::infinity();
        for (std::int64_t i = lo; i < hi && error.empty(); ++i) {
            bind(t->id, i);
            const double x = value(t->args[0]);
            if (op == "sum") {
                acc += x;
                bound += rounding + std::fabs(x);   // in any order of the additions, up to their depth
            } else if (op == "prod") {
                bound = bound * std::fabs(x) + rounding * std::fabs(acc) + std::fabs(acc * x);
                acc *= x;
            } else if (op == "max" || op == "min") {
                bound = std::max(bound, rounding);
                acc = op == "max" ? std::max(acc, x) : std::min(acc, x);
            } else if (op == "any") acc = acc != 0 || x != 0;
            else {
                error = "unknown reduction `" + op + "`";
            }
        }
        vars_[var] = saved;
        bound_[var] = saved_bound;
        rounding = bound;
        return acc;
    }

    double apply(const Term& t) {
        const std::string& f = t->name;
        if (f == "select") {   // only the taken side need be defined
            return value(t->args[value(t->args[0]) != 0 ? 1 : 2]);
        }
        double a[3] = {0, 0, 0}, e[3] = {0, 0, 0};
        for (std::size_t i = 0; i < t->args.size() && i < 3; ++i) {
            a[i] = value(t->args[i]);
            e[i] = rounding;
        }
        const double result = function(f, a);
        rounding = propagated(f, a, e, result);
        return result;
    }

    // The error of the result: of the arguments, times how steep the function is there, and one rounding of its own.
    static double propagated(const std::string& f, const double* a, const double* e, double r) {
        const double own = std::fabs(r);
        auto steep = [&](double slope) { return std::fabs(slope) * e[0] + own; };
        if (f == "neg" || f == "abs" || f == "min" || f == "max" || f == "select") return std::max(e[0], e[1]);
        if (f == "mul") return e[0] * std::fabs(a[1]) + e[1] * std::fabs(a[0]) + own;
        if (f == "div") return (e[0] + e[1] * own) / std::fabs(a[1]) + own;
        if (f == "fma") return e[0] * std::fabs(a[1]) + e[1] * std::fabs(a[0]) + e[2] + own;
        if (f == "exp" || f == "exp2") return (e[0] + std::fabs(a[0])) * own + own;
        if (f == "log" || f == "log2") return steep(1 / a[0]) + 1;
        if (f == "sqrt") return steep(0.5 / std::max(own, 1e-300));
        if (f == "rsqrt") return steep(0.5 * own / std::fabs(a[0]));
        if (f == "rcp") return steep(r * r);
        if (f == "pow") return (e[0] * std::fabs(a[1]) / std::max(std::fabs(a[0]), 1e-300) + e[1] * std::fabs(std::log(std::fabs(a[0]) + 1e-300))) * own + own;
        return e[0] + e[1] + e[2] + own;   // slopes of at most one
    }

    double function(const std::string& f, const double* a) {
        if (f == "add") return a[0] + a[1];
        if (f == "sub") return a[0] - a[1];
        if (f == "mul") return a[0] * a[1];
        if (f == "div") return a[0] / a[1];
        if (f == "neg") return -a[0];
        if (f == "fma") return a[0] * a[1] + a[2];
        if (f == "min") return std::min(a[0], a[1]);
        if (f == "max") return std::max(a[0], a[1]);
        if (f == "abs") return std::fabs(a[0]);
        if (f == "pow") return std::pow(a[0], a[1]);
        if (f == "floor") return std::floor(a[0]);
        if (f == "ceil") return std::ceil(a[0]);
        if (f == "mod") return a[0] - std::floor(a[0] / a[1]) * a[1];
        if (f == "exp") return std::exp(a[0]);
        if (f == "exp2") return std::exp2(a[0]);
        if (f == "log") return std::log(a[0]);
        if (f == "log2") return std::log2(a[0]);
        if (f == "sqrt") return std::sqrt(a[0]);
        if (f == "rsqrt") return 1 / std::sqrt(a[0]);
        if (f == "rcp") return 1 / a[0];
        if (f == "sin") return std::sin(a[0]);
        if (f == "cos") return std::cos(a[0]);
        if (f == "tanh") return std::tanh(a[0]);
        if (f == "erf") return std::erf(a[0]);
        if (f == "sigmoid") return 1 / (1 + std::exp(-a[0]));
        if (f == "lt") return a[0] < a[1];
        if (f == "le") return a[0] <= a[1];
        if (f == "gt") return a[0] > a[1];
        if (f == "ge") return a[0] >= a[1];
        if (f == "eq") return a[0] == a[1];
        if (f == "ne") return a[0] != a[1];
        if (f == "and") return a[0] != 0 && a[1] != 0;
        if (f == "or") return a[0] != 0 || a[1] != 0;
        if (f == "not") return a[0] == 0;
        error = "unknown function `" + f + "` in `computes`";
        return 0;
    }

    const std::vector<std::int64_t>& sizes_;
    const std::vector<double>& scalars_;
    const std::vector<TensorData>& tensors_;
    const ReferenceOptions& options_;
    std::vector<std::int64_t> vars_;
    std::vector<char> bound_;
    std::int64_t operations_ = 0;
    struct Remembered {
        std::vector<int> free;
        std::map<std::vector<std::int64_t>, std::pair<double, double>> values;   // and their rounding, by the values of `free`
    };
    static constexpr std::size_t most_remembered = 1 << 16;   // a reduction; some megabytes
    std::unordered_map<const ir::TermNode*, Remembered> remembered_;
};

}  // namespace

Expected<std::vector<ReferenceOutput>, std::string> reference(const ir::Computes& computes, const std::vector<std::int64_t>& sizes,
                                                              const std::vector<double>& scalars,
                                                              const std::vector<TensorData>& tensors,
                                                              const ReferenceOptions& options) {
    std::vector<ReferenceOutput> outputs;
    for (const ir::Equation& e : computes.equations) {
        ReferenceOutput out;
        out.tensor = e.output;
        std::int64_t total = 1;
        for (const ir::Expr& extent : e.output_extents) {
            auto v = size_value(extent, sizes);
            if (!v || *v < 0) return Unexpected{std::string("an output extent of `computes` has no value")};
            out.dims.push_back(*v);
            total *= *v;
        }
        if (total > options.operation_limit) return Unexpected{std::string("the output is too large for the CPU reference")};
        out.values.resize(static_cast<std::size_t>(total));
        out.rounding.resize(static_cast<std::size_t>(total));
        Evaluator evaluator(sizes, scalars, tensors, options, e.index_names.size());
        std::vector<std::int64_t> index(out.dims.size(), 0);
        for (std::int64_t n = 0; n < total; ++n) {
            for (std::size_t d = 0; d < index.size(); ++d) evaluator.bind(e.output_vars[d], index[d]);
            out.values[static_cast<std::size_t>(n)] = evaluator.value(e.value);
            out.rounding[static_cast<std::size_t>(n)] = evaluator.rounding;
            if (!evaluator.error.empty()) return Unexpected{evaluator.error};
            for (std::size_t d = index.size(); d-- > 0;) {
                if (++index[d] < out.dims[d]) break;
                index[d] = 0;
            }
        }
        outputs.push_back(std::move(out));
    }
    return outputs;
}

ErrorSummary compare(const ReferenceOutput& reference, const TensorData& actual) {
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
        const double want = reference.values[n], got = actual.get(index);
        double error = 0;
        if (std::isnan(want) && std::isnan(got)) {
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
            const double allowed = 16 * 0x1p-24 * (n < reference.rounding.size() && std::isfinite(reference.rounding[n]) ? reference.rounding[n] : 0.0);
            error = std::max(0.0, d - allowed) / std::max(std::fabs(want), rms > 0 ? rms : 1.0);
        }
        if (error > summary.worst || (n == 0 && summary.where.empty())) {
            summary.worst = error;
            summary.where = index;
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
