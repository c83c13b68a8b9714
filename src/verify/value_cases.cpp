#include "verify/value_cases.h"

#include "verify/value_keys.h"

namespace tw::verify {

namespace {

const std::set<std::string> orders = {"lt", "le", "gt", "ge", "eq", "ne"};

// One case: where a term lies among the constants that it is compared with. Place 2 j is below constant j, 2 j + 1 at it.
struct Case {
    Value term = -1;
    std::vector<Coefficient> cuts;  // rising
    std::size_t place = 0;
};

class Cases {
public:
    Cases(Values& values, Integers& ints, Prover& prover) : values_(values), ints_(ints), prover_(prover) {}

    bool same(Value a, Value b, int depth) {
        if (a == b) return true;
        if (--left_ < 0 || values_.has_unknown(a) || values_.has_unknown(b) || values_.may_be_infinite(a) || values_.may_be_infinite(b))
            return false;
        if (depth > 0) {
            std::map<Value, std::vector<Coefficient>> cuts;
            for (Value v : {a, b}) collect(v, cuts);
            for (auto& [term, at] : cuts) {
                std::sort(at.begin(), at.end(), [](const Coefficient& x, const Coefficient& y) { return (y - x).positive(); });
                at.erase(std::unique(at.begin(), at.end()), at.end());
                if (at.size() > 6) return false;
            }
            for (const auto& [term, at] : cuts) {  // innermost first: the others hang on it
                std::map<Value, std::vector<Coefficient>> inside;
                collect(term, inside);
                if (inside.empty()) return in_each_case(a, b, term, at, depth);
            }
        }
        return same_sums(a, b, depth) || same_folds(a, b, depth) || same_fractions(a, b);
    }

private:
    const ValueNode& node(Value v) const { return values_.node(v); }
    static bool is_comparison(const ValueNode& n) { return n.kind == Kind::function && orders.count(n.name) > 0; }

    // x - y as w z + c, where it is that of a term z. A number has no term.
    struct Line {
        Value term;
        Coefficient weight, constant;
    };
    std::optional<Line> line(Value difference) {
        const ValueNode n = node(difference);
        if (n.kind == Kind::number || values_.has_unknown(difference) || values_.may_be_infinite(difference)) return std::nullopt;
        if (n.kind != Kind::sum) return Line{difference, 1, 0};
        const Coefficient w = n.weights[0], inverse = w.power(-1);
        if (w.is_nan() || inverse.is_nan() || n.number.is_nan()) return std::nullopt;
        std::vector<std::pair<Coefficient, Value>> terms;
        for (std::size_t i = 0; i < n.args.size(); ++i) terms.emplace_back(n.weights[i] * inverse, n.args[i]);
        return Line{values_.sum(0, std::move(terms)), w, n.number};
    }
    // The differences whose signs decide what this node is.
    std::vector<Value> differences(const ValueNode& n) {
        std::vector<Value> found;
        const auto less = [&](Value x, Value y) { found.push_back(values_.sum(0, {{1, x}, {-1, y}})); };
        if (n.kind == Kind::extreme) less(n.args[0], n.args[1]);
        else if (n.kind == Kind::function && n.name == "abs") found.push_back(n.args[0]);
        else if (is_comparison(n)) less(n.args[0], n.args[1]);
        return found;
    }
    // Not under binders and masks, whose variables mean something there alone.
    void collect(Value v, std::map<Value, std::vector<Coefficient>>& cuts) {
        const ValueNode n = node(v);
        if (n.kind == Kind::reduce || n.kind == Kind::where || n.args.empty()) return;
        for (Value a : n.args) collect(a, cuts);
        for (Value d : differences(n)) {
            if (const auto l = line(d)) cuts[l->term].push_back(-l->constant * l->weight.power(-1));
        }
    }

    bool in_each_case(Value a, Value b, Value term, const std::vector<Coefficient>& cuts, int depth) {
        for (std::size_t place = 0; place <= 2 * cuts.size(); ++place) {
            const Case c{term, cuts, place};
            if (std::any_of(within_.begin(), within_.end(), [&](const Case& o) { return apart(o, c); })) continue;
            within_.push_back(c);
            const bool same_here = same_in_case(a, b, c, depth);
            within_.pop_back();
            if (!same_here) return false;
        }
        return true;
    }
    bool same_in_case(Value a, Value b, const Case& c, int depth) {
        std::unordered_map<Value, Value> done;
        const Value x = decided(a, c, done), y = decided(b, c, done);
        if (same(x, y, depth - 1)) return true;
        if (c.place % 2 == 0) return false;
        const auto at = [&](Value v) { return at_constant(v, c.term, c.cuts[c.place / 2]); };  // there the term is that constant
        return same(at(x), at(y), depth - 1);
    }
    // Two cases of one term that are never both true.
    static bool apart(const Case& a, const Case& b) {
        if (a.term != b.term) return false;
        const auto above = [](const Case& x, const Case& y) {  // all of x is at or above an end of y, or strictly above its one number
            const std::size_t low = x.place / 2, high = y.place / 2;
            if (x.place % 2 == 0 && low == 0) return false;               // x has no lower end
            if (y.place % 2 == 0 && high == y.cuts.size()) return false;  // y has no upper end
            const Coefficient gap = x.cuts[x.place % 2 == 0 ? low - 1 : low] - y.cuts[high];
            return gap.positive() || (gap.zero() && (x.place % 2 == 0 || y.place % 2 == 0));
        };
        return above(a, b) || above(b, a);
    }
    Value at_constant(Value v, Value term, const Coefficient& c) {
        const ValueNode n = node(term);
        if (n.kind != Kind::sum) return values_.substitute(v, term, values_.number(c));
        std::vector<std::pair<Coefficient, Value>> rest;  // the first of its terms is the constant less the others
        for (std::size_t i = 1; i < n.args.size(); ++i) rest.emplace_back(-n.weights[i], n.args[i]);
        return values_.substitute(v, n.args[0], values_.sum(c, std::move(rest)));
    }

    // The sign of a difference in this case: -1, 0, 1.
    std::optional<int> sign(Value difference, const Case& c) {
        if (node(difference).kind == Kind::number) {
            const Coefficient& n = node(difference).number;
            if (n.is_nan() || n.infinite()) return std::nullopt;
            return n.zero() ? 0 : n.positive() ? 1 : -1;
        }
        const auto l = line(difference);
        if (!l || l->term != c.term) return std::nullopt;
        const Coefficient at = -l->constant * l->weight.power(-1);
        const auto found = std::find(c.cuts.begin(), c.cuts.end(), at);
        if (found == c.cuts.end()) return std::nullopt;
        const std::size_t cut = 2 * static_cast<std::size_t>(found - c.cuts.begin()) + 1;
        if (c.place == cut) return 0;
        return (c.place > cut) == l->weight.positive() ? 1 : -1;
    }
    static bool holds(const std::string& order, int sign) {
        if (order == "lt") return sign < 0;
        if (order == "le") return sign <= 0;
        if (order == "gt") return sign > 0;
        if (order == "ge") return sign >= 0;
        return (sign == 0) == (order == "eq");
    }

    // v in a case.
    Value decided(Value v, const Case& c, std::unordered_map<Value, Value>& done) {
        const ValueNode n = node(v);
        if (n.kind == Kind::reduce || n.kind == Kind::where || n.args.empty()) return v;
        if (const auto known = done.find(v); known != done.end()) return known->second;
        std::vector<Value> args;
        for (Value a : n.args) args.push_back(decided(a, c, done));
        const Value made = decided_node(n, std::move(args), c);
        done.emplace(v, made);
        return made;
    }
    Value decided_node(const ValueNode& n, std::vector<Value> args, const Case& c) {
        const std::vector<Value> by = differences(n);
        const auto s = by.empty() ? std::nullopt : sign(by[0], c);
        if (s && n.kind == Kind::extreme) {
            args.erase(args.begin() + ((*s > 0) == (n.name == "max") ? 1 : 0));
            return args.size() == 1 ? args[0] : values_.apply(n.name, args);
        }
        if (s && is_comparison(n)) return values_.number(holds(n.name, *s) ? 1 : 0);
        if (s && n.name == "abs") return *s >= 0 ? args[0] : values_.scaled(-1, args[0]);
        if (n.kind == Kind::function && n.name == "select" && values_.as_number(args[0]))
            return args[values_.as_number(args[0])->zero() ? 2 : 1];
        return rebuilt(n, std::move(args));
    }
    Value rebuilt(const ValueNode& n, std::vector<Value> args) {
        if (n.kind == Kind::sum) {
            std::vector<std::pair<Coefficient, Value>> terms;
            for (std::size_t i = 0; i < args.size(); ++i) terms.emplace_back(n.weights[i], args[i]);
            return values_.sum(n.number, std::move(terms));
        }
        if (n.kind == Kind::product) {
            std::vector<std::pair<Value, Coefficient>> bases;
            for (std::size_t i = 0; i < args.size(); ++i) bases.emplace_back(args[i], n.weights[i]);
            return values_.product(std::move(bases));
        }
        if (n.kind == Kind::extreme) {
            Value all = args[0];
            for (std::size_t i = 1; i < args.size(); ++i) all = values_.apply(n.name, {all, args[i]});
            return all;
        }
        return values_.apply(n.name, std::move(args));
    }

    // ------------------------------------------------------------------------------------------------------------------ folds

    void folds_in(Value v, std::set<Value>& found) {
        const ValueNode& n = node(v);
        if (n.kind == Kind::reduce) found.insert(v);
        else if (n.kind != Kind::where)
            for (Value a : n.args) folds_in(a, found);
    }
    // A difference of sums over one range is the sum of differences.
    bool same_sums(Value a, Value b, int depth) {
        const ValueNode n = node(values_.sum(0, {{1, a}, {-1, b}}));
        if (n.kind != Kind::sum || !n.number.zero() || n.args.size() > 6) return false;
        const ValueNode first = node(n.args[0]);
        if (first.kind != Kind::reduce || first.name != "sum") return false;
        const Atom i = ints_.fresh("i");
        std::vector<std::pair<Coefficient, Value>> terms;
        for (std::size_t j = 0; j < n.args.size(); ++j) {
            const ValueNode r = node(n.args[j]);
            if (r.kind != Kind::reduce || r.name != "sum" || !(r.lo == first.lo) || !(r.hi == first.hi)) return false;
            terms.emplace_back(n.weights[j], values_.replace(r.args[0], {{r.variable, Poly::of(i)}}));
        }
        prover_.push();
        prover_.assume(both(at_least(Poly::of(i), first.lo), less(Poly::of(i), first.hi)));
        fractions_.clear();  // what is not 0 hangs on what is known
        const bool none = same(values_.sum(0, std::move(terms)), values_.number(0), std::max(depth, 2));
        prover_.pop();
        fractions_.clear();
        return none;
    }
    // One fold that each has and the other has not: over one range, with bodies that are the same.
    bool same_folds(Value a, Value b, int depth) {
        std::set<Value> of_a, of_b;
        folds_in(a, of_a), folds_in(b, of_b);
        std::vector<Value> alone_a, alone_b;
        std::set_difference(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::back_inserter(alone_a));
        std::set_difference(of_b.begin(), of_b.end(), of_a.begin(), of_a.end(), std::back_inserter(alone_b));
        if (alone_a.size() != 1 || alone_b.size() != 1) return false;
        const ValueNode x = node(alone_a[0]), y = node(alone_b[0]);
        if (x.name != y.name || x.name == "argmax" || !(x.lo == y.lo) || !(x.hi == y.hi)) return false;
        const Atom i = ints_.fresh("i");
        prover_.push();
        prover_.assume(both(at_least(Poly::of(i), x.lo), less(Poly::of(i), x.hi)));
        fractions_.clear();  // what is not 0 hangs on what is known
        const bool alike = same(values_.replace(x.args[0], {{x.variable, Poly::of(i)}}),
                                values_.replace(y.args[0], {{y.variable, Poly::of(i)}}), std::max(depth, 2));
        prover_.pop();
        fractions_.clear();
        if (!alike) return false;
        const Value put = values_.substitute(b, alone_b[0], alone_a[0]);
        return put != b && same(a, put, depth);
    }

    // -------------------------------------------------------------------------------------------------------------- fractions

    // above / product of below, to their powers: sums that are not 0.
    struct Fraction {
        Value above;
        std::map<Value, int> below;
    };
    bool too_large(Value v) const { return node(v).args.size() > 96; }
    Value times(Value v, Value factor, int power) {
        for (int i = 0; i < power && !failed_; ++i) {
            v = values_.product({{v, 1}, {factor, 1}});
            failed_ |= too_large(v);
        }
        return v;
    }
    // v over what is missing to `all`.
    Value widened(const Fraction& f, const std::map<Value, int>& all) {
        Value v = f.above;
        for (const auto& [factor, power] : all) {
            const auto own = f.below.find(factor);
            v = times(v, factor, power - (own == f.below.end() ? 0 : own->second));
        }
        return v;
    }
    static void join(std::map<Value, int>& all, const std::map<Value, int>& more) {
        for (const auto& [factor, power] : more) all[factor] = std::max(all[factor], power);
    }
    Value whole(const Fraction& f) {
        std::vector<std::pair<Value, Coefficient>> bases = {{f.above, 1}};
        for (const auto& [factor, power] : f.below) bases.emplace_back(factor, -power);
        return values_.product(std::move(bases));
    }
    Fraction fraction(Value v) {
        const auto known = fractions_.find(v);
        if (known != fractions_.end()) return known->second;
        const Fraction made = find_fraction(v);
        fractions_.emplace(v, made);
        return made;
    }
    Fraction find_fraction(Value v) {
        const ValueNode n = node(v);
        if (failed_ || n.kind == Kind::reduce || n.kind == Kind::where || n.args.empty()) return {v, {}};
        if (n.kind == Kind::sum) return of_sum(n);
        if (n.kind == Kind::product) return of_product(n);
        if (n.kind != Kind::function) return {v, {}};
        if (n.name == "tanh") {  // (e^2x - 1) / (e^2x + 1)
            const Value e = values_.apply("exp", {values_.scaled(2, whole(fraction(n.args[0])))});
            return {values_.sum(-1, {{1, e}}), {{values_.sum(1, {{1, e}}), 1}}};
        }
        if (n.name == "mod" && values_.as_number(n.args[1]) && !values_.as_number(n.args[1])->zero()) {  // what floor division leaves
            const Coefficient by = *values_.as_number(n.args[1]);
            return {values_.sum(0, {{1, n.args[0]}, {-by, values_.apply("floor", {values_.scaled(by.power(-1), n.args[0])})}}), {}};
        }
        if (n.name == "log") {
            const Fraction inner = fraction(n.args[0]);
            const auto positive = [&](Value x) { return values_.signs(x) == Values::positive_sign; };
            if (positive(inner.above) &&
                std::all_of(inner.below.begin(), inner.below.end(), [&](const auto& f) { return positive(f.first); })) {
                std::vector<std::pair<Coefficient, Value>> terms = {{1, logarithm(inner.above)}};
                for (const auto& [factor, power] : inner.below) terms.emplace_back(-power, logarithm(factor));
                return {values_.sum(0, std::move(terms)), {}};
            }
        }
        std::vector<Value> args;
        for (Value a : n.args) args.push_back(whole(fraction(a)));
        return {values_.apply(n.name, std::move(args)), {}};
    }
    Fraction of_sum(const ValueNode& n) {
        std::vector<Fraction> parts;
        std::map<Value, int> all;
        for (Value a : n.args) {
            parts.push_back(fraction(a));
            join(all, parts.back().below);
        }
        std::vector<std::pair<Coefficient, Value>> terms;
        for (std::size_t i = 0; i < parts.size(); ++i) terms.emplace_back(n.weights[i], widened(parts[i], all));
        if (!n.number.zero()) terms.emplace_back(n.number, widened({values_.number(1), {}}, all));
        return {values_.sum(0, std::move(terms)), std::move(all)};
    }
    Fraction of_product(const ValueNode& n) {
        Fraction f{values_.number(1), {}};
        for (std::size_t i = 0; i < n.args.size(); ++i) {
            const Coefficient& p = n.weights[i];
            const bool plain = node(n.args[i]).kind != Kind::sum && node(n.args[i]).kind != Kind::function;
            if (plain || !p.small_integer() || std::abs(p.as_integer()) > 4 || node(n.args[i]).name == "exp") {
                f.above = values_.product({{f.above, 1}, {n.args[i], p}});
                continue;
            }
            const Fraction base = fraction(n.args[i]);
            const int power = static_cast<int>(std::abs(p.as_integer()));
            if (p.positive()) {
                f.above = times(f.above, base.above, power);
                for (const auto& [factor, times_below] : base.below) f.below[factor] += power * times_below;
            } else {  // the base is not 0, so what is above is not
                for (const auto& [factor, times_below] : base.below) f.above = times(f.above, factor, power * times_below);
                if (node(base.above).kind == Kind::sum) f.below[base.above] += power;
                else f.above = values_.product({{f.above, 1}, {base.above, -power}});
            }
        }
        return f;
    }
    // log of what is positive: the least powers of its exponentials stand before it, and the factor that makes its first term one of them.
    Value logarithm(Value v) {
        const ValueNode n = node(v);
        if (n.kind != Kind::sum) return values_.apply("log", {v});
        std::map<Value, Coefficient> least;
        for (std::size_t i = 0; i < n.args.size(); ++i) {
            std::map<Value, Coefficient> own;
            const ValueNode& t = node(n.args[i]);
            if (t.kind == Kind::product)
                for (std::size_t j = 0; j < t.args.size(); ++j) own[t.args[j]] = t.weights[j];
            else own[n.args[i]] = 1;
            if (i == 0 && n.number.zero()) least = own;
            for (auto& [base, power] : least) {
                const Coefficient here = own.count(base) ? own[base] : Coefficient(0);
                if ((power - here).positive()) power = here;
            }
            for (const auto& [base, power] : own) {
                if (power.negative() && !least.count(base)) least[base] = power;
            }
        }
        std::vector<std::pair<Value, Coefficient>> bases = {{v, 1}};
        std::vector<std::pair<Coefficient, Value>> terms;
        for (const auto& [base, power] : least) {
            if (power.zero() || node(base).kind != Kind::function || node(base).name != "exp") continue;
            bases.emplace_back(base, -power);
            terms.emplace_back(power, node(base).args[0]);
        }
        terms.emplace_back(1, values_.apply("log", {values_.product(std::move(bases))}));
        return values_.sum(0, std::move(terms));
    }
    bool same_fractions(Value a, Value b) {
        failed_ = false;
        const Fraction x = fraction(a), y = fraction(b);
        std::map<Value, int> all = x.below;
        join(all, y.below);
        if (all.size() > 6) return false;
        const Value difference = values_.sum(0, {{1, widened(x, all)}, {-1, widened(y, all)}});
        return !failed_ && values_.as_number(difference) && values_.as_number(difference)->zero();
    }

    Values& values_;
    Integers& ints_;
    Prover& prover_;
    std::map<Value, Fraction> fractions_;
    std::vector<Case> within_;  // those that are looked at
    int left_ = 160;            // questions
    bool failed_ = false;
};

}  // namespace

bool same_in_all_cases(Values& values, Integers& ints, Prover& prover, Value a, Value b) {
    std::set<Value> parts;  // large terms have too many cases
    std::vector<Value> left = {a, b};
    while (!left.empty()) {
        const Value v = left.back();
        left.pop_back();
        if (!parts.insert(v).second) continue;
        if (parts.size() > 250) return false;
        left.insert(left.end(), values.node(v).args.begin(), values.node(v).args.end());
    }
    return Cases(values, ints, prover).same(a, b, 4);
}

}  // namespace tw::verify
