// The kernels that models are built of, on the emulator: each case is launched as the launcher would, with the first variant whose
// assumptions fit, and compared with the fp64 reference under hostile schedules. Every text must be reached by some case.
#include <fmt/format.h>

#include <map>
#include <set>

#include "emulate/trial.h"
#include "kernels/device_agreement.h"
#include "kernels/hostile_table.h"
#include "verify/kernel_test_support.h"

namespace tw::emulate {
namespace model_kernels_test {

using namespace testing_kernels;

struct Case {
    const char* file;
    const char* kernel;
    lower::ConstValues constants;
    std::map<std::string, std::int64_t> sizes;
    bool small = false;  // runs under every hostile schedule in `make test` too, not only under a sample
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.file << " " << c.kernel; }

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
    std::string name = fmt::format("{}_{}_{}", info.index, info.param.file, info.param.kernel);
    for (const auto& [size, value] : info.param.sizes) name += fmt::format("_{}{}", size, value);
    return name;
}

// The variant that serves the case; nothing: none does.
std::optional<ir::Kernel> chosen(const Case& c) {
    for (const ir::Kernel& k : kernels_of(fmt::format("kernels/{}.py", c.file), c.constants)) {
        if (k.name != c.kernel) continue;
        const auto sizes = named_sizes(k, c.sizes);
        if (std::all_of(k.assumptions.begin(), k.assumptions.end(),
                        [&](const ir::Assumption& a) { return size_value(a.condition, sizes).value_or(0) != 0; }))
            return k;
    }
    return std::nullopt;
}

class ModelKernel : public ::testing::TestWithParam<Case> {};

TEST_P(ModelKernel, AgreesWithTheReference) {
    const Case& c = GetParam();
    const auto kernel = chosen(c);
    ASSERT_TRUE(kernel.has_value());
    const auto sizes = named_sizes(*kernel, c.sizes);
    std::size_t number = 0;
    std::string shape;
    for (const auto& [size, value] : c.sizes) {
        number = number * 7 + static_cast<std::size_t>(value);
        shape += fmt::format("{}{}={}", shape.empty() ? "" : " ", size, value);
    }
    const std::vector<Schedule> schedules = schedules_of_case(*kernel, c.small, number);
    for (const Schedule& schedule : schedules) {
        TrialOptions options;
        options.seed = 11;
        options.emulator.schedule = schedule;
        options.emulator.resident_blocks = 3;
        const Trial trial = run_trial(*kernel, sizes, options);
        note_run(fmt::format("kernels/{}.py", c.file), *kernel, shape, schedule, trial.failed() || !trial.refused.empty());
        ASSERT_EQ(trial.refused, "") << schedule.describe();
        ASSERT_FALSE(trial.failed()) << kernel->variant << ", " << schedule.describe() << ": " << trial.summary(*kernel);
        for (const OutputError& e : trial.outputs) EXPECT_FALSE(e.unwritten) << schedule.describe();
        if (&schedule == &schedules.front()) expect_device_form_agrees(*kernel, trial, options);
    }
}

const lower::ConstValues kNarrow = {{"BN", 128}, {"STAGES", 2}};
const lower::ConstValues kTwoStages = {{"STAGES", 2}};

const lower::ConstValues kLowTiles = {{"HIGH", 64}, {"STEP", 16}, {"STAGES", 3}, {"TOGETHER", 2}, {"LAG", 1}};
const Case kCases[] = {
    {"gemm_fp8_sm90", "gemm_fp8_fast", kNarrow, {{"M", 1}, {"N", 8}, {"K", 16}}},
    {"gemm_fp8_sm90", "gemm_fp8_fast", kNarrow, {{"M", 130}, {"N", 136}, {"K", 272}}},
    {"gemm_fp8_sm90", "gemm_fp8_rows_fast", kNarrow, {{"M", 130}, {"N", 136}, {"K", 272}}},
    {"gemm_fp8_sm90", "gemm_fp8", kTwoStages, {{"M", 1}, {"N", 8}, {"K", 16}}, true},
    {"gemm_fp8_sm90", "gemm_fp8", kTwoStages, {{"M", 261}, {"N", 72}, {"K", 144}}},
    {"gemm_fp8_sm90", "gemm_fp8_rows", kTwoStages, {{"M", 70}, {"N", 136}, {"K", 144}}},
    {"gemm_fp8_sm90", "gemm_fp8_blocks", kTwoStages, {{"M", 1}, {"NB", 1}, {"KB", 1}}},
    {"gemm_fp8_sm90", "gemm_fp8_blocks", kTwoStages, {{"M", 70}, {"NB", 2}, {"KB", 3}}},
    {"gemm_fp8_sm90", "gemm_fp8_blocks", kTwoStages, {{"M", 68}, {"NB", 2}, {"KB", 4}}},
    {"gemm_int8_tf32_sm90", "gemm_int8", kNarrow, {{"M", 1}, {"N", 4}, {"K", 16}}, true},
    {"gemm_int8_tf32_sm90", "gemm_int8", kNarrow, {{"M", 130}, {"N", 132}, {"K", 272}}},
    {"gemm_int8_tf32_sm90", "gemm_int8_rows", kNarrow, {{"M", 70}, {"N", 136}, {"K", 144}}},
    {"gemm_int8_tf32_sm90", "gemm_tf32", kNarrow, {{"M", 1}, {"N", 4}, {"K", 4}}, true},
    {"gemm_int8_tf32_sm90", "gemm_tf32", kNarrow, {{"M", 130}, {"N", 132}, {"K", 68}}},
    {"gemm_int8_tf32_sm90", "gemm_tf32_fast", kNarrow, {{"M", 1}, {"N", 4}, {"K", 4}}, true},
    {"gemm_int8_tf32_sm90", "gemm_tf32_fast", {{"LESS", 32}}, {{"M", 130}, {"N", 260}, {"K", 68}}},
    {"gemm_f32_sm90", "row_scales", {{"BK", 1024}}, {{"M", 3}, {"K", 8}}, true},
    {"gemm_f32_sm90", "row_scales", {{"BK", 1024}}, {{"M", 2}, {"K", 2056}}},
    {"gemm_f32_sm90", "split", {{"BK", 1024}}, {{"M", 3}, {"K", 1032}}},
    {"gemm_f32_sm90", "multiply_splits", kTwoStages, {{"M", 1}, {"N", 4}, {"K", 8}}},
    {"gemm_f32_sm90", "multiply_splits", kTwoStages, {{"M", 70}, {"N", 132}, {"K", 72}}},
    {"gemm_w4_sm90", "gemm_w4", kTwoStages, {{"M", 1}, {"N", 8}, {"KB", 1}}},
    {"gemm_w4_sm90", "gemm_w4", kTwoStages, {{"M", 11}, {"N", 72}, {"KB", 7}}},
    {"norm_backward_sm90", "rmsnorm_gradients", {}, {{"M", 3}, {"N", 8}}},
    {"norm_backward_sm90", "rmsnorm_gradients", {}, {{"M", 530}, {"N", 520}}},
    {"norm_backward_sm90", "layernorm_gradients", {}, {{"M", 3}, {"N", 1032}}},
    {"norm_backward_sm90", "layernorm_gradients", {}, {{"M", 600}, {"N", 264}}},
    {"norm_backward_sm90", "add_parts", {}, {{"N", 40}}, true},
    {"norm_backward_sm90", "add_both_parts", {}, {{"N", 72}}, true},
    {"training_sm90", "cross_entropy_gradient", {}, {{"M", 1}, {"N", 8}}, true},
    {"training_sm90", "cross_entropy_gradient", {}, {{"M", 2}, {"N", 17000}}},
    {"training_sm90", "cross_entropy_gradient", {}, {{"M", 2}, {"N", 33000}}},
    {"training_sm90", "cross_entropy_gradient", {}, {{"M", 1}, {"N", 262152}}},
    {"training_sm90", "embedding_gradient", {}, {{"L", 9}, {"N", 1032}, {"V", 7}, {"P", 13}}, true},
    {"training_sm90", "adam", {}, {{"N", 1032}}, true},
    {"cache_update_sm90", "cache_update", {}, {{"T", 5}, {"S", 9}, {"N", 2056}}, true},
    {"cache_update_sm90", "cache_update", {}, {{"T", 9}, {"S", 5}, {"N", 8}}},
    {"cache_update_sm90", "permute_rows", {}, {{"T", 21}, {"N", 520}}, true},
    {"scatter_add", "embedding_gradient_atomic", {}, {{"P", 21}, {"V", 5}, {"N", 264}}, true},
    {"scatter_add", "weighted_rows_atomic", {}, {{"P", 9}, {"V", 30}, {"N", 136}}, true},
    {"scatter_add", "bincount", {}, {{"P", 2100}, {"V", 7}}, true},
    {"scatter_add", "weighted_bincount", {}, {{"P", 1030}, {"V", 3}}, true},
    {"scatter_add", "histogram", {}, {{"P", 1100}, {"V", 4}}, true},
    {"quantize_sm90", "quantize_rows", {}, {{"M", 3}, {"N", 16}}, true},
    {"quantize_sm90", "quantize_rows", {}, {{"M", 2}, {"N", 2064}}},
    {"quantize_sm90", "quantize_blocks", {}, {{"M", 35}, {"NB", 3}}, true},
    {"quantize_sm90", "rmsnorm_fp8", {}, {{"M", 3}, {"N", 1040}}},
    {"attention_variants_sm90", "attention_window", {{"D", 64}, {"BN", 64}, {"W", 128}}, {{"B", 1}, {"HK", 1}, {"S", 3}, {"T", 3}}},
    {"attention_variants_sm90", "attention_window", {{"D", 64}, {"BN", 64}, {"W", 128}}, {{"B", 1}, {"HK", 1}, {"S", 390}, {"T", 400}}},
    {"attention_variants_sm90", "attention_window", {{"D", 64}, {"W", 512}}, {{"B", 1}, {"HK", 1}, {"S", 650}, {"T", 660}}},
    {"attention_variants_sm90", "attention_softcap", {{"D", 64}}, {{"B", 1}, {"HK", 1}, {"S", 290}, {"T", 300}}},
    {"attention_variants_sm90", "attention_alibi", {{"D", 64}, {"BN", 64}, {"G", 2}}, {{"B", 1}, {"HK", 1}, {"S", 130}, {"T", 140}}},
    {"attention_variants_sm90", "attention_packed", {{"D", 64}, {"BN", 64}}, {{"HK", 1}, {"P", 300}, {"E", 4}, {"TILES", 7}}},
    {"moe_layer_sm90", "moe_gate", {{"TOP", 3}}, {{"T", 5}, {"E", 9}}, true},
    {"moe_layer_sm90", "moe_gate", {{"TOP", 8}}, {{"T", 130}, {"E", 8}}},
    {"moe_layer_sm90", "moe_gate", {{"TOP", 8}}, {{"T", 2}, {"E", 200}}},
    {"moe_layer_sm90", "expert_counts", {}, {{"P", 300}, {"E", 5}}},
    {"moe_layer_sm90", "counts_before", {}, {{"B", 130}, {"E", 20}}, true},
    {"moe_layer_sm90", "expert_offsets", {}, {{"E", 9}}, true},
    {"moe_layer_sm90", "row_places", {}, {{"P", 300}, {"E", 5}}},
    {"moe_layer_sm90", "rows_in_order", {}, {{"P", 300}}, true},
    {"moe_layer_sm90", "tile_owners", {}, {{"F", 40}, {"BATCHES", 5}}, true},
    {"moe_layer_sm90", "tile_rows", {}, {{"E", 5}, {"BATCHES", 17}}, true},
    {"moe_layer_sm90", "expert_hidden", kLowTiles, {{"T", 9}, {"P", 70}, {"E", 3}, {"N", 72}, {"K", 136}, {"BATCHES", 5}}},
    {"moe_layer_sm90", "expert_outputs", kLowTiles, {{"P", 70}, {"E", 3}, {"N", 136}, {"K", 72}, {"BATCHES", 5}}},
    {"moe_layer_sm90", "expert_outputs", kLowTiles, {{"P", 70}, {"E", 3}, {"N", 136}, {"K", 40}, {"BATCHES", 5}}},
    {"moe_layer_sm90", "weighted_sum", {{"TOP", 3}}, {{"T", 5}, {"N", 1032}}, true},
    {"decode_paged_sm90", "paged_parts", kTwoStages, {{"B", 2}, {"HK", 1}, {"G", 3}, {"PAGES", 5}, {"MP", 2}, {"D", 72}}},
    {"decode_paged_sm90", "decode_paged_whole", kTwoStages, {{"B", 2}, {"HK", 2}, {"G", 3}, {"PAGES", 5}, {"MP", 3}, {"D", 40}}},
    {"decode_paged_sm90", "paged_parts", kTwoStages, {{"B", 1}, {"HK", 1}, {"G", 3}, {"PAGES", 12}, {"MP", 11}, {"D", 40}}},
    {"decode_paged_sm90", "paged_join", {}, {{"B", 3}, {"HK", 1}, {"G", 3}, {"NS", 70}, {"D", 40}}, true},
    {"mla_decode_sm90", "mla_decode_whole", {}, {{"B", 2}, {"H", 3}, {"T", 130}}},
    {"mla_decode_sm90", "mla_parts", {}, {{"B", 1}, {"H", 1}, {"T", 1}}},
    {"mla_decode_sm90", "mla_parts", {}, {{"B", 1}, {"H", 70}, {"T", 300}}},
    {"mla_decode_sm90", "mla_join", {}, {{"B", 2}, {"H", 3}}, true},
    {"attention_backward_sm90", "attention_delta", {}, {{"B", 1}, {"H", 2}, {"S", 70}, {"D", 40}}, true},
    {"attention_backward_sm90", "attention_before_gradients", {}, {{"B", 1}, {"H", 2}, {"S", 70}, {"D", 40}}, true},
    {"attention_backward_sm90", "attention_after_gradients", {}, {{"B", 1}, {"H", 2}, {"S", 70}, {"D", 72}}, true},
    {"attention_backward_sm90", "attention_gradients", {}, {{"B", 1}, {"H", 1}, {"S", 132}, {"T", 130}, {"D", 64}}},
    {"attention_backward_sm90", "attention_gradients", {}, {{"B", 2}, {"H", 8}, {"S", 4}, {"T", 128}, {"D", 8}}},
    {"attention_backward_sm90", "attention_causal_gradients", {}, {{"B", 1}, {"H", 1}, {"S", 140}, {"T", 150}, {"D", 72}}},
    {"attention_backward_sm90", "attention_gradient_q", {}, {{"B", 1}, {"H", 1}, {"S", 130}, {"T", 70}, {"D", 64}}},
    {"attention_backward_sm90", "attention_gradient_kv", {}, {{"B", 1}, {"H", 1}, {"S", 70}, {"T", 130}, {"D", 40}}},
    {"attention_backward_sm90", "attention_causal_gradient_q", {}, {{"B", 1}, {"H", 1}, {"S", 140}, {"T", 140}, {"D", 64}}},
    {"attention_backward_sm90", "attention_causal_gradient_kv", {}, {{"B", 1}, {"H", 1}, {"S", 140}, {"T", 150}, {"D", 72}}},
    {"decode_sm90", "decode_whole", kTwoStages, {{"B", 3}, {"HK", 2}, {"G", 5}, {"T", 200}, {"D", 40}}},
    {"decode_sm90", "decode_parts", kTwoStages, {{"B", 2}, {"HK", 1}, {"G", 1}, {"T", 1}, {"D", 8}}},
    {"decode_sm90", "decode_parts", kTwoStages, {{"B", 2}, {"HK", 1}, {"G", 8}, {"T", 1030}, {"D", 40}}},
    {"decode_sm90", "decode_join", {}, {{"B", 2}, {"HK", 3}, {"G", 5}, {"D", 40}, {"NS", 19}}, true},
};
INSTANTIATE_TEST_SUITE_P(Table, ModelKernel, ::testing::ValuesIn(kCases), name_of_case);

TEST(ModelKernels, EveryTextIsReached) {
    std::map<std::string, std::set<int>> reached;
    for (const Case& c : kCases) {
        if (const auto k = chosen(c)) reached[c.file].insert(k->loc.line);
    }
    for (const auto& [file, lines] : reached) {
        for (const ir::Kernel& k : kernels_of("kernels/" + file + ".py"))
            EXPECT_TRUE(lines.count(k.loc.line)) << file << ".py:" << k.loc.line << " (" << k.name << ") runs in no case";
    }
}

}  // namespace model_kernels_test
}  // namespace tw::emulate

bool tw::testing_kernels::in_model_table(const std::string& stem) {
    return std::any_of(std::begin(emulate::model_kernels_test::kCases), std::end(emulate::model_kernels_test::kCases),
                       [&](const emulate::model_kernels_test::Case& c) { return stem == c.file; });
}
