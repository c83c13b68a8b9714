// Step `refills`: a proxy fence between ordinary reads of a slot and the barrier after which the copy engine fills it again.
#include "verify/kernel_test_support.h"

namespace tw::lower {
namespace refills_test {

using namespace testing_kernels;

const std::string kRing = R"py(import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] * 2.0")
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 8 == 0)
    bm = tw.grid(tw.cdiv(M, 64))
    s = tw.shared(f32, (2, 64, 64), swizzle=32)
    ring = tw.pipeline(2, consumers=1)
    with tw.warpgroups(0, name="producer"):
        for c in tw.range(tw.cdiv(N, 64)):
            slot = ring.acquire()
            tw.tma_load(s[slot], X[bm * 64, c * 64], on=ring.full(slot))
    with tw.warpgroups(1, name="consumer"):
        met = tw.named_barrier(1, 128)
        for c in tw.range(tw.cdiv(N, 64)):
            slot = ring.wait()
            x = tw.load(s[slot])
            met.sync()
            ring.release()
            tw.store(Y[bm * 64, c * 64], x * 2.0)
)py";

// The kinds of the statements around the load of shared memory, in the order of the text, from the load to the first barrier.
std::string after_the_load(const ir::Kernel& k) {
    std::string text;
    bool loaded = false;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (std::holds_alternative<ir::LoadShared>(s.op)) loaded = true;
        else if (loaded && std::holds_alternative<ir::ProxyFence>(s.op)) text += "fence ";
        else if (loaded && std::holds_alternative<ir::NamedSync>(s.op)) text += "barrier ", loaded = false;
    });
    return text;
}

int fences(const ir::Kernel& k) {
    int count = 0;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) { count += std::holds_alternative<ir::ProxyFence>(s.op); });
    return count;
}

// The kernel after the step, and how many fences it added.
std::pair<ir::Kernel, int> after_the_step(const std::string& text) {
    SourceMap sources;
    DiagnosticSink sink;
    int before = 0;
    auto module = compile_text(sources, "kernel.py", text, {}, sink, [&](std::string_view step, const ir::Kernel& k) {
        if (step == "scopes") before = fences(k);
    });
    EXPECT_TRUE(module && module->kernels.size() == 1) << render_text(sink, sources);
    if (!module) return {};
    return {module->kernels[0], fences(module->kernels[0]) - before};
}

TEST(Refills, AFenceStandsBeforeTheBarrierAfterTheReads) {
    const auto [k, added] = after_the_step(kRing);
    EXPECT_EQ(after_the_load(k), "fence barrier ");
    EXPECT_EQ(added, 1);
}

TEST(Refills, OneThatTheKernelHasIsEnough) {
    std::string text = kRing;
    text.replace(text.find("            met.sync()"), 0, "            tw.fence_async()\n");
    EXPECT_EQ(after_the_step(text).second, 0);
}

// Written once: nothing that was read is overwritten.
TEST(Refills, ABufferThatIsFilledOnceNeedsNone) {
    std::string text = kRing;
    auto put = [&](const std::string& from, const std::string& to) {
        for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from)) text.replace(at, from.size(), to);
    };
    put(", swizzle=32", "");  // one box
    put("        for c in tw.range(tw.cdiv(N, 64)):\n", "        for c in (0,):\n");
    EXPECT_EQ(after_the_step(text).second, 0);
}

// Two rings: a slot of one is given back while reads of the other go on. The fence stands where the slot that was read is given back.
TEST(Refills, AnArrivalThatLetsOtherCopiesBeginNeedsNone) {
    const std::string text = R"py(import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] * S[n]")
def k(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 8 == 0)
    bm = tw.grid(tw.cdiv(M, 64))
    s = tw.shared(f32, (2, 64))
    x = tw.shared(f32, (2, 32, 64))
    scales = tw.pipeline(2, consumers=1)
    ring = tw.pipeline(2, consumers=1)
    with tw.warpgroups(0, name="producer"):
        for c in tw.range(tw.cdiv(N, 64)):
            a = scales.acquire()
            tw.tma_load(s[a], S[c * 64 : c * 64 + 64], on=scales.full(a))
            for h in tw.range(2):
                slot = ring.acquire()
                tw.tma_load(x[slot], X[bm * 64 + h * 32, c * 64], on=ring.full(slot))
    with tw.warpgroups(1, name="consumer"):
        met = tw.named_barrier(1, 128)
        for c in tw.range(tw.cdiv(N, 64)):
            a = scales.wait()
            by = tw.load(s[a])
            for h in tw.range(2):
                slot = ring.wait()
                WHAT
                tw.store(Y[bm * 64 + h * 32, c * 64], row * by[None, :])
            met.sync()
            scales.release()
)py";
    auto with = [&](const std::string& what) {
        std::string made = text;
        return made.replace(made.find("WHAT"), 4, what);
    };
    EXPECT_EQ(after_the_step(with("ring.release()\n                row = tw.zeros(f32, (32, 64))")).second, 1)
        << "where the scales are given back";
    EXPECT_EQ(after_the_step(with("row = tw.load(x[slot])\n                met.sync()\n                ring.release()")).second, 2)
        << "at the barrier inside, which ends both reads, and after the loop, which may have had no round";
}

TEST(Refills, OperandsOfTheMatrixUnitNeedNone) {
    EXPECT_EQ(after_the_step(read_text(repository("tests/verify/bugs/correct_multicast_gemm_control.py"))).second, 0);
}

}  // namespace refills_test
}  // namespace tw::lower
