#include <algorithm>
#include <ctime>

#include "diagnose/check.h"
#include "diagnose/mutate.h"
#include "ir/legality.h"

namespace tw::diagnose {
namespace {

// A failure of the kernel on the emulator, looked for with other data than the check's own search; empty when none was found.
std::string failing_trial(const ir::Kernel& k, const JudgeOptions& options) {
    const std::clock_t start = std::clock();   // processor time: a busy machine must not change the verdict
    const auto instances = search_instances(k);
    const auto schedules = emulate::hostile_schedules(k, 3, options.seed + 1);
    for (std::size_t round = 0; round < schedules.size(); ++round) {
        for (const auto& sizes : instances) {
            if (static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC > options.trial_seconds) return {};
            emulate::TrialOptions o;
            o.seed = options.seed + 17 + round;
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

}  // namespace

const char* name_of(MutantVerdict v) {
    switch (v) {
        case MutantVerdict::illegal: return "illegal";
        case MutantVerdict::caught: return "caught";
        case MutantVerdict::unproved: return "unproved";
        case MutantVerdict::missed: return "missed";
        case MutantVerdict::equivalent: return "equivalent";
        case MutantVerdict::undecided: return "undecided";
        case MutantVerdict::false_alarm: return "false_alarm";
    }
    return "?";
}

Judgement judge(const ir::Kernel& mutant, const JudgeOptions& options) {
    Judgement j;
    if (const auto violations = ir::legal_last_form(mutant); !violations.empty()) {
        j.verdict = MutantVerdict::illegal;
        j.evidence = violations.front().what;
        return j;
    }
    CheckOptions check_options;
    check_options.search_seconds = options.search_seconds;
    check_options.seed = options.seed;
    const CheckResult result = check(mutant, check_options);
    j.milliseconds = result.milliseconds;
    if (result.violated() && result.counterexample->confirmed) {
        j.verdict = MutantVerdict::caught;
        j.real = true;
        j.evidence = result.counterexample->kind + " with " + result.counterexample->sizes_text + ": " + result.counterexample->message;
        return j;
    }
    const std::string failure = failing_trial(mutant, options);
    j.real = !failure.empty();
    j.evidence = failure;
    if (result.violated()) {
        j.verdict = MutantVerdict::false_alarm;
        j.evidence = result.counterexample->sizes_text + ": " + result.counterexample->message;
    } else if (result.proved()) {
        j.verdict = j.real ? MutantVerdict::missed : MutantVerdict::equivalent;
    } else {
        j.verdict = j.real ? MutantVerdict::unproved : MutantVerdict::undecided;
        for (const auto& o : result.obligations) {
            if (o.status == verify::Status::proved) continue;
            j.evidence += (j.evidence.empty() ? "" : "; ") + ("open: " + o.text) + " (" + o.reason + ")";
            break;
        }
    }
    return j;
}

}  // namespace tw::diagnose
