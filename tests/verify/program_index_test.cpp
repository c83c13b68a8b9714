// Programs that follow index tensors which their own launches have written: what a later launch is promised of them is shown from what the
// earlier one computes, or the program is not proved. Here the launches are taken at their `computes`; kernels are proved elsewhere.
#include <gtest/gtest.h>

#include <unistd.h>

#include "verify/kernel_test_support.h"
#include "verify/program.h"

namespace tw::verify {
namespace program_index_test {

using namespace testing_kernels;

Status verdict(const ir::Module& module) {
    for (const Obligation& o : check_program(module, module.programs.at(0))) {
        if (o.status != Status::proved) return o.status;
    }
    return Status::proved;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    EXPECT_NE(text.find(from), std::string::npos) << from;
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
    return text;
}

struct Change {
    const char *name, *from, *to;
};
void PrintTo(const Change& c, std::ostream* stream) { *stream << c.name; }
std::string name_of_change(const testing::TestParamInfo<Change>& info) { return info.param.name; }

// ---------------------------------------------------------------------------------------------------------- rows in the order of their
// keys

const char* sorted_rows = R"py(import tilewright as tw
from tilewright import f32, i32

P, S = tw.sizes("P S")


@tw.kernel(target="sm_80", computes="place[p] = sum(i in 0:P, where(key[i] > key[p] or (key[i] == key[p] and i < p), 1, 0))", threads=128)
def ranks(key: tw.Tensor(i32, P), place: tw.Tensor(i32, P)):
    tw.assume(P <= 65536)
    p = tw.grid(tw.cdiv(P, 128)) * 128
    k = tw.load(key[p : p + 128], fill=0)
    rank = tw.zeros(i32, (128,))
    for i in tw.range(P):
        rank = rank + tw.where((tw.load(key[i]) > k) | ((tw.load(key[i]) == k) & (i < tw.arange(128) + p)), 1, 0)
    tw.store(place[p : p + 128], rank)


@tw.kernel(target="sm_80", computes="source[place[p]] = p", threads=128)
def sources(place: tw.Tensor(i32, P, range=P, distinct=True), source: tw.Tensor(i32, P)):
    p = tw.grid(tw.cdiv(P, 128)) * 128
    tw.store(source[tw.load(place[p : p + 128], fill=-1)], tw.arange(128) + p)


@tw.kernel(target="sm_80", computes="Y[p] = X[source[p]] * 2", threads=128)
def gathered(X: tw.Tensor(f32, P), source: tw.Tensor(i32, P, range=P), Y: tw.Tensor(f32, P)):
    p = tw.grid(tw.cdiv(P, 128)) * 128
    tw.store(Y[p : p + 128], tw.load(X[tw.load(source[p : p + 128], fill=0)], fill=0.0) * 2.0)


@tw.kernel(target="sm_80", computes="Z[p] = Y[place[p]]", threads=128)
def back(Y: tw.Tensor(f32, P), place: tw.Tensor(i32, P, range=P), Z: tw.Tensor(f32, P)):
    p = tw.grid(tw.cdiv(P, 128)) * 128
    tw.store(Z[p : p + 128], tw.load(Y[tw.load(place[p : p + 128], fill=0)], fill=0.0))


@tw.program(computes="Z[p] = X[p] * 2")
def there_and_back(X: tw.Tensor(f32, P), key: tw.Tensor(i32, P), Z: tw.Tensor(f32, P)):
    place = tw.buffer(i32, P)
    source = tw.buffer(i32, P)
    Y = tw.buffer(f32, P)
    ranks(key, place)
    sources(place, source)
    gathered(X, source, Y)
    back(Y, place, Z)
)py";

Status of_sorted_rows(const std::string& text) {
    SourceMap sources;
    DiagnosticSink sink;
    const auto module = lower::compile_text(sources, "sorted.py", text, {}, sink);
    EXPECT_TRUE(module) << render_text(sink, sources);
    return module ? verdict(*module) : Status::violated;
}

TEST(ProgramIndex, ARankByAnyTotalOrderIsAPermutation) {
    EXPECT_EQ(of_sorted_rows(sorted_rows), Status::proved);
    const std::string condition = "key[i] > key[p] or (key[i] == key[p] and i < p)";
    EXPECT_EQ(of_sorted_rows(replaced(sorted_rows, condition, "key[i] < key[p] or (key[i] == key[p] and i > p)")), Status::proved);
    EXPECT_EQ(of_sorted_rows(replaced(sorted_rows, condition, "i % 4 < p % 4 or (i % 4 == p % 4 and i > p)")), Status::proved);
}

// Without a sum: what takes each number of [0, P) once does.
TEST(ProgramIndex, ANumberOfItsOwnPlaceIsAPermutation) {
    const std::string rank = "sum(i in 0:P, where(key[i] > key[p] or (key[i] == key[p] and i < p), 1, 0))";
    for (const char* once : {"p", "P - 1 - p", "where(p < P - 1, p + 1, 0)"})
        EXPECT_EQ(of_sorted_rows(replaced(sorted_rows, rank, once)), Status::proved) << once;
    for (const char* other :
         {"P - p", "p + 1", "p // 2", "where(p == 0, P - 1, p)", "where(p % 2 == 0, p + 1, p - 1)", "minimum(key[p], P - 1)", "0"})
        EXPECT_EQ(of_sorted_rows(replaced(sorted_rows, rank, other)), Status::not_proved) << other;
}

TEST(ProgramIndex, EveryVariantIsPromisedWhatTheFirstOneIs) {
    const std::string other = R"py(

@tw.kernel(target="sm_80", name="back", computes="Z[p] = Y[place[p]]", threads=128)
def back_sorted(Y: tw.Tensor(f32, P), place: tw.Tensor(i32, P, range=P%PROMISE%), Z: tw.Tensor(f32, P)):
    p = tw.grid(tw.cdiv(P, 128)) * 128
    tw.store(Z[p : p + 128], tw.load(Y[tw.load(place[p : p + 128], fill=0)], fill=0.0))


@tw.program)py";
    const std::string both = replaced(sorted_rows, "\n\n@tw.program", other);
    EXPECT_EQ(of_sorted_rows(replaced(both, "%PROMISE%", "")), Status::proved);
    EXPECT_EQ(of_sorted_rows(replaced(both, "%PROMISE%", ", sorted=True")), Status::not_proved);
}

class WrongRank : public testing::TestWithParam<Change> {};

TEST_P(WrongRank, IsNotProved) { EXPECT_EQ(of_sorted_rows(replaced(sorted_rows, GetParam().from, GetParam().to)), Status::not_proved); }

INSTANTIATE_TEST_SUITE_P(
    Orders, WrongRank,
    testing::Values(Change{"EqualKeysShareAPlace", "key[i] > key[p] or (key[i] == key[p] and i < p)", "key[i] > key[p]"},
                    Change{"ItselfCounts", "key[i] == key[p] and i < p)", "key[i] == key[p] and i <= p)"},
                    Change{"EqualKeysCountBothWays", "(key[i] == key[p] and i < p)", "key[i] == key[p]"},
                    Change{"NotTransitive", "key[i] > key[p] or (key[i] == key[p] and i < p)", "(i < p and i + 3 > p) or i > p + 2"},
                    Change{"OfAPartOfTheRows", "place[p] = sum(i in 0:P,", "place[p] = sum(i in 1:P,"},
                    Change{"OneTooMany", "and i < p), 1, 0))", "and i < p), 1, 0)) + 1"},
                    Change{"CountsTwice", "and i < p), 1, 0))", "and i < p), 2, 0))"},
                    Change{"MayNotFit", "    tw.assume(P <= 65536)\n", ""},
                    Change{"OtherSource", "source[place[p]] = p\"", "source[place[p]] = P - 1 - p\""},
                    Change{"SourceOutside", "source[place[p]] = p\"", "source[place[p]] = p + 1\""},
                    Change{"PlacesReadBeforeTheyAreWritten", "    ranks(key, place)\n    sources(place, source)\n",
                           "    sources(place, source)\n    ranks(key, place)\n"},
                    Change{"PlacesWrittenAgain", "    back(Y, place, Z)\n", "    ranks(source, place)\n    back(Y, place, Z)\n"}),
    name_of_change);

// -------------------------------------------------------------------------------------------------------------------- the layer of experts

Status of_layer(const std::string& text, const lower::ConstValues& constants = {}) {
    const auto folder = std::filesystem::temp_directory_path() / ("tilewright-layer-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    for (const char* part : {"swiglu_parts.py", "grouped_parts.py"})
        std::filesystem::copy_file(repository(std::string("kernels/") + part), folder / part,
                                   std::filesystem::copy_options::overwrite_existing);
    std::ofstream(folder / "layer.py") << text;
    SourceMap sources;
    DiagnosticSink sink;
    const auto module = lower::compile_file(sources, (folder / "layer.py").string(), constants, sink);
    EXPECT_TRUE(module) << render_text(sink, sources);
    const Status status = module ? verdict(*module) : Status::violated;
    std::filesystem::remove_all(folder);
    return status;
}

std::string layer() { return read_text(repository("kernels/moe_layer_sm90.py")); }

TEST(ProgramIndex, TheLayerOfExpertsIsProved) {
    EXPECT_EQ(of_layer(layer()), Status::proved);
    EXPECT_EQ(of_layer(layer(), {{"TOP", 8}, {"HIGH", 64}, {"STEP", 16}, {"TOGETHER", 7}}), Status::proved);
}

class WrongLayer : public testing::TestWithParam<Change> {};

TEST_P(WrongLayer, IsNotProved) { EXPECT_EQ(of_layer(replaced(layer(), GetParam().from, GetParam().to)), Status::not_proved); }

INSTANTIATE_TEST_SUITE_P(
    Layers, WrongLayer,
    testing::Values(
        Change{"RankOneTooHigh", "sum(i in p // 256 * 256 : p, where", "sum(i in p // 256 * 256 : p + 1, where"},
        Change{"RankWithoutItsOwnBlock", " + sum(i in p // 256 * 256 : p, where(expert[i] == expert[p], 1, 0))", ""},
        Change{"RankAmongAllOfTheBlock", "p, where(expert[i] == expert[p]", "p, where(expert[i] <= expert[p]"},
        Change{"BlocksUpToItsOwn", "before[b, e] = sum(a in 0:b, counts", "before[b, e] = sum(a in 0:b + 1, counts"},
        Change{"OffsetsInclusive", "offsets[e in 0:E+1] = sum(f in 0:e, total[f])",
               "offsets[e in 0:E+1] = sum(f in 0:minimum(e + 1, E), total[f])"},
        Change{"CountsOfTheNextExpert", "where(expert[i] == e, 1, 0))\", threads", "where(expert[i] == e + 1, 1, 0))\", threads"},
        Change{"TotalWithoutTheLastBlock", "total[e] = sum(b, counts[b, e])", "total[e] = sum(b in 0:B - 1, counts[b, e])"},
        Change{"TableTooSmall", "T * TOP // HIGH + E + TOGETHER - 1) //", "T * TOP // HIGH + E - 1) //"},
        Change{"RowInsteadOfToken", "rows[place[p]] = p // TOP", "rows[place[p]] = p"},
        Change{"GroupOfTheToken", "group[place[p]] = expert[p]", "group[place[p]] = p // TOP"},
        Change{"TilesOneRowLate", "(units[owner[i]] * STEP))", "(units[owner[i]] * STEP) + 1)"},
        Change{"TilesOverTheEndOfAnExpert", "minimum(i32(first[i] + units[owner[i]] * STEP), offsets[owner[i] + 1])",
               "i32(first[i] + units[owner[i]] * STEP)"},
        Change{"GapsBetweenTiles", "i32(first[i] + units[owner[i]] * STEP)", "i32(first[i] + units[owner[i]] * STEP - 1)"},
        Change{"TilesOverlap", "i32(first[i] + units[owner[i]] * STEP)", "i32(first[i] + HIGH)"},
        Change{"TilesTooLow", "* (STEP * j)) < total[e]", "* (STEP * j)) + STEP < total[e]"},
        Change{"OwnerAfterItsOwn", "owner[i] = sum(e in 1:F-1, where", "owner[i] = sum(e in 0:F-1, where"},
        Change{"OwnerByStrictComparison", "where(first_tile[e] <= i, 1, 0)", "where(first_tile[e] < i, 1, 0)"},
        Change{"TilesRoundedDown", "sum(f in 0:e, (total[f] + (HIGH - 1)) // HIGH)", "sum(f in 0:e, total[f] // HIGH)"},
        Change{"SpareTilesBeginAfterTheRows", "minimum(first[i], offsets[owner[i] + 1]), 0)",
               "minimum(first[i], offsets[owner[i] + 1]), offsets[E])"},
        Change{"PlacesOfOtherTokens", "Y[place[t * TOP + k], n]", "Y[place[k * T + t], n]"},
        Change{"WeightsTurnedRound", "weight[t, k] * f32(Y[", "weight[t, TOP - 1 - k] * f32(Y["},
        Change{"ExpertsUpToE", "e, 0)), E - 1)", "e, 0)), E)"},
        Change{"FirstAndEndSwapped", "expert_hidden(X, W, rows, group, tile_first, tile_end, hidden)",
               "expert_hidden(X, W, rows, group, tile_end, tile_first, hidden)"},
        Change{"SecondProductByToken", "expert_outputs(hidden, V, group, tile_first", "expert_outputs(hidden, V, rows, tile_first"},
        Change{"AnyNumberOfRows", "    tw.assume(1 <= P and P <= MOST)\n", ""},
        Change{"PlacesWrittenTwice", "    rows_in_order(place",
               "    row_places(expert_of, offsets, before, place)\n    rows_in_order(place"}),
    name_of_change);

}  // namespace program_index_test
}  // namespace tw::verify
