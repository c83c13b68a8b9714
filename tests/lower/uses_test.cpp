// ir/uses.h on statements made by hand.
#include "ir/uses.h"

#include <gtest/gtest.h>

namespace tw::ir {
namespace uses_test {

struct Seen {
    std::vector<int> reads, writes, binds, variables, slots, tensors, elements;
    friend bool operator==(const Seen&, const Seen&) = default;
};

Seen seen_in(Operation op) {
    Seen s;
    auto put = [](std::vector<int>& list) { return [&list](int i) { list.push_back(i); }; };
    visit_uses(Stmt{std::move(op), {}, {}}, {.reads = put(s.reads),
                                             .writes = put(s.writes),
                                             .binds = put(s.binds),
                                             .expr = [&](const Expr& e) { visit_leaves(e, put(s.variables), put(s.elements)); },
                                             .synchronises = [&](const Expr& e) { visit_leaves(e, put(s.slots)); },
                                             .tensor = put(s.tensors)});
    return s;
}

TEST(Uses, MatrixProducts) {
    EXPECT_EQ(seen_in(Mma{0, 1, 2}), (Seen{.reads = {1, 2, 0}, .writes = {0}}));
    Wgmma w;
    w.acc = 4, w.a = 5;
    w.b.origin = {var_expr(7)};
    EXPECT_EQ(seen_in(w), (Seen{.reads = {5, 4}, .writes = {4}, .variables = {7}}));
    w.accumulate = 0;  // overwritten: what was there does not matter
    EXPECT_EQ(seen_in(w), (Seen{.reads = {5}, .writes = {4}, .variables = {7}}));
    w.accumulate = var_expr(8);
    EXPECT_EQ(seen_in(w), (Seen{.reads = {5, 4}, .writes = {4}, .variables = {7, 8}}));
}

TEST(Uses, ViewsOfTensorsWithTheirLimitsAndIndices) {
    LoadGlobal l;
    l.dst = 3;
    l.src.tensor = 2;
    l.src.origin = {element_expr(6, {var_expr(1)}), 0};
    l.src.limit = {var_expr(9), std::nullopt};
    l.src.gather_fragment = 8;
    EXPECT_EQ(seen_in(l), (Seen{.reads = {8}, .writes = {3}, .variables = {1, 9}, .tensors = {2}, .elements = {6}}));
}

TEST(Uses, WhatSteersDataAndWhatOrdersIt) {
    If vote;
    vote.condition = 1, vote.vote = 5;
    EXPECT_EQ(seen_in(vote), (Seen{.reads = {5}}));
    BarrierWait wait;
    wait.barrier.slot = var_expr(1), wait.parity = var_expr(2);
    EXPECT_EQ(seen_in(wait), (Seen{.slots = {1, 2}}));
    For loop;
    loop.var = 3, loop.lo = 0, loop.hi = var_expr(4);
    loop.body.push_back(Stmt{Mma{0, 1, 2}, {}, {}});  // of the loop's body, not of the loop
    EXPECT_EQ(seen_in(loop), (Seen{.binds = {3}, .variables = {4}}));
    EXPECT_EQ(seen_in(Assign{6, var_expr(6) + Expr(1)}), (Seen{.binds = {6}, .variables = {6}}));
}

}  // namespace uses_test
}  // namespace tw::ir
