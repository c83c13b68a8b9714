// Causal attention across the diagonal: each consumer passes over the key tiles behind its rows, and the loop over the key tiles before the
// diagonal starts from probabilities that are masked, relative to a reference that is another one for each consumer. Proved, and only as it
// is.
#include <algorithm>

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
    // With these constants two loops of a tile have trip counts that change differently along the tiles: the cut-off theorem does not
    // apply, so order is not proved (docs/verifier.md). What the data are is.
    const auto result = diagnose::check(module->kernels.at(2), options);
    return std::all_of(result.obligations.begin(), result.obligations.end(), [](const Obligation& o) {
        return o.status == Status::proved || o.reason.find("the periodic cut-off lemma does not apply") != std::string::npos;
    });
}

const lower::ConstValues kTwoTiles = {{"D", 64}, {"C", 3}, {"BN", 96}}, kThreeTiles = {{"D", 64}, {"C", 3}, {"BN", 64}},
                         kRescaled = {{"D", 64}, {"C", 3}, {"BN", 96}, {"STAY", 0}},
                         kInTurn = {{"D", 64}, {"C", 3}, {"BN", 96}, {"TURNS", 1}};

TEST(AcrossTheDiagonal, ConsumersPassOverWhatLiesBehindTheirRows) {
    for (const lower::ConstValues& constants : {kTwoTiles, kThreeTiles, kRescaled, kInTurn}) EXPECT_TRUE(proved(constants));
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

TEST(AcrossTheDiagonal, TurnsBeginAndEndWithTheLoop) {
    EXPECT_FALSE(proved(kInTurn, "if a.TURNS and (w > 0 or i > WIDTH):", "if a.TURNS:"));  // nobody gives the first turn
    EXPECT_FALSE(
        proved(kInTurn, "if a.TURNS and (w < a.C - 1 or i < tiles - 1):", "if a.TURNS:"));  // a turn is left over for the next tile
    EXPECT_FALSE(proved(kInTurn, "if a.TURNS and (w < a.C - 1 or i < tiles - 1):", "if a.TURNS and w < a.C - 1:"));
}

TEST(AcrossTheDiagonal, MasksAndReferencesCount) {
    EXPECT_FALSE(proved(kTwoTiles, "e = tw.where(below(s, row, key), tw.exp2(s * a.scale - mark[:, None]), 0.0)",
                        "e = tw.exp2(s * a.scale - mark[:, None])"));
    EXPECT_FALSE(proved(kTwoTiles, "if j == 0 or (WIDTH - j) * a.BN >= w * 64 + 64:", "if True:"));  // moved without rescaling
    EXPECT_FALSE(proved(kRescaled, "out = out * alpha[:, None]", "out = out"));
    EXPECT_FALSE(proved(kTwoTiles, "for i in tw.range(WIDTH, tiles):", "for i in tw.range(WIDTH + 1, tiles):"));
}

}  // namespace diagonal_test
}  // namespace tw::verify
