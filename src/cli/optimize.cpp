// `tilewright optimize TASK`: from what to compute to a proved, measured kernel.
#include <fmt/format.h>

#include <pthread.h>
#include <unistd.h>
#include <atomic>
#include <cmath>
#include <csignal>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>

#include "base/diagnostic.h"
#include "base/input.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/evidence.h"
#include "cli/optimize.h"
#include "cli/page_server.h"
#include "plan/merge.h"
#include "plan/proposers.h"
#include "report/page.h"
#include "report/run_text.h"
#include "tasks/classify.h"

namespace tw::cli {
namespace optimize_command {

// On a terminal the line in progress is shown and then replaced by the step's own; elsewhere there are whole lines only.
void print_step(const plan::Step& step, bool live) {
    fmt::print("{}{}\n", live ? "\r\x1b[K" : "", report::step_line(step));
    std::fflush(stdout);
}

// The page lies beside the journal unless the user names a place.
std::string write_page(const OptimizeOptions& o, plan::Journal& journal, const std::string& run) {
    auto document = journal.read(run);
    if (!document) return {};
    std::filesystem::path path = o.page;
    std::error_code ignored;
    if (path.empty()) {
        path = journal.path().parent_path() / "pages" / (run + ".html");
        std::filesystem::create_directories(path.parent_path(), ignored);
    }
    auto written = write_file_atomically(path, page_of(*document));
    if (!written && !o.page.empty()) complain(exit_bad_input, written.error());
    return written ? path.string() : std::string();
}

// While it lives, Ctrl-C calls `stopped` on a thread of its own and ends the program: steps are in the journal by then, so nothing is lost.
class OnInterrupt {
public:
    explicit OnInterrupt(std::function<void()> stopped) {
        sigemptyset(&set_);
        sigaddset(&set_, SIGINT);
        pthread_sigmask(SIG_BLOCK, &set_, &before_);
        watch_ = std::thread([this, stopped = std::move(stopped)] {
            const timespec moment{0, 200'000'000};
            while (!over_) {
                if (sigtimedwait(&set_, nullptr, &moment) != SIGINT) continue;
                stopped();
                std::fflush(stdout);
                std::_Exit(130);
            }
        });
    }
    ~OnInterrupt() {
        over_ = true;
        watch_.join();
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    OnInterrupt(const OnInterrupt&) = delete;
    OnInterrupt& operator=(const OnInterrupt&) = delete;

private:
    sigset_t set_{}, before_{};
    std::atomic<bool> over_{false};
    std::thread watch_;
};

// What a run that is stopped leaves: its best kernel, its page, and how to go on.
void leave(const OptimizeOptions& o, const std::filesystem::path& journal_path, const std::string& run) {
    fmt::print("\nstopped by Ctrl-C\n");
    if (run.empty()) return;
    auto journal = plan::Journal::open(journal_path, plan::Database::Mode::read);
    if (journal) {
        if (const std::string page = write_page(o, *journal, run); !page.empty()) fmt::print("the run's page is {}\n", page);
        const auto document = journal->read(run);
        const plan::Step* best = document ? report::best_step(*document) : nullptr;
        if (best && !o.out.empty() && write_file_atomically(o.out, best->source)) fmt::print("the best kernel so far is in {}\n", o.out);
        else if (best) fmt::print("`tilewright show {} --source` prints the best kernel so far\n", run);
        else fmt::print("no kernel was accepted so far\n");
    }
    fmt::print("`tilewright resume {}` goes on\n", run);
}

// The page of the run that goes on, as its journal has it now.
std::string page_now(const std::filesystem::path& journal_path, const std::string& run) {
    if (!run.empty()) {
        auto journal = plan::Journal::open(journal_path, plan::Database::Mode::read);
        if (journal) {
            if (auto document = journal->read(run)) return live_page(page_of(*document));
        }
    }
    return live_page("<!doctype html><html lang=\"en\"><head><title>Tilewright</title></head><body><p>The run begins.</p></body></html>\n");
}

// A task is a unit. Their journals and memories are one when all have ended.
int with_engine(const OptimizeOptions& o) {
    if (o.task.file.empty()) return complain(exit_bad_input, "--engine takes task files", "write the one-line task with --save-task FILE");
    if (!o.replay.empty() || !o.out.empty() || !o.page.empty() || o.serve)
        return complain(exit_bad_input, "-o, --html, --serve and --replay are of one task",
                        "`tilewright show RUN --source` prints a run's kernel afterwards");
    UnitsPlan plan;
    std::vector<std::string> files = {o.task.file};
    files.insert(files.end(), o.more.begin(), o.more.end());
    units::EngineOptions engine = o.engine;
    const bool program = o.proposer.rfind("command:", 0) == 0;
    if (program) engine.perform.proposer = o.proposer;
    const plan::Budget& b = o.loop.budget;
    for (const std::string& file : files) {
        std::string problem;
        std::vector<std::string> words = {plan.add_file(file, problem)};
        if (!problem.empty()) return complain(exit_bad_input, problem);
        words.push_back("--proposer=" + (program ? std::string("builtin") : o.proposer));
        words.push_back(fmt::format("--steps={}", b.candidates));
        if (b.seconds > 0 && std::isfinite(b.seconds)) words.push_back(fmt::format("--seconds={}", b.seconds));
        if (b.tokens > 0) words.push_back(fmt::format("--tokens={}", b.tokens));
        if (b.dollars > 0) words.push_back(fmt::format("--dollars={}", b.dollars));
        words.push_back(fmt::format("--stop-at={}", o.loop.stop_share));
        words.push_back(fmt::format("--plateau={}", o.loop.plateau));
        words.push_back(fmt::format("--repairs={}", o.loop.repairs));
        words.push_back(fmt::format("--seed={}", o.loop.seed));
        if (!o.loop.profile_after.empty()) words.push_back("--profile-after=" + o.loop.profile_after);
        if (!o.without.empty()) words.push_back("--without=" + o.without);
        if (o.no_gpu) words.push_back("--no-gpu");
        plan.add(std::filesystem::path(file).stem().string(), "optimize", std::move(words));
    }
    return run_units(engine, std::move(plan), [&](const UnitResults& all) {
        const int status = combine_optimize(all, "");
        const std::filesystem::path journal = o.journal.empty() ? plan::Journal::default_path() : std::filesystem::path(o.journal);
        const std::filesystem::path memory = o.memory.empty() ? plan::Memory::default_path() : std::filesystem::path(o.memory);
        plan::Merge merge;
        std::error_code ignored;
        if (std::filesystem::exists(journal, ignored))
            if (auto ok = merge.add_journal(journal); !ok) return complain(exit_bad_input, ok.error().message, ok.error().fix);
        if (std::filesystem::exists(memory, ignored))
            if (auto ok = merge.add_memory(memory); !ok) return complain(exit_bad_input, ok.error().message, ok.error().fix);
        for (const auto& r : all.results)
            if (r) merge.add_unit(*r);
        if (auto ok = merge.write_journal(journal); !ok) return complain(exit_bad_input, ok.error().message, ok.error().fix);
        if (o.loop.use_memory)
            if (auto ok = merge.write_memory(memory); !ok) return complain(exit_bad_input, ok.error().message, ok.error().fix);
        fmt::print("the runs are in {}\n", journal.string());
        return status;
    });
}

// What a unit leaves: its run, whole, and what it observed.
int leave_unit(const OptimizeOptions& o, plan::Journal& journal, const std::string& run) {
    auto document = journal.read(run);
    if (!document) return complain(exit_bad_input, document.error().message, document.error().fix);
    nlohmann::json observed = nlohmann::json::array();
    if (!o.memory.empty() && std::filesystem::exists(o.memory))
        if (auto rows = plan::Memory::observations_in(o.memory)) observed = std::move(*rows);
    const std::string gpu = text_in(document->run.facts, "device");
    return write_json(o.unit_result, {{"run", plan::to_json(*document, false)}, {"memory", observed}, {"gpu", gpu}}) ? exit_fine
                                                                                                                     : exit_bad_input;
}

int run(const OptimizeOptions& o) {
    if (!o.engine.name.empty()) return with_engine(o);
    if (!o.more.empty()) return complain(exit_bad_input, "several tasks need an engine", "add --engine local");
    const auto task = load_task(o.task);
    return task ? optimize_task(o, *task, {}) : exit_bad_input;
}

}  // namespace optimize_command

int optimize_task(const OptimizeOptions& o, const tasks::Task& task, const std::string& resume) {
    using namespace optimize_command;
    SourceMap sources;
    DiagnosticSink sink;
    plan::LoopOptions options = o.loop;
    if (o.no_gpu || !o.replay.empty()) options.gates.use_gpu = false;
    if (!o.replay.empty()) {
        auto recorded = plan::load_recorded(o.replay, task.name);
        if (!recorded)
            return complain(exit_bad_input, recorded.error(),
                            "python3 scripts/learning_table.py collect JOURNAL.json ... --out TABLE.json");
        options.recorded = *recorded;
    }
    for (const std::string& w : split_words(o.without)) {
        if (w == "invariants") options.gates.invariant_feedback = false;
        else if (w == "knowledge") options.use_knowledge = false;
        else if (w == "delay") options.delay_profiling = false;
        else if (w == "memory") options.use_memory = false;
        else
            return complain(exit_bad_input, fmt::format("there is no part '{}'", printable(w)),
                            "the parts are invariants, knowledge, delay and memory");
    }
    if (plan::Stage stage{}; !options.profile_after.empty() && !plan::parse_stage(options.profile_after, stage)) {
        return complain(exit_bad_input, fmt::format("there is no stage '{}'", printable(options.profile_after)),
                        "the stages are first, structure, memory, pipeline, instruction and constants");
    }
    const plan::Knowledge knowledge = plan::load_knowledge(plan::knowledge_folder(), sink);
    if (!sink.empty()) std::cerr << render_text(sink, sources);
    if (knowledge.techniques.empty())
        return complain(exit_bad_input, "the knowledge base is empty", "set TILEWRIGHT_KNOWLEDGE to the folder knowledge/");
    // Without invariants the built-in proposer leaves its assertions out too.
    auto made = plan::make_proposer(o.proposer, options.gates.invariant_feedback);
    if (!made) return complain(exit_bad_input, made.error().message, made.error().fix);
    const std::unique_ptr<plan::Proposer> proposer = std::move(*made);
    if (auto problem = plan::budget_problem(options.budget))
        return complain(exit_bad_input, *problem, "budgets are positive numbers; leave one out for none");
    if (const std::string problem = proposer->price_problem(); options.budget.dollars > 0 && !problem.empty())
        return complain(exit_bad_input, "a budget of dollars cannot be kept: " + problem,
                        "set TILEWRIGHT_DOLLARS_PER_MILLION=IN,OUT, or bound the run with --tokens");
    auto journal = plan::Journal::open(o.journal.empty() ? plan::Journal::default_path() : std::filesystem::path(o.journal),
                                       plan::Database::Mode::write);
    if (!journal) return complain(exit_bad_input, journal.error().message, journal.error().fix);
    plan::Memory memory;
    if (options.use_memory) {
        std::error_code ignored;
        options.memory_path =
            std::filesystem::absolute(o.memory.empty() ? plan::Memory::default_path() : std::filesystem::path(o.memory), ignored).string();
        auto opened = plan::Memory::open(options.memory_path);
        if (!opened) return complain(exit_bad_input, opened.error().message, opened.error().fix);
        memory = std::move(*opened);
    }
    const tasks::Roofline roof = tasks::roofline(task, tasks::machine_of(task.target));
    std::mutex guard;
    std::string current;
    const OnInterrupt watch([&] {
        const std::lock_guard hold(guard);
        leave(o, journal->path(), current);
    });
    std::unique_ptr<PageServer> server;
    if (o.serve) {
        auto started = PageServer::start(o.port, [&, path = journal->path()] {
            std::string id;
            {
                const std::lock_guard hold(guard);
                id = current;
            }
            return page_now(path, id);
        });
        if (!started) return complain(exit_bad_input, started.error(), "take another --port, or none for a free one");
        server = std::move(*started);
        fmt::print("the run's page, while it goes on: {}\n", server->address());
    }
    options.on_run = [&](const std::string& id) {
        {
            const std::lock_guard hold(guard);
            current = id;
        }
        fmt::print("run {}\n{}: {} on {}, at best {} us ({} bound); proposer {}\n", id, task.name, tasks::name_of(task.workload),
                   task.target, roof.seconds * 1e6 < 0.1 ? "under 0.1" : fmt::format("{:.1f}", roof.seconds * 1e6),
                   roof.memory_bound ? "memory" : "compute", printable(proposer->name()));
        std::fflush(stdout);
    };
    const bool live = ::isatty(STDOUT_FILENO) != 0;
    if (live) options.gates.on_gate = [](const char* gate) { fmt::print("\r\x1b[K    ... {}", gate), std::fflush(stdout); };
    options.on_step = [&](const plan::Step& step) { print_step(step, live); };
    auto outcome = plan::optimize(task, *proposer, *journal, memory, knowledge, options, resume);
    if (live) fmt::print("\r\x1b[K");
    if (!outcome) return complain(exit_bad_input, outcome.error().message, outcome.error().fix);
    fmt::print("stopped: {} ({} candidates, {} accepted)\n{}\n", printable(outcome->reason), outcome->candidates, outcome->accepted,
               outcome->statement);
    if (const std::string page = write_page(o, *journal, outcome->run); !page.empty()) fmt::print("the run's page is {}\n", page);
    if (!o.unit_result.empty())
        if (const int status = leave_unit(o, *journal, outcome->run); status != exit_fine) return status;
    if (outcome->best_step < 0) return exit_kernel_wrong;
    if (!o.out.empty()) {
        if (auto ok = write_file_atomically(o.out, outcome->best_source); !ok) return complain(exit_bad_input, ok.error());
        fmt::print("the best kernel is in {}\n", o.out);
    } else fmt::print("`tilewright show {} --source` prints the best kernel\n", outcome->run);
    return exit_fine;
}

int combine_optimize(const UnitResults& all, const std::string& path) {
    std::map<std::string, nlohmann::json> by_gpu;
    bool every = true;
    for (std::size_t i = 0; i < all.results.size(); ++i) {
        if (!all.results[i]) continue;
        auto document = plan::run_from_json(part_in(*all.results[i], "run", nlohmann::json::object()));
        const plan::Step* best = document ? report::best_step(*document) : nullptr;
        every = every && best;
        nlohmann::json row = {{"task", all.manifest->units[i].name}, {"run", document ? document->run.id : ""}, {"found", best != nullptr}};
        if (best && best->microseconds) row["us"] = *best->microseconds;
        fmt::print("{}: {}{}\n", printable(all.manifest->units[i].name), best ? "a proved kernel" : "no kernel",
                   best && best->microseconds ? fmt::format(", {:.2f} us", *best->microseconds) : "");
        by_gpu[text_in(*all.results[i], "gpu", "no GPU")].push_back(std::move(row));
    }
    if (!path.empty() && !write_json(path, {{"by_gpu", by_gpu}})) return exit_bad_input;
    return every ? exit_fine : exit_kernel_wrong;
}

std::function<int()> declare_optimize(CLI::App& app) {
    using namespace optimize_command;
    auto o = std::make_shared<OptimizeOptions>();
    app.add_option("task", o->task.file, "a task file (TOML, docs/agent.md)");
    app.add_option("tasks", o->more, "further task files, with --engine");
    declare_engine(app, o->engine);
    declare_unit_result(app, o->unit_result);
    declare_task_line(app, o->task);
    app.add_option("--proposer", o->proposer,
                   "who writes kernels: builtin, openai[:MODEL], anthropic[:MODEL], command:PROGRAM (docs/proposers.md)")
        ->capture_default_str();
    app.add_option("--steps", o->loop.budget.candidates, "at most so many candidates")->capture_default_str()->check(CLI::Range(1, 10000));
    app.add_option("--seconds", o->loop.budget.seconds, "at most so many seconds")->check(positive_number());
    app.add_option("--tokens", o->loop.budget.tokens, "at most so many tokens")->check(positive_number());
    app.add_option("--dollars", o->loop.budget.dollars, "at most so much money (needs a price: TILEWRIGHT_DOLLARS_PER_MILLION)")
        ->check(positive_number());
    app.add_option("--stop-at", o->loop.stop_share, "share of the roofline at which to stop")
        ->capture_default_str()
        ->check(positive_number());
    app.add_option("--plateau", o->loop.plateau, "candidates without a gain after which to stop")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000000));
    app.add_option("--repairs", o->loop.repairs, "repairs of one failing candidate")->capture_default_str()->check(CLI::Range(0, 100));
    app.add_option("--seed", o->loop.seed, "seed of every choice")->capture_default_str();
    app.add_option("--profile-after", o->loop.profile_after, "stage after which profiling is shown, instead of the class's own");
    app.add_option("--without", o->without, "leave parts out: invariants knowledge delay memory");
    app.add_option("--journal", o->journal, "the journal's file");
    app.add_option("--memory", o->memory, "the planner's memory");
    app.add_option("-o,--out", o->out, "write the best kernel here");
    app.add_option("--html", o->page, "write the run's page here (default: beside the journal)");
    app.add_option("--replay", o->replay, "judge candidates by a table of measured ones instead of the gates (scripts/learning_table.py)");
    app.add_flag("--no-gpu", o->no_gpu, "do not use a GPU even if there is one");
    app.add_flag("--serve", o->serve, "show the run's page in a browser on this machine while it goes on");
    app.add_option("--port", o->port, "of --serve; 0: any that is free")->capture_default_str()->check(CLI::Range(0, 65535));
    app.footer(
        "Exit status: 0 there is a proved kernel, 1 none passed, 2 bad input.\nExample: tilewright optimize tasks/gelu.toml -o gelu.py\n   "
        "      tilewright optimize --computes \"Y[m, n] = relu(X[m, n])\" --set M=4096,N=4096");
    return [o] { return run(*o); };
}

}  // namespace tw::cli
