// `tilewright bench --suite NAME`: every case of a list against its peers; the table's data, and pictures of it.
//
// A list (bench/suites/NAME.json) is {"suite": name, "cases": [{"case", "file", "kernel", "constants", "sizes", "scalars", "l2", "notes",
//   "inputs_from", "arguments",                       contents that must fit one another: a function of bench/suite_inputs.py
//   "peers": ["cublaslt", {"file": F, "constants": {..}}, {"torch": EXPRESSION, "name", "prelude", "setup"}]}]}.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "units/engine.h"

namespace tw::cli {

struct SuiteOptions {
    std::string name;  // of bench/suites/, or a path
    std::string json_out, svg_out;
    std::string only;   // cases whose name contains this
    std::string exact;  // the case of this name alone
    std::string unit_result;
    bool resume = false;  // rows that json_out has of the same CUDA text are kept and not measured again
    int rounds = 30, heuristics = 64;
    double timeout = 60;
};

int run_suite(const SuiteOptions& options);
// A case is a unit.
int suite_with_engine(const SuiteOptions& options, const units::EngineOptions& engine);
// The same for a list in memory.
int run_cases(const nlohmann::json& suite, const SuiteOptions& options);

// The picture of a result that was written before; to the standard output when no file is named.
int draw_suite(const std::string& file, const std::string& svg_out);

// Bytes and operations of every row of a result counted anew from its kernel and sizes, and what is derived from them; times stay as they
// were measured. Written to `json_out`.
int recount_suite(const std::string& file, const std::string& json_out);

}  // namespace tw::cli
