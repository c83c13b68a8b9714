// `tilewright resume RUN`: goes on with a run that was killed, or had spent its budget.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>

#include "base/diagnostic.h"
#include "base/input.h"
#include "cli/command.h"
#include "cli/kernel_file.h"
#include "cli/optimize.h"
#include "tasks/load.h"

namespace tw::cli {
namespace resume_command {

struct Options {
    std::string run;
    // New bounds in all, what the run has spent included; 0: the run's own.
    int steps = 0;
    double seconds = 0, dollars = 0;
    std::int64_t tokens = 0;
    OptimizeOptions optimize;
};

struct Problem {
    std::string message, fix;
};

// The memory that the run asked, when it is a plain file in the journal's own folder: a journal that came from elsewhere must not say which
// files are opened.
std::string recorded_memory(const nlohmann::json& settings, const std::filesystem::path& journal) {
    const std::filesystem::path recorded = text_in(settings, "memory");
    std::error_code error;
    const auto folder = std::filesystem::absolute(journal, error).parent_path().lexically_normal();
    if (recorded.empty() || recorded.parent_path() != folder || std::filesystem::is_symlink(recorded, error)) return {};
    return recorded.string();
}

// The run's own settings; a damaged, senseless or older one keeps the default.
std::optional<Problem> take_settings(Options& o, const plan::RunDocument& document, const std::filesystem::path& path) {
    const nlohmann::json& s = document.run.settings;
    plan::LoopOptions& loop = o.optimize.loop;
    const auto number = [&](const char* key, double otherwise, double most) {
        const double value = number_in(s, key, otherwise);
        return std::isfinite(value) && value >= 0 && value <= most ? value : otherwise;
    };
    const auto whole = [&](const char* key, int otherwise, int most) { return static_cast<int>(integer_in(s, key, otherwise, 0, most)); };
    loop.budget.candidates = o.steps > 0 ? o.steps : std::max(1, whole("candidates", loop.budget.candidates, 10000));
    loop.budget.seconds = o.seconds > 0 ? o.seconds : number("seconds", loop.budget.seconds, 1e8);
    loop.budget.tokens = o.tokens > 0 ? o.tokens : count_in(s, "tokens");
    loop.budget.dollars = o.dollars > 0 ? o.dollars : number("dollars", loop.budget.dollars, 1e9);
    loop.seed = static_cast<std::uint64_t>(
        integer_in(s, "seed", static_cast<std::int64_t>(loop.seed), 0, std::numeric_limits<std::int64_t>::max()));
    loop.stop_share = number("stop_share", loop.stop_share, 1e3);
    loop.plateau = whole("plateau", loop.plateau, 1'000'000);
    loop.repairs = whole("repairs", loop.repairs, 100);
    loop.profile_after = text_in(s, "profile_after");
    loop.gates.verify_seconds = number("verify_seconds", loop.gates.verify_seconds, 86400);
    loop.gates.gate_seconds = number("gate_seconds", loop.gates.gate_seconds, 86400);
    loop.gates.search_seconds = number("search_seconds", loop.gates.search_seconds, 86400);
    loop.gates.rounds = std::max(1, whole("rounds", loop.gates.rounds, 10000));
    if (o.optimize.memory.empty()) o.optimize.memory = recorded_memory(s, path);
    loop.use_knowledge = flag_in(s, "use_knowledge", true), loop.use_memory = flag_in(s, "use_memory", true),
    loop.delay_profiling = flag_in(s, "delay_profiling", true);
    loop.gates.invariant_feedback = flag_in(s, "invariant_feedback", true);
    if (flag_in(s, "replay"))
        return Problem{"run " + document.run.id + " is a replay of earlier measurements", "run the replay again: it takes seconds"};
    if (!flag_in(s, "gpu", true)) o.optimize.no_gpu = true;  // times of another machine and none at all do not mix
    if (!o.optimize.proposer.empty()) return std::nullopt;
    // A journal may come from anywhere; which program is started is said on the command line.
    if (document.run.proposer.rfind("command:", 0) == 0)
        return Problem{fmt::format("the run's proposer is a program, and the journal alone does not decide that it is started: {}",
                                   printable(document.run.proposer)),
                       "if it is yours, name it: tilewright resume " + o.run + " --proposer \"command:...\""};
    o.optimize.proposer = document.run.proposer;
    return std::nullopt;
}

int run(Options o) {
    const std::filesystem::path path =
        o.optimize.journal.empty() ? plan::Journal::default_path() : std::filesystem::path(o.optimize.journal);
    std::string id;
    tasks::Task task;
    {
        auto journal = plan::Journal::open(path, plan::Database::Mode::read);
        if (!journal) return complain(exit_bad_input, journal.error().message, journal.error().fix);
        auto found = journal->find(o.run);
        if (!found) return complain(exit_bad_input, found.error().message, found.error().fix);
        id = *found;
        auto document = journal->read(id);
        if (!document) return complain(exit_bad_input, document.error().message, document.error().fix);
        SourceMap sources;
        DiagnosticSink sink;
        auto loaded = tasks::load_task_text(sources, document->run.task_name + ".toml", document->run.task_text, sink);
        if (!loaded) return rejected(sink, sources, exit_bad_input);
        task = std::move(*loaded);
        if (auto problem = take_settings(o, *document, path)) return complain(exit_bad_input, problem->message, problem->fix);
    }
    return optimize_task(o.optimize, task, id);
}

}  // namespace resume_command

std::function<int()> declare_resume(CLI::App& app) {
    using namespace resume_command;
    auto o = std::make_shared<Options>();
    o->optimize.proposer.clear();
    app.add_option("run", o->run, "a run of `tilewright runs`, the beginning of its id, or `last`")->required();
    app.add_option("--steps", o->steps, "a new bound on candidates, in all (default: the run's own)")->check(CLI::Range(1, 10000));
    app.add_option("--seconds", o->seconds, "a new bound on seconds, in all (default: the run's own)")->check(positive_number());
    app.add_option("--tokens", o->tokens, "a new bound on tokens, in all (default: the run's own)")->check(positive_number());
    app.add_option("--dollars", o->dollars, "a new bound on money, in all (default: the run's own)")->check(positive_number());
    app.add_option("--proposer", o->optimize.proposer,
                   "another proposer than the run's own; a run by `command:PROGRAM` goes on only when the program is named here");
    app.add_option("--journal", o->optimize.journal, "the journal's file");
    app.add_option("--memory", o->optimize.memory, "the planner's memory");
    app.add_option("-o,--out", o->optimize.out, "write the best kernel here");
    app.add_option("--html", o->optimize.page, "write the run's page here");
    return [o] { return run(*o); };
}

}  // namespace tw::cli
