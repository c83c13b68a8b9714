// The journal: every step of every optimisation run, in SQLite (docs/journal.md).
//
// A run is one call of `optimize` on one task. A step is one candidate: what was asked, what came back, what each gate said,
// what it cost. `append` writes a step in one transaction, so a process that is killed at any moment (kill -9, power) loses
// at most the step in flight; `Step::state` carries what the loop needs to go on from there.
//
// Several processes may write the same journal. One run is worked on by one process at a time: RunLock.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/sqlite.h"

namespace tw::plan {

// One question to a proposer and its answer, as they went over the wire (without credentials).
struct Exchange {
    std::string proposer;        // "builtin", "openai", ...
    std::string model;           // empty for builtin and command
    std::string prompt_version;  // of prompts/, e.g. "optimise-1"
    std::string prompt, reply;   // readable text; tool calls are part of it
    std::int64_t tokens_in = 0, tokens_out = 0;
    double cost_usd = 0;
    double seconds = 0;
    std::string failure;  // why the reply was of no use; empty when it was
};

struct Step {
    int number = 0;                      // from 0, without holes
    int parent = -1;                     // the step whose kernel this one changed; -1: none
    std::string stage;                   // "first", "structure", "memory", "pipeline", "instruction", "constants"
    std::string technique;               // file name in knowledge/ without .md; empty for the first kernel
    std::string outcome;                 // "accepted" (it is the best now), "rejected" (right, but no better), "failed" (a gate refused it)
    std::string verdict;                 // of the check: "proved", "not_proved", "violated", or "" when it was not reached
    std::string failure_class;           // syntax, type, invariant, race, numeric, resource, launch, timeout, proposal; "" when none
    std::string message;                 // one line for a person
    std::string source;                  // the candidate, whole; may be empty when there was none
    std::string diff;                    // against the parent, unified; `append` fills it in when it is left empty
    std::optional<double> microseconds;  // measured on the GPU
    std::optional<double> speedup;       // over the first correct kernel of this run, from interleaved timing
    std::optional<double> roofline_share;                // 0 to 1
    double seconds = 0;                                  // wall clock of the step
    std::int64_t started_ms = 0;                         // Unix time; `append` fills it in when it is 0
    nlohmann::json gates = nlohmann::json::array();      // [{"gate", "passed", "seconds", "detail"}], in the order they ran
    nlohmann::json evidence = nlohmann::json::object();  // docs/journal.md, "Evidence"
    nlohmann::json state = nlohmann::json::object();     // the loop's own, for resume
    std::vector<Exchange> exchanges;

    std::int64_t tokens() const;
    double cost_usd() const;
};

struct Run {
    std::string id;  // made by `begin`: task name, time and a few random letters
    std::string task_name;
    std::string task_text;  // the task file, whole: a run resumes without it
    std::string proposer;
    nlohmann::json settings = nlohmann::json::object();  // what `optimize` was asked: budgets, target, seed, switches
    nlohmann::json facts = nlohmann::json::object();  // learned on the way: {"peer": {"name", "microseconds"}, "roofline": {"microseconds",
                                                      // "bound"}, "device", "workload", ...}
    std::string state = "running";  // "running", "finished"; "interrupted" when it is read: running, but no process works on it
    std::string reason;             // why it ended, one line
    std::int64_t started_ms = 0, ended_ms = 0;
    std::string version;  // of Tilewright
};

// A run with its steps: what the report, the evidence and an export are made from.
struct RunDocument {
    Run run;
    std::vector<Step> steps;
};

struct RunSummary {
    Run run;
    int steps = 0, accepted = 0;
    std::optional<double> best_microseconds, best_speedup, best_roofline_share;
    std::int64_t tokens = 0;
    double cost_usd = 0;
    bool interrupted = false;  // "running", but no process works on it
};

class Journal {
public:
    // state_folder() / "journal.db"
    static std::filesystem::path default_path();
    static Result<Journal> open(const std::filesystem::path& path, Database::Mode mode);

    // Post-condition: the run is in the journal, with an id that no other run has.
    Result<std::string> begin(Run run);
    // A run of another journal with all its steps, as it is: its id, times and version stay. Refused where the id is there.
    Result<void> add(const RunDocument& document);
    // One transaction. Refuses a step whose number is not the next one: two processes work on the run.
    Result<void> append(const std::string& run, Step step);
    // Merges `facts` into the run's.
    Result<void> learn(const std::string& run, const nlohmann::json& facts);
    Result<void> finish(const std::string& run, const std::string& reason);
    // A finished or interrupted run goes on.
    Result<void> reopen(const std::string& run);

    Result<std::vector<RunSummary>> runs();  // newest first
    // `name` is an id, the unique beginning of one, or "last".
    Result<std::string> find(const std::string& name);
    Result<RunDocument> read(const std::string& run);

    const std::filesystem::path& path() const { return database_.path(); }

private:
    explicit Journal(Database database) : database_(std::move(database)) {}
    Result<void> insert_step(const std::string& run, const Step& step);
    Result<std::vector<Exchange>> exchanges(const std::string& run, int step);
    Database database_;
};

// Held while a process works on a run; the kernel releases it when the process dies, however it dies.
class RunLock {
public:
    static Result<RunLock> take(const Journal& journal, const std::string& run);
    static bool is_held(const std::filesystem::path& journal, const std::string& run);
    RunLock(RunLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
    RunLock& operator=(RunLock&&) = delete;
    ~RunLock();

private:
    explicit RunLock(int file) : file_(file) {}
    int file_;
};

// The whole run as JSON (schema in docs/journal.md). `compact` is for committing: sources of steps that were not accepted are left to
// their diffs, prompts and replies to their digests, the loop's state is left out. Such a run can be shown but not resumed.
nlohmann::json to_json(const RunDocument& document, bool compact);
nlohmann::json to_json(const Step& step, bool compact);
nlohmann::json to_json(const RunSummary& summary);
Result<RunDocument> run_from_json(const nlohmann::json& exported);

}  // namespace tw::plan
