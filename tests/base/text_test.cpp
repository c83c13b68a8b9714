#include "base/text.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "runtime/temporary_folder.h"

namespace tw {
namespace text_test {

using Lines = std::vector<std::string_view>;
using Words = std::vector<std::string>;

TEST(Text, LinesEndWithNewlineOrCarriageReturnNewlineOrTheText) {
    EXPECT_EQ(split_lines(""), Lines{});
    EXPECT_EQ(split_lines("a"), Lines{"a"});
    EXPECT_EQ(split_lines("a\n"), Lines{"a"});
    EXPECT_EQ(split_lines("a\r\n\nb"), (Lines{"a", "", "b"}));
}

TEST(Text, WordsAreSeparatedByAnyWhiteSpace) {
    EXPECT_EQ(split_words(" a\tb \n c"), (Words{"a", "b", "c"}));
    EXPECT_EQ(split_words("  "), Words{});
    EXPECT_EQ(trim(" \t a b \n"), "a b");
    EXPECT_EQ(trim(" \n"), "");
    EXPECT_EQ(join({"a", "b", "c"}, ", "), "a, b, c");
    EXPECT_EQ(join({}, ", "), "");
}

TEST(Text, AFileThatCannotBeReadIsNamedWithTheReason) {
    testing::TemporaryFolder folder;
    const auto absent = read_file(folder.path() / "absent");
    ASSERT_FALSE(absent);
    EXPECT_NE(absent.error().find("absent: No such file"), std::string::npos) << absent.error();
    EXPECT_FALSE(read_file(folder.path())) << "a folder is not a file";
}

TEST(Text, ReadersOfAFileThatIsBeingReplacedSeeOneVersionOrTheOther) {
    testing::TemporaryFolder folder;
    const auto file = folder.path() / "f";
    const std::string first(200000, 'a'), second(100000, 'b');
    ASSERT_TRUE(write_file_atomically(file, first));
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        for (int i = 0; i < 200; ++i) EXPECT_TRUE(write_file_atomically(file, i % 2 ? first : second));
        stop = true;
    });
    while (!stop) {
        const auto seen = read_file(file);
        ASSERT_TRUE(seen);
        EXPECT_TRUE(*seen == first || *seen == second) << seen->size();
    }
    writer.join();
    int files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
    EXPECT_EQ(files, 1) << "no temporary file stays";
}

TEST(Text, ANewVersionThatCannotBeWrittenLeavesTheOldOne) {
    testing::TemporaryFolder folder;
    const auto into_nowhere = write_file_atomically(folder.path() / "no" / "such" / "f", "x");
    ASSERT_FALSE(into_nowhere);
    EXPECT_NE(into_nowhere.error().find("cannot create"), std::string::npos);
}

TEST(Text, WhatIsNoPlainFileIsNotReplaced) {
    testing::TemporaryFolder folder;
    const auto pipe = folder.path() / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_FALSE(write_file_atomically(pipe, "x")) << "nobody reads it, and nobody waits";
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_TRUE(write_file_atomically(pipe, "text"));
    char read[8] = {};
    EXPECT_EQ(::read(reader, read, sizeof read), 4);
    ::close(reader);
    EXPECT_STREQ(read, "text");
    EXPECT_TRUE(std::filesystem::is_fifo(pipe));
    std::filesystem::create_directory(folder.path() / "d");
    EXPECT_FALSE(write_file_atomically(folder.path() / "d", "x"));
    EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "d"));
    // Not a file of /dev: a failure of this test must leave the machine whole.
    std::filesystem::create_symlink("/dev/null", folder.path() / "link");
    ASSERT_TRUE(write_file_atomically(folder.path() / "link", "x"));
    EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(folder.path() / "link")))
        << "links elsewhere are replaced";
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace text_test
}  // namespace tw
