// What an arrival at another block's barrier passes on is what its printed form orders (ir/handover.h).
#include "ir/handover.h"

#include "emulate/trial.h"
#include "verify/kernel_test_support.h"

namespace tw::emulate {
namespace handover_test {

using namespace testing_kernels;

// Warp 0 leaves a number in its block's memory; warp 1 of the same block takes it up when word has come back from the peer, or from warp 0
// itself. A multicast beside it makes the kernel one whose arrivals are relaxed.
std::string round_trip(const std::string& first, const std::string& last, const std::string& more = "", bool multicast = true) {
    const std::string copy =
        multicast ? "full[0].expect(256)\n        tw.tma_load(t[rank], X[m, rank, 0], on=full[0], multicast=3)\n        " : "";
    return R"py(
import tilewright as tw
from tilewright import f32

M = tw.sizes("M")


@tw.kernel(target="sm_90a", computes="Y[m, r, n] = X[m, r, n]", cluster=(2, 1, 1), threads=64)
def handed(X: tw.Tensor(f32, M, 2, 32), Y: tw.Tensor(f32, M, 2, 32)):
    rank, m = tw.grid(2, M)
    s = tw.shared(f32, (32,))
    t = tw.shared(f32, (2, 32))
    full = tw.mbarrier(1, arrivals=1)
    there = tw.mbarrier(1, arrivals=1)
    back = tw.mbarrier(1, arrivals=1)
    tw.cluster_sync()
    with tw.warps(0, name="writer"):
        )py" +
           copy + R"py(tw.store(s, tw.load(X[m, rank, 0:32]))
        tw.named_barrier(1, 32).sync()
        )py" +
           first + R"py(
    with tw.warps(1, name="reader"):
        )py" +
           std::string(multicast ? "full[0].wait(0)\n        " : "") + last + R"py(
        tw.store(Y[m, rank, 0:32], tw.load(s)))py" +
           more + R"py(
    tw.cluster_sync()
)py";
}

std::vector<Fault> faults_of(const ir::Kernel& k) {
    TrialOptions options;
    options.emulator.values = false;
    options.emulator.fault_limit = 1;
    return run_trial(k, {1}, options).outcome.faults;
}

const char* const by_peer_first = "there[0].arrive(rank=1 - rank)";
const char* const by_peer_last = "there[0].wait(0)\n        back[0].arrive(rank=1 - rank)\n        back[0].wait(0)";

TEST(Handover, OneThreadLearnsOfAnotherOfItsBlockByWayOfAPeerOnlyAtClusterScope) {
    ir::Kernel k = kernel_of_text(round_trip(by_peer_first, by_peer_last));
    EXPECT_EQ(ir::handover_of(k), ir::Handover::block);
    const auto faults = faults_of(k);
    ASSERT_FALSE(faults.empty());
    EXPECT_EQ(faults[0].kind, FaultKind::race) << faults[0].message;
    // Without a multicast there is nothing to gain, and the arrivals are releases of the cluster.
    const ir::Kernel plain = kernel_of_text(round_trip(by_peer_first, by_peer_last, "", false));
    EXPECT_EQ(ir::handover_of(plain), ir::Handover::cluster);
    for (const Fault& f : faults_of(plain)) ADD_FAILURE() << f.message;
    const ir::Kernel reaching =
        kernel_of_text(round_trip(by_peer_first, by_peer_last, "\n        tw.store(Y[m, rank, 0:32], tw.load(s, rank=rank))"));
    EXPECT_EQ(ir::handover_of(reaching), ir::Handover::cluster);
}

TEST(Handover, AnArrivalAtOnesOwnBlockOrders) {
    for (const char* first : {"back[0].arrive()", "back[0].arrive(rank=rank)"}) {
        const ir::Kernel k = kernel_of_text(round_trip(first, "back[0].wait(0)"));
        EXPECT_EQ(ir::handover_of(k), ir::Handover::block);
        const auto faults = faults_of(k);
        EXPECT_TRUE(faults.empty()) << first << ": " << faults[0].message;
    }
}

TEST(Handover, ATensorThatIsWrittenAndReadNeedsTheCluster) {
    ir::Kernel k =
        kernel_of_text(round_trip(by_peer_first, by_peer_last, "\n        tw.store(Y[m, rank, 0:32], tw.load(Y[m, rank, 0:32]))"));
    EXPECT_EQ(ir::handover_of(k), ir::Handover::cluster);
}

}  // namespace handover_test
}  // namespace tw::emulate
