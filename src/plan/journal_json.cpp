// A run as JSON, and back. Schema: docs/journal.md.
#include <fmt/format.h>

#include "base/digest.h"
#include "plan/journal.h"
#include "plan/text_diff.h"

namespace tw::plan {
namespace {

using nlohmann::json;

constexpr int kSchema = 1;

json optional_number(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

// A file that a person may have edited: a field that is missing or of another type is empty.
std::string text_of(const json& j, const char* key) {
    const auto it = j.is_object() ? j.find(key) : j.end();
    return j.is_object() && it != j.end() && it->is_string() ? it->get<std::string>() : std::string();
}
int integer_of(const json& j, const char* key) {
    return j.is_object() && j.contains(key) && j[key].is_number_integer() ? j[key].get<int>() : 0;
}
json part_of(const json& j, const char* key) { return j.is_object() && j.contains(key) ? j[key] : json(); }

json step_json(const RunDocument& document, std::size_t i, bool compact) {
    const Step& step = document.steps[i];
    const std::string diff = i < document.diffs.size() ? document.diffs[i] : std::string();
    json j = to_json(step);
    j["verdict"] = verdict_of(step);
    if (!diff.empty()) j["diff"] = diff;
    if (!compact) return j;
    if (!step.accepted && !diff.empty()) j.erase("source");
    for (const char* key : {"prompt", "reply"}) {
        const std::string text = text_of(j["usage"], key);
        j["usage"].erase(key);
        if (!text.empty()) j["usage"][std::string(key) + "_digest"] = digest_hex(text).substr(0, 16);
    }
    return j;
}

}  // namespace

json to_json(const RunEntry& e) {
    const bool both = e.first_microseconds && e.best_microseconds && *e.best_microseconds > 0;
    return {{"id", e.header.id}, {"task", e.header.task_name}, {"proposer", e.header.proposer}, {"state", e.interrupted ? "interrupted" : e.state}, {"outcome", e.outcome},
            {"started", e.header.started}, {"machine", e.header.machine}, {"steps", e.steps}, {"accepted", e.accepted}, {"best_microseconds", optional_number(e.best_microseconds)},
            {"speedup_over_first", both ? json(*e.first_microseconds / *e.best_microseconds) : json(nullptr)}, {"best_roofline_share", optional_number(e.best_roofline_share)},
            {"tokens", e.tokens}, {"dollars", e.dollars}};
}

json to_json(const RunDocument& d, bool compact) {
    json steps = json::array();
    for (std::size_t i = 0; i < d.steps.size(); ++i) steps.push_back(step_json(d, i, compact));
    const RunHeader& h = d.header;
    return {{"schema", kSchema}, {"kind", "tilewright run"}, {"compact", compact},
            {"run", {{"id", h.id}, {"task_name", h.task_name}, {"task_text", h.task_text}, {"proposer", h.proposer}, {"options", h.options}, {"version", h.version}, {"machine", h.machine}, {"started", h.started}}},
            {"state", d.state},
            {"summary", {{"outcome", d.summary.outcome}, {"candidates", d.summary.candidates}, {"best_step", d.summary.best_step}, {"statement", d.summary.statement}, {"figures", d.summary.figures}}},
            {"steps", std::move(steps)}};
}

Result<RunDocument> run_from_json(const json& exported) {
    if (text_of(exported, "kind") != "tilewright run") return fail(FailureKind::bad_input, "this is not an exported run", "make one with `tilewright show RUN --export FILE`");
    if (integer_of(exported, "schema") != kSchema)
        return fail(FailureKind::bad_input, fmt::format("this run was exported with schema {}; this program reads {}", integer_of(exported, "schema"), kSchema));
    RunDocument document;
    const json run = part_of(exported, "run"), summary = part_of(exported, "summary");
    document.header = {text_of(run, "id"), text_of(run, "task_name"), text_of(run, "task_text"), text_of(run, "proposer"), part_of(run, "options"),
                       text_of(run, "version"), text_of(run, "machine"), text_of(run, "started")};
    document.state = text_of(exported, "state");
    document.summary = {text_of(summary, "outcome"), integer_of(summary, "candidates"), integer_of(summary, "best_step"), text_of(summary, "statement"), part_of(summary, "figures")};
    const json steps = part_of(exported, "steps");
    if (!steps.is_array()) return fail(FailureKind::bad_input, "this run has no list of steps");
    for (json j : steps) {
        const int number = static_cast<int>(document.steps.size()) + 1;
        Step step;
        const bool by_diff = j.is_object() && !j.contains("source");
        if (by_diff) j["source"] = "";
        if (!from_json(j, step) || step.number != number) return fail(FailureKind::bad_input, fmt::format("step {} of this run is damaged", number));
        document.steps.push_back(std::move(step));
        document.diffs.push_back(text_of(j, "diff"));
        if (!by_diff) continue;
        const int parent = parent_of(document.steps, number - 1);
        if (parent < 0 || !apply_unified_diff(document.steps[static_cast<std::size_t>(parent)].source, document.diffs.back(), document.steps.back().source))
            return fail(FailureKind::bad_input, fmt::format("the diff of step {} does not fit", number));
    }
    return document;
}

}  // namespace tw::plan
