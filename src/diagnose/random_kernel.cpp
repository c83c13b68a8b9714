#include "diagnose/random_kernel.h"

#include <algorithm>

#include "diagnose/mutate.h"
#include "diagnose/random_writer.h"
#include "emulate/emulator.h"
#include "ir/legality.h"
#include "lower/lower.h"

namespace tw::diagnose {
namespace {

std::optional<ir::Kernel> compiled(const std::string& source, std::string& refused) {
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "random.py", source, {}, sink);
    if (!module || module->kernels.size() != 1) {
        refused = render_text(sink, sources);
        return std::nullopt;
    }
    return module->kernels[0];
}

// Sizes that the assumptions admit: tiny ones, ones around tiles, several tiles; small enough to be emulated in no time.
std::vector<std::map<std::string, std::int64_t>> random_shapes(const ir::Kernel& k, std::mt19937_64& random, int count) {
    static constexpr std::int64_t values[] = {1, 2, 3, 7, 8, 9, 15, 16, 24, 31, 32, 33, 40, 48, 63, 64, 65, 72, 96, 100, 128, 130, 136, 192, 200, 264};
    std::vector<std::map<std::string, std::int64_t>> shapes;
    for (int tries = 0; tries < 400 && static_cast<int>(shapes.size()) < count; ++tries) {
        std::vector<std::int64_t> sizes;
        double volume = 1;
        for (std::size_t i = 0; i < k.sizes.size(); ++i) {
            std::int64_t v = values[random() % std::size(values)];
            if (random() % 2) v = (v + 7) / 8 * 8;   // most assumptions are about multiples of 8
            sizes.push_back(v);
            volume *= static_cast<double>(v);
        }
        if (volume > (k.sizes.size() == 3 ? 300'000 : 20'000)) continue;
        bool holds = true;
        for (const ir::Assumption& a : k.assumptions) holds = holds && emulate::size_value(a.condition, sizes).value_or(0) != 0;
        if (!holds) continue;
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
    auto kernel = compiled(text.source, refused);
    if (!kernel) {
        refused = text.source + "\n" + refused;
        return std::nullopt;
    }
    result.kernel = std::move(*kernel);
    const bool broken = static_cast<double>(random() % 1'000'000) < options.broken * 1'000'000;
    const bool in_text = random() % 2 == 0;
    for (int tries = 0; broken && in_text && tries < 40 && result.slip.empty(); ++tries) {
        auto slip = slip_in_text(text.source, random);
        if (!slip) continue;
        std::string ignored;
        auto changed = compiled(slip->source, ignored);
        if (!changed || ir::print(*changed) == ir::print(result.kernel)) continue;
        result.kernel = std::move(*changed);
        result.source = slip->source;
        result.slip = slip->what;
    }
    if (broken && result.slip.empty()) {
        // An operator first, then a place: otherwise the operators with many places would be all there is.
        const auto& operators = mutation_operators();
        for (int tries = 0; tries < 60 && result.slip.empty(); ++tries) {
            std::vector<Mutant> mutants = mutants_of(result.kernel, operators[random() % operators.size()].name);
            if (mutants.empty()) continue;
            Mutant& m = mutants[random() % mutants.size()];
            if (!ir::legal_last_form(m.kernel).empty()) continue;
            result.slip = m.operation + " at line " + std::to_string(m.loc.line) + ": " + m.change;
            result.kernel = std::move(m.kernel);
        }
    }
    result.shapes = random_shapes(result.kernel, random, 4);
    return result;
}

}  // namespace tw::diagnose
