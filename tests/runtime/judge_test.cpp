// What is decided without a GPU: which elements are compared, what work an equation is, which tensors are indices, what NVRTC says of the
// reference and of the data kernels, and how requests that cannot be served are answered.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "codegen/reference_text.h"
#include "emulate/index_use.h"
#include "lower/lower.h"
#include "runtime/compile.h"
#include "runtime/device_data.h"
#include "runtime/evaluate.h"
#include "runtime/judge.h"
#include "runtime/nvrtc.h"
#include "runtime/signature.h"

namespace tw::runtime {
namespace judge_test {

ir::Module load(const std::string& kernel) {
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_file(sources, std::string(TW_SOURCE_DIR) + "/kernels/" + kernel + ".py", {}, sink);
    EXPECT_TRUE(module) << render_text(sink, sources);
    return *std::move(module);
}

TEST(Sample, IsEverythingWhenThatIsAllowed) {
    const auto all = sample_elements({3, 5}, 15, 1);
    ASSERT_EQ(all.size(), 15u);
    EXPECT_EQ(all.front(), 0);
    EXPECT_EQ(all.back(), 14);
}

TEST(Sample, HasCornersEdgesAndEveryPart) {
    const std::vector<std::int64_t> dims = {1000, 2000};
    const auto chosen = sample_elements(dims, 5000, 1);
    const std::set<std::int64_t> set(chosen.begin(), chosen.end());
    for (std::int64_t corner : {0L, 1999L, 999L * 2000, 999L * 2000 + 1999}) EXPECT_TRUE(set.count(corner)) << corner;
    std::set<std::int64_t> rows;
    for (std::int64_t n : chosen) {
        ASSERT_GE(n, 0);
        ASSERT_LT(n, 2'000'000);
        rows.insert(n / 2000);
    }
    EXPECT_EQ(rows.size(), 1000u);  // five parts a row: none is missed
    EXPECT_EQ(sample_elements(dims, 5000, 1), chosen);
    EXPECT_NE(sample_elements(dims, 5000, 2), chosen);
    EXPECT_TRUE(sample_elements({0, 7}, 10, 1).empty());
}

TEST(Work, OfAGemmIsTwoOperationsAProduct) {
    const ir::Module module = load("gemm_sm90");
    const Signature s = *find_signature(module, "");
    const Work w = work_of(s, {128, 256, 512});
    EXPECT_DOUBLE_EQ(w.operations, 2.0 * 128 * 256 * 512);
    EXPECT_DOUBLE_EQ(w.bytes, 2.0 * (128 * 512 + 256 * 512 + 128 * 256));
    EXPECT_TRUE(w.matrix);
    const auto gemm = as_plain_gemm(s);
    ASSERT_TRUE(gemm);
    EXPECT_EQ(gemm->layout, "TN");
}

TEST(Work, CountsWhatARowSharesOnce) {
    const ir::Module module = load("layernorm");
    const Signature s = *find_signature(module, "");
    EXPECT_FALSE(as_plain_gemm(s));
    // Mean, variance and the scaled result: a few operations an element, whatever the row length.
    const double small = work_of(s, {64, 1024}).operations / (64.0 * 1024), large = work_of(s, {64, 8192}).operations / (64.0 * 8192);
    EXPECT_NEAR(small, large, 0.1);
    EXPECT_LT(large, 20);
    EXPECT_LE(reference_steps(s.computes.equations[0], {64, 1024}), 8 * 1024);  // a few passes a thread, not 1024 * 1024
}

// Of a running sum one addition an element, and of a fused operation inside it one each: not one for each element before.
TEST(Work, OfARunningSumIsOneAdditionAnElement) {
    const ir::Module module = load("cumsum");
    const Signature s = *find_signature(module, "");
    EXPECT_DOUBLE_EQ(work_of(s, {64, 1024}).operations, 64.0 * 1024);
    EXPECT_FALSE(work_of(s, {64, 1024}).matrix);
}

// Of an update at places that data name one addition a source, not one for each place.
TEST(Work, OfAnUpdateIsOneAdditionASource) {
    const ir::Module module = load("scatter_add");
    const Signature counts = *find_signature(module, "bincount"), rows = *find_signature(module, "embedding_gradient_atomic");
    const auto sizes_of = [](const Signature& s, std::int64_t sources, std::int64_t places, std::int64_t columns) {
        std::vector<std::int64_t> sizes;
        for (const std::string& name : s.sizes) sizes.push_back(name == "P" ? sources : name == "V" ? places : columns);
        return sizes;
    };
    EXPECT_DOUBLE_EQ(work_of(counts, sizes_of(counts, 1000, 50, 0)).operations, 1000.0);
    EXPECT_DOUBLE_EQ(work_of(rows, sizes_of(rows, 1000, 50, 64)).operations, 1050.0 * 64);
}

TEST(Work, WeightsThatNoRowGoesToAreNotRead) {
    const ir::Module module = load("grouped_gemm_sm80");
    const Signature s = *find_signature(module, "");
    std::map<std::string, std::int64_t> sizes;
    for (const std::string& name : s.sizes) sizes[name] = 64;
    sizes["E"] = 4;
    const auto values = size_values(s, sizes);
    ASSERT_TRUE(values);
    const auto weights = std::find_if(s.tensors.begin(), s.tensors.end(), [](const ir::Tensor& t) { return t.name == "W"; });
    ASSERT_NE(weights, s.tensors.end());
    const double all = work_of(s, *values).bytes, one = 2.0 * 64 * 64;  // bf16, N x K
    const IndexContents two = index_contents({{"expert", {0, 0, 3, 3, 3}}, {"name", "text"}, {"part", {0.5}}});
    EXPECT_EQ(two.size(), 1u);
    EXPECT_DOUBLE_EQ(work_of(s, *values, two).bytes, all - 2 * one);
}

TEST(Work, SaysWhichUnitCanDoIt) {
    for (const auto& [file, kernel, unit] :
         {std::tuple{"gemm_w4_sm90", "", "bf16"}, {"attention_sm90", "attention", "bf16"}, {"layernorm", "", "f32"}}) {
        const ir::Module module = load(file);
        const auto s = find_signature(module, kernel);
        ASSERT_TRUE(s) << file;
        const nlohmann::json work = to_json(work_of(*s, std::vector<std::int64_t>(s->sizes.size(), 128)));
        EXPECT_EQ(work["unit"], unit) << file;
        EXPECT_EQ(work["matrix"], unit != std::string("f32")) << file;
    }
}

TEST(Signature, OfAProgramHasItsParametersOnly) {
    const ir::Module module = load("split_k");
    const Signature s = *find_signature(module, "");
    EXPECT_TRUE(s.is_program);
    EXPECT_EQ(s.tensors.size(), 3u);
    EXPECT_EQ(s.kernels.size(), 2u);
    EXPECT_TRUE(as_plain_gemm(s));
    EXPECT_FALSE(find_signature(module, "nothing"));
    const auto missing = size_values(s, {{"M", 3}});
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().message.find("has no value"), std::string::npos);
}

TEST(IndexTensors, AreThoseThatComputesReadsPlacesFrom) {
    const ir::Module module = load("grouped_gemm_sm80");
    const Signature s = *find_signature(module, "");
    const auto used = emulate::index_tensors(s.tensors, s.computes, s.kernels);
    for (std::size_t i = 0; i < used.size(); ++i)
        EXPECT_EQ(used[i], !target::info(s.tensors[i].dtype).is_float && !s.tensors[i].is_output) << s.tensors[i].name;
}

TEST(ReferenceText, IsTakenByNvrtc) {
    if (!nvrtc_identity()) GTEST_SKIP() << "no NVRTC on this machine";
    for (const auto& [name, kernel] :
         {std::pair{"gemm_sm90", ""}, {"attention_sm90", "attention"}, {"layernorm", ""}, {"grouped_gemm_sm80", ""}, {"split_k", ""}}) {
        const ir::Module module = load(name);
        const auto found = find_signature(module, kernel);
        ASSERT_TRUE(found) << name << ": " << found.error().message;
        const Signature& s = *found;
        auto text = codegen::reference_text(s.computes, s.tensors, s.sizes.size(), s.scalars.size());
        ASSERT_TRUE(text) << text.error();
        CompileRequest request;
        request.source = text->source;
        request.arch = "sm_90a";
        const auto compiled = compile(request);
        EXPECT_TRUE(compiled) << name << ": " << (compiled ? "" : compiled.error().message) << text->source;
    }
    CompileRequest request;
    request.source = data_kernels_text();
    request.arch = "sm_80";
    const auto compiled = compile(request);
    EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message);
}

TEST(Evaluate, AnswersWhatCannotBeServed) {
    Evaluator evaluator([](const std::string&) {});
    const std::string file = std::string(TW_SOURCE_DIR) + "/kernels/softmax.py";
    EXPECT_EQ(evaluator.evaluate({{"file", "no/such/file.py"}})["status"], "refused");
    EXPECT_EQ(evaluator.evaluate({{"text", "this is not python ("}})["status"], "rejected");
    EXPECT_EQ(evaluator.evaluate({{"file", file}, {"constants", {{"NOPE", 3}}}})["status"], "rejected");
    EXPECT_EQ(evaluator.evaluate({{"file", file}, {"sizes", 3}})["status"], "refused");
    const auto missing = evaluator.evaluate({{"file", file}, {"sizes", {{"M", 3}}}});
    EXPECT_EQ(missing["status"], "refused");
    EXPECT_NE(missing["message"].get<std::string>().find("size N has no value"), std::string::npos);
    EXPECT_EQ(exit_status_of(missing), 2);
}

}  // namespace judge_test
}  // namespace tw::runtime
