// Shuffles: which element each coordinate of a tile receives, for every lane argument, against the formula of the PTX section written out;
// and the kernels of tests/gpu/kernels/shuffles.py against fp64.
#include <gtest/gtest.h>

#include "emulate/trial.h"
#include "ir/shuffle.h"
#include "verify/kernel_test_support.h"

namespace tw::emulate {
namespace shuffle_test {

using namespace testing_kernels;

using target::ShuffleMode;

int lane_by_the_text(ShuffleMode mode, int lane, int by) {
    int from = by;
    if (mode == ShuffleMode::Bfly) from = lane ^ by;
    if (mode == ShuffleMode::Up) from = lane - by;
    if (mode == ShuffleMode::Down) from = lane + by;
    return from < 0 || from > 31 ? lane : from;
}

TEST(Shuffle, EveryLaneOfEveryWarp) {
    for (const ShuffleMode mode : {ShuffleMode::Up, ShuffleMode::Down, ShuffleMode::Bfly, ShuffleMode::Idx}) {
        for (int by = 0; by < 32; ++by) {
            const ir::Shuffle op{0, 0, mode, by};
            for (int t = 0; t < 96; ++t)
                EXPECT_EQ(ir::shuffle_source(op, t), t / 32 * 32 + lane_by_the_text(mode, t % 32, by))
                    << target::name(mode) << " " << by << " thread " << t;
        }
    }
}

TEST(Shuffle, CopiesMustStayCopies) {
    ir::Distribution twice;  // 16 elements in 32 lanes
    twice.shape = {16};
    twice.thread = {{16, 0, 1}, {2, -1, 0}};
    EXPECT_TRUE(ir::keeps_copies(twice, {0, 0, ShuffleMode::Bfly, 16}));
    EXPECT_TRUE(ir::keeps_copies(twice, {0, 0, ShuffleMode::Bfly, 3}));
    EXPECT_TRUE(ir::keeps_copies(twice, {0, 0, ShuffleMode::Idx, 5}));
    EXPECT_FALSE(ir::keeps_copies(twice, {0, 0, ShuffleMode::Up, 1}));  // lane 16 receives element 15, lane 0 keeps element 0
    EXPECT_FALSE(ir::keeps_copies(twice, {0, 0, ShuffleMode::Down, 1}));
}

TEST(Shuffle, KernelsAgreeWithTheReference) {
    const std::string file = "tests/gpu/kernels/shuffles.py";
    const std::vector<std::vector<std::vector<std::int64_t>>> sizes = {{{2}, {250}, {600}}, {{1}, {7}}, {{1}, {9}}, {{16}, {1040}}};
    for (std::size_t n = 0; n < sizes.size(); ++n) {
        const ir::Kernel kernel = kernel_of(file, {}, n);
        for (const auto& s : sizes[n]) {
            TrialOptions options;
            const Trial trial = run_trial(kernel, s, options);
            EXPECT_EQ(trial.refused, "");
            EXPECT_FALSE(trial.failed()) << kernel.name << ": " << trial.summary(kernel);
        }
    }
}

}  // namespace shuffle_test
}  // namespace tw::emulate
