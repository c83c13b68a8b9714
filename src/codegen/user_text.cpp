#include "codegen/user_text.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/text.h"

namespace tw::codegen {

namespace {

constexpr std::size_t longest_comment = 400, longest_name = 48;

// The source as the preprocessor sees it: lines spliced, comments gone, contents of literals gone.
std::string plain_text(std::string_view source) {
    std::string spliced;
    for (std::size_t i = 0; i < source.size(); ++i) {
        if (source[i] == '\\') {  // a compiler may allow blanks before the line's end
            std::size_t end = i + 1;
            while (end < source.size() && (source[end] == ' ' || source[end] == '\t' || source[end] == '\r')) ++end;
            if (end < source.size() && source[end] == '\n') {
                i = end;
                continue;
            }
        }
        spliced += source[i] == '\r' ? '\n' : source[i];
    }
    std::string out;
    for (std::size_t i = 0; i < spliced.size();) {
        if (spliced.compare(i, 2, "//") == 0) {
            i = std::min(spliced.find('\n', i), spliced.size());
        } else if (spliced.compare(i, 2, "/*") == 0) {
            const auto end = spliced.find("*/", i + 2);
            out += ' ';
            i = end == std::string::npos ? spliced.size() : end + 2;
        } else if (spliced[i] == '"' || spliced[i] == '\'') {
            const char quote = spliced[i];
            out += quote;
            for (++i; i < spliced.size() && spliced[i] != quote && spliced[i] != '\n'; ++i) {
                out += spliced[i];
                if (spliced[i] == '\\' && i + 1 < spliced.size()) out += spliced[++i];
            }
            if (i < spliced.size() && spliced[i] == quote) out += quote, ++i;
        } else {
            out += spliced[i++];
        }
    }
    return out;
}

// One blank for each run of them, none at the ends.
std::string squeezed(std::string_view line) { return join(split_words(line), " "); }

std::vector<std::string> directives(std::string_view source) {
    std::vector<std::string> found;
    const std::string plain = plain_text(source);
    for (const auto line : split_lines(plain)) {
        const std::string text = squeezed(line);
        if (text.rfind('#', 0) == 0 || text.rfind("%:", 0) == 0 || text.rfind("?\?=", 0) == 0 || text.find("_Pragma") != std::string::npos)
            found.push_back(text);
    }
    return found;
}

bool is_ours(const std::string& directive) {
    static const std::set<std::string> fixed = {"#include \"tw_tile.cuh\"", "#include \"tw_team.cuh\"", "#pragma unroll",
                                                "#define INFINITY_64 __longlong_as_double(0x7ff0000000000000LL)",
                                                "#define NAN_64 __longlong_as_double(0x7ff8000000000000LL)"};
    constexpr std::string_view unroll = "#pragma unroll ";
    if (fixed.count(directive)) return true;
    return directive.rfind(unroll, 0) == 0 && directive.size() <= unroll.size() + 5 &&
           std::all_of(directive.begin() + unroll.size(), directive.end(), [](unsigned char c) { return std::isdigit(c); });
}

}  // namespace

std::string comment_text(std::string_view words) {
    std::string text;
    for (const char c : words) {
        char shown = c;
        if (c == '\n' || c == '\r' || c == '\t' || c == '\v' || c == '\f') shown = ' ';
        else if (c == '\\') shown = '/';  // at the end of a line it would continue the comment
        else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) shown = '?';
        if (shown == ' ' && (text.empty() || text.back() == ' ')) continue;
        if (shown == '?' && !text.empty() && text.back() == '?') continue;  // ??/ is a backslash to old compilers
        text += shown;
        if (text.size() >= longest_comment) {
            text += "...";
            break;
        }
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
}

std::string identifier(std::string_view name, std::set<std::string>& taken) {
    std::string base;
    for (const char c : name.substr(0, longest_name)) {
        const bool letter = std::isalnum(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 0x80;
        if (letter) base += c;
        else if (!base.empty() && base.back() != '_') base += '_';
    }
    while (!base.empty() && base.back() == '_') base.pop_back();
    if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0]))) base = "n" + base;
    std::string free = base + "_";
    for (int i = 2; !taken.insert(free).second; ++i) free = base + "_" + std::to_string(i) + "_";
    return free;
}

std::string companion(const std::string& identifier, std::string_view what) { return identifier + std::string(what); }

std::string entry_name(std::string_view kernel) {
    std::set<std::string> none;
    return identifier(kernel, none) + "kernel";
}

std::optional<std::string> foreign_directive(std::string_view source, const std::set<std::string>& more) {
    for (const std::string& d : directives(source))
        if (!is_ours(d) && !more.count(d)) return d;
    return std::nullopt;
}

std::set<std::string> directives_in(std::string_view header) {
    const auto found = directives(header);
    return {found.begin(), found.end()};
}

}  // namespace tw::codegen
