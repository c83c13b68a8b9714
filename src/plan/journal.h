// The journal: every step of every optimisation run, in SQLite (docs/journal.md).
//
// A run is one call of `optimize` on one task; its steps are plan/step.h's. `append` writes a step in one transaction, so a
// process that is killed at any moment (kill -9, power) loses at most the step in flight. A run's state is a function of
// its header and its steps, so it goes on from the last one that was written.
//
// Several processes may write the same journal. One run is worked on by one process at a time: RunLock.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/sqlite.h"
#include "plan/step.h"

namespace tw::plan {

// A run with its steps: what the loop resumes from, and what the report, the evidence and an export are made from.
struct RunDocument {
    RunHeader header;
    std::string state;                // "running" (also what a kill leaves behind; see RunEntry::interrupted) or "finished"
    RunSummary summary;               // when finished
    std::vector<Step> steps;          // steps[i].number == i + 1
    std::vector<std::string> diffs;   // of each step against its parent, unified; empty where there is none
};

// The index in `steps` of the kernel that steps[i] changed: the attempt before it for a repair, else the last accepted one before it;
// -1 when there is none.
int parent_of(const std::vector<Step>& steps, int i);

// The index of the last accepted step, the kernel that the run stands for; -1 when there is none.
int best_of(const std::vector<Step>& steps);

// What the check said about a step's kernel: "proved", "violated", "not_proved", or "" when it was not reached.
std::string_view verdict_of(const Step& step);

// One row of `tilewright runs`.
struct RunEntry {
    RunHeader header;
    std::string state, outcome;
    int steps = 0, accepted = 0;
    std::optional<double> first_microseconds, best_microseconds, best_roofline_share;
    std::int64_t tokens = 0;
    double dollars = 0;
    bool interrupted = false;         // "running", but no process works on it
};

class Journal {
public:
    // state_folder() / "journal.db"
    static std::filesystem::path default_path();
    static Result<Journal> open(const std::filesystem::path& path, Database::Mode mode);

    // Post-condition: the run is in the journal, with an id that no other run has (task name, time, a few random letters), and header.id is it.
    Result<void> begin(RunHeader& header);
    // One transaction. Refuses a step whose number is not the next one: two processes work on the run.
    Result<void> append(const std::string& run, const Step& step);
    Result<void> finish(const std::string& run, const RunSummary& summary);
    // A finished or interrupted run goes on.
    Result<void> reopen(const std::string& run);

    Result<std::vector<RunEntry>> runs();                  // newest first
    // `name` is an id, the unique beginning of one, or "last".
    Result<std::string> find(const std::string& name);
    Result<RunDocument> read(const std::string& run);

    const std::filesystem::path& path() const { return database_.path(); }

private:
    explicit Journal(Database database) : database_(std::move(database)) {}
    Database database_;
};

// Held while a process works on a run; the operating system releases it when the process dies, however it dies.
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

// The loop's recorder on a journal. A step that cannot be written (disk full) is kept and written with the next one.
class JournalRecorder : public Recorder {
public:
    explicit JournalRecorder(Journal journal) : journal_(std::move(journal)) {}
    // Goes on with a run that exists: takes its lock and marks it as running.
    Result<void> resume(const std::string& run);

    std::string begin(RunHeader& header) override;
    std::string record(const Step& step) override;
    std::string end(const RunSummary& summary) override;

    Journal& journal() { return journal_; }
    const std::string& run() const { return run_; }

private:
    std::string flush();
    Journal journal_;
    std::optional<RunLock> lock_;
    std::string run_;
    std::vector<Step> waiting_;
};

// The whole run as JSON (schema in docs/journal.md). `compact` is for committing: sources of steps that were not accepted are left to
// their diffs, prompts and replies to their digests.
nlohmann::json to_json(const RunDocument& document, bool compact);
nlohmann::json to_json(const RunEntry& entry);
Result<RunDocument> run_from_json(const nlohmann::json& exported);

}  // namespace tw::plan
