// `tilewright reference [WORD...]`: the language, whole or the sections that speak of something.
#include "plan/reference.h"

#include <iostream>
#include <memory>

#include "cli/command.h"

namespace tw::cli {
namespace reference_command {

struct Options {
    std::vector<std::string> words;
    bool list = false;
};

// A section whose title has the word, or that documents a construct of that name.
bool speaks_of(const plan::ReferenceSection& section, const std::string& word) {
    const auto lower = [](std::string text) {
        for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        return text;
    };
    return lower(section.title).find(lower(word)) != std::string::npos || section.names.count(word) > 0;
}

int run(const Options& o) {
    auto sections = plan::load_reference();
    if (!sections) return complain(exit_bad_input, sections.error().message, sections.error().fix);
    bool found = false;
    for (const auto& section : *sections) {
        if (o.list) {
            if (!section.title.empty()) std::cout << std::string(section.level == 3 ? 2 : 0, ' ') << section.title << "\n";
            continue;
        }
        bool wanted = o.words.empty();
        for (const std::string& word : o.words) wanted = wanted || speaks_of(section, word);
        if (wanted) std::cout << section.text;
        found = found || wanted;
    }
    if (!o.list && !found) return complain(exit_bad_input, "no section speaks of that", "`tilewright reference --list` names the sections");
    return exit_fine;
}

}  // namespace reference_command

std::function<int()> declare_reference(CLI::App& app) {
    using namespace reference_command;
    auto options = std::make_shared<Options>();
    app.add_option("words", options->words, "only sections whose title has such a word, or that show tw.WORD");
    app.add_flag("--list", options->list, "the titles");
    return [options] { return run(*options); };
}

}  // namespace tw::cli
