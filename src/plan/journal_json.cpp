// A run as JSON, and back. Schema: docs/journal.md.
#include <fmt/format.h>

#include <limits>

#include "base/digest.h"
#include "base/input.h"
#include "plan/journal.h"
#include "plan/text_diff.h"

namespace tw::plan {
namespace {

using nlohmann::json;

constexpr int kExportSchema = 1;

json optional_number(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

json to_json(const Exchange& e, bool compact) {
    json j = {{"proposer", e.proposer},
              {"tokens_in", e.tokens_in},
              {"tokens_out", e.tokens_out},
              {"cost_usd", e.cost_usd},
              {"seconds", e.seconds}};
    if (!e.model.empty()) j["model"] = e.model;
    if (!e.prompt_version.empty()) j["prompt_version"] = e.prompt_version;
    if (!e.failure.empty()) j["failure"] = e.failure;
    if (compact) {
        j["prompt_digest"] = digest_hex(e.prompt).substr(0, 16);
        j["reply_digest"] = digest_hex(e.reply).substr(0, 16);
    } else {
        j["prompt"] = e.prompt;
        j["reply"] = e.reply;
    }
    return j;
}

json to_json(const Run& run) {
    return {{"id", run.id},
            {"task_name", run.task_name},
            {"task_text", run.task_text},
            {"proposer", run.proposer},
            {"settings", run.settings},
            {"facts", run.facts},
            {"state", run.state},
            {"reason", run.reason},
            {"started_ms", run.started_ms},
            {"ended_ms", run.ended_ms},
            {"version", run.version}};
}

// A file that a person may have edited: every field is optional, a wrong type is the default.
std::string text_of(const json& j, const char* key) { return text_in(j, key); }
double number_of(const json& j, const char* key) { return number_in(j, key); }
std::int64_t integer_of(const json& j, const char* key, std::int64_t otherwise = 0) {
    return integer_in(j, key, otherwise, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
}
int small_of(const json& j, const char* key, int otherwise) { return static_cast<int>(integer_in(j, key, otherwise, -2, 1'000'000'000)); }
std::optional<double> optional_of(const json& j, const char* key) {
    const auto it = j.find(key);
    if (it == j.end() || !it->is_number()) return std::nullopt;
    return it->get<double>();
}
json part_of(const json& j, const char* key, json otherwise) { return part_in(j, key, std::move(otherwise)); }

Step step_from(const json& j) {
    Step s;
    s.number = small_of(j, "number", 0), s.parent = small_of(j, "parent", -1);
    s.stage = text_of(j, "stage"), s.technique = text_of(j, "technique"), s.outcome = text_of(j, "outcome"),
    s.verdict = text_of(j, "verdict");
    s.failure_class = text_of(j, "failure_class"), s.message = text_of(j, "message"), s.source = text_of(j, "source"),
    s.diff = text_of(j, "diff");
    s.microseconds = optional_of(j, "microseconds"), s.speedup = optional_of(j, "speedup"),
    s.roofline_share = optional_of(j, "roofline_share");
    s.seconds = number_of(j, "seconds"), s.started_ms = integer_of(j, "started_ms");
    s.gates = part_of(j, "gates", json::array()), s.evidence = part_of(j, "evidence", json::object()),
    s.state = part_of(j, "state", json::object());
    for (const json& e : part_of(j, "exchanges", json::array())) {
        if (!e.is_object()) continue;
        s.exchanges.push_back({text_of(e, "proposer"), text_of(e, "model"), text_of(e, "prompt_version"), text_of(e, "prompt"),
                               text_of(e, "reply"), integer_of(e, "tokens_in"), integer_of(e, "tokens_out"), number_of(e, "cost_usd"),
                               number_of(e, "seconds"), text_of(e, "failure")});
    }
    return s;
}

}  // namespace

// What a compact export says of a kernel that is not the best: its time and its ratio to the best before it.
json brief(const json& evidence) {
    json out = json::object();
    for (const char* key : {"proved", "obligations", "expectations", "resources"})
        if (evidence.contains(key)) out[key] = evidence[key];
    if (const auto gpu = evidence.find("gpu"); gpu != evidence.end() && gpu->is_object()) {
        for (const char* key : {"status", "us", "ratio", "ratio_interval", "seconds", "stages"})
            if (gpu->contains(key)) out["gpu"][key] = (*gpu)[key];
    }
    return out;
}

json to_json(const Step& s, bool compact) {
    json j = {{"number", s.number},
              {"parent", s.parent},
              {"stage", s.stage},
              {"technique", s.technique},
              {"outcome", s.outcome},
              {"verdict", s.verdict},
              {"message", s.message},
              {"microseconds", optional_number(s.microseconds)},
              {"speedup", optional_number(s.speedup)},
              {"roofline_share", optional_number(s.roofline_share)},
              {"seconds", s.seconds},
              {"started_ms", s.started_ms},
              {"gates", s.gates},
              {"evidence", s.evidence}};
    if (!s.failure_class.empty()) j["failure_class"] = s.failure_class;
    // A diff against an empty parent, or none at all, cannot stand for the source.
    const bool needs_source = !compact || s.outcome == "accepted" || s.parent < 0 || s.diff.empty();
    if (needs_source) j["source"] = s.source;
    if (!s.diff.empty()) j["diff"] = s.diff;
    if (!compact) j["state"] = s.state;
    if (!s.exchanges.empty()) {
        j["exchanges"] = json::array();
        for (const Exchange& e : s.exchanges) j["exchanges"].push_back(to_json(e, compact));
    }
    return j;
}

json to_json(const RunSummary& s) {
    return {{"id", s.run.id},
            {"task", s.run.task_name},
            {"proposer", s.run.proposer},
            {"state", s.interrupted ? "interrupted" : s.run.state},
            {"reason", s.run.reason},
            {"started_ms", s.run.started_ms},
            {"ended_ms", s.run.ended_ms},
            {"steps", s.steps},
            {"accepted", s.accepted},
            {"best_microseconds", optional_number(s.best_microseconds)},
            {"best_speedup", optional_number(s.best_speedup)},
            {"best_roofline_share", optional_number(s.best_roofline_share)},
            {"tokens", s.tokens},
            {"cost_usd", s.cost_usd}};
}

json to_json(const RunDocument& document, bool compact) {
    json steps = json::array();
    int best = -1;
    for (const Step& step : document.steps)
        if (step.outcome == "accepted") best = step.number;
    for (const Step& step : document.steps) {
        steps.push_back(to_json(step, compact));
        if (compact && step.number != best && step.evidence.is_object()) steps.back()["evidence"] = brief(step.evidence);
    }
    return {{"schema", kExportSchema},
            {"kind", "tilewright run"},
            {"compact", compact},
            {"run", to_json(document.run)},
            {"steps", std::move(steps)}};
}

Result<RunDocument> run_from_json(const json& exported) {
    if (!exported.is_object() || text_of(exported, "kind") != "tilewright run")
        return fail(FailureKind::bad_input, "this is not an exported run", "make one with `tilewright show RUN --export FILE`");
    if (integer_of(exported, "schema") != kExportSchema)
        return fail(FailureKind::bad_input, fmt::format("this run was exported with schema {}; this program reads {}",
                                                        integer_of(exported, "schema"), kExportSchema));
    RunDocument document;
    const json run = part_of(exported, "run", json::object());
    document.run = {text_of(run, "id"),
                    text_of(run, "task_name"),
                    text_of(run, "task_text"),
                    text_of(run, "proposer"),
                    part_of(run, "settings", json::object()),
                    part_of(run, "facts", json::object()),
                    text_of(run, "state"),
                    text_of(run, "reason"),
                    integer_of(run, "started_ms"),
                    integer_of(run, "ended_ms"),
                    text_of(run, "version")};
    for (const json& step : part_of(exported, "steps", json::array())) {
        if (!step.is_object()) return fail(FailureKind::bad_input, "a step of this run is no object");
        document.steps.push_back(step_from(step));
        Step& s = document.steps.back();
        const int here = static_cast<int>(document.steps.size()) - 1;
        if (s.number != here || s.parent >= here || s.parent < -1)
            return fail(FailureKind::bad_input, fmt::format("step {} of this run has number {} and parent {}", here, s.number, s.parent));
        if (!s.source.empty() || s.diff.empty() || s.parent < 0) continue;
        if (!apply_unified_diff(document.steps[static_cast<std::size_t>(s.parent)].source, s.diff, s.source))
            return fail(FailureKind::bad_input, fmt::format("the diff of step {} does not fit step {}", here, s.parent));
    }
    return document;
}

}  // namespace tw::plan
