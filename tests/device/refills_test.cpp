// Step `refills`: a proxy fence between ordinary reads of a slot and the barrier after which the copy engine fills it again.
#include "device/form.h"
#include "verify/kernel_test_support.h"

namespace tw::device {
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

TEST(Refills, AFenceStandsBeforeTheBarrierAfterTheReads) {
    const ir::Kernel k = kernel_of_text(kRing);
    EXPECT_EQ(after_the_load(k), "barrier ");
    EXPECT_EQ(after_the_load(device_form(k)), "fence barrier ");
    EXPECT_EQ(illegal_in_device_form(device_form(k)), std::vector<std::string>{});
}

TEST(Refills, OneThatTheKernelHasIsEnough) {
    std::string text = kRing;
    text.replace(text.find("            met.sync()"), 0, "            tw.fence_async()\n");
    const ir::Kernel k = kernel_of_text(text);
    EXPECT_EQ(fences(device_form(k)), fences(k));
}

TEST(Refills, OperandsOfTheMatrixUnitNeedNone) {
    const ir::Kernel k = kernel_of("kernels/gemm_sm90.py", {});
    EXPECT_EQ(fences(device_form(k)), fences(k));
}

}  // namespace refills_test
}  // namespace tw::device
