// The loop: it ends with a proved kernel without a GPU, survives bad proposers, and goes on after kill -9 wherever it was hit.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

#include "plan/loop.h"
#include "tasks/load.h"

namespace tw::plan {
namespace {

namespace fs = std::filesystem;

tasks::Task small_task() {
    SourceMap sources;
    DiagnosticSink sink;
    auto task = tasks::load_task_text(sources, "t.toml",
                                      "name = \"t\"\ncomputes = \"Y[m, n] = softmax(n, X[m, n])\"\n[sizes]\nM = 64\nN = 256\n[tensors]\nX = { dtype = \"f32\", dims = [\"M\", \"N\"] }\n"
                                      "Y = { dtype = \"f32\", dims = [\"M\", \"N\"] }\n",
                                      sink);
    EXPECT_TRUE(task.has_value());
    return *task;
}

class LoopTest : public ::testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("tilewright-loop-" + std::to_string(getpid()) + "-" + ::testing::UnitTest::GetInstance()->current_test_info()->name());
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
    for (const Step& s : document->steps) if (s.outcome == "accepted") EXPECT_EQ(s.verdict, "proved");
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

TEST_F(LoopTest, ARunWithoutStateIsNotResumed) {
    auto proposer = make_builtin_proposer();
    EXPECT_FALSE(run(*proposer, "no-such-run").has_value());
}

}  // namespace
}  // namespace tw::plan
