// The box and the warden: what a child may see and do, and that it dies as a whole.
#include "runtime/box.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/text.h"
#include "runtime/temporary_folder.h"
#include "runtime/worker.h"

namespace tw::runtime {
namespace box_test {

using tw::testing::TemporaryFolder;

WorkerResult shell(const std::string& script, WorkerLimits limits = {}) { return run_program_in_worker({"sh", "-c", script}, limits); }

bool eventually(const std::function<bool()>& holds, double seconds = 5) {
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds) {
        if (holds()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return holds();
}

TEST(Environment, KeysAreNotHandedOn) {
    ::setenv("OPENAI_API_KEY", "sk-not-for-children", 1);
    ::setenv("TILEWRIGHT_TEST_SECRET", "hidden", 1);
    ::setenv("SOME_APPLICATION", "mine", 1);
    const auto seen = shell("env");
    EXPECT_EQ(seen.answer.find("sk-not-for-children"), std::string::npos);
    EXPECT_EQ(seen.answer.find("hidden"), std::string::npos) << "a name with SECRET in it is one, whatever its head";
    EXPECT_EQ(seen.answer.find("SOME_APPLICATION"), std::string::npos);
    EXPECT_NE(seen.answer.find("PATH="), std::string::npos);
    ::setenv("TILEWRIGHT_PASS", "SOME_APPLICATION,OPENAI_API_KEY", 1);
    const auto passed = shell("env");
    EXPECT_NE(passed.answer.find("SOME_APPLICATION=mine"), std::string::npos);
    EXPECT_NE(passed.answer.find("sk-not-for-children"), std::string::npos) << "what is passed by name is passed";
    ::unsetenv("TILEWRIGHT_PASS"), ::unsetenv("OPENAI_API_KEY"), ::unsetenv("TILEWRIGHT_TEST_SECRET"), ::unsetenv("SOME_APPLICATION");
}

TEST(Environment, SearchPathsDoNotDependOnTheWorkingFolder) {
    EXPECT_EQ(absolute_entries("/usr/bin::.:bin:/bin:"), "/usr/bin:/bin");
    EXPECT_EQ(absolute_entries(""), "");
    EXPECT_EQ(absolute_entries(":"), "");
}

TEST(Box, WritesGoToItsFoldersOnly) {
    if (box_support().landlock == 0) GTEST_SKIP() << "this kernel has no landlock";
    const TemporaryFolder inside, outside;
    const std::string in = inside.path().string(), out = outside.path().string();
    std::ofstream(out + "/there") << "untouched";
    WorkerLimits limits;
    limits.box = box_for_proposers(inside.path());
    const auto ran = shell("echo a > " + in + "/made && mkdir " + in + "/below && echo b > " + in +
                               "/below/file && echo inside;"
                               "echo c > " +
                               out +
                               "/made || echo 'no new file';"
                               "echo d > " +
                               out +
                               "/there || echo 'no change';"
                               "rm " +
                               out +
                               "/there || echo 'no removal';"
                               "mv " +
                               in + "/made " + out +
                               "/moved || echo 'no move';"
                               "ln -s /etc/passwd " +
                               out + "/link || echo 'no link'",
                           limits);
    for (const char* word : {"inside", "no new file", "no change", "no removal", "no move", "no link"})
        EXPECT_NE(ran.answer.find(word), std::string::npos) << word << "\n" << ran.answer << ran.words;
    EXPECT_EQ(*read_file(out + "/there"), "untouched");
}

TEST(Box, ChecksHaveNoNetworkAndProposersDo) {
    if (!box_support().seccomp) GTEST_SKIP() << "this kernel has no seccomp filters";
    const auto sockets = [](const Box& box) {
        WorkerLimits limits;
        limits.box = box;
        return run_in_worker(
                   [] {
                       std::string out;
                       for (const int family : {AF_INET, AF_INET6, AF_UNIX}) {
                           const int made = ::socket(family, SOCK_STREAM, 0);
                           out += made >= 0 ? "+" : errno == EACCES ? "-" : "?";
                       }
                       return out;
                   },
                   limits)
            .answer;
    };
    EXPECT_EQ(sockets(box_for_checks()), "---");
    EXPECT_EQ(sockets(box_for_gpu()), "--+");
    EXPECT_EQ(sockets(box_for_proposers({})).substr(0, 1), "+");
}

TEST(Box, OtherProcessesCannotBeReachedInto) {
    if (!box_support().seccomp) GTEST_SKIP() << "this kernel has no seccomp filters";
    WorkerLimits limits;
    limits.box = box_for_checks();
    const pid_t us = ::getpid();
    const auto ran = run_in_worker(
        [us] {
            char word = 0;
            std::string out;
            out += ::syscall(SYS_ptrace, 16 /* PTRACE_ATTACH */, us, 0, 0) < 0 && errno == EPERM ? "-" : "+";
            out += ::syscall(SYS_process_vm_readv, us, &word, 1, &word, 1, 0) < 0 && errno == EPERM ? "-" : "+";
            out += ::syscall(SYS_unshare, 0x10000000 /* CLONE_NEWUSER */) < 0 && errno == EPERM ? "-" : "+";
            out += ::syscall(425 /* io_uring_setup */, 1, nullptr) < 0 && errno == EPERM ? "-" : "+";
            return out;
        },
        limits);
    EXPECT_EQ(ran.answer, "----") << ran.sentence();
}

TEST(Box, ProcessesOutsideCannotBeSignalled) {
    if (box_support().landlock < 6) GTEST_SKIP() << "this kernel's landlock does not confine signals";
    WorkerLimits limits;
    limits.box = box_for_checks();
    const pid_t us = ::getpid();
    const auto ran = run_in_worker([us] { return std::string(::kill(us, 0) < 0 && errno == EPERM ? "refused" : "reached"); }, limits);
    EXPECT_EQ(ran.answer, "refused");
}

TEST(Warden, WhatLeavesTheSessionDiesAllTheSame) {
    const TemporaryFolder folder;
    const std::string mark = (folder.path() / "survived").string(), pid = (folder.path() / "pid").string();
    const auto ran =
        shell("setsid sh -c 'echo $$ > " + pid + "; sleep 3; echo yes > " + mark + "' > /dev/null 2>&1 < /dev/null & sleep 0.3; echo done");
    EXPECT_EQ(ran.end, WorkerEnd::finished);
    EXPECT_EQ(ran.answer, "done\n");
    const auto number = read_file(pid);
    ASSERT_TRUE(number);
    EXPECT_NE(::kill(std::atoi(number->c_str()), 0), 0) << "it is gone when the worker's end is told";
    EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST(Warden, TwiceForkedDaemonsAreFoundWhenALimitIsReached) {
    const TemporaryFolder folder;
    const std::string pid = (folder.path() / "pid").string();
    WorkerLimits limits;
    limits.seconds = 1;
    const auto ran = shell("setsid sh -c '(setsid sh -c \"echo \\$\\$ > " + pid + "; sleep 60\" &) ; exit 0'; sleep 60", limits);
    EXPECT_EQ(ran.end, WorkerEnd::timed_out);
    const auto number = read_file(pid);
    ASSERT_TRUE(number);
    EXPECT_NE(::kill(std::atoi(number->c_str()), 0), 0);
}

TEST(Warden, EverythingDiesWithUs) {
    const TemporaryFolder folder;
    const std::string pid = (folder.path() / "pid").string();
    const pid_t us = ::fork();
    if (us == 0) {
        shell("setsid sh -c 'echo $$ > " + pid + "; sleep 60' & sleep 60");
        ::_exit(0);
    }
    ASSERT_TRUE(eventually([&] {
        const auto text = read_file(pid);
        return text && text->size() > 1;
    }));
    ::kill(us, SIGKILL);
    ::waitpid(us, nullptr, 0);
    const int left = std::atoi(read_file(pid)->c_str());
    EXPECT_TRUE(eventually([&] { return ::kill(left, 0) != 0; })) << "a process outlived kill -9 of its parent";
}

TEST(Warden, AForkBombIsStopped) {
    WorkerLimits limits;
    limits.seconds = 30;
    limits.processes = 40;
    const auto ran = shell("i=0; while [ $i -lt 5000 ]; do sleep 30 & i=$((i+1)); done; wait", limits);
    EXPECT_EQ(ran.end, WorkerEnd::too_many_processes) << ran.sentence();
}

TEST(Warden, ABombThatDoublesIsStoppedBeforeItFillsTheMachine) {
    // Left alone it ends at 2^12 processes: a test must not do to the machine what it is against.
    WorkerLimits limits;
    limits.seconds = 60;
    limits.processes = 40;
    const TemporaryFolder folder;
    const std::string bomb = (folder.path() / "bomb.sh").string();
    ASSERT_TRUE(write_file_atomically(bomb, "[ $1 -gt 10 ] || { setsid sh $0 $(($1+1)) & sh $0 $(($1+1)) & }\nsleep 50\n"));
    const auto ran = shell("sh " + bomb + " 0; sleep 50", limits);
    EXPECT_EQ(ran.end, WorkerEnd::too_many_processes) << ran.sentence();
    EXPECT_LT(ran.seconds, 30);
    EXPECT_NE(std::system(("pgrep -f '^sh " + bomb + "' > /dev/null").c_str()), 0) << "processes are left";
}

TEST(Warden, MemoryIsCountedOverAllProcesses) {
    WorkerLimits limits;
    limits.seconds = 30;
    limits.memory_bytes = 300ull << 20;
    const auto ran = shell("for i in 1 2 3 4; do python3 -c 'import time; x = bytearray(120 << 20); time.sleep(20)' & done; wait", limits);
    EXPECT_EQ(ran.end, WorkerEnd::out_of_memory) << "none of them alone is above the limit: " << ran.sentence();
}

TEST(Warden, StatusAndSignalComeThrough) {
    EXPECT_EQ(shell("exit 9").status, 9);
    EXPECT_EQ(shell("kill -SEGV $$").signal, SIGSEGV);
    EXPECT_EQ(run_program_in_worker({"tilewright-no-such-program"}).end, WorkerEnd::not_started);
}

TEST(Box, CanBeSwitchedOff) {
    const TemporaryFolder inside, outside;
    ::setenv("TILEWRIGHT_BOX", "off", 1);
    WorkerLimits limits;
    limits.box = box_for_proposers(inside.path());
    const auto ran = shell("echo a > " + outside.path().string() + "/made && echo written", limits);
    ::unsetenv("TILEWRIGHT_BOX");
    EXPECT_EQ(ran.answer, "written\n");
}

}  // namespace box_test
}  // namespace tw::runtime
