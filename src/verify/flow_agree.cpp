// When two values are the same, and a claim holds of a value.
#include "verify/flow_engine.h"
#include "verify/value_cases.h"

namespace tw::verify::detail {

// Equal wherever the claim is not "unknown".
bool Flow::agree_where_known(Value claim, Value got) {
    claim = values_.simplified(claim);
    got = values_.simplified(got);
    const ValueNode& n = values_.node(claim);
    if (n.kind == ValueNode::Kind::unknown) return true;
    if (n.kind != ValueNode::Kind::where || !n.unknown_inside) return agree(claim, got, Condition{}, 3);
    for (int side = 0; side < 2; ++side) {
        prover_.push();
        prover_.assume(side == 0 ? n.condition : negated(n.condition));
        const bool same = agree_where_known(n.args[at(side)], got);
        prover_.pop();
        if (!same) return false;
    }
    return true;
}

// The same indices: the same ends, or both empty.
bool Flow::same_range(const ValueNode& a, const ValueNode& b) {
    if (!inputs_.track_covers) return true;
    const Condition ends = both(equals(a.lo, b.lo), equals(a.hi, b.hi));
    if (ends.is_yes()) return true;
    return prover_.holds(either(ends, both(at_least(a.lo, a.hi), at_least(b.lo, b.hi))));
}

Value Flow::counts_collected(Value v) {
    const ValueNode n = values_.node(v);
    if (n.kind != ValueNode::Kind::sum) return v;
    using Factors = std::vector<std::pair<Value, Coefficient>>;
    std::map<std::pair<Coefficient, Factors>, std::vector<Value>> terms;  // by weight and factors: the terms, and their counts
    std::map<Value, Poly> counts;
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        const ValueNode t = values_.node(n.args[i]);
        int counted = -1;
        for (std::size_t j = 0; t.kind == ValueNode::Kind::product && j < t.args.size(); ++j) {
            if (values_.node(t.args[j]).kind == ValueNode::Kind::index && t.weights[j] == 1)
                counted = counted < 0 ? static_cast<int>(j) : -2;
        }
        if (counted < 0) continue;
        Factors others;
        for (std::size_t j = 0; j < t.args.size(); ++j) {
            if (static_cast<int>(j) != counted) others.emplace_back(t.args[j], t.weights[j]);
        }
        terms[{n.weights[i], std::move(others)}].push_back(n.args[i]);
        counts[n.args[i]] = values_.node(t.args[at(counted)]).indices[0];
    }
    for (std::size_t i = 0; i < n.args.size(); ++i) {  // what is there once more, without a count
        if (counts.count(n.args[i])) continue;
        const ValueNode t = values_.node(n.args[i]);
        Factors factors;
        for (std::size_t j = 0; t.kind == ValueNode::Kind::product && j < t.args.size(); ++j) factors.emplace_back(t.args[j], t.weights[j]);
        if (t.kind != ValueNode::Kind::product) factors.emplace_back(n.args[i], 1);
        const auto same = terms.find({n.weights[i], std::move(factors)});
        if (same == terms.end()) continue;
        same->second.push_back(n.args[i]);
        counts[n.args[i]] = Poly(1);
    }
    std::vector<std::pair<Coefficient, Value>> made;
    std::set<Value> gone;
    for (auto& [key, list] : terms) {
        if (list.size() < 2) continue;
        Poly total;
        for (Value t : list) total = total + counts.at(t), gone.insert(t);
        Factors factors = key.second;
        factors.emplace_back(values_.index(total), 1);
        made.emplace_back(key.first, values_.product(std::move(factors)));
    }
    if (made.empty()) return v;
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        if (!gone.count(n.args[i])) made.emplace_back(n.weights[i], n.args[i]);
    }
    return values_.sum(n.number, std::move(made));
}

// Indices that are digits put together (shuffles, XOR of coordinates) have many forms, and so have those of a fold written out at an edge;
// others are equal where their normal forms are.
bool Flow::same_index(const Poly& a, const Poly& b, const Condition& given) {
    if (a == b) return true;
    const Poly difference = a - b;
    if (written_out_) return !difference.constant() && difference.terms.size() <= 6 && prover_.holds_given(given, equals(a, b));
    const bool digits = std::any_of(difference.terms.begin(), difference.terms.end(), [&](const auto& term) {
        return term.first.size() == 1 && ints_.info(term.first[0]).kind == AtomInfo::Kind::quotient;
    });
    return digits && prover_.holds_given(given, equals(a, b));
}

bool Flow::agree(Value a, Value b, const Condition& given, int depth) {
    if (a == b) return true;
    {
        const ValueNode &m = values_.node(a), &n = values_.node(b);
        if (m.kind == ValueNode::Kind::index && n.kind == ValueNode::Kind::index)
            return prover_.holds_given(given, equals(m.indices[0], n.indices[0]));
        if (m.kind == ValueNode::Kind::sum && n.kind == ValueNode::Kind::sum && m.args.size() != n.args.size()) {
            const Value x = counts_collected(a), y = counts_collected(b);
            if (x != a || y != b) return agree(x, y, given, depth);
        }
        if (m.kind == ValueNode::Kind::element && n.kind == ValueNode::Kind::element && m.id == n.id &&
            m.indices.size() == n.indices.size()) {
            for (std::size_t d = 0; d < m.indices.size(); ++d) {
                if (!same_index(m.indices[d], n.indices[d], given)) return false;
            }
            return true;
        }
        const bool alike = m.kind == n.kind && m.name == n.name && m.id == n.id && m.number == n.number && m.args.size() == n.args.size() &&
                           m.indices == n.indices && !m.args.empty();
        bool same = alike;
        if (alike && m.kind == ValueNode::Kind::reduce) {
            auto folds_alike = [&](const ValueNode& x) {
                return m.variable == x.variable && same_range(m, x) && agree(m.args[0], x.args[0], given, 0);
            };
            same = folds_alike(n);
            if (const auto other = same ? std::nullopt : values_.turned(b); other && values_.node(*other).kind == ValueNode::Kind::reduce)
                same = *other == a || folds_alike(values_.node(*other));
        } else if (alike && (m.kind == ValueNode::Kind::sum || m.kind == ValueNode::Kind::product || m.kind == ValueNode::Kind::extreme)) {
            // Their order is that of their numbers, which says nothing.
            std::vector<bool> taken(n.args.size(), false);
            for (std::size_t i = 0; i < m.args.size() && same; ++i) {
                same = false;
                for (std::size_t j = 0; j < n.args.size() && !same; ++j) {
                    if (taken[j] || (!m.weights.empty() && m.weights[i] != n.weights[j]) || !agree(m.args[i], n.args[j], given, 0))
                        continue;
                    taken[j] = same = true;
                }
            }
        } else if (alike && m.kind != ValueNode::Kind::where) {
            for (std::size_t i = 0; i < m.args.size() && same; ++i) same = agree(m.args[i], n.args[i], given, depth);
        } else {
            same = false;
        }
        if (same) return true;
    }
    // Writing out can make what can be written out again, without end.
    if (const Value x = values_.written_out(a), y = values_.written_out(b); written_out_ < most_written_out && (x != a || y != b)) {
        ++written_out_;
        const bool same = agree(values_.simplified(x), values_.simplified(y), given, depth);
        --written_out_;
        return same;
    }
    if (depth == 0) return false;
    if (values_.node(a).kind != ValueNode::Kind::where &&
        values_.node(b).kind !=
            ValueNode::Kind::where) {  // two ends that are one number here: ranges that meet unite only where their ends look alike
        std::map<Poly, Poly> alike;
        const std::set<Poly> ends_of_a = values_.ends(a), ends_of_b = values_.ends(b);
        for (const Poly& p : ends_of_a) {
            for (const Poly& q : ends_of_b) {
                if (p == q || ends_of_a.count(q) || alike.count(p) || !prover_.holds_given(given, equals(p, q))) continue;
                alike[p] = q;
            }
        }
        return !alike.empty() && agree(values_.with_ends(a, alike), values_.with_ends(b, alike), given, depth - 1);
    }
    for (Value v : {a, b}) {
        const ValueNode& n = values_.node(v);
        if (n.kind != ValueNode::Kind::where) continue;
        for (const Condition& side : {n.condition, negated(n.condition)}) {
            prover_.push();
            prover_.assume(given);
            prover_.assume(side);
            const bool same = agree(values_.simplified(a), values_.simplified(b), both(given, side), depth - 1);
            prover_.pop();
            if (!same) return false;
        }
        return true;
    }
    return false;
}

// Case by case, under each side of the masks at the top.
bool Flow::agree_in_cases(Value a, Value b, const Condition& given, int depth) {
    for (Value v : {a, b}) {
        const ValueNode n = values_.node(v);
        if (n.kind != ValueNode::Kind::where) continue;
        if (depth == 0) return false;
        for (const Condition& side : {n.condition, negated(n.condition)}) {
            prover_.push();
            prover_.assume(given);
            prover_.assume(side);
            const bool same = agree_in_cases(values_.simplified(a), values_.simplified(b), both(given, side), depth - 1);
            prover_.pop();
            if (!same) return false;
        }
        return true;
    }
    return same_in_all_cases(values_, ints_, prover_, a, b);
}

// As they are, or with choices that hang on data in one form; then with terms in a row as folds.
bool Flow::agree_in_form(Value a, Value b, const Condition& given, int depth) {
    if (agree(a, b, given, depth)) return true;
    if (values_.has_unknown(a) || values_.has_unknown(b)) return false;
    const Value x = values_.simplified(values_.with_choices(a)), y = values_.simplified(values_.with_choices(b));
    if ((x != a || y != b) && agree(x, y, given, depth)) return true;
    const Value p = values_.simplified(values_.with_rows(x)), q = values_.simplified(values_.with_rows(y));
    if ((p != x || q != y) && agree(p, q, given, depth)) return true;
    return agree_in_cases(a, b, given, depth) || ((x != a || y != b) && agree_in_cases(x, y, given, depth));
}

}  // namespace tw::verify::detail
