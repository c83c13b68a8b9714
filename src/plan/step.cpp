#include "plan/step.h"

#include <array>

namespace tw::plan {
namespace {

constexpr std::array<std::string_view, 6> kStages = {"first", "structure", "memory", "pipeline", "instruction", "constants"};
constexpr std::array<std::string_view, 13> kFailures = {"none",     "proposal", "syntax",  "type",     "specification", "invariant", "race",
                                                        "unproved", "numeric",  "resource", "launch", "timeout",       "slower"};
constexpr std::array<std::string_view, 3> kStatus = {"passed", "failed", "skipped"};

template <class E, std::size_t N>
bool parse_name(const std::array<std::string_view, N>& names, std::string_view text, E& into) {
    for (std::size_t i = 0; i < N; ++i) {
        if (names[i] == text) {
            into = static_cast<E>(i);
            return true;
        }
    }
    return false;
}

}  // namespace

std::string_view name_of(Stage stage) { return kStages[static_cast<std::size_t>(stage)]; }
bool parse_stage(std::string_view text, Stage& into) { return parse_name(kStages, text, into); }
std::string_view name_of(FailureClass failure) { return kFailures[static_cast<std::size_t>(failure)]; }
bool parse_failure_class(std::string_view text, FailureClass& into) { return parse_name(kFailures, text, into); }

nlohmann::json to_json(const Step& s) {
    nlohmann::json gates = nlohmann::json::array();
    for (const GateResult& g : s.gates) {
        gates.push_back({{"gate", g.gate}, {"status", kStatus[static_cast<std::size_t>(g.status)]}, {"seconds", g.seconds}, {"text", g.text}});
    }
    return {{"number", s.number},
            {"stage", name_of(s.stage)},
            {"technique", s.technique},
            {"attempt", s.attempt},
            {"proposer", s.proposer},
            {"bottleneck", s.bottleneck},
            {"source", s.source},
            {"note", s.note},
            {"failure", name_of(s.failure)},
            {"accepted", s.accepted},
            {"feedback", s.feedback},
            {"gates", gates},
            {"proof", {{"proved", s.proof.proved}, {"obligations", s.proof.obligations}, {"expectations", s.proof.expectations}, {"used", s.proof.used}}},
            {"timing",
             {{"measured", s.timing.measured},
              {"microseconds", s.timing.microseconds},
              {"low", s.timing.low},
              {"high", s.timing.high},
              {"speedup", s.timing.speedup},
              {"speedup_low", s.timing.speedup_low},
              {"speedup_high", s.timing.speedup_high},
              {"roofline_share", s.timing.roofline_share},
              {"peer_microseconds", s.timing.peer_microseconds}}},
            {"resources",
             {{"known", s.resources.known},
              {"registers", s.resources.registers},
              {"spill_bytes", s.resources.spill_bytes},
              {"shared_bytes", s.resources.shared_bytes},
              {"threads", s.resources.threads}}},
            {"invariants", s.invariants},
            {"lesson", s.lesson},
            {"reward", s.reward},
            {"usage",
             {{"input_tokens", s.usage.input_tokens},
              {"output_tokens", s.usage.output_tokens},
              {"dollars", s.usage.dollars},
              {"seconds", s.usage.seconds},
              {"model", s.usage.model},
              {"prompt", s.usage.prompt},
              {"reply", s.usage.reply}}},
            {"seconds", s.seconds},
            {"at", s.at}};
}

bool from_json(const nlohmann::json& j, Step& s) {
    try {
        s = Step{};
        s.number = j.at("number").get<int>();
        if (!parse_stage(j.at("stage").get<std::string>(), s.stage)) return false;
        if (!parse_failure_class(j.at("failure").get<std::string>(), s.failure)) return false;
        s.technique = j.at("technique").get<std::string>();
        s.attempt = j.at("attempt").get<int>();
        s.proposer = j.at("proposer").get<std::string>();
        s.bottleneck = j.value("bottleneck", "");
        s.source = j.at("source").get<std::string>();
        s.note = j.value("note", "");
        s.accepted = j.at("accepted").get<bool>();
        s.feedback = j.value("feedback", "");
        for (const auto& g : j.at("gates")) {
            GateResult r;
            r.gate = g.at("gate").get<std::string>();
            if (!parse_name(kStatus, g.at("status").get<std::string>(), r.status)) return false;
            r.seconds = g.value("seconds", 0.0);
            r.text = g.value("text", "");
            s.gates.push_back(std::move(r));
        }
        const auto& p = j.at("proof");
        s.proof = {p.value("proved", 0), p.value("obligations", 0), p.value("expectations", 0), p.value("used", std::vector<std::string>{})};
        const auto& t = j.at("timing");
        s.timing = {t.value("measured", false),  t.value("microseconds", 0.0),   t.value("low", 0.0),
                    t.value("high", 0.0),        t.value("speedup", 0.0),        t.value("speedup_low", 0.0),
                    t.value("speedup_high", 0.0), t.value("roofline_share", 0.0), t.value("peer_microseconds", 0.0)};
        const auto& r = j.at("resources");
        s.resources = {r.value("known", false), r.value("registers", 0), r.value("spill_bytes", 0), r.value("shared_bytes", 0), r.value("threads", 0)};
        s.invariants = j.value("invariants", std::vector<std::string>{});
        s.lesson = j.value("lesson", "");
        s.reward = j.value("reward", 0.0);
        if (j.contains("usage")) {
            const auto& u = j.at("usage");
            s.usage = {u.value("input_tokens", std::int64_t{0}), u.value("output_tokens", std::int64_t{0}), u.value("dollars", 0.0), u.value("seconds", 0.0),
                       u.value("model", ""),                     u.value("prompt", ""),                     u.value("reply", "")};
        }
        s.seconds = j.value("seconds", 0.0);
        s.at = j.value("at", "");
        return true;
    } catch (const nlohmann::json::exception&) {
        return false;
    }
}

}  // namespace tw::plan
