#include "diagnose/random_kernel.h"

#include <algorithm>

#include "diagnose/mutate.h"
#include "diagnose/random_test.h"
#include "diagnose/random_writer.h"
#include "emulate/program.h"
#include "ir/legality.h"
#include "lower/lower.h"

namespace tw::diagnose {
namespace {

// A kernel, or a program of several.
std::optional<ir::Module> compiled(const std::string& source, std::string& refused) {
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "random.py", source, {}, sink);
    const bool whole = module && (module->programs.empty() ? module->kernels.size() == 1 : module->programs.size() == 1);
    if (whole) return module;
    refused = render_text(sink, sources);
    return std::nullopt;
}

std::string printed(const ir::Module& m) {
    std::string text;
    for (const ir::Kernel& k : m.kernels) text += ir::print(k);
    for (const ir::Program& p : m.programs) {
        for (const ir::Launch& l : p.launches) {
            text += std::to_string(l.kernel) + ":";
            for (int a : l.arguments) text += " " + std::to_string(a);
        }
    }
    return text;
}

void put(RandomKernel& result, ir::Module module) {
    if (module.programs.empty()) {
        result.kernel = std::move(module.kernels[0]);
        return;
    }
    result.kernel = emulate::signature_of(module.programs[0]);
    result.module = std::move(module);
}

// One slip in the last form: an operator first, then a place; otherwise the operators with many places would be all there is.
std::string break_kernel(ir::Kernel& kernel, std::mt19937_64& random) {
    const auto& operators = mutation_operators();
    for (int tries = 0; tries < 60; ++tries) {
        std::vector<Mutant> mutants = mutants_of(kernel, operators[random() % operators.size()].name);
        if (mutants.empty()) continue;
        Mutant& m = mutants[random() % mutants.size()];
        if (!ir::legal_last_form(m.kernel).empty()) continue;
        kernel = std::move(m.kernel);
        return m.operation + " at line " + std::to_string(m.loc.line) + ": " + m.change;
    }
    return {};
}

void break_kernel(ir::Module& module, std::mt19937_64& random, std::string& slip) {
    slip = break_kernel(module.kernels[random() % module.kernels.size()], random);
}

std::vector<std::map<std::string, std::int64_t>> random_shapes(const ir::Kernel& k, std::mt19937_64& random, int count) {
    std::vector<std::map<std::string, std::int64_t>> shapes;
    for (int tries = 0; tries < 40 && static_cast<int>(shapes.size()) < count; ++tries) {
        const std::vector<std::int64_t> sizes = random_sizes(k, random);
        if (sizes.size() != k.sizes.size()) break;
        std::map<std::string, std::int64_t> shape;
        for (std::size_t i = 0; i < sizes.size(); ++i) shape[k.sizes[i]] = sizes[i];
        if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    }
    return shapes;
}

}  // namespace

const std::vector<std::string>& random_families() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> list;
        for (const NamedFamily& f : random_family_table()) list.push_back(f.name);
        return list;
    }();
    return names;
}

RandomText random_text(std::mt19937_64& random, const RandomOptions& options) {
    const auto& table = random_family_table();
    int total = 0;
    for (const NamedFamily& f : table) total += f.weight;
    int at = static_cast<int>(random() % static_cast<std::uint64_t>(total));
    const NamedFamily* chosen = &table.front();
    for (const NamedFamily& f : table) {
        chosen = &f;
        if ((at -= f.weight) < 0) break;
    }
    for (const NamedFamily& f : table) {
        if (f.name == options.family) chosen = &f;
    }
    // Exact kernels are for comparison with a GPU, launch by launch: no programs, and nothing that needs all blocks at once.
    for (const char* name : {"program", "chain", "team"}) {
        if (options.exact && std::string(chosen->name) == name) chosen = &table.front();
    }
    RandomWriter writer(random, options.exact);
    RandomText text;
    text.family = chosen->name;
    text.source = chosen->write(writer);
    return text;
}

std::optional<RandomKernel> random_kernel(std::uint64_t seed, const RandomOptions& options, std::string& refused) {
    std::mt19937_64 random(seed * 0x9e3779b97f4a7c15ull + 1);
    RandomKernel result;
    result.seed = seed;
    result.exact = options.exact;
    RandomText text = random_text(random, options);
    result.family = text.family;
    result.source = text.source;
    auto module = compiled(text.source, refused);
    if (!module) {
        refused = text.source + "\n" + refused;
        return std::nullopt;
    }
    const std::string unbroken = printed(*module);
    put(result, *module);
    const bool broken = static_cast<double>(random() % 1'000'000) < options.broken * 1'000'000;
    const bool in_text = random() % 2 == 0;
    for (int tries = 0; broken && in_text && tries < 40 && result.slip.empty(); ++tries) {
        auto slip = slip_in_text(text.source, random);
        if (!slip) continue;
        std::string ignored;
        auto changed = compiled(slip->source, ignored);
        if (!changed || changed->programs.size() != module->programs.size() || printed(*changed) == unbroken) continue;
        put(result, std::move(*changed));
        result.source = slip->source;
        result.slip = slip->what;
    }
    if (broken && result.slip.empty() && result.module && random() % 2) break_kernel(*result.module, random, result.slip);
    if (broken && result.slip.empty() && result.module) {
        const std::vector<ProgramMutant> mutants = mutants_of(*result.module, result.module->programs[0]);
        const ProgramMutant& m = mutants[random() % mutants.size()];
        result.slip = m.operation + ": " + m.change;
        result.module = m.module;
        result.module->programs[0] = m.program;
    }
    if (broken && result.slip.empty()) result.slip = break_kernel(result.kernel, random);
    result.shapes = random_shapes(result.kernel, random, 4);
    return result;
}

}  // namespace tw::diagnose
