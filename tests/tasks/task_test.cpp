// Task files: what is read, what is refused, how tasks are classed and bounded.
#include <gtest/gtest.h>

#include "tasks/classify.h"
#include "tasks/extent.h"
#include "tasks/line.h"
#include "tasks/load.h"

namespace tw::tasks {
namespace task_test {

std::optional<Task> load(const std::string& text, DiagnosticSink& sink) {
    SourceMap sources;
    return load_task_text(sources, "t.toml", text, sink);
}

Task good(const std::string& computes, const std::string& tensors, const std::string& sizes, const std::string& more = "") {
    DiagnosticSink sink;
    auto task = load("name = \"t\"\ncomputes = \"" + computes + "\"\n" + more + "[sizes]\n" + sizes + "\n[tensors]\n" + tensors, sink);
    EXPECT_TRUE(task.has_value()) << computes;
    return task ? *task : Task{};
}

const char* kMatrix = "X = { dtype = \"f32\", dims = [\"M\", \"N\"] }\nY = { dtype = \"f32\", dims = [\"M\", \"N\"] }\n";

TEST(Task, ReadsEverythingItIsGiven) {
    DiagnosticSink sink;
    const auto task = load(
        "name = \"norm\"\ncomputes = \"Y[m, n] = X[m, n] * rsqrt(mean(j, X[m, j] ** 2) + eps)\"\ntarget = \"sm_80\"\n[sizes]\nM = 8\nN = "
        "16\n[tensors]\n" +
            std::string(kMatrix) +
            "[scalars]\neps = { dtype = \"f32\", value = 1e-5 }\n[tolerance]\nY = 0.01\n[[held_out]]\nM = 3\nN = 5\n",
        sink);
    ASSERT_TRUE(task.has_value());
    EXPECT_EQ(task->workload, WorkloadClass::reduction);
    EXPECT_EQ(task->tensors.size(), 2u);
    EXPECT_EQ(task->tensors[0].name, "X");
    EXPECT_DOUBLE_EQ(task->scalars[0].value, 1e-5);
    EXPECT_DOUBLE_EQ(task->tolerance.at("Y"), 0.01);
    EXPECT_EQ(task->held_out.size(), 1u);
}

TEST(Task, ClassIsFoundFromWhatIsComputed) {
    EXPECT_EQ(good("Y[m, n] = relu(X[m, n])", kMatrix, "M = 8\nN = 8").workload, WorkloadClass::elementwise);
    EXPECT_EQ(good("Y[m, n] = softmax(n, X[m, n])", kMatrix, "M = 8\nN = 8").workload, WorkloadClass::reduction);
    EXPECT_EQ(good("Y[m, n] = sum(j in 0:n+1, X[m, j])", kMatrix, "M = 8\nN = 8").workload, WorkloadClass::scan);
    const char* product =
        "A = { dtype = \"bf16\", dims = [\"M\", \"K\"] }\nB = { dtype = \"bf16\", dims = [\"N\", \"K\"] }\nC = { dtype = \"bf16\", dims = "
        "[\"M\", \"N\"] }\n";
    EXPECT_EQ(good("C[m, n] = bf16(relu(sum(k, f32(A[m, k]) * f32(B[n, k]))))", product, "M = 8\nN = 8\nK = 8").workload,
              WorkloadClass::contraction);
    const char* attention =
        "Q = { dtype = \"bf16\", dims = [\"S\", 64] }\nK = { dtype = \"bf16\", dims = [\"S\", 64] }\nV = { dtype = \"bf16\", dims = "
        "[\"S\", 64] }\nO = { dtype = \"bf16\", dims = [\"S\", 64] }\n";
    EXPECT_EQ(
        good(
            "let s[i, j] = sum(e, f32(Q[i, e]) * f32(K[j, e])); O[i, d] = bf16(sum(j, exp(s[i, j]) * f32(V[j, d])) / sum(j, exp(s[i, j])))",
            attention, "S = 128")
            .workload,
        WorkloadClass::attention);
}

TEST(Task, RooflineOfAProductAndOfAMap) {
    // 2 * 4096^3 operations at 989.5 TF/s: 138.9 us.
    const char* product =
        "A = { dtype = \"bf16\", dims = [\"M\", \"K\"] }\nB = { dtype = \"bf16\", dims = [\"N\", \"K\"] }\nC = { dtype = \"bf16\", dims = "
        "[\"M\", \"N\"] }\n";
    const Task gemm = good("C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))", product, "M = 4096\nN = 4096\nK = 4096");
    EXPECT_NEAR(roofline(gemm, machine_of("sm_90a")).seconds * 1e6, 138.9, 0.1);
    EXPECT_FALSE(roofline(gemm, machine_of("sm_90a")).memory_bound);
    // f32: three products of halves, 3 * 138.9 us, where f32 units would take 2051.
    const char* f32_product =
        "A = { dtype = \"f32\", dims = [\"M\", \"K\"] }\nB = { dtype = \"f32\", dims = [\"N\", \"K\"] }\nC = { dtype = \"f32\", dims = "
        "[\"M\", \"N\"] }\n";
    const Task sgemm = good("C[m, n] = sum(k, A[m, k] * B[n, k])", f32_product, "M = 4096\nN = 4096\nK = 4096");
    EXPECT_NEAR(roofline(sgemm, machine_of("sm_90a")).seconds * 1e6, 416.7, 0.1);
    // 2 * 16384 * 4096 * 4 bytes at 4.8 TB/s: 111.8 us.
    const Task map = good("Y[m, n] = relu(X[m, n])", kMatrix, "M = 16384\nN = 4096");
    EXPECT_NEAR(roofline(map, machine_of("sm_90a")).seconds * 1e6, 111.8, 0.1);
    EXPECT_TRUE(roofline(map, machine_of("sm_90a")).memory_bound);
    // Causal: half of the keys on average.
    const char* attention =
        "Q = { dtype = \"bf16\", dims = [\"S\", 64] }\nK = { dtype = \"bf16\", dims = [\"S\", 64] }\nV = { dtype = \"bf16\", dims = "
        "[\"S\", 64] }\nO = { dtype = \"bf16\", dims = [\"S\", 64] }\n";
    const std::string causal =
        "let s[i, j] = sum(e, f32(Q[i, e]) * f32(K[j, e])); O[i, d] = bf16(sum(j in 0:i+1, exp(s[i, j]) * f32(V[j, d])) / sum(j in 0:i+1, "
        "exp(s[i, j])))";
    const Work work = work_of(good(causal, attention, "S = 4096"));
    EXPECT_NEAR(work.flops, 2.0 * 2 * 4096 * 4096 * 64 / 2, 0.01 * work.flops);
}

TEST(Task, OffsetsHaveOneElementMoreThanThereAreGroups) {
    const std::string tensors =
        "X = { dtype = \"bf16\", dims = [\"P\", \"K\"] }\nW = { dtype = \"bf16\", dims = [\"E\", \"N\", \"K\"] }\nexpert = { dtype = "
        "\"i32\", dims = [\"P\"] }\n"
        "starts = { dtype = \"i32\", dims = [\"E + 1\"], offsets_of = \"expert\" }\nY = { dtype = \"bf16\", dims = [\"P\", \"N\"] }\n";
    const Task task = good("Y[p, n] = bf16(sum(k, f32(X[p, k]) * f32(W[expert[p], n, k])))", tensors, "P = 64\nE = 4\nN = 32\nK = 16");
    EXPECT_EQ(task.workload, WorkloadClass::grouped);
    ASSERT_TRUE(task.spec);
    EXPECT_EQ(task.spec->tensors.at(3).offsets_of, 2);
    EXPECT_EQ(extent_of(task, "E + 1"), 5);
    EXPECT_EQ(extent_of(task, "E"), 4);
    EXPECT_EQ(extent_of(task, "12"), 12);
    for (const char* nothing :
         {"", "+", "E +", "+ 1", "Q + 1", "E - 1", "E + 0", "E + 1 + 1", "E + 1); import os", "E + 99999999999999999999"})
        EXPECT_EQ(extent_of(task, nothing), 0) << nothing;
    EXPECT_DOUBLE_EQ(work_of(task).bytes, 2.0 * (64 * 16 + 4 * 32 * 16 + 64 * 32) + 4.0 * (64 + 5));
}

TEST(Task, HostileFilesGetADiagnostic) {
    const std::string head = "name = \"t\"\ncomputes = \"Y[m, n] = X[m, n]\"\n[sizes]\nM = 4\nN = 4\n[tensors]\n";
    const std::pair<std::string, Code> rejected[] = {
        {"name = gelu", Code::task_syntax},
        {std::string("\xff\xfe\x00garbage", 11), Code::task_syntax},
        {std::string(100000, '['), Code::task_syntax},
        {"name = \xc3\xa9\n", Code::task_syntax},  // where the library's table of blanks has no answer
        {"name = \"t\" # \xc3\xa9 is fine here\nsizes.\xe2\xb1\xa0 = 1\n", Code::task_syntax},
        {"surprise = 1\n" + head + kMatrix, Code::task_key},
        {"name = \"t\"\n[sizes]\nM = 4\n", Code::task_key},
        {"name = \"t\"\ncomputes = 3\n[sizes]\nM = 4\nN = 4\n[tensors]\n" + std::string(kMatrix), Code::task_key},
        {"name = \"t\"\ncomputes = \"Y[m, n] = X[m, n]\"\n[sizes]\nM = -4\nN = 4\n[tensors]\n" + std::string(kMatrix), Code::task_value},
        {"name = \"t\"\ncomputes = \"Y[m, n] = X[m, n]\"\n[sizes]\nM = 99999999999999\nN = 4\n[tensors]\n" + std::string(kMatrix),
         Code::task_value},
        {head + "X = { dtype = \"f33\", dims = [\"M\"] }\n", Code::task_value},
        {head + "X = { dtype = \"f32\", dims = [\"Q\"] }\n", Code::task_value},
        {head + "X = { dtype = \"f32\", dims = [\"M + Q\"] }\n", Code::task_value},
        {head + "X = { dtype = \"i32\", dims = [\"M\"], offsets_of = \"a\\\") + evil(\" }\n", Code::task_value},
        {"name = \"a b; import os\"\ncomputes = \"Y[m, n] = X[m, n]\"\n[sizes]\nM = 4\nN = 4\n[tensors]\n" + std::string(kMatrix),
         Code::task_value},
        {head + kMatrix + "[tolerance]\nZ = 0.1\n", Code::task_value},
    };
    for (const auto& [text, code] : rejected) {
        DiagnosticSink sink;
        EXPECT_FALSE(load(text, sink).has_value()) << text.substr(0, 80);
        ASSERT_FALSE(sink.empty()) << text.substr(0, 80);
        EXPECT_EQ(static_cast<int>(sink.diagnostics().front().code), static_cast<int>(code))
            << text.substr(0, 80) << ": " << sink.diagnostics().front().message;
    }
    // What `computes` gets wrong keeps its own code.
    DiagnosticSink sink;
    EXPECT_FALSE(load("name = \"t\"\ncomputes = \"Y[m, n] = Z[m, n]\"\n[sizes]\nM = 4\nN = 4\n[tensors]\n" + std::string(kMatrix), sink)
                     .has_value());
    EXPECT_TRUE(sink.has_errors());
    // A missing file.
    DiagnosticSink missing;
    SourceMap sources;
    EXPECT_FALSE(load_task_file(sources, "/nonexistent/task.toml", missing).has_value());
    EXPECT_EQ(static_cast<int>(missing.diagnostics().front().code), static_cast<int>(Code::task_file));
}

// ---------------------------------------------------------------------------------------------------------- one-line tasks

std::optional<Task> one_line(OneLine line, DiagnosticSink& sink) {
    SourceMap sources;
    const auto text = task_text(line, sources, sink);
    return text ? load_task_text(sources, "one.toml", *text, sink) : std::nullopt;
}

TEST(OneLineTask, ShapesAndTypesComeFromTheEquation) {
    DiagnosticSink sink;
    const auto task = one_line({.computes = "C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))", .sets = {"M=64,N=32", "K=16"}}, sink);
    ASSERT_TRUE(task.has_value());
    EXPECT_EQ(task->workload, WorkloadClass::contraction);
    ASSERT_EQ(task->tensors.size(), 3u);
    EXPECT_EQ(task->tensors[1].name, "B");
    EXPECT_EQ(task->tensors[1].dims, (std::vector<std::string>{"N", "K"}));
    for (const TensorSpec& t : task->tensors) EXPECT_EQ(t.dtype, target::DType::BF16) << t.name;
}

TEST(OneLineTask, RangesScalarsGathersAndLets) {
    DiagnosticSink sink;
    // d has a constant extent; j runs over the same dimension as i does; rows indexes X; s is an intermediate.
    const auto task = one_line({.computes = "let s[i, j] = scale * sum(d in 0:64, f32(Q[i, d]) * f32(K[j, d])); O[i, d] = bf16(sum(j in "
                                            "0:i + 1, exp(s[i, j]) * f32(V[j, d])))",
                                .sets = {"I=128"},
                                .scalars = {"scale=0.125"},
                                .shapes = {"K=I,64", "V=I,64"}},
                               sink);
    ASSERT_TRUE(task.has_value());
    EXPECT_EQ(task->tensor("Q")->dims, (std::vector<std::string>{"I", "64"}));
    EXPECT_EQ(task->tensor("O")->dims, (std::vector<std::string>{"I", "64"}));
    EXPECT_DOUBLE_EQ(task->scalars.at(0).value, 0.125);
    DiagnosticSink other;
    const auto gather = one_line({.computes = "Y[p, k] = X[rows[p], k]", .sets = {"P=8,K=4,T=16"}, .shapes = {"X=T,K"}}, other);
    ASSERT_TRUE(gather.has_value());
    EXPECT_EQ(gather->tensor("rows")->dtype, target::DType::I32);
    DiagnosticSink third;
    const auto best = one_line({.computes = "Y[m] = argmax(n, X[m, n])", .sets = {"M=8,N=4"}}, third);
    ASSERT_TRUE(best.has_value());
    EXPECT_EQ(best->tensor("Y")->dtype, target::DType::I32);
}

TEST(OneLineTask, WhatIsMissingOrWrongIsNamed) {
    const auto refused = [](OneLine line, const std::string& about) {
        DiagnosticSink sink;
        EXPECT_FALSE(one_line(line, sink).has_value()) << about;
        ASSERT_FALSE(sink.diagnostics().empty()) << about;
        EXPECT_NE(sink.diagnostics().front().message.find(about), std::string::npos) << sink.diagnostics().front().message;
    };
    refused({.computes = "Y[m, n] = relu(X[m, n])", .sets = {"M=4"}}, "how far n runs");
    refused({.computes = "Y[m] = relu(X[m])", .sets = {"M=4,Q=3"}}, "nothing in --computes uses");
    refused({.computes = "Y[m] = sum(n, f32(X[m, n]))", .sets = {"M=4,N=5"}}, "X is cast to f32");
    refused({.computes = "Y[m] = X[m + 1]", .sets = {"M=4"}}, "indexed by an expression");
    refused({.computes = "Y[m] = X[m] * eps", .sets = {"M=4"}}, "'eps' has no value");
    refused({.computes = "Y[m] = X[m]", .sets = {"M=four"}}, "whole number");
    refused({.computes = "Y[m] = X[m]", .sets = {"M=4\n[tensors]"}}, "whole number");
    refused({.computes = "Y[m] = X[m]", .sets = {"M"}}, "not NAME=VALUE");
    refused({.computes = "Y[m] = X[m]", .sets = {"M=4,M=5"}}, "twice");
    refused({.computes = "Y[m] = X[m]", .sets = {"M=4"}, .dtypes = {"Z=f32"}}, "no tensor");
    refused({.computes = "Y[m] = X[m]", .sets = {"M=4"}, .dtypes = {"X=f31"}}, "no such type");
    refused({.computes = "Y[m] = X[m]", .sets = {"M=4"}, .shapes = {"X=M,M"}}, "dimensions");
    refused({.computes = "", .sets = {"M=4"}}, "no equation");
    refused({.computes = "Y[m] = sum(n,", .sets = {"M=4"}}, "expected");
}

}  // namespace task_test
}  // namespace tw::tasks
