#include "base/input.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/deadline.h"
#include "base/text.h"

namespace tw {
namespace input_test {

using nlohmann::json;

TEST(Input, JsonOfAnyDepthIsTakenOrRefusedAndNeverCrashes) {
    const auto nested = [](int levels) {
        return std::string(static_cast<std::size_t>(levels), '[') + std::string(static_cast<std::size_t>(levels), ']');
    };
    EXPECT_TRUE(parse_json(nested(kInputDepth)).is_array());
    EXPECT_TRUE(parse_json(nested(kInputDepth + 1)).is_discarded());
    EXPECT_TRUE(parse_json(nested(1'000'000)).is_discarded());
    EXPECT_TRUE(parse_json(std::string(2'000'000, '{')).is_discarded());
    EXPECT_EQ(parse_json("{\"a\": \"[[[[ \\\" [[[\"}")["a"], "[[[[ \" [[[") << "brackets in strings are text";
    EXPECT_TRUE(parse_json("[1,").is_discarded());
}

TEST(Input, TomlDepthCountsBracketsAndDottedKeysOutsideOfStrings) {
    EXPECT_FALSE(toml_is_deeper("a = [[1, 2], [3]]\n[b.c]\nd = \"[[[[[[[[\" # [[[[\n", 3));
    EXPECT_FALSE(toml_is_deeper("s = '''\n[[[[[[[[[[\n'''\nt = \"\"\"[[[[[\\\"\"\"\"\n", 3));
    EXPECT_TRUE(toml_is_deeper("a = [[[[1]]]]\n", 3));
    EXPECT_TRUE(toml_is_deeper("a.b.c.d.e = 1\n", 3));
    std::string dots = "a";
    for (int i = 0; i < 200'000; ++i) dots += ".a";
    EXPECT_TRUE(toml_is_deeper(dots + " = 1\n"));
}

TEST(Input, CountsOfOthersDoNotOverflow) {
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    const json counts = {{"fine", 7},     {"negative", -7},  {"large", 18446744073709551615ull},
                         {"real", 1e300}, {"fraction", 2.9}, {"text", "7"}};
    EXPECT_EQ(count_in(counts, "fine"), 7);
    EXPECT_EQ(count_in(counts, "negative"), 0);
    EXPECT_EQ(count_in(counts, "large"), most);
    EXPECT_EQ(count_in(counts, "real"), most);
    EXPECT_EQ(count_in(counts, "fraction"), 2);
    EXPECT_EQ(count_in(counts, "text"), 0);
    EXPECT_EQ(count_in(counts, "absent"), 0);
    EXPECT_EQ(count_in(json::array(), "absent"), 0);
    EXPECT_EQ(saturating_sum(most, most), most);
    EXPECT_EQ(saturating_sum(-most, -most), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(saturating_sum(-5, 3), -2);
    EXPECT_EQ(integer_in(counts, "real", 0, 0, 10), 10);
}

TEST(Input, MembersOfAnotherTypeAreAsIfTheyWereNotThere) {
    const json odd = {{"text", 5}, {"number", "5"}, {"flag", "yes"}, {"part", json::array()}};
    EXPECT_EQ(text_in(odd, "text", "otherwise"), "otherwise");
    EXPECT_EQ(number_in(odd, "number", 1.5), 1.5);
    EXPECT_EQ(flag_in(odd, "flag", true), true);
    EXPECT_EQ(part_in(odd, "part", json::object()), json::object());
    EXPECT_EQ(text_in(json("a string"), "text"), "");
}

TEST(Input, OnlyPlainFilesOfABoundedSizeAreRead) {
    const auto folder = std::filesystem::temp_directory_path() / ("tilewright-input-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    const auto fifo = folder / "fifo", plain = folder / "plain";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    std::ofstream(plain) << std::string(1000, 'x');
    EXPECT_NE(read_file(fifo).error().find("no plain file"), std::string::npos);  // nobody writes it: reading would wait forever
    EXPECT_NE(read_file("/dev/zero").error().find("no plain file"), std::string::npos);
    EXPECT_NE(read_file(folder).error().find("folder"), std::string::npos);
    EXPECT_EQ(read_file(plain)->size(), 1000u);
    EXPECT_EQ(read_file(plain, 1000)->size(), 1000u);
    EXPECT_TRUE(read_input(plain, 999).error().too_large);
    std::filesystem::remove_all(folder);
}

TEST(Input, LinesAreBounded) {
    std::string text = "one\n" + std::string(100, 'x') + "\nlast";
    std::FILE* in = ::fmemopen(text.data(), text.size(), "r");
    LineReader lines(in, 10);
    std::string line;
    bool too_long = false;
    ASSERT_TRUE(lines.next(line, too_long));
    EXPECT_EQ(line, "one");
    ASSERT_TRUE(lines.next(line, too_long));
    EXPECT_TRUE(too_long);
    EXPECT_EQ(line.size(), 10u);
    ASSERT_TRUE(lines.next(line, too_long));
    EXPECT_EQ(line, "last");
    EXPECT_FALSE(too_long);
    EXPECT_FALSE(lines.next(line, too_long));
    std::fclose(in);
}

TEST(Deadline, IsPassedDownAsWhatIsLeft) {
    const Deadline never;
    EXPECT_FALSE(never.passed());
    EXPECT_EQ(never.within(7), 7);
    EXPECT_TRUE(Deadline::in(-1).passed());
    EXPECT_EQ(Deadline::in(-1).left(), 0);
    EXPECT_FALSE(Deadline::in(std::nan("")).is_set());
    EXPECT_FALSE(Deadline::in(1e300).is_set());
    const Deadline soon = Deadline::in(100);
    EXPECT_LE(soon.within(7), 7);
    EXPECT_LE(soon.within(1000), 100);
    EXPECT_GT(soon.within(1000), 50);
}

}  // namespace input_test
}  // namespace tw
