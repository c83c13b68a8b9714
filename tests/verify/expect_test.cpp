// tw.expect and tw.tag: relations between the fields of data, proved or shown to fail on a run of the emulator.
#include "codegen/emit.h"
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace expect_test {

using namespace testing_kernels;

// A GEMM on ordinary loads; `before`, `inside` and `after` its loop over k.
std::string gemm(const std::string& before, const std::string& inside, const std::string& after, const std::string& offset = "") {
    return R"py(import tilewright as tw
from tilewright import bf16, f32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))")
def gemm(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(bf16, M, N)):
    tw.tag(A[row, depth], step=depth // 16)
    bn, bm = tw.grid(tw.cdiv(N, 16), tw.cdiv(M, 32))
    sA = tw.shared(bf16, (32, 16))
    sB = tw.shared(bf16, (16, 16))
    acc = tw.zeros(f32, (32, 16), layout=tw.mma_c(warps=(2, 2)))
)py" + before +
           R"py(
    for kt in tw.range(tw.cdiv(K, 16)):
        tw.store(sA, tw.load(A[bm * 32 : bm * 32 + 32, kt * 16 : kt * 16 + 16], fill=0.0))
        tw.store(sB, tw.load(B[bn * 16 : bn * 16 + 16, kt * 16)py" +
           offset + R"py( : kt * 16)py" + offset + R"py( + 16], fill=0.0))
        tw.sync()
        a = tw.load(sA, layout=tw.mma_a())
        b = tw.load(sB, layout=tw.mma_b())
)py" + inside +
           R"py(
        tw.mma(acc, a, b)
        tw.sync()
)py" + after +
           R"py(
    tw.store(C[bm * 32, bn * 16], acc.to(bf16))
)py";
}

const std::string inside = "        ", outside = "    ";

diagnose::CheckResult checked(const std::string& text, bool search = false) {
    diagnose::CheckOptions options;
    options.search = search;
    options.search_seconds = 10;
    return diagnose::check(kernel_of_text(text), options);
}

Obligation expectation(const diagnose::CheckResult& result) {
    for (const Obligation& o : result.obligations) {
        if (o.kind == "expect") return o;
    }
    ADD_FAILURE() << "no expectation was judged";
    return {};
}

Status status_inside(const std::string& expect, const std::string& offset = "") {
    return expectation(checked(gemm("", inside + "tw.expect(" + expect + ")", "", offset))).status;
}
Status status_after(const std::string& expect) { return expectation(checked(gemm("", "", outside + "tw.expect(" + expect + ")"))).status; }

TEST(Expect, FieldsOfComputesAndOfTagsFollowTheData) {
    EXPECT_EQ(status_inside("a[i, x].k == b[j, x].k"), Status::proved);
    EXPECT_EQ(status_inside("sA[i, x].k == sB[j, x].k"), Status::proved);
    EXPECT_EQ(status_inside("a.step == kt"), Status::proved);
    EXPECT_EQ(status_inside("a.depth == a.k and a.row == a.m"), Status::proved);
    EXPECT_EQ(status_inside("bm * 32 <= a.m < bm * 32 + 32"), Status::proved);
    EXPECT_EQ(status_inside("a.m != M"), Status::proved);
    EXPECT_EQ(status_inside("b[0, x].n == bn * 16"), Status::proved);
}

TEST(Expect, WhatDoesNotHoldIsNotProved) {
    EXPECT_EQ(status_inside("a[i, x].k == b[j, x].k", " + 1"), Status::not_proved);
    EXPECT_EQ(status_inside("a.step == kt + 1"), Status::not_proved);
    EXPECT_EQ(status_inside("a[i, x].k == b[j, y].k"), Status::not_proved) << "for all x and y";
    EXPECT_EQ(status_inside("a.m < M - 1"), Status::not_proved);
    EXPECT_EQ(status_inside("acc.k < kt * 16 - 1"), Status::not_proved) << "for all k that were folded in";
}

TEST(Expect, AFoldHasEveryValueThatWentIntoIt) {
    EXPECT_EQ(status_inside("acc.k < kt * 16"), Status::proved);
    EXPECT_EQ(status_inside("acc[i, j].m == bm * 32 + i and acc[i, j].n == bn * 16 + j"), Status::proved)
        << "a coordinate has a value once it is named";
    EXPECT_EQ(status_inside("acc[i, j].m == bm * 32 + i + 1"), Status::not_proved);
    EXPECT_EQ(status_after("acc.k >= 0 and acc.k < K"), Status::proved);
    EXPECT_EQ(status_after("acc.n < N"), Status::proved);
}

TEST(Expect, Covers) {
    EXPECT_EQ(status_after("tw.covers(acc.k, 0, K)"), Status::proved);
    EXPECT_EQ(status_after("tw.covers(acc.k, 0, K - 1)"), Status::not_proved);
    EXPECT_EQ(status_after("tw.covers(acc.k, 1, K)"), Status::not_proved);
    EXPECT_EQ(status_inside("tw.covers(acc.k, 0, tw.min(K, kt * 16))"), Status::proved);
    EXPECT_EQ(status_inside("tw.covers(acc.k, 0, K)"), Status::not_proved);
}

TEST(Expect, DisjointAndFresh) {
    EXPECT_EQ(status_inside("tw.disjoint(a.k, acc.k)"), Status::proved);
    EXPECT_EQ(status_inside("tw.disjoint(a.k, b.k)"), Status::not_proved);
    EXPECT_EQ(expectation(checked(gemm(outside + "tw.expect(tw.fresh(acc))", "", ""))).status, Status::proved);
    EXPECT_EQ(status_inside("tw.fresh(acc)"), Status::not_proved);
    EXPECT_EQ(status_inside("tw.fresh(sA)"), Status::not_proved);
}

TEST(Expect, RelationsThatHoldOfAnyDataAreVacuous) {
    EXPECT_EQ(status_inside("a.k == a.k"), Status::vacuous);
    EXPECT_EQ(status_inside("a.k % 16 < 16"), Status::vacuous);
    EXPECT_EQ(status_inside("a.k < 0 or kt >= 0"), Status::vacuous) << "what is known of kt makes it true whatever a is";
}

TEST(Expect, AFieldThatNothingHasIsNotProved) {
    EXPECT_EQ(expectation(checked(gemm(outside + "tw.expect(acc.k >= 0)", "", ""))).status, Status::not_proved);
}

struct Wrong {
    std::string name, before, inside, after, offset, says;
};
class ExpectRefuted : public ::testing::TestWithParam<Wrong> {};

TEST_P(ExpectRefuted, ByARunThatShowsIt) {
    const Wrong& w = GetParam();
    const auto result = checked(gemm(w.before, w.inside, w.after, w.offset), true);
    ASSERT_TRUE(result.counterexample.has_value());
    EXPECT_EQ(expectation(result).status, Status::violated);
    EXPECT_NE(expectation(result).reason.find(w.says), std::string::npos) << expectation(result).reason;
    EXPECT_TRUE(result.counterexample->confirmed);
    if (w.offset.empty()) EXPECT_EQ(result.counterexample->code, "TW1010");  // otherwise the kernel is wrong as well, and that is shown
}

INSTANTIATE_TEST_SUITE_P(
    Forms, ExpectRefuted,
    ::testing::Values(Wrong{"shifted", "", "        tw.expect(a[i, x].k == b[j, x].k)", "", " + 1", "b[0, 0].k is 1"},
                      Wrong{"step", "", "        tw.expect(a.step == kt + 1)", "", "", "a[0, 0].step is 0"},
                      Wrong{"shared", "", "        tw.expect(sA[i, x].k == sB[j, x].k + 1)", "", "", "sA[0, 0].k is 0"},
                      Wrong{"range", "", "", "    tw.expect(acc.k < K - 1)", "", "acc[0, 0].k is "},
                      Wrong{"covers", "", "", "    tw.expect(tw.covers(acc.k, 0, K + 1))", "", "lacks k = "},
                      Wrong{"covers_more", "", "", "    tw.expect(tw.covers(acc.k, 1, K))", "", "also has k = 0"},
                      Wrong{"disjoint", "", "        tw.expect(tw.disjoint(a.k, b.k))", "", "", "a[0, 0].k is 0, b[0, 0].k is 0"},
                      Wrong{"fresh", "", "", "    tw.expect(tw.fresh(acc))", "", "changes with the inputs"},
                      Wrong{"condition", "", "        tw.expect(kt * 16 < K - 1)", "", "", "is false here"},
                      Wrong{"term", "", "", "    tw.expect(acc, \"sum(k, f32(A[bm * 32 + i, k]))\", i, j)", "", "element [0, 0]"}),
    [](const auto& given) { return given.param.name; });

TEST(Expect, CostsNothingAtRunTime) {
    auto text_of = [](const std::string& source) {
        const auto emitted = codegen::emit(kernel_of_text(source), "kernel.py");
        EXPECT_TRUE(emitted.has_value());
        std::string code, line;
        std::istringstream lines(emitted ? emitted->source : "");
        while (std::getline(lines, line)) code += line.substr(0, line.find("//")) + "\n";  // remarks name lines of the file
        return code;
    };
    const std::string plain = text_of(gemm("", "", ""));
    EXPECT_EQ(plain,
              text_of(gemm("    tw.expect(tw.fresh(acc))",
                           "        tw.expect(sA[i, x].k == sB[j, x].k)\n        tw.expect(a.step == kt)\n        tw.expect(kt >= 0)",
                           "    tw.expect(tw.covers(acc.k, 0, K))\n    tw.expect(acc, \"sum(k, f32(A[bm * 32 + i, k]) * f32(B[bn * 16 + j, "
                           "k]))\", i, j)")));
    EXPECT_NE(plain.find("mma_m16n8k16"), std::string::npos);
}

}  // namespace expect_test
}  // namespace tw::verify
