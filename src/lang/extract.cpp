#include "lang/extract.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/text.h"

namespace tw::lang {
namespace {

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80; }

// A statement at the left margin with everything that is indented below it, as a range of lines.
struct Chunk {
    std::size_t first = 0, end = 0;  // lines [first, end)
    std::string head;                // its first logical line
    std::string text;
};

// Walks over strings, comments and brackets; says where logical lines end.
class Scanner {
public:
    explicit Scanner(std::string_view text) : text_(text) {}

    // From the beginning of a line to the end of its logical line, the line break included.
    std::size_t logical_line(std::size_t at) const {
        int depth = 0;
        while (at < text_.size()) {
            const char c = text_[at];
            if (c == '#') {
                while (at < text_.size() && text_[at] != '\n') ++at;
            } else if (c == '"' || c == '\'') {
                at = after_string(at);
            } else if (c == '\\' && at + 1 < text_.size()) {
                at += 2;
            } else if (c == '\n' && depth == 0) {
                return at + 1;
            } else {
                if (c == '(' || c == '[' || c == '{') ++depth;
                if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
                ++at;
            }
        }
        return at;
    }

private:
    std::size_t after_string(std::size_t at) const {
        const char quote = text_[at];
        const bool triple = text_.substr(at, 3) == std::string(3, quote);
        at += triple ? 3 : 1;
        while (at < text_.size()) {
            if (text_[at] == '\\') {
                at += 2;
            } else if (triple && text_.substr(at, 3) == std::string(3, quote)) {
                return at + 3;
            } else if (!triple && (text_[at] == quote || text_[at] == '\n')) {  // a string that is not closed ends with its line
                return text_[at] == quote ? at + 1 : at;
            } else {
                ++at;
            }
        }
        return text_.size();
    }

    std::string_view text_;
};

std::vector<Chunk> chunks_of(std::string_view text) {
    std::vector<Chunk> chunks;
    const Scanner scanner(text);
    std::size_t at = 0, line = 0;
    bool decorated = false;  // the last chunk is decorators so far: what follows belongs to it
    while (at < text.size()) {
        const std::size_t end = scanner.logical_line(at);
        const std::string_view logical = text.substr(at, end - at);
        const auto lines = static_cast<std::size_t>(std::count(logical.begin(), logical.end(), '\n'));
        const std::string_view content = trim(logical);
        const bool blank = content.empty() || content[0] == '#';
        const bool margin = !blank && logical[0] != ' ' && logical[0] != '\t';
        if (margin && !decorated) chunks.push_back({line, line, std::string(content), {}});
        if (margin) decorated = content[0] == '@';
        if (!blank && !chunks.empty()) {
            chunks.back().end = line + std::max<std::size_t>(1, lines);
            chunks.back().text += logical;
        }
        at = end;
        line += lines;
    }
    return chunks;
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (end < text.size() && word_char(text[end])) ++end;
        if (end > at && !std::isdigit(static_cast<unsigned char>(text[at]))) words.emplace_back(text.substr(at, end - at));
        at = std::max(end, at + 1);
    }
    return words;
}

bool is_import(const std::vector<std::string>& words) { return words[0] == "import" || words[0] == "from"; }

// The modules of `import a, b as c` and `from a import x`; none for one with a dot.
std::vector<std::string> modules_of(std::string_view head, const std::vector<std::string>& words) {
    if (words.size() < 2) return {};
    const std::string_view named = words[0] == "import" ? head : head.substr(0, head.find("import"));
    if (named.find('.') != std::string_view::npos) return {};
    if (words[0] == "from") return {words[1]};
    std::vector<std::string> modules;
    for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i] == "as") ++i;
        else modules.push_back(words[i]);
    }
    return modules;
}

// Names that an import of another module binds.
void add_bound_names(const std::vector<std::string>& words, std::set<std::string>& names) {
    if (words[0] == "import" && words.size() > 1) names.insert(words[1]);
    bool after_import = words[0] == "import";
    for (const std::string& w : words) {
        if (after_import && w != "as") names.insert(w);
        after_import = after_import || w == "import";
    }
}

// Of the package but not of the language: an import of these alone is none of a kernel's.
bool only_package_names(const std::vector<std::string>& words) {
    static const std::set<std::string> names = {
        "ops",  "load",   "loads",   "Kernel",       "Module", "TilewrightError", "UnprovedKernelWarning",
        "from", "import", "version", "library_path", "as",     "tilewright"};
    return std::all_of(words.begin(), words.end(), [&](const std::string& w) { return names.count(w) > 0; });
}

bool has_our_decorator(const Chunk& chunk, const std::set<std::string>& aliases) {
    const std::vector<std::string> words = words_of(chunk.text.substr(0, chunk.text.find("def ")));
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        const std::string& what = words[i + 1];
        if (aliases.count(words[i]) && (what == "kernel" || what == "inline" || what == "program" || what == "signature")) return true;
    }
    return false;
}

// The position of the `=` of `NAME, NAME = value` or `NAME: type = value`; nothing for another statement.
std::optional<std::size_t> assignment(const std::string& head) {
    for (std::size_t i = 0; i < head.size(); ++i) {
        const char c = head[i];
        if (c == '=') return i + 1 < head.size() && head[i + 1] != '=' && i > 0 ? std::optional(i) : std::nullopt;
        if (!word_char(c) && c != ' ' && c != ',' && c != ':' && c != '.' && c != '[' && c != ']') return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace

std::vector<std::string> imported_modules(std::string_view text) {
    std::vector<std::string> modules;
    for (const Chunk& chunk : chunks_of(text)) {
        const std::vector<std::string> words = words_of(chunk.head);
        if (words.size() < 2 || !is_import(words)) continue;
        for (std::string& m : modules_of(chunk.head, words))
            if (std::find(modules.begin(), modules.end(), m) == modules.end()) modules.push_back(std::move(m));
    }
    return modules;
}

std::optional<std::string> kernels_beside_python(std::string_view text, const ModuleNames& kernel_files,
                                                 std::map<std::string, std::string>* foreign_names) {
    const std::vector<Chunk> chunks = chunks_of(text);
    std::vector<char> keep(chunks.size(), 0);
    std::set<std::string> aliases, foreign;
    bool ours = false;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
        const std::vector<std::string> words = words_of(chunks[i].head);
        if (words.empty() || !is_import(words)) continue;
        const std::vector<std::string> modules = modules_of(chunks[i].head, words);
        const auto is_kernel_file = [&](const std::string& m) { return kernel_files.count(m) > 0; };
        const bool relative = words[0] == "from" && chunks[i].head.find('.') < chunks[i].head.find("import");
        if (words.size() > 1 && words[1] == "tilewright" && !relative) {
            ours = true;
            if (words[0] == "import" && chunks[i].head.find("tilewright.") == std::string::npos)
                keep[i] = 1, aliases.insert(words.size() > 3 && words[2] == "as" ? words[3] : "tilewright");
            else if (words[0] == "from") keep[i] = !only_package_names(words);
        } else if (words.size() > 1 && words[1] == "__future__") {
            continue;
        } else if (!modules.empty() && std::all_of(modules.begin(), modules.end(), is_kernel_file)) {
            keep[i] = 1;
        } else if (words.size() > 1 && !std::isdigit(static_cast<unsigned char>(words[1][0]))) {
            std::set<std::string> names;
            add_bound_names(words, names);
            if (foreign_names) {
                for (const std::string& n : names) foreign_names->emplace(n, words[1]);
            }
            foreign.merge(names);
        }
    }
    if (!ours || foreign.empty()) return std::nullopt;
    std::vector<std::string> waiting;  // words of what is kept that may name an assignment
    const auto take = [&](std::size_t i) {
        if (keep[i]) return;
        keep[i] = 1;
        for (std::string& w : words_of(chunks[i].text)) waiting.push_back(std::move(w));
    };
    std::map<std::string, std::vector<std::size_t>> assigned;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
        const Chunk& chunk = chunks[i];
        if (keep[i]) continue;
        if (chunk.head[0] == '@' && has_our_decorator(chunk, aliases)) {
            take(i);
        } else if (const auto equals = assignment(chunk.head)) {
            const std::vector<std::string> names = words_of(chunk.head.substr(0, *equals)), value = words_of(chunk.head.substr(*equals));
            // A variable of the program that only shares its name with one of a kernel's is made of something that is not in the language.
            const bool of_python = std::any_of(value.begin(), value.end(), [&](const std::string& w) { return foreign.count(w) > 0; });
            for (const std::string& n : names) {
                if (of_python) foreign.insert(n);
                else assigned[n].push_back(i);
            }
        } else {
            const std::size_t def = chunk.head[0] == '@' ? std::min(chunk.text.find("def "), chunk.text.size()) : 0;
            const std::vector<std::string> words = words_of(chunk.text.substr(def, 200));
            if (words.size() > 1 && (words[0] == "def" || words[0] == "class")) foreign.insert(words[1]);
        }
    }
    while (!waiting.empty()) {
        const std::string word = std::move(waiting.back());
        waiting.pop_back();
        const auto found = assigned.find(word);
        if (found == assigned.end()) continue;
        const std::vector<std::size_t> chosen = std::move(found->second);
        assigned.erase(found);
        for (const std::size_t i : chosen) take(i);
    }
    std::string out;
    std::vector<std::string_view> lines = split_lines(text);
    std::size_t next = 0;
    for (std::size_t line = 0; line < lines.size(); ++line) {
        while (next < chunks.size() && chunks[next].end <= line) ++next;
        if (next < chunks.size() && keep[next] && line >= chunks[next].first) out += lines[line];
        out += '\n';
    }
    return out;
}

}  // namespace tw::lang
