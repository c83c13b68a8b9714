// The gates a candidate passes, cheapest first: parse, specification, verify, emulate, compile, then test and time on a GPU.
//
// Candidates are untrusted. The static gates run in a forked worker with limits, the GPU gates in the evaluation session's own
// worker: a crash, a hang or a lost context costs the candidate, never the run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/deadline.h"
#include "plan/stage.h"
#include "tasks/task.h"

namespace tw::plan {

struct GateOptions {
    double verify_seconds = 60;  // wall clock of all static gates, the compiler's among them
    double gate_seconds = 5;     // processor time of one static gate's own thread: whether a proof is given up must not depend on the load
    double search_seconds = 2;   // for a counterexample
    bool search = true;          // of a candidate that is not proved: nobody reads a counterexample where the proposer repairs nothing
    bool invariant_feedback = true;  // false (an ablation): a refused proof is reported without place, instance and tags
    bool compile = true;             // false: the static gates end before the compiler
    bool use_gpu = true;
    int rounds = 12;          // of the interleaved timing
    double gpu_seconds = 40;  // of one candidate on the GPU
    std::uint64_t seed = 1;
    Deadline deadline;  // of the run: no gate outlasts it
    // A gate begins. Called in the process that runs it: static gates run in a forked worker, so this may show something, but not keep it.
    std::function<void(const char* gate)> on_gate;
};

// What the gates found out about one candidate.
struct Judgement {
    FailureClass failure = FailureClass::none;
    std::string feedback;  // dense, by class of failure (plan/feedback.h)
    std::string message;   // one line
    nlohmann::json findings = nlohmann::json::object();
    nlohmann::json gates = nlohmann::json::array();  // [{"gate", "passed": true | false | null (skipped), "seconds", "detail"}]
    std::string verdict;                             // "proved", "not_proved", "violated", ""
    int proved = 0, obligations = 0, expectations = 0;
    std::vector<std::string> used;                    // lemmas, axioms, preconditions
    nlohmann::json proof = nlohmann::json::object();  // {"by_kind": assertions by kind, "used": how many lean on each fact,
                                                      // "preconditions": what the launcher checks}
    bool resources_known = false;
    int registers = 0, spill_bytes = 0, shared_bytes = 0, threads = 0;
    bool measured = false;
    double microseconds = 0;
    double speedup = 0, speedup_low = 0, speedup_high = 0;  // over `best`, paired by round; 0 when there was none
    nlohmann::json evidence = nlohmann::json::object();     // of the GPU run
};

// The candidate against the task on the CPU: everything up to and including the compiler.
Judgement judge_static(const tasks::Task& task, const std::string& source, const GateOptions& options);

// Test and time. `best` is the source to be timed against, or empty, and `best_us` its time where one is known (else 0). Leaves `judgement`
// with the two gates skipped, and says why, where there is no GPU.
class GpuGate {
public:
    explicit GpuGate(const GateOptions& options);
    ~GpuGate();
    void set_deadline(Deadline deadline);
    bool available() const;  // a GPU that runs the task's target is here
    std::string machine() const;
    void judge(const tasks::Task& task, const std::string& source, const std::string& best, double best_us, Judgement& judgement);

    // The best kernel once more, with what no candidate saw: inputs of another seed, and every held-out shape that a variant accepts.
    // {"status": "right" | "wrong" | "not measured" (no GPU, or the time is spent), "why", "fresh": {...}, "held_out": [{"sizes", "status",
    // "outputs"}]}
    nlohmann::json confirm(const tasks::Task& task, const std::string& source);
    // Counters of the kernel (plan/metrics.h), or why there are none: {"source": "ncu", "kernels"} or {"source": "static", "why"}.
    nlohmann::json profile(const tasks::Task& task, const std::string& source);
    // The kernel and the task's peer in turn: {"name", "status": "measured" | "not measured", "why", "microseconds", "ours_microseconds",
    // "ratio" (peer / ours), "ratio_interval", ...}.
    nlohmann::json time_peer(const tasks::Task& task, const std::string& source);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tw::plan
