// Every shipped kernel on the emulator: against the fp64 reference, over tiny, ragged and multi-tile shapes, under schedules
// chosen to hurt. Constants are made small where that only saves time: the text that runs is the same.
#include <fmt/format.h>

#include <map>

#include "emulate/trial.h"
#include "kernels/device_agreement.h"
#include "kernels/hostile_table.h"
#include "verify/kernel_test_support.h"

namespace tw::emulate {
namespace kernels_test {

using namespace testing_kernels;

struct Case {
    const char* file;
    std::size_t number;  // which kernel of the file
    lower::ConstValues constants;
    std::map<std::string, std::int64_t> sizes;
    bool small = true;  // runs under every hostile schedule in `make test` too, not only under a sample
};

std::string shape_of(const std::map<std::string, std::int64_t>& sizes, const lower::ConstValues& constants) {
    std::string text;
    for (const auto& [size, value] : sizes) text += fmt::format("{}{}={}", text.empty() ? "" : " ", size, value);
    for (const auto& [name, value] : constants) text += fmt::format(" {}={}", name, value.text());
    return text;
}

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.file << " kernel " << c.number;
    for (const auto& [size, value] : c.sizes) *out << " " << size << "=" << value;
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
    std::string name = fmt::format("{}{}", info.param.file, info.param.number);
    for (const auto& [size, value] : info.param.sizes) name += fmt::format("_{}{}", size, value);
    return name;
}

class ShippedKernel : public ::testing::TestWithParam<Case> {};

TEST_P(ShippedKernel, AgreesWithTheReferenceUnderHostileSchedules) {
    const Case& c = GetParam();
    const ir::Kernel kernel = kernel_of(fmt::format("kernels/{}.py", c.file), c.constants, c.number);
    const auto sizes = named_sizes(kernel, c.sizes);
    for (const ir::Assumption& a : kernel.assumptions) {
        ASSERT_TRUE(size_value(a.condition, sizes).value_or(0)) << "the case breaks " << a.text;
    }
    std::size_t number = 0;
    for (const auto& [size, value] : c.sizes) number = number * 7 + static_cast<std::size_t>(value) + c.number;
    const std::vector<Schedule> schedules = schedules_of_case(kernel, c.small, number);
    for (const Schedule& schedule : schedules) {
        TrialOptions options;
        options.seed = 11;
        options.emulator.schedule = schedule;
        options.emulator.resident_blocks = 3;
        const Trial trial = run_trial(kernel, sizes, options);
        note_run(fmt::format("kernels/{}.py", c.file), kernel, shape_of(c.sizes, c.constants), schedule,
                 trial.failed() || !trial.refused.empty());
        ASSERT_EQ(trial.refused, "") << schedule.describe();
        ASSERT_FALSE(trial.failed()) << schedule.describe() << ": " << trial.summary(kernel);
        ASSERT_FALSE(trial.outputs.empty());
        for (const OutputError& e : trial.outputs) EXPECT_FALSE(e.unwritten) << schedule.describe();
        if (&schedule == &schedules.front()) expect_device_form_agrees(kernel, trial, options);
    }
}

const Case kCases[] = {
    {"vector_add", 0, {{"BLOCK", 256}}, {{"N", 1}}},
    {"vector_add", 0, {{"BLOCK", 256}}, {{"N", 255}}},
    {"vector_add", 0, {{"BLOCK", 256}}, {{"N", 257}}},
    {"vector_add", 0, {}, {{"N", 2500}}},
    {"bias_gelu", 0, {}, {{"M", 1}, {"N", 8}}},
    {"bias_gelu", 0, {}, {{"M", 9}, {"N", 264}}},
    {"bias_gelu", 1, {}, {{"M", 1}, {"N", 1}}},
    {"bias_gelu", 1, {}, {{"M", 5}, {"N", 259}}},
    {"softmax", 0, {}, {{"M", 1}, {"N", 1}}},
    {"softmax", 0, {}, {{"M", 5}, {"N", 250}}},
    {"softmax", 0, {}, {{"M", 4}, {"N", 1024}}},
    {"softmax", 1, {}, {{"M", 1}, {"N", 1}}},
    {"softmax", 1, {}, {{"M", 2}, {"N", 1025}}},
    {"softmax", 1, {}, {{"M", 1}, {"N", 3000}}},
    {"layernorm", 0, {{"BN", 512}}, {{"M", 1}, {"N", 8}}},
    {"layernorm", 0, {{"BN", 512}}, {{"M", 5}, {"N", 504}}},
    {"layernorm", 0, {{"BN", 512}}, {{"M", 9}, {"N", 512}}},
    {"rmsnorm", 0, {{"BN", 512}}, {{"M", 1}, {"N", 8}}},
    {"rmsnorm", 0, {{"BN", 512}}, {{"M", 5}, {"N", 504}}},
    {"transpose", 0, {}, {{"M", 1}, {"N", 1}}},
    {"transpose", 0, {}, {{"M", 33}, {"N", 31}}},
    {"transpose", 0, {}, {{"M", 40}, {"N", 70}}},
    {"cumsum", 0, {{"BN", 512}}, {{"M", 1}, {"N", 1}}},
    {"cumsum", 0, {{"BN", 512}}, {{"M", 2}, {"N", 513}}},
    {"cumsum", 0, {{"BN", 512}}, {{"M", 1}, {"N", 1500}}},
    {"reductions", 0, {}, {{"M", 1}, {"N", 1}}},
    {"reductions", 0, {}, {{"M", 5}, {"N", 700}}},
    {"reductions", 1, {}, {{"M", 1}, {"N", 1}}},
    {"reductions", 1, {}, {{"M", 70}, {"N", 33}}},
    {"reductions", 2, {}, {{"M", 1}, {"N", 1}}},
    {"reductions", 2, {}, {{"M", 130}, {"N", 33}}},
    {"split_k", 0, {}, {{"M", 1}, {"N", 1}, {"K", 8}}},
    {"split_k", 0, {}, {{"M", 65}, {"N", 33}, {"K", 136}}, false},
    {"split_k", 1, {}, {{"M", 1}, {"N", 1}}},
    {"split_k", 1, {}, {{"M", 3}, {"N", 700}}},
    {"gemm_sm80", 0, {{"BM", 64}, {"BN", 64}}, {{"M", 1}, {"N", 8}, {"K", 8}}},
    {"gemm_sm80", 0, {{"BM", 64}, {"BN", 64}, {"STAGES", 2}}, {{"M", 65}, {"N", 8}, {"K", 72}}},
    {"gemm_sm80", 0, {}, {{"M", 130}, {"N", 8}, {"K", 136}}, false},
    {"gemm_sm90", 0, {{"BN", 128}, {"STAGES", 2}}, {{"M", 1}, {"N", 8}, {"K", 8}}},
    {"gemm_sm90", 0, {{"BN", 128}, {"STAGES", 2}}, {{"M", 65}, {"N", 136}, {"K", 72}}, false},
    {"gemm_sm90", 0, {{"BN", 128}, {"STAGES", 2}, {"GROUP", 1}}, {{"M", 257}, {"N", 136}, {"K", 136}}, false},
    {"gemm_deferred_sm90", 5, {{"BN", 128}, {"STAGES", 2}}, {{"M", 8}, {"N", 8}, {"K", 8}}, false},
    {"gemm_deferred_sm90", 5, {{"BN", 128}, {"STAGES", 2}}, {{"M", 72}, {"N", 136}, {"K", 136}}, false},
    {"gemm_deferred_sm90", 6, {{"BN", 128}, {"STAGES", 2}}, {{"M", 72}, {"N", 136}, {"K", 70}}, false},
    {"gemm_deferred_sm90", 7, {{"BN", 128}, {"STAGES", 2}}, {{"M", 65}, {"N", 136}, {"K", 72}}, false},
    {"gemm_sm90", 1, {{"BN", 128}, {"STAGES", 2}}, {{"M", 65}, {"N", 136}, {"K", 72}}, false},
    {"gemm_small_sm90", 0, {{"BN", 128}, {"STAGES", 2}}, {{"M", 1}, {"N", 8}, {"K", 8}}},
    {"gemm_small_sm90", 0, {{"BN", 128}, {"STAGES", 3}}, {{"M", 130}, {"N", 136}, {"K", 200}}, false},
    {"gemm_thin_sm90", 0, {{"BN", 64}, {"PARTS", 4}, {"STAGES", 2}}, {{"M", 1}, {"N", 8}, {"K", 8}}},
    {"gemm_thin_sm90", 0, {{"BN", 128}, {"PARTS", 8}, {"STAGES", 3}}, {{"M", 70}, {"N", 136}, {"K", 1000}}},
    {"gemm_thin_sm90", 0, {{"BN", 32}, {"PARTS", 2}, {"STAGES", 3}, {"STREAMED", 2}}, {{"M", 70}, {"N", 72}, {"K", 520}}, false},
    {"gemm_thin_sm90", 0, {{"BN", 64}, {"PARTS", 1}, {"STAGES", 3}}, {{"M", 130}, {"N", 72}, {"K", 200}}, false},
    {"gemm_deferred_sm90", 0, {{"BN", 128}, {"STAGES", 2}}, {{"M", 300}, {"N", 136}, {"K", 136}}, false},
    {"gemm_deferred_sm90", 0, {{"BN", 256}, {"LESS", 96}, {"STAGES", 2}}, {{"M", 200}, {"N", 328}, {"K", 328}}, false},
    {"gemm_deferred_sm90", 2, {{"BN", 128}, {"STAGES", 2}}, {{"M", 136}, {"N", 136}, {"K", 136}}, false},
    {"gemm_deferred_sm90", 3, {{"BN", 128}, {"STAGES", 2}}, {{"M", 136}, {"N", 136}, {"K", 136}}, false},
    {"gemm_deferred_sm90", 4, {{"BN", 128}, {"STAGES", 2}}, {{"M", 130}, {"N", 136}, {"K", 136}}, false},
    {"gemm_deferred_sm90", 1, {{"BN", 128}, {"STAGES", 2}}, {{"M", 130}, {"N", 136}, {"K", 136}}, false},
    {"gemm_skinny_sm90", 0, {{"TOKENS", 8}, {"BK", 64}, {"STAGES", 2}}, {{"M", 1}, {"N", 8}, {"K", 8}}},
    {"gemm_skinny_sm90", 0, {{"TOKENS", 16}, {"BK", 128}, {"STAGES", 3}}, {{"M", 11}, {"N", 136}, {"K", 520}}, false},
    {"gemm_split_sm90", 0, {{"BN", 64}, {"STAGES", 2}}, {{"M", 5}, {"N", 8}, {"K", 1032}}, false},
    {"gemm_split_sm90", 0, {{"BN", 64}, {"STAGES", 2}, {"SPLITS", 3}}, {{"M", 130}, {"N", 72}, {"K", 456}}, false},
    {"gemm_split_sm90", 1, {{"CHUNK", 128}}, {{"M", 3}, {"N", 136}}},
    {"gemm_misaligned_sm90", 0, {{"ROWS", 4}}, {{"M", 5}, {"N", 3}, {"K", 520}}},
    {"gemm_misaligned_sm90", 1, {{"ROWS", 4}}, {{"M", 3}, {"N", 9}, {"K", 515}}},
    {"gemm_misaligned_sm90", 2, {{"BN", 64}, {"STAGES", 2}}, {{"M", 133}, {"N", 72}, {"K", 131}}, false},
    {"gemm_misaligned_sm90", 3, {{"BN", 64}, {"STAGES", 2}}, {{"M", 1}, {"N", 1}, {"K", 1}}, false},
    {"gemm_misaligned_sm90", 3, {{"BN", 64}, {"STAGES", 2}}, {{"M", 133}, {"N", 67}, {"K", 131}}, false},
    {"gemm_fused_sm90", 0, {{"STAGES", 2}}, {{"M", 300}, {"N", 72}, {"K", 520}}, false},
    {"gemm_fused_sm90", 0, {{"STAGES", 2}}, {{"M", 5}, {"N", 72}, {"K", 456}}, false},
    {"gemm_fused_sm90", 1, {{"BN", 128}, {"STAGES", 2}}, {{"M", 1}, {"N", 8}, {"K", 8}}, false},
    {"gemm_fused_sm90", 1, {{"BN", 128}, {"STAGES", 2}}, {{"M", 130}, {"N", 136}, {"K", 136}}, false},
    {"gemm_fused_sm90", 2, {{"STAGES", 2}}, {{"M", 5}, {"N", 72}, {"K", 456}}, false},
    {"gemm_fused_sm90", 4, {{"STAGES", 2}}, {{"M", 5}, {"N", 72}, {"K", 456}}, false},
    {"gemm_fused_sm90", 6, {{"STAGES", 2}}, {{"M", 5}, {"N", 72}, {"K", 264}}, false},
    {"gemm_fused_sm90", 8, {{"STAGES", 2}}, {{"M", 5}, {"N", 72}, {"K", 264}}, false},
    {"gemm_fused_sm90", 10, {{"STAGES", 2}}, {{"M", 5}, {"N", 72}, {"K", 264}}, false},
    {"gemm_fused_sm90", 3, {{"BN", 128}, {"STAGES", 2}}, {{"M", 70}, {"N", 136}, {"K", 72}}, false},
    {"gemm_fused_sm90", 5, {{"BN", 128}, {"STAGES", 2}}, {{"M", 70}, {"N", 136}, {"K", 72}}, false},
    {"gemm_fused_sm90", 7, {{"BN", 128}, {"STAGES", 2}}, {{"M", 70}, {"N", 136}, {"K", 72}}, false},
    {"gemm_fused_sm90", 9, {{"BN", 128}, {"STAGES", 2}}, {{"M", 70}, {"N", 136}, {"K", 72}}, false},
    {"gemm_fused_sm90", 11, {{"BN", 128}, {"STAGES", 2}}, {{"M", 70}, {"N", 136}, {"K", 72}}, false},
    {"gemm_fused_sm90", 12, {{"STAGES", 2}}, {{"M", 70}, {"N", 136}, {"K", 72}}, false},
    {"gemm_cluster_sm90", 0, {{"BN", 128}, {"STAGES", 2}}, {{"M", 1}, {"N", 8}, {"K", 8}}, false},
    {"gemm_cluster_sm90", 0, {{"BN", 128}, {"STAGES", 2}}, {{"M", 200}, {"N", 136}, {"K", 200}}, false},
    {"attention_sm90", 0, {{"D", 64}, {"BN", 64}}, {{"B", 1}, {"HK", 1}, {"S", 1}, {"T", 1}}, false},
    {"attention_sm90", 0, {{"D", 64}, {"BN", 64}}, {{"B", 1}, {"HK", 2}, {"S", 2}, {"T", 200}}},
    {"attention_sm90", 0, {{"D", 64}, {"BN", 64}, {"QSTAGES", 2}}, {{"B", 2}, {"HK", 2}, {"S", 129}, {"T", 3}}, false},
    {"attention_sm90", 0, {{"D", 64}, {"BN", 80}, {"C", 3}, {"G", 2}}, {{"B", 1}, {"HK", 1}, {"S", 70}, {"T", 90}}, false},
    {"attention_sm90", 0, {{"D", 64}, {"STAY", 0}}, {{"B", 1}, {"HK", 1}, {"S", 130}, {"T", 200}}, false},
    {"attention_sm90", 1, {{"D", 64}, {"BN", 64}}, {{"B", 1}, {"HK", 1}, {"S", 3}, {"T", 70}}, false},
    {"attention_sm90", 2, {{"D", 64}}, {{"B", 1}, {"HK", 1}, {"S", 1}, {"T", 1}}, false},
    {"attention_sm90", 3, {{"D", 64}}, {{"B", 1}, {"HK", 1}, {"S", 130}, {"T", 100}}},
    {"attention_sm90", 2, {{"D", 64}}, {{"B", 1}, {"HK", 1}, {"S", 300}, {"T", 300}}, false},
    {"attention_sm90", 3, {{"D", 64}, {"BN", 80}, {"C", 3}, {"G", 2}}, {{"B", 1}, {"HK", 1}, {"S", 200}, {"T", 170}}, false},
    {"attention_sm90", 3, {{"D", 64}, {"BN", 64}}, {{"B", 1}, {"HK", 1}, {"S", 260}, {"T", 260}}, false},
    {"attention_sm90", 2, {{"D", 64}, {"BN", 64}}, {{"B", 1}, {"HK", 1}, {"S", 2}, {"T", 200}}},
    {"attention_sm90",
     2,
     {{"D", 64}, {"BN", 64}, {"C", 3}, {"QSTAGES", 1}, {"STAY", 0}, {"TURNS", 1}},
     {{"B", 1}, {"HK", 1}, {"S", 400}, {"T", 410}},
     false},
    {"attention_sm90", 2, {{"D", 64}, {"BN", 96}, {"C", 3}, {"G", 2}, {"TURNS", 1}}, {{"B", 1}, {"HK", 1}, {"S", 390}, {"T", 390}}, false},
    {"attention_sm90", 2, {{"D", 64}}, {{"B", 1}, {"HK", 3}, {"S", 130}, {"T", 50000}}, false},  // two heads, then one
    {"attention_sm90", 3, {{"D", 64}, {"STAY", 0}}, {{"B", 1}, {"HK", 1}, {"S", 270}, {"T", 200}}, false},
    {"attention_sm90", 5, {{"D", 64}, {"STAY", 2}}, {{"B", 1}, {"HK", 1}, {"S", 70}, {"T", 60}}, false},
    {"attention_sm90", 4, {{"D", 64}, {"BN", 64}, {"C", 3}, {"STAY", 2}}, {{"B", 1}, {"HK", 1}, {"S", 200}, {"T", 200}}, false},
    {"attention_sm90", 0, {{"D", 64}, {"BN", 64}}, {{"B", 1}, {"HK", 6}, {"S", 5}, {"T", 70}}},
    {"attention_sm90", 0, {{"D", 64}, {"BN", 80}, {"QSTAGES", 1}, {"STAY", 0}}, {{"B", 1}, {"HK", 3}, {"S", 150}, {"T", 90}}, false},
    {"attention_sm90", 3, {{"D", 64}, {"C", 3}}, {{"B", 2}, {"HK", 2}, {"S", 200}, {"T", 200}}, false},
    {"attention_sm90", 3, {{"D", 64}, {"BN", 80}, {"QSTAGES", 1}, {"STAY", 0}}, {{"B", 1}, {"HK", 2}, {"S", 300}, {"T", 260}}, false},
};
INSTANTIATE_TEST_SUITE_P(Table, ShippedKernel, ::testing::ValuesIn(kCases), name_of_case);

TEST(ShippedKernels, EveryFileIsInTheTable) {
    for (const auto& entry : std::filesystem::directory_iterator(repository("kernels"))) {
        if (entry.path().extension() != ".py") continue;
        const std::string stem = entry.path().stem().string();
        if (testing_kernels::in_model_table(stem)) continue;
        const auto all = kernels_of("kernels/" + stem + ".py");
        const std::size_t kernels = all.size();
        const bool has_variants = std::any_of(all.begin(), all.end(), [](const ir::Kernel& k) { return !k.variant.empty(); });
        if (has_variants && !testing_kernels::in_numbered_table(stem)) continue;  // variant_kernels_test.cpp
        for (std::size_t n = 0; n < kernels && stem.rfind("grouped_gemm", 0) != 0 && stem.rfind("gathered", 0) != 0; ++n) {
            const bool listed =
                std::any_of(std::begin(kCases), std::end(kCases), [&](const Case& c) { return stem == c.file && c.number == n; });
            EXPECT_TRUE(listed) << "kernel number " << n << " of " << stem << " runs in no case";
        }
    }
}

// Index tables that belong together: positions sorted by expert, tiles of BM positions that end where their expert ends.
struct Routing {
    std::vector<std::int64_t> positions_of_expert;  // how many each expert gets
    std::int64_t tokens = 1, columns = 8, depth = 8;
};

struct GroupedCase {
    const char* file;
    std::size_t number;
    lower::ConstValues constants;
    Routing routing;
    bool small = true;
};

void PrintTo(const GroupedCase& c, std::ostream* out) {
    *out << c.file << " kernel " << c.number << " columns " << c.routing.columns << " depth " << c.routing.depth;
}

class GroupedGemm : public ::testing::TestWithParam<GroupedCase> {};

TEST_P(GroupedGemm, AgreesWithTheReferenceUnderHostileSchedules) {
    const GroupedCase& c = GetParam();
    const Routing& r = c.routing;
    const std::int64_t tile_rows = c.constants.count("HIGH") ? c.constants.at("HIGH").integer : 64;
    const ir::Kernel kernel = kernel_of(fmt::format("kernels/{}.py", c.file), c.constants, c.number);
    std::vector<std::int64_t> expert, first, end;
    for (std::size_t e = 0; e < r.positions_of_expert.size(); ++e) {
        const auto begin = static_cast<std::int64_t>(expert.size());
        const std::int64_t stop = begin + r.positions_of_expert[e];
        for (std::int64_t p = begin; p < stop; ++p) expert.push_back(static_cast<std::int64_t>(e));
        for (std::int64_t p = begin; p < stop; p += tile_rows) first.push_back(p), end.push_back(stop);
    }
    const std::int64_t together = c.constants.count("TOGETHER") ? c.constants.at("TOGETHER").integer : 1,
                       batches = (static_cast<std::int64_t>(first.size()) + together - 1) / together;
    std::map<std::string, std::int64_t> named = {{"T", r.tokens},
                                                 {"P", static_cast<std::int64_t>(expert.size())},
                                                 {"E", static_cast<std::int64_t>(r.positions_of_expert.size())},
                                                 {"N", r.columns},
                                                 {"K", r.depth},
                                                 {"TILES", static_cast<std::int64_t>(first.size())},
                                                 {"BATCHES", batches}};
    first.resize(static_cast<std::size_t>(batches * together), 0);  // spare tiles are empty
    end.resize(static_cast<std::size_t>(batches * together), 0);
    for (auto it = named.begin(); it != named.end();) {
        const bool used = std::find(kernel.sizes.begin(), kernel.sizes.end(), it->first) != kernel.sizes.end();
        it = used ? std::next(it) : named.erase(it);
    }
    const auto sizes = named_sizes(kernel, named);
    auto fill = [&](std::vector<TensorData>& tensors, const std::string& name, const std::function<std::int64_t(std::int64_t)>& value) {
        for (std::size_t i = 0; i < kernel.tensors.size(); ++i) {
            if (kernel.tensors[i].name != name) continue;
            for (std::int64_t n = 0; n < tensors[i].dims[0]; ++n) tensors[i].set({n}, static_cast<double>(value(n)));
        }
    };
    for (const Schedule& schedule : schedules_of_case(kernel, c.small, static_cast<std::size_t>(r.depth + r.columns))) {
        std::vector<TensorData> tensors = random_inputs(kernel, sizes, 5, false);
        fill(tensors, "expert", [&](std::int64_t p) { return expert[static_cast<std::size_t>(p)]; });
        fill(tensors, "rows", [&](std::int64_t p) { return (p * 7 + 3) % r.tokens; });
        fill(tensors, "tile_first", [&](std::int64_t t) { return first[static_cast<std::size_t>(t)]; });
        fill(tensors, "tile_end", [&](std::int64_t t) { return end[static_cast<std::size_t>(t)]; });
        const auto expected = reference(kernel.computes, sizes, {}, tensors);
        ASSERT_TRUE(expected.has_value());
        Options options;
        options.schedule = schedule;
        options.resident_blocks = 3;
        std::vector<TensorData> beside = tensors;
        const Outcome outcome = run(kernel, sizes, {}, tensors, options);
        const Outcome device_outcome = run(device::device_form(kernel), sizes, {}, beside, options);
        ASSERT_TRUE(device_outcome.clean()) << "the device form: " << device_outcome.faults[0].message;
        for (const ReferenceOutput& out : *expected)
            EXPECT_EQ(tensors[static_cast<std::size_t>(out.tensor)].bytes, beside[static_cast<std::size_t>(out.tensor)].bytes);
        bool failed = !outcome.clean();
        for (const ReferenceOutput& out : *expected)
            failed |= !(compare(out, tensors[static_cast<std::size_t>(out.tensor)]).worst <
                        stated_tolerance(kernel.computes, kernel.tensors, out.tensor));
        note_run(fmt::format("kernels/{}.py", c.file), kernel, shape_of(named, c.constants), schedule, failed);
        ASSERT_TRUE(outcome.clean()) << schedule.describe() << ": " << outcome.faults[0].message << " " << outcome.faults[0].element;
        for (const ReferenceOutput& out : *expected) {
            const ErrorSummary error = compare(out, tensors[static_cast<std::size_t>(out.tensor)]);
            EXPECT_FALSE(error.has_nan) << schedule.describe();
            EXPECT_LT(error.worst, stated_tolerance(kernel.computes, kernel.tensors, out.tensor))
                << schedule.describe() << " at " << error.where[0] << ", " << error.where[1];
        }
    }
}

const lower::ConstValues kSmallAmpere = {{"BM", 64}, {"BN", 64}, {"STAGES", 2}};
const lower::ConstValues kSmallHopper = {{"HIGH", 64}, {"STEP", 16}, {"STAGES", 3}, {"TOGETHER", 2}};
const lower::ConstValues kBehind = {{"HIGH", 128}, {"STEP", 32}, {"STAGES", 3}, {"TOGETHER", 2}};
const lower::ConstValues kSmallGather = {{"HIGH", 64}, {"STEP", 32}, {"STAGES", 3}, {"TOGETHER", 2}, {"LAG", 1}};
const lower::ConstValues kLateGather = {{"HIGH", 64}, {"STEP", 16}, {"STAGES", 4}, {"TOGETHER", 1}, {"LAG", 2}};
INSTANTIATE_TEST_SUITE_P(Table, GroupedGemm,
                         ::testing::Values(GroupedCase{"grouped_gemm_sm80", 0, kSmallAmpere, {{1}, 1, 8, 8}},
                                           GroupedCase{"grouped_gemm_sm80", 0, kSmallAmpere, {{3, 0, 70}, 9, 72, 40}},
                                           GroupedCase{"grouped_gemm_sm80", 0, kSmallAmpere, {{65, 1}, 5, 8, 72}},
                                           GroupedCase{"grouped_gemm_sm90", 0, kSmallHopper, {{3, 0, 140, 0}, 9, 72, 200}, false},
                                           GroupedCase{"grouped_gemm_sm90", 0, kBehind, {{1}, 1, 8, 136}},
                                           GroupedCase{"grouped_gemm_sm90", 0, kBehind, {{3, 0, 250, 0, 1, 129}, 9, 136, 200}, false},
                                           GroupedCase{"grouped_gemm_sm90", 1, kSmallHopper, {{1}, 1, 8, 8}},
                                           GroupedCase{"grouped_gemm_sm90", 1, kSmallHopper, {{3, 0, 140, 0}, 9, 72, 200}, false},
                                           GroupedCase{"grouped_gemm_sm90", 2, kSmallGather, {{1}, 1, 8, 8}},
                                           GroupedCase{"grouped_gemm_sm90", 2, kSmallGather, {{0, 3, 140}, 9, 72, 200}, false},
                                           GroupedCase{"grouped_gemm_sm90", 2, kLateGather, {{65, 1}, 5, 8, 72}, false},
                                           GroupedCase{"grouped_gemm_sm90", 2, kLateGather, {{65, 1}, 5, 8, 400}, false},
                                           GroupedCase{"gathered_swiglu_sm90", 0, kSmallGather, {{1, 0}, 1, 8, 8}, false},
                                           GroupedCase{"gathered_swiglu_sm90", 0, kLateGather, {{65, 2}, 7, 72, 200}, false}));

// Controls: the harness notices an error in the tables, and one in a kernel.
TEST(Controls, AKernelWithOneStatementLessIsNoticed) {
    ir::Kernel kernel = kernel_of("kernels/transpose.py");
    ASSERT_EQ(remove_all<ir::BlockSync>(kernel), 1);
    EXPECT_TRUE(run_trial(kernel, {33, 31}, {}).failed());
}

TEST(Controls, AWrongFillIsNoticed) {
    ir::Kernel kernel = kernel_of("kernels/softmax.py");
    ASSERT_EQ(edit_all<ir::LoadGlobal>(kernel, [](ir::LoadGlobal& l) { l.fill = 0; }), 1);
    EXPECT_TRUE(run_trial(kernel, {5, 250}, {}).failed());
}

}  // namespace kernels_test
}  // namespace tw::emulate

bool tw::testing_kernels::in_numbered_table(const std::string& stem) {
    return std::any_of(std::begin(emulate::kernels_test::kCases), std::end(emulate::kernels_test::kCases),
                       [&](const emulate::kernels_test::Case& c) { return stem == c.file; });
}
