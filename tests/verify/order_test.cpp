// Synchronisation: shipped kernels with one statement of their IR taken out or changed, and what must be said of them.
#include <set>

#include "diagnose/check.h"
#include "emulate/trial.h"
#include "verify/kernel_test_support.h"
#include "verify/order.h"

namespace tw::verify {
namespace order_test {

using namespace testing_kernels;

ir::Kernel hopper() { return kernel_of("kernels/gemm_sm90.py", {{"BN", 128}, {"STAGES", 2}}); }

std::string array_name(const ir::Kernel& k, const ir::BarrierRef& b) { return k.barriers[static_cast<std::size_t>(b.array)].name; }

// The kinds of fault of the first failing instance; empty when all instances are clean.
std::set<std::string> faults(const ir::Kernel& kernel) {
    const OrderResult result = check_order(kernel);
    std::set<std::string> kinds;
    for (const emulate::Fault& f : result.faults) kinds.insert(emulate::name_of(f.kind));
    const bool all_proved =
        std::all_of(result.obligations.begin(), result.obligations.end(), [](const Obligation& o) { return o.status == Status::proved; });
    EXPECT_EQ(all_proved, kinds.empty()) << "obligations and faults must tell one story";
    return kinds;
}

using Kinds = std::set<std::string>;

TEST(Order, ShippedKernelsAreClean) {
    EXPECT_EQ(faults(hopper()), Kinds{});
    EXPECT_EQ(faults(kernel_of("kernels/transpose.py")), Kinds{});
    EXPECT_EQ(faults(kernel_of("kernels/gemm_sm80.py")), Kinds{});
}

TEST(Order, MissingBlockBarrier) {
    ir::Kernel k = kernel_of("kernels/transpose.py");
    ASSERT_EQ(remove_all<ir::BlockSync>(k), 1);
    EXPECT_EQ(faults(k), (Kinds{"race"}));
}

TEST(Order, MissingProxyFence) {
    ir::Kernel k = hopper();
    ASSERT_GT(remove_all<ir::ProxyFence>(k), 0);
    EXPECT_EQ(faults(k), (Kinds{"proxy"}));
}

TEST(Order, MissingCopyWait) {
    ir::Kernel k = kernel_of("kernels/gemm_sm80.py", {{"BM", 64}, {"BN", 64}});
    ASSERT_GT(remove_all<ir::CpAsyncWait>(k), 0);
    const Kinds kinds = faults(k);
    EXPECT_TRUE(kinds.count("race") || kinds.count("uninitialised"));
}

TEST(Order, WrongParityOfTheConsumer) {
    ir::Kernel k = hopper();
    ir::Kernel& kernel = k;
    int changed = 0;
    edit_all<ir::BarrierWait>(k, [&](ir::BarrierWait& w) {
        if (array_name(kernel, w.barrier).find("full") == std::string::npos) return;
        w.parity = ir::Expr(1) - w.parity;
        ++changed;
    });
    ASSERT_GT(changed, 0);
    EXPECT_NE(faults(k), Kinds{});
}

TEST(Order, ArrivalCountTooLarge) {
    ir::Kernel k = hopper();
    int changed = 0;
    for (ir::BarrierArray& b : k.barriers) {
        if (b.name.find("empty") != std::string::npos) ++b.arrivals, ++changed;
    }
    ASSERT_EQ(changed, 1);
    edit_all<ir::BarrierInit>(k, [&](ir::BarrierInit& b) { b.arrivals = k.barriers[static_cast<std::size_t>(b.barrier.array)].arrivals; });
    EXPECT_EQ(faults(k), (Kinds{"deadlock"}));
}

TEST(Order, ArrivalCountTooSmall) {
    ir::Kernel k = hopper();
    for (ir::BarrierArray& b : k.barriers) {
        if (b.name.find("empty") != std::string::npos) --b.arrivals;
    }
    edit_all<ir::BarrierInit>(k, [&](ir::BarrierInit& b) { b.arrivals = k.barriers[static_cast<std::size_t>(b.barrier.array)].arrivals; });
    EXPECT_NE(faults(k), Kinds{});
}

TEST(Order, PrematureRelease) {
    // All groups may still run when the slot before the newest is handed back.
    ir::Kernel k = hopper();
    int changed = 0;
    edit_all<ir::WgmmaWait>(k, [&](ir::WgmmaWait& w) {
        if (w.pending == 1) w.pending = 7, ++changed;
    });
    ASSERT_GT(changed, 0);
    EXPECT_TRUE(faults(k).count("race"));
}

TEST(Order, AccumulatorReadInFlight) {
    ir::Kernel k = hopper();
    ASSERT_GT(remove_if<ir::WgmmaWait>(k.body, [](const ir::WgmmaWait& w) { return w.pending == 0; }), 0);
    const Kinds kinds = faults(k);
    EXPECT_TRUE(kinds.count("in_flight") || kinds.count("race"));
}

TEST(Order, StoreBufferReusedBeforeItWasRead) {
    ir::Kernel k = hopper();
    ASSERT_GT(remove_if<ir::BulkWait>(k.body, [](const ir::BulkWait& w) { return w.read; }), 0);
    EXPECT_TRUE(faults(k).count("race"));
}

TEST(Order, BytesThatNeverCome) {
    ir::Kernel k = hopper();
    ASSERT_GT(edit_all<ir::BarrierExpect>(k, [](ir::BarrierExpect& e) { e.bytes = e.bytes + ir::Expr(16); }), 0);
    EXPECT_EQ(faults(k), (Kinds{"deadlock"}));
}

TEST(Order, TooFewBytes) {
    ir::Kernel k = hopper();
    ASSERT_GT(edit_all<ir::BarrierExpect>(k, [](ir::BarrierExpect& e) { e.bytes = e.bytes - ir::Expr(16); }), 0);
    EXPECT_EQ(faults(k), (Kinds{"byte_count"}));
}

TEST(Order, ABlockThatLeavesWhileItsPeersStillReachIntoIt) {
    ir::Kernel k = kernel_of("kernels/gemm_cluster_sm90.py", {{"BN", 128}, {"STAGES", 2}});
    EXPECT_EQ(faults(k), Kinds{});
    ASSERT_TRUE(std::holds_alternative<ir::ClusterWait>(k.body.back().op));
    k.body.pop_back();
    EXPECT_EQ(faults(k), (Kinds{"in_flight"}));
}

TEST(Order, NamedBarrierWithTooManyThreads) {
    ir::Kernel k = hopper();
    ASSERT_GT(edit_all<ir::NamedSync>(k, [](ir::NamedSync& n) { n.threads += 32; }), 0);
    EXPECT_NE(faults(k), Kinds{});
}

TEST(Order, InstancesReachPastTheRing) {
    // The slots of a ring must be used again, or nothing was learned of reuse.
    const ir::Kernel k = kernel_of("kernels/gemm_sm90.py");
    std::int64_t deepest = 0;
    const auto depth = static_cast<std::size_t>(std::find(k.sizes.begin(), k.sizes.end(), "K") - k.sizes.begin());
    for (const Instance& i : cutoff(k).instances) deepest = std::max(deepest, i.sizes.at(depth));
    EXPECT_GE(deepest, 64 * (2 * 4 + 1)) << "K in tiles of 64, a ring of 4";
    EXPECT_EQ(cutoff(k).obstacle, "");
}

// Negative controls: what a check is for goes unnoticed without it.

TEST(NegativeControl, WithoutHappensBeforeARaceGoesUnnoticed) {
    // Under a fair schedule the numbers come out right, only the missing order shows the race.
    ir::Kernel k = kernel_of("tests/verify/bugs/released_before_the_other_warps_have_read.py");
    emulate::TrialOptions options;
    const emulate::Trial seen = emulate::run_trial(k, {64, 256}, options);
    ASSERT_FALSE(seen.outcome.clean());
    EXPECT_EQ(seen.outcome.faults[0].kind, emulate::FaultKind::race);
    options.emulator.detect_races = false;
    const emulate::Trial unseen = emulate::run_trial(k, {64, 256}, options);
    EXPECT_FALSE(unseen.failed()) << unseen.summary(k);
}

TEST(NegativeControl, WithoutLazyCopiesAMissingWaitComputesTheRightNumbers) {
    const ir::Kernel k = kernel_of("tests/verify/bugs/missing_cp_async_wait.py");
    emulate::TrialOptions options;
    options.emulator.detect_races = false;
    EXPECT_FALSE(emulate::run_trial(k, named_sizes(k, {{"M", 32}, {"N", 32}, {"K", 64}}), options).failed());
    options.emulator.schedule.lazy = true;
    EXPECT_TRUE(emulate::run_trial(k, named_sizes(k, {{"M", 32}, {"N", 32}, {"K", 64}}), options).failed());
}

TEST(NegativeControl, WithoutDependencesNothingReadFromSharedMemoryIsKnown) {
    const ir::Kernel k = kernel_of("kernels/transpose.py");
    auto output_proved = [&](const FlowInputs& inputs) {
        for (const Obligation& o : check_flow(k, inputs).obligations) {
            if (o.kind == "output value") return o.status == Status::proved;
        }
        ADD_FAILURE() << "no obligation about the output";
        return false;
    };
    EXPECT_TRUE(output_proved({check_order(k).dependences}));
    EXPECT_FALSE(output_proved({}));
}

TEST(NegativeControl, WithoutSwizzlesAnUnswizzledBufferUnderASwizzledCopyIsCalledRight) {
    ir::Kernel k = hopper();
    int changed = 0;
    for (ir::SharedBuffer& b : k.buffers) {
        if (b.name.find("sA") != std::string::npos) b.swizzle = target::SwizzleMode::None, ++changed;
    }
    ASSERT_EQ(changed, 1);
    auto output_value = [&](bool follow_swizzles) {
        FlowInputs inputs;
        inputs.dependences = check_order(k).dependences;
        inputs.follow_swizzles = follow_swizzles;
        for (const Obligation& o : check_flow(k, inputs).obligations) {
            if (o.kind == "output value") return o.status;
        }
        return Status::vacuous;
    };
    EXPECT_EQ(output_value(true), Status::not_proved);
    EXPECT_EQ(output_value(false), Status::proved) << "the control has lost its meaning: something else refuses the kernel now";
}

}  // namespace order_test
}  // namespace tw::verify
