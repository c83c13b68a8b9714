#include "runtime/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "base/digest.h"
#include "codegen/reference_text.h"
#include "runtime/compile.h"
#include "runtime/device_kernel.h"

namespace tw::runtime {
namespace {

constexpr double step_budget = 2e9;  // loop steps of the reference a judgement may take: tens of milliseconds
constexpr std::int64_t most_elements = std::int64_t{1} << 20;
constexpr std::size_t kept = 8;  // samples and references that a process remembers

std::string place(const std::string& name, const std::vector<std::int64_t>& index) {
    std::string text = name + "[";
    for (std::size_t i = 0; i < index.size(); ++i) text += (i ? ", " : "") + std::to_string(index[i]);
    return text + "]";
}

// What the reference says of the elements that are compared, and what the launch left there.
struct Compared {
    std::vector<double> want, got;
};

// The errors of an output, with the element that is worst. Returns how many NaNs the reference has.
std::int64_t errors_of(const Compared& compared, OutputVerdict& v, std::size_t& worst_at) {
    const auto& [want, got] = compared;
    double norm = 0, difference = 0;
    std::int64_t finite = 0, reference_nans = 0;
    for (const double w : want) {
        reference_nans += std::isnan(w);
        if (std::isfinite(w)) norm += w * w, ++finite;
    }
    const double rms = finite ? std::sqrt(norm / static_cast<double>(finite)) : 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        double error = 0;
        if (std::isnan(want[i]) && std::isnan(got[i])) {
        } else if (!std::isfinite(want[i]) || !std::isfinite(got[i])) {
            error = want[i] == got[i] ? 0 : std::numeric_limits<double>::infinity();
        } else {
            const double d = std::fabs(got[i] - want[i]);
            difference += d * d;
            error = d / std::max(std::fabs(want[i]), rms > 0 ? rms : 1.0);
        }
        if (error > v.worst) v.worst = error, worst_at = i;
    }
    v.relative_error = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
    return reference_nans;
}

// Why an output is wrong, from its numbers. Empty: it is not.
std::string reason_of(const OutputVerdict& v, std::int64_t reference_nans) {
    std::string reason;
    if (v.unwritten > 0) reason = fmt::format("{} of {} elements of {} were never written", v.unwritten, v.elements, v.output);
    else if (v.nan > 0 && reference_nans == 0)
        reason = fmt::format("{} of {} elements of {} are NaN, the reference has none", v.nan, v.elements, v.output);
    if (v.stray_bytes > 0)
        reason += fmt::format("{}{} bytes between the rows of {} were written", reason.empty() ? "" : "; ", v.stray_bytes, v.output);
    if (!(v.worst <= v.tolerance)) {
        if (!reason.empty()) reason += "; ";
        reason += fmt::format("{} is {:.9g}, the reference says {:.9g}: error {:.2e}, allowed {:.1e}", place(v.output, v.where), v.actual,
                              v.expected, v.worst, v.tolerance);
    }
    return reason;
}

}  // namespace

struct Judge::State {
    std::vector<std::unique_ptr<DeviceKernel>> references;  // per equation
    std::string text;                                       // digest of their source
};

// A launch that is judged: the arguments of `judge`.
struct Judge::Launched {
    const std::vector<DeviceTensor>& tensors;
    const std::vector<std::int64_t>& sizes;
    const std::vector<double>& scalars;
    std::uint64_t seed;
    const std::map<std::string, double>& tolerances;
    std::int64_t most;
    const std::string& inputs;
    const std::vector<DeviceTensor>& before;

    bool has_before(std::size_t tensor) const { return tensor < before.size() && before[tensor].memory; }
    // The structure of reference_text.h, word by word.
    std::vector<std::uint64_t> words(std::size_t output, cu::DevicePointer sample, std::int64_t count, cu::DevicePointer wants,
                                     cu::DevicePointer gots) const;
};

std::vector<std::uint64_t> Judge::Launched::words(std::size_t output, cu::DevicePointer sample, std::int64_t count, cu::DevicePointer wants,
                                                  cu::DevicePointer gots) const {
    std::vector<std::uint64_t> words;
    const auto put = [&](const void* from) {
        std::uint64_t word = 0;
        std::memcpy(&word, from, sizeof word);
        words.push_back(word);
    };
    for (std::size_t i = 0; i < tensors.size(); ++i) put(has_before(i) ? &before[i].argument.address : &tensors[i].argument.address);
    if (tensors.empty()) words.push_back(0);
    for (const std::int64_t s : sizes) put(&s);
    if (sizes.empty()) words.push_back(0);
    for (const double s : scalars) put(&s);
    if (scalars.empty()) words.push_back(0);
    put(&sample), put(&count), put(&wants), put(&gots), put(&tensors[output].argument.address);
    return words;
}

// One equation of a launch: which elements of its output are compared.
struct Judge::Sampled {
    std::size_t equation;
    std::size_t tensor;  // of the signature
    const std::vector<std::int64_t>& elements;
};

Judge::Judge(const DeviceData& data, const Signature& signature, References& known) : data_(data), signature_(signature), known_(known) {}
Judge::~Judge() = default;

Result<std::unique_ptr<Judge>> Judge::create(const DeviceData& data, const Signature& signature, References& known) {
    if (signature.computes.empty())
        return fail(FailureKind::bad_input, signature.name + " says nothing about what it computes",
                    "add computes=\"...\" to its decorator");
    auto text = codegen::reference_text(signature.computes, signature.tensors, signature.sizes.size(), signature.scalars.size());
    if (!text) return fail(FailureKind::internal, text.error());
    CompileRequest request = request_for_own_text(text->source, "tw_reference.cu", data.arch());
    request.options.push_back("--fmad=false");  // one term printed twice is one number
    auto compiled = compile(request);
    if (!compiled) {
        Failure why = compiled.error();
        if (why.kind == FailureKind::compile_error) why.kind = FailureKind::internal;  // text of ours
        return Unexpected{std::move(why)};
    }
    std::unique_ptr<Judge> judge(new Judge(data, signature, known));
    judge->state_ = std::make_unique<State>();
    judge->state_->text = digest_hex(text->source);
    for (const std::string& entry : text->entries) {
        auto loaded = DeviceKernel::load(compiled->cubin, entry);
        if (!loaded) return std::move(loaded).propagate();
        judge->state_->references.push_back(*std::move(loaded));
    }
    return judge;
}

std::vector<std::int64_t> sample_elements(const std::vector<std::int64_t>& dims, std::int64_t limit, std::uint64_t seed) {
    std::int64_t total = 1;
    for (std::int64_t d : dims) total *= d;
    std::vector<std::int64_t> chosen;
    if (total <= 0) return chosen;
    if (total <= limit) {
        chosen.resize(static_cast<std::size_t>(total));
        for (std::int64_t i = 0; i < total; ++i) chosen[static_cast<std::size_t>(i)] = i;
        return chosen;
    }
    std::mt19937_64 random(seed);
    const auto number = [&](const std::vector<std::int64_t>& index) {
        std::int64_t n = 0;
        for (std::size_t d = 0; d < dims.size(); ++d) n = n * dims[d] + index[d];
        return n;
    };
    const auto rank = std::min<std::size_t>(dims.size(), 6);
    std::vector<std::int64_t> index(dims.size());
    for (std::size_t corner = 0; corner < (std::size_t{1} << rank); ++corner) {
        for (std::size_t d = 0; d < dims.size(); ++d) index[d] = d < rank && (corner >> d & 1) ? dims[d] - 1 : 0;
        chosen.push_back(number(index));
    }
    const std::int64_t per_edge = std::max<std::int64_t>(8, limit / 32);
    for (std::size_t d = 0; d < dims.size(); ++d) {
        for (int end = 0; end < 2; ++end) {
            for (std::int64_t i = 0; i < per_edge; ++i) {
                for (std::size_t e = 0; e < dims.size(); ++e)
                    index[e] = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(dims[e]));
                index[d] = end ? dims[d] - 1 : 0;
                chosen.push_back(number(index));
            }
        }
    }
    // One element of each of `limit` equal parts: every row of a large matrix is met.
    for (std::int64_t part = 0; part < limit; ++part) {
        const auto begin = static_cast<std::int64_t>(static_cast<long double>(total) * part / limit);
        const auto end = std::max(begin + 1, static_cast<std::int64_t>(static_cast<long double>(total) * (part + 1) / limit));
        chosen.push_back(begin + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end - begin)));
    }
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    return chosen;
}

const std::vector<std::int64_t>& Judge::sample(std::int64_t limit, std::uint64_t seed, const std::vector<std::int64_t>& dims) const {
    // Drawn once: the same sample serves every set of inputs.
    if (known_.samples.size() >= kept) known_.samples.clear();
    auto [drawn, fresh] = known_.samples.try_emplace({limit, seed, dims});
    if (fresh) drawn->second = sample_elements(dims, limit, seed);
    return drawn->second;
}

double Judge::allowed(int output, const std::map<std::string, double>& tolerances) const {
    const ir::Tensor& t = signature_.tensors[static_cast<std::size_t>(output)];
    auto given = tolerances.find(t.name);
    if (given == tolerances.end()) given = tolerances.find("");
    return given != tolerances.end() && target::info(t.dtype).is_float ? given->second : tolerance_of(signature_, output);
}

Result<void> Judge::run_reference(const Launched& l, const Sampled& s, std::vector<double>* want, std::vector<double>& got) const {
    const Driver& cuda = data_.cuda();
    const std::vector<std::int64_t>& chosen = s.elements;
    auto memory = DeviceBuffer::allocate(cuda, chosen.size() * 3 * sizeof(double));
    if (!memory) return std::move(memory).propagate();
    const cu::DevicePointer sample = memory->address(), gots = sample + chosen.size() * 8, wants = want ? gots + chosen.size() * 8 : 0;
    if (const auto code = cuda.call.copy_to_device(sample, chosen.data(), chosen.size() * 8))
        return Unexpected{cuda.failure("copy the sample to the GPU", code)};
    std::vector<std::uint64_t> words = l.words(s.tensor, sample, static_cast<std::int64_t>(chosen.size()), wants, gots);
    void* arguments[] = {words.data()};
    LaunchShape shape;
    // Few elements with long sums: small blocks spread them over the machine.
    shape.block[0] = chosen.size() < 100000 ? 32 : 128;
    shape.grid[0] = static_cast<std::uint32_t>((chosen.size() + shape.block[0] - 1) / shape.block[0]);
    if (auto launched = state_->references[s.equation]->launch(shape, arguments, nullptr); !launched)
        return std::move(launched).propagate();
    auto code = cuda.call.copy_to_host(got.data(), gots, got.size() * 8);
    if (!code && want) code = cuda.call.copy_to_host(want->data(), wants, want->size() * 8);
    if (code) return Unexpected{cuda.failure("compute the reference", code)};
    return {};
}

Result<OutputVerdict> Judge::judge_equation(const Launched& l, std::size_t number) const {
    const ir::Equation& e = signature_.computes.equations[number];
    const auto tensor = static_cast<std::size_t>(e.output);
    OutputVerdict v;
    v.output = signature_.tensors[tensor].name;
    std::vector<std::int64_t> dims;
    v.elements = 1;
    for (const ir::Expr& extent : e.output_extents) {
        dims.push_back(std::max<std::int64_t>(0, size_value(extent, l.sizes).value_or(0)));
        v.elements *= dims.back();
    }
    v.tolerance = allowed(e.output, l.tolerances);
    const double affordable = std::max(1024.0, step_budget / reference_steps(e, l.sizes));
    const auto limit = static_cast<std::int64_t>(std::min<double>(affordable, static_cast<double>(l.most > 0 ? l.most : most_elements)));
    const std::vector<std::int64_t>& chosen = sample(limit, l.seed, dims);
    v.compared = static_cast<std::int64_t>(chosen.size());
    const std::string name = fmt::format("{}; {}; {} {} {}", state_->text, l.inputs, v.output, limit, l.seed);
    const auto known = l.inputs.empty() ? known_.wanted.end() : known_.wanted.find(name);
    const bool compute = known == known_.wanted.end();
    Compared compared{std::vector<double>(chosen.size()), std::vector<double>(chosen.size())};
    if (!compute) compared.want = known->second;
    if (!chosen.empty()) {
        if (auto ran = run_reference(l, {number, tensor, chosen}, compute ? &compared.want : nullptr, compared.got); !ran)
            return std::move(ran).propagate();
        if (compute && !l.inputs.empty()) {
            if (known_.wanted.size() >= kept) known_.wanted.clear();
            known_.wanted[name] = compared.want;
        }
    }
    std::size_t worst_at = 0;
    const std::int64_t reference_nans = errors_of(compared, v, worst_at);
    if (!chosen.empty()) {
        v.actual = compared.got[worst_at], v.expected = compared.want[worst_at];
        std::int64_t rest = chosen[worst_at];
        v.where.resize(dims.size());
        for (std::size_t d = dims.size(); d-- > 0;)
            v.where[d] = rest % dims[d] + size_value(ir::start_of(e, d), l.sizes).value_or(0), rest /= dims[d];
    }
    auto scan = data_.scan(l.tensors[tensor]);
    if (!scan) return std::move(scan).propagate();
    const bool in_place = l.has_before(tensor);  // it began with data, not with poison
    v.unwritten = in_place ? 0 : scan->poisoned;
    v.nan = scan->nan;
    v.stray_bytes = in_place ? 0 : scan->stray * static_cast<std::uint64_t>(target::bytes(signature_.tensors[tensor].dtype));
    v.reason = reason_of(v, reference_nans);
    return v;
}

Result<void> Judge::judge_surroundings(const std::vector<DeviceTensor>& tensors, std::vector<OutputVerdict>& verdicts) const {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        auto stray = data_.damaged_guard_bytes(tensors[i]);
        if (!stray) return std::move(stray).propagate();
        if (*stray == 0 || verdicts.empty()) continue;
        auto mine =
            std::find_if(verdicts.begin(), verdicts.end(), [&](const OutputVerdict& v) { return v.output == signature_.tensors[i].name; });
        OutputVerdict& v = mine == verdicts.end() ? verdicts.front() : *mine;
        v.stray_bytes += *stray;
        if (!v.reason.empty()) v.reason += "; ";
        v.reason += fmt::format("{} bytes beside {} were overwritten", *stray, signature_.tensors[i].name);
    }
    return {};
}

Result<std::vector<OutputVerdict>> Judge::judge(const std::vector<DeviceTensor>& tensors, const std::vector<std::int64_t>& sizes,
                                                const std::vector<double>& scalars, std::uint64_t seed,
                                                const std::map<std::string, double>& tolerances, std::int64_t most,
                                                const std::string& inputs, const std::vector<DeviceTensor>& before) const {
    const Driver& cuda = data_.cuda();
    if (const auto code = cuda.call.context_synchronize()) return Unexpected{cuda.failure("finish the kernel", code)};
    const Launched launched{tensors, sizes, scalars, seed, tolerances, most, inputs, before};
    std::vector<OutputVerdict> verdicts;
    for (std::size_t q = 0; q < signature_.computes.equations.size(); ++q) {
        auto verdict = judge_equation(launched, q);
        if (!verdict) return std::move(verdict).propagate();
        verdicts.push_back(*std::move(verdict));
    }
    if (auto judged = judge_surroundings(tensors, verdicts); !judged) return std::move(judged).propagate();
    for (OutputVerdict& v : verdicts) v.wrong = !v.reason.empty();
    return verdicts;
}

nlohmann::json to_json(const OutputVerdict& v) {
    // JSON has no infinity: an unbounded error is null.
    const auto number = [](double x) { return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(); };
    return {{"output", v.output},
            {"elements", v.elements},
            {"compared", v.compared},
            {"relative_error", number(v.relative_error)},
            {"worst", number(v.worst)},
            {"tolerance", v.tolerance},
            {"where", v.where},
            {"actual", number(v.actual)},
            {"expected", number(v.expected)},
            {"unwritten", v.unwritten},
            {"nan", v.nan},
            {"stray_bytes", v.stray_bytes},
            {"wrong", v.wrong},
            {"reason", v.reason}};
}

}  // namespace tw::runtime
