#include "runtime/cute_units.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <exception>
#include <optional>
#include <set>

#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

namespace tw::runtime {
namespace {

bool of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Text and comments apart: comments and the insides of literals become spaces, places stay.
std::optional<std::string> bare_code(std::string_view text) {
    std::string out(text);
    const auto blank = [&](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; ++i)
            if (out[i] != '\n') out[i] = ' ';
    };
    for (std::size_t i = 0; i < text.size();) {
        if (text.compare(i, 2, "//") == 0) {
            const std::size_t end = std::min(text.find('\n', i), text.size());
            if (text[end - 1] == '\\') return std::nullopt;
            blank(i, end), i = end;
        } else if (text.compare(i, 2, "/*") == 0) {
            const std::size_t end = text.find("*/", i + 2);
            if (end == std::string_view::npos) return std::nullopt;
            blank(i, end + 2), i = end + 2;
        } else if (text[i] == '"' || (text[i] == '\'' && (i == 0 || !of_word(text[i - 1])))) {
            if (text[i] == '"' && i > 0 && text[i - 1] == 'R') return std::nullopt;
            std::size_t end = i + 1;
            while (end < text.size() && text[end] != text[i] && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
            if (end >= text.size() || text[end] != text[i]) return std::nullopt;
            blank(i + 1, end), i = end + 1;
        } else ++i;
    }
    return out;
}

// Behind the bracket that closes the one at `open`.
std::size_t after_bracket(const std::string& code, std::size_t open) {
    const char opens = code[open], closes = opens == '(' ? ')' : '}';
    int depth = 0;
    for (std::size_t i = open; i < code.size(); ++i) {
        depth += code[i] == opens, depth -= code[i] == closes;
        if (depth == 0) return i + 1;
    }
    return std::string::npos;
}

struct Definition {
    std::string name;
    std::size_t begin = 0, end = 0;
};

std::size_t skip_spaces(const std::string& code, std::size_t at) {
    while (at < code.size() && is_space(code[at])) ++at;
    return at;
}

// `extern "C" __global__ void __launch_bounds__(...) name(...) { ... }`, in any order of the words before the name.
std::optional<Definition> definition_at(const std::string& code, std::size_t word) {
    Definition d;
    const std::size_t before = code.rfind("extern", word);
    if (before == std::string::npos) return std::nullopt;
    for (std::size_t i = before + 6; i < word; ++i)  // the literal's inside is blank
        if (!is_space(code[i]) && code[i] != '"') return std::nullopt;
    d.begin = before;
    for (std::size_t at = word;;) {
        at = skip_spaces(code, at);
        const std::size_t from = at;
        while (at < code.size() && of_word(code[at])) ++at;
        if (at == from) return std::nullopt;
        const std::string name = code.substr(from, at - from);
        const std::size_t open = skip_spaces(code, at);
        if (open >= code.size()) return std::nullopt;
        if (code[open] != '(') continue;
        const std::size_t after = after_bracket(code, open);
        if (after == std::string::npos) return std::nullopt;
        at = after;
        if (name == "__launch_bounds__") continue;
        const std::size_t body = skip_spaces(code, after);
        if (body >= code.size() || code[body] != '{') return std::nullopt;
        d.name = name, d.end = after_bracket(code, body);
        return d.end == std::string::npos ? std::nullopt : std::optional(d);
    }
}

std::optional<std::vector<Definition>> kernels_of(const std::string& code) {
    std::vector<Definition> out;
    for (std::size_t at = code.find("__global__"); at != std::string::npos; at = code.find("__global__", at)) {
        auto found = definition_at(code, at);
        if (!found) return std::nullopt;
        at = found->end;
        out.push_back(*std::move(found));
    }
    return out;
}

CompileRequest unit_request(CompileRequest whole, std::string unit) {
    whole.source = std::move(unit);
    whole.name = "kernel.cu";  // the same kernel of another candidate is the same text
    return whole;
}

Result<CompiledKernels> compile_whole(const std::string& text, const std::string& name, const std::string& arch) {
    auto request = request_for_cute(text, name, arch);
    if (!request) return std::move(request).propagate();
    return compile(*request);
}

}  // namespace

std::string cute_unit(std::string_view text, const std::vector<CuteEntry>& entries, const std::string& entry) {
    const std::string whole(text);
    std::set<std::string> others;
    for (const CuteEntry& e : entries)
        if (e.entry != entry) others.insert(e.entry);
    if (others.empty()) return whole;
    const auto code = bare_code(text);
    // Brackets of conditional text need not match, and a macro may be a kernel's head.
    if (!code || code->find("#if") != std::string::npos || code->find("#define") != std::string::npos) return whole;
    const auto kernels = kernels_of(*code);
    if (!kernels) return whole;
    std::multiset<std::string> found;
    for (const Definition& d : *kernels) found.insert(d.name);
    for (const std::string& name : others)
        if (found.count(name) != 1) return whole;
    if (found.count(entry) != 1) return whole;

    std::string kept = whole;
    for (const Definition& d : *kernels)
        if (others.count(d.name))
            std::fill(kept.begin() + static_cast<std::ptrdiff_t>(d.begin), kept.begin() + static_cast<std::ptrdiff_t>(d.end), ' ');
    std::string out;
    std::size_t at = 0;
    for (const std::string_view line : split_lines(whole)) {
        const std::string_view bare = std::string_view(*code).substr(at, line.size());
        const std::string_view now = std::string_view(kept).substr(at, line.size());
        at += line.size() + 1;
        const auto all_spaces = [](std::string_view t) { return std::all_of(t.begin(), t.end(), is_space); };
        if (all_spaces(now) || all_spaces(bare)) continue;
        const bool of_another = std::any_of(others.begin(), others.end(), [&](const std::string& name) {
            return bare.rfind("using " + name + "_", 0) == 0 && entry.rfind(name + "_", 0) != 0 && bare.find(';') + 1 == bare.size();
        });
        if (!of_another) out += std::string(now) + "\n";
    }
    return out;
}

CuteBuild::CuteBuild(std::string text, std::string name, std::string arch, std::vector<CuteEntry> entries)
    : text_(std::move(text)), name_(std::move(name)), arch_(std::move(arch)), entries_(std::move(entries)) {
    auto request = request_for_cute(text_, name_, arch_);
    if (!request || entries_.size() < 2) return;
    std::set<std::string> units;
    for (const CuteEntry& e : entries_) units.insert(cute_unit(text_, entries_, e.entry));
    if (units.size() < 2) return;
    for (const std::string& unit : units) {
        const CompileRequest own = unit_request(*request, unit);
        const pid_t child = ::fork();
        if (child > 0) compilers_.push_back(child);
        if (child != 0) continue;  // what could not be started is compiled by finish()
        try {
            (void)compile(own);  // its answer is in the cache
        } catch (const std::exception&) {
        }
        ::_exit(0);
    }
}

CuteBuild::~CuteBuild() {
    for (const int child : compilers_) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
    }
}

Result<std::vector<CompiledKernels>> CuteBuild::finish() {
    const bool apart = !compilers_.empty();
    while (!compilers_.empty()) {
        ::waitpid(compilers_.back(), nullptr, 0);
        compilers_.pop_back();
    }
    std::vector<CompiledKernels> out;
    for (const CuteEntry& e : entries_) {
        auto made = compile_cute_kernel(text_, name_, arch_, entries_, e.entry);
        if (!made) return std::move(made).propagate();
        out.push_back(*std::move(made));
    }
    if (apart) {  // what the compilers left in the cache was made now
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
        for (CompiledKernels& k : out) k.from_cache = false, k.seconds = 0;
        out.front().seconds = seconds;
    }
    return out;
}

Result<CompiledKernels> compile_cute_kernel(const std::string& text, const std::string& name, const std::string& arch,
                                            const std::vector<CuteEntry>& entries, const std::string& entry) {
    const std::string unit = cute_unit(text, entries, entry);
    if (unit == text) return compile_whole(text, name, arch);
    auto request = request_for_cute(text, name, arch);
    if (!request) return std::move(request).propagate();
    auto made = compile(unit_request(*std::move(request), unit));
    if (made || made.error().kind != FailureKind::compile_error) return made;
    return compile_whole(text, name, arch);
}

}  // namespace tw::runtime
