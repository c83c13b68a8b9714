#include "diagnose/failing_trial.h"

#include <ctime>

#include "diagnose/counterexample.h"

namespace tw::diagnose {

std::string failing_trial(const ir::Kernel& k, const TrialSearch& search) {
    const std::clock_t start = std::clock();
    std::vector<std::vector<std::int64_t>> instances = search.first;
    for (auto& sizes : search_instances(k)) instances.push_back(std::move(sizes));
    const auto schedules = emulate::hostile_schedules(k, 3, search.seed + 1);
    for (std::size_t round = 0; round < schedules.size(); ++round) {
        for (const auto& sizes : instances) {
            if (static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC > search.seconds) return {};
            emulate::TrialOptions o;
            o.seed = search.seed + 17 + round;
            o.small_integers = round % 2 == 1;
            o.emulator.schedule = schedules[round];
            o.emulator.resident_blocks = 1 + static_cast<int>(round % 3);
            o.emulator.fault_limit = 1;
            o.emulator.step_limit = 4'000'000;
            const emulate::Trial trial = emulate::run_trial(k, sizes, o);
            if (trial.failed()) return sizes_text(k, sizes) + ", " + schedules[round].describe() + ": " + trial.summary(k);
        }
    }
    return {};
}

}  // namespace tw::diagnose
