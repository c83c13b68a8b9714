#include "emulate/program.h"
#include "base/index.h"
#include "ir/launches.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace tw::emulate {
namespace {

bool admits(const ir::Kernel& k, const std::vector<std::int64_t>& sizes) {
    for (const ir::Assumption& a : k.assumptions) {
        if (size_value(a.condition, sizes).value_or(0) == 0) return false;
    }
    return true;
}

// A variant's own sizes from the tensors that it is given: variants number their sizes as each of them first uses them. `named` has those
// of the kernel that the program names, for sizes that are no whole dimension.
std::optional<std::vector<std::int64_t>> sizes_of(const ir::Kernel& k, const ir::Kernel& named, const std::vector<std::int64_t>& own,
                                                  const ir::Launch& launch, const std::vector<TensorData>& tensors) {
    std::vector<std::optional<std::int64_t>> found(k.sizes.size());
    for (std::size_t i = 0; i < k.sizes.size(); ++i) {
        const auto same = std::find(named.sizes.begin(), named.sizes.end(), k.sizes[i]);
        if (same != named.sizes.end()) found[i] = own[static_cast<std::size_t>(same - named.sizes.begin())];
    }
    for (std::size_t i = 0; i < k.parameters.size(); ++i) {
        const auto [kind, number] = k.parameters[i];
        if (kind != 't') continue;
        const auto& dims = k.tensors[at(number)].dims;
        for (std::size_t d = 0; d < dims.size(); ++d) {
            if (dims[d].kind() == ir::ExprKind::size) found[at(dims[d]->id)] = tensors[at(launch.arguments[i])].dims[d];
        }
    }
    std::vector<std::int64_t> sizes;
    for (const auto& f : found) {
        if (!f) return std::nullopt;
        sizes.push_back(*f);
    }
    // Dimensions that are no size by themselves must be what the tensors have, as the launcher demands it.
    for (std::size_t i = 0; i < k.parameters.size(); ++i) {
        const auto [kind, number] = k.parameters[i];
        if (kind != 't') continue;
        const ir::Tensor& formal = k.tensors[at(number)];
        const TensorData& actual = tensors[at(launch.arguments[i])];
        for (std::size_t d = 0; d < formal.dims.size(); ++d) {
            if (size_value(formal.dims[d], sizes) != actual.dims[d]) return std::nullopt;
            if (actual.dims[d] > 1 && size_value(formal.strides[d], sizes) != actual.strides[d]) return std::nullopt;
        }
    }
    return sizes;
}

// Element by element between a tensor of contiguous rows and a view of it.
void copy_view(const ir::ProgramView& view, TensorData& base, TensorData& seen, bool back) {
    const auto width = static_cast<std::size_t>(target::bytes(base.dtype));
    std::vector<std::int64_t> index(seen.dims.size(), 0);
    for (std::int64_t i = 0; i < seen.elements(); ++i) {
        std::int64_t from = view.offset, to = 0;
        for (std::size_t d = 0; d < index.size(); ++d) {
            from += index[d] * seen.strides[d];
            to += index[d] * seen.strides[d];
        }
        std::uint8_t *in = &base.bytes[static_cast<std::size_t>(from) * width], *out = &seen.bytes[static_cast<std::size_t>(to) * width];
        if (back) std::swap(in, out);
        std::copy_n(in, width, out);
        for (std::size_t d = index.size(); d-- > 0;) {
            if (++index[d] < seen.dims[d]) break;
            index[d] = 0;
        }
    }
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

Trial run_program(const ir::Module& module, const ir::Program& program, const std::vector<std::int64_t>& sizes,
                  const TrialOptions& options) {
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
        std::vector<std::int64_t> chosen_sizes;
        auto takes_dtypes = [&](const ir::Kernel& k) {
            for (std::size_t i = 0; i < k.parameters.size(); ++i) {
                const auto [kind, number] = k.parameters[i];
                if (kind == 't' && k.tensors[at(number)].dtype != program.tensors[at(launch.arguments[i])].dtype) return false;
            }
            return true;
        };
        for (const ir::Kernel& k : module.kernels) {
            if (chosen || k.name != name || !takes_dtypes(k)) continue;
            auto mine = sizes_of(k, module.kernels[at(launch.kernel)], own, launch, trial.tensors);
            if (mine && admits(k, *mine)) chosen = &k, chosen_sizes = *std::move(mine);
        }
        if (!chosen) {
            trial.refused = "no variant of " + name + " admits these sizes";
            return trial;
        }
        std::vector<TensorData> tensors(chosen->tensors.size());
        std::vector<double> numbers(chosen->scalars.size());
        for (std::size_t i = 0; i < chosen->parameters.size(); ++i) {
            const auto [kind, number] = chosen->parameters[i];
            const ir::ProgramView* view = kind == 't' ? ir::view_of(program, launch.arguments[i]) : nullptr;
            if (view) copy_view(*view, trial.tensors[at(view->base)], trial.tensors[at(view->tensor)], false);
            if (kind == 't') tensors[at(number)] = trial.tensors[at(launch.arguments[i])];
            else numbers[at(number)] = scalars[at(launch.arguments[i])];
        }
        for (std::size_t t = 0; t < tensors.size(); ++t) {
            if (chosen->tensors[t].zero_initialised) std::fill(tensors[t].bytes.begin(), tensors[t].bytes.end(), std::uint8_t{0});
        }
        trial.outcome = run(*chosen, chosen_sizes, numbers, tensors, options.emulator);
        for (std::size_t i = 0; i < chosen->parameters.size(); ++i) {
            const auto [kind, number] = chosen->parameters[i];
            if (kind != 't' || !chosen->tensors[at(number)].is_output) continue;
            trial.tensors[at(launch.arguments[i])] = tensors[at(number)];
            const ir::ProgramView* view = ir::view_of(program, launch.arguments[i]);
            if (view) copy_view(*view, trial.tensors[at(view->base)], trial.tensors[at(view->tensor)], true);
        }
        note_refusal(trial);
        if (!trial.outcome.clean()) break;
    }
    trial.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    judge_outputs(trial, signature, inputs, scalars, options);
    return trial;
}

}  // namespace tw::emulate
