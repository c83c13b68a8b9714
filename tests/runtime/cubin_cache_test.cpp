#include "runtime/cubin_cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>
#include <vector>

#include "base/digest.h"
#include "base/text.h"
#include "runtime/temporary_folder.h"
#include "runtime/worker.h"

namespace tw::runtime {
namespace cubin_cache_test {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

std::string key_of(int number) { return digest_hex(std::to_string(number)); }

// Content that any damage shows in: it repeats its own number.
CachedCubin entry_of(int number, std::size_t bytes) {
    CachedCubin entry;
    while (entry.cubin.size() < bytes) entry.cubin += std::to_string(number) + ";";
    entry.log = "log of " + std::to_string(number) + "\nwith \0 inside";
    return entry;
}

std::uint64_t bytes_in(const fs::path& folder) {
    std::uint64_t total = 0;
    for (const auto& file : fs::directory_iterator(folder)) total += file.file_size();
    return total;
}

TEST(CubinCache, ReturnsWhatWasStored) {
    TemporaryFolder folder;
    const CubinCache cache(folder.path() / "made" / "on demand", 1 << 20);
    EXPECT_FALSE(cache.find(key_of(1)).entry);
    EXPECT_EQ(cache.store(key_of(1), entry_of(1, 5000)), "");
    const auto found = cache.find(key_of(1));
    ASSERT_TRUE(found.entry);
    EXPECT_EQ(found.entry->cubin, entry_of(1, 5000).cubin);
    EXPECT_EQ(found.entry->log, entry_of(1, 5000).log);
    EXPECT_FALSE(cache.find(key_of(2)).entry);
}

// Every single changed or missing byte must read as "absent", never as another kernel.
TEST(CubinCache, FindsEveryDamagedByteAndEveryTruncation) {
    TemporaryFolder folder;
    const CubinCache cache(folder.path(), 1 << 20);
    ASSERT_EQ(cache.store(key_of(1), entry_of(1, 40)), "");
    const auto file = cache.file_of(key_of(1));
    const std::string good = *read_file(file);
    for (std::size_t at = 0; at < good.size(); ++at) {
        std::string bad = good;
        bad[at] ^= 0x10;
        ASSERT_TRUE(write_file_atomically(file, bad));
        const auto found = cache.find(key_of(1));
        EXPECT_FALSE(found.entry) << "byte " << at;
        EXPECT_NE(found.note.find("damaged"), std::string::npos);
        EXPECT_FALSE(fs::exists(file)) << "a damaged entry must be removed";

        ASSERT_TRUE(write_file_atomically(file, good.substr(0, at)));
        EXPECT_FALSE(cache.find(key_of(1)).entry) << "cut at " << at;
    }
    // And it is rebuilt by the next store.
    ASSERT_EQ(cache.store(key_of(1), entry_of(1, 40)), "");
    EXPECT_TRUE(cache.find(key_of(1)).entry);
}

// What is found runs on the GPU in the place of what was proved.
TEST(CubinCache, TakesNoEntryThatSomebodyElseMayHaveWritten) {
    TemporaryFolder folder;
    const CubinCache cache(folder.path() / "cache", 1 << 20);
    ASSERT_EQ(cache.store(key_of(1), entry_of(1, 100)), "");
    const auto file = cache.file_of(key_of(1));
    ASSERT_TRUE(cache.find(key_of(1)).entry);
    EXPECT_EQ(fs::status(cache.folder()).permissions() & (fs::perms::group_write | fs::perms::others_write), fs::perms::none);

    fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
    EXPECT_FALSE(cache.find(key_of(1)).entry);
    EXPECT_NE(cache.find(key_of(1)).note.find("everybody may write"), std::string::npos);
    fs::permissions(file, fs::perms::others_write, fs::perm_options::remove);
    EXPECT_TRUE(cache.find(key_of(1)).entry);

    fs::permissions(cache.folder(), fs::perms::all);
    EXPECT_FALSE(cache.find(key_of(1)).entry);
    fs::permissions(cache.folder(), fs::perms::all | fs::perms::sticky_bit);  // as /tmp
    EXPECT_TRUE(cache.find(key_of(1)).entry);

    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
    ASSERT_EQ(::chown(file.c_str(), 12345, 12345), 0);
    EXPECT_FALSE(cache.find(key_of(1)).entry);
    EXPECT_NE(cache.find(key_of(1)).note.find("belongs to another user"), std::string::npos);
}

TEST(CubinCache, AnEntryUnderTheNameOfAnotherKernelIsDamaged) {
    TemporaryFolder folder;
    const CubinCache cache(folder.path(), 1 << 20);
    ASSERT_EQ(cache.store(key_of(1), entry_of(1, 100)), "");
    fs::copy_file(cache.file_of(key_of(1)), cache.file_of(key_of(2)));
    EXPECT_FALSE(cache.find(key_of(2)).entry);
    EXPECT_TRUE(cache.find(key_of(1)).entry);
}

TEST(CubinCache, KeepsWithinItsBoundAndDropsTheLeastRecentlyUsed) {
    TemporaryFolder folder;
    const std::uint64_t bound = 40 * 1024;
    const CubinCache cache(folder.path(), bound);
    const auto age = [&](int number, int minutes) {
        fs::last_write_time(cache.file_of(key_of(number)), fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
    };
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(cache.store(key_of(i), entry_of(i, 10 * 1024)), "");
        age(i, 100 - i);
    }
    ASSERT_TRUE(cache.find(key_of(0)).entry);  // used again: no longer the oldest
    ASSERT_EQ(cache.store(key_of(3), entry_of(3, 15 * 1024)), "");
    EXPECT_LE(bytes_in(folder.path()), bound);
    EXPECT_TRUE(cache.find(key_of(0)).entry);
    EXPECT_FALSE(cache.find(key_of(1)).entry);
    EXPECT_TRUE(cache.find(key_of(3)).entry);
    EXPECT_NE(cache.store(key_of(4), entry_of(4, 100 * 1024)), "") << "an entry larger than the bound is refused in words";
}

TEST(CubinCache, LeavesForeignFilesAloneAndClearsAbandonedTemporaries) {
    TemporaryFolder folder;
    const CubinCache cache(folder.path(), 1 << 20);
    const auto foreign = folder.path() / "notes.txt", abandoned = folder.path() / (key_of(7) + ".twcubin.tmp.123.0"),
               fresh = folder.path() / (key_of(8) + ".twcubin.tmp.124.0");
    for (const auto& file : {foreign, abandoned, fresh}) std::ofstream(file) << "x";
    fs::last_write_time(abandoned, fs::file_time_type::clock::now() - std::chrono::hours(2));
    ASSERT_EQ(cache.store(key_of(1), entry_of(1, 100)), "");
    EXPECT_TRUE(fs::exists(foreign));
    EXPECT_FALSE(fs::exists(abandoned));
    EXPECT_TRUE(fs::exists(fresh)) << "its writer may still be at work";
}

// Four processes of three threads, few keys, a bound that forces eviction all the time: whatever is found is whole.
TEST(CubinCache, ManyProcessesAtOnceNeverSeeAPartOfAnEntry) {
    TemporaryFolder folder;
    const CubinCache cache(folder.path(), 60 * 1024);
    std::vector<pid_t> children;
    for (int process = 0; process < 4; ++process) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child > 0) {
            children.push_back(child);
            continue;
        }
        std::atomic<int> bad{0}, hits{0};
        std::vector<std::thread> threads;
        for (int thread = 0; thread < 3; ++thread)
            threads.emplace_back([&, thread] {
                for (int round = 0; round < 300; ++round) {
                    const int number = (round * 7 + thread + process) % 5;
                    const auto found = cache.find(key_of(number));
                    if (!found.note.empty()) ++bad;
                    if (found.entry) {
                        ++hits;
                        if (found.entry->cubin != entry_of(number, 20 * 1024).cubin) ++bad;
                    } else if (!cache.store(key_of(number), entry_of(number, 20 * 1024)).empty()) {
                        ++bad;
                    }
                }
            });
        for (auto& thread : threads) thread.join();
        ::_exit(bad.load() ? 1 : hits.load() > 0 ? 0 : 2);
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    for (const auto& file : fs::directory_iterator(folder.path()))
        EXPECT_EQ(file.path().filename().string().find(".tmp."), std::string::npos) << "left behind: " << file.path();
}

TEST(CubinCache, AFolderThatCannotBeMadeIsExplained) {
    TemporaryFolder folder;
    std::ofstream(folder.path() / "file") << "x";
    const CubinCache cache(folder.path() / "file" / "cache", 1 << 20);
    EXPECT_FALSE(cache.find(key_of(1)).entry);
    const auto note = cache.store(key_of(1), entry_of(1, 100));
    EXPECT_NE(note.find((folder.path() / "file" / "cache").string()), std::string::npos) << note;
    EXPECT_NE(note.find("TILEWRIGHT_CACHE"), std::string::npos) << "the fix must be named: " << note;
    EXPECT_NE(CubinCache("", 1 << 20).store(key_of(1), entry_of(1, 100)), "");
}

// A write that fails half way, as on a full disk: a limit on file size makes write(2) fail for real.
TEST(CubinCache, AWriteThatFailsHalfWayIsExplainedAndLeavesNothing) {
    TemporaryFolder folder;
    const auto result = run_in_worker([&] {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{4096, 4096};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        return CubinCache(folder.path(), 1 << 20).store(key_of(1), entry_of(1, 20 * 1024));
    });
    ASSERT_EQ(result.end, WorkerEnd::finished) << result.sentence() << result.words;
    EXPECT_NE(result.answer.find("cannot write"), std::string::npos) << result.answer;
    EXPECT_NE(result.answer.find("TILEWRIGHT_CACHE"), std::string::npos) << result.answer;
    EXPECT_TRUE(fs::is_empty(folder.path())) << "no part of the entry may stay";
}

TEST(CubinCache, StandardFolderFollowsTheEnvironment) {
    const auto where = [](const char* cache, const char* xdg, const char* home) {
        return run_in_worker([=]() -> std::string {
                   cache ? ::setenv("TILEWRIGHT_CACHE", cache, 1) : ::unsetenv("TILEWRIGHT_CACHE");
                   xdg ? ::setenv("XDG_CACHE_HOME", xdg, 1) : ::unsetenv("XDG_CACHE_HOME");
                   home ? ::setenv("HOME", home, 1) : ::unsetenv("HOME");
                   ::setenv("TILEWRIGHT_CACHE_BYTES", "1234", 1);
                   const auto standard = CubinCache::standard();
                   return standard.folder().string() + " " + std::to_string(standard.max_bytes());
               })
            .answer;
    };
    EXPECT_EQ(where("/a", "/b", "/c"), "/a 1234");
    EXPECT_EQ(where(nullptr, "/b", "/c"), "/b/tilewright 1234");
    EXPECT_EQ(where(nullptr, nullptr, "/c"), "/c/.cache/tilewright 1234");
    EXPECT_EQ(where(nullptr, nullptr, nullptr), " 1234");
}

}  // namespace cubin_cache_test
}  // namespace tw::runtime
