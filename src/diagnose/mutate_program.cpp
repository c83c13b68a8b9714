// Mutation operators between the launches of a program.
#include <set>

#include "diagnose/mutate.h"

namespace tw::diagnose {
namespace {

bool alike(const ir::Tensor& a, const ir::Tensor& b) { return a.dtype == b.dtype && a.dims.size() == b.dims.size(); }

}  // namespace

std::vector<ProgramMutant> mutants_of(const ir::Module& module, const ir::Program& program, const std::string& operation) {
    std::vector<ProgramMutant> mutants;
    auto add = [&](const char* name, std::string change, auto&& apply) {
        if (!operation.empty() && operation != name) return;
        ProgramMutant m{name, std::move(change), program.loc, module, program};
        apply(m);
        mutants.push_back(std::move(m));
    };
    auto name_of = [&](std::size_t launch) { return module.kernels[static_cast<std::size_t>(program.launches[launch].kernel)].name; };
    for (std::size_t i = 0; i < program.launches.size(); ++i) {
        const ir::Launch& launch = program.launches[i];
        add("program/launch", "the launch of " + name_of(i) + " is dropped",
            [&](ProgramMutant& m) { m.program.launches.erase(m.program.launches.begin() + static_cast<std::ptrdiff_t>(i)); });
        add("program/launch", name_of(i) + " is launched twice",
            [&](ProgramMutant& m) { m.program.launches.insert(m.program.launches.begin() + static_cast<std::ptrdiff_t>(i), launch); });
        if (i + 1 < program.launches.size()) {
            add("program/order", name_of(i) + " and " + name_of(i + 1) + " trade places",
                [&](ProgramMutant& m) { std::swap(m.program.launches[i], m.program.launches[i + 1]); });
        }
        const ir::Kernel& kernel = module.kernels[static_cast<std::size_t>(launch.kernel)];
        for (std::size_t a = 0; a < launch.arguments.size(); ++a) {
            if (kernel.parameters[a].first != 't') continue;
            const ir::Tensor& had = program.tensors[static_cast<std::size_t>(launch.arguments[a])];
            for (std::size_t t = 0; t < program.tensors.size(); ++t) {
                if (static_cast<int>(t) == launch.arguments[a] || !alike(program.tensors[t], had)) continue;
                add("program/argument", name_of(i) + " takes " + program.tensors[t].name + " for " + had.name,
                    [&](ProgramMutant& m) { m.program.launches[i].arguments[a] = static_cast<int>(t); });
            }
        }
        for (std::size_t n = 0; n < launch.sizes.size(); ++n) {
            add("program/size", name_of(i) + ": " + kernel.sizes[n] + " is one less",
                [&](ProgramMutant& m) { m.program.launches[i].sizes[n] = ir::max(launch.sizes[n] - 1, 1); });
            for (std::size_t o = 0; o < launch.sizes.size(); ++o) {
                if (ir::same(launch.sizes[o], launch.sizes[n])) continue;
                add("program/size", name_of(i) + ": " + kernel.sizes[n] + " is what should be " + kernel.sizes[o],
                    [&](ProgramMutant& m) { m.program.launches[i].sizes[n] = launch.sizes[o]; });
                break;
            }
        }
    }
    // A launch may begin before those before it have ended, and says that what they write is stable.
    std::set<int> written;
    for (std::size_t i = 0; i < program.launches.size(); ++i) {
        const ir::Launch& launch = program.launches[i];
        const ir::Kernel& kernel = module.kernels[static_cast<std::size_t>(launch.kernel)];
        std::set<int> outputs;
        for (std::size_t a = 0; a < launch.arguments.size(); ++a) {
            const auto [kind, number] = kernel.parameters[a];
            if (kind != 't') continue;
            const ir::Tensor& t = kernel.tensors[static_cast<std::size_t>(number)];
            if (t.is_output) outputs.insert(launch.arguments[a]);
            if (t.is_output || t.stable || !written.count(launch.arguments[a])) continue;
            add("program/stable", name_of(i) + " may begin early and takes " + t.name + " for stable", [&](ProgramMutant& m) {
                ir::Kernel& changed = m.module.kernels[static_cast<std::size_t>(launch.kernel)];
                changed.dependent_launch = true;
                for (ir::Tensor& each : changed.tensors) each.stable = true;
                m.certain = true;
            });
        }
        written.insert(outputs.begin(), outputs.end());
    }
    return mutants;
}

}  // namespace tw::diagnose
