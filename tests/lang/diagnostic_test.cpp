// How a diagnostic looks, as text and as JSON.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lang_test_support.h"

namespace tw::lang {
namespace diagnostic_test {

TEST(Diagnostics, TextShowsPlaceLineCaretNotesAndHint) {
    const Parsed parsed = parse_text("x = 1\ny = f(a, [b)\n", "kernels/k.py");
    EXPECT_EQ(parsed.report(),
              "kernels/k.py:2:12: error[TW0019]: ')' does not close '['\n"
              "    2 | y = f(a, [b)\n"
              "      |            ^\n"
              "  note: kernels/k.py:2:10: the bracket that is open\n"
              "    2 | y = f(a, [b)\n"
              "      |          ^\n"
              "  hint: write ']'\n");
}

TEST(Diagnostics, CaretsStandUnderWideAndTabbedText) {
    EXPECT_EQ(parse_text("if a:\n\tx = 'é', größe\n").report(),
              "kernel.py:2:11: error[TW0006]: the name 'größe' has letters outside ASCII\n"
              "    2 | \tx = 'é', größe\n"
              "      | \t         ^^^^^\n"
              "  hint: use ASCII letters, digits and underscores; comments and strings may hold any text\n");
}

TEST(Diagnostics, ReportsAreInSourceOrder) {
    // The lexer sees the last line before the parser sees the first.
    const Parsed parsed = parse_text("a b\nc d\ne $\n");
    EXPECT_EQ(codes_and_places(parsed.sink, parsed.sources), "TW0033 at 1:3, TW0033 at 2:3, TW0005 at 3:3");
}

TEST(Diagnostics, ControlCharactersDoNotReachTheTerminal) {
    const std::string report = parse_text("x = '\x1b[31m' $\n", "na\x1bme.py").report();
    EXPECT_EQ(report.find('\x1b'), std::string::npos) << report;
    EXPECT_NE(render_text(parse_text("$\n").sink, parse_text("$\n").sources, {.color = true}).find("\x1b[1;31m"), std::string::npos);
}

TEST(Diagnostics, JsonHasTheSameFacts) {
    const Parsed parsed = parse_text("x = 1\ny = f(a, [b)\n", "kernels/k.py");
    const nlohmann::json json = to_json(parsed.sink, parsed.sources);
    EXPECT_EQ(json["errors"], 1);
    const nlohmann::json& entry = json["diagnostics"][0];
    EXPECT_EQ(entry["code"], "TW0019");
    EXPECT_EQ(entry["name"], "mismatched_bracket");
    EXPECT_EQ(entry["severity"], "error");
    EXPECT_EQ(entry["kind"], "user");
    EXPECT_EQ(entry["message"], "')' does not close '['");
    EXPECT_EQ(entry["hint"], "write ']'");
    EXPECT_EQ(entry["place"]["file"], "kernels/k.py");
    EXPECT_EQ(entry["place"]["line"], 2);
    EXPECT_EQ(entry["place"]["column"], 12);
    EXPECT_EQ(entry["place"]["end_column"], 13);
    EXPECT_EQ(entry["place"]["begin"], 17);
    EXPECT_EQ(entry["place"]["source_line"], "y = f(a, [b)");
    EXPECT_EQ(entry["notes"][0]["place"]["column"], 10);
}

TEST(Diagnostics, ADiagnosticWithoutAPlaceIsFine) {
    DiagnosticSink sink;
    SourceMap sources;
    sink.error(Code::cannot_read_file, {}, "cannot read 'x'");
    EXPECT_EQ(render_text(sink, sources), "error[TW0001]: cannot read 'x'\n");
    EXPECT_FALSE(to_json(sink, sources)["diagnostics"][0].contains("place"));
}

TEST(Diagnostics, InternalErrorsSayWhoseBugItIs) {
    DiagnosticSink sink;
    SourceMap sources;
    sink.error(Code::internal_error, {}, "two roads meet");
    EXPECT_TRUE(sink.has_internal_errors());
    EXPECT_NE(render_text(sink, sources).find("bug in Tilewright"), std::string::npos);
}

TEST(Diagnostics, WarningsAreNoErrors) {
    DiagnosticSink sink;
    sink.warning(Code::bad_escape, {}, "odd");
    EXPECT_FALSE(sink.has_errors());
    EXPECT_FALSE(sink.empty());
}

TEST(Sources, LinesEndAsInPython) {
    const SourceFile file("f", "a\nb\r\nc\rd");
    EXPECT_EQ(file.line_count(), 4u);
    EXPECT_EQ(file.line_text(1), "a");
    EXPECT_EQ(file.line_text(2), "b");
    EXPECT_EQ(file.line_text(3), "c");
    EXPECT_EQ(file.line_text(4), "d");
    EXPECT_EQ(file.position(2), (LineColumn{2, 1}));
    EXPECT_EQ(file.position(7), (LineColumn{4, 1}));
    EXPECT_EQ(file.position(1000), (LineColumn{4, 2}));
    EXPECT_EQ(SourceFile("empty", "").position(0), (LineColumn{1, 1}));
}

}  // namespace diagnostic_test
}  // namespace tw::lang
