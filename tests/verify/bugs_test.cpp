// Known bug patterns, rebuilt as small kernels: each file of bugs/ states on its first line which codes may be reported for it
// ("proved" for the unbroken controls), on its second a phrase of the hint that a stranger needs ("-": none is known to be right, so none
// may be given), on its third the kind of public report that it rebuilds, and marks with `# here` the lines of which one must be named.
#include <fmt/format.h>

#include <set>

#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace bugs_test {

using namespace testing_kernels;

struct Stated {
    std::set<std::string> codes;
    std::set<int> lines;
    std::string hint, report;
};

Stated stated(const std::string& text) {
    Stated s;
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        if (number == 1 && line.starts_with("# expect: ")) {
            std::istringstream words(line.substr(10));
            for (std::string word; words >> word;) s.codes.insert(word);
        }
        if (line.ends_with("# here")) s.lines.insert(number);
        if (line.starts_with("# hint: ")) s.hint = line.substr(8);
        if (line.starts_with("# rebuilds: ")) s.report = line.substr(12);
    }
    return s;
}

class Bug : public ::testing::TestWithParam<std::string> {};

TEST_P(Bug, IsShownWithAConfirmedCounterexampleAtItsPlace) {
    const std::string file = "tests/verify/bugs/" + GetParam() + ".py";
    const Stated expected = stated(read_text(repository(file)));
    ASSERT_FALSE(expected.codes.empty()) << "the first line must be '# expect: ...'";
    diagnose::CheckOptions options;
    options.search_seconds = 20;  // found within a second; a loaded machine must not change the verdict
    const diagnose::CheckResult result = diagnose::check(kernel_of(file), options);
    if (expected.codes.count("proved")) {
        for (const Obligation& o : result.obligations) EXPECT_EQ(o.status, Status::proved) << o.kind << ": " << o.text << "\n" << o.reason;
        EXPECT_FALSE(result.violated());
        return;
    }
    ASSERT_FALSE(result.proved()) << "a broken kernel was proved";
    ASSERT_TRUE(result.counterexample.has_value()) << "no counterexample was found";
    const diagnose::Counterexample& c = *result.counterexample;
    EXPECT_TRUE(c.confirmed);
    EXPECT_TRUE(expected.codes.count(c.code)) << c.code << ": " << c.message;
    ASSERT_FALSE(expected.lines.empty()) << "mark the lines that may be named with '# here'";
    EXPECT_TRUE(expected.lines.count(c.loc.line) || expected.lines.count(c.other.line))
        << "lines " << c.loc.line << " and " << c.other.line;
    ASSERT_FALSE(expected.hint.empty()) << "the second line must be '# hint: ...'";
    ASSERT_FALSE(expected.report.empty()) << "the third line must be '# rebuilds: ...'";
    if (expected.hint == "-") EXPECT_EQ(c.hint, "") << "nothing is known for certain here";
    else EXPECT_NE(c.hint.find(expected.hint), std::string::npos) << c.hint;
    EXPECT_FALSE(c.trace.empty() && c.missing.empty() && c.differences.empty()) << "nothing is told beside the hint";
    EXPECT_FALSE(c.sizes_text.empty());
    const auto violated = std::count_if(result.obligations.begin(), result.obligations.end(),
                                        [](const Obligation& o) { return o.status == Status::violated; });
    EXPECT_EQ(violated, 1) << "exactly the refuted obligation is marked";
}

INSTANTIATE_TEST_SUITE_P(Patterns, Bug, ::testing::ValuesIn(python_files("tests/verify/bugs")),
                         [](const auto& given) { return given.param; });

TEST(Bugs, ThereAreAtLeastTwoDozenAndControls) {
    int broken = 0, controls = 0;
    for (const std::string& name : python_files("tests/verify/bugs")) {
        (stated(read_text(repository("tests/verify/bugs/" + name + ".py"))).codes.count("proved") ? controls : broken) += 1;
    }
    EXPECT_GE(broken, 24);
    EXPECT_GE(controls, 3);
}

diagnose::Counterexample shown(const std::string& name) {
    diagnose::CheckOptions options;
    options.search_seconds = 20;
    const auto result = diagnose::check(kernel_of("tests/verify/bugs/" + name + ".py"), options);
    EXPECT_TRUE(result.counterexample.has_value()) << name;
    return result.counterexample.value_or(diagnose::Counterexample{});
}

std::string all_of(const std::vector<diagnose::TagDifference>& list) {
    std::string s;
    for (const auto& d : list) s += std::string(diagnose::name_of(d.kind)) + ": " + d.text + "\n";
    return s;
}

TEST(Bugs, TagsAreInTheLanguageOfComputes) {
    const auto c = shown("k_step_of_one_operand_stuck_at_zero");
    EXPECT_EQ(c.expected_tag, "sum(k in 0:72, A[0, k] * B[0, k])");
    EXPECT_EQ(all_of(c.differences),
              "missing: sum(k in 64:72, A[0, k] * B[0, k]) (8 of 72 contributions)\nforeign: sum(k in 0:8, A[0, k] * B[0, k + 64])\n");
}

TEST(Bugs, ADroppedRescaleSaysWhichMaximumAPartIsRelativeTo) {
    const auto c = shown("missing_rescale_in_online_softmax");
    const std::string text = all_of(c.differences);
    EXPECT_NE(text.find("relative: "), std::string::npos) << text;
    EXPECT_NE(text.find("`sum(n2 in 0:128, exp(X[0, n2]))` is relative to max(n2 in 0:128, X[0, n2])"), std::string::npos) << text;
}

TEST(Bugs, ContributionsThatCountTwiceAreNamed) {
    EXPECT_EQ(all_of(shown("atomic_parts_overlap").differences), "repeated: X[32, 0] counts 2 times\n");
}

TEST(Bugs, TheTraceFollowsTheElementFromItsLoadToTheStore) {
    const auto c = shown("k_step_of_one_operand_stuck_at_zero");
    std::vector<std::string> actions;
    for (const auto& t : c.trace) actions.push_back(t.action);
    EXPECT_EQ(actions, (std::vector<std::string>{"TMA load", "wgmma reads its operand", "wgmma", "store"}));
    ASSERT_FALSE(c.trace.empty());
    EXPECT_EQ(c.trace[0].role, "producer");
    EXPECT_EQ(c.trace[0].iteration, (std::vector<std::pair<std::string, std::int64_t>>{{"kt", 1}}));
    EXPECT_EQ(c.trace[0].thread, -1);  // the copy engine
    EXPECT_NE(c.trace[0].detail.find("A[0, 0] -> `sA` byte 8192 (1, 0, 0)"), std::string::npos) << c.trace[0].detail;
}

TEST(Bugs, AContributionThatIsDroppedIsFollowedToWhereItEnds) {
    const auto c = shown("accumulator_overwritten_every_step");
    ASSERT_FALSE(c.trace.empty());
    EXPECT_EQ(c.trace.back().action, "wgmma");
    EXPECT_NE(c.trace.back().detail.find("goes no further"), std::string::npos);
}

TEST(Bugs, ARaceNamesBothAccessesInTheOrderOfTheirIssue) {
    const auto c = shown("ring_released_before_wgmma_is_done");
    ASSERT_EQ(c.trace.size(), 2u);
    EXPECT_EQ(c.trace[0].action, "wgmma reads");
    EXPECT_EQ(c.trace[0].role, "consumer");
    EXPECT_EQ(c.trace[1].action, "TMA writes");
    EXPECT_EQ(c.trace[1].role, "producer");
    EXPECT_NE(c.trace[0].iteration, c.trace[1].iteration);
    EXPECT_NE(c.missing.find("a wait for the wgmma of line"), std::string::npos) << c.missing;
}

TEST(Bugs, ADeadlockSaysWhoWaitsForWhatInWhichPhase) {
    const auto c = shown("arrival_count_too_large");
    ASSERT_EQ(c.trace.size(), 2u);
    EXPECT_NE(c.trace[0].detail.find("phase 0"), std::string::npos) << c.trace[0].detail;
    EXPECT_NE(c.trace[0].detail.find("1 of 2 arrivals outstanding"), std::string::npos) << c.trace[0].detail;
    EXPECT_EQ(c.missing, "it expects 2 arrivals a phase and gets 1");
}

TEST(Bugs, AWrongLayoutIsDrawn) {
    const auto c = shown("swizzle_ignored_by_a_recast_view");
    ASSERT_FALSE(c.picture.empty());
    bool marked = false;
    for (std::size_t r = 0; r < c.picture.cells.size(); ++r) {
        for (std::size_t n = 0; n < c.picture.cells[r].size(); ++n)
            marked = marked || (c.picture.wrong[r][n] && c.picture.cells[r][n] == "1,0" && c.picture.columns[n] == 8);
    }
    EXPECT_TRUE(marked) << "X[1, 0] lies where column 8 should";
}

}  // namespace bugs_test
}  // namespace tw::verify
