// Whoever is told "not proved" is told which step failed and which form passes: every reason that the provers can give is in the
// table, and in docs/verifier.md.
#include "diagnose/unproved.h"

#include <regex>

#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::diagnose {
namespace unproved_test {

using namespace testing_kernels;

bool known(const std::string& text) {
    const auto& table = unproved_reasons();
    return std::any_of(table.begin(), table.end(), [&](const UnprovedReason& r) {
        return text.find(r.phrase) != std::string::npos || r.phrase.find(text) != std::string::npos;
    });
}

TEST(Unproved, EveryUnknownOfTheDataFlowHasAFormThatPasses) {
    const std::regex made(R"re(unknown\("([^"]+)")re");
    int seen = 0;
    for (const auto& entry : std::filesystem::directory_iterator(repository("src/verify"))) {
        if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
        const std::string text = read_text(entry.path());
        for (std::sregex_iterator it(text.begin(), text.end(), made), end; it != end; ++it) {
            const std::string reason = (*it)[1];  // or its beginning: names stand between
            const auto at = static_cast<std::size_t>(it->position());
            const std::string line = text.substr(at, text.find('\n', at) - at);
            if (reason == "anything") continue;  // a stand-in of the vacuity check: nobody sees it
            ++seen;
            EXPECT_TRUE(known(reason) || known(line))
                << entry.path().filename() << ": unknown(\"" << reason << "\"): add it to diagnose/unproved.cpp with the form that passes";
        }
    }
    EXPECT_GT(seen, 20);
}

TEST(Unproved, EveryReasonIsInTheManual) {
    const std::string manual = read_text(repository("docs/verifier.md"));
    for (const UnprovedReason& r : unproved_reasons()) {
        std::string phrase = r.phrase;
        while (!phrase.empty() && (phrase.back() == ' ' || phrase.back() == ':')) phrase.pop_back();
        while (!phrase.empty() && phrase.front() == ' ') phrase.erase(0, 1);
        EXPECT_NE(manual.find(phrase), std::string::npos) << "docs/verifier.md, \"When something is not proved\", lacks: " << r.phrase;
    }
}

TEST(Unproved, AReasonNamesTheTileItsLineAndTheForm) {
    const std::string text =
        "import tilewright as tw\n"
        "from tilewright import f32\n"
        "M, N = tw.sizes(\"M N\")\n"
        "@tw.kernel(target=\"sm_80\", computes=\"S[m] = sum(n, X[m, n])\", threads=128)\n"
        "def row(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):\n"
        "    m = tw.grid(M)\n"
        "    acc = tw.zeros(f32, (128,))\n"
        "    for c in tw.range(tw.cdiv(N, 128)):\n"
        "        acc = tw.sin(acc) + tw.load(X[m, c * 128 : c * 128 + 128], fill=0.0)\n"
        "    tw.store(S[m], tw.sum(acc, axis=0))\n";
    CheckOptions options;
    options.search = false;
    const CheckResult result = check(kernel_of_text(text), options);
    bool told = false;
    for (const auto& o : result.obligations) {
        if (o.status != verify::Status::not_proved) continue;
        told = told || (o.reason.find("line 9: `acc`") != std::string::npos && o.reason.find("passes: ") != std::string::npos);
    }
    EXPECT_TRUE(told);
}

// A reason says what it speaks of: names in it are no reason to speak of buffers.
TEST(Unproved, AnAccumulatorInF16IsNoBufferOfAProgram) {
    const std::string text =
        "import tilewright as tw\n"
        "from tilewright import f16, f32\n"
        "M, N = tw.sizes(\"M N\")\n"
        "@tw.kernel(target=\"sm_80\", computes=\"S[m] = f16(sum(n, X[m, n]))\", threads=128)\n"
        "def row(X: tw.Tensor(f32, M, N), S: tw.Tensor(f16, M)):\n"
        "    m = tw.grid(M)\n"
        "    acc = tw.zeros(f32, (128,))\n"
        "    for c in tw.range(tw.cdiv(N, 128)):\n"
        "        acc = (acc + tw.load(X[m, c * 128 : c * 128 + 128], fill=0.0)).to(f16).to(f32)\n"
        "    tw.store(S[m], tw.sum(acc, axis=0).to(f16))\n";
    CheckOptions options;
    options.search = false;
    const CheckResult result = check(kernel_of_text(text), options);
    int rounded = 0;
    for (const auto& o : result.obligations) {
        if (o.status != verify::Status::not_proved || o.kind != "precision") continue;
        ++rounded;
        EXPECT_EQ(o.reason.find("buffer"), std::string::npos) << o.reason;
        EXPECT_NE(o.reason.find("line 9"), std::string::npos) << o.reason;
    }
    EXPECT_EQ(rounded, 1);
}

}  // namespace unproved_test
}  // namespace tw::diagnose
