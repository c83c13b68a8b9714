#include "verify/linear.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace tw::verify {
namespace {

constexpr std::size_t most_unknowns = 20, most_rows = 64;
constexpr int most_cases = 16, most_exclusions = 48;

// sum of coefficients[i] * unknown i, plus constant, is at least 0.
struct Row {
    std::array<std::int64_t, most_unknowns> coefficients{};
    std::int64_t constant = 0;
};

enum class Fate : std::uint8_t { keep, trivial, impossible };

// Divided by the common factor, the constant rounded down: the unknowns are integers.
Fate tighten(Row& r) {
    std::int64_t factor = 0;
    for (std::int64_t c : r.coefficients) factor = std::gcd(factor, c);
    if (factor == 0) return r.constant >= 0 ? Fate::trivial : Fate::impossible;
    if (factor > 1) {
        for (std::int64_t& c : r.coefficients) c /= factor;
        r.constant = ir::floor_div(r.constant, factor);
    }
    return Fate::keep;
}

// a * x + b * y; false on overflow.
bool combine(std::int64_t a, const Row& x, std::int64_t b, const Row& y, Row& out) {
    auto one = [&](std::int64_t u, std::int64_t v, std::int64_t& result) {
        std::int64_t p = 0, q = 0;
        return !__builtin_mul_overflow(a, u, &p) && !__builtin_mul_overflow(b, v, &q) && !__builtin_add_overflow(p, q, &result);
    };
    for (std::size_t i = 0; i < most_unknowns; ++i) {
        if (!one(x.coefficients[i], y.coefficients[i], out.coefficients[i])) return false;
    }
    return one(x.constant, y.constant, out.constant);
}

// Keeps the strongest of rows that differ in the constant only.
void add_row(std::vector<Row>& rows, const Row& r) {
    for (Row& other : rows) {
        if (other.coefficients != r.coefficients) continue;
        other.constant = std::min(other.constant, r.constant);
        return;
    }
    rows.push_back(r);
}

// Have the rows no solution? A row that is left out (overflow, too many) only makes "no" likelier.
bool impossible(const std::vector<Row>& given) {
    std::vector<Row> rows;
    for (Row r : given) {
        switch (tighten(r)) {
            case Fate::impossible: return true;
            case Fate::keep: add_row(rows, r); break;
            case Fate::trivial: break;
        }
    }
    for (;;) {
        // The unknown that makes the fewest new rows.
        std::size_t chosen = most_unknowns;
        long best = 0;
        for (std::size_t u = 0; u < most_unknowns; ++u) {
            long below = 0, above = 0;
            for (const Row& r : rows) {
                below += r.coefficients[u] > 0;
                above += r.coefficients[u] < 0;
            }
            if (below + above == 0) continue;
            const long grows = below * above - below - above;
            if (chosen == most_unknowns || grows < best) chosen = u, best = grows;
        }
        if (chosen == most_unknowns) return false;
        std::vector<Row> next;
        for (const Row& r : rows) {
            if (r.coefficients[chosen] == 0) next.push_back(r);
        }
        for (const Row& low : rows) {
            const std::int64_t p = low.coefficients[chosen];
            if (p <= 0) continue;
            for (const Row& high : rows) {
                const std::int64_t q = high.coefficients[chosen];
                if (q >= 0 || q == INT64_MIN) continue;
                const std::int64_t shared = std::gcd(p, -q);
                Row sum;
                if (!combine(-q / shared, low, p / shared, high, sum)) continue;
                const Fate fate = tighten(sum);
                if (fate == Fate::impossible) return true;
                if (fate == Fate::keep) add_row(next, sum);
                if (next.size() > most_rows) return false;
            }
        }
        rows = std::move(next);
    }
}

class Refutation {
public:
    explicit Refutation(const Integers& ints) : ints_(ints) {}

    bool proves(const std::vector<Condition>& facts, const Condition& goal) {
        for (const Condition& f : facts) require(f);
        require(negated(goal));
        return !too_large_ && refuted(rows_, alternatives_);
    }

private:
    // The unknown of a monomial; what is known of its atoms comes with it.
    std::size_t unknown(const Monomial& monomial) {
        const auto [it, fresh] = unknowns_.emplace(monomial, unknowns_.size());
        if (it->second >= most_unknowns) {  // also where it was met before: rows have no place for it
            too_large_ = true;
            return 0;
        }
        if (!fresh) return it->second;
        const std::size_t result = it->second;
        if (monomial.size() == 1) {
            define(monomial[0]);
        } else {  // not negative where no factor can be
            bool positive = true;
            for (Atom a : monomial) positive = positive && ints_.info(a).lower.value_or(-1) >= 0;
            if (positive) {
                Row r;
                r.coefficients[result] = 1;
                rows_.push_back(r);
            }
        }
        return result;
    }

    Row row(const Poly& p) {
        Row r;
        for (const auto& [m, k] : p.terms) {
            if (m.empty()) r.constant = k;
            else r.coefficients[unknown(m)] += k;
        }
        return r;
    }

    void define(Atom a) {
        const AtomInfo& i = ints_.info(a);
        const Poly x = Poly::of(a);
        if (i.lower) require(at_least(x, Poly(*i.lower)));
        if (i.upper) require(at_least(Poly(*i.upper), x));
        switch (i.kind) {
            case AtomInfo::Kind::quotient:
                if (const auto d = i.args[1].constant(); d && *d > 0) {
                    require(at_least(i.args[0], Poly(*d) * x));
                    require(less(i.args[0], Poly(*d) * x + Poly(*d)));
                }
                break;
            case AtomInfo::Kind::minimum:
                for (const Poly& p : i.args) require(at_least(p, x));
                require(either(at_least(x, i.args[0]), at_least(x, i.args[1])));
                break;
            case AtomInfo::Kind::maximum:
                for (const Poly& p : i.args) require(at_least(x, p));
                require(either(at_least(i.args[0], x), at_least(i.args[1], x)));
                break;
            case AtomInfo::Kind::choice:
                require(either(both(i.condition, equals(x, i.args[0])), both(negated(i.condition), equals(x, i.args[1]))));
                break;
            default: break;  // symbols, elements and opaque operations: any number
        }
    }

    // Rows of a condition without alternatives; false where it has some.
    bool plain(const Condition& c, std::vector<Row>& out) {
        switch (c.kind) {
            case Condition::Kind::yes: return true;
            case Condition::Kind::no: {
                Row never;
                never.constant = -1;
                out.push_back(never);
                return true;
            }
            case Condition::Kind::at_least_zero: out.push_back(row(c.poly)); return true;
            case Condition::Kind::zero:
                out.push_back(row(c.poly));
                out.push_back(row(Poly(-1) * c.poly));
                return true;
            case Condition::Kind::all:
                return std::all_of(c.parts.begin(), c.parts.end(), [&](const Condition& p) { return plain(p, out); });
            default: return false;
        }
    }

    void require(const Condition& c) {
        if (c.kind == Condition::Kind::all) {
            for (const Condition& p : c.parts) require(p);
            return;
        }
        std::vector<Row> rows;
        if (plain(c, rows)) {
            rows_.insert(rows_.end(), rows.begin(), rows.end());
            return;
        }
        std::vector<std::vector<Row>> cases;
        const std::vector<Condition> parts =
            c.kind == Condition::Kind::any ? c.parts : std::vector<Condition>{at_least(c.poly, Poly(1)), at_least(Poly(-1), c.poly)};
        for (const Condition& p : parts) {
            cases.emplace_back();
            if (!plain(p, cases.back())) return;  // alternatives within an alternative: this premise is left out
        }
        alternatives_.push_back(std::move(cases));
    }

    bool refuted(const std::vector<Row>& rows, std::vector<std::vector<std::vector<Row>>> alternatives) {
        if (++cases_ > most_cases) return false;
        if (impossible(rows)) return true;
        // Alternatives that the rows exclude go first: they cost no case.
        for (std::size_t i = 0; i < alternatives.size(); ++i) {
            auto& cases = alternatives[i];
            for (std::size_t j = 0; j < cases.size(); ++j) {
                std::vector<Row> with = rows;
                with.insert(with.end(), cases[j].begin(), cases[j].end());
                if (++exclusions_ > most_exclusions) return false;
                if (impossible(with)) cases.erase(cases.begin() + static_cast<std::ptrdiff_t>(j--));
            }
            if (cases.empty()) return true;
            if (cases.size() > 1) continue;
            std::vector<Row> with = rows;
            with.insert(with.end(), cases[0].begin(), cases[0].end());
            alternatives.erase(alternatives.begin() + static_cast<std::ptrdiff_t>(i));
            return refuted(with, std::move(alternatives));
        }
        if (alternatives.empty()) return false;
        const auto shortest =
            std::min_element(alternatives.begin(), alternatives.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
        const auto cases = *shortest;
        alternatives.erase(shortest);
        return std::all_of(cases.begin(), cases.end(), [&](const std::vector<Row>& one) {
            std::vector<Row> with = rows;
            with.insert(with.end(), one.begin(), one.end());
            return refuted(with, alternatives);
        });
    }

    const Integers& ints_;
    std::map<Monomial, std::size_t> unknowns_;
    std::vector<Row> rows_;
    std::vector<std::vector<std::vector<Row>>> alternatives_;  // of each, one case holds; a case is its rows
    int cases_ = 0, exclusions_ = 0;
    bool too_large_ = false;
};

}  // namespace

bool linear_implies(const Integers& ints, const std::vector<Condition>& facts, const Condition& goal) {
    return Refutation(ints).proves(facts, goal);
}

}  // namespace tw::verify
