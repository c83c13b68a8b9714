// Attention with a reference that stays (STAY = 1): scores that outgrow it, on the emulator against fp64.
#include "emulate/trial.h"
#include "verify/kernel_test_support.h"

namespace tw::emulate {
namespace attention_test {

using namespace testing_kernels;

// With `scale` 40, scores of one row lie some 2^500 apart: sums relative to the first key tile leave the range of a float.
Trial trial_of(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, double scale) {
    Trial t;
    t.sizes = sizes;
    t.tensors = random_inputs(kernel, sizes, 1, false);
    const std::vector<TensorData> inputs = t.tensors;
    t.outcome = run(kernel, sizes, {scale}, t.tensors, {});
    note_refusal(t);
    judge_outputs(t, kernel, inputs, {scale}, {});
    return t;
}

TEST(AttentionThatStays, TakesTheCarefulWayWhereScoresOutgrowTheReference) {
    for (const std::size_t variant : {0, 2, 3}) {  // full; causal, across the diagonal and in general
        const ir::Kernel kernel = kernel_of("kernels/attention_sm90.py", {{"D", 64}, {"STAY", 1}}, variant);
        const std::vector<std::int64_t> sizes = {1, 1, 150, 300};
        const Trial usual = trial_of(kernel, sizes, 0.18), steep = trial_of(kernel, sizes, 40.0);
        for (const Trial* t : {&usual, &steep}) {
            EXPECT_EQ(t->refused, "");
            EXPECT_FALSE(t->failed()) << kernel.name << ": " << t->summary(kernel);
        }
        EXPECT_GT(steep.outcome.steps, 2 * usual.outcome.steps) << "the branch was not taken";
    }
}

}  // namespace attention_test
}  // namespace tw::emulate
