#include <random>

#include "diagnose/audit.h"
#include "diagnose/check.h"
#include "diagnose/failing_trial.h"
#include "diagnose/mutate.h"
#include "diagnose/random_test.h"
#include "emulate/program.h"
#include "ir/legality.h"

namespace tw::diagnose {
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

namespace {

// What the check's answer and the emulator's own search come to.
void settle(Judgement& j, const CheckResult& result) {
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
}

bool caught(Judgement& j, const CheckResult& result) {
    j.milliseconds = result.milliseconds;
    if (!result.violated() || !result.counterexample->confirmed) return false;
    j.verdict = MutantVerdict::caught;
    j.real = true;
    j.evidence = result.counterexample->kind + " with " + result.counterexample->sizes_text + ": " + result.counterexample->message;
    return true;
}

CheckOptions check_options(const JudgeOptions& options) {
    CheckOptions o;
    o.search_seconds = options.search_seconds;
    o.search_trials = options.search_trials;
    o.seed = options.seed;
    o.explain = false;
    return o;
}

AuditOptions beyond_the_cutoff(const JudgeOptions& options) {
    AuditOptions a;
    a.seconds = options.trial_seconds;
    a.runs = options.trials;
    a.seed = options.seed;
    return a;
}

std::string failure_of(const AuditResult& audited) {
    return audited.failing ? audited.failure->sizes_text + ", " + audited.failure->schedule + ": " + audited.failure->message : "";
}

}  // namespace

Judgement judge(const ir::Kernel& mutant, const JudgeOptions& options) {
    Judgement j;
    if (const auto violations = ir::legal_last_form(mutant); !violations.empty()) {
        j.verdict = MutantVerdict::illegal;
        j.evidence = violations.front().what;
        return j;
    }
    const CheckResult result = check(mutant, check_options(options));
    if (!caught(j, result)) {
        TrialSearch search;
        search.seconds = options.trial_seconds;
        search.trials = options.trials;
        search.seed = options.seed;
        j.evidence = failing_trial(mutant, search);
        if (j.evidence.empty()) j.evidence = failure_of(audit(mutant, beyond_the_cutoff(options)));
        j.real = !j.evidence.empty();
        settle(j, result);
    }
    if (j.real && options.random_tests > 0) {
        j.random_tests = random_tests_notice(mutant, {options.random_tests, false, options.seed});
        j.hostile_tests = random_tests_notice(mutant, {options.random_tests, true, options.seed});
    }
    return j;
}

Judgement judge(const ProgramMutant& mutant, const JudgeOptions& options) {
    Judgement j;
    const CheckResult result = check_program(mutant.module, mutant.program, check_options(options));
    const ir::Kernel signature = emulate::signature_of(mutant.program);
    std::mt19937_64 random(options.seed + 99);
    // Fails on one of `trials` random shapes, with the first of its schedules or a hostile one each?
    auto fails = [&](int trials, bool hostile) -> std::string {
        for (int i = 0; i < trials; ++i) {
            const std::vector<std::int64_t> sizes = random_sizes(signature, random);
            if (sizes.size() != mutant.program.sizes.size()) return {};
            emulate::TrialOptions o;
            o.seed = options.seed + static_cast<std::uint64_t>(i);
            o.emulator.fault_limit = 1;
            o.emulator.detect_races = hostile;
            o.emulator.schedule.lazy = hostile && i % 2 == 0;
            if (hostile && i % 3 == 1) o.emulator.schedule.order = emulate::Schedule::Order::reverse;
            const emulate::Trial t = emulate::run_program(mutant.module, mutant.program, sizes, o);
            if (t.refused.empty() && t.failed()) return sizes_text(signature, sizes) + ": " + t.summary(signature);
        }
        return {};
    };
    if (!caught(j, result)) {
        TrialSearch search;
        search.seconds = options.trial_seconds;
        search.trials = options.trials;
        search.seed = options.seed;
        j.evidence = failing_program_trial(mutant.module, mutant.program, search);
        if (j.evidence.empty()) j.evidence = failure_of(audit(mutant.module, mutant.program, beyond_the_cutoff(options)));
        j.real = !j.evidence.empty();
        settle(j, result);
    }
    if (j.real && options.random_tests > 0) {
        j.random_tests = !fails(options.random_tests, false).empty();
        j.hostile_tests = !fails(options.random_tests, true).empty();
    }
    return j;
}

}  // namespace tw::diagnose
