// The loop: it ends with a proved kernel without a GPU, survives bad proposers, and goes on after kill -9 wherever it was hit.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <new>
#include <thread>

#include "plan/loop.h"
#include "tasks/load.h"

namespace tw::plan {
namespace loop_test {

namespace fs = std::filesystem;

tasks::Task small_task() {
    SourceMap sources;
    DiagnosticSink sink;
    auto task = tasks::load_task_text(sources, "t.toml",
                                      "name = \"t\"\ncomputes = \"Y[m, n] = softmax(n, X[m, n])\"\n[sizes]\nM = 64\nN = 256\n[tensors]\nX "
                                      "= { dtype = \"f32\", dims = [\"M\", \"N\"] }\n"
                                      "Y = { dtype = \"f32\", dims = [\"M\", \"N\"] }\n",
                                      sink);
    EXPECT_TRUE(task.has_value());
    return *task;
}

class LoopTest : public ::testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() /
                  ("tilewright-loop-" + std::to_string(getpid()) + "-" + ::testing::UnitTest::GetInstance()->current_test_info()->name());
        fs::remove_all(folder_);
        fs::create_directories(folder_);
        DiagnosticSink sink;
        knowledge_ = load_knowledge(knowledge_folder(), sink);
        options_.gates.use_gpu = false;
        options_.budget.candidates = 5;
    }
    void TearDown() override { fs::remove_all(folder_); }
    fs::path file() const { return folder_ / "journal.db"; }
    Result<LoopOutcome> run(Proposer& proposer, const std::string& resume = {}) {
        auto journal = Journal::open(file(), Database::Mode::write);
        EXPECT_TRUE(journal.has_value());
        Memory memory;
        return optimize(task_, proposer, *journal, memory, knowledge_, options_, resume);
    }
    fs::path folder_;
    tasks::Task task_ = small_task();
    Knowledge knowledge_;
    LoopOptions options_;
};

TEST_F(LoopTest, WithoutAGpuItEndsWithAProvedKernelAndSaysWhatWasNotMeasured) {
    auto proposer = make_builtin_proposer();
    const auto outcome = run(*proposer);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    ASSERT_GE(outcome->best_step, 0);
    EXPECT_GT(outcome->accepted, 1);
    EXPECT_FALSE(outcome->microseconds.has_value());
    EXPECT_NE(outcome->statement.find("NOT measured"), std::string::npos);
    auto journal = Journal::open(file(), Database::Mode::read);
    const auto document = journal->read(outcome->run);
    ASSERT_TRUE(document.has_value());
    for (const Step& s : document->steps)
        if (s.outcome == "accepted") EXPECT_EQ(s.verdict, "proved");
}

// Answers nonsense of several kinds, then refuses.
class BadProposer : public Proposer {
public:
    std::string name() const override { return "bad"; }
    Expected<Reply, ProposalFailure> propose(const Request& request) override {
        const char* texts[] = {"", "def (", "import os\nos.system('true')\n", "\xff\xfe"};
        got_feedback |= !request.feedback.empty();
        if (calls++ % 5 == 4) return Unexpected{ProposalFailure{ProposalFailure::Kind::malformed, "an empty answer", {}}};
        return Reply{texts[calls % 4], "nonsense", {}};
    }
    int calls = 0;
    bool got_feedback = false;
};

TEST_F(LoopTest, NonsenseCostsAttemptsNeverTheRun) {
    BadProposer proposer;
    const auto outcome = run(proposer);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    EXPECT_EQ(outcome->best_step, -1);
    EXPECT_GT(outcome->candidates, 1);
    EXPECT_TRUE(proposer.got_feedback);
}

TEST_F(LoopTest, AWorkerThatDoesNotEndIsATimeout) {
    options_.gates.verify_seconds = 0;  // over before it began, however fast the machine is
    auto proposer = make_builtin_proposer();
    const auto outcome = run(*proposer);
    ASSERT_TRUE(outcome.has_value());
    EXPECT_EQ(outcome->best_step, -1);
    auto journal = Journal::open(file(), Database::Mode::read);
    EXPECT_EQ(journal->read(outcome->run)->steps.at(0).failure_class, "timeout");
}

// Dies while it is asked for candidate `at`: after the steps before were recorded, in the middle of the one in flight.
class DyingProposer : public Proposer {
public:
    explicit DyingProposer(int at) : at_(at), inner_(make_builtin_proposer()) {}
    std::string name() const override { return "builtin"; }
    bool repairs() const override { return false; }
    Expected<Reply, ProposalFailure> propose(const Request& request) override {
        auto reply = inner_->propose(request);
        if (request.step >= at_ && reply) raise(SIGKILL);
        return reply;
    }

private:
    int at_;
    std::unique_ptr<Proposer> inner_;
};

TEST_F(LoopTest, KilledAtAnyStepItGoesOnAndEndsWhereItWouldHave) {
    auto proposer = make_builtin_proposer();
    const auto whole = run(*proposer);
    ASSERT_TRUE(whole.has_value());
    const std::string expected = whole->best_source;
    for (int at = 1; at < whole->candidates; ++at) {
        fs::remove_all(folder_);
        fs::create_directories(folder_);
        const pid_t child = fork();
        if (child == 0) {
            DyingProposer dying(at);
            (void)run(dying);
            _exit(0);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << at;
        std::string id;
        {
            auto journal = Journal::open(file(), Database::Mode::read);
            ASSERT_TRUE(journal.has_value());
            id = *journal->find("last");
            ASSERT_EQ(journal->read(id)->steps.size(), static_cast<std::size_t>(at)) << "only the step in flight is lost";
        }
        auto again = make_builtin_proposer();
        const auto resumed = run(*again, id);
        ASSERT_TRUE(resumed.has_value()) << resumed.error().message;
        EXPECT_EQ(resumed->candidates, whole->candidates);
        EXPECT_EQ(resumed->best_source, expected);
    }
}

// kill -9 in every stage that runs on the CPU: while the task is being understood, in each gate of the first and of a later candidate,
// after a step was shown. (Proposing: above. Stages on the GPU: test_faults.py.) Whatever was hit, the run goes on and takes the path it
// would have taken.
TEST_F(LoopTest, KilledInEveryCpuStageItGoesOn) {
    auto proposer = make_builtin_proposer();
    const auto whole = run(*proposer);
    ASSERT_TRUE(whole.has_value());
    std::vector<std::pair<std::string, int>> moments = {{"understand", 0}, {"shown", 2}};
    for (const char* gate : {"parse", "specification", "verify", "emulate", "compile"})
        for (int step : {0, 2}) moments.emplace_back(gate, step);
    for (const auto& moment : moments) {
        const std::string& stage = moment.first;
        const int step = moment.second;
        SCOPED_TRACE(stage + " of step " + std::to_string(step));
        fs::remove_all(folder_);
        fs::create_directories(folder_);
        // A boxed worker may not signal the loop, so it says that its moment has come, and the test kills.
        auto* now = static_cast<std::atomic<int>*>(
            mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        ASSERT_NE(static_cast<void*>(now), MAP_FAILED);
        new (now) std::atomic<int>(0);
        const pid_t child = fork();
        if (child == 0) {
            const auto die = [now] {
                now->store(1);
                for (;;) pause();
            };
            int seen = 0;
            options_.on_run = [&](const std::string&) {
                if (stage == "understand") die();
            };
            options_.on_step = [&](const Step& s) {
                seen = s.number + 1;
                if (stage == "shown" && s.number == step) die();
            };
            // In the worker that runs the gate.
            options_.gates.on_gate = [&, s = stage, n = step](const char* gate) {
                if (s == gate && seen == n) die();
            };
            auto mine = make_builtin_proposer();
            (void)run(*mine);
            _exit(0);
        }
        int status = 0;
        pid_t ended = 0;
        while (!now->load() && (ended = waitpid(child, &status, WNOHANG)) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        ASSERT_EQ(ended, 0) << "the loop ended before its moment came";
        kill(child, SIGKILL);
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        munmap(now, sizeof(std::atomic<int>));
        std::string id;
        {
            auto journal = Journal::open(file(), Database::Mode::read);
            ASSERT_TRUE(journal.has_value());
            id = *journal->find("last");
            ASSERT_EQ(journal->read(id)->steps.size(), static_cast<std::size_t>(stage == "shown" ? step + 1 : step))
                << "only the step in flight is lost";
        }
        auto again = make_builtin_proposer();
        const auto resumed = run(*again, id);
        ASSERT_TRUE(resumed.has_value()) << resumed.error().message;
        EXPECT_EQ(resumed->candidates, whole->candidates);
        EXPECT_EQ(resumed->best_source, whole->best_source);
        EXPECT_EQ(resumed->reason, whole->reason);
    }
}

// Answers from a list, and keeps what it was asked. A kill falls between two attempts at one candidate.
class ScriptedProposer : public Proposer {
public:
    ScriptedProposer(std::vector<std::string> replies, std::size_t next, int die_at)
        : replies_(std::move(replies)), next_(next), die_at_(die_at) {}
    std::string name() const override { return "scripted"; }
    Expected<Reply, ProposalFailure> propose(const Request& request) override {
        if (request.step == die_at_) raise(SIGKILL);
        asked.push_back(request);
        return Reply{replies_[std::min(next_++, replies_.size() - 1)], "scripted", {}};
    }
    std::vector<Request> asked;

private:
    std::vector<std::string> replies_;
    std::size_t next_;
    int die_at_;
};

TEST_F(LoopTest, ARepairGoesOnAfterAKill) {
    auto builtin = make_builtin_proposer();
    Request r;
    r.task = &task_;
    const std::string good = builtin->propose(r)->source;
    // First kernel: wrong, wrong again, right (two repairs); then refused texts.
    const std::vector<std::string> replies = {"def (", "x = 1\n", good, "def (", "y = 2\n", "z = 3\n"};
    options_.budget.candidates = 6;
    options_.repairs = 2;
    ScriptedProposer whole(replies, 0, -1);
    const auto expected = run(whole);
    ASSERT_TRUE(expected.has_value());
    for (int at : {1, 2, 4, 5}) {
        SCOPED_TRACE(at);
        fs::remove_all(folder_);
        fs::create_directories(folder_);
        const pid_t child = fork();
        if (child == 0) {
            ScriptedProposer dying(replies, 0, at);
            (void)run(dying);
            _exit(0);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status));
        std::string id;
        {
            auto journal = Journal::open(file(), Database::Mode::read);
            id = *journal->find("last");
            ASSERT_EQ(journal->read(id)->steps.size(), static_cast<std::size_t>(at));
        }
        ScriptedProposer again(replies, static_cast<std::size_t>(at), -1);
        const auto resumed = run(again, id);
        ASSERT_TRUE(resumed.has_value());
        EXPECT_EQ(resumed->candidates, expected->candidates);
        // The next attempt is asked exactly as it would have been: technique, number of the attempt, failure, feedback, history, seed.
        const Request &a = again.asked.at(0), &b = whole.asked.at(static_cast<std::size_t>(at));
        EXPECT_EQ(a.technique, b.technique);
        EXPECT_EQ(a.attempt, b.attempt);
        EXPECT_EQ(a.failure, b.failure);
        EXPECT_EQ(a.feedback, b.feedback);
        EXPECT_EQ(a.failed_source, b.failed_source);
        EXPECT_EQ(a.findings, b.findings);
        EXPECT_EQ(a.history, b.history);
        EXPECT_EQ(a.seed, b.seed);
        EXPECT_EQ(a.step, b.step);
    }
}

// A kill between the memory's file and the journal's leaves an observation that no step made; it goes when the run goes on.
TEST_F(LoopTest, WhatTheMemoryKnowsOfARunIsWhatItsStepsObserved) {
    BadProposer proposer;
    options_.budget.candidates = 4;
    const auto path = folder_ / "memory.db";
    std::string id;
    std::size_t known = 0, lessons = 0;
    {
        auto journal = Journal::open(file(), Database::Mode::write);
        auto memory = Memory::open(path);
        auto good = make_builtin_proposer();
        auto outcome = optimize(task_, *good, *journal, *memory, knowledge_, options_, {});
        ASSERT_TRUE(outcome.has_value());
        id = outcome->run;
        known = memory->observations();
        lessons = memory->lessons("reduction", "vector_width", 9).size();
        ASSERT_TRUE(memory->observe({"reduction", "memory", "memory", "vector_width"}, 0.7, "of a step that was lost", id));
        ASSERT_TRUE(memory->observe({"reduction", "memory", "memory", "vector_width"}, 0.2, "of another run", "another"));
    }
    auto journal = Journal::open(file(), Database::Mode::write);
    auto memory = Memory::open(path);
    ASSERT_EQ(memory->observations(), known + 2);
    auto good = make_builtin_proposer();
    ASSERT_TRUE(optimize(task_, *good, *journal, *memory, knowledge_, options_, id).has_value());
    EXPECT_EQ(memory->observations(), known + 1);
    EXPECT_EQ(memory->lessons("reduction", "vector_width", 9).size(), lessons + 1);
    EXPECT_EQ(Memory::open(path)->observations(), known + 1);
}

TEST_F(LoopTest, ARunWithoutStateIsNotResumed) {
    auto proposer = make_builtin_proposer();
    EXPECT_FALSE(run(*proposer, "no-such-run").has_value());
}

}  // namespace loop_test
}  // namespace tw::plan
