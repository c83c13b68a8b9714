// Tasks with `language = "cute"`: the built-in proposer answers in CuTe, and the gates before the compiler judge such text.
#include <gtest/gtest.h>

#include "plan/gates.h"
#include "plan/proposer.h"
#include "tasks/load.h"

namespace tw::plan::cute_gates_test {
namespace {

tasks::Task task_of(const std::string& computes, const std::string& sizes, const std::string& tensors) {
    SourceMap sources;
    DiagnosticSink sink;
    auto task = tasks::load_task_text(
        sources, "t.toml",
        "name = \"t\"\nlanguage = \"cute\"\ncomputes = \"" + computes + "\"\n[sizes]\n" + sizes + "\n[tensors]\n" + tensors, sink);
    EXPECT_TRUE(task) << render_text(sink, sources);
    return task ? *task : tasks::Task{};
}

tasks::Task silu() {
    return task_of("Y[m, n] = silu(X[m, n])", "M = 256\nN = 1024",
                   "X = { dtype = \"f32\", dims = [\"M\", \"N\"] }\nY = { dtype = \"f32\", dims = [\"M\", \"N\"] }");
}
tasks::Task product() {
    return task_of("C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))", "M = 512\nN = 512\nK = 256",
                   "A = { dtype = \"bf16\", dims = [\"M\", \"K\"] }\nB = { dtype = \"bf16\", dims = [\"N\", \"K\"] }\nC = { dtype = "
                   "\"bf16\", dims = [\"M\", \"N\"] }");
}

Judgement judged(const tasks::Task& task, const std::string& source) {
    GateOptions options;
    options.use_gpu = false;
    options.compile = false;
    return judge_static(task, source, options);
}

std::string first_of(const tasks::Task& task) {
    const auto proposer = make_builtin_proposer();
    Request request;
    request.task = &task;
    auto reply = proposer->propose(request);
    EXPECT_TRUE(reply) << reply.error().text;
    return reply ? reply->source : "";
}

TEST(CuteGates, TheBuiltInProposerStartsInCute) {
    for (const tasks::Task& task : {silu(), product()}) {
        const std::string source = first_of(task);
        EXPECT_NE(source.find("#include <cute/tensor.hpp>"), std::string::npos);
        EXPECT_NE(source.find("// sketch: "), std::string::npos);
        EXPECT_EQ(source.find("cudaStream_t"), std::string::npos);
        const Judgement j = judged(task, source);
        EXPECT_EQ(j.failure, FailureClass::none) << j.feedback;
        EXPECT_EQ(j.verdict, "not_proved");  // of the text; the tile kernel is proved
        EXPECT_GT(j.obligations, 0);
        EXPECT_TRUE(j.proof.contains("printed_from"));
    }
}

// An f32 product, its operands and result as TOML: `a` and `b` in the order of their axes.
tasks::Task f32_product(const std::string& computes, const std::string& sizes, const std::string& a, const std::string& b,
                        const std::string& c = "\"M\", \"N\"", const std::string& more = "") {
    const auto tensor = [](const std::string& name, const std::string& dims) {
        return name + " = { dtype = \"f32\", dims = [" + dims + "] }\n";
    };
    return task_of(computes, sizes, tensor("A", a) + tensor("W", b) + more + tensor("C", c));
}

// Every way in which operands lie, batches, rows that are no whole vectors, few results of a long sum, something after the sum: a program
// on the matrix unit from the first candidate on, proved as tile kernels.
TEST(CuteGates, F32ProductsStartOnTheMatrixUnitInEveryForm) {
    const std::string mk = "\"M\", \"K\"", km = "\"K\", \"M\"", kn = "\"K\", \"N\"", nk = "\"N\", \"K\"",
                      square = "M = 2048\nN = 2048\nK = 512";
    const std::pair<const char*, tasks::Task> forms[] = {
        {"NN", f32_product("C[m, n] = sum(k, A[m, k] * W[k, n])", square, mk, kn)},
        {"TT", f32_product("C[m, n] = sum(k, A[k, m] * W[n, k])", square, km, nk)},
        {"NT with bias", f32_product("C[m, n] = relu(sum(k, A[m, k] * W[n, k]) + bias[n])", square, mk, nk, "\"M\", \"N\"",
                                     "bias = { dtype = \"f32\", dims = [\"N\"] }\n")},
        {"odd rows", f32_product("C[m, n] = sum(k, A[m, k] * W[k, n])", "M = 1025\nN = 993\nK = 811", mk, kn)},
        {"batches", f32_product("C[b, m, n] = sum(k, A[b, m, k] * W[b, k, n])", "B = 16\nM = 512\nN = 512\nK = 256", "\"B\", " + mk,
                                "\"B\", " + kn, "\"B\", \"M\", \"N\"")},
        {"one W for all", f32_product("C[b, m, n] = sum(k, A[b, m, k] * W[k, n])", "B = 16\nM = 512\nN = 512\nK = 256", "\"B\", " + mk, kn,
                                      "\"B\", \"M\", \"N\"")},
        {"long sum", f32_product("C[m, n] = sum(k, A[m, k] * W[k, n])", "M = 256\nN = 256\nK = 65536", mk, kn)},
    };
    for (const auto& [name, task] : forms) {
        const std::string source = first_of(task);
        EXPECT_NE(source.find("mma=split"), std::string::npos) << name << "\n" << source.substr(0, 300);
        EXPECT_NE(source.find("// program\n"), std::string::npos) << name;
        EXPECT_NE(source.find("SM90_64x128x16_F32F16F16"), std::string::npos) << name;
        EXPECT_EQ(source.find("splits=") != std::string::npos, std::string(name) == "long sum") << name;
        const Judgement j = judged(task, source);
        EXPECT_EQ(j.failure, FailureClass::none) << name << "\n" << j.feedback;
        EXPECT_GT(j.obligations, 0) << name;
        EXPECT_TRUE(j.proof.contains("printed_from")) << name;
    }
}

// Too little work for the launches, and what the parts are not for: the plain kernel.
TEST(CuteGates, SmallF32ProductsAreOneKernel) {
    const std::string source =
        first_of(f32_product("C[m, n] = sum(k, A[m, k] * W[k, n])", "M = 128\nN = 128\nK = 64", "\"M\", \"K\"", "\"K\", \"N\""));
    EXPECT_NE(source.find("mma=fma"), std::string::npos) << source.substr(0, 300);
    EXPECT_EQ(source.find("// program"), std::string::npos);
}

TEST(CuteGates, ATechniqueLeadsFromCuteToCute) {
    const tasks::Task task = product();
    const auto proposer = make_builtin_proposer();
    Request request;
    request.task = &task;
    auto first = proposer->propose(request);
    ASSERT_TRUE(first);
    request.technique = "matrix_unit";
    request.current_source = request.best_source = first->source;
    auto next = proposer->propose(request);
    ASSERT_TRUE(next) << next.error().text;
    EXPECT_NE(next->source.find("TiledMMA"), std::string::npos) << next->source.substr(0, 400);
    EXPECT_EQ(judged(task, next->source).failure, FailureClass::none);
}

// What is not letter for letter our printer's has no proof to lean on.
TEST(CuteGates, ChangedTextIsNotCalledPrinted) {
    const tasks::Task task = silu();
    const Judgement j = judged(task, first_of(task) + "// changed\n");
    EXPECT_EQ(j.failure, FailureClass::none) << j.feedback;
    EXPECT_EQ(j.obligations, 0);
    EXPECT_FALSE(j.proof.contains("printed_from"));
}

TEST(CuteGates, RefusalsHaveTheirClassAndPlace) {
    const tasks::Task task = silu();
    const std::string launch = "// launch k\n//   grid M\n//   threads 128\n",
                      kernel = "extern \"C\" __global__ void k(float const* X, float* Y, int M, int N) {";
    const std::string head = "#include <cute/tensor.hpp>\nusing namespace cute;\n" + launch + kernel;
    Judgement j = judged(task, "#include <fstream>\n" + launch + kernel + "}\n");
    EXPECT_EQ(j.failure, FailureClass::syntax);
    EXPECT_NE(j.feedback.find("Line 1"), std::string::npos) << j.feedback;
    j = judged(task, "#include <cute/tensor.hpp>\n// launch k\n//   grid M\n//   threads 128\n//   when N % 4096 == 0\n" + kernel + "}\n");
    EXPECT_EQ(j.failure, FailureClass::specification) << j.feedback;
    // Our algebra, before any compiler: two coordinates of a shared tensor that meet.
    j = judged(task, head +
                         "\n  __shared__ float s[1024];\n  Tensor t = make_tensor(make_smem_ptr(s), Layout<Shape<_32, _32>, Stride<_16, "
                         "_1>>{});\n  t(0, 0) = X[0];\n}\n");
    EXPECT_EQ(j.failure, FailureClass::type) << j.feedback;
    EXPECT_NE(j.feedback.find("TW4602"), std::string::npos) << j.feedback;
    EXPECT_EQ(j.gates.back().value("gate", ""), "check");
}

}  // namespace
}  // namespace tw::plan::cute_gates_test
