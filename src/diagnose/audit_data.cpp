// Data of an audit, and what rounding may make of them.
#include <algorithm>
#include <cmath>
#include <functional>

#include "diagnose/audit.h"

namespace tw::diagnose {
namespace {

using target::DType;

// Types of little range: f16, fp8, and integers that floats become.
bool narrow(DType d) {
    const auto& facts = target::info(d);
    return facts.is_float ? d != DType::F32 && d != DType::BF16 && d != DType::TF32 && d != DType::F64 : false;
}

class Source {
public:
    Source(AuditData data, std::uint64_t seed) : data_(data), random_(seed) {
        scale_ = std::ldexp(1.0, 2 + static_cast<int>(random_() % 12));
        all_ = static_cast<double>(static_cast<int>(random_() % 7) - 3);
    }
    double next() {
        const double u = std::uniform_real_distribution<double>(-1.0, 1.0)(random_);
        switch (data_) {
            case AuditData::uniform: return u;
            case AuditData::integers: return static_cast<double>(static_cast<int>(random_() % 7) - 3);
            case AuditData::equal: return all_;
            case AuditData::sparse: return random_() % 8 ? 0.0 : static_cast<double>(static_cast<int>(random_() % 7) - 3);
            case AuditData::negative: return -0.25 - std::fabs(u) * 3;
            case AuditData::huge: return u * scale_;
            case AuditData::tiny: return u / scale_ / scale_;
            case AuditData::mixed: return std::ldexp(u, static_cast<int>(random_() % 9) - 4);
            case AuditData::halves: return static_cast<double>(static_cast<int>(random_() % 17) - 8) / 2;
        }
        return u;
    }
    double scalar() {
        static constexpr double values[] = {0.5, 1.0, -1.0, -2.0, 3.0, 0.125, -0.375, 1e-3};
        return values[random_() % std::size(values)];
    }

private:
    AuditData data_;
    std::mt19937_64 random_;
    double scale_ = 1, all_ = 1;
};

// Data of a range in which floats may overflow, underflow or swallow one another.
bool of_wide_range(AuditData d) { return d == AuditData::huge || d == AuditData::tiny || d == AuditData::mixed; }

struct Compared {
    int tensor = 0;
    double tolerance = 0;
};

bool same_shape(const emulate::ReferenceOutput& a, const emulate::ReferenceOutput& b) {
    return a.tensor == b.tensor && a.values.size() == b.values.size();
}

}  // namespace

const char* name_of(AuditData d) {
    switch (d) {
        case AuditData::uniform: return "uniform data";
        case AuditData::integers: return "small integers as data";
        case AuditData::equal: return "equal data";
        case AuditData::sparse: return "data that are mostly zero";
        case AuditData::negative: return "negative data";
        case AuditData::huge: return "large data";
        case AuditData::tiny: return "tiny data";
        case AuditData::mixed: return "large and small data";
        case AuditData::halves: return "integers and halves as data";
    }
    return "?";
}

bool has_narrow_types(const ir::Kernel& k) {
    bool found = false;
    for (const ir::Tensor& t : k.tensors) found |= narrow(t.dtype);
    for (const ir::Fragment& f : k.fragments) found |= narrow(f.dtype);
    for (const ir::SharedBuffer& b : k.buffers) found |= narrow(b.dtype);
    const std::function<void(const ir::Term&)> look = [&](const ir::Term& t) {
        found |= t->kind == ir::TermKind::cast && (narrow(t->dtype) || !target::info(t->dtype).is_float);
        for (const ir::Term& a : t->args) look(a);
    };
    for (const ir::Equation& e : k.computes.equations) look(e.value);
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        const std::function<void(const ir::Element&)> casts = [&](const ir::Element& e) {
            found |= e->op == ir::ElementOp::cast && !e->args.empty() && target::info(e->args[0]->dtype).is_float &&
                     (narrow(e->dtype) || !target::info(e->dtype).is_float);
            for (const ir::Element& a : e->args) casts(a);
        };
        if (const auto* c = std::get_if<ir::Compute>(&s.op)) casts(c->value);
    });
    return found;
}

void put_data(const ir::Kernel& k, const std::vector<std::int64_t>& sizes, AuditData data, std::uint64_t seed,
              emulate::TrialOptions& options) {
    options.small_integers = data == AuditData::integers;
    if (data == AuditData::uniform || data == AuditData::integers) return;  // as every trial has them
    for (std::size_t i = 0; i < k.tensors.size(); ++i) {
        const ir::Tensor& t = k.tensors[i];
        if (t.is_output || !target::info(t.dtype).is_float || emulate::input_named(k.tensors, t.name) != &t) continue;
        std::vector<std::int64_t> dims, strides;
        for (const ir::Expr& e : t.dims) dims.push_back(emulate::size_value(e, sizes).value_or(0));
        for (const ir::Expr& e : t.strides) strides.push_back(emulate::size_value(e, sizes).value_or(0));
        const emulate::TensorData shape = emulate::make_tensor(t.dtype, dims, strides);
        Source source(data, seed * 7919 + i);
        std::vector<double> values(shape.bytes.size() / static_cast<std::size_t>(target::bytes(t.dtype)));
        for (double& v : values) v = source.next();
        options.inputs[t.name] = std::move(values);
    }
    Source source(data, seed * 7919 + 997);
    for (const ir::ScalarParam& s : k.scalars) {
        if (target::info(s.dtype).is_float) options.scalars[s.name] = s.positive ? std::abs(source.scalar()) : source.scalar();
    }
}

bool explained_by_rounding(const ir::Kernel& k, const emulate::Trial& trial, const emulate::TrialOptions& options, AuditData data) {
    if (!trial.outcome.clean()) return false;
    const auto start = emulate::starting_values(k, trial.sizes, options);
    if (!start.refused.empty()) return true;
    emulate::ReferenceOptions in_doubt;
    in_doubt.doubts_steps = true;
    const auto exact = emulate::reference(k.computes, trial.sizes, start.scalars, start.tensors, in_doubt);
    if (!exact) return true;
    std::vector<Compared> wrong;
    for (const emulate::OutputError& e : trial.outputs) {
        if (e.wrong) wrong.push_back({e.tensor, e.tolerance});
    }
    double unit = 0x1p-22;
    for (const Compared& c : wrong) unit = std::max(unit, c.tolerance);
    // The same launch with every float input moved by a rounding error, some times over: how far do the results go?
    std::vector<std::vector<emulate::ReferenceOutput>> moved;
    for (std::uint64_t round = 0; round < 6; ++round) {
        std::vector<emulate::TensorData> inputs = start.tensors;
        std::mt19937_64 random(options.seed * 31 + round);
        for (std::size_t t = 0; t < inputs.size(); ++t) {
            // Wider than its own type, so that the change is not rounded away.
            if (!target::info(inputs[t].dtype).is_float || k.tensors[t].is_output) continue;
            emulate::TensorData wide = emulate::make_tensor(DType::F64, inputs[t].dims, inputs[t].strides);
            const std::size_t width = static_cast<std::size_t>(target::bytes(inputs[t].dtype));
            if (wide.bytes.size() / 8 != inputs[t].bytes.size() / width) continue;
            emulate::TensorData flat = inputs[t], flat_wide = wide;
            flat.dims = flat_wide.dims = {static_cast<std::int64_t>(wide.bytes.size() / 8)};
            flat.strides = flat_wide.strides = {1};
            for (std::int64_t n = 0; n < flat.dims[0]; ++n) {
                const double u = round == 0   ? 1
                                 : round == 1 ? -1
                                              : std::uniform_real_distribution<double>(-1.0, 1.0)(random);  // all one way finds steps
                flat_wide.set({n}, flat.get({n}) * (1 + unit * u));
            }
            wide.bytes = std::move(flat_wide.bytes);
            inputs[t] = std::move(wide);
        }
        auto result = emulate::reference(k.computes, trial.sizes, start.scalars, inputs);
        if (result) moved.push_back(std::move(*result));
    }
    for (const emulate::ReferenceOutput& r : *exact) {
        const auto c = std::find_if(wrong.begin(), wrong.end(), [&](const Compared& w) { return w.tensor == r.tensor; });
        if (c == wrong.end()) continue;
        const emulate::TensorData& actual = trial.tensors[static_cast<std::size_t>(r.tensor)];
        double squares = 0;
        for (double v : r.values) squares += std::isfinite(v) ? v * v : 0;
        const double rms = std::sqrt(squares / std::max<double>(1, static_cast<double>(r.values.size())));
        std::vector<std::int64_t> index(r.dims.size());
        for (std::size_t n = 0; n < r.values.size(); ++n) {
            auto rest = static_cast<std::int64_t>(n);
            for (std::size_t d = index.size(); d-- > 0;)
                index[d] = rest % r.dims[d] + (d < r.starts.size() ? r.starts[d] : 0), rest /= r.dims[d];
            const double want = r.values[n], got = actual.get(index);
            if (want == got) continue;
            if (!std::isfinite(want)) continue;  // the equation itself has no number here
            // A floor or an integer that f32 arithmetic decides otherwise: exact in the proof (docs/trusted-base.md, hole 7).
            if (n < r.rounding.size() && std::isinf(r.rounding[n])) continue;
            if (!std::isfinite(got)) {
                if (of_wide_range(data) || std::fabs(want) > 0x1p128) continue;  // an overflow: not claimed
                return false;
            }
            double spread = 16 * 0x1p-24 * (n < r.rounding.size() && std::isfinite(r.rounding[n]) ? r.rounding[n] : 0.0);
            for (const auto& other : moved) {
                for (const emulate::ReferenceOutput& o : other) {
                    if (same_shape(o, r)) spread = std::max(spread, 6 * std::fabs(o.values[n] - want));
                }
            }
            // Numbers near the end of the range lose their bits: products of tiny ones, exponentials of large negative ones.
            const double least = of_wide_range(data) ? 1e-30 : 0;
            if (!(std::fabs(got - want) <= c->tolerance * std::max(std::fabs(want), rms) + spread + least)) return false;
        }
    }
    // What no equation speaks of must stay as it was: no rounding changes that.
    auto spoken_of = [](const emulate::ReferenceOutput& r, const emulate::OutputError& e) {
        if (r.tensor != e.tensor) return false;
        for (std::size_t d = 0; d < e.error.where.size() && d < r.dims.size(); ++d) {
            const std::int64_t first = d < r.starts.size() ? r.starts[d] : 0;
            if (e.error.where[d] < first || e.error.where[d] >= first + r.dims[d]) return false;
        }
        return true;
    };
    return std::all_of(trial.outputs.begin(), trial.outputs.end(), [&](const emulate::OutputError& e) {
        return !e.wrong || std::any_of(exact->begin(), exact->end(), [&](const emulate::ReferenceOutput& r) { return spoken_of(r, e); });
    });
}

}  // namespace tw::diagnose
