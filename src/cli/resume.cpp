// `tilewright resume RUN`: goes on with a run that was killed, or had spent its budget.
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/optimize.h"
#include "tasks/load.h"

namespace tw::cli {
namespace {

struct Options {
    std::string run;
    int steps = 0;
    OptimizeOptions optimize;
};

int run(Options o) {
    using nlohmann::json;
    const std::filesystem::path path = o.optimize.journal.empty() ? plan::Journal::default_path() : std::filesystem::path(o.optimize.journal);
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
        if (!loaded) {
            std::cerr << render_text(sink, sources);
            return exit_bad_input;
        }
        task = std::move(*loaded);
        // The run's own settings; a damaged or older one keeps the defaults.
        const json& s = document->run.settings;
        plan::LoopOptions& loop = o.optimize.loop;
        const auto number = [&](const char* key, double otherwise) { return s.contains(key) && s[key].is_number() ? s[key].get<double>() : otherwise; };
        const auto flag = [&](const char* key, bool otherwise) { return s.contains(key) && s[key].is_boolean() ? s[key].get<bool>() : otherwise; };
        loop.budget.candidates = o.steps > 0 ? o.steps : static_cast<int>(number("candidates", loop.budget.candidates));
        loop.budget.seconds = number("seconds", loop.budget.seconds);
        loop.budget.tokens = static_cast<std::int64_t>(number("tokens", static_cast<double>(loop.budget.tokens)));
        loop.budget.dollars = number("dollars", loop.budget.dollars);
        loop.seed = static_cast<std::uint64_t>(number("seed", static_cast<double>(loop.seed)));
        loop.stop_share = number("stop_share", loop.stop_share);
        const auto text = [&](const char* key) { return s.contains(key) && s[key].is_string() ? s[key].get<std::string>() : std::string(); };
        loop.plateau = static_cast<int>(number("plateau", loop.plateau));
        loop.repairs = static_cast<int>(number("repairs", loop.repairs));
        loop.profile_after = text("profile_after");
        loop.gates.verify_seconds = number("verify_seconds", loop.gates.verify_seconds);
        loop.gates.search_seconds = number("search_seconds", loop.gates.search_seconds);
        loop.gates.rounds = static_cast<int>(number("rounds", loop.gates.rounds));
        if (o.optimize.memory.empty()) o.optimize.memory = text("memory");
        loop.use_knowledge = flag("use_knowledge", true), loop.use_memory = flag("use_memory", true), loop.delay_profiling = flag("delay_profiling", true);
        loop.gates.invariant_feedback = flag("invariant_feedback", true);
        if (flag("replay", false)) return complain(exit_bad_input, "run " + id + " is a replay of earlier measurements", "run the replay again: it takes seconds");
        if (!flag("gpu", true)) o.optimize.no_gpu = true;  // times of another machine and none at all do not mix
        if (o.optimize.proposer.empty()) o.optimize.proposer = document->run.proposer;
    }
    return optimize_task(o.optimize, task, id);
}

}  // namespace

std::function<int()> declare_resume(CLI::App& app) {
    auto o = std::make_shared<Options>();
    o->optimize.proposer.clear();
    app.add_option("run", o->run, "a run of `tilewright runs`, the beginning of its id, or `last`")->required();
    app.add_option("--steps", o->steps, "a new bound on candidates, in all (default: the run's own)");
    app.add_option("--proposer", o->optimize.proposer, "another proposer than the run's own");
    app.add_option("--journal", o->optimize.journal, "the journal's file");
    app.add_option("--memory", o->optimize.memory, "the planner's memory");
    app.add_option("-o,--out", o->optimize.out, "write the best kernel here");
    app.add_option("--html", o->optimize.page, "write the run's page here");
    return [o] { return run(*o); };
}

}  // namespace tw::cli
