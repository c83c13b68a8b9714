// A proposer writes kernel source; everything else (gates, timing, memory, journal) belongs to the loop.
//
// The loop asks for one change at a time: one technique on the current kernel, or the first kernel, or a repair of the last
// attempt. A proposer may be the built-in rewrites, a language model, any program, or a coding agent over MCP; the loop does
// not know which. What it returns is untrusted text: it goes through the same gates whoever wrote it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/expected.h"
#include "plan/journal.h"
#include "plan/stage.h"
#include "tasks/task.h"

namespace tw::plan {

// A profiling figure that bears on the choice at hand; withheld before the stage that the workload class prescribes.
struct Metric {
    std::string name;  // "dram_read_bytes"
    double value = 0;
    std::string unit;
    std::string meaning;  // one sentence for the reader of a prompt
};

struct Request {
    const tasks::Task* task = nullptr;
    Stage stage = Stage::first;
    int step = 0;                               // number of the candidate in the run
    int attempt = 0;                            // 0: new; n: the n-th repair of the same technique
    std::string technique;                      // id of a knowledge file; empty for the first kernel
    std::string technique_text;                 // what that file says to a model
    std::string current_source;                 // the kernel to change; empty for the first kernel
    std::string best_source;                    // the fastest accepted kernel so far (often the same)
    std::vector<std::string> invariants;        // tw.expect lines, and sentences, that the result must keep
    FailureClass failure = FailureClass::none;  // of the previous attempt at this technique
    std::string failed_source;                  // its text
    std::string feedback;                       // what went wrong, dense: place, instance, expected, actual, hint
    nlohmann::json findings;                    // the same facts: {"class", "diagnostics": [...], "counterexample": {...}, ...}
    std::vector<std::string> lessons;           // from memory, best match first
    std::vector<std::string> history;           // one line per earlier candidate of this run
    std::vector<Metric> metrics;                // empty while profiling is withheld
    Deadline deadline;                          // of the run: nothing that is started for this request may outlast it
    double seconds_left = 0;                    // the same for a program that reads it; 0: unlimited
    std::int64_t tokens_left = 0;               // 0: unlimited
    double dollars_left = 0;                    // 0: unlimited
    std::uint64_t seed = 1;
};

struct Reply {
    std::string source;  // a whole kernel file
    std::string note;    // one line: what was changed
    std::vector<Exchange> exchanges;
};

struct ProposalFailure {
    enum class Kind : std::uint8_t {
        not_applicable,  // the proposer cannot do this technique here: costs nothing, the planner takes another
        malformed,       // an answer without a kernel in it, truncated, empty, refused: costs one attempt
        unreachable,     // network, rate limit, missing key after all retries: no attempt can succeed, the run ends with what it has
        out_of_budget
    };
    Kind kind = Kind::malformed;
    std::string text;                 // for the journal and, on a repeat, for the next prompt
    std::vector<Exchange> exchanges;  // what failed costs too
};

class Proposer {
public:
    virtual ~Proposer() = default;
    virtual std::string name() const = 0;  // "builtin", "openai:MODEL", ...
    virtual Expected<Reply, ProposalFailure> propose(const Request& request) = 0;
    // Why a budget of money cannot be kept with it; empty: it can.
    virtual std::string price_problem() const { return {}; }
    // Whether it makes something of feedback about a failed attempt.
    virtual bool repairs() const { return true; }
    // A candidate of an earlier part of the run, when it is resumed: not to be proposed again.
    virtual void seen(const std::string& source) { (void)source; }
};

// `invariants`: its kernels carry assertions (tw.expect) close to their data movement.
std::unique_ptr<Proposer> make_builtin_proposer(bool invariants = true);

}  // namespace tw::plan
