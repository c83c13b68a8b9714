#include "plan/loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <set>

#include <fmt/format.h>

#include "base/input.h"
#include "plan/feedback.h"
#include "plan/metrics.h"
#include "tasks/classify.h"

namespace tw::plan {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr Stage kLoopStages[] = {Stage::structure, Stage::memory, Stage::pipeline, Stage::instruction, Stage::constants};

// Everything that decides what happens next. Written into each step, so that a killed run goes on from the last one.
struct State {
    Stage stage = Stage::structure;
    int current_step = -1, best_step = -1;
    double current_us = 0, best_us = 0, first_us = 0;
    int since_gain = 0;
    int provisional = 0;  // candidates left in which a kept but slower kernel must pay off
    bool sweep_gain = false;
    bool thorough = false;            // nothing promising is left: also techniques of which no gain is expected
    std::set<std::string> exhausted;  // techniques that have nothing new for the current kernel
    std::map<std::string, int> misses;
    double seconds = 0;

    json pack() const {
        return {{"stage", name_of(stage)},  {"current_step", current_step}, {"best_step", best_step},   {"current_us", current_us},
                {"best_us", best_us},       {"first_us", first_us},         {"since_gain", since_gain}, {"provisional", provisional},
                {"sweep_gain", sweep_gain}, {"thorough", thorough},         {"exhausted", exhausted},   {"misses", misses},
                {"seconds", seconds}};
    }
    bool unpack(const json& j) {
        constexpr int most = 1'000'000'000;
        const auto whole = [&](const char* key, int low) { return static_cast<int>(integer_in(j, key, low - 1, low - 1, most)); };
        if (!parse_stage(text_in(j, "stage"), stage)) return false;
        for (const char* key : {"current_step", "best_step", "current_us", "best_us", "first_us", "since_gain", "provisional", "seconds"})
            if (!j.contains(key) || !j[key].is_number()) return false;
        current_step = whole("current_step", -1), best_step = whole("best_step", -1), since_gain = whole("since_gain", 0),
        provisional = whole("provisional", 0);
        if (current_step < -1 || best_step < -1 || since_gain < 0 || provisional < 0) return false;
        current_us = number_in(j, "current_us"), best_us = number_in(j, "best_us"), first_us = number_in(j, "first_us"),
        seconds = std::max(0.0, number_in(j, "seconds"));
        sweep_gain = flag_in(j, "sweep_gain"), thorough = flag_in(j, "thorough");
        for (const json& id : part_in(j, "exhausted", json::array()))
            if (id.is_string()) exhausted.insert(id.get<std::string>());
        const json missed = part_in(j, "misses", json::object());
        for (const auto& [id, times] : missed.items()) misses[id] = static_cast<int>(integer_in(missed, id.c_str(), 0, 0, 1000));
        return true;
    }
};

class Loop {
public:
    Loop(const tasks::Task& task, Proposer& proposer, Journal& journal, Memory& memory, const Knowledge& knowledge,
         const LoopOptions& options)
        : task_(task),
          proposer_(proposer),
          journal_(journal),
          memory_(memory),
          knowledge_(knowledge),
          options_(of_the_run(options, proposer)),
          gpu_(options_.gates),
          roof_(tasks::roofline(task, tasks::machine_of(task.target))) {}

    Result<LoopOutcome> run(const std::string& resume);

private:
    // The GPU gate asks a GPU when it is made: that is the run's time too. The built-in proposer repairs nothing: no counterexamples for
    // it.
    static LoopOptions of_the_run(LoopOptions options, const Proposer& proposer) {
        if (proposer.name() == "builtin") options.gates.search = false;
        if (options.budget.seconds > 0) options.gates.deadline = Deadline::in(options.budget.seconds);
        return options;
    }
    void set_deadline(Deadline deadline) {
        options_.gates.deadline = deadline;
        gpu_.set_deadline(deadline);
    }
    Result<void> restore(const std::string& run);
    bool spent(std::string& reason) const;
    double elapsed() const { return state_.seconds + std::chrono::duration<double>(Clock::now() - began_).count(); }
    bool measuring() const { return gpu_.available() || options_.recorded; }
    std::string machine() const { return options_.recorded ? "a table of earlier measurements" : gpu_.machine(); }
    std::string bottleneck() const;
    bool profiling_shown() const;
    const Technique* choose();
    Request request_for_step(const Technique* technique, std::size_t steps);  // as it was when the run had so many steps
    // A candidate and its repairs; from attempt `from` on, when a run is resumed between two of them. False: the technique had nothing to
    // offer.
    Result<bool> candidate(const Technique* technique, int from = 0);
    Result<void> finish_repairs();
    Result<void> confirm();
    void weigh(Step& step, const Technique* technique, const Judgement& j);
    Result<void> keep(Step& step);
    void next_stage();
    std::string statement() const;
    LoopOutcome outcome(const std::string& reason) const;
    const std::string& source_of(int step) const { return steps_[static_cast<std::size_t>(step)].source; }
    double share_of(double us) const { return us > 0 ? roof_.seconds * 1e6 / us : 0; }

    const tasks::Task& task_;
    Proposer& proposer_;
    Journal& journal_;
    Memory& memory_;
    const Knowledge& knowledge_;
    LoopOptions options_;
    GpuGate gpu_;
    tasks::Roofline roof_;
    State state_;
    std::vector<Step> steps_;
    Judgement best_judgement_;
    std::string run_;
    std::int64_t tokens_ = 0;
    double dollars_ = 0;
    bool stages_done_ = false;
    json profile_;
    int profiled_step_ = -1;    // the step it belongs to
    int first_candidates_ = 0;  // that were asked for, repairs aside
    json peer_ = json::object(), confirmation_ = json::object();
    Clock::time_point began_ = Clock::now();
    std::string unreachable_;
};

bool Loop::profiling_shown() const {
    if (!options_.delay_profiling) return true;
    Stage after = profiling_stage(task_.workload);
    if (!options_.profile_after.empty()) parse_stage(options_.profile_after, after);
    return state_.stage > after;
}

// Which resource binds, and how far away the bound is once that may be known.
std::string Loop::bottleneck() const {
    const std::string bound = roof_.memory_bound ? "memory" : "compute";
    if (!profiling_shown() || state_.best_us <= 0) return bound;
    const double share = share_of(state_.best_us);
    return bound + (share < 0.3 ? ":far" : share < 0.7 ? ":middle" : ":near");
}

const Technique* Loop::choose() {
    std::vector<const Technique*> open;
    for (const Technique& t : knowledge_.techniques) {
        if (!applies(t, task_, roof_.memory_bound) || state_.exhausted.count(t.id)) continue;
        if (options_.use_knowledge && t.stage != state_.stage) continue;
        if (proposer_.name() == "builtin" && t.rewrite.empty()) continue;
        if (!measuring() && (t.stage == Stage::constants || t.expected_gain <= 1.0)) continue;  // nothing to decide it by
        open.push_back(&t);
    }
    if (open.empty()) return nullptr;
    // Thompson sampling; the same step of the same run draws the same numbers, so a resumed run goes on as it would have.
    std::mt19937_64 random(options_.seed * 1000003 + steps_.size() * 7919 + state_.exhausted.size());
    const Technique* best = nullptr;
    double best_draw = 0;
    static const Memory nothing;
    for (const Technique* t : open) {
        const Situation s{std::string(tasks::name_of(task_.workload)), std::string(name_of(t->stage)), bottleneck(), t->id};
        const Belief b = (options_.use_memory ? memory_ : nothing).belief(s, *t, options_.use_knowledge);
        const double misses = state_.misses.count(t->id) ? 0.15 * state_.misses.at(t->id) : 0;  // of this run
        // Box and Muller: the standard library's distributions differ between implementations.
        const double u = (static_cast<double>(random() >> 11) + 0.5) / 9007199254740992.0,
                     v = static_cast<double>(random() >> 11) / 9007199254740992.0;
        double draw = b.mean - misses + (measuring() ? b.deviation : 0.0) * std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
        // What is expected to gain and has not missed here is at most late, never put off, by an unlucky draw: later stages build on it.
        if (misses == 0 && b.mean > b.deviation / 2) draw = std::max(draw, 1e-3 * b.mean);
        if (!best || draw > best_draw) best = t, best_draw = draw;
    }
    // What promises nothing (a drawn reward of 0, or a miss in this run) waits until nothing that promises something is left.
    return measuring() && !state_.thorough && best_draw <= 0 ? nullptr : best;
}

Request Loop::request_for_step(const Technique* technique, std::size_t steps) {
    Request r;
    r.task = &task_;
    r.stage = technique ? technique->stage : Stage::first;
    r.step = static_cast<int>(steps);
    r.seed = options_.seed + steps;
    if (technique) {
        r.technique = technique->id;
        if (options_.use_knowledge) {
            r.technique_text = technique->prompt;
            r.invariants = technique->invariants;
        }
        r.current_source = source_of(state_.current_step);
        r.best_source = source_of(state_.best_step);
    }
    if (options_.use_memory) {
        for (const Lesson& l : memory_.lessons(std::string(tasks::name_of(task_.workload)), technique ? technique->id : "", 6))
            r.lessons.push_back(l.text);
    }
    for (std::size_t i = 0; i < steps; ++i)
        r.history.push_back(
            fmt::format("{} {}: {}", steps_[i].number, steps_[i].technique.empty() ? "first" : steps_[i].technique, steps_[i].message));
    if (profiling_shown() && state_.best_us > 0) {
        const tasks::Work work = tasks::work_of(task_);
        r.metrics.push_back({"microseconds", state_.best_us, "us", "time of the best kernel"});
        r.metrics.push_back(
            {"roofline_share", share_of(state_.best_us), "",
             roof_.memory_bound ? "of the time that memory traffic alone would take" : "of the time that the arithmetic alone would take"});
        if (roof_.memory_bound) r.metrics.push_back({"bandwidth", work.bytes / state_.best_us * 1e-6, "TB/s", "useful bytes per second"});
        else r.metrics.push_back({"throughput", work.flops / state_.best_us * 1e-6, "TFLOP/s", "useful operations per second"});
        if (best_judgement_.resources_known)
            r.metrics.push_back({"registers", static_cast<double>(best_judgement_.registers), "", "per thread"});
        // Counters of the best kernel, once each, of which the stage's choice sees its own.
        if (gpu_.available() && proposer_.name() != "builtin") {
            if (profiled_step_ != state_.best_step)
                profile_ = gpu_.profile(task_, source_of(state_.best_step)), profiled_step_ = state_.best_step;
            for (Metric& m : shown_metrics(profile_, task_.workload, r.stage)) r.metrics.push_back(std::move(m));
        }
    }
    r.deadline = options_.gates.deadline;
    if (options_.budget.seconds > 0) r.seconds_left = std::max(1.0, options_.budget.seconds - elapsed());
    if (options_.budget.tokens > 0) r.tokens_left = std::max<std::int64_t>(1, saturating_sum(options_.budget.tokens, -tokens_));
    if (options_.budget.dollars > 0) r.dollars_left = std::max(1e-6, options_.budget.dollars - dollars_);
    return r;
}

// Decides about a judged candidate, updates the state, writes the reward and the lesson.
void Loop::weigh(Step& step, const Technique* technique, const Judgement& j) {
    const bool first = state_.best_step < 0;
    const double before = state_.best_us;
    double reward = -0.3;
    std::string lesson;
    const double factor = j.speedup > 0                      ? j.speedup
                          : before > 0 && j.microseconds > 0 ? before / j.microseconds
                                                             : 1;  // paired by round where it was: clocks drift between runs
    const std::string what = technique ? technique->id : "first";
    if (j.failure != FailureClass::none) {
        step.outcome = "failed";
        step.failure_class = name_of(j.failure);
        step.message = fmt::format("{}: {}", name_of(j.failure), j.message);
        lesson = fmt::format("{} was refused ({}): {}", what, name_of(j.failure), j.message.substr(0, 160));
    } else if (first || (j.measured ? j.speedup > 1.004 && j.speedup_low > 0.998 : technique && technique->expected_gain > 1.0)) {
        step.outcome = "accepted";
        state_.best_step = state_.current_step = step.number;
        state_.best_us = state_.current_us = j.microseconds;
        if (first) state_.first_us = j.microseconds;
        best_judgement_ = j;
        state_.since_gain = 0;
        state_.provisional = 0;
        state_.sweep_gain = true;
        state_.thorough = false;
        if (measuring()) state_.exhausted.clear();
        else {  // once each: the other forms of a technique could not be told apart
            state_.exhausted.clear();
            for (const Step& s : steps_)
                if (s.outcome == "accepted" && !s.technique.empty()) state_.exhausted.insert(s.technique);
            if (technique) state_.exhausted.insert(technique->id);
        }
        state_.misses.clear();
        reward = 0;
        if (j.measured && before > 0) {
            const double gap = std::max(1.02, 1 / std::clamp(share_of(before), 1e-4, 0.98));
            reward = std::clamp(std::log(factor) / std::log(gap), 0.0, 1.0);
            lesson = fmt::format("{} ({}) gained {:.2f}x", what, step.message, factor);
            step.message = fmt::format("{} gained {:.2f}x", step.message, factor);
        } else if (!first) step.message = fmt::format("{} (kept by expectation, not measured)", step.message);
    } else {
        step.outcome = "rejected";
        step.failure_class = name_of(FailureClass::slower);
        reward = j.measured && before > 0 ? std::clamp(0.1 * std::log(factor), -0.2, 0.0) : 0;
        lesson = fmt::format("{} ({}) did not gain: {:.2f}x", what, step.message, factor);
        step.message = fmt::format("{}: {:.2f}x of the best", step.message, factor);
        // A step that others need first is kept for a while although it gains nothing by itself.
        if (technique && j.measured) {
            const bool ahead = state_.current_step != state_.best_step && j.microseconds < state_.current_us;
            const bool opens = std::any_of(technique->enables.begin(), technique->enables.end(),
                                           [&](const std::string& id) { return knowledge_.find(id) != nullptr; });
            if (ahead || (opens && state_.provisional == 0 && j.microseconds < 4 * before)) {
                if (!ahead) state_.provisional = 7;
                state_.current_step = step.number;
                state_.current_us = j.microseconds;
                state_.exhausted.clear();
                step.message += ", kept on trial";
            }
        }
    }
    if (step.outcome != "accepted") {
        ++state_.since_gain;
        if (technique && ++state_.misses[technique->id] >= (technique->stage == Stage::constants ? 3 : 2))
            state_.exhausted.insert(technique->id);
        if (state_.provisional > 0 && --state_.provisional == 0 && state_.current_step != state_.best_step) {
            state_.current_step = state_.best_step;
            state_.current_us = state_.best_us;
            step.message += "; back to the best";
        }
    }
    if (!technique) return;
    const Situation s{std::string(tasks::name_of(task_.workload)), std::string(name_of(technique->stage)), bottleneck(), technique->id};
    step.state["bottleneck"] = s.bottleneck;
    step.state["reward"] = reward;
    step.state["lesson"] = lesson;
    if (j.measured || j.failure != FailureClass::none) {
        step.state["observed"] = true;
        if (auto ok = memory_.observe(s, reward, lesson, run_); !ok) step.state["memory"] = ok.error().message;
    }
}

// The journal holds what was asked and answered (megabytes a step); the loop reads none of it again, and a run may have thousands of steps.
static void forget_exchanges(Step& step) { std::vector<Exchange>().swap(step.exchanges); }

Result<void> Loop::keep(Step& step) {
    const json extra = step.state;
    step.state = state_.pack();
    step.state["seconds"] = elapsed();
    for (const auto& [key, value] : extra.items()) step.state[key] = value;
    if (auto ok = journal_.append(run_, step); !ok) return ok;
    steps_.push_back(step);
    tokens_ = saturating_sum(tokens_, step.tokens());
    dollars_ += step.cost_usd();
    if (options_.on_step) options_.on_step(steps_.back());
    forget_exchanges(steps_.back());
    return {};
}

Result<bool> Loop::candidate(const Technique* technique, int from) {
    Request request = request_for_step(technique, steps_.size() - static_cast<std::size_t>(from));
    const int repairs = proposer_.repairs() ? options_.repairs : 0;
    const auto ask_for_repair = [&](const Step& failed, FailureClass failure, const json& findings) {
        request.failure = failure;
        request.failed_source = failed.source;
        request.feedback = text_in(failed.state, "feedback") + std::string(request_for(failure)) + "\n";
        request.findings = findings;
    };
    if (from > 0) {
        FailureClass failure = FailureClass::none;
        parse_failure_class(steps_.back().failure_class, failure);
        ask_for_repair(steps_.back(), failure, part_in(steps_.back().state, "findings", json::object()));
    }
    for (int attempt = from; attempt <= repairs; ++attempt) {
        if (attempt > 0 && static_cast<int>(steps_.size()) >= options_.budget.candidates) return true;
        const auto begin = Clock::now();
        request.attempt = attempt;
        request.step = static_cast<int>(steps_.size());
        Step step;
        step.number = static_cast<int>(steps_.size());
        step.parent = technique ? state_.current_step : -1;
        step.stage = technique ? name_of(technique->stage) : "first";
        step.technique = technique ? technique->id : "";
        auto reply = proposer_.propose(request);
        std::optional<Judgement> known;
        // In a replay only what was measured is a candidate; the proposer is asked for its next form.
        for (int i = 0; options_.recorded && reply && !(known = options_.recorded(reply->source)) && i < 200; ++i)
            reply = proposer_.propose(request);
        if (options_.recorded && reply && !known) return false;
        Judgement j;
        if (!reply) {
            using Kind = ProposalFailure::Kind;
            if (reply.error().kind == Kind::not_applicable && attempt == 0) return false;
            if (reply.error().kind == Kind::unreachable || reply.error().kind == Kind::out_of_budget) {
                unreachable_ = reply.error().text;
                // What was paid before it came to that is in the journal, and counts when the run is resumed.
                std::int64_t paid = 0;
                for (const Exchange& e : reply.error().exchanges) paid = saturating_sum(paid, saturating_sum(e.tokens_in, e.tokens_out));
                if (paid == 0) return true;
            }
            j.failure = FailureClass::proposal;
            j.message = reply.error().text;
            j.feedback = reply.error().text;
            step.exchanges = reply.error().exchanges;
        } else {
            step.source = reply->source;
            step.message = reply->note;
            step.exchanges = reply->exchanges;
            if (known) {
                j = *known;
                if (j.measured && state_.best_us > 0) j.speedup = j.speedup_low = j.speedup_high = state_.best_us / j.microseconds;
            } else j = judge_static(task_, step.source, options_.gates);
            if (!known && j.failure == FailureClass::none)
                gpu_.judge(task_, step.source, state_.best_step >= 0 ? source_of(state_.best_step) : std::string(), state_.best_us, j);
        }
        step.verdict = j.verdict;
        step.gates = j.gates;
        step.evidence = {
            {"proved", j.proved}, {"obligations", j.obligations}, {"expectations", j.expectations}, {"used", j.used}, {"proof", j.proof}};
        if (j.resources_known)
            step.evidence["resources"] = {
                {"registers", j.registers}, {"spill_bytes", j.spill_bytes}, {"shared_bytes", j.shared_bytes}, {"threads", j.threads}};
        if (!j.evidence.empty()) step.evidence["gpu"] = j.evidence;
        if (j.measured) {
            step.microseconds = j.microseconds;
            step.roofline_share = share_of(j.microseconds);
            const double base = state_.first_us > 0 ? state_.first_us : j.microseconds;
            step.speedup = base / j.microseconds;
        }
        weigh(step, technique, j);
        step.state["feedback"] = j.feedback;
        step.state["attempt"] = attempt;
        const bool failed = step.outcome == "failed";
        if (failed && proposer_.repairs()) step.state["findings"] = j.findings;
        step.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        if (auto ok = keep(step); !ok) return std::move(ok).propagate();
        if (!failed || !unreachable_.empty()) return true;
        ask_for_repair(steps_.back(), j.failure, j.findings);
        std::string reason;
        if (spent(reason)) return true;
    }
    return true;
}

bool Loop::spent(std::string& reason) const {
    const Budget& b = options_.budget;
    if (static_cast<int>(steps_.size()) >= b.candidates) reason = fmt::format("budget: {} candidates", b.candidates);
    else if (b.seconds > 0 && (elapsed() > b.seconds || options_.gates.deadline.passed()))
        reason = fmt::format("budget: {:.0f} seconds", b.seconds);
    else if (b.tokens > 0 && tokens_ >= b.tokens) reason = fmt::format("budget: {} tokens", b.tokens);
    else if (b.dollars > 0 && dollars_ >= b.dollars) reason = fmt::format("budget: {} dollars", b.dollars);
    else return false;
    return true;
}

void Loop::next_stage() {
    if (options_.use_knowledge && state_.stage != Stage::constants) {
        state_.stage = static_cast<Stage>(static_cast<int>(state_.stage) + 1);
        return;
    }
    if (!state_.sweep_gain || !options_.use_knowledge) {
        stages_done_ = state_.thorough || !measuring();
        state_.thorough = true;
    }
    state_.stage = Stage::structure;
    state_.sweep_gain = false;
}

Result<void> Loop::restore(const std::string& run) {
    auto document = journal_.read(run);
    if (!document) return std::move(document).propagate();
    steps_ = document->steps;
    for (const Step& s : steps_) {
        tokens_ = saturating_sum(tokens_, s.tokens());
        dollars_ += s.cost_usd();
        proposer_.seen(s.source);
    }
    for (Step& s : steps_) forget_exchanges(s);
    if (!steps_.empty() && !state_.unpack(steps_.back().state))
        return fail(FailureKind::bad_input, fmt::format("run {} cannot be resumed: its last step holds no state", run));
    const int n = static_cast<int>(steps_.size());
    for (const Step& s : steps_) first_candidates_ += s.stage == "first" && integer_in(s.state, "attempt", 0, 0, 1000) == 0;
    if (state_.best_step >= n || state_.current_step >= n || (state_.best_step < 0) != (state_.current_step < 0))
        return fail(FailureKind::bad_input, fmt::format("run {} cannot be resumed: its state names a step it does not have", run));
    if (state_.best_step >= 0) {
        const json resources = part_in(steps_[static_cast<std::size_t>(state_.best_step)].evidence, "resources", json::object());
        best_judgement_.resources_known = !resources.empty();
        best_judgement_.registers = static_cast<int>(integer_in(resources, "registers", 0, 0, 65536));
    }
    if (options_.budget.seconds > 0) set_deadline(Deadline::in(options_.budget.seconds - state_.seconds));
    // The memory holds what the steps of the journal observed, once: a kill may have fallen between the two files.
    if (auto ok = memory_.forget(run); !ok) return ok;
    for (const Step& s : steps_) {
        if (!flag_in(s.state, "observed")) continue;
        const Situation situation{std::string(tasks::name_of(task_.workload)), s.stage, text_in(s.state, "bottleneck"), s.technique};
        if (auto ok = memory_.observe(situation, number_in(s.state, "reward"), text_in(s.state, "lesson"), run); !ok) return ok;
    }
    return journal_.reopen(run);
}

// A run that was killed between two attempts at one candidate goes on with the next attempt.
Result<void> Loop::finish_repairs() {
    if (steps_.empty() || steps_.back().outcome != "failed" || !proposer_.repairs()) return {};
    const int attempt = static_cast<int>(integer_in(steps_.back().state, "attempt", 0, 0, 1000));
    std::string reason;
    if (attempt >= options_.repairs || spent(reason) || attempt + 1 > static_cast<int>(steps_.size())) return {};
    const Technique* technique = steps_.back().technique.empty() ? nullptr : knowledge_.find(steps_.back().technique);
    if (!technique && !steps_.back().technique.empty()) return {};
    auto done = candidate(technique, attempt + 1);
    return done ? Result<void>{} : std::move(done).propagate();
}

// The best kernel with fresh inputs, on held-out shapes and beside its peer. One that is not right there goes back to the best before it.
Result<void> Loop::confirm() {
    json confirmation = {{"status", "not measured"}, {"why", "no GPU here"}}, refused = json::array();
    for (int at = state_.best_step; at >= 0; --at) {
        const Step& s = steps_[static_cast<std::size_t>(at)];
        if (s.outcome != "accepted") continue;
        confirmation = gpu_.confirm(task_, s.source);
        confirmation["step"] = at;
        if (confirmation.value("status", "") != "wrong") {
            if (at != state_.best_step) {
                state_.best_step = state_.current_step = at;
                state_.best_us = s.microseconds.value_or(0);
            }
            break;
        }
        refused.push_back({{"step", at}, {"why", confirmation.value("why", "")}});
        if (at == 0) state_.best_step = -1, state_.best_us = 0;
    }
    if (!refused.empty()) confirmation["refused"] = refused;
    json facts = {{"confirmation", confirmation}};
    if (state_.best_step >= 0) {
        facts["peer"] = gpu_.time_peer(task_, source_of(state_.best_step));
        facts["peer"]["step"] = state_.best_step;
    }
    peer_ = facts.value("peer", json::object());
    confirmation_ = confirmation;
    return journal_.learn(run_, facts);
}

std::string Loop::statement() const {
    if (state_.best_step < 0) return "No kernel passed the gates.";
    const Step& best = steps_[static_cast<std::size_t>(state_.best_step)];
    if (options_.recorded) {
        return fmt::format(
            "A replay: nothing was proved, compiled or measured in this run. By a table of earlier measurements its best kernel takes "
            "{:.1f} us, {:.0f}% of the roofline, {:.1f}x the first kernel.",
            state_.best_us, 100 * share_of(state_.best_us), state_.first_us / state_.best_us);
    }
    const auto assertions = integer_in(best.evidence, "obligations", 0, 0, 1 << 30);
    std::string out =
        task_.language != "cute" ? fmt::format("Proved: data movement and synchronisation of the best kernel ({} assertions). ", assertions)
        : assertions > 0         ? fmt::format(
                                       "NOT proved: the best kernel is CuTe text. The tile kernel that it is printed from is proved ({} "
                                               "assertions). ",
                                       assertions)
                         : "NOT proved: the best kernel is CuTe text, checked where it could be read, and tested. ";
    if (best.evidence.contains("resources")) {
        const json& r = best.evidence["resources"];
        const auto count = [&](const char* key) { return integer_in(r, key, 0, 0, 1 << 30); };
        out += fmt::format("Compiled: {} registers, {} bytes spilled, {} bytes of shared memory, {} threads. ", count("registers"),
                           count("spill_bytes"), count("shared_bytes"), count("threads"));
    } else out += "Not compiled: no CUDA compiler library on this machine. ";
    out += fmt::format("Lower bound on {}: {:.1f} us ({}). ", tasks::machine_of(task_.target).name, roof_.seconds * 1e6,
                       roof_.memory_bound ? "memory traffic" : "arithmetic");
    if (confirmation_.contains("refused"))
        out += fmt::format("NOT kept: {} faster kernels that were wrong with fresh inputs or a held-out shape. ",
                           confirmation_["refused"].size());
    if (state_.best_us > 0)
        out += fmt::format("Measured on {}: {:.1f} us, {:.0f}% of the roofline, {:.1f}x the first kernel.", gpu_.machine(), state_.best_us,
                           100 * share_of(state_.best_us), state_.first_us / state_.best_us);
    else
        out +=
            "NOT measured: no GPU here. Times, speed-ups and whether each technique gains are unknown; techniques were kept by "
            "expectation, and tile sizes were not tuned.";
    if (state_.best_us > 0 && confirmation_.value("status", "") == "not measured")
        out += fmt::format(" NOT confirmed with fresh inputs and held-out shapes: {}.", confirmation_.value("why", "not measured"));
    if (peer_.value("status", "") == "measured") {
        const json interval = peer_.value("ratio_interval", json());
        out += fmt::format(" Against {}, in turn: {:.3f} times its speed", peer_["name"].get<std::string>(), peer_.value("ratio", 0.0));
        if (interval.is_array() && interval.size() == 2)
            out += fmt::format(" [{:.3f}, {:.3f}]", interval[0].get<double>(), interval[1].get<double>());
        out += ".";
    } else if (peer_.contains("why"))
        out += fmt::format(" Peer{}: not measured ({}).", peer_["name"].is_string() ? " " + peer_["name"].get<std::string>() : "",
                           peer_["why"].get<std::string>());
    return out;
}

LoopOutcome Loop::outcome(const std::string& reason) const {
    LoopOutcome o;
    o.run = run_;
    o.reason = reason;
    o.candidates = static_cast<int>(steps_.size());
    for (const Step& s : steps_) o.accepted += s.outcome == "accepted";
    o.best_step = state_.best_step;
    if (o.best_step >= 0) o.best_source = source_of(o.best_step);
    if (state_.best_us > 0) {
        o.microseconds = state_.best_us;
        o.first_microseconds = state_.first_us;
        o.roofline_share = share_of(state_.best_us);
    }
    o.statement = statement();
    return o;
}

Result<LoopOutcome> Loop::run(const std::string& resume) {
    if (resume.empty()) {
        Run run;
        run.task_name = task_.name;
        run.task_text = task_.text;
        run.proposer = proposer_.name();
        run.settings = {{"candidates", options_.budget.candidates},
                        {"seconds", options_.budget.seconds},
                        {"tokens", options_.budget.tokens},
                        {"dollars", options_.budget.dollars},
                        {"seed", options_.seed},
                        {"stop_share", options_.stop_share},
                        {"plateau", options_.plateau},
                        {"repairs", options_.repairs},
                        {"profile_after", options_.profile_after},
                        {"memory", options_.memory_path},
                        {"verify_seconds", options_.gates.verify_seconds},
                        {"gate_seconds", options_.gates.gate_seconds},
                        {"search_seconds", options_.gates.search_seconds},
                        {"rounds", options_.gates.rounds},
                        {"use_knowledge", options_.use_knowledge},
                        {"use_memory", options_.use_memory},
                        {"delay_profiling", options_.delay_profiling},
                        {"invariant_feedback", options_.gates.invariant_feedback},
                        {"gpu", gpu_.available()},
                        {"replay", static_cast<bool>(options_.recorded)}};
        auto id = journal_.begin(run);
        if (!id) return std::move(id).propagate();
        run_ = *id;
    } else run_ = resume;
    auto lock = RunLock::take(journal_, run_);
    if (!lock) return std::move(lock).propagate();
    if (!resume.empty()) {
        if (auto ok = restore(resume); !ok) return std::move(ok).propagate();
    }
    if (options_.on_run) options_.on_run(run_);
    (void)journal_.learn(run_, {{"workload", tasks::name_of(task_.workload)},
                                {"roofline", {{"microseconds", roof_.seconds * 1e6}, {"bound", roof_.memory_bound ? "memory" : "compute"}}},
                                {"device", machine()}});
    if (auto ok = finish_repairs(); !ok) return std::move(ok).propagate();
    std::string reason;
    if (state_.best_step < 0 && !spent(reason)) {
        while (first_candidates_ < (proposer_.repairs() ? 3 : 8) && state_.best_step < 0 && unreachable_.empty() && !spent(reason)) {
            ++first_candidates_;
            auto first = candidate(nullptr);
            if (!first) return std::move(first).propagate();
            if (!*first) break;
        }
        if (state_.best_step < 0 && reason.empty()) reason = unreachable_.empty() ? "no first kernel passed the gates" : unreachable_;
    }
    while (reason.empty() && !spent(reason)) {
        if (state_.best_us > 0 && share_of(state_.best_us) >= options_.stop_share)
            reason = fmt::format("roofline: {:.0f}% reached", 100 * share_of(state_.best_us));
        else if (measuring() && state_.since_gain >= options_.plateau && state_.provisional == 0)
            reason = fmt::format("plateau: {} candidates without a gain", state_.since_gain);
        else if (stages_done_) reason = "plateau: every technique has been tried";
        if (!reason.empty()) break;
        const Technique* technique = choose();
        if (!technique) {
            next_stage();
            continue;
        }
        auto offered = candidate(technique);
        if (!offered) return std::move(offered).propagate();
        if (!unreachable_.empty()) reason = unreachable_;
        if (!*offered) state_.exhausted.insert(technique->id);
    }
    // The best kernel is confirmed within a tenth more than the budget, ten seconds at least; what does not fit is not measured, and the
    // statement says so.
    if (options_.budget.seconds > 0)
        set_deadline(Deadline::in(options_.gates.deadline.left() + std::max(10.0, 0.1 * options_.budget.seconds)));
    if (auto ok = confirm(); !ok) return std::move(ok).propagate();
    (void)journal_.learn(run_, {{"statement", statement()}});
    if (auto ok = journal_.finish(run_, reason); !ok) return std::move(ok).propagate();
    return outcome(reason);
}

}  // namespace

std::optional<std::string> budget_problem(const Budget& b) {
    if (b.candidates < 1) return fmt::format("a budget of {} candidates allows nothing", b.candidates);
    if (!std::isfinite(b.seconds) || b.seconds < 0) return fmt::format("a budget of {} seconds means nothing", b.seconds);
    if (b.tokens < 0) return fmt::format("a budget of {} tokens means nothing", b.tokens);
    if (!std::isfinite(b.dollars) || b.dollars < 0) return fmt::format("a budget of {} dollars means nothing", b.dollars);
    return std::nullopt;
}

Stage profiling_stage(tasks::WorkloadClass workload) {
    using W = tasks::WorkloadClass;
    switch (workload) {
        case W::elementwise: return Stage::first;  // nothing structural to settle first
        case W::reduction:
        case W::scan: return Stage::structure;
        default: return Stage::pipeline;  // until copy and multiply overlap, figures only show that they do not
    }
}

Result<LoopOutcome> optimize(const tasks::Task& task, Proposer& proposer, Journal& journal, Memory& memory, const Knowledge& knowledge,
                             const LoopOptions& options, const std::string& resume) {
    if (auto problem = budget_problem(options.budget))
        return fail(FailureKind::bad_input, *problem, "budgets are positive numbers; leave one out for none");
    return Loop(task, proposer, journal, memory, knowledge, options).run(resume);
}

}  // namespace tw::plan
