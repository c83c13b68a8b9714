// Known bug patterns, rebuilt as small kernels: each file of bugs/ states on its first line which codes may be reported for it
// ("proved" for the unbroken controls), and marks with `# here` the lines of which one must be named.
#include <fmt/format.h>

#include <set>

#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace {

using namespace testing_kernels;

std::vector<std::string> names() {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(repository("tests/verify/bugs"))) {
        if (entry.path().extension() == ".py") result.push_back(entry.path().stem().string());
    }
    std::sort(result.begin(), result.end());
    return result;
}

struct Stated {
    std::set<std::string> codes;
    std::set<int> lines;
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
    }
    return s;
}

class Bug : public ::testing::TestWithParam<std::string> {};

TEST_P(Bug, IsShownWithAConfirmedCounterexampleAtItsPlace) {
    const std::string file = "tests/verify/bugs/" + GetParam() + ".py";
    const Stated expected = stated(read_text(repository(file)));
    ASSERT_FALSE(expected.codes.empty()) << "the first line must be '# expect: ...'";
    diagnose::CheckOptions options;
    options.search_seconds = 20;   // found within a second; a loaded machine must not change the verdict
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
    EXPECT_TRUE(expected.lines.count(c.loc.line) || expected.lines.count(c.other.line)) << "lines " << c.loc.line << " and " << c.other.line;
    EXPECT_FALSE(c.hint.empty()) << c.kind;
    EXPECT_FALSE(c.sizes_text.empty());
    const auto violated = std::count_if(result.obligations.begin(), result.obligations.end(), [](const Obligation& o) { return o.status == Status::violated; });
    EXPECT_EQ(violated, 1) << "exactly the refuted obligation is marked";
}

INSTANTIATE_TEST_SUITE_P(Patterns, Bug, ::testing::ValuesIn(names()), [](const auto& info) { return info.param; });

TEST(Bugs, ThereAreAtLeastTwoDozenAndControls) {
    int broken = 0, controls = 0;
    for (const std::string& name : names()) {
        (stated(read_text(repository("tests/verify/bugs/" + name + ".py"))).codes.count("proved") ? controls : broken) += 1;
    }
    EXPECT_GE(broken, 24);
    EXPECT_GE(controls, 3);
}

TEST(Bugs, AWrongValueNamesWhatTheElementIsMadeOf) {
    const auto result = diagnose::check(kernel_of("tests/verify/bugs/k_step_of_one_operand_stuck_at_zero.py"), {});
    ASSERT_TRUE(result.counterexample.has_value());
    EXPECT_NE(result.counterexample->expected_tag.find("A["), std::string::npos) << result.counterexample->expected_tag;
    EXPECT_NE(result.counterexample->expected_tag, result.counterexample->actual_tag);
}

}  // namespace
}  // namespace tw::verify
