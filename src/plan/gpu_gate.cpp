// Test and time on a GPU, through the runtime's evaluation session: right first, then interleaved with the best so far.
#include <fmt/format.h>

#include "plan/gates.h"
#include "plan/metrics.h"
#include "runtime/machine.h"
#include "runtime/session.h"
#include "runtime/torch_peer.h"

namespace tw::plan {

using nlohmann::json;

struct GpuGate::State {
    GateOptions options;
    bool gpu = false;
    std::string machine = "no GPU";
    std::unique_ptr<runtime::EvaluationSession> session;

    // As in the static gates: what their compiler made is in the cache under this name.
    static std::string file_of(const tasks::Task& task) { return task.name + (task.language == "cute" ? ".cu" : ".py"); }
    // What a candidate in CuTe needs to be launched.
    static void say_language(const tasks::Task& task, json& request) {
        if (task.language == "cute") request["language"] = "cute", request["signature"] = tasks::signature_source(task);
    }
    json request_for(const tasks::Task& task, const std::string& source, std::uint64_t seed, const tasks::Sizes& other = {}) const {
        json request = {{"text", source},
                        {"file", file_of(task)},
                        {"kernel", task.name},
                        {"sizes", json::object()},
                        {"scalars", json::object()},
                        {"seed", seed},
                        {"timeout_s", options.deadline.within(options.gpu_seconds)}};
        for (const auto& [name, value] : task.sizes) request["sizes"][name] = value;
        for (const auto& [name, value] : other) request["sizes"][name] = value;
        for (const tasks::ScalarSpec& s : task.scalars) request["scalars"][s.name] = s.value;
        if (!task.tolerance.empty()) request["tolerance"] = task.tolerance;
        say_language(task, request);
        for (const tasks::TensorSpec& t : task.tensors)
            if (!t.values.empty()) request["inputs"][t.name] = t.values;
        return request;
    }
};

GpuGate::GpuGate(const GateOptions& options) : state_(std::make_unique<State>()) {
    state_->options = options;
    if (!options.use_gpu) return;
    // Asked in a worker of the session's own: this process must stay free of a driver context, because it forks.
    runtime::SessionLimits limits;
    limits.seconds = options.gpu_seconds;
    state_->session = std::make_unique<runtime::EvaluationSession>(limits);
    const json probe =
        state_->session->evaluate({{"text",
                                    "import tilewright as tw\nfrom tilewright import f32\n\nN = "
                                    "tw.sizes(\"N\")\n\n\n@tw.kernel(target=\"sm_80\", computes=\"Y[n] = X[n] + 1\", threads=32)\n"
                                    "def probe(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):\n    i = tw.grid(tw.cdiv(N, 32)) * 32\n    "
                                    "tw.store(Y[i], tw.load(X[i : i + 32], fill=0.0) + 1.0)\n"},
                                   {"sizes", {{"N", 64}}}},
                                  options.deadline);
    state_->gpu = probe.value("status", "") == "right";
    if (state_->gpu) state_->machine = probe.contains("versions") ? probe["versions"].value("gpu", "a GPU") : "a GPU";
    else state_->session.reset();
}

GpuGate::~GpuGate() = default;
void GpuGate::set_deadline(Deadline deadline) { state_->options.deadline = deadline; }
bool GpuGate::available() const { return state_->gpu; }
std::string GpuGate::machine() const { return state_->machine; }

void GpuGate::judge(const tasks::Task& task, const std::string& source, const std::string& best, double best_us, Judgement& j) {
    const auto note = [&](const char* gate, json passed, double seconds, const std::string& detail) {
        j.gates.push_back({{"gate", gate}, {"passed", std::move(passed)}, {"seconds", seconds}, {"detail", detail}});
    };
    if (!state_->gpu) {
        note("test", nullptr, 0, "no GPU");
        note("time", nullptr, 0, "no GPU");
        return;
    }
    json request = state_->request_for(task, source, state_->options.seed);
    request.update(
        {{"time", true}, {"rounds", state_->options.rounds}, {"graph_us", 400}, {"warmup_ms", 5}, {"budget_ms", 400}, {"brief", true}});
    if (!best.empty()) {
        request["against"] = {{"text", best}, {"file", State::file_of(task)}, {"kernel", task.name}, {"us", best_us}};
        State::say_language(task, request["against"]);
    }
    if (state_->options.on_gate) state_->options.on_gate("test");
    j.evidence = state_->session->evaluate(request, state_->options.deadline);
    const std::string status = j.evidence.value("status", "our bug"), message = j.evidence.value("message", "");
    const json stages = j.evidence.value("stages", json::object());
    const double waited = stages.value("wait for the GPU", 0.0), timing = stages.value("measure", 0.0),
                 seconds = j.evidence.value("seconds", 0.0) - waited - timing;
    if (status != "right") {
        j.failure = status == "wrong"                                  ? FailureClass::numeric
                    : status == "timed out" || status == "out of time" ? FailureClass::timeout
                    : status == "rejected"                             ? FailureClass::resource
                                                                       : FailureClass::launch;
        j.message = fmt::format("{}: {}", status, message);
        j.feedback = fmt::format("On the GPU with the task's own sizes: {}: {}\n", status, message);
        if (j.evidence.contains("check")) {
            for (const json& o : j.evidence["check"].value("outputs", json::array())) {
                if (!o.value("wrong", false)) continue;
                j.feedback += fmt::format("  {}: worst error {:.2e} (allowed {:.1e}), {} unwritten, {} NaN\n", o.value("output", ""),
                                          o.value("worst", 0.0), o.value("tolerance", 0.0), o.value("unwritten", 0), o.value("nan", 0));
            }
        }
        note("test", false, seconds, j.message);
        return;
    }
    note("test", true, seconds, fmt::format("right; waited {:.2f} s for the GPU", waited));
    j.measured = j.evidence.contains("us");
    if (!j.measured) return note("time", nullptr, 0, "not timed");
    j.microseconds = j.evidence.value("us", 0.0);
    if (j.evidence.contains("ratio")) {
        j.speedup = j.evidence.value("ratio", 0.0);
        const json& i = j.evidence["ratio_interval"];
        j.speedup_low = i.is_object() ? i.value("low", j.speedup) : i.is_array() && i.size() == 2 ? i[0].get<double>() : j.speedup;
        j.speedup_high = i.is_object() ? i.value("high", j.speedup) : i.is_array() && i.size() == 2 ? i[1].get<double>() : j.speedup;
    }
    note("time", true, timing,
         fmt::format("{:.2f} us{}", j.microseconds, best.empty() ? "" : fmt::format(", {:.3f}x the best", j.speedup)));
}

json GpuGate::confirm(const tasks::Task& task, const std::string& source) {
    if (!state_->gpu) return {{"status", "not measured"}, {"why", "no GPU here"}};
    json out = {{"status", "right"}, {"held_out", json::array()}};
    const auto run = [&](const json& request) {
        const json answer = state_->session->evaluate(request, state_->options.deadline);
        json entry = {{"seed", request["seed"]}, {"sizes", request["sizes"]}, {"status", answer.value("status", "our bug")}};
        if (answer.contains("message")) entry["message"] = answer["message"];
        if (answer.contains("check")) entry["outputs"] = answer["check"].value("outputs", json::array());
        // A shape that no variant accepts was let through by the specification gate only if there is none; whatever else is not right
        // counts.
        if (entry["status"] == "out of time") {
            if (out["status"] == "right") out["status"] = "not measured", out["why"] = "the run's time is spent";
        } else if (entry["status"] != "right" && out["status"] != "wrong")
            out["status"] = "wrong", out["why"] = fmt::format("{}: {}", entry["status"].get<std::string>(), entry.value("message", ""));
        return entry;
    };
    const std::uint64_t seed = state_->options.seed + 7919;  // no candidate was tested with it
    const auto request = [&](const tasks::Sizes& shape) {
        json made = state_->request_for(task, source, seed, shape);
        made["alone"] = true;  // other runs may be timing
        return made;
    };
    out["fresh"] = run(request({}));
    for (const tasks::Sizes& shape : task.held_out) out["held_out"].push_back(run(request(shape)));
    return out;
}

json GpuGate::profile(const tasks::Task& task, const std::string& source) {
    if (!state_->gpu) return {{"source", "static"}, {"why", "no GPU here"}};
    return runtime::profile(state_->request_for(task, source, state_->options.seed),
                            state_->options.deadline.within(state_->options.deadline.within(3 * state_->options.gpu_seconds)),
                            metrics_of(task.workload));
}

json GpuGate::time_peer(const tasks::Task& task, const std::string& source) {
    const std::string peer = task.peer.empty() && task.workload == tasks::WorkloadClass::contraction ? "cublaslt" : task.peer;
    json out = {{"name", peer.empty() ? json(nullptr) : json(peer)}, {"status", "not measured"}};
    const auto because = [&](const std::string& why) { return out["why"] = why, out; };
    if (peer.empty()) return because("the task names no peer");
    if (!state_->gpu) return because("no GPU here");
    if (state_->options.deadline.passed()) return because("the run's time is spent");
    json request = state_->request_for(task, source, state_->options.seed);
    request.update({{"time", true},
                    {"rounds", 2 * state_->options.rounds},
                    {"timeout_s", state_->options.deadline.within(state_->options.deadline.within(3 * state_->options.gpu_seconds))}});
    if (peer == "cublaslt") {
        request["against"] = {{"peer", "cublaslt"}};
        const json answer = state_->session->evaluate(request, state_->options.deadline);
        if (answer.value("status", "") != "right" || !answer.contains("ratio"))
            return because(answer.value("message", "the evaluation gave no ratio"));
        out.update({{"status", "measured"},
                    {"microseconds", answer["peer"].value("us", 0.0)},
                    {"ours_microseconds", answer.value("us", 0.0)},
                    {"ratio", answer["ratio"]},
                    {"ratio_interval", answer["ratio_interval"]}});
        for (const char* key : {"algorithm", "version", "outputs", "right"})
            if (answer["peer"].contains(key)) out[key] = answer["peer"][key];
        if (answer.contains("timing"))
            out["l2"] = answer["timing"].value("l2", ""), out["clocks"] = answer["timing"].value("clocks", json());
        if (answer.contains("versions")) out["versions"] = answer["versions"];
        return out;
    }
    if (peer.rfind("torch:", 0) != 0) return because("it is neither cublaslt nor torch:NAME");
    std::string problem;
    const json expression = runtime::named_torch_peer(peer.substr(6), problem);
    if (expression.is_null()) return because(problem);
    json described = runtime::torch_case(request, problem);
    if (described.is_null()) return because(problem);
    described["case"] = task.name;
    for (const auto& [key, value] : expression.items()) described[key] = value;
    const json answer =
        runtime::time_against_torch(json::array({described}), state_->options.deadline.within(3 * state_->options.gpu_seconds)).at(0);
    if (answer.contains("problem")) return because(answer["problem"].get<std::string>());
    out.update({{"status", "measured"},
                {"expression", expression["torch"]},
                {"microseconds", answer.value("peer_us", 0.0)},
                {"ours_microseconds", answer.value("ours_us", 0.0)},
                {"ratio", answer.value("ratio", 0.0)},
                {"ratio_interval", answer.value("interval", json())}});
    for (const char* key : {"l2", "versions", "difference_from_peer"})
        if (answer.contains(key)) out[key] = answer[key];
    return out;
}

}  // namespace tw::plan
