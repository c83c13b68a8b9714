// Arrivals at other blocks' barriers: relaxed only where nothing but finished wgmma reads is handed over.
#include <gtest/gtest.h>

#include "codegen/emit.h"
#include "lower/lower.h"

namespace tw::codegen {
namespace handover_test {

std::string text_of(const std::string& file) {
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_file(sources, std::string(TW_SOURCE_DIR) + "/kernels/" + file, {}, sink);
    EXPECT_TRUE(module) << render_text(sink, sources);
    std::string all;
    for (const ir::Kernel& k : module->kernels) {
        auto emitted = emit(k, file);
        EXPECT_TRUE(emitted) << emitted.error().message;
        if (emitted) all += emitted->source;
    }
    return all;
}

std::string kernel_with(const std::string& consumer, const std::string& wait) {
    return R"py(
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", cluster=(2, 1, 1))
def handed(X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N), Z: tw.Tensor(bf16, M, N)):
    tw.assume(N % 8 == 0)
    rank, m = tw.grid(2, tw.cdiv(M, 64))
    s = tw.shared(bf16, (64, 64), swizzle=128)
    t = tw.shared(bf16, (64, 64), swizzle=128)
    full = tw.mbarrier(1, arrivals=1)
    empty = tw.mbarrier(1, arrivals=2)
    tw.cluster_sync()
    with tw.warpgroups(0, name="producer"):
        full[0].expect(64 * 64 * 6)
        tw.tma_load(s, X[m * 64, 0], on=full[0])
        tw.tma_load(t, X[m * 64, 64], on=full[0], multicast=3)
        )py" +
           wait + R"py(
    with tw.warpgroups(1, name="consumer"):
        full[0].wait(0)
        )py" +
           consumer + R"py(
        for r in tw.unroll(2):
            empty[0].arrive(rank=r)
    tw.cluster_sync()
)py";
}

std::string printed(const std::string& text) {
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "k.py", text, {}, sink);
    EXPECT_TRUE(module) << render_text(sink, sources);
    if (!module || module->kernels.empty()) return "";
    auto emitted = emit(module->kernels[0], "k.py");
    EXPECT_TRUE(emitted) << emitted.error().message;
    return emitted ? emitted->source : "";
}

bool has(const std::string& text, const char* words) { return text.find(words) != std::string::npos; }

TEST(Handover, IsPrintedAsTheEmulatorTakesIt) {
    // The ring of a product whose operands only wgmma reads.
    const std::string product = text_of("gemm_cluster_sm90.py");
    EXPECT_TRUE(has(product, "tw::mbarrier_arrive_relaxed_cluster("));
    EXPECT_FALSE(has(product, "tw::mbarrier_arrive_cluster("));
    // Ordinary code on the block's own bytes: fences of the block beside it.
    const std::string own = printed(kernel_with("tw.store(Y[m * 64, 0], tw.load(s))", "empty[0].wait(0)"));
    EXPECT_TRUE(has(own, "__threadfence_block();\n") && has(own, "tw::mbarrier_arrive_relaxed_cluster(") &&
                has(own, "tw::mbarrier_wait_relaxed_cluster("));
    // A peer's memory, and a tensor that the kernel both writes and reads: at the scope of the cluster.
    for (const char* consumer :
         {"tw.store(Y[m * 64, 0], tw.load(s, rank=1 - rank))",
          "tw.store(Y[m * 64, 0], tw.load(s))\n        tw.store(Z[m * 64, 0], tw.load(Y[m * 64 : m * 64 + 64, 0:64]))"}) {
        const std::string whole = printed(kernel_with(consumer, "empty[0].wait(0)"));
        EXPECT_TRUE(has(whole, "tw::mbarrier_arrive_cluster(") && has(whole, "tw::mbarrier_wait_cluster(")) << consumer;
        EXPECT_FALSE(has(whole, "relaxed_cluster(")) << consumer;
    }
}

TEST(Handover, AWaitForCopiesIsNeverRelaxed) {
    // Here the peers arrive on the barrier that the copies complete on.
    std::string text = kernel_with("tw.store(Y[m * 64, 0], tw.load(s))", "empty[0].wait(0)");
    const std::string from = "full = tw.mbarrier(1, arrivals=1)", to = "full = tw.mbarrier(1, arrivals=2)";
    text.replace(text.find(from), from.size(), to);
    const std::string expect = "        full[0].expect(64 * 64 * 6)\n";
    text.insert(text.find(expect), "        full[0].arrive(rank=1 - rank)\n");
    const std::string out = printed(text);
    EXPECT_TRUE(has(out, "tw::mbarrier_wait_cluster(smem + AT_full_")) << out;
}

}  // namespace handover_test
}  // namespace tw::codegen
