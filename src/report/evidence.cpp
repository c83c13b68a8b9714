#include "report/evidence.h"

#include <fmt/format.h>

#include "base/digest.h"
#include "base/input.h"
#include "base/text.h"
#include "report/run_text.h"

namespace tw::report {
namespace {

using nlohmann::json;
using plan::FailureKind;

const json* gate_of(const plan::Step& step, const char* name) {
    if (!step.gates.is_array()) return nullptr;
    for (const json& gate : step.gates)
        if (gate.is_object() && text_in(gate, "gate") == name) return &gate;
    return nullptr;
}

// `key = "value"` of a task file; the file was read by the loader before, so a line is enough.
std::string task_value(const std::string& text, const std::string& key, const std::string& otherwise) {
    for (const auto line : split_lines(text)) {
        const auto t = trim(line);
        if (!t.empty() && t.front() == '[') break;
        if (t.substr(0, key.size()) != key) continue;
        const auto open = t.find('"'), close = t.rfind('"');
        const auto between = trim(t.substr(key.size(), open == std::string_view::npos ? 0 : open - key.size()));
        if (between == "=" && close > open) return std::string(t.substr(open + 1, close - open - 1));
    }
    return otherwise;
}

bool passed(const json* gate) {
    return gate && gate->contains("passed") && (*gate)["passed"].is_boolean() && (*gate)["passed"].get<bool>();
}

}  // namespace

plan::Result<json> evidence_certificate(const plan::RunDocument& d, int number) {
    const plan::Step* step = number < 0                                  ? best_step(d)
                             : number < static_cast<int>(d.steps.size()) ? &d.steps[static_cast<std::size_t>(number)]
                                                                         : nullptr;
    if (!step)
        return plan::fail(FailureKind::bad_input, fmt::format("run {} has no {}", d.run.id, number < 0 ? "accepted kernel" : "such step"));
    if (step->source.empty())
        return plan::fail(FailureKind::bad_input, fmt::format("step {} of run {} has no kernel", step->number, d.run.id));
    const json facts = step->evidence.is_object() ? step->evidence : json::object();
    const json gpu = facts.value("gpu", json());
    json missing = json::array();
    if (step->verdict != "proved") missing.push_back("no complete proof");
    if (!passed(gate_of(*step, "emulate"))) missing.push_back("not run on the emulator");
    if (!passed(gate_of(*step, "test"))) missing.push_back("not tested on a GPU");
    if (!step->microseconds) missing.push_back("not timed");
    const auto fact = [&](const char* key) {
        return d.run.facts.is_object() && d.run.facts.contains(key) && d.run.facts[key].is_object() ? d.run.facts[key] : json();
    };
    // Confirmation and peer belong to the kernel they were made with.
    const auto mine = [&](json f) {
        return f.is_object() && integer_in(f, "step", step->number, -1, 1 << 30) == step->number ? f : json();
    };
    const json peer = mine(fact("peer")), confirmation = mine(fact("confirmation"));
    if (!peer.is_object() || text_in(peer, "status", "measured") != "measured") missing.push_back("no peer was timed");
    if (!confirmation.is_object() || !confirmation.contains("fresh") || text_in(confirmation["fresh"], "status") != "right")
        missing.push_back("no fresh inputs");
    if (!confirmation.is_object() || !confirmation.contains("held_out")) missing.push_back("no held-out shapes");
    else if (confirmation["held_out"].empty()) missing.push_back("no held-out shapes in the task");
    json timing = nullptr;
    if (step->microseconds) {
        timing = {{"microseconds", *step->microseconds},
                  {"speedup_over_first", step->speedup ? json(*step->speedup) : json(nullptr)},
                  {"roofline_share", step->roofline_share ? json(*step->roofline_share) : json(nullptr)}};
        const json measured = gpu.is_object() ? gpu.value("timing", json()) : json();
        for (const char* key : {"interval", "rounds", "calls_per_graph", "sets", "l2", "l2_note", "clocks"})
            if (measured.is_object() && measured.contains(key)) timing[key] = measured[key];
        // Against the best kernel before it, in turn.
        if (gpu.is_object() && gpu.contains("ratio"))
            timing["over_best_before"] = {{"ratio", gpu["ratio"]}, {"interval", gpu.value("ratio_interval", json())}};
        if (gpu.is_object() && gpu.contains("timed_check")) timing["outputs_checked_after"] = gpu["timed_check"];
    }
    const json proof = part_in(facts, "proof", json::object());
    const json run_facts = d.run.facts.is_object() ? d.run.facts : json::object();
    const json settings = d.run.settings.is_object() ? d.run.settings : json::object();
    json tests = nullptr;
    if (gpu.is_object() && gpu.contains("check") && gpu["check"].is_object()) {
        tests = gpu["check"];
        tests["seed"] = gpu.value("seed", json());
        tests["sizes"] = gpu.value("sizes", json());
        tests["poisoned_outputs"] = true;  // what the evaluation always does: docs/measuring.md
        if (confirmation.is_object())
            tests["fresh"] = confirmation.value("fresh", json()), tests["held_out"] = confirmation.value("held_out", json());
    }
    return json{
        {"schema", 1},
        {"kind", "tilewright evidence"},
        {"version", d.run.version},
        {"run", {{"id", d.run.id}, {"step", step->number}, {"proposer", d.run.proposer}, {"started_ms", d.run.started_ms}}},
        {"task", {{"name", d.run.task_name}, {"text", d.run.task_text}}},
        {"kernel", {{"source", step->source}, {"sha256", digest_hex(step->source)}}},
        {"proof",
         {{"verdict", step->verdict},
          {"proved", facts.value("proved", json(0))},
          {"assertions", facts.value("obligations", json(0))},
          {"expectations", facts.value("expectations", json(0))},
          {"used", facts.value("used", json::array())},
          {"by_kind", proof.value("by_kind", json::object())},
          {"leaning_on", proof.value("used", json::object())},
          {"preconditions", proof.value("preconditions", json::array())}}},
        {"precision",
         {{"policy", task_value(d.run.task_text, "precision", "strict")}, {"target", task_value(d.run.task_text, "target", "sm_90a")}}},
        {"gates", step->gates},
        {"tests", tests},
        {"timing", timing},
        {"resources", facts.value("resources", json())},
        {"machine",
         {{"device", run_facts.value("device", json())}, {"versions", gpu.is_object() ? gpu.value("versions", json()) : json()}}},
        {"roofline", run_facts.value("roofline", json())},
        {"peer", peer},
        {"settings",
         {{"seed", settings.value("seed", json())},
          {"candidates", settings.value("candidates", json())},
          {"rounds", settings.value("rounds", json())}}},
        {"measured", gpu},
        {"missing", missing},
        {"replay", "tilewright replay CERTIFICATE.json"}};
}

plan::Result<CertifiedKernel> certified_kernel(const json& certificate) {
    const auto text_at = [](const json& j, const char* key) {
        return j.is_object() && j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : std::string();
    };
    if (text_at(certificate, "kind") != "tilewright evidence")
        return plan::fail(FailureKind::bad_input, "this is no certificate",
                          "make one with `tilewright show RUN --evidence > certificate.json`");
    if (!certificate.contains("schema") || certificate["schema"] != 1)
        return plan::fail(FailureKind::bad_input, "this certificate has another schema than 1");
    const json kernel = certificate.value("kernel", json()), task = certificate.value("task", json()),
               timing = certificate.value("timing", json());
    CertifiedKernel out{text_at(task, "text"), text_at(kernel, "source"), {}};
    if (out.source.empty() || out.task_text.empty()) return plan::fail(FailureKind::bad_input, "this certificate has no kernel or no task");
    if (digest_hex(out.source) != text_at(kernel, "sha256"))
        return plan::fail(FailureKind::bad_input, "the kernel in this certificate is not the one it was made for: the digest differs");
    if (timing.is_object() && timing.contains("microseconds") && timing["microseconds"].is_number())
        out.microseconds = timing["microseconds"].get<double>();
    return out;
}

}  // namespace tw::report
