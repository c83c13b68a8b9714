// `tilewright runs`: what the journal holds.
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/terminal.h"
#include "report/run_text.h"

namespace tw::cli {
namespace runs_command {

struct Options {
    std::string journal;
    bool json = false;
};

int run(const Options& o) {
    const std::filesystem::path path = o.journal.empty() ? plan::Journal::default_path() : std::filesystem::path(o.journal);
    std::vector<plan::RunSummary> runs;
    std::error_code error;
    // No journal yet is no failure: nothing has been run.
    if (std::filesystem::exists(path, error) || !o.journal.empty()) {
        auto journal = plan::Journal::open(path, plan::Database::Mode::read);
        if (!journal) return complain(exit_bad_input, journal.error().message, journal.error().fix);
        auto found = journal->runs();
        if (!found) return complain(exit_bad_input, found.error().message, found.error().fix);
        runs = std::move(*found);
    }
    if (!o.json) {
        std::cout << report::runs_text(runs);
        return exit_fine;
    }
    nlohmann::json list = nlohmann::json::array();
    for (const auto& summary : runs) list.push_back(plan::to_json(summary));
    print_json({{"journal", path.string()}, {"runs", list}});
    return exit_fine;
}

}  // namespace runs_command

std::function<int()> declare_runs(CLI::App& app) {
    using namespace runs_command;
    auto options = std::make_shared<Options>();
    app.add_option("--journal", options->journal, "the journal's file (default: journal.db in $TILEWRIGHT_STATE)");
    app.add_flag("--json", options->json, "print JSON");
    app.footer("A run that is `interrupted` was stopped in the middle; `tilewright resume RUN` goes on with it.");
    return [options] { return run(*options); };
}

}  // namespace tw::cli
