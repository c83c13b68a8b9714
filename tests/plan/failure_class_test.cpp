// One planted fault of each kind: the class that the static gates give it, and that the repair asked for is that class's own.
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "plan/feedback.h"
#include "plan/gates.h"
#include "tasks/load.h"

namespace tw::plan {
namespace failure_class_test {

const char* const kHead =
    "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n"
    "@tw.kernel(target=\"sm_90a\", computes=\"Y[n, m] = X[m, n]\", threads=128)\n"
    "def turn(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):\n"
    "    bm, bn = tw.grid(tw.cdiv(M, 32), tw.cdiv(N, 32))\n"
    "    s = tw.shared(f32, (32, 32), pad=1)\n";
const char* const kRight =
    "    tw.store(s, tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0))\n    tw.sync()\n    tw.store(Y[bn * 32, bm * "
    "32], tw.load(s.T))\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), by);
}

Judgement judge(const std::string& source, double gate_seconds = 5) {
    SourceMap sources;
    DiagnosticSink sink;
    const auto task = tasks::load_task_text(sources, "turn.toml",
                                            "name = \"turn\"\ncomputes = \"Y[n, m] = X[m, n]\"\n[sizes]\nM = 256\nN = 256\n[tensors]\nX = "
                                            "{ dtype = \"f32\", dims = [\"M\", \"N\"] }\n"
                                            "Y = { dtype = \"f32\", dims = [\"N\", \"M\"] }\n",
                                            sink);
    EXPECT_TRUE(task.has_value());
    GateOptions options;
    options.use_gpu = false;
    options.gate_seconds = gate_seconds;
    return judge_static(*task, source, options);
}

struct Planted {
    const char* name;
    std::string source;
    FailureClass wanted;
};

TEST(FailureClass, EveryPlantedFaultHasItsOwn) {
    const std::string right = std::string(kHead) + kRight;
    ASSERT_EQ(judge(right).failure, FailureClass::none) << judge(right).message;
    const Planted all[] = {
        {"an open bracket", right + "    x = (\n", FailureClass::syntax},
        {"a function that does not exist", right + "    tw.nothing(s)\n", FailureClass::type},
        {"another computation", replaced(right, "Y[n, m] = X[m, n]", "Y[n, m] = X[m, n] + X[m, n]"), FailureClass::specification},
        {"tiles of rows and columns exchanged",
         replaced(right, "X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32]", "X[bn * 32 : bn * 32 + 32, bm * 32 : bm * 32 + 32]"),
         FailureClass::invariant},
        {"no barrier", replaced(right, "    tw.sync()\n", ""), FailureClass::race},
        {"no fill at the ragged end", replaced(right, ", fill=0.0", ""), FailureClass::bounds},
        {"a wait that nobody ends", right + "    never = tw.mbarrier(1)\n    never[0].wait(0)\n", FailureClass::deadlock},
        {"a launch without blocks' worth of memory",
         replaced(right, "s = tw.shared(f32, (32, 32), pad=1)",
                  "big = tw.shared(f32, (1024, 128))\n    s = tw.shared(f32, (32, 32), pad=1)"),
         FailureClass::type},
    };
    std::set<std::string> requests;
    for (const Planted& p : all) {
        const Judgement j = judge(p.source);
        EXPECT_EQ(name_of(j.failure), name_of(p.wanted)) << p.name << ": " << j.message;
        EXPECT_FALSE(j.feedback.empty()) << p.name;
        requests.insert(std::string(request_for(j.failure)));
    }
    EXPECT_EQ(requests.size(), 7u);
}

// Each kernel does what it says, but the launches together do not what the program says.
TEST(FailureClass, AProgramWhoseLaunchesDoNotFitIsRefused) {
    const std::string kernels =
        "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n"
        "@tw.kernel(target=\"sm_90a\", computes=\"P[m, n] = X[m, n] * 2\", threads=128)\n"
        "def twice(X: tw.Tensor(f32, M, N), P: tw.Tensor(f32, M, N)):\n"
        "    bn, m = tw.grid(tw.cdiv(N, 128), M)\n    tw.store(P[m, bn * 128 : bn * 128 + 128], tw.load(X[m, bn * 128 : bn * 128 + 128], "
        "fill=0.0) * 2.0)\n\n\n"
        "@tw.kernel(target=\"sm_90a\", computes=\"Y[n, m] = P[m, n] * FACTOR\", threads=128)\n"
        "def back(P: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):\n"
        "    bm, n = tw.grid(tw.cdiv(M, 128), N)\n    tw.store(Y[n, bm * 128 : bm * 128 + 128], tw.load(P[bm * 128 : bm * 128 + 128, n], "
        "fill=0.0) * FACTOR)\n\n\n"
        "@tw.program(computes=\"Y[n, m] = X[m, n]\")\n"
        "def turn(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):\n    P = tw.buffer(f32, M, N)\n    twice(X, P)\n    back(P, Y)\n";
    const auto with = [&](const std::string& factor) { return replaced(replaced(kernels, "FACTOR", factor), "FACTOR", factor); };
    const Judgement right = judge(with("0.5"));
    EXPECT_EQ(name_of(right.failure), "none") << right.message;
    const Judgement wrong = judge(with("0.25"));
    EXPECT_NE(name_of(wrong.failure), "none");
    EXPECT_NE(wrong.verdict, "proved");
}

TEST(FailureClass, NamesAreReadBack) {
    for (int i = 0; i <= static_cast<int>(FailureClass::slower); ++i) {
        FailureClass back{};
        ASSERT_TRUE(parse_failure_class(name_of(static_cast<FailureClass>(i)), back));
        EXPECT_EQ(static_cast<int>(back), i);
        EXPECT_TRUE(i == 0 || !request_for(back).empty());
    }
}

// A proof that takes too long costs one candidate a few seconds, and the gates before it are told.
TEST(FailureClass, AGateThatTakesTooLongIsGivenUp) {
    std::string body = kRight;
    for (int i = 0; i < 400; ++i) body += "    tw.sync()\n    tw.store(s, tw.load(s.T) + " + std::to_string(i) + ".0)\n";
    const auto began = std::chrono::steady_clock::now();
    const Judgement j = judge(std::string(kHead) + body, 0.05);
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(), 20);
    EXPECT_EQ(j.failure, FailureClass::timeout) << j.message;
    EXPECT_NE(j.message.find("gave up: the gate `"), std::string::npos) << j.message;
    ASSERT_FALSE(j.gates.empty());
    EXPECT_EQ(j.gates.back()["passed"], false);
}

}  // namespace failure_class_test
}  // namespace tw::plan
