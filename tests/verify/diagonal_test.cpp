// Causal attention across the diagonal: each consumer passes over the key tiles behind its rows, and the loop over the key tiles before the
// diagonal starts from probabilities that are masked, relative to a reference that is another one for each consumer. Proved, and only as it
// is.

#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace diagonal_test {

using namespace testing_kernels;

// The causal kernel for as many keys as queries or more, with `was` in its text replaced.
bool proved(const lower::ConstValues& constants, const std::string& was = "", const std::string& is = "") {
    std::string text = read_text(repository("kernels/attention_sm90.py"));
    if (!was.empty()) {
        const std::size_t at = text.find("def consume_diagonal"), place = text.find(was, at);
        if (place == std::string::npos) return ADD_FAILURE() << "the kernel does not say " << was, true;
        text.replace(place, was.size(), is);
    }
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "kernel.py", text, constants, sink);
    if (!module) return ADD_FAILURE() << render_text(sink, sources), true;
    diagnose::CheckOptions options;
    options.search = false;
    return diagnose::check(module->kernels.at(2), options).proved();
}

const lower::ConstValues kTwoTiles = {{"D", 64}, {"C", 3}, {"BN", 96}}, kThreeTiles = {{"D", 64}, {"C", 3}, {"BN", 64}},
                         kStays = {{"D", 64}, {"C", 3}, {"BN", 96}, {"STAY", 1}}, kInTurn = {{"D", 64}, {"C", 3}, {"BN", 96}, {"TURNS", 1}};

TEST(AcrossTheDiagonal, ConsumersPassOverWhatLiesBehindTheirRows) {
    for (const lower::ConstValues& constants : {kTwoTiles, kThreeTiles, kStays, kInTurn}) EXPECT_TRUE(proved(constants));
}

TEST(AcrossTheDiagonal, NotOverMoreThanThat) {
    EXPECT_FALSE(proved(kTwoTiles, "if (WIDTH - 1 - j) * a.BN < w * 64 + 64:", "if (WIDTH - 1 - j) * a.BN < w * 64:"));
    EXPECT_FALSE(proved(
        kTwoTiles, "if (WIDTH - j) * a.BN < w * 64 + 64:", "if (WIDTH - j) * a.BN < w * 64:"));  // the values of a tile that was computed
}

TEST(AcrossTheDiagonal, ASlotThatNoProductReadIsGivenBackByAllWarps) {
    EXPECT_FALSE(proved(kTwoTiles, "                group.sync()\n                a.keys.release()", "                a.keys.release()"));
    EXPECT_FALSE(proved(kTwoTiles, "                        group.sync()\n", ""));
}

TEST(AcrossTheDiagonal, TurnsGoRound) {
    EXPECT_FALSE(proved(kInTurn, "if a.TURNS and w == a.C - 1:", "if False:"));              // nobody gives the first turn
    EXPECT_FALSE(proved(kInTurn, "if a.TURNS and w == a.C - 1:", "if a.TURNS and w > 0:"));  // two have it
    EXPECT_FALSE(
        proved(kInTurn, "if a.TURNS:\n                after.arrive()", "if a.TURNS and w < a.C - 1:\n                after.arrive()"));
}

TEST(AcrossTheDiagonal, MasksAndReferencesCount) {
    EXPECT_FALSE(proved(kTwoTiles, "e = tw.where(below(s, row, key), tw.exp2(s * a.scale - mark[:, None]), 0.0)",
                        "e = tw.exp2(s * a.scale - mark[:, None])"));
    EXPECT_FALSE(proved(kStays, "if j == 0 or (WIDTH - j) * a.BN >= w * 64 + 64:", "if True:"));  // moved without rescaling
    EXPECT_FALSE(proved(kTwoTiles, "out = out * alpha[:, None]", "out = out"));
    EXPECT_FALSE(proved(kTwoTiles, "for i in tw.range(WIDTH, tiles):", "for i in tw.range(WIDTH + 1, tiles):"));
}

}  // namespace diagonal_test
}  // namespace tw::verify
