// The linear prover: what it calls proved holds for every assignment, and it settles what kernels ask.
#include <gtest/gtest.h>

#include <random>

#include "verify/linear.h"

namespace tw::verify {
namespace linear_test {

std::optional<std::int64_t> value(const Integers& ints, const Poly& p, const std::map<Atom, std::int64_t>& env);

std::optional<bool> truth(const Integers& ints, const Condition& c, const std::map<Atom, std::int64_t>& env) {
    switch (c.kind) {
        case Condition::Kind::yes: return true;
        case Condition::Kind::no: return false;
        case Condition::Kind::all:
        case Condition::Kind::any: {
            const bool all = c.kind == Condition::Kind::all;
            for (const Condition& p : c.parts) {
                if (truth(ints, p, env).value() != all) return !all;
            }
            return all;
        }
        default: {
            const std::int64_t v = value(ints, c.poly, env).value();
            return c.kind == Condition::Kind::at_least_zero ? v >= 0 : c.kind == Condition::Kind::zero ? v == 0 : v != 0;
        }
    }
}

std::optional<std::int64_t> value(const Integers& ints, const Poly& p, const std::map<Atom, std::int64_t>& env) {
    std::int64_t sum = 0;
    for (const auto& [m, k] : p.terms) {
        std::int64_t product = k;
        for (Atom a : m) {
            const AtomInfo& i = ints.info(a);
            auto arg = [&](std::size_t n) { return value(ints, i.args[n], env).value(); };
            switch (i.kind) {
                case AtomInfo::Kind::symbol: product *= env.at(a); break;
                case AtomInfo::Kind::quotient: product *= ir::floor_div(arg(0), arg(1)); break;
                case AtomInfo::Kind::minimum: product *= std::min(arg(0), arg(1)); break;
                case AtomInfo::Kind::maximum: product *= std::max(arg(0), arg(1)); break;
                case AtomInfo::Kind::choice: product *= *truth(ints, i.condition, env) ? arg(0) : arg(1); break;
                default: return std::nullopt;
            }
        }
        sum += product;
    }
    return sum;
}

TEST(Linear, NeverProvesWhatAnAssignmentRefutes) {
    int proved = 0, refused = 0;
    for (unsigned seed = 1; seed <= 4000; ++seed) {
        std::mt19937 random(seed);
        Integers ints;
        const std::vector<Atom> symbols = {ints.symbol("x", -3, 6), ints.symbol("y", 0), ints.symbol("z")};
        auto number = [&](int low, int high) { return low + static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low + 1)); };
        auto affine = [&] {
            Poly p(number(-6, 6));
            for (Atom a : symbols) {
                if (random() % 2) p = p + Poly(number(-3, 3)) * Poly::of(a);
            }
            return p;
        };
        auto leaf = [&] { return random() % 4 == 0 ? equals(affine(), Poly(0)) : at_least(affine(), affine()); };
        auto poly = [&] {
            switch (random() % 7) {
                case 0: return ints.quotient(affine(), Poly(number(2, 5))) + affine();
                case 1: return ints.minimum(affine(), affine()) + Poly(number(-2, 2));
                case 2: return ints.maximum(affine(), affine());
                case 3: return Poly::of(symbols[random() % 3]) * Poly::of(symbols[random() % 3]) + affine();
                case 4: return ints.choice(leaf(), affine(), affine());
                default: return affine();
            }
        };
        auto condition = [&] {
            const Condition one = at_least(poly(), Poly(0));
            switch (random() % 6) {
                case 0: return either(one, at_least(poly(), Poly(0)));
                case 1: return negated(equals(poly(), poly()));
                case 2: return equals(poly(), affine());
                case 3: return both(one, at_least(poly(), Poly(0)));
                default: return one;
            }
        };
        std::vector<Condition> facts;
        for (auto n = 1 + random() % 3; n > 0; --n) facts.push_back(condition());
        const Condition goal = condition();
        if (!linear_implies(ints, facts, goal)) {
            ++refused;
            continue;
        }
        ++proved;
        for (std::int64_t x = -3; x <= 6; ++x) {
            for (std::int64_t y = 0; y <= 9; ++y) {
                for (std::int64_t z = -9; z <= 9; ++z) {
                    const std::map<Atom, std::int64_t> env = {{symbols[0], x}, {symbols[1], y}, {symbols[2], z}};
                    if (!std::all_of(facts.begin(), facts.end(), [&](const Condition& f) { return *truth(ints, f, env); })) continue;
                    ASSERT_TRUE(*truth(ints, goal, env))
                        << "seed " << seed << ": " << ints.text(goal) << " at x=" << x << " y=" << y << " z=" << z;
                }
            }
        }
    }
    EXPECT_GT(proved, 200);
    EXPECT_GT(refused, 200);
}

TEST(Linear, SettlesWhatTilesAsk) {
    Integers ints;
    const Poly n = Poly::of(ints.symbol("N", 0)), t = Poly::of(ints.symbol("t")), c = Poly::of(ints.symbol("c", 0, 127));
    const Poly whole = ints.quotient(n, Poly(128)), all = ints.quotient(n + Poly(127), Poly(128));
    const Condition some = at_least(n, Poly(1));
    EXPECT_TRUE(linear_implies(ints, {some, at_least(t, Poly(0)), less(t, whole)}, less(Poly(128) * t + c, n))) << "whole tiles lie inside";
    EXPECT_TRUE(linear_implies(ints, {some}, at_least(ints.maximum(Poly(1), whole) + Poly(1), all)));
    EXPECT_TRUE(linear_implies(ints, {}, either(less(c, Poly(64)), at_least(c, Poly(64)))));
    EXPECT_TRUE(linear_implies(ints, {some, less(t, all), at_least(t, ints.maximum(Poly(1), whole))}, equals(t, whole)))
        << "the ragged tile";
    EXPECT_FALSE(linear_implies(ints, {some, at_least(t, Poly(0)), less(t, all)}, less(Poly(128) * t + c, n)))
        << "a ragged tile sticks out";
    EXPECT_FALSE(linear_implies(ints, {some}, equals(whole, all)));
}

TEST(Linear, IntegersAreRoundedTo) {
    Integers ints;
    const Poly x = Poly::of(ints.symbol("x")), y = Poly::of(ints.symbol("y"));
    // 2x + 4y = 7 has rational solutions and no integer one.
    EXPECT_TRUE(linear_implies(ints, {at_least(Poly(2) * x + Poly(4) * y, Poly(7)), at_least(Poly(7), Poly(2) * x + Poly(4) * y)},
                               at_least(x, x + Poly(1))));
    // Coefficients too large to add are given up, not wrapped.
    const Poly big = Poly(INT64_MAX / 2) * x, bigger = Poly(INT64_MAX / 3) * y;
    EXPECT_FALSE(linear_implies(ints, {at_least(big + bigger, Poly(0)), at_least(bigger - big, Poly(5))}, at_least(y, Poly(1000))));
}

// A law with many premises ("rows of one tile are in one group"): each that the facts grant excludes a case, and costs no branch.
TEST(Linear, LawsWithManyPremises) {
    Integers ints;
    const Poly x = Poly::of(ints.symbol("x")), y = Poly::of(ints.symbol("y"));
    std::vector<Condition> facts;
    Condition law = equals(x, y);
    for (int i = 0; i < 20; ++i) {
        const Poly premise = Poly::of(ints.symbol("p" + std::to_string(i % 10), 0)) + Poly(i);
        law = either(law, less(premise, Poly(0)));
    }
    facts.push_back(law);
    EXPECT_TRUE(linear_implies(ints, facts, equals(x, y)));
    facts[0] = either(law, less(x, Poly(0)));
    EXPECT_FALSE(linear_implies(ints, facts, equals(x, y)));
}

}  // namespace linear_test
// More unknowns than the tableau holds, each met twice: the answer is "no", and nothing is written outside the tableau.
TEST(Linear, TooManyUnknownsAreNotProved) {
    Integers ints;
    Poly sum;
    std::vector<Condition> facts;
    for (int i = 0; i < 200; ++i) {
        const Poly x = Poly::of(ints.symbol("x" + std::to_string(i), 0));
        sum = sum + x;
        facts.push_back(at_least(x, Poly(0)));
    }
    EXPECT_FALSE(linear_implies(ints, facts, at_least(sum, Poly(0))));
}

}  // namespace tw::verify
