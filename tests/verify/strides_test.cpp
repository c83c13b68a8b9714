// Outputs whose elements share places are not proved; those whose elements lie apart for every admitted size are.
#include <fmt/format.h>

#include "diagnose/check.h"
#include "verify/kernel_test_support.h"
#include "verify/strides.h"

namespace tw::verify {
namespace strides_test {

using namespace testing_kernels;

struct Layout {
    std::string name, strides, assume;
    bool apart;
    friend void PrintTo(const Layout& l, std::ostream* out) { *out << l.name; }
};

// A copy of X to Y, where Y has the strides; LD is known from a third tensor.
std::string copy_of(const Layout& l, const std::string& y = "", const std::string& x = "") {
    return fmt::format(R"py(import tilewright as tw
from tilewright import f32

M, N, LD = tw.sizes("M N LD")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] + f32(0 * L[0])", threads=128)
def copy(X: tw.Tensor(f32, M, N{1}), L: tw.Tensor(f32, LD), Y: tw.Tensor(f32, M, N{0})):
    {2}
    bm, bn = tw.grid(tw.cdiv(M, 32), tw.cdiv(N, 32))
    tw.store(Y[bm * 32, bn * 32], tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0))
)py",
                       y.empty() && !l.strides.empty() ? ", strides=" + l.strides : y, x,
                       l.assume.empty() ? "pass" : "tw.assume(" + l.assume + ")");
}

std::vector<Obligation> places_of(const std::string& text) {
    SourceMap sources;
    DiagnosticSink sink;
    std::string plain = text;
    if (const auto at = plain.find("    pass\n"); at != std::string::npos) plain.erase(at, 9);
    auto module = lower::compile_text(sources, "copy.py", plain, {}, sink);
    EXPECT_TRUE(module) << render_text(sink, sources);
    return module ? check_strides(module->kernels[0]) : std::vector<Obligation>{};
}

class Strides : public ::testing::TestWithParam<Layout> {};

TEST_P(Strides, AreProvedApartOrNot) {
    const auto obligations = places_of(copy_of(GetParam()));
    if (GetParam().strides.empty()) {
        EXPECT_TRUE(obligations.empty()) << "rows that follow one another need no proof";
        return;
    }
    ASSERT_EQ(obligations.size(), 1u);
    EXPECT_EQ(obligations[0].status == Status::proved, GetParam().apart) << obligations[0].reason;
    if (!GetParam().apart) EXPECT_NE(obligations[0].reason.find("may be"), std::string::npos) << obligations[0].reason;
}

INSTANTIATE_TEST_SUITE_P(Outputs, Strides,
                         ::testing::ValuesIn(std::vector<Layout>{
                             {"default", "", "", true},
                             {"rows_overlap_by_one", "(N - 1, 1)", "N >= 2", false},
                             {"columns_overlap_by_one", "(1, M - 1)", "M >= 2", false},
                             {"all_rows_are_one", "(0, 1)", "", false},
                             {"all_columns_are_one", "(1, 0)", "", false},
                             {"one_element", "(0, 0)", "", false},
                             {"diagonal", "(1, 1)", "", false},
                             {"a_pitch_that_fits_small_rows_only", "(64, 1)", "", false},
                             {"a_pitch_that_fits_all_rows", "(64, 1)", "N <= 64", true},
                             {"a_pitch_one_short", "(64, 1)", "N <= 65", false},
                             {"columns_first", "(1, M)", "", true},
                             {"columns_first_by_the_wrong_size", "(1, N)", "", false},
                             {"rows_rounded_up", "((N + 7) // 8 * 8, 1)", "", true},
                             {"rows_rounded_down", "(N // 8 * 8, 1)", "", false},
                             {"rows_rounded_down_where_that_is_nothing", "(N // 8 * 8, 1)", "N % 8 == 0", true},
                             {"a_leading_dimension_of_which_nothing_is_known", "(LD, 1)", "", false},
                             {"a_leading_dimension_that_is_long_enough", "(LD, 1)", "LD >= N", true},
                             {"a_leading_dimension_that_is_one_short", "(LD, 1)", "LD >= N - 1", false},
                             {"every_second_element", "(2 * N, 2)", "", true},
                             {"interleaved_rows_that_meet", "(2, 3)", "", false},
                             {"half_a_row", "(tw.max(N // 2, 1), 1)", "", false},
                             {"the_longer_of_two", "(tw.max(N, LD), 1)", "", true},
                             {"the_shorter_of_two", "(tw.min(N, LD), 1)", "", false},
                             {"before_the_first", "(N, 8 - N)", "", false},
                         }),
                         [](const auto& given) { return given.param.name; });

TEST(StridesOfInputs, MayMeetButNotLieBeforeTheFirst) {
    const auto broadcast = places_of(copy_of({"", "", "", true}, "", ", strides=(0, 1)"));
    ASSERT_EQ(broadcast.size(), 1u);
    EXPECT_EQ(broadcast[0].status, Status::proved) << broadcast[0].reason;
    const auto before = places_of(copy_of({"", "", "", true}, "", ", strides=(N - 8, 1)"));
    ASSERT_EQ(before.size(), 1u);
    EXPECT_EQ(before[0].status, Status::not_proved) << "N may be less than 8";
}

TEST(StridesThatMeet, AreShownOnTheEmulator) {
    for (const auto& [strides, assume] : {std::pair{"(N - 1, 1)", "N >= 2"}, {"(1, M - 1)", "M >= 2"}, {"(0, 1)", "N >= 1"}}) {
        const std::string text = copy_of({"", strides, assume, false});
        SourceMap sources;
        DiagnosticSink sink;
        auto module = lower::compile_text(sources, "copy.py", text, {}, sink);
        ASSERT_TRUE(module) << render_text(sink, sources);
        diagnose::CheckOptions options;
        options.search_seconds = 10;
        const auto result = diagnose::check(module->kernels[0], options);
        EXPECT_FALSE(result.proved()) << strides;
        ASSERT_TRUE(result.counterexample.has_value()) << strides;
        EXPECT_TRUE(result.counterexample->confirmed);
    }
}

}  // namespace strides_test
}  // namespace tw::verify
