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

// What people bring along from Triton, PyTorch, NumPy and CUDA is answered with what the language has in its place, never with a name that
// is near by its letters alone.
TEST(Reject, BorrowedNamesAreAnsweredWithWhatStandsForThem) {
    const std::pair<const char*, const char*> cases[] = {
        {"i = tw.program_id(0)", "tw.grid(tw.cdiv(N, BLOCK))"},
        {"x = tw.load(X[0:128], mask=N)", "limit= masks earlier"},
        {"x = tw.load(X[0:128], other=0.0)", "fill="},
        {"x = tw.load(X[0:128])\ny = tw.dot(x, x)", "tw.mma(acc, a, b)"},
        {"x = tw.load(X[0:128])\ny = tw.mean(x)", "tw.sum(x, axis=...)"},
        {"x = tw.load(X[0:128])\ny = x.sum()", "tw.sum(x)"},
        {"x = tw.load(X[0:128])\ny = x.astype(f16)", "x.to(f32)"},
        {"x = tw.load(X[0:128])\ny = x.T", "through shared memory"},
        {"y = X.T", "the other way round"},
        {"x = tw.zeros(float32, (128,))", "it is f32"},
        {"x = tw.zeros(tw.float32, (128,))", "it is f32"},
        {"x = np.zeros(3)", "other modules"},
        {"y = zeros(f32, (128,))", "tw.zeros"},
        {"b = tw.mbarrier(2, arrivals=1)\nb.wait(0)", "bars[0].wait(0)"},
        {"i = tw.grid(N / 128)", "tw.cdiv"},
        {"tw.grid(64)\nfor t in tw.persistent(N):\n    pass", "leave tw.grid out"},
    };
    for (const auto& [body, hint] : cases) {
        const Compiled c = compile(kernel_text("X: tw.Tensor(f32, N)", body));
        EXPECT_NE(c.report().find(hint), std::string::npos) << body << "\n" << c.report();
    }
    for (const auto& [name, meant] : {std::pair{"laod", "tw.load"}, std::pair{"cumsumm", "tw.cumsum"}}) {
        const Compiled c = compile(kernel_text("X: tw.Tensor(f32, N)", std::string("tw.") + name + "(X)"));
        EXPECT_NE(c.report().find(std::string("did you mean ") + meant + "?"), std::string::npos) << c.report();
    }
    // Short names are near to everything by their letters.
    const Compiled short_name = compile(kernel_text("X: tw.Tensor(f32, N)", "y = L + 1"));
    EXPECT_EQ(short_name.report().find("did you mean"), std::string::npos) << short_name.report();
    const Compiled other_case = compile(kernel_text("X: tw.Tensor(f32, N)", "y = n + 1"));
    EXPECT_NE(other_case.report().find("did you mean 'N'?"), std::string::npos) << other_case.report();
}

TEST(Reject, ConstantsThatAreNotThereAreNamedWithThoseThatAre) {
    const std::string text = kernel_text("X: tw.Tensor(f32, N), BLOCK: tw.const = 128", "i = tw.grid(N)");
    EXPECT_NE(compile(text, {{"BLOK", 64}}).report().find("did you mean BLOCK?"), std::string::npos);
    EXPECT_NE(compile(text, {{"Q", 64}}).report().find("they have BLOCK"), std::string::npos);
    EXPECT_NE(compile(text, {{"M", 64}}).report().find("M is a size"), std::string::npos);
}

}  // namespace reject_test
}  // namespace tw::lower
