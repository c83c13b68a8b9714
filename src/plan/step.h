// What one step of the loop did: the unit that is journaled, shown, learned from and resumed from.
//
// A run's state (current kernel, best kernel, what was tried) is a function of its header and its steps in order, so a run
// that was killed goes on from the last step that was recorded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace tw::plan {

enum class Stage : std::uint8_t { first, structure, memory, pipeline, instruction, constants };
std::string_view name_of(Stage stage);
bool parse_stage(std::string_view text, Stage& into);

// Why a candidate was not accepted. The class decides what the proposer is shown and asked (plan/feedback.h).
enum class FailureClass : std::uint8_t {
    none,
    proposal,     // no usable text came back
    syntax,       // does not parse
    type,         // parses, but names, types, shapes or the target's rules are violated
    specification,// another `computes`, signature or assumption than the task allows
    invariant,    // data does not move as `computes` or a tw.expect says
    race,         // race, deadlock, stale or unfinished read, missing fence, out of bounds
    unproved,     // nothing wrong found, but no complete proof
    numeric,      // wrong values on the emulator or the GPU
    resource,     // registers, spills, shared memory, does not compile
    launch,       // the worker or the launch crashed
    timeout,
    slower        // correct and proved, but not faster than the best: rolled back
};
std::string_view name_of(FailureClass failure);
bool parse_failure_class(std::string_view text, FailureClass& into);

struct Usage {
    std::int64_t input_tokens = 0, output_tokens = 0;
    double dollars = 0;
    double seconds = 0;
    std::string model, prompt, reply;    // whole texts, for the journal; empty for the built-in proposer
};

enum class GateStatus : std::uint8_t { passed, failed, skipped };

// One gate of one candidate, in the order they ran: parse, specification, verify, emulate, compile, test, time.
struct GateResult {
    std::string gate;
    GateStatus status = GateStatus::skipped;
    double seconds = 0;
    std::string text;                    // one line; why it was skipped, or what failed
};

struct Proof {
    int proved = 0, obligations = 0;
    int expectations = 0;                // tw.expect assertions among them
    std::vector<std::string> used;       // lemmas, axioms, preconditions
};

struct Timing {
    bool measured = false;
    double microseconds = 0;             // median of the interleaved run
    double low = 0, high = 0;            // its interval
    double speedup = 0;                  // over the best so far, paired by round
    double speedup_low = 0, speedup_high = 0;
    double roofline_share = 0;           // lower bound of time / time
    double peer_microseconds = 0;        // 0: no peer
};

struct Resources {
    bool known = false;
    int registers = 0, spill_bytes = 0, shared_bytes = 0, threads = 0;
};

struct Step {
    int number = 0;                      // candidates count from 1; 1 is the first kernel
    Stage stage = Stage::first;
    std::string technique;               // "first" for the first kernel
    int attempt = 0;
    std::string proposer;
    std::string bottleneck;              // as the planner saw it when it chose
    std::string source;                  // whole kernel file; empty when none came back
    std::string note;
    FailureClass failure = FailureClass::none;
    bool accepted = false;               // became the best
    std::string feedback;                // what the next attempt is told
    std::vector<GateResult> gates;
    Proof proof;
    Timing timing;
    Resources resources;
    std::vector<std::string> invariants; // asked of the proposer
    std::string lesson;                  // one sentence, kept in memory
    double reward = 0;
    Usage usage;
    double seconds = 0;                  // wall time of the whole step
    std::string at;                      // UTC, ISO 8601
};

nlohmann::json to_json(const Step& step);
bool from_json(const nlohmann::json& json, Step& into);   // false: not a step (a damaged record)

struct RunHeader {
    std::string id;                      // chosen by the journal when empty
    std::string task_name, task_text;    // the TOML as read
    std::string proposer;
    nlohmann::json options;              // as given on the command line
    std::string version, machine, started;
};

struct RunSummary {
    std::string outcome;                 // "roofline", "plateau", "budget", "failed", "interrupted"
    int candidates = 0;
    int best_step = 0;                   // 0: none
    std::string statement;               // what was proved, what was measured, what was not
    nlohmann::json figures;
};

// Where the loop hands its steps as they happen. `record` returns a sentence when the step could not be kept (disk full);
// the loop then says so and goes on.
class Recorder {
public:
    virtual ~Recorder() = default;
    virtual std::string begin(RunHeader& header) = 0;       // may set header.id
    virtual std::string record(const Step& step) = 0;
    virtual std::string end(const RunSummary& summary) = 0;
};

}  // namespace tw::plan
