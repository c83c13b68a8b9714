#include "base/codes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include <fmt/format.h>

namespace tw {
namespace {

constexpr std::array kTable = {
#define TW_CODE(digits, name, kind, meaning, explanation, wrong, fix) \
    CodeInfo{Code::name, "TW" #digits, #name, ProblemKind::kind, meaning, explanation, wrong, fix},
#include "base/codes.def"
#undef TW_CODE
};

// Sorted once at start: sections are kept by different hands, and only the order within each is theirs.
const std::vector<CodeInfo>& sorted_table() {
    static const std::vector<CodeInfo> table = [] {
        std::vector<CodeInfo> sorted(kTable.begin(), kTable.end());
        std::sort(sorted.begin(), sorted.end(), [](const CodeInfo& a, const CodeInfo& b) { return a.code < b.code; });
        return sorted;
    }();
    return table;
}

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

std::string indented(std::string_view block, std::string_view margin) {
    std::string result;
    while (!block.empty()) {
        const std::size_t end = std::min(block.find('\n'), block.size());
        result += fmt::format("{}{}\n", end == 0 ? "" : margin, block.substr(0, end));
        block.remove_prefix(std::min(end + 1, block.size()));
    }
    return result;
}

std::string wrapped(std::string_view paragraph, std::size_t width) {
    std::string result, line;
    std::size_t at = 0;
    while (at < paragraph.size()) {
        const std::size_t end = std::min(paragraph.find_first_of(" \n", at), paragraph.size());
        const std::string_view word = paragraph.substr(at, end - at);
        if (!line.empty() && line.size() + 1 + word.size() > width) {
            result += line + "\n";
            line.clear();
        }
        if (!line.empty() && !word.empty()) line += ' ';
        line += word;
        if (end < paragraph.size() && paragraph[end] == '\n') {
            result += line + "\n";
            line.clear();
        }
        at = end + 1;
    }
    if (!line.empty()) result += line + "\n";
    return result;
}

struct Section {
    int first;
    int last;
    std::string_view title;
};
constexpr Section kSections[] = {
    {0, 99, "Reading, lexing and parsing"},
    {100, 199, "Names"},
    {200, 299, "Types, shapes and dtypes"},
    {300, 399, "Kernel structure"},
    {400, 499, "Instruction legality and resources"},
    {500, 599, "The `computes` grammar"},
    {1000, 1999, "Verifier: data flow"},
    {2000, 2999, "Verifier: synchronisation"},
    {3000, 3999, "Remarks on speed"},
    {4000, 4999, "Code generation and compiler"},
    {5000, 5999, "Runtime and launch"},
    {6000, 6999, "Tasks and the optimisation loop"},
    {9000, 9999, "Internal errors"},
};

std::string_view fence_language(const CodeInfo& info) { return static_cast<int>(info.code) / 100 == 5 ? "text" : "python"; }

}  // namespace

std::span<const CodeInfo> all_codes() { return sorted_table(); }

const CodeInfo& code_info(Code code) {
    const auto& table = sorted_table();
    const auto found =
        std::lower_bound(table.begin(), table.end(), code, [](const CodeInfo& info, Code wanted) { return info.code < wanted; });
    if (found != table.end() && found->code == code) return *found;
    return code_info(Code::internal_error);  // a number that was cast to Code without being in the table
}

std::optional<Code> find_code(std::string_view text) {
    const std::string wanted = lower(text);
    for (const CodeInfo& info : sorted_table()) {
        if (wanted == lower(info.id) || wanted == info.name) return info.code;
    }
    std::string digits = wanted.starts_with("tw") ? wanted.substr(2) : wanted;
    if (digits.empty() || digits.size() > 4) return std::nullopt;
    if (!std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); })) return std::nullopt;
    digits.insert(0, 4 - digits.size(), '0');
    for (const CodeInfo& info : sorted_table()) {
        if (info.id.substr(2) == digits) return info.code;
    }
    return std::nullopt;
}

Code nearest_code(std::string_view text) {
    const std::string wanted = lower(text.substr(0, 64));
    Code best = Code::internal_error;
    std::size_t best_distance = static_cast<std::size_t>(-1);
    for (const CodeInfo& info : sorted_table()) {
        const std::size_t distance = std::min(edit_distance(wanted, lower(info.id)), edit_distance(wanted, info.name));
        if (distance < best_distance) {
            best = info.code;
            best_distance = distance;
        }
    }
    return best;
}

std::string_view to_string(ProblemKind kind) {
    switch (kind) {
        case ProblemKind::user: return "user";
        case ProblemKind::resource: return "resource";
        case ProblemKind::internal: return "internal";
    }
    return "internal";
}

std::string explain_text(const CodeInfo& info) {
    std::string text =
        fmt::format("{} {}\n{}\n{}", info.id, info.name, wrapped(fmt::format("{}.", info.meaning), 96), wrapped(info.explanation, 96));
    if (!info.wrong.empty()) text += fmt::format("\nWrong:\n\n{}", indented(info.wrong, "    "));
    if (!info.fix.empty()) text += fmt::format("\nRight:\n\n{}", indented(info.fix, "    "));
    return text;
}

std::string diagnostics_markdown() {
    std::string text =
        "# Diagnostics\n\n"
        "<!-- Generated from src/base/codes/ by `tilewright explain --markdown`; a test fails when this file is stale. "
        "-->\n\n"
        "Every message carries a code. `tilewright explain CODE` prints the entry below. A *user* problem is in the text "
        "or "
        "the call, a *resource* problem means that something is used up or missing, an *internal* one is a bug of "
        "Tilewright's.\n";
    for (const Section& section : kSections) {
        bool opened = false;
        for (const CodeInfo& info : sorted_table()) {
            const int number = static_cast<int>(info.code);
            if (number < section.first || number > section.last) continue;
            if (!opened) text += fmt::format("\n## {}\n", section.title);
            opened = true;
            text += fmt::format("\n### {} {}\n\n*{}*: {}.\n\n{}", info.id, info.name, to_string(info.kind), info.meaning,
                                wrapped(info.explanation, 118));
            const auto fence = [&](std::string_view title, std::string_view code) {
                if (code.empty()) return;
                text += fmt::format("\n{}\n\n```{}\n{}{}```\n", title, fence_language(info), code, code.back() == '\n' ? "" : "\n");
            };
            fence("Wrong:", info.wrong);
            fence("Right:", info.fix);
        }
    }
    return text;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before.swap(last);
        last.swap(row);
    }
    return last[b.size()];
}

}  // namespace tw
