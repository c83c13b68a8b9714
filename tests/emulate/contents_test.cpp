// Contents of index tensors: what is made keeps the promises, what breaks one is named by argument and index.
#include "emulate/contents.h"

#include <gtest/gtest.h>

#include "emulate/trial.h"
#include "lower/lower.h"

namespace tw::emulate {
namespace contents_test {

ir::Kernel kernel_of(const std::string& parameters) {
    SourceMap sources;
    DiagnosticSink sink;
    const std::string text =
        "import tilewright as tw\nfrom tilewright import f32, i32\n\nP, E, T, TILES = tw.sizes(\"P E T "
        "TILES\")\n\n\n@tw.kernel(target=\"sm_80\")\ndef k(" +
        parameters + ", Y: tw.Tensor(f32, P)):\n    i = tw.grid(tw.cdiv(P, 128)) * 128\n    tw.store(Y[i], tw.zeros(f32, (128,)))\n";
    auto module = lower::compile_text(sources, "k.py", text, {}, sink);
    EXPECT_TRUE(module.has_value()) << render_text(sink, sources);
    return module->kernels.at(0);
}

std::vector<std::int64_t> sizes_of(const ir::Kernel& k, const std::map<std::string, std::int64_t>& named) {
    std::vector<std::int64_t> sizes;
    for (const std::string& name : k.sizes) sizes.push_back(named.at(name));
    return sizes;
}

std::optional<std::string> broken(const ir::Kernel& k, const std::vector<std::int64_t>& sizes,
                                  const std::vector<std::vector<std::int64_t>>& contents) {
    return broken_promise(k.tensors, sizes, [&](int tensor, std::int64_t n) {
        return contents[static_cast<std::size_t>(tensor)][static_cast<std::size_t>(n)];
    });
}

const char* kGroups = "expert: tw.Tensor(i32, P), starts: tw.Tensor(i32, E + 1, offsets_of=\"expert\"), rows: tw.Tensor(i32, P, range=T)";
const char* kTiles =
    "expert: tw.Tensor(i32, P, range=E), first: tw.Tensor(i32, TILES), end: tw.Tensor(i32, TILES, tile_ends=(\"first\", 16, \"expert\"))";
const char* kInverse =
    "to: tw.Tensor(i32, P), source: tw.Tensor(i32, P, inverse_of=\"to\"), order: tw.Tensor(i32, P, range=(2, T), sorted=True)";

TEST(PromisedContents, KeepWhatIsPromised) {
    for (const char* parameters : {kGroups, kTiles, kInverse}) {
        const ir::Kernel k = kernel_of(parameters);
        for (std::int64_t p : {1, 5, 33, 100}) {
            for (std::int64_t e : {1, 2, 7}) {
                for (int spread = 0; spread < spreads; ++spread) {
                    std::map<std::string, std::int64_t> named = {{"P", p}, {"E", e}, {"T", 9}, {"TILES", (p + 15) / 16 + e}};
                    const auto sizes = sizes_of(k, named);
                    const auto contents = promised_contents(k.tensors, sizes, static_cast<Spread>(spread), 3);
                    EXPECT_EQ(broken(k, sizes, contents).value_or(""), "")
                        << parameters << " P=" << p << " E=" << e << " spread " << spread;
                }
            }
        }
    }
}

// Tables of too few tiles have no contents; with groups that offsets hold, all rows in one group need the fewest tiles.
TEST(PromisedContents, KnowWhereThereAreNone) {
    const std::string both =
        std::string(kGroups) + ", first: tw.Tensor(i32, TILES), end: tw.Tensor(i32, TILES, tile_ends=(\"first\", 16, \"expert\"))";
    for (const std::string& parameters : {std::string(kTiles), both}) {
        const ir::Kernel k = kernel_of(parameters);
        for (std::int64_t tiles : {1, 2, 3, 4}) {
            const auto sizes = sizes_of(k, {{"P", 40}, {"E", 5}, {"T", 9}, {"TILES", tiles}});
            EXPECT_EQ(promises_can_hold(k.tensors, sizes), tiles >= 3) << parameters << " tiles " << tiles;
            for (int spread = 0; spread < spreads && tiles >= 3; ++spread) {
                const auto contents = promised_contents(k.tensors, sizes, static_cast<Spread>(spread), 3);
                EXPECT_EQ(broken(k, sizes, contents).value_or(""), "") << parameters << " tiles " << tiles << " spread " << spread;
            }
        }
    }
}

// A stride that is negative at some sizes leads to where no memory is: such a launch is refused, with values and without.
TEST(ImpossibleShape, IsRefused) {
    const ir::Kernel k = kernel_of("G: tw.Tensor(i32, P, 2, strides=(T - 3, 1), range=P), X: tw.Tensor(f32, P, 2, strides=(T - 3, 1))");
    const auto sizes = sizes_of(k, {{"P", 4}, {"T", 1}});
    EXPECT_NE(run_trial(k, sizes, {}).refused.find("`G` has a stride of -2"), std::string::npos);
    auto tensors = index_contents(k, sizes, Spread::random, 1);
    EXPECT_TRUE(broken_promise(k, sizes, tensors).has_value());
    Options skeleton;
    skeleton.values = false;
    const Outcome outcome = run(k, sizes, {}, tensors, skeleton);
    ASSERT_FALSE(outcome.clean());
    EXPECT_NE(outcome.faults.front().message.find("has a stride of -2"), std::string::npos) << outcome.faults.front().message;
    EXPECT_TRUE(run_trial(k, sizes_of(k, {{"P", 4}, {"T", 5}}), {}).refused.empty());
}

// Empty groups, a group with everything and groups of one row are where kernels go wrong.
TEST(PromisedContents, GoToTheEdges) {
    const ir::Kernel k = kernel_of(kGroups);
    const auto sizes = sizes_of(k, {{"P", 40}, {"E", 4}, {"T", 9}});
    bool empty = false, all = false, one = false;
    for (int spread = 0; spread < spreads; ++spread) {
        const auto starts = promised_contents(k.tensors, sizes, static_cast<Spread>(spread), 1)[1];
        for (std::size_t e = 0; e < 4; ++e) {
            const std::int64_t rows = starts[e + 1] - starts[e];
            empty |= rows == 0;
            all |= rows == 40;
            one |= rows == 1;
        }
    }
    EXPECT_TRUE(empty && all && one);
}

TEST(BrokenPromise, IsNamedByArgumentAndIndex) {
    const ir::Kernel groups = kernel_of(kGroups);
    const auto sizes = sizes_of(groups, {{"P", 3}, {"E", 2}, {"T", 9}});
    auto says = [&](std::vector<std::vector<std::int64_t>> contents, const std::string& what) {
        contents.resize(groups.tensors.size());
        const auto why = broken(groups, sizes, contents);
        ASSERT_TRUE(why.has_value()) << what;
        EXPECT_NE(why->find(what), std::string::npos) << *why;
    };
    says({{0, 1, 1}, {0, 2, 3}, {0, 8, 0}}, "starts[1] is 2, but 1 elements of expert are below 1");
    says({{0, 1, 1}, {0, 1, 3}, {0, 9, 0}}, "rows[1] is 9, outside the promised range [0, 9)");
    says({{0, 2, 1}, {0, 1, 3}, {0, 8, 0}}, "expert[1] is 2, outside the promised range [0, 2)");
    says({{1, 0, 1}, {0, 1, 3}, {0, 8, 0}}, "expert");
    const ir::Kernel tiles = kernel_of(kTiles);
    const auto tile_sizes = sizes_of(tiles, {{"P", 20}, {"E", 2}, {"TILES", 2}});
    std::vector<std::int64_t> expert(20, 0);
    EXPECT_EQ(broken(tiles, tile_sizes, {expert, {0, 16}, {20, 20}, {}}).value_or(""), "");
    EXPECT_NE(broken(tiles, tile_sizes, {expert, {0, 12}, {20, 20}, {}}).value_or("").find("row 12 lies in tile 1"), std::string::npos);
    EXPECT_NE(broken(tiles, tile_sizes, {expert, {0, 0}, {20, 0}, {}}).value_or("").find("row 16 lies in no tile"), std::string::npos);
    expert[19] = 1;
    EXPECT_NE(broken(tiles, tile_sizes, {expert, {0, 16}, {20, 20}, {}}).value_or("").find("rows of two groups"), std::string::npos);
    const ir::Kernel inverse = kernel_of(kInverse);
    const auto length = sizes_of(inverse, {{"P", 3}, {"T", 9}});
    EXPECT_NE(broken(inverse, length, {{1, 2, 0}, {1, 2, 0}, {2, 3, 3}, {}})
                  .value_or("")
                  .find("source[0] is 1, but source is promised to be the inverse of to"),
              std::string::npos);
    EXPECT_NE(broken(inverse, length, {{1, 2, 0}, {2, 0, 1}, {2, 5, 3}, {}}).value_or("").find("order[2] is 3 after 5"), std::string::npos);
}

TEST(BrokenPromise, IsRefusedByTheEmulator) {
    const ir::Kernel k = kernel_of(kGroups);
    const auto sizes = sizes_of(k, {{"P", 3}, {"E", 2}, {"T", 9}});
    auto tensors = random_inputs(k, sizes, 1, false);
    EXPECT_TRUE(run(k, sizes, {}, tensors, {}).clean());
    tensors = random_inputs(k, sizes, 1, false);
    tensors[2].set({1}, 9);
    const Outcome outcome = run(k, sizes, {}, tensors, {});
    ASSERT_FALSE(outcome.clean());
    EXPECT_EQ(outcome.faults[0].kind, FaultKind::launch);
    EXPECT_NE(outcome.faults[0].message.find("rows[1] is 9"), std::string::npos) << outcome.faults[0].message;
}

}  // namespace contents_test
}  // namespace tw::emulate
