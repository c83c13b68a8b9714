#include <chrono>

#include "verify/prove.h"
#include "verify/work.h"

#ifdef TW_WITH_Z3
#include <z3++.h>

#include <functional>
#include <memory>
#include <set>
#endif

namespace tw::verify {

#ifdef TW_WITH_Z3

namespace {

class Translation {
public:
    Translation(z3::context& z, const Integers& ints, bool linear) : z_(z), ints_(ints), linear_(linear) {}
    bool products = false;  // a product of symbols was met

    z3::expr poly(const Poly& p) {
        z3::expr sum = z_.int_val(0);
        for (const auto& [m, k] : p.terms) {
            products |= m.size() > 1;
            // A long product as one number: Z3's nonlinear arithmetic is lost in them, and what holds for any number holds for this one.
            constexpr std::size_t most_factors = 6;
            if ((linear_ && m.size() > 1) || m.size() > most_factors) {
                sum = sum + z_.int_val(k) * monomial(m);
                continue;
            }
            z3::expr product = z_.int_val(k);
            for (Atom a : m) product = product * atom(a);
            sum = sum + product;
        }
        return sum;
    }

    z3::expr condition(const Condition& c) {
        switch (c.kind) {
            case Condition::Kind::yes: return z_.bool_val(true);
            case Condition::Kind::no: return z_.bool_val(false);
            case Condition::Kind::at_least_zero: return poly(c.poly) >= 0;
            case Condition::Kind::zero: return poly(c.poly) == 0;
            case Condition::Kind::nonzero: return poly(c.poly) != 0;
            case Condition::Kind::all:
            case Condition::Kind::any: {
                z3::expr_vector parts(z_);
                for (const Condition& p : c.parts) parts.push_back(condition(p));
                return c.kind == Condition::Kind::all ? z3::mk_and(parts) : z3::mk_or(parts);
            }
        }
        return z_.bool_val(false);
    }

    // What is known of the atoms that were met: definitions and constant bounds.
    std::vector<z3::expr> axioms;

    // What a model says of the symbols that were translated.
    std::map<Atom, std::int64_t> values(const z3::model& model) {
        std::map<Atom, std::int64_t> result;
        for (Atom a : seen_) {
            const auto kind = ints_.info(a).kind;
            if (kind != AtomInfo::Kind::symbol && kind != AtomInfo::Kind::element && kind != AtomInfo::Kind::opaque) continue;
            std::int64_t value = 0;
            if (model.eval(z_.int_const(("x" + std::to_string(a)).c_str()), true).is_numeral_i64(value)) result[a] = value;
        }
        return result;
    }

private:
    // A product as one number; it is not negative where no factor can be.
    z3::expr monomial(const Monomial& m) {
        std::string name = "p";
        for (Atom a : m) name += "_" + std::to_string(a);
        z3::expr x = z_.int_const(name.c_str());
        if (!seen_products_.insert(m).second) return x;
        z3::expr signs = z_.bool_val(true);
        for (Atom a : m) signs = signs && atom(a) >= 0;
        axioms.push_back(z3::implies(signs, x >= 0));
        return x;
    }

    z3::expr atom(Atom a) {
        const AtomInfo& info = ints_.info(a);
        const std::string name = "x" + std::to_string(a);
        z3::expr x = z_.int_const(name.c_str());
        if (!seen_.insert(a).second) return x;
        if (info.lower) axioms.push_back(x >= z_.int_val(*info.lower));
        if (info.upper) axioms.push_back(x <= z_.int_val(*info.upper));
        switch (info.kind) {
            case AtomInfo::Kind::quotient: {
                if (linear_ && !info.args[1].constant()) break;  // divisor * quotient is a product
                z3::expr n = poly(info.args[0]), d = poly(info.args[1]);
                // Floor division by a positive divisor; nothing is known otherwise.
                axioms.push_back(z3::implies(d > 0, d * x <= n && n < d * x + d));
                break;
            }
            case AtomInfo::Kind::minimum:
            case AtomInfo::Kind::maximum: {
                z3::expr p = poly(info.args[0]), q = poly(info.args[1]);
                axioms.push_back(x == (info.kind == AtomInfo::Kind::minimum ? z3::ite(p <= q, p, q) : z3::ite(p >= q, p, q)));
                break;
            }
            case AtomInfo::Kind::choice:
                axioms.push_back(x == z3::ite(condition(info.condition), poly(info.args[0]), poly(info.args[1])));
                break;
            default: break;  // symbols, elements and opaque operations: uninterpreted, equal when interned equal
        }
        return x;
    }

    z3::context& z_;
    const Integers& ints_;
    bool linear_;
    std::set<Atom> seen_;
    std::set<Monomial> seen_products_;
};

}  // namespace

namespace {

// What Z3 has counted of its own work in this context.
std::uint64_t steps_of(const z3::solver& solver) {
    const z3::stats counts = solver.statistics();
    for (unsigned i = 0; i < counts.size(); ++i) {
        if (counts.key(i) == "rlimit count" && counts.is_uint(i)) return counts.uint_value(i);
    }
    return 0;
}

}  // namespace

bool z3_implies(const Integers& ints, const std::vector<Condition>& facts, const Condition& goal, double& milliseconds,
                std::map<Atom, std::int64_t>& model, unsigned effort) {
    const auto start = std::chrono::steady_clock::now();
    bool proved = false;
    std::uint64_t spent = 0;
    try {
        // One context per thread, renewed now and then: making one costs more than a typical query.
        static thread_local std::unique_ptr<z3::context> context;
        static thread_local int queries = 0;
        static thread_local std::uint64_t counted = 0;
        if (!context || ++queries % 256 == 0) context = std::make_unique<z3::context>(), counted = 0;
        z3::context& z = *context;
        for (const bool linear : {true, false}) {
            z3::solver solver(z, z3::solver::simple());  // no preprocessing tactics: queries are tiny
            z3::params limits(z);
            limits.set("rlimit", effort ? effort : 400000u);
            solver.set(limits);
            Translation t(z, ints, linear);
            z3::expr claim = t.condition(goal);
            std::vector<z3::expr> premises;
            for (const Condition& f : facts) premises.push_back(t.condition(f));
            for (const z3::expr& p : premises) solver.add(p);
            for (const z3::expr& a : t.axioms) solver.add(a);
            solver.add(!claim);
            const std::uint64_t before = counted;
            const z3::check_result answer = solver.check();
            counted = steps_of(solver);
            spent += counted > before ? counted - before : 0;
            proved = answer == z3::unsat;
            if (answer == z3::sat) model = t.values(solver.get_model());
            if (proved || !t.products) break;
        }
    } catch (const z3::exception&) {
        proved = false;  // out of limits, or beyond what Z3 can parse: not proved
    }
    milliseconds += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    spend(100'000 + 100 * spent);
    return proved;
}

#else

bool z3_implies(const Integers&, const std::vector<Condition>&, const Condition&, double&, std::map<Atom, std::int64_t>&, unsigned) {
    return false;
}

#endif

}  // namespace tw::verify
