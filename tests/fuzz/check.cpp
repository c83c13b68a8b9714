// Kernel files through every stage and the whole check (proof, search for a counterexample, replay): a verdict or diagnostics, never a
// crash, a hang or an internal error. Bytes at random rarely survive the parser, so the mutator works on the tokens and lines of a
// kernel: most of what it makes is lowered, and much of it is wrong in ways that only the checker sees.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "diagnose/check.h"
#include "lower/lower.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t capacity) __attribute__((weak));

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tw;
    if (size > 20'000) return 0;
    SourceMap sources;
    DiagnosticSink sink;
    const std::string text(reinterpret_cast<const char*>(data), size);
    const auto module = lower::compile_text(sources, "input.py", text, {}, sink);
    if (module.has_value() == sink.has_errors() || sink.has_internal_errors()) {
        std::fprintf(stderr, "%s\n", render_text(sink, sources).c_str());
        std::abort();
    }
    if (!module) return 0;
    diagnose::CheckOptions options;
    options.search_seconds = 0.2;
    if (module->kernels.empty()) return 0;
    // One of them, which one changing with the text: a mutant's neighbours were checked with other mutants.
    const ir::Kernel& kernel = module->kernels[std::hash<std::string>{}(text) % module->kernels.size()];
    const diagnose::CheckResult result = diagnose::check(kernel, options);
    if (result.proved() && result.violated()) std::abort();  // proved and refuted at once
    if (result.violated() && !result.counterexample->confirmed) std::abort();
    return 0;
}

namespace {

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t n) { return n ? random() % n : 0; }

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::size_t start = 0;
    while (start < text.size()) {
        const std::size_t end = std::min(text.find('\n', start), text.size());
        lines.push_back(text.substr(start, end - start));
        start = end + 1;
    }
    return lines;
}

// Words, numbers and single characters; white space belongs to the token before it, so that joining gives the text back.
std::vector<std::string> tokens_of(const std::string& line) {
    std::vector<std::string> tokens;
    const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (std::size_t i = 0; i < line.size();) {
        std::size_t end = i + 1;
        if (word(line[i]))
            while (end < line.size() && word(line[end])) ++end;
        tokens.push_back(line.substr(i, end - i));
        i = end;
    }
    return tokens;
}

std::string joined(const std::vector<std::string>& parts, const char* separator) {
    std::string text;
    for (const std::string& p : parts) (text += p) += separator;
    return text;
}

std::string other_number(Random& random, const std::string& number) {
    static const char* const odd[] = {"0",
                                      "1",
                                      "2",
                                      "3",
                                      "4",
                                      "7",
                                      "8",
                                      "16",
                                      "32",
                                      "63",
                                      "64",
                                      "65",
                                      "128",
                                      "256",
                                      "1024",
                                      "4096",
                                      "2147483647",
                                      "9223372036854775807",
                                      "99999999999999999999"};
    const unsigned long value = std::strtoul(number.c_str(), nullptr, 10);
    switch (below(random, 5)) {
        case 0: return std::to_string(value + 1);
        case 1: return std::to_string(value > 0 ? value - 1 : value);
        case 2: return std::to_string(value * 2);
        case 3: return std::to_string(value / 2);
        default: return odd[below(random, std::size(odd))];
    }
}

void change_token(Random& random, std::vector<std::string>& lines) {
    const std::size_t at = below(random, lines.size());
    std::vector<std::string> tokens = tokens_of(lines[at]);
    std::vector<std::size_t> meaningful;
    for (std::size_t i = 0; i < tokens.size(); ++i)
        if (tokens[i] != " ") meaningful.push_back(i);
    if (meaningful.empty()) return;
    std::string& token = tokens[meaningful[below(random, meaningful.size())]];
    static const char* const operators[] = {"+", "-", "*", "//", "%", "<", "<=", ">", "==", ",", ":", "(", ")", "[", "]"};
    if (std::isdigit(static_cast<unsigned char>(token[0]))) {
        token = other_number(random, token);
    } else if (std::isalpha(static_cast<unsigned char>(token[0])) || token[0] == '_') {
        // A word of another line: usually a name that exists.
        const std::vector<std::string> others = tokens_of(lines[below(random, lines.size())]);
        if (!others.empty()) token = others[below(random, others.size())];
    } else {
        token = below(random, 3) ? operators[below(random, std::size(operators))] : "";
    }
    lines[at] = joined(tokens, "");
}

void change_line(Random& random, std::vector<std::string>& lines) {
    const std::size_t at = below(random, lines.size()), other = below(random, lines.size());
    switch (below(random, 6)) {
        case 0: lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at)); break;
        case 1: lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), std::string(lines[other])); break;
        case 2: std::swap(lines[at], lines[other]); break;
        case 3: lines[at] = "    " + lines[at]; break;
        case 4:
            if (lines[at].rfind("    ", 0) == 0) lines[at].erase(0, 4);
            break;
        default:
            if (at + 1 < lines.size()) std::swap(lines[at], lines[at + 1]);
    }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t capacity, unsigned int seed) {
    Random random(seed);
    if (LLVMFuzzerMutate && below(random, 20) == 0) return LLVMFuzzerMutate(data, size, capacity);
    std::vector<std::string> lines = lines_of(std::string(reinterpret_cast<char*>(data), size));
    for (std::size_t n = 1 + below(random, 3); n > 0 && !lines.empty(); --n) {
        if (below(random, 3)) change_token(random, lines);
        else change_line(random, lines);
    }
    const std::string text = joined(lines, "\n");
    const std::size_t kept = std::min(text.size(), capacity);
    std::memcpy(data, text.data(), kept);
    return kept;
}
