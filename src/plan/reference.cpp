#include "plan/reference.h"

#include <algorithm>

#include "base/text.h"
#include "plan/knowledge.h"
#include "runtime/shared_library.h"

namespace tw::plan {
namespace {

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

std::set<std::string> words_of(std::string_view text) {
    std::set<std::string> words;
    for (std::size_t i = 0; i < text.size();) {
        if (!is_word(text[i])) {
            ++i;
            continue;
        }
        std::size_t end = i;
        while (end < text.size() && is_word(text[end])) ++end;
        words.insert(std::string(text.substr(i, end - i)));
        i = end;
    }
    return words;
}

// Every X of `tw.X`: the constructs a section shows.
std::set<std::string> constructs_of(std::string_view text) {
    std::set<std::string> names;
    for (std::size_t at = text.find("tw."); at != std::string_view::npos; at = text.find("tw.", at + 3)) {
        if (at > 0 && is_word(text[at - 1])) continue;
        std::size_t end = at + 3;
        while (end < text.size() && is_word(text[end])) ++end;
        if (end > at + 3) names.insert(std::string(text.substr(at + 3, end - at - 3)));
    }
    return names;
}

// Sections that a kernel of any kind needs, by title.
constexpr std::string_view kCore[] = {"",        "A file",           "What it computes", "Integers", "Grid",
                                      "Control", "Views of tensors", "Register tiles",   "Limits"};

}  // namespace

std::vector<ReferenceSection> split_reference(std::string_view markdown) {
    std::vector<ReferenceSection> sections(1);
    bool in_code = false;
    for (const auto line : split_lines(markdown)) {
        if (line.rfind("```", 0) == 0) in_code = !in_code;
        const bool two = line.rfind("## ", 0) == 0, three = line.rfind("### ", 0) == 0;
        if (!in_code && (two || three)) {
            sections.emplace_back();
            sections.back().title = std::string(trim(line.substr(three ? 4 : 3)));
            sections.back().level = three ? 3 : 2;
        }
        sections.back().text += std::string(line) + "\n";
    }
    // What every section shows (tw.kernel, tw.Tensor, ...) tells nothing about which of them is needed.
    for (ReferenceSection& section : sections) {
        section.names = constructs_of(section.text);
        section.core = section.level == 2 && std::find(std::begin(kCore), std::end(kCore), section.title) != std::end(kCore);
    }
    std::set<std::string> common;
    for (const ReferenceSection& section : sections)
        if (section.core) common.insert(section.names.begin(), section.names.end());
    for (ReferenceSection& section : sections)
        if (!section.core)
            for (const std::string& name : common) section.names.erase(name);
    return sections;
}

runtime::Result<std::vector<ReferenceSection>> load_reference() {
    const auto folder = runtime::data_folder("docs");
    auto text = read_file(folder / "language.md");
    if (!text)
        return runtime::fail(runtime::FailureKind::io_error, text.error(),
                             "the folder docs comes with the program; TILEWRIGHT_DATA names the folder that holds it");
    return split_reference(*text);
}

std::string cute_notes(tasks::WorkloadClass workload) {
    std::set<std::filesystem::path> files;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(knowledge_folder() / "cute", error), end; !error && entry != end; entry.increment(error))
        if (entry->path().extension() == ".md") files.insert(entry->path());
    std::string out;
    for (const auto& file : files) {
        const auto text = read_file(file);
        constexpr std::string_view begin = "<!-- for: ";
        const auto end = text ? text->find(" -->") : std::string::npos;
        if (end == std::string::npos || text->rfind(begin, 0) != 0) continue;
        const auto classes = words_of(std::string_view(*text).substr(begin.size(), end - begin.size()));
        if (!classes.count("all") && !classes.count(std::string(tasks::name_of(workload)))) continue;
        out += text->substr(std::min(text->size(), text->find('\n') + 1)) + "\n";
    }
    return out;
}

std::string trimmed_reference(const std::vector<ReferenceSection>& sections, const std::vector<std::string>& texts) {
    std::set<std::string> wanted;
    for (const std::string& text : texts) wanted.merge(words_of(text));
    std::vector<bool> taken(sections.size(), false);
    for (std::size_t i = 0; i < sections.size(); ++i) {
        taken[i] = sections[i].core || std::any_of(sections[i].names.begin(), sections[i].names.end(),
                                                   [&](const std::string& name) { return wanted.count(name) > 0; });
        if (!taken[i] || sections[i].level == 2) continue;
        for (std::size_t head = i; head-- > 0;)
            if (sections[head].level == 2) {
                taken[head] = true;
                break;
            }
    }
    std::string out;
    for (std::size_t i = 0; i < sections.size(); ++i)
        if (taken[i]) out += sections[i].text;
    return out;
}

}  // namespace tw::plan
