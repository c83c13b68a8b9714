// The whole check of a kernel: synchronisation, data flow, and a concrete counterexample for whatever is not proved.
#pragma once

#include <optional>

#include "diagnose/access_cost.h"
#include "diagnose/audit.h"
#include "diagnose/counterexample.h"
#include "verify/flow.h"
#include "verify/order.h"
#include "verify/rounding.h"

namespace tw::diagnose {

struct CheckOptions {
    double search_seconds = 3.0;  // for a counterexample, per kernel, only when something is not proved
    int search_trials = 0;        // at most so many trials, 0: as many as there is time for
    std::uint64_t seed = 1;
    bool search = true;
    bool explain = true;       // of a counterexample: tags, trace, picture
    bool accesses = false;     // also look at what memory accesses cost
    double audit_seconds = 0;  // what is proved also runs on the emulator for so long (diagnose/audit.h); 0: it does not
    int audit_run = 0;         // this run of the audit alone, however long it takes
};

struct CheckResult {
    std::vector<verify::Obligation> obligations;
    std::optional<Counterexample> counterexample;
    double milliseconds = 0;  // processor time of the proof, without the search
    int instances = 0;
    std::map<std::string, int> questions;          // of data flow, by prover (verify/flow.h)
    std::vector<verify::RoundingRemark> warnings;  // on values: an exponential that may overflow
    AccessReport accesses;                         // remarks on speed: no verdict depends on them
    std::optional<AuditResult> audit;              // of what was proved. A run that failed is the counterexample, and the proof is wrong

    bool proved() const;  // every obligation is proved, none vacuous
    bool violated() const { return counterexample.has_value(); }
    bool wrongly_proved() const { return audit && audit->failing > 0; }  // a bug of ours
    // Lemmas, axioms and preconditions over all obligations, each once, sorted.
    std::vector<std::string> used() const;
};

CheckResult check(const ir::Kernel& kernel, const CheckOptions& options);

// A program: what its launches make of one another, given that the kernels do what they say (verify/program.h).
CheckResult check_program(const ir::Module& module, const ir::Program& program, const CheckOptions& options);

}  // namespace tw::diagnose
