// The journal keeps what was written, whatever happens to the writer, the file or the disk.
#include "plan/journal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>

#include "base/text.h"
#include "runtime/temporary_folder.h"

namespace tw::plan {
namespace journal_test {

using tw::testing::TemporaryFolder;
using Mode = Database::Mode;

Run a_run(const std::string& task = "gemm") {
    Run run;
    run.task_name = task;
    run.task_text = "name = \"gemm\"\n";
    run.proposer = "builtin";
    run.settings = {{"steps", 40}};
    return run;
}

// The kernel of step n: it grows by a line a step, so that diffs are small and every one is different.
std::string source_of(int n) {
    std::string text = "import tilewright as tw\n";
    for (int i = 0; i <= n; ++i) text += "line_" + std::to_string(i) + " = " + std::to_string(i * i) + "\n";
    return text;
}

Step a_step(int n, const std::string& outcome = "accepted") {
    Step step;
    step.number = n;
    step.parent = n - 1;
    step.stage = n == 0 ? "first" : "memory";
    step.technique = n == 0 ? "" : "vector-width";
    step.outcome = outcome;
    step.verdict = "proved";
    step.source = source_of(n);
    step.microseconds = 1000.0 / (n + 1);
    step.speedup = n + 1.0;
    step.gates = nlohmann::json::array({{{"gate", "check"}, {"passed", true}, {"seconds", 0.25}, {"detail", "12 assertions"}}});
    step.evidence = {{"proof", {{"verdict", "proved"}}}};
    step.state = {{"next", n + 1}};
    step.exchanges.push_back({"openai", "model-1", "optimise-1", "the prompt " + std::to_string(n), "the reply", 100, 20, 0.01, 1.5, ""});
    return step;
}

Journal open_or_fail(const std::filesystem::path& path, Mode mode = Mode::write) {
    auto journal = Journal::open(path, mode);
    EXPECT_TRUE(journal) << (journal ? "" : journal.error().text());
    return std::move(*journal);
}

TEST(Journal, GivesBackWhatWasWritten) {
    TemporaryFolder folder;
    const auto path = folder.path() / "deep" / "journal.db";
    std::string id;
    {
        Journal journal = open_or_fail(path);
        id = *journal.begin(a_run());
        for (int n = 0; n < 3; ++n) ASSERT_TRUE(journal.append(id, a_step(n)));
        ASSERT_TRUE(journal.learn(id, {{"peer", {{"name", "cuBLASLt"}, {"microseconds", 200.0}}}}));
        ASSERT_TRUE(journal.learn(id, {{"device", "H200"}}));
        ASSERT_TRUE(journal.finish(id, "plateau"));
    }
    Journal journal = open_or_fail(path, Mode::read);
    const auto document = journal.read(id);
    ASSERT_TRUE(document);
    EXPECT_EQ(document->run.state, "finished");
    EXPECT_EQ(document->run.reason, "plateau");
    EXPECT_EQ(document->run.facts["peer"]["name"], "cuBLASLt");
    EXPECT_EQ(document->run.facts["device"], "H200");
    ASSERT_EQ(document->steps.size(), 3u);
    const Step& last = document->steps[2];
    EXPECT_EQ(last.source, source_of(2));
    EXPECT_EQ(last.diff, "@@ -1,3 +1,4 @@\n import tilewright as tw\n line_0 = 0\n line_1 = 1\n+line_2 = 4\n");
    EXPECT_EQ(last.state["next"], 3);
    EXPECT_EQ(last.gates[0]["gate"], "check");
    ASSERT_EQ(last.exchanges.size(), 1u);
    EXPECT_EQ(last.exchanges[0].prompt, "the prompt 2");
    EXPECT_EQ(last.tokens(), 120);
    const auto runs = journal.runs();
    ASSERT_TRUE(runs);
    ASSERT_EQ(runs->size(), 1u);
    EXPECT_EQ((*runs)[0].steps, 3);
    EXPECT_DOUBLE_EQ(*(*runs)[0].best_speedup, 3.0);
    EXPECT_EQ((*runs)[0].tokens, 360);
}

TEST(Journal, FindsARunByTheBeginningOfItsName) {
    TemporaryFolder folder;
    Journal journal = open_or_fail(folder.path() / "j.db");
    const std::string gemm = *journal.begin(a_run("gemm")), softmax = *journal.begin(a_run("softmax"));
    EXPECT_EQ(*journal.find("soft"), softmax);
    EXPECT_EQ(*journal.find(gemm), gemm);
    EXPECT_TRUE(journal.find("last"));
    EXPECT_FALSE(journal.find("rope"));
    ASSERT_TRUE(journal.begin(a_run("gemm")));
    const auto two = journal.find("gemm");
    ASSERT_FALSE(two);
    EXPECT_NE(two.error().message.find("2 runs begin with"), std::string::npos);
}

TEST(Journal, TaskNamesBecomeHarmlessIds) {
    TemporaryFolder folder;
    Journal journal = open_or_fail(folder.path() / "j.db");
    const std::string id = *journal.begin(a_run("../../etc/passwd; rm -rf \n\x1b[31m"));
    EXPECT_EQ(id.find_first_of("/.; \n\x1b"), std::string::npos) << id;
    EXPECT_TRUE(RunLock::take(journal, id));
}

TEST(Journal, RefusesAStepOutOfOrder) {
    TemporaryFolder folder;
    Journal journal = open_or_fail(folder.path() / "j.db");
    const std::string id = *journal.begin(a_run());
    EXPECT_FALSE(journal.append(id, a_step(1)));
    EXPECT_TRUE(journal.append(id, a_step(0)));
    EXPECT_FALSE(journal.append(id, a_step(0)));
    EXPECT_FALSE(journal.append("no such run", a_step(0)));
}

TEST(Journal, TextsMayHoldAnything) {
    TemporaryFolder folder;
    Journal journal = open_or_fail(folder.path() / "j.db");
    const std::string id = *journal.begin(a_run());
    Step step = a_step(0);
    step.message = "'; DROP TABLE steps; --";
    step.exchanges[0].reply = std::string("zero \0 and \xff\xfe not UTF-8", 26);
    step.evidence = {{"text", "\xff"}};
    ASSERT_TRUE(journal.append(id, step));
    const auto document = journal.read(id);
    ASSERT_TRUE(document);
    EXPECT_EQ(document->steps[0].message, step.message);
    EXPECT_EQ(document->steps[0].exchanges[0].reply, step.exchanges[0].reply);
    EXPECT_NO_THROW(to_json(*document, false).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

TEST(Journal, KillAtAnyMomentLosesAtMostTheStepInFlight) {
    const unsigned seed = 20261115;
    std::mt19937 random(seed);
    SCOPED_TRACE(seed);
    TemporaryFolder folder;
    const auto path = folder.path() / "j.db";
    std::string id;
    {
        Journal journal = open_or_fail(path);
        id = *journal.begin(a_run());
    }
    int done_before = 0, most_in_one_round = 0;
    for (int round = 0; round < 24; ++round) {
        int told[2];
        ASSERT_EQ(::pipe(told), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            // The writer says which step it has finished after `append` came back: those may never be lost.
            auto journal = Journal::open(path, Mode::write);
            if (!journal) ::_exit(3);
            auto lock = RunLock::take(*journal, id);
            if (!lock) ::_exit(4);
            const auto known = journal->read(id);
            if (!known) ::_exit(5);
            for (int n = static_cast<int>(known->steps.size());; ++n) {
                if (!journal->append(id, a_step(n))) ::_exit(6);
                if (::write(told[1], &n, sizeof n) != sizeof n) ::_exit(7);
            }
        }
        ::close(told[1]);
        // Every other round waits for a step, so that something is written however busy the machine is; the others may hit the start.
        int last = done_before, n = 0;
        if (round % 2 == 1) {
            ASSERT_EQ(::read(told[0], &n, sizeof n), static_cast<ssize_t>(sizeof n)) << "the writer ended by itself";
            last = n + 1;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
        ::kill(child, SIGKILL);
        int status = 0;
        ::waitpid(child, &status, 0);
        ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself with status " << WEXITSTATUS(status);
        while (::read(told[0], &n, sizeof n) == sizeof n) last = n + 1;
        ::close(told[0]);
        Journal journal = open_or_fail(path);
        const auto document = journal.read(id);
        ASSERT_TRUE(document) << document.error().text();
        const int kept = static_cast<int>(document->steps.size());
        ASSERT_GE(kept, last) << "round " << round << ": a finished step was lost";
        ASSERT_LE(kept, last + 1) << "round " << round << ": a step that was never begun";
        for (const Step& step : document->steps) {
            ASSERT_EQ(step.source, source_of(step.number));
            ASSERT_EQ(step.exchanges.size(), 1u) << "half a step";
        }
        const auto runs = journal.runs();
        ASSERT_TRUE(runs);
        EXPECT_TRUE((*runs)[0].interrupted);
        most_in_one_round = std::max(most_in_one_round, kept - done_before);
        done_before = kept;
    }
    EXPECT_GE(done_before, 12);
}

TEST(Journal, SeveralProcessesWriteTheirOwnRuns) {
    TemporaryFolder folder;
    const auto path = folder.path() / "j.db";
    std::vector<pid_t> children;
    for (int c = 0; c < 4; ++c) {
        const pid_t child = ::fork();
        if (child == 0) {
            auto journal = Journal::open(path, Mode::write);
            if (!journal) ::_exit(1);
            auto id = journal->begin(a_run("task" + std::to_string(c)));
            if (!id) ::_exit(2);
            for (int n = 0; n < 20; ++n)
                if (!journal->append(*id, a_step(n))) ::_exit(3);
            ::_exit(journal->finish(*id, "done") ? 0 : 4);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        EXPECT_TRUE(WIFEXITED(status));
        EXPECT_EQ(WEXITSTATUS(status), 0);
    }
    Journal journal = open_or_fail(path, Mode::read);
    const auto runs = journal.runs();
    ASSERT_TRUE(runs);
    EXPECT_EQ(runs->size(), 4u);
    for (const auto& run : *runs) EXPECT_EQ(run.steps, 20) << run.run.id;
}

TEST(Journal, OneProcessWorksOnARun) {
    TemporaryFolder folder;
    Journal journal = open_or_fail(folder.path() / "j.db");
    const std::string id = *journal.begin(a_run());
    {
        auto lock = RunLock::take(journal, id);
        ASSERT_TRUE(lock);
        const auto second = RunLock::take(journal, id);
        ASSERT_FALSE(second);
        EXPECT_NE(second.error().message.find("another process"), std::string::npos);
        EXPECT_FALSE((*journal.runs())[0].interrupted);
    }
    EXPECT_TRUE((*journal.runs())[0].interrupted);
    EXPECT_TRUE(RunLock::take(journal, id));
}

TEST(Journal, ADamagedFileIsRefusedAndLeftAsItIs) {
    TemporaryFolder folder;
    const auto path = folder.path() / "j.db";
    {
        Journal journal = open_or_fail(path);
        const std::string id = *journal.begin(a_run());
        for (int n = 0; n < 50; ++n) ASSERT_TRUE(journal.append(id, a_step(n)));
    }
    std::string bytes = *read_file(path);
    const auto with = [&](const std::string& content) {
        std::ofstream(path, std::ios::binary) << content;
        std::string said;
        for (const Mode mode : {Mode::read, Mode::write}) {
            auto journal = Journal::open(path, mode);
            if (!journal) {
                said = journal.error().text();
                continue;
            }
            auto runs = journal->runs();
            if (!runs) said = runs.error().text();
            else if (runs->empty()) continue;
            else if (auto read = journal->read((*runs)[0].run.id); !read) said = read.error().text();
        }
        return said;
    };
    EXPECT_NE(with("this is a text file, long enough to be read as a header of a database, but it is none at all.....").find("damaged"),
              std::string::npos);
    EXPECT_EQ(*read_file(path), "this is a text file, long enough to be read as a header of a database, but it is none at all.....");
    std::string holed = bytes;
    for (std::size_t i = 4096; i < holed.size(); i += 3) holed[i] = static_cast<char>(i * 7);
    EXPECT_NE(with(holed).find("damaged"), std::string::npos);
    EXPECT_NE(with(bytes.substr(0, bytes.size() / 2)).find("damaged"), std::string::npos);
    // Any single page overwritten: either an answer or a clear refusal, never a crash.
    std::mt19937 random(7);
    for (int round = 0; round < 40; ++round) {
        std::string hit = bytes;
        for (int i = 0; i < 64; ++i) hit[random() % hit.size()] = static_cast<char>(random());
        with(hit);
    }
}

TEST(Journal, AnotherProgramsDatabaseAndANewerSchemaAreRefused) {
    TemporaryFolder folder;
    const char* const other_steps[] = {"CREATE TABLE wine(name TEXT)"};
    ASSERT_TRUE(Database::open(folder.path() / "wine.db", Mode::write, {7, 1, other_steps}));
    const auto wine = Journal::open(folder.path() / "wine.db", Mode::write);
    ASSERT_FALSE(wine);
    EXPECT_NE(wine.error().message.find("another program"), std::string::npos);
    {
        auto database = Database::open(folder.path() / "j.db", Mode::write, {0x54574a4c, 1, other_steps});
        ASSERT_TRUE(database);
        ASSERT_TRUE(database->execute("PRAGMA user_version = 99"));
    }
    const auto newer = Journal::open(folder.path() / "j.db", Mode::read);
    ASSERT_FALSE(newer);
    EXPECT_NE(newer.error().message.find("newer Tilewright"), std::string::npos);
}

// A full disk, by the limit on file size that the child sets itself: SQLite sees the same refusal of a write.
TEST(Journal, AFullDiskLosesNothingThatWasWritten) {
    TemporaryFolder folder;
    const auto path = folder.path() / "j.db";
    std::string id;
    {
        Journal journal = open_or_fail(path);
        id = *journal.begin(a_run());
        ASSERT_TRUE(journal.append(id, a_step(0)));
    }
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit bound{300000, 300000};
        ::setrlimit(RLIMIT_FSIZE, &bound);
        auto journal = Journal::open(path, Mode::write);
        if (!journal) ::_exit(1);
        for (int n = 1; n < 1000; ++n) {
            Step step = a_step(n);
            step.message = std::string(5000, 'x');
            if (auto done = journal->append(id, step); !done) {
                const std::string said = done.error().text();
                // The journal can still be read by the process that could not write.
                const auto kept = journal->read(id);
                ::_exit(kept && static_cast<int>(kept->steps.size()) == n && (said.find("disk") != std::string::npos) ? 0 : 2);
            }
        }
        ::_exit(3);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    Journal journal = open_or_fail(path);
    const auto document = journal.read(id);
    ASSERT_TRUE(document);
    EXPECT_GT(document->steps.size(), 1u);
    // With space again the run goes on.
    EXPECT_TRUE(journal.append(id, a_step(static_cast<int>(document->steps.size()))));
}

TEST(Journal, AReadOnlyFolderCanBeReadAndSaysWhyItCannotBeWritten) {
    TemporaryFolder folder;
    const auto path = folder.path() / "j.db";
    {
        Journal journal = open_or_fail(path);
        const std::string id = *journal.begin(a_run());
        ASSERT_TRUE(journal.append(id, a_step(0)));
    }
    ::chmod(path.c_str(), 0444);
    ::chmod(folder.path().c_str(), 0555);
    const pid_t child = ::fork();
    if (child == 0) {
        if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(9);  // root ignores permissions
        auto reading = Journal::open(path, Mode::read);
        if (!reading || !reading->runs() || reading->runs()->size() != 1) ::_exit(1);
        auto writing = Journal::open(path, Mode::write);
        const std::string said = writing ? writing->begin(a_run()).error().text() : writing.error().text();
        if (said.find("TILEWRIGHT_STATE") == std::string::npos) ::_exit(2);
        auto elsewhere = Journal::open(folder.path() / "deeper" / "j.db", Mode::write);
        ::_exit(elsewhere || elsewhere.error().fix.find("TILEWRIGHT_STATE") == std::string::npos ? 3 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ::chmod(folder.path().c_str(), 0755);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Journal, AnExportedRunComesBack) {
    TemporaryFolder folder;
    Journal journal = open_or_fail(folder.path() / "j.db");
    const std::string id = *journal.begin(a_run());
    for (int n = 0; n < 4; ++n) ASSERT_TRUE(journal.append(id, a_step(n, n == 2 ? "failed" : "accepted")));
    const RunDocument document = *journal.read(id);
    for (const bool compact : {false, true}) {
        const auto exported = to_json(document, compact);
        EXPECT_EQ(exported["steps"][2].contains("source"), !compact);
        const auto again = run_from_json(nlohmann::json::parse(exported.dump()));
        ASSERT_TRUE(again) << again.error().text();
        ASSERT_EQ(again->steps.size(), 4u);
        for (int n = 0; n < 4; ++n) {
            EXPECT_EQ(again->steps[static_cast<std::size_t>(n)].source, source_of(n));
            EXPECT_EQ(again->steps[static_cast<std::size_t>(n)].microseconds, document.steps[static_cast<std::size_t>(n)].microseconds);
        }
        EXPECT_EQ(again->run.id, id);
    }
    EXPECT_LT(to_json(document, true).dump().size(), to_json(document, false).dump().size());
}

TEST(Journal, AnExportedFileThatWasEditedIsRefusedInWords) {
    using nlohmann::json;
    for (const json& bad : {json(), json(3), json::array(), json{{"kind", "else"}}, json{{"kind", "tilewright run"}, {"schema", 2}},
                            json{{"kind", "tilewright run"}, {"schema", 1}, {"steps", {1, 2}}},
                            json{{"kind", "tilewright run"}, {"schema", 1}, {"steps", {{{"number", 0}, {"parent", 5}}}}},
                            json{{"kind", "tilewright run"},
                                 {"schema", 1},
                                 {"steps", {{{"number", 0}}, {{"number", 1}, {"parent", 0}, {"diff", "@@ -9,1 +9,1 @@\n-x\n"}}}}}}) {
        const auto read = run_from_json(bad);
        ASSERT_FALSE(read) << bad;
        EXPECT_FALSE(read.error().message.empty());
    }
    // Wrong types are taken as absent.
    EXPECT_TRUE(run_from_json(json{
        {"kind", "tilewright run"}, {"schema", 1}, {"run", 3}, {"steps", {{{"number", 0}, {"source", 5}, {"microseconds", "fast"}}}}}));
}

}  // namespace journal_test
}  // namespace tw::plan
