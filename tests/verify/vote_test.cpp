// `if tw.any(...)`: a branch that each warp takes for itself on data, so it must leave every element as it was.
#include "diagnose/check.h"
#include "emulate/trial.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace vote_test {

using namespace testing_kernels;

std::string edited(std::string s, const std::string& was, const std::string& now) {
    const auto at = s.find(was);
    EXPECT_NE(at, std::string::npos) << was;
    return at == std::string::npos ? s : s.replace(at, was.size(), now);
}

diagnose::CheckResult checked(const std::string& source) {
    diagnose::CheckOptions options;
    options.search_seconds = 5;
    return diagnose::check(kernel_of_text(source), options);
}

// Sums relative to the maximum of the first chunk, which stays; where one outgrows it, the row once more relative to its maximum. The
// limit is low, so that ordinary data takes the branch.
const std::string logsumexp = R"py(import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = logsumexp(n, X[m, n])", threads=64)
def rows(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    tw.assume(N >= 1)
    m = tw.grid(tw.cdiv(M, 2)) * 2
    mark = tw.max(tw.load(X[m : m + 2, 0:32], fill=float("-inf"), layout=tw.warp_rows(vector=1)), axis=1)
    total = tw.zeros(f32, (2,))
    for c in tw.range(tw.cdiv(N, 32)):
        x = tw.load(X[m : m + 2, c * 32 : c * 32 + 32], fill=float("-inf"), layout=tw.warp_rows(vector=1))
        total = total + tw.sum(tw.exp(x - mark[:, None]), axis=1)
    s = mark + tw.log(total)
    if tw.any(total > 2.0):
        top = tw.full(f32, (2,), float("-inf"))
        for c in tw.range(tw.cdiv(N, 32)):
            x = tw.load(X[m : m + 2, c * 32 : c * 32 + 32], fill=float("-inf"), layout=tw.warp_rows(vector=1))
            top = tw.maximum(top, tw.max(x, axis=1))
        again = tw.zeros(f32, (2,))
        for c in tw.range(tw.cdiv(N, 32)):
            x = tw.load(X[m : m + 2, c * 32 : c * 32 + 32], fill=float("-inf"), layout=tw.warp_rows(vector=1))
            again = again + tw.sum(tw.exp(x - top[:, None]), axis=1)
        s = top + tw.log(again)
    tw.store(S[m : m + 2], s)
)py";

TEST(Vote, AnotherWayToTheSameValuesIsProved) {
    const auto r = checked(logsumexp);
    for (const Obligation& o : r.obligations) EXPECT_EQ(o.status, Status::proved) << o.kind << ": " << o.text << "\n" << o.reason;
    const ir::Kernel k = kernel_of_text(logsumexp);
    for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{1, 1}, {3, 70}, {4, 200}}) {
        const emulate::Trial trial = emulate::run_trial(k, sizes, {});
        EXPECT_EQ(trial.refused, "");
        EXPECT_FALSE(trial.failed()) << trial.summary(k);
    }
}

TEST(Vote, ABranchThatLosesAChunkIsShown) {
    const auto r = checked(edited(logsumexp,
                                  "        for c in tw.range(tw.cdiv(N, 32)):\n            x = tw.load(X[m : m + 2, c * 32 : c * 32 + 32], "
                                  "fill=float(\"-inf\"), layout=tw.warp_rows(vector=1))\n            again",
                                  "        for c in tw.range(1, tw.cdiv(N, 32)):\n            x = tw.load(X[m : m + 2, c * 32 : c * 32 + "
                                  "32], fill=float(\"-inf\"), layout=tw.warp_rows(vector=1))\n            again"));
    ASSERT_TRUE(r.violated());
    EXPECT_TRUE(r.counterexample->confirmed);
}

TEST(Vote, AReferenceThatMovesWithoutTheSumsIsShown) {
    const auto r = checked(edited(logsumexp, "        s = top + tw.log(again)", "        s = top + tw.log(total)"));
    ASSERT_TRUE(r.violated());
    EXPECT_TRUE(r.counterexample->confirmed);
}

TEST(Vote, ARareBranchIsNotBelievedUnseen) {  // no data of the search takes it: still not proved
    const auto r = checked(
        edited(edited(logsumexp, "total > 2.0", "total > 1.0e30"), "        s = top + tw.log(again)", "        s = top + tw.log(total)"));
    EXPECT_FALSE(r.proved());
}

TEST(Vote, WarpsDecideForThemselves) {
    const std::string source = R"py(import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = where(max(k in 0:32, X[n // 32 * 32 + k]) > 0, X[n] + 1, X[n])", threads=128)
def raised(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    tw.assume(N % 128 == 0)
    i = tw.grid(N // 128) * 128
    x = tw.load(X[i : i + 128], layout=tw.blocked(vector=1))
    y = x
    if tw.any(x > 0.0):
        y = x + 1.0
    tw.store(Y[i : i + 128], y)
)py";
    EXPECT_FALSE(checked(source).proved());  // the branch leaves another value, and data is no proof of which
    const ir::Kernel k = kernel_of_text(source);
    const emulate::Trial trial = emulate::run_trial(k, {512}, {});
    EXPECT_EQ(trial.refused, "");
    EXPECT_FALSE(trial.failed()) << trial.summary(k);
}

// The best of a row so far and its first place, worked out only where something is as good.
const std::string argmax = R"py(import tilewright as tw
from tilewright import f32, i32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = argmax(n, X[m, n])", threads=64)
def rows(X: tw.Tensor(f32, M, N), S: tw.Tensor(i32, M)):
    tw.assume(N % 32 == 0 and M % 2 == 0)
    tw.assume(N <= 65536)   # places that f32 holds exactly
    m = tw.grid(M // 2) * 2
    best = tw.full(f32, (2,), float("-inf"))
    place = tw.full(f32, (2,), float("inf"))
    for c in tw.range(N // 32):
        x = tw.load(X[m : m + 2, c * 32 : c * 32 + 32], layout=tw.warp_rows(vector=1))
        if tw.any(x >= best[:, None]):
            new_best = tw.maximum(best, tw.max(x, axis=1))
            here = tw.min(tw.where(x == new_best[:, None], (tw.coord(x, 1) + c * 32).to(f32), float("inf")), axis=1)
            place = tw.minimum(tw.where(best == new_best, place, float("inf")), here)
            best = new_best
    tw.store(S[m : m + 2], place.to(i32))
)py";

TEST(Vote, WhatChangesNothingWhereNobodyVotesForItIsProved) {
    const auto r = checked(argmax);
    for (const Obligation& o : r.obligations) EXPECT_EQ(o.status, Status::proved) << o.kind << ": " << o.text << "\n" << o.reason;
    const ir::Kernel k = kernel_of_text(argmax);
    for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{2, 32}, {4, 320}}) {
        const emulate::Trial trial = emulate::run_trial(k, sizes, {});
        EXPECT_EQ(trial.refused, "");
        EXPECT_FALSE(trial.failed()) << trial.summary(k);
    }
}

TEST(Vote, WhatMattersToWarpsThatDoNotVoteIsNotProved) {
    EXPECT_FALSE(checked(edited(argmax, "x >= best[:, None]", "x > best[:, None]")).proved());  // a row of minus infinities has no place
    EXPECT_FALSE(checked(edited(argmax, "x >= best[:, None]", "x >= best[:, None] + 1.0")).proved());  // a little better is not taken in
    EXPECT_FALSE(
        checked(edited(argmax, "tw.where(best == new_best, place, float(\"inf\"))", "place")).proved());  // the place of another value
    EXPECT_FALSE(checked(edited(argmax, "x == new_best[:, None]", "x == best[:, None]")).proved());
}

}  // namespace vote_test
}  // namespace tw::verify
