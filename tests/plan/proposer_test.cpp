// Proposers against a server that speaks the real wire formats, well and badly (model_server.py), and against programs.
#include "plan/proposers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "base/text.h"
#include "plan/prompt.h"
#include "plan/reference.h"
#include "runtime/temporary_folder.h"
#include "tasks/load.h"

namespace tw::plan {
namespace proposer_test {

using Kind = ProposalFailure::Kind;
using nlohmann::json;

constexpr const char* kKey = "sk-very-secret-0123456789";

constexpr const char* kTask = R"(name = "add"
computes = "C[i] = A[i] + B[i]"
target = "sm_90a"
[sizes]
N = 1000
[tensors]
A = { dtype = "f32", dims = ["N"] }
B = { dtype = "f32", dims = ["N"] }
C = { dtype = "f32", dims = ["N"] }
)";

class Server {
public:
    Server() {
        const std::string command = "exec python3 " TW_SOURCE_DIR "/tests/plan/model_server.py " + log().string();
        int ends[2];
        if (::pipe(ends) != 0) return;
        child_ = ::fork();
        if (child_ == 0) {
            ::dup2(ends[1], 1);
            ::close(ends[0]);
            ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
            ::_exit(1);
        }
        ::close(ends[1]);
        std::string line;
        for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) line += c;
        ::close(ends[0]);
        port_ = line;
    }
    ~Server() {
        if (child_ > 0) {
            ::kill(child_, SIGKILL);
            ::waitpid(child_, nullptr, 0);
        }
    }
    bool up() const { return !port_.empty(); }
    std::string url(const std::string& scenario) const { return "http://127.0.0.1:" + port_ + "/" + scenario; }
    std::filesystem::path log() const { return folder_.path() / "log"; }
    std::vector<json> questions(const std::string& scenario) const {
        std::vector<json> out;
        const auto text = read_file(log());
        if (!text) return out;
        for (const auto line : split_lines(*text))
            if (const json j = json::parse(line, nullptr, false); j.is_object() && j["scenario"] == scenario) out.push_back(j);
        return out;
    }

private:
    testing::TemporaryFolder folder_;
    pid_t child_ = -1;
    std::string port_;
};

Server& server() {
    static Server one;
    return one;
}

struct Asked {
    std::string source, note, failure;
    Kind kind = Kind::malformed;
    std::vector<Exchange> exchanges;
    double seconds = 0;
    bool fine() const { return failure.empty(); }
};

const tasks::Task& task() {
    static SourceMap sources;
    static DiagnosticSink sink;
    static const std::optional<tasks::Task> made = tasks::load_task_text(sources, "add.toml", kTask, sink);
    if (!made) {
        ADD_FAILURE() << render_text(sink, sources);
        ::abort();
    }
    return *made;
}

Request a_request() {
    Request request;
    request.task = &task();
    return request;
}

Asked propose(Proposer& proposer, const Request& request) {
    const auto begin = std::chrono::steady_clock::now();
    auto reply = proposer.propose(request);
    Asked asked;
    asked.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (reply) {
        asked.source = reply->source, asked.note = reply->note, asked.exchanges = reply->exchanges;
    } else {
        asked.failure = reply.error().text.empty() ? "(no text)" : reply.error().text;
        asked.kind = reply.error().kind, asked.exchanges = reply.error().exchanges;
    }
    return asked;
}

ModelOptions model(Wire wire, const std::string& scenario) {
    ModelOptions options;
    options.wire = wire;
    options.base_url = server().url(scenario);
    options.model = "model-1";
    options.key = kKey;
    options.first_wait = 0.01;
    options.attempts = 3;
    options.dollars_per_million_in = 2;
    options.dollars_per_million_out = 10;
    return options;
}

class OverTheWire : public ::testing::TestWithParam<Wire> {
protected:
    void SetUp() override { ASSERT_TRUE(server().up()) << "python3 is needed"; }
    // Scenario names are counted by the server, so each wire format gets its own.
    std::string own(const std::string& scenario) const { return scenario + (GetParam() == Wire::openai ? "-o" : "-a"); }
    Asked ask(const std::string& scenario, const Request& request = a_request()) {
        ModelProposerOptions options;
        options.tool_rounds = 3;
        const char* program = ::getenv("TILEWRIGHT_PROGRAM");
        options.program = program ? program : TW_SOURCE_DIR "/build/bin/tilewright";
        return propose(*make_model_proposer(model(GetParam(), own(scenario)), options), request);
    }
};

INSTANTIATE_TEST_SUITE_P(, OverTheWire, ::testing::Values(Wire::openai, Wire::anthropic),
                         [](const auto& given) { return given.param == Wire::openai ? "OpenAI" : "Anthropic"; });

TEST_P(OverTheWire, AGoodReplyIsTakenWithItsCost) {
    const Asked asked = ask("good");
    ASSERT_TRUE(asked.fine()) << asked.failure;
    EXPECT_EQ(asked.source, *read_file(TW_SOURCE_DIR "/kernels/vector_add.py"));
    EXPECT_EQ(asked.note, "one line about it");
    ASSERT_EQ(asked.exchanges.size(), 1u);
    EXPECT_EQ(asked.exchanges[0].tokens_in, 1000);
    EXPECT_EQ(asked.exchanges[0].tokens_out, 200);
    EXPECT_DOUBLE_EQ(asked.exchanges[0].cost_usd, 0.004);  // 1000 x 2 USD + 200 x 10 USD per million
    EXPECT_EQ(asked.exchanges[0].prompt_version, "system-1 first-2");
    const auto questions = server().questions(own("good"));
    ASSERT_EQ(questions.size(), 1u);
    EXPECT_TRUE(questions[0]["with_key"]);
    const json& body = questions[0]["body"];
    EXPECT_TRUE(body["stream"]);
    EXPECT_EQ(body["model"], "model-1");
    EXPECT_FALSE(body["tools"].empty());
    EXPECT_NE(body.dump().find("C[i] = A[i] + B[i]"), std::string::npos) << "the task is in the prompt";
}

TEST_P(OverTheWire, AKernelWithoutAFenceIsTaken) { EXPECT_TRUE(ask("bare").fine()); }

TEST_P(OverTheWire, BusyServersAreAskedAgain) {
    for (const char* scenario : {"flaky-429", "flaky-500", "flaky-529"}) {
        const Asked asked = ask(scenario);
        EXPECT_TRUE(asked.fine()) << scenario << ": " << asked.failure;
        EXPECT_EQ(server().questions(own(scenario)).size(), 3u);
    }
    EXPECT_TRUE(ask("overloaded").fine() || GetParam() == Wire::openai) << "an error inside the stream";
}

TEST_P(OverTheWire, RetryAfterIsHonoured) {
    const Asked asked = ask("patience");
    EXPECT_TRUE(asked.fine()) << asked.failure;
    EXPECT_GE(asked.seconds, 1.0);
}

TEST_P(OverTheWire, WhatCannotSucceedIsNotTriedAgain) {
    for (const char* scenario : {"status-401", "status-403", "status-404"}) {
        const Asked asked = ask(scenario);
        EXPECT_EQ(asked.kind, Kind::unreachable) << scenario;
        EXPECT_EQ(server().questions(own(scenario)).size(), 1u) << scenario;
        EXPECT_NE(asked.failure.find(scenario + 7), std::string::npos) << asked.failure;
    }
    const Asked asked = ask("status-400");
    EXPECT_EQ(asked.kind, Kind::malformed) << "this question, not every question";
    EXPECT_EQ(server().questions(own("status-400")).size(), 1u);
}

TEST_P(OverTheWire, GivesUpAfterItsAttempts) {
    const Asked asked = ask("status-503");
    EXPECT_EQ(asked.kind, Kind::unreachable);
    EXPECT_EQ(server().questions(own("status-503")).size(), 3u);
    EXPECT_EQ(ask("silence").kind, Kind::unreachable);
}

TEST_P(OverTheWire, UselessRepliesCostOneAttempt) {
    for (const char* scenario : {"truncated", "nonsense", "types", "binary", "endless", "huge", "empty", "prose", "cut", "unclosed"}) {
        const Asked asked = ask(scenario);
        ASSERT_FALSE(asked.fine()) << scenario;
        EXPECT_EQ(asked.kind, Kind::malformed) << scenario << ": " << asked.failure;
        EXPECT_EQ(server().questions(own(scenario)).size(), 1u) << scenario;
        ASSERT_EQ(asked.exchanges.size(), 1u) << scenario;
        EXPECT_FALSE(asked.exchanges[0].failure.empty()) << scenario;
    }
}

TEST_P(OverTheWire, TheModelMayCallToolsFirst) {
    const Asked asked = ask("tools");
    ASSERT_TRUE(asked.fine()) << asked.failure;
    ASSERT_EQ(asked.exchanges.size(), 2u);
    EXPECT_NE(asked.exchanges[0].reply.find("[calls check"), std::string::npos);
    const std::string& told = asked.exchanges[1].prompt;
    EXPECT_NE(told.find("\"verdict\": \"proved\""), std::string::npos) << told.substr(0, 2000);
    EXPECT_NE(told.find("there is no tool 'format_disk'"), std::string::npos);
    EXPECT_NE(told.find("not a JSON object"), std::string::npos);
    EXPECT_NE(told.find("give the kernel's text"), std::string::npos) << "no files of this machine";
    EXPECT_EQ(told.find("root:"), std::string::npos);
    const json second = server().questions(own("tools")).at(1)["body"]["messages"];
    EXPECT_EQ(second.back()["role"], GetParam() == Wire::openai ? "tool" : "user");
}

TEST_P(OverTheWire, ToolCallsAreBounded) {
    const Asked asked = ask("forever");
    EXPECT_EQ(asked.kind, Kind::malformed);
    EXPECT_NE(asked.failure.find("kept calling tools"), std::string::npos) << asked.failure;
    EXPECT_EQ(server().questions(own("forever")).size(), 4u);  // three rounds and the last word
}

TEST_P(OverTheWire, BudgetsAreKept) {
    Request request = a_request();
    request.tokens_left = 100;
    Asked asked = ask("good", request);
    EXPECT_EQ(asked.kind, Kind::out_of_budget);
    request.tokens_left = 0;
    request.dollars_left = 0.001;
    asked = ask("good", request);
    EXPECT_EQ(asked.kind, Kind::out_of_budget) << asked.failure;
    request.dollars_left = 1;
    request.tokens_left = 1 << 20;
    EXPECT_TRUE(ask("good", request).fine());
}

TEST_P(OverTheWire, TheKeyIsNowhereInWhatIsKept) {
    for (const char* scenario : {"good", "tools", "status-400", "status-401", "status-500"}) {
        const Asked asked = ask(scenario);
        std::string all = asked.failure + asked.source + asked.note;
        for (const Exchange& e : asked.exchanges) all += e.prompt + e.reply + e.failure + e.model + e.proposer + e.prompt_version;
        EXPECT_EQ(all.find(kKey), std::string::npos) << scenario;
    }
    // The server echoes the key in its refusal: it must have been cut out, not missing by chance.
    EXPECT_NE(ask("status-400").failure.find("[key]"), std::string::npos);
}

TEST(ModelFromEnvironment, SaysWhatIsMissing) {
    for (const char* name : {"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"}) ::unsetenv(name);
    EXPECT_NE(make_proposer("openai").error().message.find("OPENAI_API_KEY"), std::string::npos);
    ::setenv("OPENAI_API_KEY", kKey, 1);
    EXPECT_NE(make_proposer("openai").error().message.find("OPENAI_MODEL"), std::string::npos);
    EXPECT_TRUE(make_proposer("openai:some-model"));
    ::setenv("OPENAI_API_KEY", "two words", 1);
    EXPECT_EQ(make_proposer("openai:m").error().text().find("two words"), std::string::npos);
    ::unsetenv("OPENAI_API_KEY");
    EXPECT_FALSE(make_proposer("oracle"));
    EXPECT_FALSE(make_proposer("command:"));
    EXPECT_FALSE(make_proposer(""));
}

Asked by_command(const std::string& script, double seconds = 20) {
    return propose(*make_command_proposer({"sh", "-c", script}, seconds), a_request());
}

TEST(CommandProposer, TakesJsonOrAKernelFile) {
    const std::string kernel = TW_SOURCE_DIR "/kernels/vector_add.py";
    EXPECT_EQ(by_command("cat " + kernel).source.find("import tilewright") == std::string::npos, false);
    const Asked json_answer =
        by_command("cat >/dev/null; echo '{\"source\": \"import tilewright as tw\", \"note\": \"mine\", \"cost_usd\": 0.5}'");
    ASSERT_TRUE(json_answer.fine()) << json_answer.failure;
    EXPECT_EQ(json_answer.source, "import tilewright as tw");
    EXPECT_EQ(json_answer.note, "mine");
    EXPECT_DOUBLE_EQ(json_answer.exchanges[0].cost_usd, 0.5);
    // It reads the request.
    const Asked echoed = by_command(
        "python3 -c 'import json, sys; r = json.load(sys.stdin); print(json.dumps({\"source\": r[\"kind\"] + r[\"task\"][:12]}))'");
    EXPECT_EQ(echoed.source, "firstname = \"add\"");
}

TEST(CommandProposer, BadProgramsCostOneAttempt) {
    for (const char* script : {"true", "exit 3", "kill -9 $$", "echo '{\"source\": 3}'", "echo '{\"source\"'", "head -c 300000 /dev/zero",
                               "yes | head -c 9000000"}) {
        const Asked asked = by_command(script);
        EXPECT_FALSE(asked.fine()) << script;
        EXPECT_EQ(asked.kind, Kind::malformed) << script;
    }
    const Asked slow = by_command("sleep 60", 0.3);
    EXPECT_EQ(slow.kind, Kind::malformed);
    EXPECT_LT(slow.seconds, 10);
    EXPECT_EQ(propose(*make_command_proposer({"tilewright-no-such-program"}), a_request()).kind, Kind::unreachable);
    EXPECT_EQ(by_command("echo '{\"not_applicable\": \"no\"}'").kind, Kind::not_applicable);
}

TEST(KernelSourceIn, TakesTheLastWholeBlockWithAKernel) {
    EXPECT_EQ(kernel_source_in("a\n```python\nx\n```\n```py\n@tw.kernel(1)\n```\nb ```"), "@tw.kernel(1)\n");
    EXPECT_EQ(kernel_source_in("```\n@tw.kernel(1)\n```\n```\n@tw.kernel(2)\n```"), "@tw.kernel(2)\n");
    EXPECT_EQ(kernel_source_in("```\n@tw.kernel(1)\n"), "");
    EXPECT_EQ(kernel_source_in("talk about @tw.kernel only"), "");
    EXPECT_EQ(kernel_source_in(""), "");
    EXPECT_EQ(kernel_source_in(std::string("```\n@tw.kernel\0\n```\n", 20)), "");
}

TEST(Prompt, ValuesAreNotLookedAtAgain) {
    EXPECT_EQ(fill_prompt("<!-- version: x-1 -->\n{{a}}|{{#b}}\nB{{b}}\n{{/b}}\n{{c}}", {{"a", "{{b}}"}, {"c", "{{#a}}"}}), "{{b}}|{{#a}}");
    EXPECT_EQ(fill_prompt("{{#b}}\nB{{b}}\n{{/b}}\nend {{", {{"b", "1"}}), "B1\nend {{");
    EXPECT_EQ(prompt_version("<!-- version: x-1 -->\n"), "x-1");
}

TEST(Prompt, TheReferenceIsTrimmedToWhatTheTaskNeeds) {
    Request request = a_request();
    const auto first = prompt_for(request, 3);
    ASSERT_TRUE(first) << first.error().text();
    EXPECT_EQ(first->system.find("## Hopper"), std::string::npos);
    EXPECT_NE(first->system.find("## Register tiles"), std::string::npos);
    request.current_source = "import tilewright as tw\n";
    request.technique = "warp-specialisation";
    request.technique_text = "Split producer and consumers with tw.pipeline and feed tw.wgmma by tw.tma_load.";
    request.stage = Stage::pipeline;
    const auto later = prompt_for(request, 3);
    ASSERT_TRUE(later);
    EXPECT_NE(later->system.find("## Hopper"), std::string::npos);
    EXPECT_NE(later->system.find("### Pipelines"), std::string::npos);
    EXPECT_EQ(later->system.find("## Ampere"), std::string::npos);
    EXPECT_NE(later->user.find("warp-specialisation"), std::string::npos);
    EXPECT_EQ(later->user.find("{{"), std::string::npos) << later->user;
    request.attempt = 1;
    request.failed_source = "def broken(\n";
    request.failure = FailureClass::race;
    request.feedback = "thread 3 of block 0 races";
    const auto repair = prompt_for(request, 3);
    ASSERT_TRUE(repair);
    EXPECT_NE(repair->user.find("race"), std::string::npos);
    EXPECT_NE(repair->user.find("thread 3 of block 0"), std::string::npos);
}

}  // namespace proposer_test
}  // namespace tw::plan
