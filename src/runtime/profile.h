// What a kernel does on the machine: counters by ncu where the driver allows it, otherwise what its machine code and the compiler say;
// and compute-sanitizer's reports. Both tools run a worker of ours on one request.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/failure.h"

namespace tw::runtime {

// The machine code as text, by cuobjdump or nvdisasm, whichever is in PATH.
Result<std::string> disassemble(const std::string& cubin);

// Instructions by kind, counted in the text (each once, however often it runs).
struct InstructionMix {
    int total = 0;
    std::map<std::string, int> kinds;    // "tensor", "global load", "shared store", "fp32", "integer", "barrier", ...
    std::map<std::string, int> opcodes;  // "HGMMA", "LDG", ...
};
InstructionMix instruction_mix(std::string_view sass);
const char* instruction_kind(std::string_view opcode);

struct Metric {
    std::string kernel, name, unit;
    double value = 0;
};
// The CSV that `ncu --csv --print-units base` prints, its other lines skipped.
std::vector<Metric> parse_ncu_csv(std::string_view text);

// The metrics that bear on a decision, with what each means.
struct MetricMeaning {
    const char* name;
    const char* meaning;
};
const std::vector<MetricMeaning>& chosen_metrics();

// {"source": "ncu", "metrics": {name: {value, unit, meaning}}} of the request's kernel, or {"source": "static", "why": ..., "mix": ...}.
nlohmann::json profile(const nlohmann::json& request, double seconds, const std::vector<MetricMeaning>& metrics = chosen_metrics());

// Runs the request under compute-sanitizer: {"tool", "errors", "report", "evidence"}; "problem" when the tool did not do its work.
nlohmann::json sanitize(const nlohmann::json& request, const std::string& tool, double seconds);

// Static figures with the instruction mix of every kernel.
nlohmann::json static_profile(const nlohmann::json& request);

}  // namespace tw::runtime
