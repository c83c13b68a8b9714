// `tilewright knowledge list|show|search`: the techniques.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "plan/knowledge.h"

namespace tw::cli {
namespace knowledge_command {

struct Options {
    std::string action;
    std::vector<std::string> words;
    bool json = false;
};

nlohmann::json to_json(const plan::Technique& t) {
    nlohmann::json classes = nlohmann::json::array();
    for (auto c : t.classes) classes.push_back(tasks::name_of(c));
    return {{"id", t.id},           {"title", t.title},           {"stage", plan::name_of(t.stage)},  {"classes", classes},
            {"targets", t.targets}, {"bound", t.bound},           {"expected_gain", t.expected_gain}, {"uncertainty", t.uncertainty},
            {"enables", t.enables}, {"invariants", t.invariants}, {"failure_modes", t.failure_modes}, {"rewrite", t.rewrite},
            {"text", t.prompt}};
}

void print_list(const std::vector<const plan::Technique*>& all) {
    for (const plan::Technique* t : all)
        fmt::print("{:<20} {:<11} {:>5.2f}x  {}\n", t->id, plan::name_of(t->stage), t->expected_gain, t->title);
}

int run(const Options& o) {
    DiagnosticSink sink;
    SourceMap sources;
    const plan::Knowledge base = plan::load_knowledge(plan::knowledge_folder(), sink);
    if (!sink.empty()) std::cerr << render_text(sink, sources);
    if (base.techniques.empty())
        return complain(exit_bad_input, "the knowledge base is empty", "set TILEWRIGHT_KNOWLEDGE to the folder knowledge/");
    std::vector<const plan::Technique*> chosen;
    if (o.action == "list") {
        for (const plan::Technique& t : base.techniques) chosen.push_back(&t);
    } else if (o.action == "search") {
        chosen = plan::search(base, join(o.words, " "));
    } else if (o.action == "show") {
        for (const std::string& w : o.words) {
            const plan::Technique* t = base.find(w);
            if (!t) return complain(exit_bad_input, fmt::format("there is no technique '{}'", printable(w)), "tilewright knowledge list");
            chosen.push_back(t);
        }
        if (chosen.empty()) return complain(exit_bad_input, "which technique?", "tilewright knowledge list");
    } else return complain(exit_bad_input, fmt::format("there is no action '{}'", printable(o.action)), "list, show NAME or search WORDS");
    if (chosen.empty()) return complain(exit_kernel_wrong, "no technique speaks of that", "tilewright knowledge list");
    if (o.json) {
        nlohmann::json out = nlohmann::json::array();
        for (const plan::Technique* t : chosen) out.push_back(to_json(*t));
        print_json({{"techniques", std::move(out)}});
    } else if (o.action != "show") {
        print_list(chosen);
    } else {
        for (const plan::Technique* t : chosen) {
            std::vector<std::string> classes;
            for (auto c : t->classes) classes.emplace_back(tasks::name_of(c));
            fmt::print("{}: {}\nstage {}, expected gain {:.2f}x (log deviation {:.2f}), for {}{}\n\n{}\n", t->id, t->title,
                       plan::name_of(t->stage), t->expected_gain, t->uncertainty, join(classes, ", "),
                       t->rewrite.empty() ? ", no built-in rewrite" : "", t->prompt);
            if (!t->invariants.empty()) fmt::print("\nmust keep:\n  - {}\n", join(t->invariants, "\n  - "));
            if (!t->failure_modes.empty()) fmt::print("how it fails:\n  - {}\n", join(t->failure_modes, "\n  - "));
            if (!t->enables.empty()) fmt::print("makes possible: {}\n", join(t->enables, ", "));
        }
    }
    return exit_fine;
}

}  // namespace knowledge_command

std::function<int()> declare_knowledge(CLI::App& app) {
    using namespace knowledge_command;
    auto o = std::make_shared<Options>();
    app.add_option("action", o->action, "list, show or search")->required();
    app.add_option("words", o->words, "names, or words to search for");
    app.add_flag("--json", o->json, "print JSON");
    app.footer("Example: tilewright knowledge search bank conflict");
    return [o] { return run(*o); };
}

}  // namespace tw::cli
