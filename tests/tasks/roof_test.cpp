// No recorded time is shorter than what its task's roofline allows: a count that is too high, or a peak that is too low, shows here.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/input.h"
#include "base/text.h"
#include "tasks/classify.h"
#include "tasks/load.h"

namespace tw::tasks {
namespace roof_test {

namespace fs = std::filesystem;
using nlohmann::json;

std::optional<Task> load(const fs::path& file) {
    SourceMap sources;
    DiagnosticSink sink;
    return load_task_file(sources, file.string(), sink);
}

std::vector<fs::path> files(const std::string& folder, const std::string& extension) {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(fs::path(TW_SOURCE_DIR) / folder))
        if (entry.path().extension() == extension) out.push_back(entry.path());
    return out;
}

TEST(Roof, OfEveryTaskHasBytesAndCountsProductsOnce) {
    int products = 0;
    for (const char* folder : {"tasks", "tasks/cute"})
        for (const fs::path& file : files(folder, ".toml")) {
            const auto task = load(file);
            ASSERT_TRUE(task) << file;
            const Work work = work_of(*task);
            EXPECT_GT(work.bytes, 0) << file;
            // All arithmetic holds the products. Scores of attention that a mask hides are counted in the first and not in the second.
            EXPECT_LE(work.flops, work.operations * 1.001) << file;
            // A few operations a byte besides, or a sum is counted more than once.
            EXPECT_LE(work.operations, work.flops * 1.6 + 40 * work.bytes) << file;
            products += work.flops > 0;
            const Roofline roof = roofline(*task, machine_of(task->target));
            EXPECT_GE(roof.seconds, work.bytes / machine_of(task->target).bytes_per_second) << file;
        }
    EXPECT_GT(products, 10);
}

TEST(Roof, IsAboveEveryRecordedRun) {
    int steps = 0;
    for (const fs::path& file : files("bench/results/agent", ".json")) {
        const auto text = read_file(file);
        ASSERT_TRUE(text) << file;
        const json run = parse_json(*text);
        if (text_in(run, "kind") != "tilewright run") continue;
        SourceMap sources;
        DiagnosticSink sink;
        const auto task = load_task_text(sources, "task.toml", text_in(run["run"], "task_text"), sink);
        ASSERT_TRUE(task) << file;
        const Roofline roof = roofline(*task, machine_of(task->target));
        for (const json& step : run["steps"]) {
            if (!step["microseconds"].is_number()) continue;
            ++steps;
            EXPECT_LE(roof.seconds * 1e6, step["microseconds"].get<double>()) << file << " step " << step["number"];
        }
    }
    EXPECT_GT(steps, 100);
    const auto text = read_file((fs::path(TW_SOURCE_DIR) / "bench/results/h200/cute_workloads.json").string());
    ASSERT_TRUE(text);
    int cases = 0;
    const json recorded = parse_json(*text);
    for (const json& row : recorded["cases"]) {
        const auto task = load(fs::path(TW_SOURCE_DIR) / "tasks/cute" / (text_in(row, "case") + ".toml"));
        if (!task || !row.contains("us")) continue;
        ++cases;
        EXPECT_LE(roofline(*task, machine_of(task->target)).seconds * 1e6, row["us"].get<double>()) << row["case"];
    }
    EXPECT_GT(cases, 10);
}

// Two factors of 8 bits are multiplied twice as fast as two of 16; a scale beside them, or weights that are widened first, changes nothing.
TEST(Roof, HasAPeakForEachType) {
    const Machine &h200 = machine_of("sm_90a"), &a100 = machine_of("sm_80");
    using target::DType;
    EXPECT_EQ(h200.peak(DType::E4M3, true), 1979e12);
    EXPECT_EQ(h200.peak(DType::I8, true), 1979e12);
    EXPECT_EQ(h200.peak(DType::BF16, true), 989.5e12);
    EXPECT_EQ(h200.peak(DType::TF32, true), 494.7e12);
    EXPECT_EQ(h200.peak(DType::BF16, false), 67e12);
    EXPECT_EQ(a100.peak(DType::I8, true), 624e12);
    EXPECT_EQ(a100.peak(DType::E4M3, true), 312e12);  // no such unit: they are widened
    EXPECT_EQ(machine_named("NVIDIA H200"), &h200);
    EXPECT_EQ(machine_named("NVIDIA A100-SXM4-80GB"), &a100);
    EXPECT_EQ(machine_named("something else"), nullptr);
    SourceMap sources;
    DiagnosticSink sink;
    const auto task =
        load_task_text(sources, "task.toml",
                       "name = \"quantised\"\ncomputes = \"C[m, n] = bf16(f32(sum(k, i32(A[m, k]) * i32(B[n, k]))) * s[n])\"\n"
                       "[sizes]\nM = 4096\nN = 4096\nK = 4096\n[tensors]\nA = { dtype = \"i8\", dims = [\"M\", \"K\"] }\n"
                       "B = { dtype = \"i8\", dims = [\"N\", \"K\"] }\ns = { dtype = \"f32\", dims = [\"N\"] }\n"
                       "C = { dtype = \"bf16\", dims = [\"M\", \"N\"] }\n",
                       sink);
    ASSERT_TRUE(task);
    EXPECT_EQ(work_of(*task).unit, DType::I8);
    EXPECT_NEAR(roofline(*task, h200).seconds * 1e6, 69.4, 0.1);  // 2 * 4096^3 at 1979e12 a second
}

}  // namespace roof_test
}  // namespace tw::tasks
