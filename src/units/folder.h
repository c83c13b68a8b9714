// Units of work in a shared folder: what an engine (this machine, Slurm, Ray) may run anywhere, kill and repeat.
//
//   FOLDER/units.json          the manifest: which units there are. Written once, before the first unit starts.
//   FOLDER/inputs/NAME         copies of the files that units read; the manifest has their digests
//   FOLDER/results/7.json      the result of unit 7: written once, under another name first; its presence means "done"
//   FOLDER/attempts/7.1.json   the first attempt at unit 7: where and since when; then how it ended
//   FOLDER/failed/7.json       unit 7 is given up after its last attempt, with the reason
//   FOLDER/logs/               what the engine's processes said
//
// A unit is one command of this program over its own inputs. Its result depends on nothing else, so whoever writes it first is right:
// two workers on the same unit (a node that was thought lost) do no harm. The number of attempts is bounded by files that are made
// exclusively, whoever repeats: the engine, the driver or the unit itself.
//
// A folder may come from anywhere. Its manifest names commands and options of a fixed list (`unit_problem`) and inputs by plain names; it
// cannot name a program, a file elsewhere or an option of an engine.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/failure.h"

namespace tw::units {

using runtime::fail;
using runtime::FailureKind;
using runtime::Result;

constexpr int kAttempts = 2;  // the first and one repetition
constexpr std::size_t kMaxUnits = 100000;

struct Unit {
    std::string name;                // for people; no two units have the same
    std::string command;             // of `unit_problem`'s list
    std::vector<std::string> words;  // "--seed=7", "--exact", "inputs/gemm.py@BM=64"
};

struct Manifest {
    std::string command;  // what was asked, for people
    std::string program;  // which build of which version the results are of
    std::vector<Unit> units;
    std::map<std::string, std::string> inputs;        // name to digest
    double seconds = 600;                             // wall clock of one attempt
    nlohmann::json about = nlohmann::json::object();  // what `merge` needs besides: options of the command
};

// "0.1 3fb987ec...": the version and the linker's id of this build.
std::string program_identity();

// What is wrong with a unit that somebody wrote into a manifest; empty: nothing.
std::string unit_problem(const Unit& unit, const Manifest& manifest);
bool uses_gpu(const std::string& command);  // it times something
bool runs_python(const Unit& unit);         // its inputs are Python programs: started only where the user says so
bool is_deterministic(const std::string& command);

// Of the unit, its inputs and the program: results with another digest are of another unit.
std::string unit_digest(const Manifest& manifest, std::size_t unit);
std::string manifest_digest(const Manifest& manifest);

nlohmann::json to_json(const Manifest& manifest);
Result<Manifest> read_manifest(const std::filesystem::path& folder);
// Makes the folder, its inputs (`files`: name to content) and the manifest. A folder that has the same manifest is gone on with; another is
// refused.
Result<void> make_folder(const std::filesystem::path& folder, const Manifest& manifest, const std::map<std::string, std::string>& files);

// What is known by the names of files alone.
struct State {
    std::vector<int> attempts;  // of each unit
    std::vector<bool> done, failed;
    std::size_t done_count = 0, failed_count = 0, running_count = 0;  // running: an attempt, and neither a result nor given up
    bool settled(std::size_t i) const { return done[i] || failed[i]; }
    bool all_settled() const { return done_count + failed_count == done.size(); }
};
Result<State> scan(const std::filesystem::path& folder, std::size_t units);

// The result of a unit: {"schema", "unit": its digest, "name", "command", "status", "result"}; nothing when there is none, or it is of
// another unit.
std::optional<nlohmann::json> read_result(const std::filesystem::path& folder, const Manifest& manifest, std::size_t unit);
// Written once: what is there already stays. False in `first`: somebody was faster.
Result<void> write_once(const std::filesystem::path& path, std::string_view content, bool& first);

struct Attempt {
    int number = 0;
    std::string host, end;  // end: "" while it goes on
    double started = 0, seconds = 0;
    nlohmann::json gpu;
};
std::optional<Attempt> read_attempt(const std::filesystem::path& folder, std::size_t unit, int number);

// One invocation: attempts until there is a result or none is left. What became of it: an exit status (0: the result is there).
struct PerformOptions {
    bool allow_python = false;
    std::string proposer;  // of `optimize` units, instead of their own; may be a program
};
int perform(const std::filesystem::path& folder, std::size_t unit, const PerformOptions& options, std::string& words);

}  // namespace tw::units
