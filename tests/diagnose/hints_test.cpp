// Kernels with one slip each: the hint must name the line of the slip and the change that mends it, and must have been tried. Where
// nothing near is right, nothing may be said. Each file of hints/ states the codes that may be reported ("# expect: "), a phrase of
// the hint ("# hint: ", or "-" for silence) or of what is told without a change being known ("# says: "), and marks with `# here` the lines
// of which the hint must name one.
#include <set>

#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::diagnose {
namespace hints_test {

using namespace testing_kernels;

std::vector<std::string> names() {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(repository("tests/diagnose/hints"))) {
        if (entry.path().extension() == ".py") result.push_back(entry.path().stem().string());
    }
    std::sort(result.begin(), result.end());
    return result;
}

class Hint : public ::testing::TestWithParam<std::string> {};

TEST_P(Hint, NamesTheLineAndWasTriedOrIsSilent) {
    const std::string file = "tests/diagnose/hints/" + GetParam() + ".py";
    std::set<std::string> codes;
    std::set<int> lines;
    std::string phrase, told;
    std::istringstream text(read_text(repository(file)));
    std::string line;
    for (int number = 1; std::getline(text, line); ++number) {
        if (line.starts_with("# expect: ")) {
            std::istringstream words(line.substr(10));
            for (std::string word; words >> word;) codes.insert(word);
        }
        if (line.starts_with("# hint: ")) phrase = line.substr(8);
        if (line.starts_with("# says: ")) told = line.substr(8);
        if (line.ends_with("# here")) lines.insert(number);
    }
    ASSERT_FALSE(codes.empty() || (phrase.empty() && told.empty()) || lines.empty());
    CheckOptions options;
    options.search_seconds = 20;  // found within a second; a loaded machine must not change the verdict
    const CheckResult result = check(kernel_of(file), options);
    ASSERT_TRUE(result.counterexample.has_value());
    const Counterexample& c = *result.counterexample;
    EXPECT_TRUE(c.confirmed);
    EXPECT_TRUE(codes.count(c.code)) << c.code << ": " << c.message;
    EXPECT_FALSE(c.trace.empty() && c.missing.empty() && c.differences.empty()) << "nothing is told of what happened";
    if (!told.empty()) {
        std::string all = c.message + "\n" + c.hint;
        for (const TagDifference& d : c.differences) all += "\n" + d.text;
        all += "\n";
        if (told.ends_with('$')) told.back() = '\n';  // to the end of the line
        EXPECT_NE(all.find(told), std::string::npos) << all;
        EXPECT_EQ(all.find("movement is right"), std::string::npos) << all;
        if (phrase.empty()) return;
    }
    if (phrase == "-") {
        EXPECT_EQ(c.hint, "");
        EXPECT_FALSE(c.repair.has_value()) << c.repair->text;
        return;
    }
    EXPECT_NE(c.hint.find(phrase), std::string::npos) << c.hint;
    ASSERT_TRUE(c.repair.has_value()) << "the hint was not tried: " << c.hint;
    EXPECT_TRUE(lines.count(c.repair->loc.line)) << "line " << c.repair->loc.line << ": " << c.hint;
    EXPECT_TRUE(c.repair->proved || c.repair->passed > 3);
}

INSTANTIATE_TEST_SUITE_P(Slips, Hint, ::testing::ValuesIn(names()), [](const auto& given) { return given.param; });

TEST(Hints, ThereAreAtLeastThirty) { EXPECT_GE(names().size(), 30u); }

}  // namespace hints_test
}  // namespace tw::diagnose
