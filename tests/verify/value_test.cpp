// Tags in normal form: what is equal, and above all what must not be.
#include <gtest/gtest.h>

#include <limits>

#include "verify/value.h"

namespace tw::verify {
namespace value_test {

struct World {
    Integers ints;
    Prover prover{ints};
    Values values{ints, prover};
    Atom j = ints.symbol("j", 0), n_atom = ints.symbol("n", 1), h_atom = ints.symbol("h", 0);
    Poly n = Poly::of(n_atom), h = Poly::of(h_atom);

    Value x(const Poly& index) { return values.element(0, {index}); }
    Value exp(Value v) { return values.apply("exp", {v}); }
    Value minus(Value a, Value b) { return values.sum(0, {{1, a}, {-1, b}}); }
    Value sum_x(const Poly& lo, const Poly& hi) { return values.reduce("sum", j, lo, hi, x(Poly::of(j))); }
    Value max_x(const Poly& lo, const Poly& hi) { return values.reduce("max", j, lo, hi, x(Poly::of(j))); }
    // sum over [lo, hi) of exp(x - top)
    Value sum_exp(const Poly& lo, const Poly& hi, Value top) { return values.reduce("sum", j, lo, hi, exp(minus(x(Poly::of(j)), top))); }
};

TEST(Values, SumsAndProductsHaveOneForm) {
    World w;
    const Value a = w.x(0), b = w.x(1);
    EXPECT_EQ(w.values.add(a, b), w.values.add(b, a));
    EXPECT_EQ(w.minus(w.values.add(a, b), b), a);
    EXPECT_EQ(w.values.mul(a, b), w.values.mul(b, a));
    EXPECT_NE(w.minus(a, b), w.minus(b, a));
    EXPECT_NE(w.values.add(a, a), a);
}

TEST(Values, CountsOfPartsOverASizeAddUpToOne) {
    World w;
    const Value a = w.x(0), size = w.values.index(w.n);
    auto share = [&](const Poly& count) { return w.values.product({{a, 1}, {w.values.index(count), 1}, {size, -1}}); };
    EXPECT_EQ(w.values.add(share(w.n - 8), share(8)), a);
    EXPECT_EQ(w.values.add(share(w.n - w.h), share(w.h)), a);
    EXPECT_NE(w.values.add(share(w.n - 8), share(7)), a);
    EXPECT_NE(w.values.add(share(w.n - 8), share(w.h)), a);
    const Value squared = w.values.product({{w.values.index(w.n - 8), 2}, {size, -2}});
    EXPECT_EQ(w.values.sum(0, {{1, squared}, {16, w.values.product({{size, -1}})}, {-64, w.values.product({{size, -2}})}}),
              w.values.number(1));
}

TEST(Values, ElementsDifferByTensorAndIndex) {
    World w;
    EXPECT_NE(w.values.element(0, {w.n}), w.values.element(1, {w.n}));
    EXPECT_NE(w.values.element(0, {w.n}), w.values.element(0, {w.n + 1}));
    EXPECT_NE(w.values.element(0, {w.n, w.h}), w.values.element(0, {w.h, w.n}));
}

TEST(Values, RescaleOfOnlineSoftmaxCancels) {
    World w;
    const Value old_top = w.values.scalar(0), new_top = w.values.scalar(1);
    const Value rescale = w.exp(w.minus(old_top, new_top));
    EXPECT_EQ(w.values.mul(w.sum_exp(0, w.n, old_top), rescale), w.sum_exp(0, w.n, new_top));
}

TEST(Values, DroppedOrDoubledRescaleDoesNot) {
    World w;
    const Value old_top = w.values.scalar(0), new_top = w.values.scalar(1);
    const Value rescale = w.exp(w.minus(old_top, new_top));
    const Value right = w.sum_exp(0, w.n, new_top);
    EXPECT_NE(w.sum_exp(0, w.n, old_top), right);
    EXPECT_NE(w.values.mul(w.values.mul(w.sum_exp(0, w.n, old_top), rescale), rescale), right);
    EXPECT_NE(w.values.mul(w.sum_exp(0, w.n, old_top), w.exp(w.minus(new_top, old_top))), right);
}

TEST(Values, AMaskClipsASumOnlyWithZero) {
    World w;
    w.prover.assume(at_least(w.h, w.n));  // the tile reaches past the row
    const Condition inside = less(Poly::of(w.j), w.n);
    auto masked = [&](double fill) { return w.values.where(inside, w.x(Poly::of(w.j)), w.values.number(fill)); };
    const Value wanted = w.values.simplified(w.sum_x(0, w.n));
    EXPECT_EQ(w.values.simplified(w.values.reduce("sum", w.j, 0, w.h, masked(0))), wanted);
    EXPECT_NE(w.values.simplified(w.values.reduce("sum", w.j, 0, w.h, masked(1))), wanted);
    EXPECT_NE(w.values.simplified(w.values.reduce("sum", w.j, 0, w.h, masked(-std::numeric_limits<double>::infinity()))), wanted);
}

TEST(Values, AMaskClipsAMaximumOnlyWithMinusInfinity) {
    World w;
    w.prover.assume(at_least(w.h, w.n));
    const Condition inside = less(Poly::of(w.j), w.n);
    auto top = [&](double fill) {
        return w.values.simplified(w.values.reduce("max", w.j, 0, w.h, w.values.where(inside, w.x(Poly::of(w.j)), w.values.number(fill))));
    };
    const Value wanted = w.values.simplified(w.max_x(0, w.n));
    EXPECT_EQ(top(-std::numeric_limits<double>::infinity()), wanted);
    EXPECT_NE(top(0), wanted);
}

TEST(Values, ZeroFillBeforeExpIsNotNothing) {
    World w;
    w.prover.assume(at_least(w.h, w.n));
    const Value top = w.values.scalar(0);
    const Condition inside = less(Poly::of(w.j), w.n);
    auto total = [&](double fill) {
        const Value x = w.values.where(inside, w.x(Poly::of(w.j)), w.values.number(fill));
        return w.values.simplified(w.values.reduce("sum", w.j, 0, w.h, w.exp(w.minus(x, top))));
    };
    const Value wanted = w.values.simplified(w.sum_exp(0, w.n, top));
    EXPECT_EQ(total(-std::numeric_limits<double>::infinity()), wanted);
    EXPECT_NE(total(0), wanted);
}

TEST(Values, NeighbouringSumsUnite) {
    World w;
    w.prover.assume(at_least(w.n, w.h));
    EXPECT_EQ(w.values.simplified(w.values.add(w.sum_x(0, w.h), w.sum_x(w.h, w.n))), w.values.simplified(w.sum_x(0, w.n)));
}

// [0, min(h, n, m)) and [h, n) are [0, n) where m is known not to be below n, and only there.
TEST(Values, ABoundThatChangesNothingDoesNotKeepSumsApart) {
    World w;
    const Poly m = Poly::of(w.ints.symbol("m", 0));
    const auto parts = [&] { return w.values.add(w.sum_x(0, w.ints.minimum(w.h, w.ints.minimum(w.n, m))), w.sum_x(w.h, w.n)); };
    EXPECT_NE(parts(), w.sum_x(0, w.n));
    w.prover.assume(at_least(m, w.n));
    EXPECT_EQ(parts(), w.sum_x(0, w.n));
}

TEST(Values, OverlappingOrSeparateSumsDoNot) {
    World w;
    w.prover.assume(at_least(w.n, w.h + 2));
    w.prover.assume(at_least(w.h, Poly(2)));
    const Value wanted = w.values.simplified(w.sum_x(0, w.n));
    EXPECT_NE(w.values.simplified(w.values.add(w.sum_x(0, w.h), w.sum_x(w.h - 1, w.n))), wanted);
    EXPECT_NE(w.values.simplified(w.values.add(w.sum_x(0, w.h), w.sum_x(w.h + 1, w.n))), wanted);
    EXPECT_NE(w.values.simplified(w.values.add(w.sum_x(0, w.n), w.sum_x(0, w.n))), wanted);
}

TEST(Values, OverlappingMaximaUniteButNotOverAGap) {
    World w;
    w.prover.assume(at_least(w.n, w.h + 2));
    w.prover.assume(at_least(w.h, Poly(2)));
    const Value wanted = w.values.simplified(w.max_x(0, w.n));
    auto either_max = [&](Value a, Value b) { return w.values.simplified(w.values.apply("max", {a, b})); };
    EXPECT_EQ(either_max(w.max_x(0, w.h), w.max_x(w.h, w.n)), wanted);
    EXPECT_NE(either_max(w.max_x(0, w.h), w.max_x(w.h + 1, w.n)), wanted);
}

TEST(Values, FactorsLeaveASumAndDependentOnesDoNot) {
    World w;
    const Value c = w.values.scalar(0);
    EXPECT_EQ(w.values.reduce("sum", w.j, 0, w.n, w.values.mul(c, w.x(Poly::of(w.j)))), w.values.mul(c, w.sum_x(0, w.n)));
    const Value product = w.values.reduce("sum", w.j, 0, w.n, w.values.mul(w.x(Poly::of(w.j)), w.values.element(1, {Poly::of(w.j)})));
    EXPECT_NE(product, w.values.mul(w.sum_x(0, w.n), w.values.reduce("sum", w.j, 0, w.n, w.values.element(1, {Poly::of(w.j)}))));
}

TEST(Values, TheBoundVariableHasNoName) {
    World w;
    const Atom other = w.ints.symbol("other", 0);
    EXPECT_EQ(w.values.reduce("sum", other, 0, w.n, w.x(Poly::of(other))), w.sum_x(0, w.n));
    // A shifted variable is the index it stands for.
    EXPECT_EQ(w.values.reduce("sum", other, 0, w.n, w.x(Poly::of(other) + 5)), w.sum_x(5, w.n + 5));
    EXPECT_NE(w.values.reduce("sum", other, 0, w.n, w.x(Poly::of(other) + 5)), w.sum_x(0, w.n));
}

TEST(Values, MasksAreDecidedByFactsOnly) {
    World w;
    const Value a = w.x(0), b = w.x(1);
    const Value v = w.values.where(less(w.h, w.n), a, b);
    EXPECT_NE(w.values.simplified(v), a);
    w.prover.push();
    w.prover.assume(less(w.h, w.n));
    EXPECT_EQ(w.values.simplified(v), a);
    w.prover.pop();
    w.prover.push();
    w.prover.assume(at_least(w.h, w.n));
    EXPECT_EQ(w.values.simplified(v), b);
    w.prover.pop();
}

TEST(Values, UnknownsAreNeverEqual) {
    World w;
    EXPECT_NE(w.values.unknown("a"), w.values.unknown("a"));
    EXPECT_TRUE(w.values.has_unknown(w.values.add(w.x(0), w.values.unknown("a"))));
    EXPECT_TRUE(w.values.has_unknown(w.values.reduce("sum", w.j, 0, w.n, w.values.unknown("a"))));
    EXPECT_FALSE(w.values.has_unknown(w.sum_x(0, w.n)));
    // One unknown stands for many elements: it does not cancel against itself.
    const Value u = w.values.unknown("a tile");
    EXPECT_TRUE(w.values.has_unknown(w.minus(u, u)));
    EXPECT_TRUE(w.values.has_unknown(w.values.product({{u, 1}, {u, -1}})));
    EXPECT_TRUE(w.values.has_unknown(w.values.mul(w.exp(u), w.exp(w.values.scaled(-1, u)))));
}

// A choice by a variable of two values may be written as one element with an index linear in it; with three values the
// middle one would be a guess.
TEST(Values, InterpolationIsForTwoValuedVariablesOnly) {
    for (const std::int64_t last : {1, 2}) {
        World w;
        const Poly bit = Poly::of(w.ints.symbol("bit", 0, last));
        const Value chosen = w.values.simplified(w.values.where(equals(bit, Poly(0)), w.x(0), w.x(64)));
        const Value linear = w.x(bit * 64);
        if (last == 2) EXPECT_NE(chosen, linear) << "bit = 2 means x[64] on one side and x[128] on the other";
        // Whether or not the two-valued case is merged, putting both values in gives back what was chosen.
        if (chosen == linear) EXPECT_EQ(last, 1);
    }
}

// sum_a sum_b sum_i x[32*i + 8*a + b] with the clip of a ragged end n.
Value nested_digits(World& w, int a_extent, int b_extent, int a_step, bool clipped) {
    const Atom a = w.ints.symbol("a", 0), b = w.ints.symbol("b", 0), i = w.ints.symbol("i", 0);
    const Poly index = 32 * Poly::of(i) + a_step * Poly::of(a) + Poly::of(b);
    Value v = w.x(index);
    if (clipped) v = w.values.where(less(index, w.n), v, w.values.number(0));
    v = w.values.reduce("sum", i, 0, w.ints.quotient(w.n + 31, 32), v);
    v = w.values.reduce("sum", a, 0, a_extent, v);
    return w.values.reduce("sum", b, 0, b_extent, v);
}

TEST(Values, DigitsOfOneIndexJoinInAnyOrder) {
    World w;
    EXPECT_EQ(nested_digits(w, 4, 8, 8, true), w.sum_x(0, w.n));
    EXPECT_EQ(nested_digits(w, 8, 4, 4, true), w.sum_x(0, w.n));
    EXPECT_EQ(nested_digits(w, 4, 8, 8, false), w.sum_x(0, 32 * w.ints.quotient(w.n + 31, 32)));
}

TEST(Values, DigitsThatOverlapOrLeaveGapsDoNotJoin) {
    World w;
    EXPECT_NE(nested_digits(w, 5, 8, 8, true), w.sum_x(0, w.n)) << "a * 8 + b reaches 40: some elements twice";
    EXPECT_NE(nested_digits(w, 4, 7, 8, true), w.sum_x(0, w.n)) << "every eighth element is left out";
    EXPECT_NE(nested_digits(w, 4, 8, 4, true), w.sum_x(0, w.n)) << "steps of 4 under 8 values of b";
    EXPECT_NE(nested_digits(w, 2, 8, 8, true), w.sum_x(0, w.n)) << "half of each 32";
}

TEST(Values, ProductsOverNeighbouringRangesUnite) {
    World w;
    auto prod = [&](const Poly& lo, const Poly& hi) { return w.values.reduce("prod", w.j, lo, hi, w.x(Poly::of(w.j))); };
    EXPECT_EQ(w.values.mul(prod(0, w.n), prod(w.n, w.n + 8)), prod(0, w.n + 8));
    EXPECT_EQ(w.values.mul(prod(0, w.n), w.x(w.n)), prod(0, w.n + 1));
    EXPECT_NE(w.values.mul(prod(0, w.n), prod(w.n + 1, w.n + 8)), prod(0, w.n + 8));
}

}  // namespace value_test
}  // namespace tw::verify
