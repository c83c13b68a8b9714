#include "emulate/trial.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "emulate/index_use.h"
#include "emulate/machine.h"
#include "emulate/poison.h"

namespace tw::emulate {
namespace {

std::vector<std::int64_t> values_of(const std::vector<ir::Expr>& list, const std::vector<std::int64_t>& sizes) {
    std::vector<std::int64_t> out;
    for (const ir::Expr& e : list) out.push_back(size_value(e, sizes).value_or(0));
    return out;
}

// 2^-fraction_bits of the type: the distance between neighbours relative to the value.
double unit(target::DType type) {
    const auto& facts = target::info(type);
    return facts.is_float ? std::ldexp(1.0, -facts.fraction_bits) : 0.0;
}

bool is_unsigned(target::DType type) { return type == target::DType::U8 || type == target::DType::U32; }

// An integer that steers nothing. Small ones keep sums exact; others are negative and large too, though no sum or product of a few of them
// leaves its type: what wraps around would be no slip of the kernel.
double drawn_integer(target::DType type, bool small, std::mt19937_64& random) {
    const bool wide = target::bytes(type) > 1, is_signed = !is_unsigned(type);
    if (type == target::DType::Bool) return static_cast<double>(random() % 2);
    const std::int64_t reach = small || random() % 4 == 0 ? 7 : wide ? 1000 : 60;
    const auto drawn = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * reach + 1));
    return static_cast<double>(is_signed ? drawn - reach : drawn);
}

// Values row by row, put at their strided places.
template <class Put>
void scatter(const TensorData& data, const std::vector<std::int64_t>& values, const Put& put) {
    if (data.bytes.empty()) return;  // an impossible shape: whoever runs it refuses it
    for (std::size_t n = 0; n < values.size(); ++n) {
        std::int64_t rest = static_cast<std::int64_t>(n), place = 0;
        for (std::size_t d = data.dims.size(); d-- > 0;) {
            place += rest % data.dims[d] * data.strides[d];
            rest /= data.dims[d];
        }
        put(static_cast<std::size_t>(place), values[n]);
    }
}

bool names_an_infinity(const ir::Term& t) {
    return (t->kind == ir::TermKind::constant && std::isinf(t->number)) || std::any_of(t->args.begin(), t->args.end(), names_an_infinity);
}

// Seeds take turns: random contents, then the extreme ones.
Spread spread_of(std::uint64_t seed) {
    static constexpr Spread order[] = {Spread::ragged, Spread::random, Spread::single, Spread::lowest, Spread::highest};
    return order[seed % std::size(order)];
}

}  // namespace

std::vector<TensorData> random_inputs(const ir::Kernel& k, const std::vector<std::int64_t>& sizes, std::uint64_t seed,
                                      bool small_integers) {
    std::vector<TensorData> tensors;
    const auto promised = promised_contents(k.tensors, sizes, spread_of(seed), seed);
    const auto is_index = index_tensors(k.tensors, k.computes, {&k}), is_read = read_tensors(k.tensors, k.computes);
    const auto places = indexed_extents(k.tensors, k.computes, sizes);
    const auto names = compared_with_places(k.tensors, k.computes);
    for (std::size_t i = 0; i < k.tensors.size(); ++i) {
        const ir::Tensor& t = k.tensors[i];
        TensorData data = make_tensor(t.dtype, values_of(t.dims, sizes), values_of(t.strides, sizes));
        std::mt19937_64 random(seed * 1000003 + i);
        const auto count = static_cast<std::int64_t>(data.bytes.size()) / target::bytes(t.dtype);
        std::vector<double> values(static_cast<std::size_t>(count));
        const bool is_float = target::info(t.dtype).is_float;
        for (double& v : values) {
            // With no promise about an index tensor's contents places that `computes` reads are meant, or zero: anything else could be a
            // false alarm.
            if (!is_float && is_index[i] && names[i])  // one before the first place to one after the last
                v = static_cast<double>(random() % static_cast<std::uint64_t>(places[i] + 2)) - (is_unsigned(t.dtype) ? 0 : 1);
            else if (!is_float && is_index[i])
                v = places[i] > 0 ? static_cast<double>(random() % static_cast<std::uint64_t>(places[i])) : 0;
            else if (!is_float) v = drawn_integer(t.dtype, small_integers, random);
            else if (small_integers) v = static_cast<double>(static_cast<int>(random() % 7) - 3);
            else v = std::uniform_real_distribution<double>(-1.0, 1.0)(random);
        }
        if (!promised[i].empty())
            scatter(data, promised[i], [&](std::size_t place, std::int64_t v) { values[place] = static_cast<double>(v); });
        for (std::int64_t n = 0; n < count; ++n) {
            store_value(&data.bytes[static_cast<std::size_t>(n * target::bytes(t.dtype))], t.dtype, values[static_cast<std::size_t>(n)]);
        }
        // What `computes` reads of an output is what it held before: that is data, not poison.
        if (t.is_output && t.zero_initialised) std::fill(data.bytes.begin(), data.bytes.end(), std::uint8_t{0});
        else if (t.is_output && !is_read[i]) std::fill(data.bytes.begin(), data.bytes.end(), poison_of(t.dtype));
        tensors.push_back(std::move(data));
    }
    return tensors;
}

std::vector<TensorData> index_contents(const ir::Kernel& k, const std::vector<std::int64_t>& sizes, Spread spread, std::uint64_t seed) {
    const auto promised = promised_contents(k.tensors, sizes, spread, seed);
    std::vector<TensorData> result;
    for (std::size_t i = 0; i < k.tensors.size(); ++i) {
        const ir::Tensor& t = k.tensors[i];
        TensorData data;
        data.dtype = t.dtype;
        data.dims = values_of(t.dims, sizes);
        data.strides = values_of(t.strides, sizes);
        if (!target::info(t.dtype).is_float) data = make_tensor(t.dtype, data.dims, data.strides);
        const std::size_t size = static_cast<std::size_t>(target::bytes(t.dtype));
        scatter(data, promised[i],
                [&](std::size_t place, std::int64_t v) { store_value(&data.bytes[place * size], t.dtype, static_cast<double>(v)); });
        result.push_back(std::move(data));
    }
    return result;
}

std::int64_t memory_needed(const ir::Kernel& k, const std::vector<std::int64_t>& sizes) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    double total = 0;
    for (const ir::Tensor& t : k.tensors) {
        double elements = 1;
        for (std::size_t d = 0; d < t.dims.size(); ++d) {
            const auto extent = size_value(t.dims[d], sizes), stride = size_value(t.strides[d], sizes);
            if (!extent || !stride) return most;  // overflow: more than anybody has
            if (*extent <= 0) elements = 0;
            else if (elements > 0) elements += static_cast<double>(*extent - 1) * static_cast<double>(std::max<std::int64_t>(*stride, 0));
        }
        // Two copies of the bytes; the doubles they are drawn as; for an output the touching clusters and the reference's values.
        total += elements * (2.0 * target::bytes(t.dtype) + 8 + (t.is_output ? sizeof(GlobalCell) + 16.0 : 0.0));
    }
    return total >= 9e18 ? most : static_cast<std::int64_t>(total);
}

std::string too_large(const ir::Kernel& k, const std::vector<std::int64_t>& sizes, std::int64_t memory_limit) {
    if (auto impossible = impossible_shape(k.tensors, sizes)) return *impossible;
    const std::int64_t bytes = memory_needed(k, sizes);
    if (bytes <= memory_limit) return {};
    const auto mebibytes = [](std::int64_t b) { return std::to_string(b >> 20) + " MiB"; };
    return "these sizes need " +
           (bytes == std::numeric_limits<std::int64_t>::max() ? "more memory than can be counted" : mebibytes(bytes)) +
           " on the emulator; the limit is " + mebibytes(memory_limit);
}

void note_refusal(Trial& trial) {
    for (const Fault& f : trial.outcome.faults) {
        if (f.kind == FaultKind::launch || f.kind == FaultKind::limit) trial.refused = f.message;
        trial.gave_up |= f.kind == FaultKind::limit;
    }
}

double stated_tolerance(const ir::Computes& computes, const std::vector<ir::Tensor>& tensors, int tensor) {
    const target::DType type = tensors[static_cast<std::size_t>(tensor)].dtype;
    if (!target::info(type).is_float) return 0;
    // The reference rounds nowhere, so that what the equation rounds, f32(tf32(x)), is allowed for here. The same for all shapes, because
    // errors are taken relative to the output's root mean square.
    double u = unit(type);
    const std::function<void(const ir::Term&)> look = [&](const ir::Term& t) {
        if (t->kind == ir::TermKind::cast) u = std::max(u, unit(t->dtype));
        for (const ir::Term& a : t->args) look(a);
    };
    for (const ir::Equation& e : computes.equations) {
        if (e.output == tensor) look(e.value);
    }
    return std::max(4.0 * u, 1e-5);
}

std::vector<double> random_scalars(const std::vector<ir::ScalarParam>& params, std::uint64_t seed,
                                   const std::map<std::string, double>& given) {
    std::vector<double> scalars;
    std::mt19937_64 random(seed ^ 0x5bd1e995);
    for (const ir::ScalarParam& p : params) {
        const std::uint64_t bits = random();
        const double whole = p.positive ? static_cast<double>(1 + bits % 8) : static_cast<double>(static_cast<std::int32_t>(bits >> 32));
        const double drawn = target::info(p.dtype).is_float ? 0.25 + static_cast<double>(bits % 8) / 8.0 : whole;
        const auto it = given.find(p.name);
        scalars.push_back(rounded(it == given.end() ? drawn : it->second, p.dtype));
    }
    return scalars;
}

const ir::Tensor* input_named(const std::vector<ir::Tensor>& tensors, const std::string& name) {
    const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const ir::Tensor& t) { return t.name == name && !t.is_output; });
    return found == tensors.end() ? nullptr : &*found;
}

std::string unknown_scalar(const std::vector<ir::ScalarParam>& params, const std::map<std::string, double>& given) {
    for (const auto& entry : given) {
        if (std::none_of(params.begin(), params.end(), [&](const ir::ScalarParam& p) { return p.name == entry.first; })) return entry.first;
    }
    return {};
}

std::string broken_scalar(const std::vector<ir::ScalarParam>& params, const std::vector<double>& values) {
    for (std::size_t i = 0; i < params.size(); ++i) {
        if (params[i].positive && !(values[i] > 0))
            return params[i].name + " is promised to be positive, and is " + std::to_string(values[i]);
    }
    return {};
}

Start starting_values(const ir::Kernel& k, const std::vector<std::int64_t>& sizes, const TrialOptions& options) {
    Start start;
    start.refused = too_large(k, sizes, options.memory_limit);
    if (!start.refused.empty()) return start;
    if (const std::string name = unknown_scalar(k.scalars, options.scalars); !name.empty())
        start.refused = k.name + " has no scalar parameter named '" + name + "'";
    start.scalars = random_scalars(k.scalars, options.seed, options.scalars);
    if (const std::string why = broken_scalar(k.scalars, start.scalars); start.refused.empty()) start.refused = why;
    start.tensors = random_inputs(k, sizes, options.seed, options.small_integers);
    for (const auto& [name, values] : options.inputs) {
        const ir::Tensor* t = input_named(k.tensors, name);
        if (!t) {
            start.refused = k.name + " has no input named '" + name + "'";
            continue;
        }
        TensorData& data = start.tensors[static_cast<std::size_t>(t - k.tensors.data())];
        const auto width = static_cast<std::size_t>(target::bytes(data.dtype));
        if (values.size() * width != data.bytes.size()) {
            start.refused = name + " has " + std::to_string(data.bytes.size() / width) + " elements; " + std::to_string(values.size()) +
                            " values were given";
            continue;
        }
        for (std::size_t n = 0; n < values.size(); ++n) store_value(&data.bytes[n * width], data.dtype, values[n]);
    }
    return start;
}

void judge_outputs(Trial& trial, const ir::Kernel& k, const std::vector<TensorData>& inputs, const std::vector<double>& scalars,
                   const TrialOptions& options) {
    if (!trial.outcome.clean() || k.computes.empty()) return;
    auto expected = options.expected ? *options.expected : reference(k.computes, trial.sizes, scalars, inputs, options.reference);
    if (!expected) {
        trial.refused = expected.error();
        return;
    }
    std::optional<std::vector<ReferenceOutput>> single;  // made for outputs that differ: see Sensitivity
    for (std::size_t q = 0; q < expected->size(); ++q) {
        ReferenceOutput& r = (*expected)[q];
        OutputError e;
        e.tensor = r.tensor;
        const TensorData& actual = trial.tensors[static_cast<std::size_t>(r.tensor)];
        // A tolerance that is given is all that is allowed: nothing for f32 arithmetic beside it.
        if (options.tolerance > 0 || options.tolerances.count(k.tensors[static_cast<std::size_t>(r.tensor)].name)) r.rounding.clear();
        e.error = compare(r, actual);
        const bool integer = !target::info(actual.dtype).is_float;
        const auto given = options.tolerances.find(k.tensors[static_cast<std::size_t>(r.tensor)].name);
        e.tolerance = integer                             ? 0.0
                      : given != options.tolerances.end() ? given->second
                      : options.tolerance > 0             ? options.tolerance
                                                          : stated_tolerance(k.computes, k.tensors, r.tensor);
        e.wrong = !(e.error.worst <= e.tolerance);
        if (e.wrong && !integer) {
            ReferenceOptions in_f32;
            in_f32.single_precision = true;
            if (!single) {
                in_f32.operation_limit = options.reference.operation_limit;
                auto made = reference(k.computes, trial.sizes, scalars, inputs, in_f32);
                if (made) single = *std::move(made);
            }
            e.error =
                compare(r, actual, {single ? &(*single)[q] : nullptr, options.own_data, names_an_infinity(k.computes.equations[q].value)});
            e.wrong = !(e.error.worst <= e.tolerance);
            if (!e.wrong && e.error.excused == static_cast<std::int64_t>(r.values.size()))
                trial.refused = "`computes` is not defined on these inputs";
        }
        e.unwritten = e.error.has_nan;
        trial.outputs.push_back(e);
    }
    // Elements of an output for which there is no equation stay as they were.
    for (std::size_t t = 0; t < k.tensors.size(); ++t) {
        const TensorData &before = inputs[t], &after = trial.tensors[t];
        std::vector<char> said(static_cast<std::size_t>(before.elements()), 0);
        bool is_output = false;
        auto for_each = [&](const std::vector<std::int64_t>& dims, const std::function<void(const std::vector<std::int64_t>&)>& visit) {
            if (std::any_of(dims.begin(), dims.end(), [](std::int64_t d) { return d <= 0; })) return;
            std::vector<std::int64_t> index(dims.size(), 0);
            for (std::size_t d = dims.size();;) {
                visit(index);
                for (d = dims.size(); d > 0 && ++index[d - 1] >= dims[d - 1]; --d) index[d - 1] = 0;
                if (d == 0) return;
            }
        };
        auto number = [&](const std::vector<std::int64_t>& index) {
            std::int64_t n = 0;
            for (std::size_t d = 0; d < index.size(); ++d) n = n * before.dims[d] + index[d];
            return static_cast<std::size_t>(n);
        };
        for (const ReferenceOutput& r : *expected) {
            if (r.tensor != static_cast<int>(t)) continue;
            is_output = true;
            if (r.starts.empty() && r.dims == before.dims) std::fill(said.begin(), said.end(), 1);
            else
                for_each(r.dims, [&](std::vector<std::int64_t> index) {
                    for (std::size_t d = 0; d < r.starts.size(); ++d) index[d] += r.starts[d];
                    said[number(index)] = 1;
                });
        }
        if (!is_output || std::all_of(said.begin(), said.end(), [](char c) { return c != 0; })) continue;
        OutputError e;
        e.tensor = static_cast<int>(t);
        for_each(before.dims, [&](const std::vector<std::int64_t>& index) {
            if (e.wrong || said[number(index)]) return;
            const double was = before.get(index), is = after.get(index);
            if (bits_at(before, index) == bits_at(after, index)) return;
            e.wrong = true;
            e.error.worst = std::numeric_limits<double>::infinity();
            e.error.where = index;
            e.error.actual = is;
            e.error.expected = was;
        });
        if (e.wrong) trial.outputs.push_back(e);
    }
}

Trial run_trial(const ir::Kernel& k, const std::vector<std::int64_t>& sizes, const TrialOptions& options) {
    Trial trial;
    trial.sizes = sizes;
    const auto [inputs, scalars, refused] = starting_values(k, sizes, options);
    trial.refused = refused;
    if (!refused.empty()) return trial;
    trial.tensors = inputs;
    const auto start = std::chrono::steady_clock::now();
    trial.outcome = run(k, sizes, scalars, trial.tensors, options.emulator);
    trial.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    note_refusal(trial);
    judge_outputs(trial, k, inputs, scalars, options);
    return trial;
}

bool Trial::failed() const {
    if (!refused.empty()) return false;
    if (!outcome.clean()) return true;
    return std::any_of(outputs.begin(), outputs.end(), [](const OutputError& e) { return e.wrong; });
}

std::string Trial::summary(const ir::Kernel& k) const {
    if (!refused.empty()) return "refused: " + refused;
    if (!outcome.clean()) {
        const Fault& f = outcome.faults.front();
        return std::string(name_of(f.kind)) + ": " + f.message;
    }
    for (const OutputError& e : outputs) {
        if (!e.wrong) continue;
        std::string place = k.tensors[static_cast<std::size_t>(e.tensor)].name + "[";
        for (std::size_t i = 0; i < e.error.where.size(); ++i) place += (i ? ", " : "") + std::to_string(e.error.where[i]);
        return place + "] is " + std::to_string(e.error.actual) + ", expected " + std::to_string(e.error.expected) +
               (e.error.has_nan ? " (never written, or made from something never written)" : "");
    }
    return "right";
}

}  // namespace tw::emulate
