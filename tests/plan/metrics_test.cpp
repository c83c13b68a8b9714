// Counters by workload class and stage, from ncu's own output (tests/plan/data/ncu.csv has the columns of ncu 2024, values made up).
#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
#include "plan/metrics.h"

namespace tw::plan {
namespace metrics_test {

using W = tasks::WorkloadClass;

nlohmann::json recorded_profile() {
    const auto text = read_file(std::string(TW_SOURCE_DIR) + "/tests/plan/data/ncu.csv");
    EXPECT_TRUE(text.has_value());
    nlohmann::json values = nlohmann::json::object();
    for (const runtime::Metric& m : runtime::parse_ncu_csv(*text)) {
        nlohmann::json& mine = values[m.kernel][m.name];
        if (mine.is_null()) mine = {{"value", m.value}, {"unit", m.unit}};
    }
    return {{"source", "ncu"}, {"kernels", values}};
}

std::map<std::string, Metric> by_name(const std::vector<Metric>& metrics) {
    std::map<std::string, Metric> out;
    for (const Metric& m : metrics) out[m.name] = m;
    return out;
}

TEST(Metrics, AStageSeesWhatItsChoiceNeedsInReadableUnits) {
    const auto memory = by_name(shown_metrics(recorded_profile(), W::elementwise, Stage::memory));
    EXPECT_DOUBLE_EQ(memory.at("gpu__time_duration.sum").value, 86.208);  // 86,208 ns of the first launch
    EXPECT_EQ(memory.at("gpu__time_duration.sum").unit, "us");
    EXPECT_DOUBLE_EQ(memory.at("dram__bytes_read.sum").value, 134.742016);
    EXPECT_EQ(memory.at("dram__bytes_read.sum").unit, "MB");
    EXPECT_EQ(memory.at("dram__throughput.avg.pct_of_peak_sustained_elapsed").unit, "%");
    EXPECT_DOUBLE_EQ(memory.at("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio").value, 4);
    EXPECT_FALSE(memory.count("launch__registers_per_thread"));
    EXPECT_FALSE(memory.count("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active"));
    const auto instruction = by_name(shown_metrics(recorded_profile(), W::elementwise, Stage::instruction));
    EXPECT_TRUE(instruction.count("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active"));
    EXPECT_DOUBLE_EQ(instruction.at("launch__registers_per_thread").value, 40);
    EXPECT_FALSE(instruction.count("dram__bytes_read.sum"));
    // "n/a" is no figure.
    EXPECT_FALSE(by_name(shown_metrics(recorded_profile(), W::elementwise, Stage::constants))
                     .count("sm__warps_active.avg.pct_of_peak_sustained_active"));
}

TEST(Metrics, EveryClassAndStageHasFiguresAndFewOfThem) {
    for (W w : {W::elementwise, W::reduction, W::scan, W::contraction, W::attention, W::grouped}) {
        const auto all = metrics_of(w);
        std::set<std::string> asked;
        nlohmann::json values;
        for (const auto& m : all) asked.insert(m.name), values["k"][m.name] = {{"value", 1.0}, {"unit", ""}};
        EXPECT_EQ(asked.size(), all.size());
        for (Stage s : {Stage::structure, Stage::memory, Stage::pipeline, Stage::instruction, Stage::constants}) {
            const auto shown = shown_metrics({{"kernels", values}}, w, s);
            EXPECT_GE(shown.size(), 2u) << tasks::name_of(w) << " " << name_of(s);
            EXPECT_LE(shown.size(), 9u) << tasks::name_of(w) << " " << name_of(s);
            for (const Metric& m : shown) EXPECT_TRUE(asked.count(m.name)) << m.name;
        }
    }
    // What binds a class is in its set: tensor cores for products, DRAM for the rest.
    EXPECT_FALSE(by_name(shown_metrics(recorded_profile(), W::contraction, Stage::memory))
                     .count("dram__throughput.avg.pct_of_peak_sustained_elapsed"));
}

TEST(Metrics, AProfileWithoutCountersShowsNothing) {
    EXPECT_TRUE(shown_metrics({{"source", "static"}, {"why", "no GPU here"}}, W::elementwise, Stage::memory).empty());
    EXPECT_TRUE(shown_metrics({{"kernels", 3}}, W::elementwise, Stage::memory).empty());
    EXPECT_TRUE(shown_metrics(nullptr, W::elementwise, Stage::memory).empty());
}

}  // namespace metrics_test
}  // namespace tw::plan
