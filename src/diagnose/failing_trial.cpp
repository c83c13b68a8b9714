#include "diagnose/failing_trial.h"

#include <ctime>
#include <random>

#include "diagnose/counterexample.h"
#include "diagnose/random_test.h"
#include "emulate/program.h"

namespace tw::diagnose {

std::string failing_trial(const ir::Kernel& k, const TrialSearch& search) {
    const std::clock_t start = std::clock();
    std::vector<std::vector<std::int64_t>> instances = search.first;
    for (auto& sizes : search_instances(k)) instances.push_back(std::move(sizes));
    const auto schedules = emulate::hostile_schedules(k, 3, search.seed + 1);
    int tried = 0;
    for (std::size_t round = 0; round < schedules.size(); ++round) {
        for (std::size_t n = 0; n < instances.size(); ++n) {
            const auto& sizes = instances[n];
            if (static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC > search.seconds) return {};
            if (search.trials > 0 && ++tried > search.trials) return {};
            emulate::TrialOptions o;
            o.seed = search.seed + 17 + round;
            o.own_data = true;
            o.small_integers = (round + n) % 2 == 1;
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

std::string failing_program_trial(const ir::Module& module, const ir::Program& program, const TrialSearch& search) {
    const std::clock_t start = std::clock();
    const ir::Kernel signature = emulate::signature_of(program);
    std::mt19937_64 random(search.seed + 99);
    std::vector<std::vector<std::int64_t>> instances = search.first;
    while (instances.size() < 24) {
        instances.push_back(random_sizes(signature, random));
        if (instances.back().size() != program.sizes.size()) return {};
    }
    int tried = 0;
    for (int round = 0; round < 3; ++round) {
        for (const auto& sizes : instances) {
            if (static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC > search.seconds) return {};
            if (search.trials > 0 && ++tried > search.trials) return {};
            emulate::TrialOptions o;
            o.seed = search.seed + 17 + static_cast<std::uint64_t>(round);
            o.own_data = true;
            o.small_integers = round % 2 == 1;
            o.emulator.fault_limit = 1;
            o.emulator.step_limit = 4'000'000;
            o.emulator.schedule.lazy = round == 0;
            if (round == 1) o.emulator.schedule.order = emulate::Schedule::Order::reverse;
            const emulate::Trial t = emulate::run_program(module, program, sizes, o);
            if (t.refused.empty() && t.failed())
                return sizes_text(signature, sizes) + ", " + o.emulator.schedule.describe() + ": " + t.summary(signature);
        }
    }
    return {};
}

}  // namespace tw::diagnose
