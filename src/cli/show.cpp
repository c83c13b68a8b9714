// `tilewright show RUN [STEP]`: a run, or one step of it, from the journal or from an exported file.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <iostream>
#include <memory>

#include "base/input.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/page_server.h"
#include "report/evidence.h"
#include "report/page.h"
#include "report/run_text.h"

namespace tw::cli {
namespace show_command {

using nlohmann::json;

struct Options {
    std::string run, journal, html, export_file;
    int step = -1;
    bool json = false, evidence = false, source = false, full = false;
};

std::string dumped(const json& value, int indent) { return value.dump(indent, ' ', false, json::error_handler_t::replace) + "\n"; }

plan::Result<plan::RunDocument> load_export(const std::string& file) {
    auto text = read_file(file);
    if (!text) return plan::fail(plan::FailureKind::io_error, text.error());
    const json exported = parse_json(*text);
    auto document = plan::run_from_json(exported);
    if (!document) return plan::fail(document.error().kind, file + ": " + document.error().message, document.error().fix);
    return document;
}

plan::Result<plan::RunDocument> load(const Options& o) {
    std::error_code error;
    if (o.run.size() > 5 && o.run.substr(o.run.size() - 5) == ".json" && std::filesystem::exists(o.run, error)) return load_export(o.run);
    auto journal = plan::Journal::open(o.journal.empty() ? plan::Journal::default_path() : std::filesystem::path(o.journal),
                                       plan::Database::Mode::read);
    if (!journal) return std::move(journal).propagate();
    auto id = journal->find(o.run);
    if (!id) return std::move(id).propagate();
    return journal->read(*id);
}

int write(const std::string& path, const std::string& content, const char* what) {
    if (auto written = write_file_atomically(path, content); !written) return complain(exit_bad_input, written.error());
    fmt::print("{}: {}\n", what, path);
    return exit_fine;
}

int run(const Options& o) {
    auto document = load(o);
    if (!document) return complain(exit_bad_input, document.error().message, document.error().fix);
    const int steps = static_cast<int>(document->steps.size());
    if (o.step >= steps) return complain(exit_bad_input, fmt::format("run {} has steps 0 to {}", document->run.id, steps - 1));
    const plan::Step* step = o.step >= 0 ? &document->steps[static_cast<std::size_t>(o.step)] : nullptr;
    if (!o.export_file.empty()) return write(o.export_file, dumped(plan::to_json(*document, !o.full), 1), "exported");
    if (!o.html.empty()) return write(o.html, page_of(*document), "page");
    if (o.evidence) {
        auto certificate = report::evidence_certificate(*document, o.step);
        if (!certificate) return complain(exit_bad_input, certificate.error().message, certificate.error().fix);
        std::cout << dumped(*certificate, 2);
        return exit_fine;
    }
    if (o.source) {
        const plan::Step* shown = step ? step : report::best_step(*document);
        if (!shown)
            return complain(exit_bad_input, fmt::format("run {} has no accepted kernel", document->run.id),
                            "name a step: tilewright show RUN STEP --source");
        std::cout << shown->source;
        return exit_fine;
    }
    if (o.json) std::cout << dumped(step ? plan::to_json(*step, false) : plan::to_json(*document, false), 2);
    else std::cout << (step ? report::step_text(*step) : report::run_text(*document));
    return exit_fine;
}

}  // namespace show_command

std::function<int()> declare_show(CLI::App& app) {
    using namespace show_command;
    auto options = std::make_shared<Options>();
    app.add_option("run", options->run, "a run of `tilewright runs` (the beginning of its id, or `last`), or an exported .json file")
        ->required();
    app.add_option("step", options->step, "one step of it")->check(CLI::NonNegativeNumber);
    app.add_option("--journal", options->journal, "the journal's file (default: journal.db in $TILEWRIGHT_STATE)");
    app.add_flag("--json", options->json, "print JSON (schema in docs/journal.md)");
    app.add_flag("--source", options->source, "print the kernel: the best one, or that of the step");
    app.add_option("--html", options->html, "write the run as a page that needs nothing else");
    app.add_flag("--evidence", options->evidence, "print the certificate of the best kernel, or of the step (JSON)");
    app.add_option("--export", options->export_file, "write the run as one JSON file, compact");
    app.add_flag("--full", options->full, "with --export: also every source, prompt and reply");
    return [options] { return run(*options); };
}

}  // namespace tw::cli
