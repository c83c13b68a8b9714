#include "cli/export_kernel.h"

#include <filesystem>
#include <fstream>

#include "codegen/plan.h"
#include "emulate/trial.h"

namespace tw::cli {
namespace {

std::string base64(const std::vector<std::uint8_t>& bytes) {
    static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t group = 0;
        const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
        for (std::size_t j = 0; j < 3; ++j) group = group << 8 | (j < n ? bytes[i + j] : 0u);
        for (std::size_t j = 0; j < 4; ++j) text += j <= n ? digits[group >> (18 - 6 * j) & 63] : '=';
    }
    return text;
}

}  // namespace

std::optional<nlohmann::json> exported_plan(const ir::Kernel& kernel, std::string& problem) {
    auto emitted = codegen::emit(kernel, kernel.name);
    if (!emitted) {
        problem = emitted.error().message;
        return std::nullopt;
    }
    return codegen::plan(kernel, *emitted);
}

std::optional<nlohmann::json> exported_random(const diagnose::RandomKernel& random, std::size_t shapes, std::string& problem) {
    const ir::Kernel& k = random.kernel;
    auto plan = exported_plan(k, problem);
    if (!plan) return std::nullopt;
    nlohmann::json out = {
        {"seed", random.seed}, {"family", random.family}, {"slip", random.slip}, {"kernels", {*plan}}, {"cases", nlohmann::json::array()}};
    for (std::size_t i = 0; i < std::min(shapes, random.shapes.size()); ++i) {
        std::vector<std::int64_t> sizes;
        for (const std::string& name : k.sizes) sizes.push_back(random.shapes[i].at(name));
        emulate::TrialOptions options;
        options.seed = random.seed + i;
        options.small_integers = true;
        const auto inputs = emulate::random_inputs(k, sizes, options.seed, true);
        const emulate::Trial trial = emulate::run_trial(k, sizes, options);
        if (trial.failed() || !trial.refused.empty()) {
            problem = trial.summary(k);
            return std::nullopt;
        }
        nlohmann::json tensors = nlohmann::json::array();
        for (std::size_t t = 0; t < k.tensors.size(); ++t) {
            nlohmann::json one = {
                {"name", k.tensors[t].name}, {"dims", inputs[t].dims}, {"strides", inputs[t].strides}, {"bytes", base64(inputs[t].bytes)}};
            if (k.tensors[t].is_output) one["expected"] = base64(trial.tensors[t].bytes);
            tensors.push_back(std::move(one));
        }
        nlohmann::json scalars = nlohmann::json::object();
        const auto values = emulate::random_scalars(k.scalars, options.seed);
        for (std::size_t s = 0; s < values.size(); ++s) scalars[k.scalars[s].name] = values[s];
        out["cases"].push_back({{"sizes", random.shapes[i]}, {"scalars", scalars}, {"tensors", tensors}});
    }
    return out;
}

}  // namespace tw::cli
