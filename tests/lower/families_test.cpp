// What kernels of one file share: signatures, records, tables, lists that a loop carries, and tw.each over what has a name.
#include <gtest/gtest.h>

#include "lower_test_support.h"

namespace tw::lower {
namespace families_test {

constexpr const char* kHead =
    "import tilewright as tw\n"
    "from tilewright import bf16, f32\n\n"
    "M, N = tw.sizes(\"M N\")\n"
    "T, F, BN = tw.parameters(\"T F BN\")\n\n";

constexpr const char* kFamily =
    "@tw.signature(computes=\"Y[n] = X[n] * 2\", target=\"sm_80\", threads=128)\n"
    "def doubled(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N), BN: tw.const(128, 256) = 256):\n"
    "    \"\"\"Twice.\"\"\"\n"
    "    tw.assume(N % 4 == 0)\n\n";

std::string codes(const Compiled& c) {
    std::string text;
    for (const Diagnostic& d : c.sink.diagnostics()) text += d.message + "\n";
    return text;
}

Compiled with(const std::string& rest, const ConstValues& constants = {}) { return compile(std::string(kHead) + rest, constants); }

TEST(Families, AKernelTakesFromItsSignatureWhatItDoesNotSay) {
    const auto c = with(std::string(kFamily) +
                        "@tw.kernel(doubled, threads=256)\n"
                        "def large(X, Y, BN):\n"
                        "    i = tw.grid(tw.cdiv(N, BN)) * BN\n"
                        "    tw.store(Y[i : i + BN], tw.load(X[i : i + BN], fill=0.0) * 2.0)\n\n"
                        "@tw.kernel(doubled, name=\"other\")\n"
                        "def small(X, Y, BN: tw.const = 128, V: tw.const = 1):\n"
                        "    i = tw.grid(tw.cdiv(N, BN * V)) * (BN * V)\n"
                        "    tw.store(Y[i : i + BN * V], tw.load(X[i : i + BN * V], fill=0.0) * 2.0)\n");
    ASSERT_TRUE(c.module) << c.report();
    ASSERT_EQ(c.module->kernels.size(), 2u);
    const ir::Kernel &large = c.module->kernels[0], &small = c.module->kernels[1];
    EXPECT_EQ(large.name, "doubled");
    EXPECT_EQ(large.warps, 8);
    EXPECT_EQ(large.arch, "sm_80");
    EXPECT_EQ(large.computes.text, "Y[n] = X[n] * 2");
    ASSERT_EQ(large.assumptions.size(), 1u);
    ASSERT_EQ(large.consts.size(), 1u);
    EXPECT_EQ(large.consts[0].value, 256);
    EXPECT_EQ(large.consts[0].choices.size(), 2u);
    EXPECT_EQ(small.name, "other");
    EXPECT_EQ(small.warps, 4);
    EXPECT_EQ(small.consts[0].value, 128);
    EXPECT_EQ(small.consts.size(), 2u);
}

TEST(Families, WhatASignatureCannotBe) {
    const std::string body = "    tw.store(Y[0:128], tw.zeros(f32, (128,)))\n";
    EXPECT_NE(codes(with(std::string(kFamily) + "@tw.kernel(doubled)\ndef k(Y, X, BN):\n" + body)).find("in their order"),
              std::string::npos);
    EXPECT_NE(codes(with(std::string(kFamily) + "@tw.kernel(doubled)\ndef k(X, Y):\n" + body)).find("'BN' is missing"), std::string::npos);
    EXPECT_NE(codes(with(std::string(kFamily) + "@tw.kernel(doubled)\ndef k(X, Y, BN, Z):\n" + body)).find("'Z' has no annotation"),
              std::string::npos);
    EXPECT_NE(codes(with("@tw.signature(computes=\"Y[n] = 0\")\ndef f(Y: tw.Tensor(f32, N)):\n" + body)).find("no statements"),
              std::string::npos);
    EXPECT_NE(codes(with("@tw.kernel(5, target=\"sm_80\")\ndef k(Y: tw.Tensor(f32, N)):\n" + body)).find("have names"), std::string::npos);
    EXPECT_NE(codes(with("@tw.kernel(nowhere, target=\"sm_80\")\ndef k(Y: tw.Tensor(f32, N)):\n" + body)).find("'nowhere' is not defined"),
              std::string::npos);
}

constexpr const char* kFolds =
    "SUM = tw.record(name=\"sum\", fold=tw.sum, start=0.0)\n"
    "MAX = tw.record(SUM, name=\"max\", fold=tw.max, start=float(\"-inf\"))\n\n"
    "@tw.kernel(target=\"sm_80\", name=\"row_\" + F.name, computes=\"S[m] = F(n, f32(X[m, n]))\", threads=128)\n"
    "def folded(X: tw.Tensor(T, M, N), S: tw.Tensor(f32, M), F: tw.each(SUM, MAX), T: tw.each(bf16, f32)):\n"
    "    tw.assume(N <= 1024)\n"
    "    m = tw.grid(M)\n"
    "    tw.store(S[m], F.fold(tw.load(X[m, 0:1024], fill=F.start).to(f32), axis=0))\n";

TEST(Families, OneKernelForEachRecord) {
    const auto c = with(kFolds);
    ASSERT_TRUE(c.module) << c.report();
    ASSERT_EQ(c.module->kernels.size(), 4u);
    EXPECT_EQ(c.module->kernels[0].name, "row_sum");
    EXPECT_EQ(c.module->kernels[0].variant, "F=sum, T=bf16");
    EXPECT_EQ(c.module->kernels[0].computes.text, "S[m] = sum(n, f32(X[m, n]))");
    EXPECT_EQ(c.module->kernels[3].name, "row_max");
    EXPECT_EQ(c.module->kernels[3].computes.text, "S[m] = max(n, f32(X[m, n]))");
    EXPECT_EQ(c.module->kernels[3].computes.equations[0].value->name, "max");

    const auto some = with(kFolds, {{"F", *ConstValue::parse("max")}, {"T", *ConstValue::parse("f32")}});
    ASSERT_TRUE(some.module) << some.report();
    ASSERT_EQ(some.module->kernels.size(), 1u);
    EXPECT_EQ(some.module->kernels[0].variant, "F=max, T=f32");
    EXPECT_NE(codes(with(kFolds, {{"F", *ConstValue::parse("least")}})).find("least is not among the values of F"), std::string::npos);
}

TEST(Families, AFunctionOfComputesIsNotRenamed) {
    // A record that happens to have the name of another function changes nothing: `sum` is the sum.
    const auto c = with(
        "sum = tw.record(name=\"max\")\n"
        "@tw.kernel(target=\"sm_80\", computes=\"S[m] = sum(n, X[m, n])\")\n"
        "def k(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):\n"
        "    tw.assume(N <= 128)\n"
        "    m = tw.grid(M)\n"
        "    tw.store(S[m], tw.sum(tw.load(X[m, 0:128], fill=0.0), axis=0))\n");
    ASSERT_TRUE(c.module) << c.report();
    EXPECT_EQ(c.module->kernels[0].computes.equations[0].value->name, "sum");
}

TEST(Families, TablesOfConstants) {
    const std::string tail =
        "def k(Y: tw.Tensor(f32, N), T: tw.each(bf16, f32), BN: tw.each(128, 256)):\n"
        "    i = tw.grid(tw.cdiv(N, BN)) * BN\n"
        "    tw.store(Y[i : i + BN], tw.zeros(f32, (BN,)))\n";
    const std::string table = "SHAPE = tw.table({(bf16, 128): tw.record(threads=64), (f32, 256): tw.record(threads=256)})\n";
    const auto c = with(table + "@tw.kernel(target=\"sm_80\", threads=SHAPE.get((T, BN), tw.record(threads=BN)).threads)\n" + tail);
    ASSERT_TRUE(c.module) << c.report();
    std::vector<int> warps;
    for (const auto& k : c.module->kernels) warps.push_back(k.warps);
    EXPECT_EQ(warps, (std::vector<int>{2, 8, 4, 8}));
    EXPECT_NE(codes(with(table + "@tw.kernel(target=\"sm_80\", threads=SHAPE[T, BN].threads)\n" + tail)).find("no entry for (bf16, 256)"),
              std::string::npos);
    EXPECT_NE(codes(with("BAD = {tw.sum: 1}\n")).find("the key of a table"), std::string::npos);
    EXPECT_NE(codes(with("BAD = tw.table(3)\n")).find("tw.table takes"), std::string::npos);
}

std::string loop(const std::string& body) {
    return kernel_text("X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)", "x = tw.load(X[0:128], fill=0.0)\n" + body,
                       "target=\"sm_80\", threads=128");
}

TEST(Families, AListThatALoopChangesIsChangedInPlace) {
    const auto c =
        compile(loop("h = [tw.zeros(f32, (128,))] * 2\n"
                     "for i in tw.range(N):\n"
                     "    h[1] = h[0] + x\n"
                     "    h[0] = h[1] * 2.0\n"
                     "tw.store(Y[0:128], h[0])\n"));
    ASSERT_TRUE(c.module) << c.report();
    const ir::Kernel& k = c.module->kernels[0];
    int written_in_loop = 0;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        const auto* f = std::get_if<ir::For>(&s.op);
        if (!f) return;
        for (const ir::Stmt& inner : f->body) {
            const auto* compute = std::get_if<ir::Compute>(&inner.op);
            if (!compute) continue;
            ++written_in_loop;
            EXPECT_TRUE(k.fragments[static_cast<std::size_t>(compute->dst)].name.rfind("h", 0) == 0);
        }
    });
    EXPECT_EQ(written_in_loop, 2);
}

// The fragments that the loop writes, in order, and the one that is loaded first.
struct Written {
    std::vector<int> in_loop;
    int loaded = -1;
};
Written written(const ir::Kernel& k) {
    Written out;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (const auto* l = std::get_if<ir::LoadGlobal>(&s.op); l && out.loaded < 0) out.loaded = l->dst;
        const auto* f = std::get_if<ir::For>(&s.op);
        for (std::size_t i = 0; f && i < f->body.size(); ++i)
            if (const auto* compute = std::get_if<ir::Compute>(&f->body[i].op)) out.in_loop.push_back(compute->dst);
    });
    return out;
}

TEST(Families, ATupleIsReadBeforeItChanges) {
    // One of the two is kept aside; without that both would be what h[1] was.
    const auto swapped = compile(loop("h = (x, x * 2.0)\nfor i in tw.range(N):\n    h = (h[1], h[0])\ntw.store(Y[0:128], h[0])\n"));
    ASSERT_TRUE(swapped.module) << swapped.report();
    EXPECT_EQ(written(swapped.module->kernels[0]).in_loop.size(), 3u);
    // A shift needs nothing to be kept: the new part, and three moves.
    const auto shifted =
        compile(loop("h = (x, x * 2.0, x * 3.0)\nfor i in tw.range(N):\n    h = h[1:] + (x * 4.0,)\ntw.store(Y[0:128], h[0])\n"));
    ASSERT_TRUE(shifted.module) << shifted.report();
    EXPECT_EQ(written(shifted.module->kernels[0]).in_loop.size(), 4u);
}

TEST(Families, NamesAndTuplesDoNotShareWhatChanges) {
    const auto tuple =
        compile(loop("h = (x, x)\nfor i in tw.range(N):\n    h = (h[0] + 1.0, h[1] + 2.0)\ntw.store(Y[0:128], x + h[0] + h[1])\n"));
    ASSERT_TRUE(tuple.module) << tuple.report();
    Written w = written(tuple.module->kernels[0]);
    EXPECT_EQ(std::count(w.in_loop.begin(), w.in_loop.end(), w.loaded), 0);
    const auto name = compile(loop("h = (x, x)\nfor i in tw.range(N):\n    x = x + 1.0\ntw.store(Y[0:128], x + h[0])\n"));
    ASSERT_TRUE(name.module) << name.report();
    w = written(name.module->kernels[0]);
    EXPECT_EQ(std::count(w.in_loop.begin(), w.in_loop.end(), w.loaded), 0);
    const auto argument = compile(std::string(kHead) +
                                  "@tw.inline\ndef grown(x):\n    for i in tw.range(N):\n        x = x + 1.0\n    return x\n\n"
                                  "@tw.kernel(target=\"sm_80\", threads=128)\ndef k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):\n"
                                  "    x = tw.load(X[0:128], fill=0.0)\n    tw.store(Y[0:128], grown(x) - x)\n");
    ASSERT_TRUE(argument.module) << argument.report();
    w = written(argument.module->kernels[0]);
    EXPECT_EQ(std::count(w.in_loop.begin(), w.in_loop.end(), w.loaded), 0);
}

TEST(Families, RecordsAndIntegersAreCarriedToo) {
    const auto c =
        compile(loop("s = tw.record(at=0, sum=tw.zeros(f32, (128,)))\n"
                     "for i in tw.range(N):\n"
                     "    s = tw.record(s, at=s.at + 2, sum=s.sum + x)\n"
                     "tw.store(Y[s.at : s.at + 128], s.sum)\n"));
    ASSERT_TRUE(c.module) << c.report();
}

TEST(Families, WhatCannotChange) {
    const std::string tail = "tw.store(Y[0:128], h[0])\n";
    EXPECT_NE(codes(compile(loop("h = [x, x]\nfor i in tw.range(N):\n    h[2] = x\n" + tail))).find("index 2 of a list of 2"),
              std::string::npos);
    EXPECT_NE(codes(compile(loop("h = [x, x]\nfor i in tw.range(N):\n    h[i] = x\n" + tail))).find("index of a list"), std::string::npos);
    EXPECT_NE(codes(compile(loop("h = [x, x]\nfor i in tw.range(N):\n    h = (x,)\n" + tail))).find("is a tuple outside this block"),
              std::string::npos);
    EXPECT_NE(
        codes(compile(loop("h = [x, x]\nfor i in tw.range(N):\n    h[0] = tw.zeros(f32, (64,))\n" + tail))).find("outside this block"),
        std::string::npos);
    EXPECT_NE(codes(compile(loop("h = tw.record(a=x)\ntw.store(Y[0:128], h.b)\n"))).find("the record has no 'b'"), std::string::npos);
    EXPECT_NE(codes(compile(loop("X[0] = x\n"))).find("parts of lists"), std::string::npos);
    const std::string mine = std::string(kHead) + "@tw.inline\ndef changed(h):\n    h[0] = h[1]\n\n" +
                             "@tw.kernel(target=\"sm_80\", threads=128)\ndef k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):\n"
                             "    x = tw.load(X[0:128], fill=0.0)\n    h = [x, x]\n    changed(h)\n    tw.store(Y[0:128], h[0])\n";
    EXPECT_NE(codes(compile(mine)).find("is the caller's"), std::string::npos);
}

TEST(Families, ProgramsHaveSignaturesAndComputesIsMadeOfParts) {
    const auto c = with(
        "TWICE = \"let two[n] = X[n] * 2\\n\"\n"
        "@tw.signature()\ndef mapped(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):\n    pass\n\n"
        "@tw.kernel(mapped, target=\"sm_80\", computes=TWICE + \"Y[n] = two[n]\")\n"
        "def once(X, Y):\n"
        "    i = tw.grid(tw.cdiv(N, 128)) * 128\n"
        "    tw.store(Y[i : i + 128], tw.load(X[i : i + 128], fill=0.0) * 2.0)\n\n"
        "@tw.program(mapped, name=\"again\", computes=\"Y[n] = X[n] * 4\")\n"
        "def again(X, Y):\n    B = tw.buffer(f32, N)\n    once(X, B)\n    once(B, Y)\n");
    ASSERT_TRUE(c.module) << c.report();
    EXPECT_EQ(c.module->kernels[0].name, "mapped");
    ASSERT_EQ(c.module->programs.size(), 1u);
    EXPECT_EQ(c.module->programs[0].name, "again");
    // A mistake in a part is shown where the part is written.
    const auto wrong = with(
        "PART = \"let two[n] = X[n] * foo(2)\\n\"\n"
        "@tw.kernel(target=\"sm_80\", computes=PART + \"Y[n] = two[n]\")\ndef once(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):\n"
        "    tw.store(Y[0:128], tw.load(X[0:128], fill=0.0))\n");
    ASSERT_FALSE(wrong.sink.diagnostics().empty());
    EXPECT_EQ(std::string(wrong.sources.text(wrong.sink.diagnostics()[0].span)), "foo");
}

}  // namespace families_test
}  // namespace tw::lower
