// Programs of constant sizes with views: elements by their number in memory, parts of buffers, stages, cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lower/lower.h"
#include "verify/program.h"

namespace tw::verify {
namespace program_views_test {

// Kernels that are right by themselves (their own proofs are not asked here); the program is the test's.
const char* kernels = R"py(import tilewright as tw
from tilewright import f32, i32


@tw.kernel(target="sm_80", computes="Y[n] = X[n] * 2")
def double_row(X: tw.Tensor(f32, 512), Y: tw.Tensor(f32, 512)):
    i = tw.grid(4) * 128
    tw.store(Y[i], tw.load(X[i : i + 128]) * 2.0)


@tw.kernel(target="sm_80", computes="S[m] = sum(n, X[m, n])", threads=128)
def row_sums(X: tw.Tensor(f32, 4, 128), S: tw.Tensor(f32, 4)):
    m = tw.grid(4)
    tw.store(S[m], tw.sum(tw.load(X[m, 0:128]), axis=0))


@tw.kernel(target="sm_80", computes="Y[m, n] = X[n, m] + B[m]", threads=128)
def turned(X: tw.Tensor(f32, 128, 4), B: tw.Tensor(f32, 4), Y: tw.Tensor(f32, 4, 128)):
    m = tw.grid(4)
    tw.store(Y[m, 0:128], tw.load(X[0:128, m]) + tw.load(B[m]))


@tw.kernel(target="sm_80", computes="Y[n] = X[n]", threads=128)
def every_other(X: tw.Tensor(f32, 256), Y: tw.Tensor(f32, 256, strides=(2,))):
    i = tw.grid(2) * 128
    tw.store(Y[i], tw.load(X[i : i + 128]))


@tw.kernel(target="sm_80", computes="C[slot[t], n] = X[t, n]", threads=128)
def put(X: tw.Tensor(f32, 4, 128), slot: tw.Tensor(i32, 4, range=(-1, 8), distinct=True), C: tw.Tensor(f32, 8, 128)):
    place = tw.load(slot[0:4], fill=-1)
    tw.store(C[place, 0:128], tw.load(X[0:4, 0:128]))


)py";

struct Judged {
    bool compiled = false, proved = false;
    std::string reason;
};

Judged judged(const std::string& computes, const std::string& signature, const std::string& body) {
    SourceMap sources;
    DiagnosticSink sink;
    const std::string text =
        std::string(kernels) + "@tw.program(computes=\"\"\"" + computes + "\"\"\")\ndef whole(" + signature + "):\n" + body;
    const auto module = lower::compile_text(sources, "program.py", text, {}, sink);
    Judged result;
    result.reason = render_text(sink, sources);
    if (!module || module->programs.size() != 1) return result;
    result.compiled = result.proved = true;
    for (const Obligation& o : check_program(*module, module->programs[0])) {
        result.proved = result.proved && o.status == Status::proved;
        result.reason += o.reason;
    }
    return result;
}

const std::string halves = R"(
    let T[m in 0:2, n in 0:256] = X[m, n] * 2
    S[b] = sum(n in 0:128, T[b // 2, b % 2 * 128 + n]))";
const std::string two = "X: tw.Tensor(f32, 2, 256), S: tw.Tensor(f32, 4)";

std::string launches(const std::string& view) {
    return "    T = tw.buffer(f32, 2, 256)\n    row = tw.view(X, 512)\n    doubled = tw.view(T, 512)\n    halves = " + view +
           "\n    double_row(row, doubled)\n    row_sums(halves, S)\n";
}

TEST(ProgramViews, AReshapeBetweenLaunchesIsFollowed) {
    const Judged right = judged(halves, two, launches("tw.view(T, 4, 128)"));
    EXPECT_TRUE(right.proved) << right.reason;
    // Without a let of the buffer's name, the buffer's equation is put in.
    EXPECT_TRUE(judged("S[b] = sum(n in 0:128, X[b // 2, b % 2 * 128 + n] * 2)", two, launches("tw.view(T, 4, 128)")).proved);
}

TEST(ProgramViews, WrongViewsAndStatementsAreNotProved) {
    for (const char* view : {"tw.view(X, 4, 128)", "tw.view(T, 4, 128, strides=(64, 1))", "tw.view(T, 4, 128, strides=(0, 1))"})
        EXPECT_FALSE(judged(halves, two, launches(view)).proved) << view;
    for (const char* computes : {"S[b] = sum(n in 0:128, X[b // 2, b % 2 * 128 + n])",      // without the factor
                                 "S[b] = sum(n in 0:128, X[b % 2, b // 2 * 128 + n] * 2)",  // the other axis
                                 "S[b] = sum(n in 0:127, X[b // 2, b % 2 * 128 + n] * 2)",  // one too few
                                 "S[b] = sum(n in 0:128, X[0, b * 128 + n] * 2)",           // outside of its row: no element
                                 "let T[m in 0:2, n in 0:256] = X[m, n] * 3\n    S[b] = sum(n in 0:128, T[b // 2, b % 2 * 128 + n])"})
        EXPECT_FALSE(judged(computes, two, launches("tw.view(T, 4, 128)")).proved) << computes;
}

TEST(ProgramViews, TheFailingStageIsNamed) {
    const Judged wrong = judged("let T[m in 0:2, n in 0:256] = X[m, n] * 3\n    S[b] = sum(n in 0:128, T[b // 2, b % 2 * 128 + n])", two,
                                launches("tw.view(T, 4, 128)"));
    EXPECT_NE(wrong.reason.find("`T` is expected to hold"), std::string::npos) << wrong.reason;
}

TEST(ProgramViews, AViewStaysInsideItsTensor) {
    EXPECT_FALSE(judged(halves, two, launches("tw.view(T, 4, 128, offset=1)")).compiled);
    EXPECT_FALSE(judged(halves, two, launches("tw.view(T, 4, 128, strides=(129, 1))")).compiled);
    EXPECT_FALSE(judged(halves, two, launches("tw.view(halves, 4, 128)")).compiled);
}

TEST(ProgramViews, AxesAndBiasOfATurnedTensor) {
    const std::string signature = "X: tw.Tensor(f32, 128, 4), B: tw.Tensor(f32, 4), C: tw.Tensor(f32, 4), S: tw.Tensor(f32, 4)";
    const std::string body = "    T = tw.buffer(f32, 4, 128)\n    turned(X, B, T)\n    row_sums(T, S)\n";
    const auto stage = [](const std::string& value) {
        return "let T[m in 0:4, n in 0:128] = " + value + "\n    S[m] = sum(n in 0:128, T[m, n])";
    };
    EXPECT_TRUE(judged(stage("X[n, m] + B[m]"), signature, body).proved);
    EXPECT_FALSE(judged(stage("X[n, m]"), signature, body).proved);
    EXPECT_FALSE(judged(stage("X[n, m] + C[m]"), signature, body).proved);
    EXPECT_FALSE(judged(stage("X[(m * 128 + n) // 4, (m * 128 + n) % 4] + B[m]"), signature, body).proved);
    EXPECT_FALSE(judged("S[m] = sum(n in 0:128, X[n, m]) + B[m]", signature, body).proved);
    EXPECT_TRUE(judged("S[m] = sum(n in 0:128, X[n, m]) + 128 * B[m]", signature, body).proved);
}

TEST(ProgramViews, PartsOfABufferMakeTheWholeOnlyTogether) {
    const std::string signature = "A: tw.Tensor(f32, 256), B: tw.Tensor(f32, 256), S: tw.Tensor(f32, 4)";
    const auto body = [](int second) {
        return "    T = tw.buffer(f32, 512)\n    even = tw.view(T, 256, strides=(2,))\n    odd = tw.view(T, 256, strides=(2,), offset=" +
               std::to_string(second) +
               ")\n    rows = tw.view(T, 4, 128)\n    every_other(A, even)\n    every_other(B, odd)\n    row_sums(rows, S)\n";
    };
    const std::string sums = "S[m] = sum(n in 0:64, A[m * 64 + n]) + sum(n in 0:64, B[m * 64 + n])";
    EXPECT_TRUE(judged(sums, signature, body(1)).proved) << judged(sums, signature, body(1)).reason;
    EXPECT_FALSE(judged(sums, signature, body(0)).proved);  // the second overwrites the first, and the rest is never written
    EXPECT_FALSE(judged("S[m] = sum(n in 0:128, A[m * 64 + n // 2])", signature, body(1)).proved);
}

TEST(ProgramViews, AStageIsWhatTheBufferHeldNotWhatItHoldsLater) {
    const std::string signature = "X: tw.Tensor(f32, 512), Z: tw.Tensor(f32, 512), Y: tw.Tensor(f32, 512)";
    const std::string body = "    T = tw.buffer(f32, 512)\n    U = tw.buffer(f32, 512)\n    double_row(X, T)\n    double_row(T, U)\n";
    const auto text = [](const std::string& y) {
        return "let T[n in 0:512] = X[n] * 2\n    let U[n in 0:512] = T[n] * 2\n    Y[n] = " + y;
    };
    EXPECT_TRUE(judged(text("T[n] * 2"), signature, body + "    double_row(T, Y)\n").proved);
    EXPECT_FALSE(judged(text("T[n] * 2"), signature, body + "    double_row(Z, T)\n    double_row(T, Y)\n").proved);
    EXPECT_TRUE(judged(text("Z[n] * 4"), signature, body + "    double_row(Z, T)\n    double_row(T, Y)\n").proved);
    EXPECT_FALSE(judged(text("U[n] * 2"), signature, body + "    double_row(T, Y)\n").proved);  // the wrong buffer
}

TEST(ProgramViews, WhatALaunchWritesIsGivenToItOnce) {
    const Judged twice = judged("Y[n] = Y[n]", "Y: tw.Tensor(f32, 512)", "    V = tw.view(Y, 512)\n    double_row(V, Y)\n");
    EXPECT_FALSE(twice.compiled);
    const Judged unread = judged("S[m] = 0", "S: tw.Tensor(f32, 4)", "    T = tw.buffer(f32, 4, 128)\n    row_sums(T, S)\n");
    EXPECT_FALSE(unread.proved);
}

TEST(ProgramViews, WhatAKernelIsPromisedOfPlacesTheProgramPromisesToo) {
    for (const std::string& body : {std::string("    put(X, slot, C)\n"),
                                    std::string("    T = tw.buffer(f32, 4, 128)\n    x = tw.view(X, 512)\n    t = tw.view(T, 512)\n"
                                                "    double_row(x, t)\n    put(T, slot, C)\n")}) {
        const std::string twice = body.find("double") == std::string::npos ? "" : " * 2";
        const Judged j = judged("C[slot[t], n] = X[t, n]" + twice,
                                "X: tw.Tensor(f32, 4, 128), slot: tw.Tensor(i32, 4, range=(-1, 8)), C: tw.Tensor(f32, 8, 128)", body);
        ASSERT_TRUE(j.compiled) << j.reason;
        EXPECT_FALSE(j.proved) << body;
        EXPECT_NE(j.reason.find("promised of"), std::string::npos) << j.reason;
    }
}

}  // namespace program_views_test
}  // namespace tw::verify
