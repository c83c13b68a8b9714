// Kernels that stand for many variants (tw.each): each case is launched as the launcher would, with the first variant whose dtype and
// assumptions fit, and compared with the fp64 reference. Every text must be reached by some case.
#include <fmt/format.h>

#include <map>
#include <set>

#include "emulate/trial.h"
#include "kernels/device_agreement.h"
#include "kernels/hostile_table.h"
#include "verify/kernel_test_support.h"

namespace tw::emulate {
namespace variant_kernels_test {

using namespace testing_kernels;
using target::DType;

struct Case {
    const char* file;
    const char* kernel;
    DType dtype;
    std::map<std::string, std::int64_t> sizes;
    bool small = false;  // runs under every hostile schedule in `make test` too, not only under a sample
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.file << " " << c.kernel; }

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
    std::string name = fmt::format("{}_{}_{}_{}", info.index, info.param.file, info.param.kernel, target::name(info.param.dtype));
    for (const auto& [size, value] : info.param.sizes) name += fmt::format("_{}{}", size, value);
    return name;
}

// The variant that serves the case; nothing: none does.
std::optional<ir::Kernel> chosen(const std::vector<ir::Kernel>& kernels, const Case& c) {
    for (const ir::Kernel& k : kernels) {
        if (k.name != c.kernel || k.tensors[0].dtype != c.dtype) continue;
        const auto sizes = named_sizes(k, c.sizes);
        if (std::all_of(k.assumptions.begin(), k.assumptions.end(),
                        [&](const ir::Assumption& a) { return size_value(a.condition, sizes).value_or(0) != 0; }))
            return k;
    }
    return std::nullopt;
}

class VariantKernel : public ::testing::TestWithParam<Case> {};

TEST_P(VariantKernel, AgreesWithTheReference) {
    const Case& c = GetParam();
    const auto kernel = chosen(kernels_of(fmt::format("kernels/{}.py", c.file)), c);
    ASSERT_TRUE(kernel.has_value());
    const auto sizes = named_sizes(*kernel, c.sizes);
    std::size_t number = c.dtype == DType::F32;
    std::string shape(target::name(c.dtype));
    for (const auto& [size, value] : c.sizes) {
        number = number * 7 + static_cast<std::size_t>(value);
        shape += fmt::format(" {}={}", size, value);
    }
    const std::vector<Schedule> schedules = schedules_of_case(*kernel, c.small, number);
    for (const Schedule& schedule : schedules) {
        TrialOptions options;
        options.seed = 11;
        options.emulator.schedule = schedule;
        const Trial trial = run_trial(*kernel, sizes, options);
        note_run(fmt::format("kernels/{}.py", c.file), *kernel, shape, schedule, trial.failed() || !trial.refused.empty());
        ASSERT_EQ(trial.refused, "") << schedule.describe();
        ASSERT_FALSE(trial.failed()) << kernel->variant << ", " << schedule.describe() << ": " << trial.summary(*kernel);
        for (const OutputError& e : trial.outputs) EXPECT_FALSE(e.unwritten) << schedule.describe();
        if (&schedule == &schedules.front()) expect_device_form_agrees(*kernel, trial, options);
    }
}

std::vector<Case> cases() {
    std::vector<Case> out;
    auto rows = [&](const char* file, const char* kernel, std::initializer_list<std::pair<int, int>> shapes,
                    std::initializer_list<std::pair<int, int>> small) {
        for (DType t : {DType::BF16, DType::F32}) {
            for (auto [m, n] : small) out.push_back({file, kernel, t, {{"M", m}, {"N", n}}, true});
            for (auto [m, n] : shapes) out.push_back({file, kernel, t, {{"M", m}, {"N", n}}, false});
        }
    };
    // Rows in registers, over a cluster, in chunks; each of whole vectors and of odd length.
    rows("softmax_sm90", "softmax", {{2, 3000}, {1, 40000}, {1, 600000}, {9, 1023}, {2, 50001}, {1, 300001}},
         {{1, 8}, {9, 72}, {1, 1}, {5, 250}});
    out.push_back({"softmax_sm90", "softmax", DType::F32, {{"M", 2}, {"N", 304132}}, false});  // a row over all blocks
    rows("layernorm_sm90", "layernorm", {{2, 3000}, {1, 40000}, {3, 60000}, {1, 150000}, {2, 1023}, {9, 3001}, {1, 50001}},
         {{1, 8}, {9, 72}, {1, 1}, {5, 250}});
    out.push_back({"layernorm_sm90", "layernorm", DType::F32, {{"M", 2}, {"N", 304132}}, false});
    rows("rmsnorm_sm90", "rmsnorm", {{2, 3000}, {1, 40000}, {1, 300000}, {1, 900000}, {2, 1023}, {1, 20001}},
         {{1, 8}, {9, 72}, {1, 1}, {5, 250}});
    rows("rmsnorm_sm90", "rmsnorm_residual", {{2, 3000}, {2, 1023}}, {{1, 8}, {9, 72}, {1, 1}});
    for (const char* kernel : {"row_sum", "row_mean", "row_max", "row_min"})
        rows("reductions_sm90", kernel, {{2, 3000}, {1, 40000}, {1, 9001}, {3, 1023}, {2, 1023}, {1, 4095}}, {{1, 8}, {1, 1}});
    rows("reductions_sm90", "row_sum", {{256, 16392}}, {});  // a block a row
    for (const char* kernel : {"row_argmax", "row_argmin"})
        rows("argmax", kernel, {{2, 3000}, {1, 40000}, {1, 300000}, {9, 1023}, {2, 1023}, {4, 1024}, {1, 9001}}, {{1, 8}, {9, 72}, {1, 1}});
    for (const char* kernel : {"logsumexp", "cross_entropy"})
        rows("cross_entropy", kernel, {{2, 3000}, {1, 40000}, {1, 9001}}, {{1, 8}, {9, 72}, {1, 1}});
    rows("cumsum_sm90", "cumsum", {{2, 3000}, {1, 9000}, {1, 2051}}, {{1, 8}, {9, 72}, {1, 1}});
    out.push_back({"cumsum_sm90",
                   "cumsum",
                   DType::F32,
                   {{"M", 528}, {"N", 1028}},
                   false});  // as many rows as need no long ring; a bf16 row of that ring is too long for the reference
    rows("cumsum_sm90", "cumprod", {{1, 3000}, {1, 2051}}, {{1, 8}, {1, 1}});
    rows("transpose_sm90", "transpose", {{72, 136}, {65, 131}, {70, 263}, {81, 260}}, {{1, 1}, {8, 8}});
    for (DType t : {DType::BF16, DType::F16}) {  // more in kernels_test.cpp
        out.push_back({"gemm_sm90", "gemm", t, {{"M", 1}, {"N", 8}, {"K", 8}}, true});
        for (const char* kernel : {"attention", "attention_causal"})
            out.push_back({"attention_sm90", kernel, t, {{"B", 1}, {"HK", 1}, {"S", 9}, {"T", 9}}, false});
    }
    for (DType t : {DType::BF16, DType::F16, DType::F32}) {
        for (const char* kernel : {"dropout", "dropout_add"}) {
            for (int n : {1, 1027, 5000}) out.push_back({"dropout", kernel, t, {{"N", n}}, n == 1});
        }
    }
    for (DType t : {DType::BF16, DType::F32}) {
        for (const char* kernel : {"relu", "silu", "sigmoid", "gelu", "gelu_tanh"}) {
            for (int n : {1, 4097, 9000}) out.push_back({"activations", kernel, t, {{"N", n}}, n == 1});
        }
        for (const char* kernel : {"axis_sum", "axis_mean", "axis_max", "axis_min"}) {
            for (auto [r, b] : {std::pair(1, 1), std::pair(70, 264), std::pair(150, 33)})
                out.push_back({"reductions_sm90", kernel, t, {{"A", 2}, {"R", r}, {"B", b}}, r == 1});
        }
        // Few columns, and as many as fill the GPU by themselves.
        for (auto [r, b] : {std::pair(9000, 8), std::pair(3, 66000)})
            out.push_back({"reductions_sm90", "axis_sum", t, {{"A", 1}, {"R", r}, {"B", b}}, false});
        for (const char* kernel : {"partial_sums", "partial_maxima"})
            out.push_back({"tall_reductions", kernel, t, {{"R", 2200}, {"B", 40}}, false});
        if (t == DType::F32) {  // the dtype of the first tensor, which is f32 in both variants
            for (const char* kernel : {"folded_sums", "folded_maxima"}) out.push_back({"tall_reductions", kernel, t, {{"B", 40}}, false});
        }
        for (auto [h, d] : {std::pair(1, 1), std::pair(3, 64), std::pair(33, 40), std::pair(2, 33)})
            out.push_back({"rope", "rope", t, {{"L", 2}, {"H", h}, {"D", d}}, h == 1});
        for (int h : {1, 8, 1021, 2056}) out.push_back({"activations", "swiglu", t, {{"M", 3}, {"H", h}}, h == 1});
    }
    return out;
}
INSTANTIATE_TEST_SUITE_P(Table, VariantKernel, ::testing::ValuesIn(cases()), name_of_case);

TEST(VariantKernels, EveryTextIsReached) {
    for (const auto& entry : std::filesystem::directory_iterator(repository("kernels"))) {
        if (entry.path().extension() != ".py") continue;
        const std::string stem = entry.path().stem().string();
        const auto kernels = kernels_of("kernels/" + stem + ".py");
        if (testing_kernels::in_numbered_table(stem) || testing_kernels::in_model_table(stem) ||
            std::all_of(kernels.begin(), kernels.end(), [](const ir::Kernel& k) { return k.variant.empty(); }))
            continue;  // kernels_test.cpp
        std::set<int> reached;
        for (const Case& c : cases()) {
            if (stem != c.file) continue;
            if (const auto k = chosen(kernels, c)) reached.insert(k->loc.line);
        }
        for (const ir::Kernel& k : kernels)
            EXPECT_TRUE(reached.count(k.loc.line)) << stem << ".py:" << k.loc.line << " (" << k.name << ") runs in no case";
    }
}

}  // namespace variant_kernels_test
}  // namespace tw::emulate
