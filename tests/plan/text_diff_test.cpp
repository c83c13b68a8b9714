#include "plan/text_diff.h"

#include <gtest/gtest.h>

#include <random>

namespace tw::plan {
namespace text_diff_test {

std::string random_text(std::mt19937& random, int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) text += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
    return text;
}

int edits(const std::vector<DiffLine>& script) {
    int count = 0;
    for (const DiffLine& line : script) count += line.mark != ' ';
    return count;
}

// The length of a shortest script, by dynamic programming over longest common subsequences.
int shortest(const std::string& a, const std::string& b) {
    std::vector<std::string> x, y;
    for (std::size_t i = 0; i < a.size(); i += 2) x.push_back(a.substr(i, 1));
    for (std::size_t i = 0; i < b.size(); i += 2) y.push_back(b.substr(i, 1));
    std::vector<std::vector<int>> common(x.size() + 1, std::vector<int>(y.size() + 1, 0));
    for (std::size_t i = 1; i <= x.size(); ++i)
        for (std::size_t j = 1; j <= y.size(); ++j)
            common[i][j] = x[i - 1] == y[j - 1] ? common[i - 1][j - 1] + 1 : std::max(common[i - 1][j], common[i][j - 1]);
    return static_cast<int>(x.size() + y.size()) - 2 * common[x.size()][y.size()];
}

TEST(TextDiff, IsAShortestScriptThatLeadsFromOneTextToTheOther) {
    const unsigned seed = 5;
    std::mt19937 random(seed);
    for (int round = 0; round < 2000; ++round) {
        const std::string a = random_text(random, static_cast<int>(random() % 12)),
                          b = random_text(random, static_cast<int>(random() % 12));
        const auto script = line_diff(a, b);
        std::string before, after;
        for (const DiffLine& line : script) {
            if (line.mark != '+') before += std::string(line.text) + "\n";
            if (line.mark != '-') after += std::string(line.text) + "\n";
        }
        ASSERT_EQ(before, a) << "seed " << seed;
        ASSERT_EQ(after, b);
        ASSERT_EQ(edits(script), shortest(a, b)) << a << "---\n" << b;
        for (const int context : {0, 1, 3}) {
            std::string applied;
            const std::string diff = unified_diff(a, b, context);
            ASSERT_EQ(diff.empty(), a == b);
            ASSERT_TRUE(apply_unified_diff(a, diff, applied)) << a << "---\n" << b << "---\n" << diff;
            ASSERT_EQ(applied, b) << diff;
        }
    }
}

TEST(TextDiff, LongTextsThatShareNothingAreReplacedWhole) {
    std::string a, b;
    for (int i = 0; i < 5000; ++i) a += "a" + std::to_string(i) + "\n", b += "b" + std::to_string(i) + "\n";
    EXPECT_EQ(edits(line_diff(a, b)), 10000);
    std::string applied;
    EXPECT_TRUE(apply_unified_diff(a, unified_diff(a, b), applied));
    EXPECT_EQ(applied, b);
}

TEST(TextDiff, ADiffThatDoesNotFitIsRefused) {
    std::string applied;
    EXPECT_FALSE(apply_unified_diff("a\nb\n", "@@ -1,1 +1,1 @@\n-x\n+y\n", applied));
    EXPECT_FALSE(apply_unified_diff("a\n", "@@ -9,1 +1,1 @@\n-a\n", applied));
    EXPECT_FALSE(apply_unified_diff("a\n", "nonsense\n", applied));
    EXPECT_FALSE(apply_unified_diff("a\n", "@@ -x\n", applied));
}

}  // namespace text_diff_test
}  // namespace tw::plan
