#include "runtime/worker.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "base/text.h"
#include "runtime/temporary_folder.h"

#if defined(__SANITIZE_ADDRESS__)
#define TW_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TW_ADDRESS_SANITIZER 1
#endif
#endif

namespace tw::runtime {
namespace worker_test {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

TEST(Worker, ReturnsTheAnswerWhole) {
    std::string large(3 << 20, 'x');
    large[12345] = '\0';
    const auto result = run_in_worker([&] { return large; });
    EXPECT_EQ(result.end, WorkerEnd::finished);
    EXPECT_TRUE(result.answer == large);
}

TEST(Worker, ACrashIsNamedAndTheParentGoesOn) {
    const auto result = run_in_worker([]() -> std::string {
        std::fprintf(stderr, "about to crash");
        std::fflush(stderr);
        ::signal(SIGSEGV, SIG_DFL);  // a sanitizer would turn it into an exit
        ::raise(SIGSEGV);
        return "not reached";
    });
    EXPECT_EQ(result.end, WorkerEnd::crashed);
    EXPECT_EQ(result.signal, SIGSEGV);
    EXPECT_EQ(result.words, "about to crash");
    EXPECT_NE(result.sentence().find("signal 11 (Segmentation fault)"), std::string::npos) << result.sentence();
    EXPECT_EQ(run_in_worker([] { return std::string("next"); }).answer, "next");
}

TEST(Worker, AHangIsStoppedAtTheLimit) {
    const auto begin = Clock::now();
    const auto result = run_in_worker(
        []() -> std::string {
            ::signal(SIGTERM, SIG_IGN);
            for (;;) ::pause();
        },
        {.seconds = 0.3});
    EXPECT_EQ(result.end, WorkerEnd::timed_out);
    EXPECT_GE(result.seconds, 0.3);
    EXPECT_LT(seconds_since(begin), 5);
}

TEST(Worker, ABusyLoopIsStoppedToo) {
    const auto result = run_in_worker(
        []() -> std::string {
            for (volatile unsigned i = 0;;) i = i + 1;
        },
        {.seconds = 0.3});
    EXPECT_EQ(result.end, WorkerEnd::timed_out);
}

TEST(Worker, AnAllocationBombHitsItsLimitAndNotTheMachines) {
#ifdef TW_ADDRESS_SANITIZER
    GTEST_SKIP() << "the address sanitizer's own memory is above any limit";
#endif
    const std::uint64_t limit = 256ull << 20;
    const auto result = run_in_worker(
        []() -> std::string {
            std::vector<char*> kept;
            for (;;) {
                char* part = new char[8 << 20];
                for (std::size_t i = 0; i < (8u << 20); i += 4096) part[i] = 1;
                kept.push_back(part);
            }
        },
        {.seconds = 30, .memory_bytes = limit});
    EXPECT_EQ(result.end, WorkerEnd::out_of_memory) << result.sentence();
    EXPECT_LT(result.peak_bytes, 2 * limit);
}

TEST(Worker, AProgramsMemoryIsWatchedFromOutside) {
    const auto result = run_program_in_worker({"python3", "-c", "x = []\nwhile True: x.append(bytearray(4 << 20))"},
                                              {.seconds = 30, .memory_bytes = 200ull << 20});
    if (result.end == WorkerEnd::not_started) GTEST_SKIP() << "no python3 to run";
    EXPECT_EQ(result.end, WorkerEnd::out_of_memory) << result.sentence();
}

TEST(Worker, AnExceptionIsAFailureWithItsWords) {
    const auto result = run_in_worker([]() -> std::string { throw std::runtime_error("no such tile"); });
    EXPECT_EQ(result.end, WorkerEnd::failed);
    EXPECT_NE(result.words.find("no such tile"), std::string::npos);
}

TEST(Worker, AnEndlessAnswerIsCutOff) {
    const auto result =
        run_program_in_worker({"sh", "-c", "while :; do echo yes yes yes yes; done"}, {.seconds = 30, .answer_bytes = 1 << 20});
    EXPECT_EQ(result.end, WorkerEnd::answer_too_long);
}

TEST(Worker, ProgramsAnswerByOutputAndStatus) {
    const auto fine = run_program_in_worker({"sh", "-c", "echo out; echo err >&2; echo $TW_TEST_WORD"}, {}, {"TW_TEST_WORD=given"});
    EXPECT_EQ(fine.end, WorkerEnd::finished);
    EXPECT_EQ(fine.answer, "out\ngiven\n");
    EXPECT_EQ(fine.words, "err\n");
    const auto bad = run_program_in_worker({"sh", "-c", "exit 7"});
    EXPECT_EQ(bad.end, WorkerEnd::failed);
    EXPECT_EQ(bad.status, 7);
    const auto absent = run_program_in_worker({"tilewright-no-such-program"});
    EXPECT_EQ(absent.end, WorkerEnd::not_started);
    EXPECT_NE(absent.sentence().find("No such file"), std::string::npos) << absent.sentence();
}

TEST(Worker, ProgramsReadTheirInput) {
    const std::string long_input(3 << 20, 'x');  // more than a pipe holds
    EXPECT_EQ(run_program_in_worker({"wc", "-c"}, {}, {}, long_input).answer, "3145728\n");
    EXPECT_EQ(run_program_in_worker({"true"}, {}, {}, long_input).end, WorkerEnd::finished);  // does not read it
    EXPECT_EQ(run_program_in_worker({"cat"}).answer, "");
}

TEST(Worker, CanBeStoppedAndTellsAsItGoes) {
    std::atomic<bool> stop{false};
    std::string heard;
    WorkerLimits limits;
    limits.stop = &stop;
    limits.on_answer = [&](std::string_view piece) {
        heard += piece;
        stop = true;
    };
    const auto result = run_program_in_worker({"sh", "-c", "echo begun; sleep 60"}, limits);
    EXPECT_EQ(result.end, WorkerEnd::stopped);
    EXPECT_LT(result.seconds, 20);
    EXPECT_EQ(heard, "begun\n");
}

// A candidate may start programs of its own; none may outlive it.
TEST(Worker, WhatTheChildStartedDiesWithIt) {
    testing::TemporaryFolder folder;
    const auto note = folder.path() / "pid";
    const auto result = run_program_in_worker({"sh", "-c", "sleep 60 & echo $! >" + note.string() + "; wait"}, {.seconds = 2});
    EXPECT_EQ(result.end, WorkerEnd::timed_out);
    const auto text = read_file(note);
    ASSERT_TRUE(text);
    const pid_t grandchild = std::atoi(text->c_str());
    ASSERT_GT(grandchild, 1);
    // Gone, or a zombie that its new parent has not reaped yet: in either case no longer running.
    const auto running = [&] {
        const auto state = read_file("/proc/" + std::to_string(grandchild) + "/stat");
        return state && state->find(") Z") == std::string::npos && state->find(") X") == std::string::npos;
    };
    for (int i = 0; i < 100 && running(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(running());
}

}  // namespace worker_test
}  // namespace tw::runtime
