// What commands that work on many units share: --engine and its options, the live table, and what becomes of the results.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "units/engine.h"

namespace tw::cli {

void declare_engine(CLI::App& app, units::EngineOptions& options);
// Where a unit leaves its result for `tilewright unit`; not shown in --help.
void declare_unit_result(CLI::App& app, std::string& path);

// "crosscheck/seed 1 to 10": the units of one command, with copies of the files that they read.
struct UnitsPlan {
    units::Manifest manifest;
    std::map<std::string, std::string> files;  // of inputs/, by name
    // Copies a file into the inputs; its word in a unit. A problem when it cannot be read.
    std::string add_file(const std::string& path, std::string& problem);
    void add(std::string name, std::string command, std::vector<std::string> words);
};

// One result of each unit, by content: what `merge` and the command itself make their tables from. A unit without a result is missing.
struct UnitResults {
    const units::Manifest* manifest = nullptr;
    std::vector<std::optional<nlohmann::json>> results;  // the member "result", in the order of the manifest
    std::size_t missing() const;
};

// Drives the units to their end and then calls `finish`; an ExitCode. Ctrl-C detaches and says how to attach.
int run_units(units::EngineOptions engine, UnitsPlan plan, const std::function<int(const UnitResults&)>& finish);
// The same for a folder that is there; an engine without a name only watches.
int watch_units(const units::EngineOptions& engine, const units::Manifest& manifest, const std::function<int()>& finish);

// What a command makes of its units' results; `json` may be empty.
int combine_crosscheck(const UnitResults& results, const std::string& json);
int combine_mutate(const UnitResults& results, const std::string& json);
int combine_bench(const UnitResults& results, const std::string& json);
int combine_tune(const UnitResults& results, const std::string& json);
int combine_suite(const UnitResults& results, const std::string& folder);
int combine_optimize(const UnitResults& results, const std::string& json);

}  // namespace tw::cli
