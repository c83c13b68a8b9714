// Hostile and enormous input: a diagnostic, never a crash, a hang or an internal error.
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include <nlohmann/json.hpp>

#include "lang/bundle.h"
#include "lang_test_support.h"

namespace tw::lang {
namespace limits_test {

std::string repeated(std::string_view text, std::size_t count) {
    std::string result;
    result.reserve(text.size() * count);
    for (std::size_t i = 0; i < count; ++i) result += text;
    return result;
}

std::string only_code(const Parsed& parsed) {
    if (parsed.sink.diagnostics().size() != 1) return "not one diagnostic:\n" + parsed.report();
    return std::string(code_info(parsed.sink.diagnostics().front().code).id);
}

TEST(Limits, UnreadableFiles) {
    for (const std::string path : {"no/such/file.py", TW_SOURCE_DIR}) {
        const auto text = read_kernel_file(path);
        ASSERT_FALSE(text);
        EXPECT_FALSE(text.error().too_large);
        EXPECT_NE(text.error().text.find("cannot read"), std::string::npos) << text.error().text;
    }
}

TEST(Limits, TenMegabytes) {
    const auto path =
        std::filesystem::temp_directory_path() / fmt::format("tilewright-large-{}.py", ::testing::UnitTest::GetInstance()->random_seed());
    std::ofstream(path, std::ios::binary) << repeated("x = 1\n", 10'000'000 / 6);
    const auto text = read_kernel_file(path);
    ASSERT_FALSE(text);
    EXPECT_TRUE(text.error().too_large);
    std::filesystem::remove(path);

    const Parsed parsed = parse_text(repeated("x = 1\n", 10'000'000 / 6));
    EXPECT_EQ(only_code(parsed), "TW0002");
    EXPECT_TRUE(parse_text(repeated("x = 1\n", kMaxFileBytes / 6)).sink.empty());
}

TEST(Limits, BytesThatAreNoText) {
    EXPECT_EQ(only_code(parse_text(std::string("x = 1\ny = \0 2\n", 14))), "TW0004");
    EXPECT_EQ(only_code(parse_text(std::string("x = '\0'\n", 8))), "TW0004");
    // A stray continuation byte, a cut sequence, an overlong form, a surrogate, and a point beyond Unicode's last.
    for (const std::string bytes : {"\x80", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF"}) {
        const Parsed parsed = parse_text("x = 1\n# " + bytes + "\n");
        EXPECT_EQ(codes_and_places(parsed.sink, parsed.sources), "TW0003 at 2:3") << bytes;
        EXPECT_NO_THROW(to_json(parsed.sink, parsed.sources).dump());
    }
    EXPECT_EQ(only_code(parse_text("\xFF\xFEx\0=\0")), "TW0003");  // UTF-16
}

TEST(Limits, DeepNestingByEveryRoad) {
    const std::size_t n = 100'000;
    const std::vector<std::pair<std::string, std::string>> roads = {
        {"brackets", "x = " + repeated("(", n) + "1" + repeated(")", n) + "\n"},
        {"lists", "x = " + repeated("[", n) + "\n"},
        {"mixed brackets", "x = " + repeated("f([{1: ", n)},
        {"subscripts inside", "x = " + repeated("a[", n) + "1" + repeated("]", n)},
        {"minus", "x = " + repeated("-", n) + "1\n"},
        {"not", "x = " + repeated("not ", n) + "1\n"},
        {"power", "x = " + repeated("a ** ", n) + "1\n"},
        {"lambda", "x = " + repeated("lambda: ", n) + "1\n"},
        {"conditional", "x = " + repeated("a if b else ", n) + "1\n"},
        {"sum", "x = " + repeated("a + ", n) + "1\n"},
        {"attributes", "x = a" + repeated(".b", n) + "\n"},
        {"calls", "x = a" + repeated("()", n) + "\n"},
        {"subscripts", "x = a" + repeated("[0]", n) + "\n"},
        {"operators of rising precedence", "x = " + repeated("a | b ^ c & d << e + f * ", n) + "g\n"},
        {"decorators", repeated("@", n) + "\n"},
    };
    for (const auto& [name, text] : roads) {
        const Parsed parsed = parse_text(text);
        ASSERT_TRUE(parsed.sink.has_errors()) << name;
        const Code code = parsed.sink.in_source_order().front()->code;
        const bool expected = code == Code::nesting_too_deep || code == Code::expression_too_deep || code == Code::unclosed_bracket ||
                              code == Code::expected_expression;
        EXPECT_TRUE(expected) << name << "\n" << parsed.report();
        EXPECT_FALSE(parsed.sink.has_internal_errors()) << name;
    }
    std::string blocks;
    for (std::size_t i = 0; i < 2000; ++i) blocks += std::string(i, ' ') + "if a:\n";
    const Parsed nested_blocks = parse_text(blocks);
    EXPECT_EQ(nested_blocks.sink.in_source_order().front()->code, Code::nesting_too_deep) << nested_blocks.report();
}

TEST(Limits, LongFlatProgramsAreFine) {
    const std::size_t n = 50'000;
    for (const std::string& text : {"x = [" + repeated("1, ", n) + "]\n", "f(" + repeated("a, ", n) + ")\n", repeated("x = 1; ", n) + "\n",
                                    "x = " + repeated("'a' ", n) + "\n"}) {
        const Parsed parsed = parse_text(text);
        EXPECT_TRUE(parsed.sink.empty()) << text.substr(0, 20) << "\n" << parsed.report().substr(0, 1000);
    }
}

// What is flat in the text is deep in the tree: short chains are fine, long ones are refused before anything walks them.
TEST(Limits, LongChainsAreRefused) {
    struct Chain {
        std::string begin, link, end, code;
    };
    for (const Chain& c : {Chain{"if a:\n    pass\n", "elif b:\n    pass\n", "", "TW0021"}, Chain{"x = ", "a and ", "b\n", "TW0022"},
                           Chain{"x = ", "a < ", "b\n", "TW0022"}}) {
        EXPECT_TRUE(parse_text(c.begin + repeated(c.link, 60) + c.end).sink.empty()) << c.link;
        EXPECT_EQ(only_code(parse_text(c.begin + repeated(c.link, 50'000) + c.end)), c.code) << c.link;
    }
}

TEST(Limits, HugeNumbers) {
    EXPECT_EQ(only_code(parse_text("x = " + repeated("9", 1'000'000) + "\n")), "TW0012");
    EXPECT_EQ(only_code(parse_text("x = 0x" + repeated("f", 1'000'000) + "\n")), "TW0012");
    EXPECT_EQ(only_code(parse_text("x = 1e" + repeated("9", 100'000) + "\n")), "TW0013");
    EXPECT_EQ(only_code(parse_text("x = " + repeated("9", 100'000) + ".0\n")), "TW0013");
    EXPECT_TRUE(parse_text("x = 1e-" + repeated("9", 1000) + "\n").sink.empty());
    EXPECT_TRUE(parse_text("x = 0." + repeated("0", 100'000) + "1\n").sink.empty());
    EXPECT_TRUE(parse_text("x = " + repeated("0", 100'000) + "\n").sink.empty());
}

TEST(Limits, DiagnosticsAreBounded) {
    const Parsed parsed = parse_text(repeated("x = $\n", 10'000));
    EXPECT_EQ(parsed.sink.diagnostics().size(), DiagnosticSink::kDefaultLimit);
    EXPECT_EQ(parsed.sink.error_count(), 10'000u);
    EXPECT_EQ(parsed.sink.dropped_count(), 10'000u - DiagnosticSink::kDefaultLimit);
    EXPECT_NE(parsed.report().find("further reports"), std::string::npos);
    // One enormous line: the excerpt is clipped.
    const Parsed wide = parse_text("x = " + repeated("a ", 1'000'000) + "\n");
    EXPECT_LT(wide.report().size(), 2000u);
    EXPECT_LT(to_json(wide.sink, wide.sources).dump().size(), 4000u);
}

// Doubling the text must not quadruple the time. Each shape was chosen because a careless parser is quadratic on it.
TEST(Limits, TimeIsLinear) {
    const auto seconds = [](const std::string& text) {
        double best = 1e9;
        for (int i = 0; i < 3; ++i) {
            const auto begin = std::chrono::steady_clock::now();
            parse_text(text);
            best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        }
        return best;
    };
    for (const std::string_view unit :
         {"f(\ndef\n", "match match\n", "with (a,", "x = f(a=1, b)\n", "((((\n", "a]\n", "'\n", "if a:\n x\n  y\n"}) {
        const double small = seconds(repeated(unit, 20'000)), large = seconds(repeated(unit, 80'000));
        EXPECT_LT(large, 16 * small + 0.1) << unit << ": " << small << " s, then " << large << " s for four times the text";
    }
    std::string parameters = "def f(", keywords = "f(";
    for (int i = 0; i < 100'000; ++i) {
        parameters += fmt::format("a{}, ", i);
        keywords += fmt::format("a{}=1, ", i);
    }
    EXPECT_LT(seconds(parameters + "): pass\n"), 5.0);
    EXPECT_LT(seconds(keywords + ")\n"), 5.0);
}

// ---- random input ----

// The invariants that hold for any text whatever.
void check_any_text(const std::string& text, std::string_view context) {
    const Parsed parsed = parse_text(text);
    ASSERT_FALSE(parsed.sink.has_internal_errors()) << context << "\n" << text;
    for (const Diagnostic& diagnostic : parsed.sink.diagnostics()) {
        ASSERT_LE(diagnostic.span.begin, diagnostic.span.end) << context << "\n" << text;
        ASSERT_LE(diagnostic.span.end, text.size()) << context << "\n" << text;
    }
    for (const Expr& expr : parsed.module.exprs) {
        ASSERT_LE(expr.span.begin, expr.span.end) << context << "\n" << text;
        ASSERT_LE(expr.span.end, text.size()) << context << "\n" << text;
        ASSERT_LE(expr.depth, kMaxExprDepth) << context << "\n" << text;
    }
    parsed.report();
    if (parsed.sink.has_errors()) return;
    const std::string printed = print(parsed.module);
    const Parsed again = parse_text(printed);
    ASSERT_FALSE(again.sink.has_errors()) << context << "\n" << text << "\nprinted:\n" << printed << "\n" << again.report();
    ASSERT_TRUE(same_tree(parsed.module, again.module)) << context << "\n" << text << "\nprinted:\n" << printed;
}

std::uint64_t test_seed() {
    const char* given = std::getenv("TW_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

TEST(Random, TokenSoup) {
    const std::uint64_t seed = test_seed();
    std::mt19937_64 random(seed);
    const std::vector<std::string> words = {"def ",    "for ",
                                            "in ",     "if ",
                                            "elif ",   "else",
                                            "while ",  "with ",
                                            "as ",     "return ",
                                            "pass",    "break",
                                            "assert ", "lambda ",
                                            "import ", "from ",
                                            "class ",  "try",
                                            "yield ",  "not ",
                                            "and ",    "or ",
                                            "is ",     "None",
                                            "True",    "x",
                                            "y",       "tw",
                                            "f",       "1",
                                            "2.5",     "0x1F",
                                            "'s'",     "\"\"\"t\n\"\"\"",
                                            "f'x'",    "(",
                                            ")",       "[",
                                            "]",       "{",
                                            "}",       ",",
                                            ":",       ";",
                                            ".",       "=",
                                            "==",      "+=",
                                            "+",       "-",
                                            "*",       "**",
                                            "/",       "//",
                                            "%",       "@",
                                            "<",       ">",
                                            "->",      ":=",
                                            "...",     "\n",
                                            "\n    ",  "\n        ",
                                            "\n\t",    "\\\n",
                                            " ",       "#c\n",
                                            "$",       "\xC3\xA9",
                                            "match ",  "case "};
    for (int round = 0; round < 20'000; ++round) {
        std::string text;
        const int length = static_cast<int>(random() % 40);
        for (int i = 0; i < length; ++i) text += words[random() % words.size()];
        check_any_text(text, fmt::format("TW_SEED={} round {}", seed, round));
        if (HasFatalFailure()) return;
    }
}

TEST(Random, DamagedPrograms) {
    const std::uint64_t seed = test_seed();
    std::mt19937_64 random(seed);
    std::vector<std::string> programs;
    for (const auto& path : files_with("accept", ".py")) programs.push_back(read_bytes(path));
    for (int round = 0; round < 3000; ++round) {
        std::string text = programs[random() % programs.size()];
        for (int edits = 1 + static_cast<int>(random() % 3); edits > 0 && !text.empty(); --edits) {
            const std::size_t at = random() % text.size(), length = 1 + random() % 6;
            switch (random() % 4) {
                case 0: text.erase(at, length); break;
                case 1: text.insert(at, text.substr(random() % text.size(), length)); break;
                case 2: text[at] = static_cast<char>(random() % 128); break;
                default: text.resize(at);
            }
        }
        check_any_text(text, fmt::format("TW_SEED={} round {}", seed, round));
        if (HasFatalFailure()) return;
    }
}

}  // namespace limits_test
}  // namespace tw::lang
