// Normal forms of integers, and what the prover may and may not conclude.
#include <gtest/gtest.h>

#include "verify/prove.h"

namespace tw::verify {
namespace integer_test {

struct World {
    Integers ints;
    Prover prover{ints};
    Poly n = Poly::of(ints.symbol("n", 0)), m = Poly::of(ints.symbol("m", 0)), i = Poly::of(ints.symbol("i", 0, 31));
};

TEST(Poly, RingIdentitiesAreEqualForms) {
    World w;
    EXPECT_EQ((w.n + w.m) * (w.n - w.m), w.n * w.n - w.m * w.m);
    EXPECT_EQ(w.n * 3 - w.n - w.n - w.n, Poly(0));
    EXPECT_EQ((w.n + 1) * 2, w.n + w.n + 2);
    EXPECT_FALSE(w.n * w.n == w.n);
}

TEST(Poly, RemainderIsNumeratorLessQuotient) {
    World w;
    EXPECT_EQ(w.ints.remainder(w.n, Poly(8)) + w.ints.quotient(w.n, Poly(8)) * 8, w.n);
    EXPECT_EQ(w.ints.quotient(Poly(-1), Poly(4)), Poly(-1));  // floor, as in Python
    EXPECT_EQ(w.ints.remainder(Poly(-1), Poly(4)), Poly(3));
}

TEST(Poly, MultiplesOfTheDivisorLeaveTheQuotient) {
    World w;
    EXPECT_EQ(w.ints.quotient(w.n * 32 + 64, Poly(32)), w.n + 2);
    EXPECT_EQ(w.ints.quotient(w.m + w.n * 32, Poly(32)), w.n + w.ints.quotient(w.m, Poly(32)));
    // A digit below the divisor vanishes, one that may reach it does not.
    EXPECT_TRUE(w.prover.holds(equals(w.ints.quotient(w.n * 32 + w.i, Poly(32)), w.n)));
    EXPECT_FALSE(w.prover.holds(equals(w.ints.quotient(w.n * 31 + w.i, Poly(31)), w.n)));
}

TEST(Poly, MinimumAndMaximumOfEqualOrConstants) {
    World w;
    EXPECT_EQ(w.ints.minimum(w.n, w.n), w.n);
    EXPECT_EQ(w.ints.minimum(Poly(3), Poly(5)), Poly(3));
    EXPECT_EQ(w.ints.maximum(Poly(3), Poly(5)), Poly(5));
}

TEST(Condition, NegationIsItsOwnInverse) {
    World w;
    const Condition c = both(less(w.n, w.m), either(equals(w.n, Poly(3)), at_least(w.m, Poly(7))));
    EXPECT_EQ(negated(negated(c)), c);
    EXPECT_TRUE(both(c, negated(Condition{})).is_no());
}

TEST(Prover, ConstantBoundsOfSymbols) {
    World w;
    EXPECT_TRUE(w.prover.holds(less(w.i, Poly(32))));
    EXPECT_FALSE(w.prover.holds(less(w.i, Poly(31))));
    EXPECT_TRUE(w.prover.holds(at_least(w.n, Poly(0))));
    EXPECT_FALSE(w.prover.holds(at_least(w.n, Poly(1))));
}

TEST(Prover, FactsHoldUntilTheyArePopped) {
    World w;
    w.prover.push();
    w.prover.assume(less(w.n, w.m));
    EXPECT_TRUE(w.prover.holds(at_least(w.m, w.n + 1)));
    EXPECT_TRUE(w.prover.holds(at_least(w.m, Poly(1))));
    EXPECT_FALSE(w.prover.holds(at_least(w.m, w.n + 2)));
    w.prover.pop();
    EXPECT_FALSE(w.prover.holds(at_least(w.m, w.n + 1)));
}

TEST(Prover, TwoFactsAdd) {
    World w;
    const Poly k = Poly::of(w.ints.symbol("k", 0));
    w.prover.assume(less(w.n, w.m));
    w.prover.assume(less(w.m, k));
    EXPECT_TRUE(w.prover.holds(less(w.n, k)));
    EXPECT_FALSE(w.prover.holds(less(k, w.n)));
}

TEST(Prover, GivenConditionsAreNotKept) {
    World w;
    EXPECT_TRUE(w.prover.holds_given(equals(w.n, Poly(5)), less(w.n, Poly(6))));
    EXPECT_FALSE(w.prover.holds(less(w.n, Poly(6))));
}

TEST(Prover, ContradictionIsSeen) {
    World w;
    EXPECT_FALSE(w.prover.contradictory());
    w.prover.assume(less(w.n, w.m));
    EXPECT_FALSE(w.prover.contradictory());
    w.prover.assume(less(w.m, w.n));
    EXPECT_TRUE(w.prover.contradictory());
}

TEST(Prover, TilesCoverTheSize) {
    // The last tile starts inside: b < ceil(n / 32) gives 32 b < n. Needs the meaning of floor division.
    World w;
    const Poly b = Poly::of(w.ints.symbol("b", 0));
    w.prover.assume(less(b, w.ints.quotient(w.n + 31, Poly(32))));
    EXPECT_TRUE(w.prover.holds(less(b * 32, w.n)));
    EXPECT_FALSE(w.prover.holds(less(b * 32 + 31, w.n))) << "the last tile may be ragged";
}

// Every positive answer on small integers agrees with trying all values.
TEST(Prover, NeverContradictsEnumeration) {
    Integers ints;
    Prover prover(ints);
    const Atom a = ints.symbol("a", 0, 5), b = ints.symbol("b", 0, 5);
    const Poly x = Poly::of(a), y = Poly::of(b);
    int proved = 0;
    for (int p = -2; p <= 2; ++p) {
        for (int q = -2; q <= 2; ++q) {
            for (int c = -6; c <= 10; c += 2) {
                for (int divisor : {1, 3}) {
                    bool always = true;
                    for (int u = 0; u <= 5; ++u) {
                        for (int v = 0; v <= 5; ++v) {
                            const int sum = p * u + q * v + c;
                            const int floored = sum >= 0 ? sum / divisor : -((-sum + divisor - 1) / divisor);
                            always &= floored >= 1;
                        }
                    }
                    const bool holds = prover.holds(at_least(ints.quotient(x * p + y * q + c, Poly(divisor)), Poly(1)));
                    EXPECT_TRUE(!holds || always) << p << "a + " << q << "b + " << c << " over " << divisor;
                    proved += holds;
                }
            }
        }
    }
    EXPECT_GT(proved, 50) << "a prover that never says yes passes everything above";
}

// What does not hold is mostly refused by a counterexample: one that is searched for, or one to an earlier goal.
TEST(Prover, RefusesWithoutZ3) {
    Integers ints;
    Prover prover(ints);
    const Poly anything = Poly::of(ints.fresh("anything"));
    EXPECT_FALSE(prover.holds(at_least(anything, Poly(0))));
    EXPECT_FALSE(prover.holds(at_least(Poly(0), anything)));
    const Poly first = Poly::of(ints.symbol("first", 0)), end = Poly::of(ints.symbol("end", 0)), rows = Poly::of(ints.symbol("rows", 0)),
               row = Poly::of(ints.symbol("row"));
    prover.assume(either(less(end, first), at_least(rows, end)));
    prover.assume(either(both(at_least(row, first), less(row, end)), equals(row, Poly(-1))));
    EXPECT_FALSE(prover.holds(less(row, rows - Poly(100))));
    EXPECT_FALSE(prover.holds(less(row, rows - Poly(200))));
    EXPECT_EQ(prover.counts().z3_milliseconds, 0);
}

}  // namespace integer_test
}  // namespace tw::verify
