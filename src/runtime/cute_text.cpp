// What the text of a candidate may not hold.
#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

#include "base/diagnostic.h"
#include "base/identifier.h"
#include "base/text.h"
#include "runtime/cute_candidate.h"

namespace tw::runtime {
namespace {

// The text as the preprocessor sees it: lines spliced (their number is kept by later newlines), comments and the insides of literals gone.
class PlainText {
public:
    explicit PlainText(std::string_view text) : text_(text) { run(); }
    const std::string& text() const { return out_; }
    const std::optional<CuteProblem>& problem() const { return problem_; }

private:
    char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
    // A backslash at the end of a line, blanks allowed: the place after the line's end, else `i`.
    std::size_t spliced(std::size_t i) const {
        if (at(i) != '\\') return i;
        std::size_t end = i + 1;
        while (at(end) == ' ' || at(end) == '\t' || at(end) == '\r') ++end;
        return at(end) == '\n' ? end + 1 : i;
    }
    // The next character of the text with its splices taken out; what was a line's end there is put back after the next real one.
    char next() {
        for (std::size_t j = spliced(i_); j != i_; j = spliced(i_)) i_ = j, ++owed_, ++line_;
        const char c = at(i_);
        if (i_ < text_.size()) ++i_;
        if (c == '\n') ++line_;
        return c;
    }
    char peek() {
        const std::size_t i = i_;
        const int owed = owed_, line = line_;
        const char c = next();
        i_ = i, owed_ = owed, line_ = line;
        return c;
    }
    void put(char c) {
        out_ += c;
        if (c == '\n') out_.append(static_cast<std::size_t>(owed_), '\n'), owed_ = 0;
    }
    void complain(std::string message) {
        if (!problem_) problem_ = CuteProblem{line_, std::move(message), "write the text without it"};
    }
    void literal(char quote) {
        out_ += quote;
        while (i_ < text_.size()) {
            const char c = next();
            if (c == quote) break;
            if (c == '\n') return complain("a literal that does not end on its line");
            if (c == '\\') next();
        }
        out_ += quote;
    }
    void run() {
        while (i_ < text_.size()) {
            const char c = next(), after = peek();
            if (c == '\0') return complain("a byte that is not text");
            if (c == '/' && after == '/') {
                while (i_ < text_.size() && peek() != '\n') next();
            } else if (c == '/' && after == '*') {
                next();
                char before = 0;
                bool ended = false;
                while (i_ < text_.size() && !ended) {
                    const char inside = next();
                    if (inside == '\n') ++owed_;
                    ended = before == '*' && inside == '/';
                    before = inside;
                }
                if (!ended) return complain("a comment that does not end");
                out_ += ' ';
            } else if (c == '"' || c == '\'') {
                literal(c);
            } else if (is_identifier_character(c)) {
                std::string word(1, c);
                const bool number = std::isdigit(static_cast<unsigned char>(c));
                while (is_identifier_character(peek()) || (number && (peek() == '\'' || peek() == '.'))) word += next();
                if (!number && word.back() == 'R' && peek() == '"') return complain("a raw string");
                out_ += word;
            } else {
                put(c);
            }
            if (problem_) return;
        }
    }

    std::string_view text_;
    std::size_t i_ = 0;
    int owed_ = 0, line_ = 1;
    std::string out_;
    std::optional<CuteProblem> problem_;
};

bool allowed_directive(const std::string& d) {
    static const std::regex allowed(
        R"(#include <((cute|cutlass|cuda/std)/[A-Za-z0-9_/]+(\.hpp|\.h|\.cuh)?|cuda_(fp16|bf16|fp8)\.h|cuda/(atomic|barrier|pipeline))>|)"
        R"(#pragma (unroll( \(?[A-Za-z0-9_]+\)?)?|once)|#(define|undef|ifdef|ifndef|if|elif|else|endif)\b.*)");
    return std::regex_match(d, allowed);
}

std::optional<CuteProblem> directive_problem(const std::string& plain) {
    int number = 0;
    for (const auto line : split_lines(plain)) {
        ++number;
        std::string text = join(split_words(line), " ");
        if (text.find("%:") != std::string::npos || text.find("?\?") != std::string::npos)
            return CuteProblem{number, "a digraph or trigraph", "write # and the other signs as they are"};
        if (text.find("_Pragma") != std::string::npos || text.find("__has_") != std::string::npos ||
            text.find("incbin") != std::string::npos)
            return CuteProblem{number, fmt::format("`{}`: a question to the preprocessor that a kernel has no need of", printable(text)),
                               ""};
        if (text.rfind('#', 0) != 0) continue;
        if (text.rfind("# ", 0) == 0) text.erase(1, 1);
        if (text.rfind("#include<", 0) == 0) text.insert(8, " ");
        if (text.size() > 2000 || !allowed_directive(text))
            return CuteProblem{number, fmt::format("`{}` is not allowed in a candidate", printable(text.substr(0, 120))),
                               "includes are <cute/...>, <cutlass/...>, <cuda_fp16.h>, <cuda_bf16.h>, <cuda_fp8.h>, <cuda/std/...>; other "
                               "directives are #define, #undef, #if and its kin, #pragma unroll"};
    }
    return std::nullopt;
}

// Words of host code, and variables that outlive a launch: those of the file, and static ones.
class WordCheck {
public:
    WordCheck(const std::string& plain, bool declarations) : plain_(plain), declarations_(declarations) {}

    std::optional<CuteProblem> run() {
        std::string word;
        for (std::size_t i = 0; i <= plain_.size() && !problem_; ++i) {
            const char c = i < plain_.size() ? plain_[i] : ' ';
            if (is_identifier_character(c)) {
                word += c;
                continue;
            }
            if (!word.empty()) take(word, c), word.clear();
            if (c == '\n') ++line_;
            if (plain_.compare(i, 3, "<<<") == 0) say("`<<<`: a candidate launches nothing", kLaunchHint);
            sign(c);
        }
        return problem_;
    }

private:
    static constexpr const char* kLaunchHint = "the launch is said in the `// launch` lines; TMA descriptors in their `map` lines";

    void say(std::string message, std::string hint) {
        if (!problem_) problem_ = CuteProblem{line_, std::move(message), std::move(hint)};
    }
    bool outside() const { return std::find(open_.begin(), open_.end(), false) == open_.end(); }
    bool has(const char* word) const { return std::find(words_.begin(), words_.end(), word) != words_.end(); }

    void take(const std::string& word, char after) {
        static const std::set<std::string> host = {"cudaLaunchKernel", "cudaLaunchKernelEx", "cudaLaunchKernelExC",  "cudaStream_t",
                                                   "cudaError_t",      "cuLaunchKernel",     "cudaMalloc",           "cudaMemcpy",
                                                   "cudaMemcpyAsync",  "cudaMemsetAsync",    "cudaFuncSetAttribute", "__host__",
                                                   "cudaGetLastError"};
        if (host.count(word) || (word == "main" && after == '('))
            say(fmt::format("`{}`: a candidate is device code, nothing of it runs on the host", word), kLaunchHint);
        if (word == "__managed__" || word == "thread_local") say(fmt::format("`{}`: a candidate keeps nothing between launches", word), "");
        if (word == "template") parameters_ = 0, in_parameters_ = true;
        else if (words_.size() < 64 && !in_parameters_) words_.push_back(word);
    }

    // A declaration ends, or its value begins.
    void declared() {
        if (!declarations_ || called_ || words_.empty() || has("constexpr") || has("using") || has("typedef") || has("static_assert"))
            return;
        if (has("struct") || has("class") || has("enum") || has("union") || has("namespace") || has("friend") || has("__shared__")) return;
        if (outside() || has("static") || has("__device__"))
            say("a variable that outlives a launch: a candidate keeps nothing between launches",
                "make it constexpr, or a value of the kernel");
    }

    void sign(char c) {
        if (in_parameters_) {  // of a template: they declare nothing of the file's
            parameters_ += (c == '<') - (c == '>');
            in_parameters_ = parameters_ > 0 || (c != '>' && c != ';' && c != '(');
            if (c != '(' || in_parameters_) return;
        }
        if (brackets_ > 0 && c != '(' && c != ')') return;  // inside parentheses nothing of the file's is declared
        if (c == '(') called_ = true;
        if ((c == ';' || c == '=' || c == '[') && brackets_ == 0) declared();
        brackets_ += (c == '(') - (c == ')');
        if (c == '{') {
            if (!called_ && outside() && !has("namespace") && !has("extern") && words_.size() > 1) declared();
            open_.push_back(has("namespace") || (has("extern") && !called_));
        }
        if (c == '}' && !open_.empty()) open_.pop_back();
        if (c == ';' || c == '{' || c == '}') words_.clear(), called_ = false, brackets_ = 0;
    }

    const std::string& plain_;
    bool declarations_;  // are looked at
    int line_ = 1, brackets_ = 0;
    std::vector<bool> open_;          // the braces around: true for a namespace's
    std::vector<std::string> words_;  // of the statement at hand
    bool called_ = false;             // it has a parenthesis: a function, or an expression
    bool in_parameters_ = false;      // of a template
    int parameters_ = 0;              // open angle brackets there
    std::optional<CuteProblem> problem_;
};

}  // namespace

std::optional<CuteProblem> cute_text_problem(std::string_view text) {
    if (text.size() > 1u << 20) return CuteProblem{1, "a candidate of more than a megabyte", ""};
    for (std::size_t i = 0; i < text.size(); ++i)  // some compilers end a line there, and a comment with it
        if (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'))
            return CuteProblem{1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n')),
                               "a carriage return inside a line", "end lines with a newline"};
    const PlainText plain(text);
    if (plain.problem()) return plain.problem();
    if (auto problem = directive_problem(plain.text())) return problem;
    // Lines of the preprocessor declare nothing; the words of host code are looked for in them too.
    std::string text_of_code, directives;
    for (const auto line : split_lines(plain.text())) {
        const bool directive = trim(line).rfind('#', 0) == 0;
        text_of_code += directive ? std::string("\n") : std::string(line) + "\n";
        directives += directive ? std::string(line) + ";\n" : std::string("\n");
    }
    for (const char* space : {"__device__", "__constant__"})
        if (const auto at = directives.find(space); at != std::string::npos)
            return CuteProblem{
                1 + static_cast<int>(std::count(directives.begin(), directives.begin() + static_cast<std::ptrdiff_t>(at), '\n')),
                fmt::format("`{}` in a macro", space), "write it where the function is declared, or use CUTE_DEVICE"};
    if (auto problem = WordCheck(directives, false).run()) return problem;
    return WordCheck(text_of_code, true).run();
}

}  // namespace tw::runtime
