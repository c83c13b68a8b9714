#include "diagnose/check.h"
#include "diagnose/failing_trial.h"
#include "diagnose/mutate.h"
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
    check_options.explain = false;
    const CheckResult result = check(mutant, check_options);
    j.milliseconds = result.milliseconds;
    if (result.violated() && result.counterexample->confirmed) {
        j.verdict = MutantVerdict::caught;
        j.real = true;
        j.evidence = result.counterexample->kind + " with " + result.counterexample->sizes_text + ": " + result.counterexample->message;
        return j;
    }
    TrialSearch search;
    search.seconds = options.trial_seconds;
    search.seed = options.seed;
    const std::string failure = failing_trial(mutant, search);
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
