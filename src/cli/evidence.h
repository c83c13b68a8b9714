// What run, bench and tune share: requests for the GPU worker from the command line, and evidence as text.
#pragma once

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/session.h"

namespace tw::cli {

// The options by which a candidate and its measurement are described.
struct CandidateOptions {
    std::string file, kernel, inputs;  // file may carry "@BM=64,..."
    std::vector<std::string> settings, constants, scalars;
    std::uint64_t seed = 1;
    double tolerance = 0;
    double timeout = 60;
};
void declare_candidate(CLI::App& app, CandidateOptions& options, bool file_required);

// The worker's request, or the exit status of what is wrong (already said on standard error). The file is loaded here once, so that
// the language's diagnostics are shown with their source lines.
struct Requested {
    int exit_code = 0;
    nlohmann::json request;
};
Requested request_from(const CandidateOptions& options);
// The same for a file that takes its sizes and everything else from `base` ("FILE[@constants]").
Requested request_for_file(const std::string& spec, const nlohmann::json& base);

// A few lines for a person.
std::string describe(const nlohmann::json& evidence);

// The command that repeats this run, with the words of the one that was given.
std::string own_command();
std::string own_command_name();  // its first word: "check"
void remember_command(int argc, char** argv);

// Writes JSON to a file, or to standard output for "-". False, and a complaint, when it cannot be written.
bool write_json(const std::string& path, const nlohmann::json& value);

}  // namespace tw::cli
