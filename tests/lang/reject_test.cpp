// Programs and specifications that must be refused: each file of reject/ states on its first line which diagnostics it gets,
// all of them, with their places. So a message that moves, and a second message that follows from the first, both show.
#include <gtest/gtest.h>

#include <set>

#include "lang_test_support.h"

namespace tw::lang {
namespace reject_test {

constexpr std::string_view kExpect = "# expect: ";

std::string expectation(const std::string& text) {
    if (!text.starts_with(kExpect)) return "(the file does not start with '# expect: ')";
    return text.substr(kExpect.size(), text.find_first_of("\r\n") - kExpect.size());
}

TEST(Reject, EveryProgramGetsExactlyTheDiagnosticsItStates) {
    const auto files = files_with("reject", ".py");
    ASSERT_FALSE(files.empty());
    for (const auto& path : files) {
        const std::string text = read_bytes(path);
        const Parsed parsed = parse_text(text);
        EXPECT_EQ(codes_and_places(parsed.sink, parsed.sources), expectation(text)) << path.filename() << "\n" << parsed.report();
    }
}

TEST(Reject, EverySpecificationGetsExactlyTheDiagnosticsItStates) {
    const auto files = files_with("reject", ".computes");
    ASSERT_FALSE(files.empty());
    for (const auto& path : files) {
        const std::string text = read_bytes(path);
        const ParsedSpec parsed = parse_spec(text);
        EXPECT_EQ(codes_and_places(parsed.sink, parsed.sources), expectation(text)) << path.filename() << "\n" << parsed.report();
    }
}

// Every message reads as one: it says something, ends without a full stop, and shows the line it is about.
TEST(Reject, MessagesAreWrittenForAReader) {
    for (const std::string_view extension : {".py", ".computes"}) {
        for (const auto& path : files_with("reject", extension)) {
            const std::string text = read_bytes(path);
            const auto check = [&](const DiagnosticSink& sink) {
                for (const Diagnostic& diagnostic : sink.diagnostics()) {
                    EXPECT_GT(diagnostic.message.size(), 8u) << path.filename();
                    EXPECT_NE(diagnostic.message.back(), '.') << path.filename() << ": " << diagnostic.message;
                    EXPECT_TRUE(diagnostic.span.known()) << path.filename();
                    EXPECT_LE(diagnostic.span.begin, diagnostic.span.end) << path.filename();
                    EXPECT_LE(diagnostic.span.end, text.size()) << path.filename();
                    EXPECT_EQ(diagnostic.kind, code_info(diagnostic.code).kind);
                }
            };
            if (extension == ".py") check(parse_text(text).sink);
            if (extension == ".computes") check(parse_spec(text).sink);
        }
    }
}

// Codes whose program is not text that a file of reject/ could hold; limits_test.cpp has them.
const std::set<std::string> kElsewhere = {"TW0001", "TW0002", "TW0003", "TW0004"};

TEST(Reject, EveryCodeOfTheseStagesHasARejectedProgram) {
    std::set<std::string> covered = kElsewhere;
    for (const std::string_view extension : {".py", ".computes"}) {
        for (const auto& path : files_with("reject", extension)) {
            const std::string stated = expectation(read_bytes(path));
            for (std::size_t at = stated.find("TW"); at != std::string::npos; at = stated.find("TW", at + 1)) {
                covered.insert(stated.substr(at, 6));
            }
        }
    }
    for (const CodeInfo& info : all_codes()) {
        const int number = static_cast<int>(info.code);
        const bool ours = number < 100 || (number >= 500 && number < 520);  // from TW0520 on: the semantic stage
        if (ours) EXPECT_TRUE(covered.contains(std::string(info.id))) << info.id << " has no rejected program";
    }
}

}  // namespace reject_test
}  // namespace tw::lang
