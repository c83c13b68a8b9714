// Blocks of a cluster reach into each other's shared memory: only while the other is there. And boxes arrive in pieces.
#include "emulate/trial.h"
#include "verify/kernel_test_support.h"

namespace tw::emulate {
namespace cluster_test {

using namespace testing_kernels;

// A row over a cluster of blocks; each reads what its peers have summed.
constexpr const char* kRowOverACluster = R"py(
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m] = sum(n, X[m, n])", cluster=(2, 1, 1))
def row_sum(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    tw.assume(N <= 512)
    rank, m = tw.grid(2, M)
    part = tw.shared(f32, (1,))
    tw.store(part[0], tw.sum(tw.load(X[m, rank * 256 : rank * 256 + 256], fill=0.0), axis=0))
    tw.cluster_sync()
    total = tw.load(part[0], rank=0) + tw.load(part[0], rank=1)
    if rank == 0:
        tw.store(Y[m], total)
)py";

std::vector<Fault> faults_under(const ir::Kernel& k, const std::vector<std::int64_t>& sizes, const Schedule& schedule, bool values) {
    TrialOptions options;
    options.emulator.schedule = schedule;
    options.emulator.values = values;
    options.emulator.fault_limit = 1;
    return run_trial(k, sizes, options).outcome.faults;
}

void expect_everywhere(const ir::Kernel& k, const std::vector<std::int64_t>& sizes, FaultKind kind, const char* words) {
    for (const Schedule& schedule : hostile_schedules(k, 2, 3)) {
        for (const bool values : {true, false}) {
            const auto faults = faults_under(k, sizes, schedule, values);
            ASSERT_EQ(faults.size(), 1u) << schedule.describe();
            EXPECT_EQ(faults[0].kind, kind) << schedule.describe() << ": " << faults[0].message;
            EXPECT_NE(faults[0].message.find(words), std::string::npos) << faults[0].message;
        }
    }
}

std::size_t last_of_kind(const ir::Kernel& k, bool arrive) {
    for (std::size_t i = k.body.size(); i-- > 0;) {
        if (arrive ? std::holds_alternative<ir::ClusterArrive>(k.body[i].op) : std::holds_alternative<ir::ClusterWait>(k.body[i].op))
            return i;
    }
    ADD_FAILURE() << "no cluster barrier";
    return 0;
}

TEST(Clusters, ARowOverAClusterIsClean) {
    const ir::Kernel k = kernel_of_text(kRowOverACluster);
    for (const Schedule& schedule : hostile_schedules(k, 2, 3)) {
        TrialOptions options;
        options.emulator.schedule = schedule;
        const Trial t = run_trial(k, {2, 300}, options);
        EXPECT_FALSE(t.failed()) << schedule.describe() << ": " << t.summary(k);
        EXPECT_EQ(t.refused, "");
    }
}

TEST(Clusters, ABlockMayNotEndWhileAPeerReadsIt) {
    ir::Kernel k = kernel_of_text(kRowOverACluster);
    k.body.erase(k.body.begin() + static_cast<std::ptrdiff_t>(last_of_kind(k, false)));  // early exit: it arrives and leaves
    expect_everywhere(k, {2, 300}, FaultKind::in_flight, "may end while");
}

TEST(Clusters, ARelaxedArrivalPassesNothingOn) {
    ir::Kernel k = kernel_of_text(kRowOverACluster);
    std::get<ir::ClusterArrive>(k.body[last_of_kind(k, true)].op).relaxed = true;
    expect_everywhere(k, {2, 300}, FaultKind::in_flight, "may end while");
}

TEST(Clusters, APeerMustHaveStarted) {
    ir::Kernel k = kernel_of_text(kRowOverACluster);
    const auto first =
        std::find_if(k.body.begin(), k.body.end(), [](const ir::Stmt& s) { return std::holds_alternative<ir::ClusterArrive>(s.op); });
    ASSERT_NE(first, k.body.end());
    first->op = ir::BlockSync{};  // the block itself is in order
    remove_all<ir::ClusterArrive>(k);
    remove_all<ir::ClusterWait>(k);
    expect_everywhere(k, {2, 300}, FaultKind::race, "known to have started");
}

TEST(Clusters, AMulticastGemmMayNotLoseItsLastBarrier) {
    ir::Kernel k = kernel_of("kernels/gemm_cluster_sm90.py", {{"BN", 128}, {"STAGES", 2}});
    const auto sizes = named_sizes(k, {{"M", 200}, {"N", 8}, {"K", 200}});
    EXPECT_TRUE(faults_under(k, sizes, Schedule{}, false).empty());
    k.body.erase(k.body.begin() + static_cast<std::ptrdiff_t>(last_of_kind(k, false)));
    const auto faults = faults_under(k, sizes, Schedule{}, false);
    ASSERT_EQ(faults.size(), 1u) << "its consumers release the peer's slots";
    EXPECT_EQ(faults[0].kind, FaultKind::in_flight);
}

// One box and a barrier for it; `expect` bytes are waited for.
ir::Kernel one_box(const std::string& expect) {
    return kernel_of_text(R"py(
import tilewright as tw
from tilewright import bf16

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]")
def copy(X: tw.Tensor(bf16, 64, N), Y: tw.Tensor(bf16, 64, N)):
    tw.assume(N % 8 == 0)
    c = tw.grid(tw.cdiv(N, 64))
    s = tw.shared(bf16, (64, 64), swizzle=128)
    full = tw.mbarrier(1)
    with tw.elected():
        full[0].expect()py" +
                          expect + R"py()
        tw.tma_load(s, X[0, c * 64], on=full[0])
    full[0].wait(0)
    tw.store(Y[0, c * 64], tw.load(s))
)py");
}

TEST(Boxes, ArriveWholeForWhomWaitsForAllBytes) {
    const ir::Kernel k = one_box("64 * 64 * 2");
    for (const Schedule& schedule : hostile_schedules(k, 4, 3)) {
        TrialOptions options;
        options.emulator.schedule = schedule;
        const Trial t = run_trial(k, {72}, options);
        EXPECT_FALSE(t.failed()) << schedule.describe() << ": " << t.summary(k);
    }
}

TEST(Boxes, TooFewBytesLetTheReaderGoWhileTheRestIsOnItsWay) {
    for (const char* expect : {"64 * 64", "64 * 64 * 2 - 16", "16"}) {
        SCOPED_TRACE(expect);
        const ir::Kernel k = one_box(expect);
        for (const Schedule& schedule : hostile_schedules(k, 2, 3)) {
            for (const bool values : {true, false}) {
                TrialOptions options;
                options.emulator.schedule = schedule;
                options.emulator.values = values;
                const auto faults = run_trial(k, {72}, options).outcome.faults;
                ASSERT_FALSE(faults.empty()) << schedule.describe();
                EXPECT_EQ(faults[0].kind, FaultKind::byte_count) << schedule.describe() << ": " << faults[0].message;
                // Late, the missing part is not there at all; at once, it came after the phase that was waited for.
                EXPECT_TRUE(std::any_of(faults.begin(), faults.end(), [](const Fault& f) {
                    return f.kind == FaultKind::race || f.kind == FaultKind::uninitialised;
                })) << schedule.describe();
            }
        }
    }
}

TEST(Boxes, ALoadThatNobodyWaitsForIsNoticedAtTheEnd) {
    ir::Kernel k = one_box("64 * 64 * 2");
    ASSERT_EQ(remove_all<ir::BarrierWait>(k), 1);
    ASSERT_EQ(remove_all<ir::LoadShared>(k), 1);
    ASSERT_EQ(remove_all<ir::StoreGlobal>(k), 1);
    expect_everywhere(k, {72}, FaultKind::in_flight, "TMA load may still write");
}

}  // namespace cluster_test
}  // namespace tw::emulate
