#include "runtime/tuned.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/digest.h"
#include "base/index.h"
#include "base/input.h"
#include "base/text.h"
#include "lang/bundle.h"
#include "runtime/device_data.h"

namespace tw::runtime {

using nlohmann::json;

namespace {

// T, BN = tw.parameters("T BN"): for Python's tools, and no part of the program.
bool declares_parameters(const lang::Module& module, lang::StmtId id) {
    const auto* assign = module.get_if<lang::Assign>(id);
    const auto* call = assign ? module.get_if<lang::Call>(assign->value) : nullptr;
    const auto* callee = call ? module.get_if<lang::Attribute>(call->callee) : nullptr;
    return callee && callee->name == "parameters";
}

}  // namespace

std::string program_digest(const std::string& text) {
    SourceMap sources;
    DiagnosticSink ignored;  // a file that cannot be read is no module to tune
    lang::Module module = lang::parse_bundle(sources, "", text, ignored);
    const auto strip = [&](std::vector<lang::StmtId>& body) {
        if (lang::docstring_of(module, body)) body.erase(body.begin());
    };
    const auto strip_file = [&](std::vector<lang::StmtId>& body) {
        strip(body);
        std::erase_if(body, [&](lang::StmtId id) { return declares_parameters(module, id); });
    };
    strip_file(module.body);
    for (lang::ImportedFile& file : module.imported) strip_file(file.body);
    for (lang::Stmt& s : module.stmts) {
        if (auto* f = std::get_if<lang::FunctionDef>(&s.node)) strip(f->body);
    }
    return digest_hex(lang::dump(module));
}

std::string tuned_path(const std::string& kernel_file) {
    return std::filesystem::path(kernel_file).replace_extension(".tuned.json").string();
}

Result<TunedFile> read_tuned(const std::string& kernel_file) {
    const std::string path = tuned_path(kernel_file);
    std::error_code ignored;
    TunedFile tuned;
    if (!std::filesystem::exists(path, ignored)) return tuned;
    const auto text = read_file(path);
    if (!text) return fail(FailureKind::io_error, text.error());
    try {
        const json data = parse_json(*text);
        tuned.program_digest = data.at("program").get<std::string>();
        for (const json& e : data.at("entries")) {
            TunedEntry entry;
            entry.kernel = e.at("kernel");
            entry.gpu = e.at("gpu");
            entry.sizes = e.at("sizes").get<std::map<std::string, std::int64_t>>();
            entry.constants = e.at("constants").get<lower::ConstValues>();
            entry.us = e.value("us", 0.0);
            entry.default_us = e.value("default_us", 0.0);
            tuned.entries.push_back(std::move(entry));
        }
    } catch (const json::exception& e) {
        return fail(FailureKind::bad_input, path + " is not what `tilewright tune` writes: " + e.what(), "delete it, or tune again");
    }
    return tuned;
}

Result<void> write_tuned(const std::string& kernel_file, const TunedFile& tuned) {
    // One line an entry: there may be hundreds.
    std::string entries;
    for (const TunedEntry& e : tuned.entries) {
        const json line = {{"kernel", e.kernel}, {"gpu", e.gpu},
                           {"sizes", e.sizes},   {"constants", e.constants.empty() ? json::object() : json(e.constants)},
                           {"us", e.us},         {"default_us", e.default_us}};
        entries += (entries.empty() ? "\n  " : ",\n  ") + line.dump();
    }
    const std::string text =
        fmt::format("{{\n \"schema\": \"tilewright tuned 2\",\n \"file\": {},\n \"program\": {},\n \"entries\": [{}\n ]\n}}\n",
                    json(std::filesystem::path(kernel_file).filename().string()).dump(), json(tuned.program_digest).dump(), entries);
    if (auto written = write_file_atomically(tuned_path(kernel_file), text); !written) return fail(FailureKind::io_error, written.error());
    return {};
}

std::vector<const TunedEntry*> nearest(const TunedFile& tuned, const std::string& kernel, const std::string& gpu,
                                       const std::map<std::string, std::int64_t>& sizes) {
    std::vector<std::pair<double, const TunedEntry*>> found;
    for (const TunedEntry& e : tuned.entries) {
        if (e.kernel != kernel || (!gpu.empty() && e.gpu != gpu)) continue;
        double distance = 0;
        for (const auto& [name, value] : sizes) {
            const auto it = e.sizes.find(name);
            const double other = it == e.sizes.end() ? 1 : static_cast<double>(std::max<std::int64_t>(1, it->second));
            const double d = std::log2(static_cast<double>(std::max<std::int64_t>(1, value)) / other);
            distance += d * d;
        }
        found.emplace_back(distance, &e);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first != b.first ? a.first < b.first : a.second->us < b.second->us; });
    std::vector<const TunedEntry*> out;
    for (const auto& [distance, entry] : found) out.push_back(entry);
    return out;
}

// Entries of a set from which its times elsewhere are estimated. Weights are not negative, so that few entries give a coarse estimate, not
// a wild one.
constexpr int fewest_to_fit = 4;

std::vector<const TunedEntry*> comparable(std::vector<const TunedEntry*> entries, const std::map<std::string, std::int64_t>& sizes) {
    std::map<std::map<std::string, std::int64_t>, int> at_shape;
    std::map<lower::ConstValues, int> of_set;
    int most = 0;
    for (const TunedEntry* e : entries) ++at_shape[e->sizes], most = std::max(most, ++of_set[e->constants]);
    if (std::none_of(at_shape.begin(), at_shape.end(), [](const auto& s) { return s.second > 1; })) return entries;
    std::erase_if(entries, [&](const TunedEntry* e) {
        const int count = of_set.at(e->constants);
        return 2 * count < most && (count < fewest_to_fit || 8 * count < most) && e->sizes != sizes;
    });
    return entries;
}

namespace {

struct Extent {
    double blocks = 0, per_element = 0;  // operations of one element
    double bytes = 0, operations = 0;
    std::vector<double> lines;  // of each input with rows: the logarithm of the part of a 128-byte line at which all of them begin
};

std::optional<Extent> extent_of(const Signature& signature, const ir::Kernel& kernel, const std::map<std::string, std::int64_t>& given) {
    const auto sizes = size_values(signature, given);
    if (!sizes) return std::nullopt;
    const auto product = [&](const auto& extents) {
        double p = 1;
        for (const ir::Expr& e : extents) p *= static_cast<double>(size_value(e, *sizes).value_or(0));
        return p;
    };
    double elements = 0;
    for (const ir::Tensor& t : signature.tensors) elements += t.is_output ? product(t.dims) : 0;
    const Work work = work_of(signature, *sizes);
    const double blocks = product(kernel.grid);
    if (elements <= 0 || blocks <= 0 || work.operations <= 0) return std::nullopt;
    Extent e{blocks, work.operations / elements, work.bytes, work.operations, {}};
    for (const ir::Tensor& t : signature.tensors) {
        if (t.is_output || t.dims.size() < 2) continue;
        const std::int64_t pitch = size_value(t.strides[t.strides.size() - 2], *sizes).value_or(0) * target::bytes(t.dtype);
        e.lines.push_back(std::log2(static_cast<double>(std::gcd(pitch, std::int64_t{128}))));
    }
    return e;
}

double square(double x) { return x * x; }

double distance_of(const std::map<std::string, std::int64_t>& sizes, const std::map<std::string, std::int64_t>& others) {
    double distance = 0;
    for (const auto& [name, value] : sizes) {
        const auto it = others.find(name);
        const double other = it == others.end() ? 1 : static_cast<double>(std::max<std::int64_t>(1, it->second));
        distance += square(std::log2(static_cast<double>(std::max<std::int64_t>(1, value)) / other));
    }
    return distance;
}

// What a time may be made of: a launch; rounds of blocks that run side by side, each with its own beginning and the length of its sums; the
// longest sum; bytes; work that is spread evenly. Units are of the order of microseconds on an H200.
constexpr std::size_t part_count = 6;
using Parts = std::array<double, part_count>;

Parts parts_of(const Extent& e, double at_once) {
    const double length = e.per_element / 128, rounds = std::ceil(e.blocks / at_once);
    return {1, rounds, rounds * length, length, e.bytes / 4e6, e.blocks / at_once * length};
}

double total(const Parts& parts, const Parts& weights) { return std::inner_product(parts.begin(), parts.end(), weights.begin(), 0.0); }

// A launch whose time is known: its parts and how far its sizes are from those that are asked for.
struct Timed {
    Parts parts{};
    double us = 0, distance = 0;
};

// Weights that are not negative and make the relative errors small, those of near shapes more than those of far ones: least squares, one
// coordinate after another.
Parts fitted(const std::vector<Timed>& times) {
    constexpr double reach = 9;  // three doublings away an error counts a quarter
    std::array<Parts, part_count> products{};
    Parts sums{}, weights{};
    for (const auto& [parts, us, distance] : times) {
        const double weight = 1 / square(1 + distance / reach);
        for (std::size_t i = 0; i < part_count; ++i) {
            sums[i] += weight * parts[i] / us;
            for (std::size_t j = 0; j < part_count; ++j) products[i][j] += weight * parts[i] / us * parts[j] / us;
        }
    }
    for (int round = 0; round < 400; ++round) {
        for (std::size_t i = 0; i < part_count; ++i) {
            if (products[i][i] > 0) weights[i] = std::max(0.0, weights[i] + (sums[i] - total(products[i], weights)) / products[i][i]);
        }
    }
    return weights;
}

// The fitted time, times what the nearest shapes take more or less than it. Nothing where there are too few to fit.
std::optional<double> fitted_us(const std::vector<Timed>& times, const Parts& here) {
    if (times.size() < at(fewest_to_fit)) return std::nullopt;
    const Parts weights = fitted(times);
    double sum = 0, all = 0;
    for (const Timed& t : times) {
        const double weight = 1 / square(0.1 + t.distance), estimate = total(t.parts, weights);
        if (estimate <= 0) return std::nullopt;
        sum += weight * std::log(t.us / estimate);
        all += weight;
    }
    const double estimate = total(here, weights);
    return estimate > 0 ? std::optional(estimate * std::exp(sum / all)) : std::nullopt;
}

std::optional<double> fitted_kernel_us(const std::vector<const TunedEntry*>& entries, const Signature& signature, const ir::Kernel& kernel,
                                       const std::map<std::string, std::int64_t>& sizes, double at_once) {
    const auto here = extent_of(signature, kernel, sizes);
    if (!here) return std::nullopt;
    std::vector<Timed> times;
    for (const TunedEntry* entry : entries) {
        const auto there = entry->us > 0 ? extent_of(signature, kernel, entry->sizes) : std::nullopt;
        if (!there) continue;
        double distance = distance_of(sizes, entry->sizes);
        for (std::size_t i = 0; i < here->lines.size(); ++i) distance += 0.15 * square(here->lines[i] - there->lines[i]);
        times.push_back({parts_of(*there, at_once), entry->us, distance});
    }
    return fitted_us(times, parts_of(*here, at_once));
}

// Tensors of these sizes, as the signature lays them out, at addresses that nothing else has.
std::optional<LaunchArguments> imagined(const Signature& signature, const std::map<std::string, std::int64_t>& given) {
    const auto sizes = size_values(signature, given);
    if (!sizes) return std::nullopt;
    LaunchArguments arguments;
    for (const ir::Tensor& t : signature.tensors) {
        TensorArgument tensor;
        tensor.address = (arguments.tensors.size() + 1) << 48;
        tensor.dtype = t.dtype;
        for (const ir::Expr& d : t.dims) tensor.dims.push_back(size_value(d, *sizes).value_or(0));
        for (const ir::Expr& d : t.strides) tensor.strides.push_back(size_value(d, *sizes).value_or(0));
        arguments.tensors.push_back(std::move(tensor));
    }
    arguments.scalars.assign(signature.scalars.size(), 1.0);
    return arguments;
}

// A program's parts are those of its launches, buffers between them included.
std::optional<Parts> parts_of_program(const KernelModule& module, const Signature& signature,
                                      const std::map<std::string, std::int64_t>& sizes, int multiprocessors) {
    const auto arguments = imagined(signature, sizes);
    if (!arguments) return std::nullopt;
    auto steps = module.plan_steps(signature.name, *arguments, std::uint64_t{1} << 62);
    if (!steps) return std::nullopt;
    Parts sum{};
    for (const KernelModule::PlannedStep& step : *steps) {
        std::vector<const ir::Kernel*> variants;
        for (const std::size_t v : step.variants) variants.push_back(&module.ir().kernels[v]);
        const auto choice = choose(variants, step.arguments);
        if (!choice) return std::nullopt;
        const ir::Kernel& kernel = *variants[choice->variant];
        auto own = find_signature(module.ir(), kernel.name);
        if (!own) return std::nullopt;
        std::map<std::string, std::int64_t> named;
        for (std::size_t i = 0; i < kernel.sizes.size(); ++i) named[kernel.sizes[i]] = choice->launch.sizes[i];
        const auto extent = extent_of(*own, kernel, named);
        if (!extent) return std::nullopt;
        const double at_once = static_cast<double>(multiprocessors) * std::max(1, kernel.min_blocks_per_sm);
        const Parts parts = parts_of(*extent, at_once);
        for (std::size_t i = 0; i < part_count; ++i) sum[i] += parts[i];
    }
    return sum;
}

}  // namespace

std::optional<double> predicted_us(const std::vector<const TunedEntry*>& entries, const Signature& signature, const ir::Kernel& kernel,
                                   const std::map<std::string, std::int64_t>& sizes, int multiprocessors) {
    const double at_once = static_cast<double>(multiprocessors) * std::max(1, kernel.min_blocks_per_sm);
    if (const auto us = fitted_kernel_us(entries, signature, kernel, sizes, at_once)) return us;
    const auto here = extent_of(signature, kernel, sizes);
    if (!here) return std::nullopt;
    const auto length = [&](const Extent& e) { return std::ceil(e.blocks / at_once) * e.per_element; };
    std::vector<std::pair<double, double>> near;  // distance, the logarithm of the time
    for (const TunedEntry* entry : entries) {
        const auto there = entry->us > 0 ? extent_of(signature, kernel, entry->sizes) : std::nullopt;
        if (!there) continue;
        double distance = square(std::log2(here->blocks / there->blocks)) + square(std::log2(here->per_element / there->per_element));
        for (std::size_t i = 0; i < here->lines.size(); ++i) distance += 0.15 * square(here->lines[i] - there->lines[i]);
        near.emplace_back(distance, std::log(entry->us * length(*here) / length(*there)));
    }
    if (near.empty()) return std::nullopt;
    std::sort(near.begin(), near.end());
    near.resize(std::min<std::size_t>(near.size(), 3));
    double sum = 0, weights = 0;
    for (const auto& [distance, time] : near) {
        const double weight = 1 / (0.02 + distance);
        sum += weight * time;
        weights += weight;
    }
    return std::exp(sum / weights);
}

std::optional<double> predicted_program_us(const std::vector<const TunedEntry*>& entries, const KernelModule& module,
                                           const Signature& signature, const std::map<std::string, std::int64_t>& sizes,
                                           int multiprocessors) {
    if (const auto parts = parts_of_program(module, signature, sizes, multiprocessors)) {
        std::vector<Timed> times;
        for (const TunedEntry* entry : entries) {
            const auto there = entry->us > 0 ? parts_of_program(module, signature, entry->sizes, multiprocessors) : std::nullopt;
            if (there) times.push_back({*there, entry->us, distance_of(sizes, entry->sizes)});
        }
        if (const auto us = fitted_us(times, *parts)) return us;
    }
    // Microseconds that no launch goes below, and what an H200 computes and moves in one.
    constexpr double least = 3, operations_a_us = 7e8, bytes_a_us = 4e6;
    const auto length = [&](const std::map<std::string, std::int64_t>& at) -> std::optional<double> {
        const auto values = size_values(signature, at);
        if (!values) return std::nullopt;
        const Work work = work_of(signature, *values);
        return least + std::max(work.operations / operations_a_us, work.bytes / bytes_a_us);
    };
    const auto here = length(sizes);
    if (!here) return std::nullopt;
    double sum = 0, weights = 0;
    for (const TunedEntry* entry : entries) {
        const auto there = entry->us > 0 ? length(entry->sizes) : std::nullopt;
        if (!there) continue;
        const double weight = 1 / square(0.02 + distance_of(sizes, entry->sizes));
        sum += weight * std::log(entry->us * *here / *there);
        weights += weight;
    }
    if (weights == 0) return std::nullopt;
    return std::exp(sum / weights);
}

std::optional<Accepted> accepted(const ir::Module& module, const std::string& kernel, const LaunchArguments& arguments) {
    std::vector<const ir::Kernel*> variants;
    ir::Kernel signature;
    for (const ir::Program& p : module.programs) {
        if (p.name != kernel) continue;
        signature.name = p.name;
        signature.sizes = p.sizes;
        signature.tensors.assign(p.tensors.begin(), p.tensors.begin() + p.parameter_count);
        signature.scalars = p.scalars;
        variants.push_back(&signature);
    }
    for (const ir::Kernel& k : module.kernels) {
        if (k.name == kernel) variants.push_back(&k);
    }
    auto choice = choose(variants, arguments);
    if (!choice) return std::nullopt;
    const ir::Kernel* k = variants[choice->variant];
    Accepted found{k == &signature ? nullptr : k, {}};
    for (std::size_t i = 0; i < k->sizes.size(); ++i) found.sizes[k->sizes[i]] = choice->launch.sizes[i];
    return found;
}

TunedFile agreeing(TunedFile tuned, const lower::ConstValues& given) {
    std::erase_if(tuned.entries, [&](const TunedEntry& e) {
        return std::any_of(given.begin(), given.end(), [&](const auto& chosen) {
            const auto it = e.constants.find(chosen.first);
            return it == e.constants.end() || it->second != chosen.second;
        });
    });
    return tuned;
}

TunedFile adapted(TunedFile tuned, const lower::ConstValues& given) {
    const auto missing = [&](const TunedEntry& e) {
        return std::count_if(given.begin(), given.end(), [&](const auto& chosen) {
            const auto it = e.constants.find(chosen.first);
            return it == e.constants.end() || it->second != chosen.second;
        });
    };
    std::stable_sort(tuned.entries.begin(), tuned.entries.end(),
                     [&](const TunedEntry& a, const TunedEntry& b) { return missing(a) < missing(b); });
    for (TunedEntry& e : tuned.entries)
        for (const auto& [name, value] : given) e.constants[name] = value;
    return tuned;
}

TunedModules::TunedModules(std::string file, std::string text, KernelModule& untuned, TunedFile tuned, lower::ConstValues given)
    : file_(std::move(file)), text_(std::move(text)), untuned_(untuned), tuned_(std::move(tuned)), given_(std::move(given)) {
    if (tuned_.program_digest != runtime::program_digest(text_)) tuned_.entries.clear();
    if (const auto device = current_device(); device) {
        gpu_ = device->name;
        multiprocessors_ = device->multiprocessors;
    } else if (!tuned_.entries.empty()) {
        constexpr int multiprocessors_of_h200 = 132;
        gpu_ = tuned_.entries.front().gpu;
        multiprocessors_ = multiprocessors_of_h200;
    }
}

KernelModule* TunedModules::module_with(const lower::ConstValues& constants) {
    if (constants == given_) return &untuned_;
    auto [at, is_new] = modules_.try_emplace(constants);
    if (is_new) {
        if (auto made = KernelModule::from_text(file_, text_, constants); made) at->second = *std::move(made);
    }
    return at->second.get();
}

TunedModules::Picked TunedModules::choose_set(const std::string& kernel, const LaunchArguments& arguments) {
    Picked best{&untuned_, given_, std::nullopt};
    auto fits = accepted(untuned_.ir(), kernel, arguments);
    if (!fits) {
        // Constants may stand for dimensions: any set under which the arguments fit tells the sizes.
        for (const TunedEntry& e : tuned_.entries) {
            if (fits || e.kernel != kernel || e.gpu != gpu_) continue;
            if (KernelModule* made = module_with(e.constants)) fits = accepted(made->ir(), kernel, arguments);
            if (fits) best = {module_with(e.constants), e.constants, std::nullopt};
        }
    }
    if (!fits) return best;
    // Sets of constants, that of the nearest shape first.
    std::vector<std::pair<const lower::ConstValues*, std::vector<const TunedEntry*>>> sets;
    for (const TunedEntry* entry : comparable(nearest(tuned_, kernel, gpu_, fits->sizes), fits->sizes)) {
        auto set = std::find_if(sets.begin(), sets.end(), [&](const auto& known) { return *known.first == entry->constants; });
        if (set == sets.end()) set = sets.insert(set, {&entry->constants, {}});
        set->second.push_back(entry);
    }
    bool found = false;
    for (const auto& [constants, entries] : sets) {
        KernelModule* made = module_with(*constants);
        const auto taken = made ? accepted(made->ir(), kernel, arguments) : std::nullopt;
        if (!taken) continue;
        const auto signature = find_signature(made->ir(), kernel);
        std::optional<double> us;
        if (signature && taken->variant) us = predicted_us(entries, *signature, *taken->variant, taken->sizes, multiprocessors_);
        else if (signature) us = predicted_program_us(entries, *made, *signature, taken->sizes, multiprocessors_);
        if (found && !(us && (!best.us || *us < *best.us))) continue;
        found = true;
        best = {made, *constants, us};
        if (entries.front()->sizes == fits->sizes) break;  // tuned itself, and this is its fastest
    }
    return best;
}

TunedModules::Picked TunedModules::pick(const std::string& kernel, const LaunchArguments& arguments) {
    if (tuned_.entries.empty() || gpu_.empty()) return {&untuned_, given_, std::nullopt};
    // Sizes follow from the tensors' dimensions, so these and the types are key enough.
    std::vector<std::int64_t> dims;
    for (const TensorArgument& t : arguments.tensors) {
        dims.push_back(static_cast<std::int64_t>(t.dims.size()));
        dims.push_back(static_cast<std::int64_t>(t.dtype));
        dims.insert(dims.end(), t.dims.begin(), t.dims.end());
    }
    const std::scoped_lock lock(guard_);
    const auto key = std::make_pair(kernel, std::move(dims));
    if (const auto known = picked_.find(key); known != picked_.end()) return known->second;
    const Picked chosen = choose_set(kernel, arguments);
    if (picked_.size() >= 4096) picked_.clear();  // a caller whose shapes never come back
    picked_.emplace(key, chosen);
    return chosen;
}

}  // namespace tw::runtime
