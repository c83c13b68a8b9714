#include "runtime/cute_candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <regex>
#include <set>

#include "base/diagnostic.h"
#include "base/text.h"
#include "lower/lower.h"
#include "runtime/shared_library.h"
#include "target/dtype.h"
#include "target/swizzle.h"

namespace tw::runtime {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

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
            } else if (is_word(c)) {
                std::string word(1, c);
                const bool number = std::isdigit(static_cast<unsigned char>(c));
                while (is_word(peek()) || (number && (peek() == '\'' || peek() == '.'))) word += next();
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
            if (is_word(c)) {
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

constexpr std::string_view kLaunch = "// launch ";

// "128, 64" with or without brackets; nothing when it is no list of positive numbers.
std::optional<std::vector<int>> numbers(std::string_view text, std::size_t most) {
    std::vector<int> out;
    std::string digits;
    for (const char c : std::string(text) + ",") {
        if (std::isdigit(static_cast<unsigned char>(c))) digits += c;
        else if (c == ',') {
            int value = 0;
            const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
            if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || value > 1 << 24) return std::nullopt;
            out.push_back(value);
            digits.clear();
        } else if (c != ' ' && c != '(' && c != ')') return std::nullopt;
    }
    if (out.size() > most) return std::nullopt;
    return out;
}

bool is_expression(std::string_view text) {
    return !text.empty() && text.size() < 1000 &&
           text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_ ()+-*/%<>=!,.") ==
               std::string_view::npos;
}

std::vector<std::string> comma_list(std::string_view text) {
    std::vector<std::string> out;
    std::string one;
    for (const char c : std::string(text) + ",") {
        if (c == ',') out.emplace_back(trim(one)), one.clear();
        else one += c;
    }
    return out;
}

bool is_name(std::string_view word) {
    return !word.empty() && word.size() < 100 && !std::isdigit(static_cast<unsigned char>(word[0])) &&
           std::all_of(word.begin(), word.end(), is_word);
}

// "H f16 (M, K), strides ((K + 7) // 8 * 8, 1)"; with `outputs` also "H out f16 (M, K)".
std::optional<CuteTensor> cute_tensor(std::string_view text, bool outputs) {
    CuteTensor out;
    const auto word = [&] {
        const auto end = std::min(text.find(' '), text.size());
        std::string w(text.substr(0, end));
        text = trim(text.substr(end));
        return w;
    };
    // What is between a bracket and its own other one.
    const auto bracket = [&]() -> std::string {
        int depth = 0;
        for (std::size_t i = 0; i < text.size(); ++i) {
            depth += (text[i] == '(') - (text[i] == ')');
            if (depth > 0) continue;
            std::string inside(i > 1 ? text.substr(1, i - 1) : "");
            text = trim(text.substr(i + 1));
            return is_expression(inside) ? inside : "";
        }
        return {};
    };
    if (text.size() > 500) return std::nullopt;
    out.name = word(), out.dtype = word();
    if (outputs && out.dtype == "out") out.output = true, out.dtype = word();
    if (!is_name(out.name) || !target::dtype_from_name(out.dtype) || text.empty() || text[0] != '(') return std::nullopt;
    out.dims = bracket();
    if (out.dims.empty()) return std::nullopt;
    if (text.empty()) return out;
    constexpr std::string_view strides = ", strides (";
    if (text.substr(0, strides.size()) != strides) return std::nullopt;
    text = text.substr(strides.size() - 1);
    out.strides = bracket();
    if (out.strides.empty() || !text.empty()) return std::nullopt;
    return out;
}

// "tma_a = A, box (128, 64), swizzle 128"
std::optional<CuteMap> map_line(std::string_view text) {
    static const std::regex form(R"(([A-Za-z_]\w*)\s*=\s*([A-Za-z_]\w*)\s*,\s*box\s*\(([0-9, ]+)\)(\s*,\s*swizzle\s+(0|32|64|128))?)");
    std::cmatch found;
    if (text.size() > 200 || !std::regex_match(text.data(), text.data() + text.size(), found, form)) return std::nullopt;
    CuteMap map{found[1], found[2], {}, 0};
    const auto box = numbers(found[3].str(), 5);
    if (!box) return std::nullopt;
    map.box = *box;
    if (found[5].matched) map.swizzle_bytes = std::stoi(found[5]);
    return map;
}

// One line of a launch. Empty: taken; else what is wrong.
std::string take_line(CuteLaunch& launch, const std::string& key, const std::string& value) {
    const auto number = [&](int& into, int least) {
        const auto v = numbers(value, 1);
        if (!v || (*v)[0] < least) return fmt::format("`{}` is a number", key);
        into = (*v)[0];
        return std::string();
    };
    if (key == "when" || key == "grid") {
        if (!is_expression(value))
            return fmt::format("`{}` is an expression over the sizes, as in the tile language: (M + 127) // 128", key);
        (key == "when" ? launch.when : launch.grid) = value;
        return {};
    }
    if (key == "threads") return number(launch.threads, 1);
    if (key == "shared") return number(launch.shared_bytes, 0);
    if (key == "persistent") return number(launch.blocks_per_multiprocessor, 1);
    if (key == "cluster") {
        const auto v = numbers(value, 3);
        if (!v || std::find(v->begin(), v->end(), 0) != v->end()) return "`cluster` is up to three numbers";
        for (std::size_t i = 0; i < v->size(); ++i) launch.cluster[i] = (*v)[i];
        return {};
    }
    if (key == "map") {
        const auto map = map_line(value);
        if (!map) return "a map is NAME = TENSOR, box (ROWS, COLUMNS), swizzle 0, 32, 64 or 128";
        launch.maps.push_back(*map);
        return {};
    }
    if (key == "of") return launch.of = value, is_name(value) ? std::string() : "`of` is the name of a kernel of the program";
    if (key == "tensor") {
        const auto tensor = cute_tensor(value, true);
        if (!tensor) return "a tensor is NAME [out] DTYPE (DIMENSIONS)[, strides (STRIDES)]";
        launch.tensors.push_back(*tensor);
        return {};
    }
    if (key == "scalar") {
        const auto words = split_words(value);
        if (words.size() != 2 || !is_name(words[0]) || !target::dtype_from_name(words[1])) return "a scalar is NAME DTYPE";
        launch.scalars.push_back(fmt::format("{}: tw.scalar({})", words[0], words[1]));
        return {};
    }
    if (key == "zero") return launch.zeroed = comma_list(value), std::string();
    if (key == "arguments") return launch.arguments = comma_list(value), std::string();
    return fmt::format("a launch has no `{}`", printable(key));
}

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

Expected<std::vector<CuteLaunch>, CuteProblem> cute_launches(std::string_view text) {
    std::vector<CuteLaunch> out;
    bool open = false;
    int number = 0;
    for (const auto line : split_lines(text)) {
        ++number;
        if (line.substr(0, kLaunch.size()) == kLaunch) {
            const std::string name(trim(line.substr(kLaunch.size())));
            if (name.empty() || !std::all_of(name.begin(), name.end(), is_word)) continue;  // a sentence
            out.push_back({});
            out.back().line = number, out.back().kernel = name;
            open = true;
            continue;
        }
        if (line.substr(0, 4) != "//  ") open = false;
        if (!open) continue;
        const std::string_view rest = trim(line.substr(2));
        const auto blank = std::min(rest.find(' '), rest.size());
        const std::string problem = take_line(out.back(), std::string(rest.substr(0, blank)), std::string(trim(rest.substr(blank))));
        if (!problem.empty())
            return Unexpected{CuteProblem{
                number, problem,
                "its lines are when, grid, threads, shared, persistent, cluster, map, zero, arguments; of a program's kernel also of, "
                "tensor, scalar (docs/cute.md)"}};
    }
    if (out.empty())
        return Unexpected{CuteProblem{1, "no launch is described",
                                      "write `// launch NAME` and its lines: grid, threads, shared, arguments (docs/cute.md)"}};
    if (out.size() > 32) return Unexpected{CuteProblem{out[32].line, "more than 32 launches", ""}};
    for (const CuteLaunch& l : out) {
        if (l.grid.empty()) return Unexpected{CuteProblem{l.line, fmt::format("the launch of {} has no `grid`", l.kernel), ""}};
        if (l.threads % 32 != 0 || l.threads < 32 || l.threads > 1024)
            return Unexpected{
                CuteProblem{l.line, fmt::format("the launch of {} needs `threads`, a multiple of 32 up to 1024", l.kernel), ""}};
    }
    return out;
}

Expected<std::optional<CuteProgram>, CuteProblem> cute_program(std::string_view text) {
    std::optional<CuteProgram> out;
    bool open = false;
    int number = 0;
    for (const auto line : split_lines(text)) {
        ++number;
        const auto refuse = [&](std::string message, std::string hint = "") {
            return Unexpected{CuteProblem{number, std::move(message), std::move(hint)}};
        };
        if (trim(line) == "// program") {
            if (out) return refuse("a second program");
            out.emplace().line = number;
            open = true;
            continue;
        }
        if (line.substr(0, 4) != "//  ") open = false;
        if (!open) continue;
        const std::string_view rest = trim(line.substr(2));
        const auto blank = std::min(rest.find(' '), rest.size());
        const std::string_view key = rest.substr(0, blank), value = trim(rest.substr(blank));
        if (key == "buffer") {
            const auto buffer = cute_tensor(value, false);
            if (!buffer) return refuse("a buffer is NAME DTYPE (DIMENSIONS)[, strides (STRIDES)]");
            out->buffers.push_back(*buffer);
        } else if (key == "call") {
            const auto end = std::min(value.find(' '), value.size());
            CuteCall call{number, std::string(value.substr(0, end)), comma_list(value.substr(end))};
            if (!is_name(call.kernel) || !std::all_of(call.arguments.begin(), call.arguments.end(), is_name))
                return refuse("a call is NAME ARGUMENT, ARGUMENT, ...");
            out->calls.push_back(std::move(call));
        } else
            return refuse(fmt::format("a program has no `{}`", printable(std::string(key))),
                          "its lines are buffer and call (docs/cute.md)");
    }
    if (out && out->calls.empty())
        return Unexpected{CuteProblem{out->line, "the program calls nothing", "write `//   call NAME ARGUMENTS`"}};
    if (out && (out->calls.size() > 64 || out->buffers.size() > 64))
        return Unexpected{CuteProblem{out->line, "a program has at most 64 calls and 64 buffers", ""}};
    return out;
}

namespace {

// A launch's condition and grid as the body of a kernel; a problem when the grid is none.
Expected<std::string, CuteProblem> launch_body(const CuteLaunch& launch) {
    std::string text;
    if (!launch.when.empty()) text += fmt::format("    tw.assume({})\n", launch.when);
    const auto commas = [&] {
        int depth = 0, count = 0;
        for (const char c : launch.grid) depth += (c == '(') - (c == ')'), count += c == ',' && depth == 0;
        return count;
    }();
    constexpr std::array<const char*, 3> names = {"block_x_", "block_x_, block_y_", "block_x_, block_y_, block_z_"};
    if (commas > 2) return Unexpected{CuteProblem{launch.line, "a grid has at most three dimensions", ""}};
    return text + fmt::format("    {} = tw.grid({})\n", names[static_cast<std::size_t>(commas)], launch.grid);
}

std::optional<CuteProblem> take_launch(ir::Kernel& kernel, const CuteLaunch& launch);

// The task's signature with the launch's grid and condition, resolved by the tile language's own rules.
Expected<ir::Kernel, CuteProblem> launch_kernel(const std::string& signature, const CuteLaunch& launch) {
    std::string text = signature;
    const auto end = text.rfind("    pass\n");
    if (end == std::string::npos) return Unexpected{CuteProblem{launch.line, "the task's signature is not one of ours", ""}};
    text.erase(end);
    const auto body = launch_body(launch);
    if (!body) return Unexpected{body.error()};
    text += *body;
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "launch", text, {}, sink);
    if (!module || module->kernels.size() != 1 || sink.has_errors()) {
        const std::string why = sink.empty() ? "it cannot be read" : sink.in_source_order().front()->message;
        return Unexpected{
            CuteProblem{launch.line, fmt::format("the grid or condition of the launch of {}: {}", launch.kernel, why),
                        "expressions are over the task's sizes, as in the tile language: tw.cdiv(M, 128), K % 8 == 0 and N >= 8"}};
    }
    ir::Kernel kernel = std::move(module->kernels.front());
    if (const auto problem = take_launch(kernel, launch)) return Unexpected{*problem};
    return kernel;
}

// What the launch says beside condition and grid: threads, memory, maps.
std::optional<CuteProblem> take_launch(ir::Kernel& kernel, const CuteLaunch& launch) {
    kernel.warps = launch.threads / 32;
    kernel.shared_bytes = launch.shared_bytes;
    kernel.persistent = launch.blocks_per_multiprocessor > 0;
    kernel.min_blocks_per_sm = std::max(1, launch.blocks_per_multiprocessor);
    std::copy(std::begin(launch.cluster), std::end(launch.cluster), kernel.cluster);
    for (const std::string& name : launch.zeroed) {
        const auto tensor =
            std::find_if(kernel.tensors.begin(), kernel.tensors.end(), [&](const ir::Tensor& t) { return t.name == name && t.is_output; });
        if (tensor == kernel.tensors.end())
            return CuteProblem{launch.line, fmt::format("zero: there is no output {}", printable(name)), ""};
        tensor->zero_initialised = true;
    }
    for (const CuteMap& map : launch.maps) {
        ir::TensorMap made;
        const auto tensor =
            std::find_if(kernel.tensors.begin(), kernel.tensors.end(), [&](const ir::Tensor& t) { return t.name == map.tensor; });
        if (tensor == kernel.tensors.end() || tensor->dims.size() != map.box.size())
            return CuteProblem{launch.line,
                               fmt::format("map {}: there is no tensor {} with {} dimensions", map.name, map.tensor, map.box.size()), ""};
        made.tensor = static_cast<int>(tensor - kernel.tensors.begin());
        for (std::size_t d = map.box.size(); d-- > 0;) {
            if (map.box[d] < 1 || map.box[d] > 256)
                return CuteProblem{launch.line, fmt::format("map {}: an extent of a box is 1 to 256", map.name), ""};
            made.dims.push_back(static_cast<int>(d)), made.box.push_back(map.box[d]);
        }
        made.swizzle = target::swizzle_from_bytes(map.swizzle_bytes).value_or(target::SwizzleMode::None);
        kernel.tensor_maps.push_back(made);
    }
    return std::nullopt;
}

std::optional<codegen::Argument> argument_named(const ir::Kernel& kernel, const CuteLaunch& launch, const std::string& name) {
    using Kind = codegen::Argument::Kind;
    const auto find = [&](const auto& list, auto&& named, Kind kind) -> std::optional<codegen::Argument> {
        for (std::size_t i = 0; i < list.size(); ++i)
            if (named(list[i]) == name) return codegen::Argument{kind, static_cast<int>(i)};
        return std::nullopt;
    };
    const auto own = [](const auto& x) -> const std::string& { return x.name; };
    if (auto a = find(launch.maps, own, Kind::tensor_map)) return a;
    if (auto a = find(kernel.tensors, own, Kind::tensor)) return a;
    if (auto a = find(kernel.scalars, own, Kind::scalar)) return a;
    return find(
        kernel.sizes, [](const std::string& s) -> const std::string& { return s; }, Kind::size);
}

// The entry and its arguments, in the launch's order or the usual one.
Expected<CuteEntry, CuteProblem> entry_of(const ir::Kernel& kernel, const CuteLaunch& launch) {
    CuteEntry entry{launch.kernel, {}};
    std::vector<std::string> names = launch.arguments;
    if (names.empty()) {
        for (const CuteMap& m : launch.maps) names.push_back(m.name);
        for (const ir::Tensor& t : kernel.tensors) names.push_back(t.name);
        for (const std::string& s : kernel.sizes) names.push_back(s);
        for (const ir::ScalarParam& s : kernel.scalars) names.push_back(s.name);
    }
    for (const std::string& name : names) {
        const auto argument = argument_named(kernel, launch, name);
        if (!argument)
            return Unexpected{
                CuteProblem{launch.line,
                            fmt::format("the launch of {} has an argument '{}', which is no map, tensor, size or scalar of {}",
                                        launch.kernel, printable(name), launch.of.empty() ? "the task" : launch.of),
                            ""}};
        entry.arguments.push_back(*argument);
    }
    return entry;
}

std::string declared(const CuteTensor& t) {
    return fmt::format("{}, {}{}", t.dtype, t.dims, t.strides.empty() ? "" : fmt::format(", strides=({})", t.strides));
}

// A kernel of a program as the tile language declares it. Its outputs are set to zero there: what they hold nobody states.
std::string stub(const CuteLaunch& launch, const std::string& function, const std::string& target, const std::string& body) {
    std::string outputs, parameters;
    for (const CuteTensor& t : launch.tensors) {
        parameters += fmt::format("    {}: tw.Tensor({}),\n", t.name, declared(t));
        if (!t.output) continue;
        int depth = 0;
        std::string indices = "i0_";
        for (const char c : t.dims) {
            depth += (c == '(') - (c == ')');
            if (c == ',' && depth == 0) indices += fmt::format(", i{}_", std::count(indices.begin(), indices.end(), '_'));
        }
        outputs += fmt::format("{}{}[{}] = {}(0.0)", outputs.empty() ? "" : "; ", t.name, indices, t.dtype);
    }
    for (const std::string& s : launch.scalars) parameters += "    " + s + ",\n";
    return fmt::format("\n\n@tw.kernel(target=\"{}\", name=\"{}\", computes=\"\"\"{}\"\"\")\ndef {}(\n{}):\n{}", target, launch.of, outputs,
                       function, parameters, body);
}

// Launches of a program, its kernels' variants side by side, and the program itself, as a file of the tile language.
Expected<std::string, CuteProblem> program_text(const std::string& signature, const std::vector<const CuteLaunch*>& launches,
                                                const CuteProgram& program) {
    const auto refuse = [](int line, std::string what) { return Unexpected{CuteProblem{line, std::move(what), ""}}; };
    static const std::regex head(R"re(@tw\.kernel\(target="([a-z0-9_]+)", name="[A-Za-z0-9_]+", computes=)re");
    std::smatch found;
    const auto end = signature.rfind("    pass\n");
    if (end == std::string::npos || !std::regex_search(signature, found, head))
        return refuse(program.line, "the task's signature is not one of ours");
    std::set<std::string> types, known, more;
    const std::string opening = signature.substr(0, static_cast<std::size_t>(found.position(0)));
    const auto names_in = [](const std::string& text, std::set<std::string>& into) {
        std::string word;
        for (const char c : text + " ") {
            if (is_word(c)) word += c;
            else {
                if (is_name(word)) into.insert(word);
                word.clear();
            }
        }
    };
    names_in(opening, known);
    const auto take = [&](const CuteTensor& t) { types.insert(t.dtype), names_in(t.dims + " " + t.strides, more); };
    std::string kernels;
    std::set<std::string> functions;
    for (const CuteLaunch* l : launches) {
        if (l->of.empty() || l->tensors.empty())
            return refuse(l->line, fmt::format("the launch of {} needs `of` and its tensors: it is one of a program", l->kernel));
        for (const CuteTensor& t : l->tensors) take(t);
        const auto body = launch_body(*l);
        if (!body) return Unexpected{body.error()};
        std::string function = l->of;
        for (int i = 2; !functions.insert(function).second; ++i) function = fmt::format("{}_variant{}", l->of, i);
        kernels += stub(*l, function, found[1], *body);
    }
    for (const CuteTensor& t : program.buffers) take(t);
    std::vector<std::string> imported;
    for (const std::string& t : types)
        if (!known.count(t)) imported.push_back(t);
    std::string text = opening + (imported.empty() ? "" : fmt::format("from tilewright import {}\n", join(imported, ", ")));
    std::string sizes;
    for (const std::string& m : more)
        if (!known.count(m)) sizes += (sizes.empty() ? "" : " ") + m;
    if (!sizes.empty()) text += fmt::format("{} = tw.sizes(\"{}\")\n", std::regex_replace(sizes, std::regex(" "), ", "), sizes);
    text += kernels + "\n\n" + "@tw.program(computes=" +
            signature.substr(static_cast<std::size_t>(found.position(0) + found.length(0)),
                             end - static_cast<std::size_t>(found.position(0) + found.length(0)));
    for (const CuteTensor& b : program.buffers) text += fmt::format("    {} = tw.buffer({})\n", b.name, declared(b));
    for (const CuteCall& c : program.calls) text += fmt::format("    {}({})\n", c.kernel, fmt::join(c.arguments, ", "));
    return text;
}

Expected<CuteModule, CuteProblem> program_module(const std::string& signature, const std::vector<CuteLaunch>& launches,
                                                 const CuteProgram& program) {
    std::vector<const CuteLaunch*> ordered;  // variants of one kernel are neighbours
    for (std::size_t i = 0; i < launches.size(); ++i) {
        const bool taken = std::any_of(ordered.begin(), ordered.end(), [&](const CuteLaunch* l) { return l->of == launches[i].of; });
        for (std::size_t j = i; !taken && j < launches.size(); ++j)
            if (launches[j].of == launches[i].of) ordered.push_back(&launches[j]);
    }
    const auto text = program_text(signature, ordered, program);
    if (!text) return Unexpected{text.error()};
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "launches", *text, {}, sink);
    if (!module || module->kernels.size() != ordered.size() || module->programs.size() != 1 || sink.has_errors()) {
        const std::string why = sink.empty() ? "it cannot be read" : sink.in_source_order().front()->message;
        return Unexpected{CuteProblem{program.line, fmt::format("the program and its launches: {}", why),
                                      "tensors, buffers, grids and conditions are over the task's sizes, as in the tile language"}};
    }
    CuteModule out;
    out.module = *std::move(module);
    for (std::size_t i = 0; i < ordered.size(); ++i) {
        ir::Kernel& kernel = out.module.kernels[i];
        if (const auto problem = take_launch(kernel, *ordered[i])) return Unexpected{*problem};
        auto entry = entry_of(kernel, *ordered[i]);
        if (!entry) return Unexpected{entry.error()};
        out.entries.push_back(*std::move(entry));
    }
    return out;
}

}  // namespace

Expected<CuteModule, CuteProblem> cute_module(const std::string& signature, const std::vector<CuteLaunch>& launches,
                                              const std::optional<CuteProgram>& program) {
    if (program) return program_module(signature, launches, *program);
    CuteModule out;
    for (const CuteLaunch& launch : launches) {
        if (!launch.of.empty() || !launch.tensors.empty() || !launch.scalars.empty())
            return Unexpected{CuteProblem{launch.line, "`of`, `tensor` and `scalar` belong to the kernels of a program, and there is none",
                                          "write `// program` and its calls (docs/cute.md)"}};
        auto kernel = launch_kernel(signature, launch);
        if (!kernel) return Unexpected{kernel.error()};
        auto entry = entry_of(*kernel, launch);
        if (!entry) return Unexpected{entry.error()};
        out.module.kernels.push_back(*std::move(kernel));
        out.entries.push_back(*std::move(entry));
    }
    return out;
}

Result<CompileRequest> request_for_cute(const std::string& text, const std::string& name, const std::string& arch) {
    const auto folder = find_cutlass_include_folder();
    if (folder.empty())
        return fail(FailureKind::missing_library, "CuTe's headers (cute/tensor.hpp) were not found",
                    "pip install nvidia-cutlass (scripts/setup.sh does), or set CUTLASS_INCLUDE to the folder that holds cute/tensor.hpp");
    if (find_cuda_include_folder().empty())
        return fail(FailureKind::missing_library, "CUDA's headers (cuda_bf16.h), which CuTe's include, were not found",
                    "set CUDA_HOME to the toolkit's folder, or put its nvcc on the PATH");
    CompileRequest request;
    request.source = text;
    request.name = name;
    request.arch = arch;
    request.system_folders.push_back(folder);
    // Text of headers and candidates has functions without a space; warnings of the headers are not ours to mend.
    request.options = {"--device-as-default-execution-space", "--disable-warnings"};
    return request;
}

std::optional<std::vector<int>> parameter_bytes(const std::string& cubin, const std::string& entry) {
    const auto number = [&](std::size_t at, std::size_t bytes) -> std::uint64_t {
        std::uint64_t v = 0;
        if (at > cubin.size() || cubin.size() - at < bytes) return 0;
        for (std::size_t i = 0; i < bytes; ++i) v |= static_cast<std::uint64_t>(static_cast<unsigned char>(cubin[at + i])) << (8 * i);
        return v;
    };
    if (cubin.size() < 64 || cubin.compare(0, 4,
                                           "\x7f"
                                           "ELF") != 0)
        return std::nullopt;
    const std::size_t table = number(40, 8), sections = number(60, 2), names_at = number(table + 64 * number(62, 2) + 24, 8);
    const std::string wanted = ".nv.info." + entry;
    for (std::size_t s = 0; s < sections; ++s) {
        const std::size_t head = table + 64 * s, name_at = names_at + number(head, 4);
        if (name_at >= cubin.size() || cubin.compare(name_at, wanted.size() + 1, wanted.c_str(), wanted.size() + 1) != 0) continue;
        const std::size_t begin = number(head + 24, 8), end = std::min(cubin.size(), begin + number(head + 32, 8));
        std::vector<int> sizes;
        for (std::size_t at = begin; at + 4 <= end;) {
            const auto form = number(at, 1), attribute = number(at + 1, 1), length = number(at + 2, 2);
            at += 4;
            if (form != 4) continue;
            if (attribute == 0x17 && length == 12) {  // a parameter: ordinal, offset, flags with the size above bit 18
                const auto ordinal = number(at + 4, 2);
                if (ordinal < 4096 && sizes.size() <= ordinal) sizes.resize(ordinal + 1);
                if (ordinal < sizes.size()) sizes[ordinal] = static_cast<int>(number(at + 8, 4) >> 18);
            }
            at += length;
        }
        return sizes;
    }
    return std::nullopt;
}

std::optional<std::string> parameter_problem(const ir::Kernel& kernel, const CuteEntry& entry, const std::string& cubin) {
    const auto declared = parameter_bytes(cubin, entry.entry);
    if (!declared) return fmt::format("there is no kernel `extern \"C\" __global__ void {}(...)` in the text", entry.entry);
    if (declared->size() != entry.arguments.size())
        return fmt::format("{} takes {} parameters, its launch gives {} arguments", entry.entry, declared->size(), entry.arguments.size());
    for (std::size_t i = 0; i < declared->size(); ++i) {
        using Kind = codegen::Argument::Kind;
        const codegen::Argument& a = entry.arguments[i];
        const auto id = static_cast<std::size_t>(a.id);
        int most = 8;
        std::string what = "a pointer";
        if (a.kind == Kind::size) most = 4, what = "an int";
        if (a.kind == Kind::scalar)
            most = target::bytes(kernel.scalars[id].dtype), what = fmt::format("a scalar of {}", target::name(kernel.scalars[id].dtype));
        // A TiledCopy holds its descriptor first; what follows it in CuTe's types is empty, and padded to the alignment.
        const bool map = a.kind == Kind::tensor_map;
        if (map ? (*declared)[i] == 128 || (*declared)[i] == 192 : (*declared)[i] == most) continue;
        return fmt::format(
            "parameter {} of {} has {} bytes; its argument is {}", i + 1, entry.entry, (*declared)[i],
            map ? "a TMA descriptor: CUtensorMap, or a TiledCopy of make_tma_copy" : what + fmt::format(" of {} bytes", most));
    }
    return std::nullopt;
}

}  // namespace tw::runtime
