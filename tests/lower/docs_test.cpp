// Every example of docs/language.md compiles, and every construct has one.
#include <gtest/gtest.h>

#include <regex>

#include "diagnose/check.h"
#include "lower/names.h"
#include "lower_test_support.h"

namespace tw::lower {
namespace docs_test {

struct Example {
    int line;
    std::string text;
};

std::vector<Example> examples(const std::string& markdown) {
    std::vector<Example> found;
    std::istringstream lines(markdown);
    std::string line;
    int number = 0;
    while (std::getline(lines, line)) {
        ++number;
        if (line != "```python") continue;
        Example example{number, ""};
        while (std::getline(lines, line) && line != "```") ++number, example.text += line + "\n";
        ++number;
        found.push_back(std::move(example));
    }
    return found;
}

// The surrounding that the page states for bodies.
std::string whole(const std::string& text) {
    if (text.find("import tilewright") != std::string::npos) return text;
    return kernel_text(
        "X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N), A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(bf16, M, N), idx: "
        "tw.Tensor(i32, N), "
        "scale: tw.scalar(f32), BM: tw.const = 64, BN: tw.const = 64, BK: tw.const = 64",
        text);
}

TEST(LanguageReference, EveryExampleCompiles) {
    const auto found = examples(read_bytes(repository("docs/language.md")));
    EXPECT_GT(found.size(), 20u);
    for (const Example& example : found) {
        const Compiled c = compile(whole(example.text));
        EXPECT_TRUE(c.module.has_value()) << "docs/language.md:" << example.line << "\n" << c.report();
    }
}

TEST(LanguageReference, EveryExampleThatSaysWhatItComputesIsProved) {
    int proved = 0;
    for (const Example& example : examples(read_bytes(repository("docs/language.md")))) {
        const Compiled c = compile(whole(example.text));
        if (!c.module) continue;  // reported above
        for (const ir::Kernel& k : c.module->kernels) {
            if (k.computes.equations.empty()) continue;
            const diagnose::CheckResult result = diagnose::check(k, {});
            EXPECT_TRUE(result.proved()) << "docs/language.md:" << example.line << ": " << k.name;
            proved += result.proved();
        }
    }
    EXPECT_GT(proved, 15);
}

TEST(LanguageReference, EveryConstructHasAnExample) {
    std::string text;
    for (const Example& example : examples(read_bytes(repository("docs/language.md")))) text += whole(example.text);
    int missing = 0;
    for (const std::string& name : builtin_names()) {
        if (std::regex_search(text, std::regex("\\btw\\." + name + "\\b"))) continue;
        ++missing;
        ADD_FAILURE() << "docs/language.md has no example of tw." << name;
    }
    EXPECT_GT(builtin_names().size(), 80u);
    EXPECT_EQ(missing, 0);
    for (const char* keyword : {"target",     "computes",  "name",   "threads",   "cluster",     "blocks_per_sm", "dependent_launch",
                                "strides",    "zeroed",    "stable", "range",     "sorted",      "offsets_of",    "tile_ends",
                                "inverse_of", "unroll",    "step",   "group",     "cluster_dim", "fill",          "hint",
                                "layout",     "limit",     "rank",   "swizzle",   "pad",         "align",         "offset_bytes",
                                "axis",       "reverse",   "approx", "vector",    "warps",       "xor",           "up",
                                "down",       "lane",      "on",     "multicast", "read",        "noinc",         "arrivals",
                                "consumers",  "producers", "keep",   "zero",      "regs"}) {
        EXPECT_TRUE(std::regex_search(text, std::regex("\\b" + std::string(keyword) + "=")))
            << "docs/language.md has no example of " << keyword << "=";
    }
    for (const char* method :
         {"to", "wait", "arrive", "expect", "acquire", "full", "commit", "release", "sync", "T", "shape", "dtype", "bytes"}) {
        EXPECT_TRUE(std::regex_search(text, std::regex("\\." + std::string(method) + "\\b"))) << "no example of ." << method;
    }
}

}  // namespace docs_test
}  // namespace tw::lower
