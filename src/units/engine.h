// Engines start invocations `tilewright unit FOLDER INDEX` and say which of them are queued or running. They queue, place and lease; what
// is done and what is repeated is decided by the folder (units/folder.h), in the same way for all of them.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "units/folder.h"

namespace tw::units {

// Always from the command line, never from a folder.
struct EngineOptions {
    std::string name;  // "local", "slurm", "ray"; empty: none was asked for
    std::string folder;
    int jobs = 0;          // at the same time; 0: local all cores, else what the engine gives
    double seconds = 600;  // wall clock of one attempt
    // Slurm
    std::string partition, gres, time, container;
    std::vector<std::string> options;  // further words of sbatch
    // Ray
    std::string address;
    double gpus = -1;   // of a unit; below 0: 1 where it times something, else 0
    double budget = 0;  // seconds of the whole; what is not done by then is left; 0: none
    PerformOptions perform;
};

class Engine {
public:
    virtual ~Engine() = default;
    virtual Result<void> start(const std::vector<std::size_t>& units) = 0;
    // Units that are queued or running. Nothing: the engine does not answer now, ask later.
    virtual std::optional<std::set<std::size_t>> alive() = 0;
    // Why a unit's worker ended, where the engine knows; else empty.
    virtual std::string why(std::size_t unit) { return unit == 0 ? "" : ""; }
    virtual bool survives() const { return false; }  // units go on when the driver ends
    virtual void cancel() = 0;
    virtual std::string about() const { return {}; }
};

Result<std::unique_ptr<Engine>> make_engine(const EngineOptions& options, const Manifest& manifest);
Result<std::unique_ptr<Engine>> make_local(const EngineOptions& options, const Manifest& manifest);
Result<std::unique_ptr<Engine>> make_slurm(const EngineOptions& options, const Manifest& manifest);
Result<std::unique_ptr<Engine>> make_ray(const EngineOptions& options, const Manifest& manifest);

// The words of `tilewright unit` for one unit.
std::vector<std::string> invocation(const EngineOptions& options);

// What a watcher shows.
struct Progress {
    std::size_t units = 0, done = 0, failed = 0, running = 0, repeated = 0;
    double elapsed = 0, left = -1;  // seconds; left below 0: not known yet
    std::map<std::string, int> hosts;
    std::vector<std::string> failures;  // "name: why", at most a few
};

enum class DriveEnd { complete, with_failures, detached, out_of_budget };
struct Driven {
    DriveEnd end = DriveEnd::complete;
    Progress progress;
};
// Starts what is not settled and watches until all is, or until `stop`. Without an engine it only watches.
Result<Driven> drive(const EngineOptions& options, const Manifest& manifest, const std::function<bool()>& stop,
                     const std::function<void(const Progress&)>& show);

// The state as JSON: {"units", "done", "failed", "running", "waiting", "repeated", "left_s", "failures"}.
nlohmann::json to_json(const Progress& progress);
Result<Progress> look(const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace tw::units
