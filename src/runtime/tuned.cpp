#include "runtime/tuned.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/text.h"
#include "runtime/device_data.h"

namespace tw::runtime {

using nlohmann::json;

std::string tuned_path(const std::string& kernel_file) { return std::filesystem::path(kernel_file).replace_extension(".tuned.json").string(); }

Result<TunedFile> read_tuned(const std::string& kernel_file) {
    const std::string path = tuned_path(kernel_file);
    std::error_code ignored;
    TunedFile tuned;
    if (!std::filesystem::exists(path, ignored)) return tuned;
    const auto text = read_file(path);
    if (!text) return fail(FailureKind::io_error, text.error());
    try {
        const json data = json::parse(*text);
        tuned.source_digest = data.at("source").get<std::string>();
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
    json entries = json::array();
    for (const TunedEntry& e : tuned.entries)
        entries.push_back({{"kernel", e.kernel}, {"gpu", e.gpu}, {"sizes", e.sizes}, {"constants", e.constants.empty() ? json::object() : json(e.constants)}, {"us", e.us}, {"default_us", e.default_us}});
    const json data = {{"schema", "tilewright tuned 1"}, {"file", std::filesystem::path(kernel_file).filename().string()}, {"source", tuned.source_digest}, {"entries", entries}};
    if (auto written = write_file_atomically(tuned_path(kernel_file), data.dump(1) + "\n"); !written) return fail(FailureKind::io_error, written.error());
    return {};
}

std::vector<const TunedEntry*> nearest(const TunedFile& tuned, const std::string& kernel, const std::string& gpu, const std::map<std::string, std::int64_t>& sizes) {
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
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<const TunedEntry*> out;
    for (const auto& [distance, entry] : found) out.push_back(entry);
    return out;
}

std::optional<double> predicted_us(const TunedEntry& entry, const Signature& signature, const ir::Kernel& kernel, const std::map<std::string, std::int64_t>& sizes, int multiprocessors) {
    const auto here = size_values(signature, sizes), there = size_values(signature, entry.sizes);
    if (!here || !there || entry.us <= 0) return std::nullopt;
    const double at_once = static_cast<double>(multiprocessors) * std::max(1, kernel.min_blocks_per_sm);
    const auto length = [&](const std::vector<std::int64_t>& of) {
        const auto product = [&](const auto& extents) {
            double p = 1;
            for (const ir::Expr& e : extents) p *= static_cast<double>(size_value(e, of).value_or(0));
            return p;
        };
        double elements = 0;
        for (const ir::Tensor& t : signature.tensors) elements += t.is_output ? product(t.dims) : 0;
        return elements > 0 ? std::ceil(product(kernel.grid) / at_once) * work_of(signature, of).operations / elements : 0.0;
    };
    const double here_length = length(*here), there_length = length(*there);
    if (here_length <= 0 || there_length <= 0) return std::nullopt;
    return entry.us * here_length / there_length;
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

TunedModules::TunedModules(std::string file, std::string text, KernelModule& untuned, TunedFile tuned) : file_(std::move(file)), text_(std::move(text)), untuned_(untuned), tuned_(std::move(tuned)) {
    if (tuned_.source_digest != digest_hex(text_)) tuned_.entries.clear();
    if (const auto device = current_device(); device) gpu_ = device->name, multiprocessors_ = device->multiprocessors;
}

KernelModule& TunedModules::pick(const std::string& kernel, const LaunchArguments& arguments) {
    if (tuned_.entries.empty() || gpu_.empty()) return untuned_;
    // Sizes follow from the tensors' dimensions, so these are key enough.
    std::vector<std::int64_t> dims;
    for (const TensorArgument& t : arguments.tensors) {
        dims.push_back(static_cast<std::int64_t>(t.dims.size()));
        dims.insert(dims.end(), t.dims.begin(), t.dims.end());
    }
    const std::scoped_lock lock(guard_);
    const auto key = std::make_pair(kernel, std::move(dims));
    if (const auto known = picked_.find(key); known != picked_.end()) return *known->second;
    KernelModule* chosen = &untuned_;
    if (const auto untuned = accepted(untuned_.ir(), kernel, arguments)) {
        constexpr std::size_t most = 8;   // sets of constants that are looked at: each is lowered once
        std::vector<const lower::ConstValues*> seen;
        double least = 0;
        for (const TunedEntry* entry : nearest(tuned_, kernel, gpu_, untuned->sizes)) {
            if (seen.size() == most) break;
            if (std::any_of(seen.begin(), seen.end(), [&](const lower::ConstValues* c) { return *c == entry->constants; })) continue;
            auto [at, is_new] = modules_.try_emplace(entry->constants);
            if (is_new) {
                if (auto made = KernelModule::from_text(file_, text_, entry->constants); made) at->second = *std::move(made);
            }
            const auto taken = at->second ? accepted(at->second->ir(), kernel, arguments) : std::nullopt;
            if (!taken) continue;
            seen.push_back(&entry->constants);
            std::optional<double> us;
            if (const auto signature = find_signature(at->second->ir(), kernel); signature && taken->variant) us = predicted_us(*entry, *signature, *taken->variant, taken->sizes, multiprocessors_);
            if (seen.size() > 1 && !(us && *us < least)) continue;
            chosen = at->second.get();
            least = us.value_or(0);   // a program, or data without times: the nearest it is
            if (entry->sizes == untuned->sizes) break;   // tuned itself
        }
    }
    if (picked_.size() >= 4096) picked_.clear();   // a caller whose shapes never come back
    picked_.emplace(key, chosen);
    return *chosen;
}

}  // namespace tw::runtime
