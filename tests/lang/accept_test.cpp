// Programs that must be accepted. accept/NAME.dump is written by Python's own `ast` (python_ast_dump.py), so these tests
// compare our parser with Python's: structure, values and places. test_python_agrees.py checks that the dumps are what Python
// says.
#include <gtest/gtest.h>

#include "lang_test_support.h"

namespace tw::lang {
namespace accept_test {

TEST(Accept, TreesAreThoseOfPython) {
    const auto files = files_with("accept", ".py");
    ASSERT_FALSE(files.empty());
    for (const auto& path : files) {
        const Parsed parsed = parse_text(read_bytes(path));
        EXPECT_TRUE(parsed.sink.empty()) << path.filename() << "\n" << parsed.report();
        auto golden = path;
        golden.replace_extension(".dump");
        EXPECT_EQ(dump(parsed.module, &parsed.sources), read_bytes(golden)) << path.filename();
    }
}

TEST(Accept, PrintingAndParsingGivesTheSameTree) {
    for (const auto& path : files_with("accept", ".py")) {
        const Parsed first = parse_text(read_bytes(path));
        const std::string printed = print(first.module);
        const Parsed second = parse_text(printed);
        EXPECT_TRUE(second.sink.empty()) << path.filename() << "\n" << second.report();
        EXPECT_TRUE(same_tree(first.module, second.module)) << path.filename() << "\n" << printed;
        EXPECT_EQ(print(second.module), printed) << path.filename();
    }
}

TEST(Accept, ParenthesesArePrintedOnlyWhereNeeded) {
    const std::vector<std::string> canonical = {
        "(a + b) * c",
        "a + b * c",
        "-a ** b",
        "(-a) ** b",
        "a ** -b",
        "a - (b - c)",
        "a - b - c",
        "not a == b",
        "(not a) == b",
        "(a < b) < c",
        "a < b < c",
        "(a or b) and c",
        "a or b and c",
        "(lambda: a)()",
        "lambda: a if b else c",
        "(lambda: a) if b else c",
        "a if b else c if d else e",
        "(a if b else c) if d else e",
        "(1).real",
        "1.5 ** 2",
        "x[a:b, ::c]",
        "(a, b)[0]",
        "(-x).y",
        "f(lambda x: x, k=lambda: 0)",
        "(a, (b,), ())",
        "(a and b) and c",
        "{a: b}",
    };
    for (const std::string& text : canonical) {
        const Parsed parsed = parse_text("x = [" + text + "]\n");
        ASSERT_TRUE(parsed.sink.empty()) << text << "\n" << parsed.report();
        EXPECT_EQ(print(parsed.module), "x = [" + text + "]\n");
    }
}

TEST(Accept, DocstringsAreFound) {
    const Parsed parsed = parse_text("\"module\"\ndef f():\n    'function'\n    return 1\ndef g():\n    return 'no'\n");
    ASSERT_TRUE(parsed.module.docstring);
    EXPECT_EQ(parsed.module.get_if<StringLiteral>(parsed.module.docstring)->value, "module");
    const auto* f = parsed.module.get_if<FunctionDef>(parsed.module.body[1]);
    ASSERT_NE(f, nullptr);
    EXPECT_EQ(parsed.module.get_if<StringLiteral>(docstring_of(parsed.module, f->body))->value, "function");
    const auto* g = parsed.module.get_if<FunctionDef>(parsed.module.body[2]);
    ASSERT_NE(g, nullptr);
    EXPECT_FALSE(docstring_of(parsed.module, g->body));
}

// A place inside a string leads back to the source through quotes, escapes, concatenation and line ends.
TEST(Accept, BytesOfAStringKnowTheirPlace) {
    const std::string text = "x = 'ab\\ncd' \"\"\"e\\x41\r\nf\"\"\" r'\\g'\n";
    const Parsed parsed = parse_text(text);
    ASSERT_TRUE(parsed.sink.empty()) << parsed.report();
    const ExprId literal = parsed.module.get_if<Assign>(parsed.module.body[0])->value;
    const std::string value = parsed.module.get_if<StringLiteral>(literal)->value;
    ASSERT_EQ(value, "ab\ncdeA\nf\\g");
    for (const char c : std::string("abcdefg")) {
        const auto at = static_cast<std::uint32_t>(value.find(c));
        const Span span = source_span(parsed.module, literal, at, at + 1);
        EXPECT_EQ(parsed.sources.text(span), std::string(1, c));
    }
    EXPECT_EQ(parsed.sources.text(source_span(parsed.module, literal, 0, 2)), "ab");
    EXPECT_EQ(parsed.sources.text(source_span(parsed.module, literal, 3, 6)), "cd' \"\"\"e");  // spans over two literals
}

TEST(Accept, HeadersEndAtTheColon) {
    const Parsed parsed = parse_text("@tw.kernel\ndef f(a,\n      b):\n    for i in a: pass\n");
    const Stmt& function = parsed.module[parsed.module.body[0]];
    EXPECT_EQ(parsed.sources.text(function.header), "@tw.kernel\ndef f(a,\n      b):");
    const auto* def = std::get_if<FunctionDef>(&function.node);
    ASSERT_NE(def, nullptr);
    EXPECT_EQ(parsed.sources.text(parsed.module[def->body[0]].header), "for i in a:");
    EXPECT_EQ(parsed.sources.text(def->name_span), "f");
    EXPECT_EQ(parsed.sources.text(def->parameters[1].name_span), "b");
}

}  // namespace accept_test
}  // namespace tw::lang
