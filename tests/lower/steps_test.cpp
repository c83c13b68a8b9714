// Each construct lowers to the statements that docs/language.md promises. The expected lines are read off the definition of the
// construct, not off a run.
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "ir/legality.h"
#include "lower_test_support.h"

namespace tw::lower {
namespace steps_test {

std::string last(const Compiled& c) {
    EXPECT_TRUE(c.module.has_value()) << c.report();
    return c.after.count("refills") ? c.after.at("refills") : "";
}

// The lines appear in this order (others may stand between).
void expect_lines(const std::string& text, const std::vector<std::string>& lines) {
    std::size_t at = 0;
    for (const std::string& line : lines) {
        const std::size_t found = text.find(line, at);
        EXPECT_NE(found, std::string::npos) << "missing, or out of order: " << line << "\n" << text;
        if (found == std::string::npos) return;
        at = found + line.size();
    }
}

TEST(Kernels, EveryShippedKernelReachesTheLastForm) {
    const auto files = files_in("kernels");
    ASSERT_FALSE(files.empty());
    for (const auto& path : files) {
        const Compiled c = compile(kernel_file(path));
        ASSERT_TRUE(c.module.has_value()) << path.filename() << "\n" << c.report();
        for (const ir::Kernel& kernel : c.module->kernels) {
            EXPECT_TRUE(ir::legal_last_form(kernel).empty()) << path.filename();
            EXPECT_FALSE(kernel.computes.empty()) << path.filename() << ": " << kernel.name;
            EXPECT_FALSE(kernel.doc.empty()) << path.filename() << ": " << kernel.name;
        }
    }
}

// Tuning loops live on this latency: parse, check and lower of the Hopper GEMM take about a millisecond. The bound is loose
// (best of ten, sanitizers and busy machines included); it catches a step that turns quadratic.
TEST(Kernels, TheHopperGemmCompilesInMilliseconds) {
    const std::string text = read_bytes(repository("kernels/gemm_sm90.py"));
    double best = 1e9;
    for (int i = 0; i < 10; ++i) {
        SourceMap sources;
        DiagnosticSink sink;
        const auto start = std::chrono::steady_clock::now();
        const auto module = compile_text(sources, "gemm.py", text, {}, sink);
        best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
        ASSERT_TRUE(module.has_value());
    }
    EXPECT_LT(best, 20.0);
}

// Every value a const parameter declares is one the kernel is meant for: it compiles, or an assertion or a resource says why not.
TEST(Kernels, EveryDeclaredConstantCompilesOrIsRefusedWithAReason) {
    for (const auto& path : files_in("kernels")) {
        const std::string text = kernel_file(path);
        const Compiled base = compile(text);
        ASSERT_TRUE(base.module.has_value());
        std::set<std::pair<std::string, std::int64_t>> tried;  // variants share their parameters
        for (const ir::Kernel& kernel : base.module->kernels) {
            for (const ir::ConstParam& parameter : kernel.consts) {
                for (std::int64_t value : parameter.choices) {
                    if (!tried.emplace(parameter.name, value).second) continue;
                    const Compiled c = compile(text, {{parameter.name, value}});
                    EXPECT_FALSE(c.sink.has_internal_errors()) << path.filename() << " " << parameter.name << "=" << value << "\n"
                                                               << c.report();
                    if (c.module) continue;
                    for (const Diagnostic& d : c.sink.diagnostics()) {
                        const bool reason =
                            d.code == Code::shared_memory_size || d.code == Code::static_assert_failed || d.code == Code::not_a_choice;
                        EXPECT_TRUE(reason) << path.filename() << " " << parameter.name << "=" << value << "\n" << c.report();
                    }
                }
            }
        }
    }
}

TEST(Elementwise, LoadsAndStoresAreVectorsOfSixteenBytes) {
    const Compiled c = compile(
        kernel_text("X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)",
                    "i = tw.grid(tw.cdiv(N, 512)) * 512\nx = tw.load(X[i : i + 512], fill=0.0)\ntw.store(Y[i : i + 512], x * 2.0)"));
    expect_lines(last(c), {"grid=(((N + 511) // 512), 1, 1)", "i = (block.x * 512)", "%x = load X[i:+512] fill=0 vec=16B", "mul(%x<0>, 2)",
                           "store Y[i:+512]", "vec=16B"});
}

TEST(Elementwise, RowsOfUnknownAlignmentAreReadElementByElement) {
    const std::string body = "x = tw.load(X[0:8, 0:256], fill=0.0)\ntw.store(Y[0:8, 0:256], x)";
    const std::string parameters = "X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N)";
    expect_lines(last(compile(kernel_text(parameters, body))), {"load X[0:+8, 0:+256] fill=0 vec=2B"});
    expect_lines(last(compile(kernel_text(parameters, "tw.assume(N % 8 == 0)\n" + body))), {"load X[0:+8, 0:+256] fill=0 vec=16B"});
    expect_lines(last(compile(kernel_text(parameters, "tw.assume(N % 4 == 0)\n" + body))), {"load X[0:+8, 0:+256] fill=0 vec=8B"});
}

TEST(Elementwise, AVectorTakesTheLayoutOfTheTileItMeets) {
    const Compiled c =
        compile(kernel_text("X: tw.Tensor(f32, M, 128), b: tw.Tensor(f32, 128)",
                            "x = tw.load(X[0:8, 0:128], fill=0.0)\nv = tw.load(b[0:128])\ntw.store(X[0:8, 0:128], x + v[None, :])"));
    // 8 x 128 f32 over 128 threads in runs of 4: 32 threads a row, 4 rows at a time, twice.
    expect_lines(last(c),
                 {"fragment %x: f32 (8,128) t[32:d1*4 4:d0*1] v[4:d1*1 2:d0*4]", "fragment %v: f32 (128) t[32:d0*4 4:copy] v[4:d0*1]"});
}

TEST(Reductions, RowsOfAWarpNeedNoSharedMemory) {
    const Compiled c = compile(kernel_text("X: tw.Tensor(f32, M, 256), S: tw.Tensor(f32, M)",
                                           "x = tw.load(X[0:8, 0:256], fill=0.0)\ntw.store(S[0:8], tw.sum(x, axis=1))"));
    const std::string text = last(c);
    expect_lines(text, {"= reduce sum %x dim 1"});
    EXPECT_EQ(text.find("block_sync"), std::string::npos) << text;
    EXPECT_NE(text.find("shared=0"), std::string::npos) << text;
}

TEST(Reductions, AcrossWarpsThroughScratchWithABarrier) {
    const Compiled c = compile(kernel_text("X: tw.Tensor(f32, N), S: tw.Tensor(f32, 1)",
                                           "x = tw.load(X[0:1024], fill=0.0)\ns = tw.sum(x, axis=0)\ntw.store(S[0], s)"));
    const std::string text = last(c);
    expect_lines(text, {"%s_partial = reduce sum %x dim 0 across 4", "store_shared s_scratch[0:+4] = %s_partial", "block_sync",
                        "%s_all = load_shared s_scratch[0:+4]", "%s = reduce sum %s_all dim 0"});
    // Outside loops one barrier is enough.
    EXPECT_EQ(text.find("block_sync"), text.rfind("block_sync")) << text;
}

TEST(Reductions, InALoopABarrierMoreUnlessAnotherReductionHasOneOrRoundsTakeTurns) {
    auto barriers = [](const std::string& rest, const std::string& loop = "for c in tw.range(4):") {
        const std::string text = last(
            compile(kernel_text("X: tw.Tensor(f32, N), S: tw.Tensor(f32, 4)",
                                loop + "\n    x = tw.load(X[c * 512 : c * 512 + 512], fill=0.0)\n    a = tw.sum(x, axis=0)\n    " + rest)));
        std::size_t n = 0;
        for (auto at = text.find("block_sync"); at != std::string::npos; at = text.find("block_sync", at + 1)) ++n;
        return n;
    };
    EXPECT_EQ(barriers("tw.store(S[c], a)"), 1u);
    EXPECT_EQ(barriers("tw.store(S[c], a)", "for c in tw.range(tw.grid(2), 4, step=2):"), 2u);       // rounds that are not counted by one
    EXPECT_EQ(barriers("tw.store(S[c], a)", "for b in tw.range(1):\n  for c in tw.range(4):"), 2u);  // the inner loop begins anew
    EXPECT_EQ(barriers("tw.store(S[c], tw.max(x - a, axis=0))"), 2u);
    EXPECT_EQ(barriers("b = tw.max(x - a, axis=0)\n    tw.store(S[c], tw.min(x + b, axis=0))"), 3u);
    EXPECT_EQ(barriers("if c > 2:\n        tw.store(S[c], tw.max(x - a, axis=0))"), 3u);  // not in every round
}

TEST(Reductions, ThoseThatDoNotNeedOneAnotherShareABarrier) {
    auto barriers = [](const std::string& body) {
        const std::string text = last(compile(
            kernel_text("X: tw.Tensor(f32, N), S: tw.Tensor(f32, 4)", "x = tw.load(X[0:1024], fill=0.0)\na = tw.sum(x, axis=0)\n" + body)));
        std::size_t n = 0;
        for (auto at = text.find("block_sync"); at != std::string::npos; at = text.find("block_sync", at + 1)) ++n;
        return n;
    };
    EXPECT_EQ(barriers("b = tw.sum(x * x, axis=0)\ntw.store(S[0], a)\ntw.store(S[1], b)"), 1u);
    // What is computed of the first one's result, and stored, does not stand in the way.
    EXPECT_EQ(barriers("tw.store(S[0], a * 2.0)\ny = tw.exp(x)\ntw.store(S[1], tw.max(y - 1.0, axis=0))"), 1u);
    EXPECT_EQ(barriers("tw.store(S[1], tw.sum(x - a, axis=0))"), 2u);
    // A tile that comes from memory behind the barrier is not asked for before it.
    EXPECT_EQ(barriers("y = tw.load(X[1024:2048], fill=0.0)\ntw.store(S[0], a)\ntw.store(S[1], tw.sum(y, axis=0))"), 2u);
    // Three at one barrier; a fourth that needs them at another.
    EXPECT_EQ(barriers("b = tw.max(x, axis=0)\nc = tw.min(x, axis=0)\ntw.store(S[0], tw.sum(tw.exp(x - a - b - c), axis=0))"), 2u);
}

TEST(Reductions, InARoleTheBarrierIsANamedOnePerInstance) {
    const Compiled c = compile(kernel_text(
        "X: tw.Tensor(f32, N), S: tw.Tensor(f32, 2)",
        "with tw.warpgroups(0, 1) as w:\n    x = tw.load(X[w * 1024 : w * 1024 + 1024], fill=0.0)\n    tw.store(S[w], tw.sum(x, axis=0))"));
    expect_lines(last(c), {"store_shared sum_scratch[w, 0:+4]", "named_sync (14 + w) threads=128", "load_shared sum_scratch[w, 0:+4]"});
}

TEST(Pipelines, ProducerAndConsumer) {
    const std::string body =
        "tw.assume(K % 8 == 0)\ns = tw.shared(bf16, (3, 64, 64), swizzle=128)\nring = tw.pipeline(3)\n"
        "with tw.warpgroups(0):\n    for i in tw.range(N):\n        slot = ring.acquire()\n        tw.tma_load(s[slot], A[0, i * 64], "
        "on=ring.full(slot))\n"
        "with tw.warpgroups(1):\n    for i in tw.range(N):\n        slot = ring.wait()\n        x = tw.load(s[slot])\n        "
        "ring.release()";
    const Compiled c = compile(kernel_text("A: tw.Tensor(bf16, M, K)", body));
    expect_lines(last(c), {"mbarrier ring_full[3] arrivals 1", "mbarrier ring_empty[3] arrivals 1", "mbarrier_init ring_full[0] arrivals=1",
                           "fence_mbarrier_init", "block_sync", "elect:", "ring_produced = 0", "slot = (ring_produced % 3)",
                           "mbarrier_wait ring_empty[slot] parity=(((ring_produced // 3) + 1) % 2)",
                           "mbarrier_arrive_expect ring_full[slot] bytes=8192", "ring_produced = (ring_produced + 1)",
                           "tma_load s[slot, 0:+64, 0:+64] = map0((i * 64), 0) on ring_full[slot]", "ring_consumed = 0",
                           "slot_2 = (ring_consumed % 3)", "mbarrier_wait ring_full[slot_2] parity=((ring_consumed // 3) % 2)",
                           "ring_consumed = (ring_consumed + 1)", "elect:", "mbarrier_arrive ring_empty[(ring_released % 3)]",
                           "ring_released = (ring_released + 1)"});
}

TEST(Pipelines, AReleaseThatKeepsASlotIsConditional) {
    const std::string body =
        "ring = tw.pipeline(4)\nwith tw.warpgroups(0):\n    for i in tw.range(N):\n        slot = ring.wait()\n        "
        "ring.release(keep=1)\n    ring.release()";
    const Compiled c = compile(kernel_text("A: tw.Tensor(bf16, M, K)", body));
    expect_lines(last(c), {"if (ring_released < (ring_consumed - 1)):", "mbarrier_arrive ring_empty",
                           "if (ring_released < ring_consumed):", "mbarrier_arrive ring_empty"});
}

TEST(Pipelines, BytesOfACopyUnderAConditionAreExpectedUnderIt) {
    const std::string body =
        "tw.assume(K % 8 == 0)\ns = tw.shared(bf16, (2, 64, 64), swizzle=128)\nring = tw.pipeline(2)\n"
        "with tw.warpgroups(0):\n    slot = ring.acquire()\n    tw.tma_load(s[slot], A[0, 0], on=ring.full(slot))\n    if N > 3:\n        "
        "tw.tma_load(s[slot], A[64, 0], on=ring.full(slot))";
    const Compiled c = compile(kernel_text("A: tw.Tensor(bf16, M, K)", body));
    const std::string text = last(c);
    expect_lines(text, {"mbarrier_arrive_expect ring_full[slot] bytes=", "8192"});
    EXPECT_NE(text.find("(3 < N)"), std::string::npos) << text;
}

TEST(Tma, WideTilesAreCutIntoPanels) {
    const std::string body =
        "tw.assume(K % 8 == 0)\nbar = tw.mbarrier(1)\ns = tw.shared(bf16, (64, 128), swizzle=128)\nwith tw.warpgroups(0):\n    "
        "bar[0].expect(16384)\n    tw.tma_load(s, A[0, 0], on=bar[0])";
    const Compiled c = compile(kernel_text("A: tw.Tensor(bf16, M, K)", body));
    expect_lines(last(c), {"map0: A dims 1 0 box 64 64 swizzle 128B", "shared s: bf16 (64:64)(64:1,2:4096)",
                           "tma_load s[0:+64, 0:+64] = map0(0, 0)", "tma_load s[0:+64, 64:+64] = map0(64, 0)"});
}

TEST(Tma, MulticastCountsTheBytesOfEveryBlock) {
    const std::string body =
        "tw.assume(K % 8 == 0)\ns = tw.shared(bf16, (2, 128, 64), swizzle=128)\nring = tw.pipeline(2)\nwith tw.warpgroups(0):\n    r = "
        "tw.cluster_rank()\n    slot = ring.acquire()\n"
        "    tw.tma_load(s[slot, r * 64 : (r + 1) * 64, :], A[r * 64, 0], on=ring.full(slot), multicast=3)";
    const Compiled c = compile(kernel_text("A: tw.Tensor(bf16, M, K)", body, "target=\"sm_90a\", cluster=(2, 1, 1)"));
    expect_lines(last(c), {"ring_empty[2] arrivals 2", "cluster_arrive", "cluster_wait", "bytes=16384", "multicast 3", "cluster_arrive",
                           "cluster_wait"});
}

TEST(Wgmma, FenceAndCommitPerCallOrPerBatch) {
    const std::string head =
        "s = tw.shared(bf16, (64, 64), swizzle=128)\nt = tw.shared(bf16, (64, 64), swizzle=128)\nwith tw.warpgroups(0):\n    acc = "
        "tw.zeros(f32, (64, 64))\n";
    const Compiled each =
        compile(kernel_text("A: tw.Tensor(bf16, M, K)", head + "    tw.wgmma(acc, s, t.T)\n    tw.wgmma(acc, s, t)\n    tw.wgmma_wait(0)"));
    expect_lines(last(each), {"wgmma_fence", "wgmma %acc += s[0:+64, 0:+64] * t[0:+64, 0:+64]", "wgmma_commit", "wgmma_fence",
                              "t[0:+64, 0:+64].permuted(1,0)", "wgmma_commit", "wgmma_wait 0"});
    const Compiled batch = compile(
        kernel_text("A: tw.Tensor(bf16, M, K)",
                    head + "    with tw.wgmma_batch():\n        tw.wgmma(acc, s, t.T)\n        tw.wgmma(acc, s, t)\n    tw.wgmma_wait(0)"));
    const std::string text = last(batch);
    EXPECT_EQ(text.find("wgmma_fence"), text.rfind("wgmma_fence")) << text;
    EXPECT_EQ(text.find("wgmma_commit"), text.rfind("wgmma_commit")) << text;
}

TEST(Wgmma, ProbabilitiesStayInTheirRegisters) {
    // The accumulator of one product, narrowed to 16 bits, is the A operand of the next: no relayout appears.
    const Compiled c = compile(read_bytes(repository("kernels/attention_sm90.py")));
    const std::string text = last(c);
    EXPECT_EQ(text.find("load_shared"), std::string::npos);
    EXPECT_EQ(text.find("store_shared"), std::string::npos);
    expect_lines(text, {"wgmma %s", "reduce sum %e dim 1", "wgmma %out += %p * sV"});
}

TEST(Windows, ColumnsOfAnAccumulatorStayInTheirThreads) {
    const Compiled c = compile(read_bytes(repository("kernels/gemm_sm90.py")));
    // 64 x 256 accumulators: 32 column blocks of 8 per thread, 8 of them in a window of 64 columns.
    expect_lines(last(c),
                 {"fragment %stored: bf16 (64,64) t[4:d1*2 8:d0*1 4:d0*16] v[2:d1*1 2:d0*8 8:d1*8]", "%stored_2 = bf16(%acc<0,1>+(0,64))"});
    // Rows are spread over threads: a window of them would have to move.
    const Compiled rows = compile(
        kernel_text("X: tw.Tensor(f32, 128, 64)", "a = tw.load(X[0:128, 0:64], layout=tw.rows())\ntw.store(X[0:64, 0:64], a[0:64, :])"));
    EXPECT_EQ(codes_and_places(rows.sink, rows.sources), "TW0208 at 10:5") << rows.report();
}

TEST(Mma, LdmatrixForBothOperands) {
    const Compiled c = compile(read_bytes(repository("kernels/gemm_sm80.py")));
    expect_lines(last(c),
                 {"fragment %acc: f32 (128,128)", "cp_async sA[0, 0:+128, 0:+32]", "bytes=16 zfill",
                  "load_shared sA[slot, 0:+128, 0:+16] matrix", "load_shared sB[slot, 0:+128, 0:+16] matrix", "mma %acc += %a * %b"});
}

TEST(Control, ConstantBranchesAreTakenAtCompileTime) {
    const Compiled c = compile(
        kernel_text("X: tw.Tensor(f32, N), BM: tw.const = 4", "if BM == 4:\n    n = N + 1\nelse:\n    n = undefined_name\nm = n + 1"));
    expect_lines(last(c), {"n = (N + 1)", "m = (n + 1)"});
}

TEST(Control, WhatALoopChangesIsAVariable) {
    const Compiled c =
        compile(kernel_text("X: tw.Tensor(f32, N)", "n = 0\nfor i in tw.range(N):\n    if n < 3:\n        n = n + i\nm = n * 2"));
    expect_lines(last(c), {"n = 0", "for i in 0:N:", "if (n < 3):", "n = (n + i)", "m = (n * 2)"});
}

TEST(Control, UnrolledLoopsGiveConstants) {
    const Compiled c = compile(kernel_text("X: tw.Tensor(f32, N)",
                                           "total = tw.zeros(f32, (128,))\nfor i in tw.unroll(2):\n    total = total + tw.load(X[i * 128 : "
                                           "i * 128 + 128], fill=0.0)\ntw.store(X[0:128], total)"));
    expect_lines(last(c), {"load X[0:+128]", "load X[128:+128]"});
}

TEST(Control, InlineFunctionsReturnTuples) {
    const std::string text =
        "import tilewright as tw\nfrom tilewright import f32\n\nN = tw.sizes(\"N\")\n\n\n@tw.inline\ndef both(x, y):\n    s = x + y\n    "
        "return s, x - y\n\n\n@tw.kernel(target=\"sm_80\")\n"
        "def kernel(X: tw.Tensor(f32, N)):\n    a = tw.load(X[0:128])\n    s, d = both(a, a * 2.0)\n    tw.store(X[0:128], s * d)\n";
    const Compiled c = compile(text);
    EXPECT_TRUE(c.module.has_value()) << c.report();
}

TEST(Gather, TheIndexTileLiesAsTheRowsOfTheCopy) {
    const Compiled c =
        compile(kernel_text("X: tw.Tensor(bf16, M, 64), idx: tw.Tensor(i32, N), Y: tw.Tensor(bf16, N, 64)",
                            "r = tw.load(idx[0:16], fill=0)\nx = tw.load(X[r, 0:64], fill=0.0)\ntw.store(Y[0:16, 0:64], x)"));
    expect_lines(last(c), {"fragment %r: i32 (16) t[8:copy 16:d0*1]", "load X[0:+16, 0:+64].gather(dim 0 by %r)"});
}

TEST(Relayout, ThroughScratch) {
    const Compiled c = compile(kernel_text(
        "X: tw.Tensor(f32, 128, 64)",
        "a = tw.load(X[0:128, 0:64], layout=tw.rows())\nb = tw.relayout(a, tw.blocked(vector=4))\ntw.store(X[0:128, 0:64], b)"));
    expect_lines(last(c), {"store_shared b_scratch[0:+128, 0:+64] = %a", "block_sync", "%b = load_shared b_scratch[0:+128, 0:+64]"});
}

TEST(Scan, TotalsOfTheWarpsBeforeAreAdded) {
    const Compiled c =
        compile(kernel_text("X: tw.Tensor(f32, N)", "x = tw.load(X[0:512], fill=0.0)\ntw.store(X[0:512], tw.cumsum(x, axis=0))"));
    expect_lines(last(c), {"across 4", "store_shared", "scan sum %x dim 0", "block_sync", "load_shared", "select(ge(coord0, 128)"});
}

std::size_t count(const std::string& text, const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
}

TEST(Scan, AReductionOfTheSameTileReadsItsTotals) {
    const char* parameters = "X: tw.Tensor(f32, N), S: tw.Tensor(f32, 1)";
    const std::string shared = last(compile(kernel_text(
        parameters, "x = tw.load(X[0:512], fill=0.0)\ntw.store(X[0:512], tw.cumsum(x, axis=0))\ntw.store(S[0], tw.sum(x, axis=0))")));
    EXPECT_EQ(count(shared, "block_sync"), 1u) << shared;
    // Another tile, another operation, or a tile that has changed since: an exchange of its own.
    for (const char* body :
         {"x = tw.load(X[0:512], fill=0.0)\ntw.store(X[0:512], tw.cumsum(x, axis=0))\ntw.store(S[0], tw.sum(x * 2.0, axis=0))",
          "x = tw.load(X[0:512], fill=0.0)\ntw.store(X[0:512], tw.cumsum(x, axis=0))\ntw.store(S[0], tw.prod(x, axis=0))",
          "x = tw.load(X[0:512], fill=0.0)\nfor i in tw.range(2):\n    x = x + 1.0\ntw.store(X[0:512], tw.cumsum(x, axis=0))\nfor i in "
          "tw.range(2):\n    x = x + 1.0\ntw.store(S[0], tw.sum(x, axis=0))"}) {
        const std::string own = last(compile(kernel_text(parameters, body)));
        EXPECT_EQ(count(own, "block_sync"), 2u) << own;
    }
}

TEST(Arena, SwizzledBuffersAreAlignedAndBarriersComeLast) {
    const Compiled c = compile(kernel_text("A: tw.Tensor(bf16, M, K)",
                                           "a = tw.shared(f32, (33,))\nb = tw.shared(bf16, (64, 64), swizzle=128)\no = tw.overlay(b, f32, "
                                           "(64, 32), swizzle=128)\nbar = tw.mbarrier(2)\ntw.store(a, tw.zeros(f32, (33,)))"));
    expect_lines(last(c),
                 {"shared a: f32 (33:1) swizzle none at 8192 bytes 132", "shared b: bf16 (64:64)(64:1) swizzle 128B at 0 bytes 8192",
                  "swizzle 128B at 0 bytes 8192 overlay of b", "mbarrier bar[2] arrivals 1 at 8328"});
}

TEST(Computes, SugarIsExpanded) {
    const std::string text =
        "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n@tw.kernel(target=\"sm_80\", computes=\"Y[m] "
        "= mean(n, X[m, n]); Z[m] = logsumexp(n, X[m, n])\")\n"
        "def kernel(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M), Z: tw.Tensor(f32, M)):\n    pass\n";
    expect_lines(last(compile(text)),
                 {"computes Y[m] = div(sum(n in 0:N, X[m, n]), N)", "computes Z[m] = log(sum(n in 0:N, exp(X[m, n])))"});
}

TEST(Computes, GathersAreElementsOfIntegerTensors) {
    const Compiled c = compile(read_bytes(repository("kernels/grouped_gemm_sm80.py")));
    expect_lines(last(c), {"computes Y[p, n] = bf16(sum(k in 0:K, mul(f32(X[rows[p], k]), f32(W[expert[p], n, k]))))"});
}

// tw.each: one variant per value, the first parameter slowest; the decorator sees the variant's constants.
TEST(Variants, OneKernelPerCombination) {
    const Compiled c = compile(
        "import tilewright as tw\nfrom tilewright import bf16, f32\nN = tw.sizes(\"N\")\n"
        "@tw.kernel(target=\"sm_80\", threads=BLOCK // 4)\n"
        "def copy(X: tw.Tensor(T, N), Y: tw.Tensor(T, N), T: tw.each(bf16, f32), BLOCK: tw.each(256, 512)):\n"
        "    i = tw.grid(tw.cdiv(N, BLOCK)) * BLOCK\n    tw.store(Y[i], tw.load(X[i : i + BLOCK], fill=0.0))\n");
    ASSERT_TRUE(c.module.has_value()) << c.report();
    std::vector<std::string> variants;
    for (const ir::Kernel& k : c.module->kernels) variants.push_back(k.variant + " " + std::to_string(32 * k.warps));
    EXPECT_EQ(variants,
              (std::vector<std::string>{"T=bf16, BLOCK=256 64", "T=bf16, BLOCK=512 128", "T=f32, BLOCK=256 64", "T=f32, BLOCK=512 128"}));
}

// A constant from outside leaves the variants that have it; a kernel may be left with none, the file may not.
TEST(Variants, AValueFromOutsideChooses) {
    const std::string text =
        "import tilewright as tw\nfrom tilewright import bf16, f16, f32\nN = tw.sizes(\"N\")\n"
        "@tw.kernel(target=\"sm_80\", threads=64)\n"
        "def copy(X: tw.Tensor(T, N), Y: tw.Tensor(T, N), T: tw.each(bf16, f32), BLOCK: tw.each(256, 512)):\n"
        "    i = tw.grid(tw.cdiv(N, BLOCK)) * BLOCK\n    tw.store(Y[i], tw.load(X[i : i + BLOCK], fill=0.0))\n"
        "@tw.kernel(target=\"sm_80\", threads=64)\n"
        "def other(X: tw.Tensor(T, N), Y: tw.Tensor(T, N), T: tw.each(f32), W: tw.const = 256):\n"
        "    i = tw.grid(tw.cdiv(N, W)) * W\n    tw.store(Y[i], tw.load(X[i : i + W], fill=0.0))\n";
    const auto left = [&](const ConstValues& constants) {
        SourceMap sources;
        DiagnosticSink sink;
        std::string names;
        const auto module = compile_text(sources, "kernels.py", text, constants, sink);
        if (!module) return render_text(sink, sources);
        for (const ir::Kernel& k : module->kernels) names += k.name + " " + k.variant + "; ";
        return names;
    };
    EXPECT_EQ(left({{"T", ConstValue(target::DType::BF16)}, {"BLOCK", 512}}), "copy T=bf16, BLOCK=512; ");
    EXPECT_EQ(left({{"T", ConstValue(target::DType::F32)}, {"BLOCK", 256}}), "copy T=f32, BLOCK=256; other T=f32; ");
    EXPECT_NE(left({{"T", ConstValue(target::DType::F16)}}).find("f16 is not among the values of T"), std::string::npos);
    EXPECT_NE(left({{"W", ConstValue(target::DType::F32)}}).find("f32 is a dtype, and W takes whole numbers"), std::string::npos);
    EXPECT_EQ(ConstValue::parse("e4m3")->text(), "e4m3");
    EXPECT_EQ(ConstValue::parse("-7"), ConstValue(-7));
    EXPECT_NE(left({{"W", *ConstValue::parse("bf17")}}).find("bf17 is a name, and W takes whole numbers"), std::string::npos);
    for (const char* bad : {"", "7x", "99999999999999999999", "0x10", " 7"}) EXPECT_FALSE(ConstValue::parse(bad)) << bad;
}

TEST(Clusters, APeersMemoryIsReachedAndNobodyLeavesBefore) {
    const Compiled c = compile(
        "import tilewright as tw\nfrom tilewright import f32\nM = tw.sizes(\"M\")\n"
        "@tw.kernel(target=\"sm_90a\", threads=32, cluster=(2, 1, 1))\n"
        "def swap(X: tw.Tensor(f32, M, 2, 32), Y: tw.Tensor(f32, M, 2, 32)):\n"
        "    rank, m = tw.grid(2, M)\n    s = tw.shared(f32, (32,))\n    tw.store(s, tw.load(X[m, rank, 0:32]))\n    tw.cluster_sync()\n"
        "    tw.store(Y[m, rank, 0:32], tw.load(s, rank=1 - rank))\n");
    // The text's own barrier is the first meeting; the last arrival stands before the store, its wait at the end.
    const std::string text = last(c);
    expect_lines(text, {"store_shared s", "cluster_arrive", "cluster_wait", "load_shared s[0:+32]@rank(", "cluster_arrive", "store Y[",
                        "cluster_wait"});
    EXPECT_EQ(text.find("cluster_arrive"), text.find("cluster_arrive", text.find("store_shared s"))) << text;
}

TEST(Programs, LaunchesWithBuffersBetween) {
    const Compiled c = compile(read_bytes(repository("kernels/split_k.py")));
    ASSERT_TRUE(c.module.has_value()) << c.report();
    ASSERT_EQ(c.module->programs.size(), 1u);
    const ir::Program& p = c.module->programs[0];
    ASSERT_EQ(p.tensors.size(), 4u);
    EXPECT_EQ(p.parameter_count, 3);
    EXPECT_EQ(p.tensors[3].name, "P");
    ASSERT_EQ(p.launches.size(), 2u);
    EXPECT_EQ(p.launches[0].arguments, (std::vector<int>{0, 1, 3}));
    EXPECT_EQ(p.launches[1].arguments, (std::vector<int>{3, 2}));
    EXPECT_FALSE(p.computes.empty());
}

TEST(Expect, TermsOverKernelVariables) {
    const std::string body =
        "acc = tw.zeros(f32, (16, 128))\nfor kt in tw.range(N):\n    tw.expect(acc, \"sum(k in 0:kt*8, A[i, k])\", i, j)\n    acc = acc + "
        "1.0\ntw.expect(N >= 0)";
    const Compiled c = compile(kernel_text("A: tw.Tensor(f32, M, K)", body));
    expect_lines(last(c), {"expect sum(k in 0:kt*8, A[i, k])", "expect N >= 0"});
}

TEST(Expect, FieldsCoversAndFreshnessAreStatements) {
    const std::string body =
        "tw.tag(A[m, k], half=k // 64)\nx = tw.load(A[0:16, 0:128], fill=0.0)\ntw.expect(x.half == x.k // 64)\ntw.expect(x[i, j].m == i)\n"
        "tw.expect(tw.covers(x.k, 0, 1))\ntw.expect(tw.disjoint(x.k, x.m))\ntw.expect(tw.fresh(x))";
    const Compiled c = compile(kernel_text("A: tw.Tensor(f32, M, K)", body));
    expect_lines(last(c), {"expect x.half == x.k // 64", "expect x[i, j].m == i", "expect tw.covers(x.k, 0, 1)",
                           "expect tw.disjoint(x.k, x.m)", "expect tw.fresh(x)"});
}

TEST(Computes, ADtypeParameterIsACast) {
    const Compiled c = compile(
        "import tilewright as tw\nfrom tilewright import bf16, f16, f32\n\nN = tw.sizes(\"N\")\n\n\n@tw.kernel(target=\"sm_80\", "
        "computes=\"Y[n] = T(f32(X[n]) * 2)\")\n"
        "def twice(X: tw.Tensor(T, N), Y: tw.Tensor(T, N), T: tw.each(bf16, f16)):\n    i = tw.grid(tw.cdiv(N, 128)) * 128\n"
        "    tw.store(Y[i], (tw.load(X[i : i + 128], fill=0.0).to(f32) * 2.0).to(T))\n");
    ASSERT_TRUE(c.module.has_value()) << c.report();
    ASSERT_EQ(c.module->kernels.size(), 2u);
    EXPECT_EQ(c.module->kernels[0].computes.text, "Y[n] = bf16(f32(X[n]) * 2)");
    EXPECT_EQ(c.module->kernels[1].computes.equations[0].value->dtype, target::DType::F16);
}

TEST(Computes, AnOutputMayBeSaidInParts) {
    const Compiled c = compile(
        "import tilewright as tw\nfrom tilewright import f32\n\nN = tw.sizes(\"N\")\n\n\n@tw.kernel(target=\"sm_80\", computes=\"Y[n in "
        "4:N] = X[n]; Y[0] = X[3]\")\n"
        "def part(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):\n    pass\n");
    ASSERT_TRUE(c.module.has_value()) << c.report();
    const auto& equations = c.module->kernels[0].computes.equations;
    ASSERT_EQ(equations.size(), 2u);
    EXPECT_TRUE(ir::start_of(equations[0], 0).is_constant(4));
    EXPECT_TRUE(equations[1].output_starts.empty());
    EXPECT_TRUE(equations[1].output_extents[0].is_constant(1));
}

}  // namespace steps_test
}  // namespace tw::lower
