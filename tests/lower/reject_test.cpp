// Programs that must be refused: each file of reject/ states on its first line which diagnostics it gets, all of them.
#include <gtest/gtest.h>

#include <set>

#include "lower_test_support.h"

namespace tw::lower {
namespace reject_test {

constexpr std::string_view kExpect = "# expect: ";

std::string expectation(const std::string& text) {
    if (!text.starts_with(kExpect)) return "(the file does not start with '# expect: ')";
    return text.substr(kExpect.size(), text.find_first_of("\r\n") - kExpect.size());
}

TEST(Reject, EveryProgramGetsExactlyTheDiagnosticsItStates) {
    for (const auto& path : files_in("tests/lower/reject")) {
        const std::string text = read_bytes(path);
        const Compiled c = compile(text);
        EXPECT_EQ(codes_and_places(c.sink, c.sources), expectation(text)) << path.filename() << "\n" << c.report();
        EXPECT_FALSE(c.module.has_value()) << path.filename();
        EXPECT_FALSE(c.sink.has_internal_errors()) << path.filename() << "\n" << c.report();
    }
}

TEST(Reject, MessagesAreWrittenForAReader) {
    for (const auto& path : files_in("tests/lower/reject")) {
        const Compiled c = compile(read_bytes(path));
        for (const Diagnostic& d : c.sink.diagnostics()) {
            EXPECT_GT(d.message.size(), 8u) << path.filename();
            EXPECT_NE(d.message.back(), '.') << path.filename() << ": " << d.message;
            EXPECT_TRUE(d.span.known()) << path.filename();
            EXPECT_LE(d.span.begin, d.span.end) << path.filename();
        }
    }
}

TEST(Reject, EveryCodeOfThisStageHasARejectedProgram) {
    // TW0110 is about the command line, not about a program; UnknownConstant below has it.
    std::set<std::string> covered = {"TW0110"};
    for (const auto& path : files_in("tests/lower/reject")) {
        const std::string stated = expectation(read_bytes(path));
        for (std::size_t at = stated.find("TW"); at != std::string::npos; at = stated.find("TW", at + 1))
            covered.insert(stated.substr(at, 6));
    }
    for (const CodeInfo& info : all_codes()) {
        const int number = static_cast<int>(info.code);
        const bool ours = (number >= 100 && number < 500) || (number >= 520 && number < 600);
        if (ours) EXPECT_TRUE(covered.contains(std::string(info.id))) << info.id << " has no rejected program";
    }
}

TEST(Reject, UnknownConstant) {
    const Compiled c = compile(kernel_text("X: tw.Tensor(f32, N)", "pass"), {{"BM", 64}});
    EXPECT_EQ(codes_and_places(c.sink, c.sources), "TW0110");
}

TEST(Reject, AMistakeInOneKernelDoesNotHideThoseOfTheNext) {
    const std::string text =
        "import tilewright as tw\nfrom tilewright import f32\n\nN = tw.sizes(\"N\")\n\n\n@tw.kernel(target=\"sm_80\")\ndef a(X: "
        "tw.Tensor(f32, N)):\n    y = one\n\n\n"
        "@tw.kernel(target=\"sm_80\")\ndef b(X: tw.Tensor(f32, N)):\n    y = two\n";
    const Compiled c = compile(text);
    EXPECT_EQ(codes_and_places(c.sink, c.sources), "TW0101 at 9:9, TW0101 at 14:9");
}

}  // namespace reject_test
}  // namespace tw::lower
