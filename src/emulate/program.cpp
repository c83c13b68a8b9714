#include "emulate/program.h"

#include <chrono>

namespace tw::emulate {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool admits(const ir::Kernel& k, const std::vector<std::int64_t>& sizes) {
    for (const ir::Assumption& a : k.assumptions) {
        if (size_value(a.condition, sizes).value_or(0) == 0) return false;
    }
    return true;
}

}  // namespace

ir::Kernel signature_of(const ir::Program& program) {
    ir::Kernel k;
    k.name = program.name;
    k.sizes = program.sizes;
    k.tensors = program.tensors;
    k.scalars = program.scalars;
    k.computes = program.computes;
    k.loc = program.loc;
    for (std::size_t i = 0; i < k.tensors.size(); ++i) {
        bool written = static_cast<int>(i) >= program.parameter_count;
        for (const ir::Equation& e : program.computes.equations) written |= e.output == static_cast<int>(i);
        k.tensors[i].is_output = written;
    }
    return k;
}

Trial run_program(const ir::Module& module, const ir::Program& program, const std::vector<std::int64_t>& sizes, const TrialOptions& options) {
    const ir::Kernel signature = signature_of(program);
    Trial trial;
    trial.sizes = sizes;
    const auto [inputs, scalars, refused] = starting_values(signature, sizes, options);
    trial.refused = refused;
    if (!refused.empty()) return trial;
    trial.tensors = inputs;
    const auto start = std::chrono::steady_clock::now();
    for (const ir::Launch& launch : program.launches) {
        std::vector<std::int64_t> own;
        for (const ir::Expr& e : launch.sizes) own.push_back(size_value(e, sizes).value_or(0));
        const std::string& name = module.kernels[at(launch.kernel)].name;
        const ir::Kernel* chosen = nullptr;
        auto takes_dtypes = [&](const ir::Kernel& k) {
            for (std::size_t i = 0; i < k.parameters.size(); ++i) {
                const auto [kind, number] = k.parameters[i];
                if (kind == 't' && k.tensors[at(number)].dtype != program.tensors[at(launch.arguments[i])].dtype) return false;
            }
            return true;
        };
        for (const ir::Kernel& k : module.kernels) {
            if (!chosen && k.name == name && takes_dtypes(k) && admits(k, own)) chosen = &k;
        }
        if (!chosen) {
            trial.refused = "no variant of " + name + " admits these sizes";
            return trial;
        }
        std::vector<TensorData> tensors(chosen->tensors.size());
        std::vector<double> numbers(chosen->scalars.size());
        for (std::size_t i = 0; i < chosen->parameters.size(); ++i) {
            const auto [kind, number] = chosen->parameters[i];
            if (kind == 't') tensors[at(number)] = trial.tensors[at(launch.arguments[i])];
            else numbers[at(number)] = scalars[at(launch.arguments[i])];
        }
        for (std::size_t t = 0; t < tensors.size(); ++t) {
            if (chosen->tensors[t].zero_initialised) std::fill(tensors[t].bytes.begin(), tensors[t].bytes.end(), std::uint8_t{0});
        }
        trial.outcome = run(*chosen, own, numbers, tensors, options.emulator);
        for (std::size_t i = 0; i < chosen->parameters.size(); ++i) {
            const auto [kind, number] = chosen->parameters[i];
            if (kind == 't' && chosen->tensors[at(number)].is_output) trial.tensors[at(launch.arguments[i])] = tensors[at(number)];
        }
        note_refusal(trial);
        if (!trial.outcome.clean()) break;
    }
    trial.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    judge_outputs(trial, signature, inputs, scalars, options);
    return trial;
}

}  // namespace tw::emulate
