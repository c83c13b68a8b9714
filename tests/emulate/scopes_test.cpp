// What an arrival at a barrier passes on, and what a wait learns, is what their scopes order. The step `scopes` chooses them; the emulator
// knows nothing of its reasons.
#include <functional>
#include <set>

#include "emulate/trial.h"
#include "verify/kernel_test_support.h"

namespace tw::emulate {
namespace scopes_test {

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

// The scopes of all arrivals at ranks of the cluster, and how many fences stand in the kernel.
std::pair<std::set<ir::Scope>, int> arrivals_of(const ir::Kernel& k) {
    std::pair<std::set<ir::Scope>, int> found;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::BarrierArrive>(&s.op); a && a->barrier.cluster_rank) found.first.insert(a->release);
        found.second += std::holds_alternative<ir::BlockFence>(s.op);
    });
    return found;
}
const std::set<ir::Scope> relaxed = {ir::Scope::none}, released = {ir::Scope::cluster};

void expect_a_race(const ir::Kernel& k, const char* why) {
    const auto faults = faults_of(k);
    ASSERT_FALSE(faults.empty()) << why;
    EXPECT_EQ(faults[0].kind, FaultKind::race) << why << ": " << faults[0].message;
}

TEST(Scopes, OneThreadLearnsOfAnotherOfItsBlockByWayOfAPeerOnlyAtClusterScope) {
    const ir::Kernel k = kernel_of_text(round_trip(by_peer_first, by_peer_last));
    EXPECT_EQ(arrivals_of(k).first, relaxed);
    EXPECT_GT(arrivals_of(k).second, 0);
    expect_a_race(k, "fences of a block order nothing by way of another");
    // Without a multicast there is nothing to gain, and the arrivals are releases of the cluster.
    const ir::Kernel plain = kernel_of_text(round_trip(by_peer_first, by_peer_last, "", false));
    EXPECT_EQ(arrivals_of(plain).first, released);
    EXPECT_EQ(arrivals_of(plain).second, 0);
    for (const Fault& f : faults_of(plain)) ADD_FAILURE() << f.message;
    const ir::Kernel reaching =
        kernel_of_text(round_trip(by_peer_first, by_peer_last, "\n        tw.store(Y[m, rank, 0:32], tw.load(s, rank=rank))"));
    EXPECT_EQ(arrivals_of(reaching).first, released);
}

TEST(Scopes, AnArrivalAtOnesOwnBlockOrders) {
    for (const char* first : {"back[0].arrive()", "back[0].arrive(rank=rank)"}) {
        const ir::Kernel k = kernel_of_text(round_trip(first, "back[0].wait(0)"));
        const auto faults = faults_of(k);
        EXPECT_TRUE(faults.empty()) << first << ": " << faults[0].message;
    }
}

// A release or an acquire too weak, or a fence too few, is found: whoever chose it.
TEST(Scopes, WhatIsTooWeakIsARace) {
    auto with = [](const std::string& text, const std::function<void(ir::Kernel&)>& change) {
        ir::Kernel k = kernel_of_text(text);
        change(k);
        return k;
    };
    auto arrive = [](ir::Scope scope) {
        return [scope](ir::Kernel& k) { edit_all<ir::BarrierArrive>(k, [&](ir::BarrierArrive& a) { a.release = scope; }); };
    };
    auto wait = [](ir::Scope scope) {
        return [scope](ir::Kernel& k) { edit_all<ir::BarrierWait>(k, [&](ir::BarrierWait& w) { w.acquire = scope; }); };
    };
    const std::string trip = round_trip(by_peer_first, by_peer_last, "", false);
    expect_a_race(with(trip, arrive(ir::Scope::block)), "released to the block alone");
    expect_a_race(with(trip, arrive(ir::Scope::none)), "relaxed arrivals");
    expect_a_race(with(trip, wait(ir::Scope::block)), "acquired from the block alone");
    expect_a_race(with(trip, wait(ir::Scope::none)), "relaxed waits");
    const std::string own = round_trip("back[0].arrive()", "back[0].wait(0)", "", false);
    EXPECT_TRUE(faults_of(with(own, arrive(ir::Scope::block))).empty());
    expect_a_race(with(own, arrive(ir::Scope::none)), "a relaxed arrival at one's own block");
    expect_a_race(with(own, wait(ir::Scope::none)), "a relaxed wait for one's own block");
    // Fences beside relaxed operations, on both sides or they order nothing.
    const std::string fenced = round_trip("back[0].arrive(rank=rank)", "back[0].wait(0)");
    EXPECT_TRUE(faults_of(kernel_of_text(fenced)).empty());
    const int fences = arrivals_of(kernel_of_text(fenced)).second;
    ASSERT_GE(fences, 2);
    for (int n = 0; n < fences; ++n) {
        ir::Kernel k = kernel_of_text(fenced);
        int seen = 0;
        std::function<void(ir::Region&)> drop = [&](ir::Region& region) {
            for (std::size_t i = 0; i < region.size(); ++i) {
                if (std::holds_alternative<ir::BlockFence>(region[i].op) && seen++ == n) {
                    region.erase(region.begin() + static_cast<std::ptrdiff_t>(i));
                    return;
                }
                if (auto* r = std::get_if<ir::Role>(&region[i].op)) drop(r->body);
                if (auto* e = std::get_if<ir::Elect>(&region[i].op)) drop(e->body);
            }
        };
        drop(k.body);
        expect_a_race(k, "a fence less");
    }
}

// What the copy engine brought is there for who acquires.
TEST(Scopes, ARelaxedWaitForCopiesIsFound) {
    ir::Kernel k = kernel_of("kernels/gemm_cluster_sm90.py", {{"BN", 128}, {"STAGES", 2}});
    TrialOptions options;
    options.emulator.values = false;
    options.emulator.fault_limit = 1;
    const auto sizes = named_sizes(k, {{"M", 200}, {"N", 136}, {"K", 200}});
    EXPECT_TRUE(run_trial(k, sizes, options).outcome.clean());
    EXPECT_EQ(arrivals_of(k).first, relaxed);
    ASSERT_GT(edit_all<ir::BarrierWait>(k, [&](ir::BarrierWait& w) { w.acquire = ir::Scope::none; }), 0);
    EXPECT_FALSE(run_trial(k, sizes, options).outcome.clean());
}

TEST(Scopes, ATensorThatIsWrittenAndReadNeedsTheCluster) {
    const ir::Kernel k =
        kernel_of_text(round_trip(by_peer_first, by_peer_last, "\n        tw.store(Y[m, rank, 0:32], tw.load(Y[m, rank, 0:32]))"));
    EXPECT_EQ(arrivals_of(k).first, released);
}

}  // namespace scopes_test
}  // namespace tw::emulate
