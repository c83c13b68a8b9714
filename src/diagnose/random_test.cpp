#include "diagnose/random_test.h"

#include <optional>

#include "emulate/trial.h"

namespace tw::diagnose {
namespace {

// The value that an assumption `size == constant` leaves.
std::optional<std::int64_t> pinned(const ir::Expr& e, int size) {
    if (e.kind() == ir::ExprKind::logic_and) {
        if (auto v = pinned(e->args[0], size)) return v;
        return pinned(e->args[1], size);
    }
    if (e.kind() != ir::ExprKind::eq) return std::nullopt;
    for (std::size_t side = 0; side < 2; ++side) {
        if (e->args[side].kind() == ir::ExprKind::size && e->args[side]->id == size) return e->args[1 - side].as_constant();
    }
    return std::nullopt;
}

}  // namespace

std::vector<std::int64_t> random_sizes(const ir::Kernel& k, std::mt19937_64& random) {
    static constexpr std::int64_t values[] = {1,  2,  3,  7,  8,  9,  15,  16,  24,  31,  32,  33,  40,
                                              48, 63, 64, 65, 72, 96, 100, 128, 130, 136, 192, 200, 264};
    for (int tries = 0; tries < 400; ++tries) {
        std::vector<std::int64_t> sizes;
        double volume = 1;
        for (std::size_t i = 0; i < k.sizes.size(); ++i) {
            std::int64_t v = values[random() % std::size(values)];
            if (random() % 2) v = (v + 7) / 8 * 8;  // most assumptions are about multiples of 8
            bool fixed = false;
            for (const ir::Assumption& a : k.assumptions) {
                if (auto only = pinned(a.condition, static_cast<int>(i))) v = *only, fixed = true;
            }
            sizes.push_back(v);
            if (!fixed) volume *= static_cast<double>(v);
        }
        if (volume > (k.sizes.size() >= 3 ? 300'000 : 20'000)) continue;
        bool holds = true;
        for (const ir::Assumption& a : k.assumptions) holds = holds && emulate::size_value(a.condition, sizes).value_or(0) != 0;
        if (holds && emulate::promises_can_hold(k.tensors, sizes)) return sizes;
    }
    return {};
}

bool random_tests_notice(const ir::Kernel& k, const RandomTests& tests) {
    std::mt19937_64 random(tests.seed * 0x9e3779b97f4a7c15ull + 7);
    const std::vector<emulate::Schedule> schedules = emulate::hostile_schedules(k, 2, tests.seed);
    for (int i = 0; i < tests.trials; ++i) {
        const std::vector<std::int64_t> sizes = random_sizes(k, random);
        if (sizes.size() != k.sizes.size()) return false;
        emulate::TrialOptions o;
        o.seed = tests.seed + static_cast<std::uint64_t>(i);
        o.own_data = true;
        o.emulator.resident_blocks = 2;
        o.emulator.fault_limit = 1;
        o.emulator.step_limit = 4'000'000;
        o.emulator.detect_races = tests.hostile;
        if (tests.hostile) o.emulator.schedule = schedules[random() % schedules.size()];
        if (emulate::run_trial(k, sizes, o).failed()) return true;
    }
    return false;
}

}  // namespace tw::diagnose
