// Parse, specification, verify, emulate, compile: in a forked worker, because candidates are untrusted.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "base/input.h"
#include "codegen/emit.h"
#include "diagnose/check.h"
#include "emulate/trial.h"
#include "lang/bundle.h"
#include "lower/lower.h"
#include "plan/builtin/terms.h"
#include "plan/cute_gates.h"
#include "plan/feedback.h"
#include "plan/gate_sequence.h"
#include "plan/tools.h"
#include "runtime/compile.h"
#include "runtime/worker.h"

namespace tw::plan {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// The equations as one text, variables by their place, so that names do not matter.
std::string computes_key(const ir::Computes& computes) {
    std::string out;
    for (const ir::Equation& e : computes.equations) {
        out += fmt::format("{}<", e.output);
        for (int v : e.output_vars) out += fmt::format("{},", v);
        out += ">" + builtin::key_of(e.value, [](int v) { return fmt::format("v{}", v); }) + ";";
    }
    return out;
}

std::string signature_problem(const tasks::Task& task, const std::vector<ir::Tensor>& tensors, const std::vector<ir::ScalarParam>& scalars,
                              std::size_t parameters) {
    const ir::Kernel& spec = *task.spec;
    if (parameters != spec.tensors.size()) return fmt::format("it has {} tensors, the task has {}", parameters, spec.tensors.size());
    for (std::size_t i = 0; i < parameters; ++i) {
        const ir::Tensor &a = tensors[i], &b = spec.tensors[i];
        if (a.name != b.name || a.dtype != b.dtype || a.dims.size() != b.dims.size())
            return fmt::format("parameter {} is not the task's {}", a.name, b.name);
        for (std::size_t d = 0; d < a.dims.size(); ++d)
            if (!ir::same(a.dims[d], b.dims[d])) return fmt::format("{} has other dimensions than in the task", a.name);
    }
    if (scalars.size() != spec.scalars.size()) return "it has other scalars than the task";
    for (std::size_t i = 0; i < scalars.size(); ++i)
        if (scalars[i].name != spec.scalars[i].name || scalars[i].dtype != spec.scalars[i].dtype)
            return "it has other scalars than the task";
    return {};
}

class StaticJudge : private GateSequence {
public:
    StaticJudge(const tasks::Task& task, const std::string& source, const GateOptions& options) : GateSequence(task, source, options) {}

    Judgement run() {
        if (gate("parse", [&] { return parse(); }) && gate("specification", [&] { return specification(); })) {
            // Trials and compiler run beside the proof; their gates are asked in order, and take what is left to wait for.
            trials_ = std::async(std::launch::async, [this] { return run_trials(); });
            if (options_.compile)
                for (const ir::Kernel& k : module_->kernels)
                    builds_.push_back(std::async(std::launch::async, [this, &k] { return build(k); }));
            if (gate("verify", [&] { return verify(); }) && gate("emulate", [&] { return emulate(); }) && options_.compile)
                gate("compile", [&] { return compile(); });
            stop_ = true;
        }
        return std::move(j_);
    }

private:
    Answer parse() {
        // A candidate is a kernel file and nothing else: nobody has to read what else it might do.
        if (lang::beside_python(source_)) {
            const std::string what = "the file imports something else than tilewright: a candidate holds kernels alone";
            return refuse(FailureClass::syntax, what, what);
        }
        module_ = lower::compile_text(sources_, task_.name + ".py", source_, {}, sink_);
        if (module_ && !sink_.has_errors()) return Answer::pass;
        bool syntax = false;
        json all = json::array();
        for (const Diagnostic& d : sink_.diagnostics()) {
            syntax |= static_cast<int>(d.code) < 100;
            if (all.size() < 6) all.push_back(to_json(d, sources_));
        }
        j_.findings["diagnostics"] = all;
        const std::string first = sink_.empty() ? "it does not compile" : sink_.in_source_order().front()->message;
        return refuse(syntax ? FailureClass::syntax : FailureClass::type, feedback_of(sink_, sources_), first);
    }

    Answer specification() {
        const std::string wanted = computes_key(task_.spec->computes);
        std::string problem = "there is no kernel or program named " + task_.name;
        bool fits = false;
        for (const ir::Program& p : module_->programs) {
            if (p.name != task_.name) continue;
            problem = computes_key(p.computes) == wanted
                          ? signature_problem(task_, p.tensors, p.scalars, static_cast<std::size_t>(p.parameter_count))
                          : "its `computes` is not the task's";
            if (problem.empty()) fits = true;
        }
        if (!fits) {
            std::vector<const ir::Kernel*> mine;
            for (const ir::Kernel& k : module_->kernels)
                if (k.name == task_.name) mine.push_back(&k);
            for (const ir::Kernel* k : mine) {
                problem = computes_key(k->computes) == wanted ? signature_problem(task_, k->tensors, k->scalars, k->tensors.size())
                                                              : "its `computes` is not the task's";
                if (!problem.empty()) break;
            }
            if (!mine.empty() && problem.empty()) {
                fits = std::any_of(mine.begin(), mine.end(), [&](const ir::Kernel* k) { return accepts(*k, sizes_for(*k, {})); });
                if (!fits) problem = "no variant accepts the task's sizes";
                for (const tasks::Sizes& shape : task_.held_out) {
                    if (fits &&
                        std::none_of(mine.begin(), mine.end(), [&](const ir::Kernel* k) { return accepts(*k, sizes_for(*k, shape)); })) {
                        fits = false;
                        problem = "no variant accepts one of the task's held-out shapes";
                    }
                }
            }
        }
        if (!fits) return refuse(FailureClass::specification, problem + "\n", problem);
        return Answer::pass;
    }

    Answer verify() {
        std::set<std::string> used;
        std::map<std::string, int> kinds, leaning;
        json preconditions = json::array();
        diagnose::CheckOptions o;
        o.search_seconds = options_.search_seconds;
        o.search = options_.search;
        o.seed = options_.seed;
        // Every kernel by itself, then what the launches of a program make of one another.
        std::vector<std::function<diagnose::CheckResult()>> checks;
        for (const ir::Kernel& k : module_->kernels) {
            checks.push_back([&] { return diagnose::check(k, o); });
            for (const ir::Assumption& a : k.assumptions) preconditions.push_back(a.text);
        }
        for (const ir::Program& p : module_->programs) checks.push_back([&] { return diagnose::check_program(*module_, p, o); });
        for (const auto& check : checks) {
            const diagnose::CheckResult result = check();
            for (const auto& ob : result.obligations) {
                j_.proved += ob.status == verify::Status::proved;
                j_.expectations += ob.kind == "expect";
                ++kinds[ob.kind];
                for (const std::string& u : std::set<std::string>(ob.used.begin(), ob.used.end())) ++leaning[u];
            }
            j_.obligations += static_cast<int>(result.obligations.size());
            for (const std::string& u : result.used()) used.insert(u);
            if (result.proved()) continue;
            j_.verdict = result.violated() ? "violated" : "not_proved";
            j_.findings = findings_of(result);
            std::string line =
                result.counterexample ? fmt::format("{}: {}", result.counterexample->kind, result.counterexample->message) : "not proved";
            if (!result.counterexample) {
                for (const auto& ob : result.obligations) {
                    if (ob.status == verify::Status::proved) continue;
                    line = fmt::format("not proved: {} ({})", ob.kind, ob.text);
                    break;
                }
            }
            return refuse(class_of(result), feedback_of(result, source_, options_.invariant_feedback), line);
        }
        j_.verdict = "proved";
        j_.used.assign(used.begin(), used.end());
        j_.proof = {{"by_kind", kinds}, {"used", leaning}, {"preconditions", preconditions}};
        detail_ = fmt::format("{} assertions, {} of them expectations", j_.obligations, j_.expectations);
        return Answer::pass;
    }

    struct Trials {
        int runs = 0;
        double worst = 0;
        std::string failed, where;  // the first that failed, and its sizes
    };
    // Two instances of each kernel, under the eager and the lazy schedule, side by side.
    Trials run_trials() const {
        Trials out;
        const auto begin = Clock::now();
        for (const ir::Kernel& k : module_->kernels) {
            std::vector<std::vector<std::int64_t>> small;
            for (const std::vector<std::int64_t>& sizes : diagnose::search_instances(k)) {
                double elements = 0;
                for (const ir::Tensor& t : k.tensors) {
                    double n = 1;
                    for (const Expr& d : t.dims) n *= static_cast<double>(emulate::size_value(d, sizes).value_or(1));
                    elements += n;
                }
                if (elements <= 4e5 && accepts(k, sizes)) small.push_back(sizes);
            }
            std::size_t next = 0;
            for (int mine = 0; mine < 2 && next < small.size() && since(begin) <= options_.gate_seconds && !stop_;) {
                std::vector<std::pair<std::size_t, std::future<emulate::Trial>>> running;
                for (int number = mine; number < 2 && next < small.size(); ++number, ++next) {
                    running.emplace_back(next, std::async(std::launch::async, [this, &k, &sizes = small[next], number] {
                                             emulate::TrialOptions t;
                                             t.tolerances = task_.tolerance;
                                             t.seed = options_.seed + static_cast<std::uint64_t>(number);
                                             t.emulator.schedule.lazy = number % 2 == 1;
                                             t.emulator.step_limit = 2'000'000;
                                             return emulate::run_trial(k, sizes, t);
                                         }));
                }
                for (auto& [which, running_trial] : running) {
                    const emulate::Trial trial = running_trial.get();
                    if (!trial.refused.empty()) continue;  // or out of statements
                    ++out.runs, ++mine;
                    for (const auto& e : trial.outputs) out.worst = std::max(out.worst, e.error.worst);
                    if (!trial.failed()) continue;
                    out.failed = trial.summary(k);
                    out.where = diagnose::sizes_text(k, small[which]);
                    return out;
                }
            }
        }
        return out;
    }

    Answer emulate() {
        const Trials t = trials_.get();
        if (!t.failed.empty())
            return refuse(FailureClass::numeric, fmt::format("On the emulator with {}: {}\n", t.where, t.failed), t.failed);
        if (t.runs == 0) {
            detail_ = "no instance is small enough";
            return Answer::skip;
        }
        detail_ = fmt::format("{} runs, worst error {:.1e}", t.runs, t.worst);
        return Answer::pass;
    }

    struct Build {
        std::string problem;  // why there is no text to compile
        std::optional<runtime::Result<runtime::CompiledKernels>> made;
    };
    Build build(const ir::Kernel& k) const {
        auto emitted = codegen::emit(k, task_.name + ".py");
        if (!emitted) return {emitted.error().message, {}};
        return {{}, runtime::compile(runtime::request_for_own_text(emitted->source, k.name + ".cu", k.arch))};
    }

    Answer compile() {
        for (const ir::Kernel& k : module_->kernels) {
            j_.threads = std::max(j_.threads, codegen::threads_of(k));
            j_.shared_bytes = std::max(j_.shared_bytes, k.shared_bytes);
        }
        for (std::future<Build>& b : builds_) {
            const Build built = b.get();
            if (!built.made) return refuse(FailureClass::resource, built.problem + "\n", built.problem);
            const auto& made = *built.made;
            if (!made) {
                if (made.error().kind == runtime::FailureKind::missing_library) {
                    detail_ = "not compiled: " + made.error().message;
                    return Answer::skip;
                }
                return refuse(FailureClass::resource, made.error().message + "\n",
                              made.error().kind == runtime::FailureKind::device_error ? "its machine code is not safe to run"
                                                                                      : "the compiler refuses it");
            }
            for (const runtime::KernelResources& r : made->report.kernels) {
                if (!r.is_entry) continue;
                j_.resources_known = true;
                j_.registers = std::max(j_.registers, r.registers);
                j_.spill_bytes = std::max(j_.spill_bytes, r.spill_store_bytes + r.spill_load_bytes);
            }
            if (made->report.has(runtime::RemarkKind::wgmma_serialized)) {
                return refuse(FailureClass::resource,
                              "The compiler serialises the wgmma: an accumulator is touched while a group is in flight, or the registers "
                              "do not suffice.\n",
                              "wgmma is serialised");
            }
        }
        detail_ = fmt::format("{} registers, {} bytes spilled, {} bytes shared", j_.registers, j_.spill_bytes, j_.shared_bytes);
        if (j_.spill_bytes > 256)
            return refuse(FailureClass::resource,
                          fmt::format("{} registers and {} bytes of spills: the tile held by each thread is too large.\n", j_.registers,
                                      j_.spill_bytes),
                          detail_);
        return Answer::pass;
    }

    using Expr = ir::Expr;
    SourceMap sources_;
    DiagnosticSink sink_;
    std::optional<ir::Module> module_;
    std::atomic<bool> stop_ = false;  // nobody asks for further trials
    std::future<Trials> trials_;      // last: they end before what they read
    std::vector<std::future<Build>> builds_;
};

json pack(const Judgement& j) {
    return {{"failure", name_of(j.failure)},
            {"feedback", j.feedback},
            {"message", printable(j.message)},
            {"findings", j.findings},
            {"gates", j.gates},
            {"verdict", j.verdict},
            {"proved", j.proved},
            {"obligations", j.obligations},
            {"expectations", j.expectations},
            {"used", j.used},
            {"proof", j.proof},
            {"resources_known", j.resources_known},
            {"registers", j.registers},
            {"spill_bytes", j.spill_bytes},
            {"shared_bytes", j.shared_bytes},
            {"threads", j.threads}};
}

double seconds_of(clockid_t clock) {
    timespec t{};
    ::clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// What `judge` says, or that one of its gates took too long. Only in a worker: a gate that is given up goes on until the process ends.
Judgement judged_in_time(const GateOptions& options, std::function<Judgement(const GateOptions&)> judge) {
    struct Judging {  // of the judging thread too, which may outlast this function: never freed
        GateOptions options;
        std::mutex mutex;
        std::vector<std::pair<std::string, double>> gates;  // that began, with the thread's time then
        clockid_t clock = 0;
    };
    auto* const state = new Judging{.options = options};
    state->options.on_gate = [state, shown = options.on_gate](const char* name) {
        if (shown) shown(name);
        const std::scoped_lock lock(state->mutex);
        ::pthread_getcpuclockid(::pthread_self(), &state->clock);
        state->gates.emplace_back(name, seconds_of(state->clock));
    };
    std::packaged_task<Judgement()> work([state, judge = std::move(judge)] { return judge(state->options); });
    std::future<Judgement> made = work.get_future();
    std::thread(std::move(work)).detach();
    while (made.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
        const std::scoped_lock lock(state->mutex);
        if (state->gates.empty()) continue;
        const auto& [gate, began] = state->gates.back();
        const double seconds = seconds_of(state->clock) - began;
        if (seconds <= options.gate_seconds) continue;
        if (made.wait_for(std::chrono::seconds(0)) == std::future_status::ready) break;  // the thread has just ended, and its clock with it
        Judgement j;
        j.failure = FailureClass::timeout;
        j.message = fmt::format("gave up: the gate `{}` took more than {:g} s", gate, options.gate_seconds);
        j.feedback = j.message + "\nFewer statements (shorter unrolled loops, fewer cases) take less.\n";
        const std::size_t count = state->gates.size();
        for (std::size_t i = 0; i < count; ++i) {
            const bool last = i + 1 == count;
            const double ended = last ? began + seconds : state->gates[i + 1].second;
            j.gates.push_back({{"gate", state->gates[i].first},
                               {"passed", !last},
                               {"seconds", ended - state->gates[i].second},
                               {"detail", last ? j.message : ""}});
        }
        return j;
    }
    return made.get();
}

}  // namespace

Judgement judge_static(const tasks::Task& task, const std::string& source, const GateOptions& options) {
    runtime::WorkerLimits limits;
    // CuTe's templates take several seconds a kernel, and a program has half a dozen.
    limits.seconds = options.deadline.within(options.verify_seconds * (task.language == "cute" ? 4 : 1));
    limits.memory_bytes = std::uint64_t{8} << 30;
    const Scratch scratch;  // for the compiler's tools
    limits.box = runtime::box_for_checks(scratch.path());
    const runtime::WorkerResult result = runtime::run_in_worker(
        [&] {
            if (!scratch.path().empty()) ::setenv("TMPDIR", scratch.path().c_str(), 1);
            const auto tile = [&](const std::string& kernel_file, const GateOptions& o) { return StaticJudge(task, kernel_file, o).run(); };
            const auto without_compiler = [&](const std::string& kernel_file) {
                GateOptions o = options;
                o.compile = false;
                o.on_gate = nullptr;
                return tile(kernel_file, o);
            };
            const Judgement judged = judged_in_time(options, [&](const GateOptions& o) {
                return task.language == "cute" ? judge_cute(task, source, o, without_compiler) : tile(source, o);
            });
            return pack(judged).dump(-1, ' ', false, json::error_handler_t::replace);
        },
        limits);
    Judgement j;
    const json answer = parse_json(result.answer);
    if (result.end != runtime::WorkerEnd::finished || !answer.is_object()) {
        j.failure = result.end == runtime::WorkerEnd::timed_out ? FailureClass::timeout : FailureClass::launch;
        j.message = options.deadline.passed() ? "the run's time was spent in the static gates" : "the worker " + result.sentence();
        j.feedback = j.message + "\n";
        j.gates.push_back({{"gate", "static"}, {"passed", false}, {"seconds", result.seconds}, {"detail", j.message}});
        return j;
    }
    parse_failure_class(answer.value("failure", "none"), j.failure);
    j.feedback = answer.value("feedback", "");
    j.message = answer.value("message", "");
    j.findings = answer["findings"];
    j.gates = answer["gates"];
    j.verdict = answer.value("verdict", "");
    j.proved = answer.value("proved", 0);
    j.obligations = answer.value("obligations", 0);
    j.expectations = answer.value("expectations", 0);
    j.used = answer.value("used", std::vector<std::string>{});
    j.proof = answer.value("proof", json::object());
    j.resources_known = answer.value("resources_known", false);
    j.registers = answer.value("registers", 0);
    j.spill_bytes = answer.value("spill_bytes", 0);
    j.shared_bytes = answer.value("shared_bytes", 0);
    j.threads = answer.value("threads", 0);
    return j;
}

}  // namespace tw::plan
