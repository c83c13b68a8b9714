// Pastes the device headers into a source, and of them only what it uses.
#include <map>
#include <set>
#include <sstream>

#include "codegen/emit.h"

namespace tw::codegen {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

bool starts_with(const std::string& line, const char* prefix) { return line.rfind(prefix, 0) == 0; }

// The headers' style: a device function begins in column 0 with TW_DEVICE, maybe under a template line and comments, and ends
// with a brace in column 0 or on its only line.
struct Piece {
    std::vector<std::string> lines;
    std::string function;  // its name; empty: text that is kept
};

std::string name_before_parenthesis(const std::string& line) {
    const std::size_t end = line.find('(');
    std::size_t begin = end;
    while (begin != std::string::npos && begin > 0 && (std::isalnum(static_cast<unsigned char>(line[begin - 1])) || line[begin - 1] == '_'))
        --begin;
    return end == std::string::npos ? "" : line.substr(begin, end - begin);
}

std::vector<Piece> pieces_of(const std::vector<std::string>& lines) {
    std::vector<Piece> pieces;
    std::vector<std::string> head;  // comments and template line of what comes next
    auto keep = [&](const std::string& line) {
        if (pieces.empty() || !pieces.back().function.empty()) pieces.emplace_back();
        pieces.back().lines.push_back(line);
    };
    auto keep_head = [&] {
        for (const std::string& line : head) keep(line);
        head.clear();
    };
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string& line = lines[i];
        if (starts_with(line, "//") || starts_with(line, "template <")) {
            head.push_back(line);
        } else if (starts_with(line, "TW_DEVICE")) {
            Piece piece;
            piece.lines = std::move(head);
            head.clear();
            piece.function = name_before_parenthesis(line);
            const bool single = line.back() == '}';
            piece.lines.push_back(line);
            while (!single && i + 1 < lines.size() && lines[i] != "}") piece.lines.push_back(lines[++i]);
            pieces.push_back(std::move(piece));
        } else {
            keep_head();
            keep(line);
        }
    }
    keep_head();
    return pieces;
}

void add_words(const std::string& line, std::set<std::string>& words) {
    std::string word;
    for (char c : line + " ") {
        if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') word += c;
        else if (!word.empty()) words.insert(std::move(word)), word.clear();
    }
}

}  // namespace

std::string self_contained(const std::string& source, const std::function<std::optional<std::string>(const std::string&)>& header_of) {
    std::set<std::string> seen;
    std::vector<std::string> pasted;
    std::function<void(const std::string&, bool)> paste = [&](const std::string& text, bool is_header) {
        for (const std::string& line : lines_of(text)) {
            if (is_header && starts_with(line, "#pragma once")) continue;
            const std::size_t end = starts_with(line, "#include \"") ? line.find('"', 10) : std::string::npos;
            if (end != std::string::npos) {
                const std::string name = line.substr(10, end - 10);
                if (!seen.insert(name).second) continue;
                if (auto header = header_of(name)) {
                    paste(*header, true);
                    continue;
                }
            }
            pasted.push_back(line);
        }
    };
    paste(source, false);

    const std::vector<Piece> pieces = pieces_of(pasted);
    std::set<std::string> used;
    std::vector<bool> taken(pieces.size(), false);
    for (bool grew = true; grew;) {
        grew = false;
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            if (taken[i] || (!pieces[i].function.empty() && !used.count(pieces[i].function))) continue;
            taken[i] = grew = true;
            for (const std::string& line : pieces[i].lines) {
                if (!starts_with(line, "//")) add_words(line, used);
            }
        }
    }
    std::string out;
    bool blank = false;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (!taken[i]) continue;
        for (const std::string& line : pieces[i].lines) {
            if (line.empty() && blank) continue;  // what was removed leaves no gaps
            blank = line.empty();
            out += line + "\n";
        }
    }
    return out;
}

}  // namespace tw::codegen
