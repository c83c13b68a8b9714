// Every decision of the device form: a kernel in which it is taken, run against the tile form; and what happens when it is taken wrongly.
#include "device/form.h"

#include <functional>

#include "device/rewrite.h"
#include "kernels/device_agreement.h"
#include "verify/kernel_test_support.h"

namespace tw::device {
namespace form_test {

using namespace testing_kernels;
using emulate::Trial;
using emulate::TrialOptions;

struct Subject {
    const char* file;
    std::size_t number;
    lower::ConstValues constants;
    std::map<std::string, std::int64_t> sizes;
};

std::vector<Subject> subjects() {
    return {
        {"kernels/vector_add.py", 0, {}, {{"N", 2500}}},
        {"kernels/bias_gelu.py", 1, {}, {{"M", 5}, {"N", 259}}},
        {"kernels/softmax.py", 1, {}, {{"M", 2}, {"N", 1025}}},
        {"kernels/transpose.py", 0, {}, {{"M", 33}, {"N", 31}}},
        {"kernels/dropout.py", 0, {}, {{"N", 5001}}},
        {"kernels/cumsum.py", 0, {{"BN", 512}}, {{"M", 2}, {"N", 513}}},
        {"kernels/gemm_sm80.py", 0, {{"BM", 64}, {"BN", 64}, {"STAGES", 2}}, {{"M", 65}, {"N", 8}, {"K", 72}}},
        {"kernels/gemm_cluster_sm90.py", 0, {{"BN", 128}, {"STAGES", 2}}, {{"M", 200}, {"N", 136}, {"K", 200}}},
        {"kernels/gemm_deferred_sm90.py", 0, {{"BN", 128}, {"STAGES", 2}}, {{"M", 200}, {"N", 136}, {"K", 200}}},
        {"kernels/attention_sm90.py", 3, {{"D", 64}, {"STAY", 0}}, {{"B", 1}, {"HK", 1}, {"S", 70}, {"T", 100}}},
    };
}

ir::Kernel decisions(const std::string& name) {
    for (ir::Kernel& k : kernels_of("tests/codegen/cpu/decisions.py")) {
        if (k.name == name) return std::move(k);
    }
    ADD_FAILURE() << "there is no kernel " << name;
    return {};
}

TrialOptions options() {
    TrialOptions o;
    o.seed = 11;
    o.emulator.resident_blocks = 2;
    return o;
}

int statements_with(const ir::Kernel& k, const std::function<bool(const ir::DeviceStmt&)>& is) {
    int count = 0;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) { count += s.device && is(*s.device); });
    return count;
}

// Changes the device parts that `change` takes; were there any?
bool change_all(ir::Kernel& k, const std::function<bool(ir::DeviceStmt&)>& change) {
    bool done = false;
    ir::for_each_stmt(k.body, [&](ir::Stmt& s) {
        if (!s.device) return;
        ir::DeviceStmt part = *s.device;
        if (!change(part)) return;
        done = true;
        s.device = std::make_shared<const ir::DeviceStmt>(std::move(part));
    });
    return done;
}

TEST(DeviceForm, AgreesWithTheTileForm) {
    for (const Subject& c : subjects()) {
        const ir::Kernel k = kernel_of(c.file, c.constants, c.number);
        const Trial tile = emulate::run_trial(k, named_sizes(k, c.sizes), options());
        ASSERT_FALSE(tile.failed()) << c.file << tile.summary(k);
        SCOPED_TRACE(c.file);
        expect_device_form_agrees(k, tile, options());
    }
}

TEST(DeviceForm, IsMadeOnce) {
    const ir::Kernel k = kernel_of("kernels/softmax.py");
    std::vector<std::string> seen;
    const ir::Kernel device = device_form(k, [&](std::string_view step, const ir::Kernel&) { seen.emplace_back(step); });
    EXPECT_EQ(seen.size(), step_names().size());
    EXPECT_TRUE(illegal_in_device_form(device).empty());
    EXPECT_FALSE(illegal_in_device_form(k).empty());
    EXPECT_EQ(device_form(device).device, device.device);
    EXPECT_FALSE(k.device) << "the tile form stays as it is";
}

// Which decision is taken where (tests/codegen/cpu_run_test.cpp runs the same kernels' texts).
TEST(DeviceForm, TakesEachDecision) {
    auto form = [](const char* file, std::size_t n = 0) { return device_form(kernel_of(file, {}, n)); };
    EXPECT_GT(statements_with(form("kernels/attention_sm90.py", 3), [](const auto& d) { return d.mask.has_value(); }), 0);
    EXPECT_GT(statements_with(device_form(kernel_of("kernels/attention_sm90.py", {{"STAY", 0}}, 0)),
                              [](const auto& d) { return d.unless_ones >= 0; }),
              0);
    EXPECT_GT(statements_with(form("kernels/gemm_sm90.py"), [](const auto& d) { return d.ring.has_value(); }), 0);
    EXPECT_GT(statements_with(form("kernels/gemm_sm90.py"), [](const auto& d) { return d.pinned; }), 0);
    EXPECT_GT(statements_with(device_form(decisions("found_first")), [](const auto& d) { return d.search.has_value(); }), 0);
    EXPECT_GT(statements_with(form("kernels/softmax.py", 1), [](const auto& d) { return d.fold && d.fold->chains > 1; }), 0);
    EXPECT_GT(statements_with(form("kernels/vector_add.py"), [](const auto& d) { return d.access && d.access->width > 1; }), 0);
    const ir::Kernel gelu = form("kernels/bias_gelu.py");
    EXPECT_NE(ir::print(gelu).find("gelu.approx("), std::string::npos);
}

// The coordinates of a tile stand after its first wgmma where only its store needs them, and stay where the loads do.
TEST(DeviceForm, IntegersComeAfterTheFirstProduct) {
    const std::string text = ir::print(device_form(kernel_of("kernels/gemm_deferred_sm90.py", {}, 0)));
    const auto producer = text.find("role producer"), consumer = text.find("role consumer");
    ASSERT_LT(producer, consumer);
    auto after = [&](const char* what, std::size_t from) { return text.find(what, from); };
    EXPECT_LT(after("per_group", producer), after("tma_load", producer));
    EXPECT_LT(after("bn = ", producer), after("tma_load", producer));
    const auto commit = after("wgmma_commit", consumer), second = after("wgmma_commit", commit + 1);
    for (const char* integer : {"per_group", "in_group", "bm", "bn"}) {
        EXPECT_GT(after(integer, consumer), commit) << integer;
        EXPECT_LT(after(integer, consumer), second) << integer;
    }
}

// A counter that counts a ring changes its slot and its phase too: what reads the slot before it counts stays there.
TEST(DeviceForm, WhatReadsASlotStaysBeforeItsCounter) {
    const std::string text = R"py(
import tilewright as tw
from tilewright import bf16, f32, i32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a", computes="C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k])); S[a, b, k, i] = k % 2", threads=256)
def turns(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(f32, M, N), S: tw.Tensor(i32, (M + 63) // 64, (N + 63) // 64, (K + 63) // 64, 128)):
    tw.assume(K % 8 == 0)
    sA = tw.shared(bf16, (3, 64, 64), swizzle=128)
    sB = tw.shared(bf16, (3, 64, 64), swizzle=128)
    ring = tw.pipeline(3, consumers=1)
    bm, bn = tw.grid(tw.cdiv(M, 64), tw.cdiv(N, 64))
    with tw.warpgroups(0, regs=40, name="producer"):
        for kt in tw.range(tw.cdiv(K, 64)):
            slot = ring.acquire()
            tw.tma_load(sA[slot], A[bm * 64, kt * 64], on=ring.full(slot))
            tw.tma_load(sB[slot], B[bn * 64, kt * 64], on=ring.full(slot))
    with tw.warpgroups(1, regs=232, name="consumer"):
        acc = tw.zeros(f32, (64, 64))
        turn = 0
        for kt in tw.range(tw.cdiv(K, 64)):
            slot = ring.wait()
            half = turn % 2
            later = kt + 1
            turn = turn + 1
            tw.wgmma(acc, sA[slot], sB[slot].T)
            tw.wgmma_wait(0)
            tw.store(S[bm, bn, later - 1, 0:128], tw.zeros(i32, (128,)) + half)
            ring.release()
        tw.store(C[bm * 64 : bm * 64 + 64, bn * 64 : bn * 64 + 64], acc)
)py";
    SourceMap sources;
    DiagnosticSink sink;
    const auto module = lower::compile_text(sources, "turns.py", text, {}, sink);
    ASSERT_TRUE(module) << render_text(sink, sources);
    const ir::Kernel& k = module->kernels.at(0);
    const Trial tile = emulate::run_trial(k, named_sizes(k, {{"M", 64}, {"N", 64}, {"K", 200}}), options());
    ASSERT_FALSE(tile.failed()) << tile.summary(k);
    expect_device_form_agrees(k, tile, options());
    const std::string form = ir::print(device_form(k));
    const auto commit = form.find("wgmma_commit");
    ASSERT_NE(form.find("turn = (turn + 1) ! ring of 2"), std::string::npos);
    EXPECT_LT(form.find("half = turn_slot"), form.find("turn = (turn + 1)"));
    EXPECT_LT(form.find("turn = (turn + 1)"), commit);
    EXPECT_GT(form.find("later = "), commit) << "nothing else holds back what is not needed before";
}

// A wrong decision is a wrong run: nothing else has to be trusted for it.
TEST(DeviceForm, AWrongDecisionIsFound) {
    auto fails = [](const ir::Kernel& tile, const std::map<std::string, std::int64_t>& sizes, const char* what,
                    const std::function<bool(ir::DeviceStmt&)>& change) {
        ir::Kernel k = device_form(tile);
        ASSERT_FALSE(emulate::run_trial(k, named_sizes(k, sizes), options()).failed()) << what << ": before the change";
        ASSERT_TRUE(change_all(k, change)) << what;
        EXPECT_TRUE(emulate::run_trial(k, named_sizes(k, sizes), options()).failed()) << what;
    };
    const ir::Kernel causal = kernel_of("kernels/attention_sm90.py", {{"D", 64}}, 3);
    const std::map<std::string, std::int64_t> heads = {{"B", 1}, {"HK", 1}, {"S", 70}, {"T", 100}};
    fails(causal, heads, "a mask taken to hold everywhere", [](ir::DeviceStmt& d) { return d.mask && (d.mask->everywhere = 1, true); });
    const ir::Kernel sums = kernel_of("kernels/reductions.py", {}, 0);
    const std::map<std::string, std::int64_t> rows = {{"M", 5}, {"N", 700}};
    fails(sums, rows, "a slot that is not folded", [](ir::DeviceStmt& d) {
        if (!d.fold || d.fold->parts[0].size() < 2) return false;
        d.fold->parts[0].pop_back();
        return true;
    });
    fails(sums, rows, "lanes that do not meet",
          [](ir::DeviceStmt& d) { return d.fold && !d.fold->lanes.empty() && (d.fold->lanes.pop_back(), true); });
    const ir::Kernel add = kernel_of("kernels/vector_add.py");
    fails(add, {{"N", 2503}}, "vectors that lie across the end", [](ir::DeviceStmt& d) {
        return d.access && d.access->ends == ir::AccessPlan::Ends::some && (d.access->ends = ir::AccessPlan::Ends::whole, true);
    });
    fails(add, {{"N", 2503}}, "a test that is left out",
          [](ir::DeviceStmt& d) { return d.access && (d.access->dims[0].tested = false, d.access->two_ways = false, true); });
    fails(add, {{"N", 2503}}, "an end too near",
          [](ir::DeviceStmt& d) { return d.access && (d.access->dims[0].end = d.access->dims[0].end - ir::Expr(1), true); });
    const ir::Kernel product = kernel_of("kernels/gemm_sm90.py", {{"BN", 128}, {"STAGES", 2}});
    fails(product, {{"M", 65}, {"N", 136}, {"K", 200}}, "a ring with a slot too many",
          [](ir::DeviceStmt& d) { return d.ring && (++d.ring->period, true); });
    const std::map<std::string, std::int64_t> shape = {{"M", 2}, {"N", 3000}};
    ir::Kernel found;
    for (const ir::Kernel& k : kernels_of("kernels/argmax.py")) {
        const auto sizes = named_sizes(k, shape);
        const bool fits = std::all_of(k.assumptions.begin(), k.assumptions.end(),
                                      [&](const ir::Assumption& a) { return emulate::size_value(a.condition, sizes).value_or(0) != 0; });
        if (fits && statements_with(device_form(k), [](const auto& d) { return d.search.has_value(); }) > 0) found = k;
    }
    fails(found, shape, "those who did not look are folded",
          [](ir::DeviceStmt& d) { return d.fold && d.fold->flag >= 0 && (d.fold->flag = -1, true); });
    fails(found, shape, "nobody looks", [](ir::DeviceStmt& d) {
        if (!d.search) return false;
        auto no = std::make_shared<ir::ElementNode>();
        no->dtype = ir::DType::Bool;
        d.search->own = -1, d.search->any = no;
        return true;
    });
}

TEST(DeviceForm, WhatIsIncompleteIsIllegal) {
    auto illegal = [](const char* file, const std::function<bool(ir::DeviceStmt&)>& change) {
        ir::Kernel k = device_form(kernel_of(file));
        EXPECT_TRUE(change_all(k, change));
        return !illegal_in_device_form(k).empty();
    };
    EXPECT_TRUE(illegal("kernels/softmax.py", [](ir::DeviceStmt& d) { return d.fold && (d.fold.reset(), true); }));
    EXPECT_TRUE(illegal("kernels/softmax.py", [](ir::DeviceStmt& d) { return d.fold && (d.fold->parts[0].pop_back(), true); }));
    EXPECT_TRUE(illegal("kernels/vector_add.py", [](ir::DeviceStmt& d) { return d.access && (d.access->dims[0].tested = false, true); }));
    EXPECT_TRUE(illegal("kernels/vector_add.py", [](ir::DeviceStmt& d) { return d.access && (d.access.reset(), true); }));
}

}  // namespace form_test
}  // namespace tw::device
