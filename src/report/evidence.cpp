#include "report/evidence.h"

#include <fmt/format.h>

#include "base/digest.h"
#include "report/run_text.h"

namespace tw::report {
namespace {

using nlohmann::json;
using plan::FailureKind;

const json* gate_of(const plan::Step& step, const char* name) {
    if (!step.gates.is_array()) return nullptr;
    for (const json& gate : step.gates)
        if (gate.is_object() && gate.value("gate", "") == name) return &gate;
    return nullptr;
}

bool passed(const json* gate) { return gate && gate->contains("passed") && (*gate)["passed"].is_boolean() && (*gate)["passed"].get<bool>(); }

}  // namespace

plan::Result<json> evidence_certificate(const plan::RunDocument& d, int number) {
    const plan::Step* step = number < 0 ? best_step(d) : number < static_cast<int>(d.steps.size()) ? &d.steps[static_cast<std::size_t>(number)] : nullptr;
    if (!step) return plan::fail(FailureKind::bad_input, fmt::format("run {} has no {}", d.run.id, number < 0 ? "accepted kernel" : "such step"));
    if (step->source.empty()) return plan::fail(FailureKind::bad_input, fmt::format("step {} of run {} has no kernel", step->number, d.run.id));
    const json facts = step->evidence.is_object() ? step->evidence : json::object();
    const json gpu = facts.value("gpu", json());
    json missing = json::array();
    if (step->verdict != "proved") missing.push_back("no complete proof");
    if (!passed(gate_of(*step, "emulate"))) missing.push_back("not run on the emulator");
    if (!passed(gate_of(*step, "test"))) missing.push_back("not tested on a GPU");
    if (!step->microseconds) missing.push_back("not timed");
    if (!d.run.facts.contains("peer")) missing.push_back("no peer was timed");
    json timing = nullptr;
    if (step->microseconds) {
        timing = {{"microseconds", *step->microseconds}, {"speedup_over_first", step->speedup ? json(*step->speedup) : json(nullptr)}, {"roofline_share", step->roofline_share ? json(*step->roofline_share) : json(nullptr)}};
        for (const char* key : {"us_interval", "interval", "ratio", "ratio_interval", "rounds", "l2", "clocks"})
            if (gpu.is_object() && gpu.contains(key)) timing[key] = gpu[key];
    }
    return json{{"schema", 1},
                {"kind", "tilewright evidence"},
                {"version", d.run.version},
                {"run", {{"id", d.run.id}, {"step", step->number}, {"proposer", d.run.proposer}, {"started_ms", d.run.started_ms}}},
                {"task", {{"name", d.run.task_name}, {"text", d.run.task_text}}},
                {"kernel", {{"source", step->source}, {"sha256", digest_hex(step->source)}}},
                {"proof", {{"verdict", step->verdict}, {"proved", facts.value("proved", json(0))}, {"assertions", facts.value("obligations", json(0))}, {"expectations", facts.value("expectations", json(0))}, {"used", facts.value("used", json::array())}}},
                {"gates", step->gates},
                {"tests", gpu.is_object() && gpu.contains("check") ? gpu["check"] : json(nullptr)},
                {"timing", timing},
                {"resources", facts.value("resources", json())},
                {"machine", {{"device", d.run.facts.value("device", json())}, {"versions", gpu.is_object() ? gpu.value("versions", json()) : json()}}},
                {"roofline", d.run.facts.value("roofline", json())},
                {"peer", d.run.facts.value("peer", json())},
                {"measured", gpu},
                {"missing", missing},
                {"replay", "tilewright replay CERTIFICATE.json"}};
}

plan::Result<CertifiedKernel> certified_kernel(const json& certificate) {
    const auto text_at = [](const json& j, const char* key) { return j.is_object() && j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : std::string(); };
    if (text_at(certificate, "kind") != "tilewright evidence") return plan::fail(FailureKind::bad_input, "this is no certificate", "make one with `tilewright show RUN --evidence > certificate.json`");
    if (!certificate.contains("schema") || certificate["schema"] != 1) return plan::fail(FailureKind::bad_input, "this certificate has another schema than 1");
    const json kernel = certificate.value("kernel", json()), task = certificate.value("task", json()), timing = certificate.value("timing", json());
    CertifiedKernel out{text_at(task, "text"), text_at(kernel, "source"), {}};
    if (out.source.empty() || out.task_text.empty()) return plan::fail(FailureKind::bad_input, "this certificate has no kernel or no task");
    if (digest_hex(out.source) != text_at(kernel, "sha256")) return plan::fail(FailureKind::bad_input, "the kernel in this certificate is not the one it was made for: the digest differs");
    if (timing.is_object() && timing.contains("microseconds") && timing["microseconds"].is_number()) out.microseconds = timing["microseconds"].get<double>();
    return out;
}

}  // namespace tw::report
