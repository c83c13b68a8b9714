// What a fragment is at the head of iteration k, guessed from what one iteration makes of it.
#include "verify/flow_engine.h"

namespace tw::verify::detail {

// An accumulator that takes one term an iteration: initial + sum of the terms before k (or max, min). Nothing where a range
// already grows with k, as a matrix product's does.
std::optional<Value> Flow::one_term_each(Value once, Value initial, Atom k, const Poly& lo) {
    const ValueNode& n = values_.node(once);
    if (n.kind == ValueNode::Kind::where && !ints_.mentions(n.condition, k)) {
        std::optional<Value> sides[2];
        for (int side = 0; side < 2; ++side) {
            prover_.push();
            prover_.assume(side == 0 ? n.condition : negated(n.condition));
            const Value start = values_.simplified(initial);
            sides[side] = n.args[at(side)] == start ? start : one_term_each(n.args[at(side)], start, k, lo);
            prover_.pop();
        }
        for (int side = 0; side < 2; ++side) {  // rows beyond a tensor add the same in every iteration: nothing is claimed of them
            if (!sides[side] && sides[1 - side] && values_.as_number(initial) && values_.mentions(*sides[1 - side], k) &&
                !values_.mentions(n.args[at(side)], k))
                sides[side] = values_.unknown("outside the mask");
        }
        if (!sides[0] || !sides[1]) return std::nullopt;
        return values_.where(n.condition, *sides[0], *sides[1]);
    }
    if (const auto start = values_.as_number(initial);
        start && values_.mentions(once, k) && !has_growing_range(once, k)) {  // from the fold's identity
        for (const char* op : {"max", "min"}) {
            if (!(*start == Coefficient(Values::identity(op)))) continue;
            const Atom i = ints_.fresh("i");
            return values_.reduce(op, i, lo, Poly::of(k), values_.replace(once, {{k, Poly::of(i)}}));
        }
    }
    if (n.kind == ValueNode::Kind::where && n.args[1] == initial) {  // a running extreme of what a moving mask lets through
        const ValueNode taken = values_.node(n.args[0]);
        if (taken.kind == ValueNode::Kind::extreme && std::find(taken.args.begin(), taken.args.end(), initial) != taken.args.end() &&
            !has_growing_range(once, k)) {
            Value result = initial;
            const Value nothing = values_.number(Values::identity(taken.name));
            for (Value term : taken.args) {
                if (term == initial) continue;
                const Atom i = ints_.fresh("i");
                const Value masked = values_.where(n.condition, term, nothing);
                result = values_.apply(
                    taken.name, {result, values_.reduce(taken.name, i, lo, Poly::of(k), values_.replace(masked, {{k, Poly::of(i)}}))});
            }
            return result;
        }
    }
    const Value added = values_.sum(0, {{1, once}, {-1, initial}});
    if (values_.mentions(initial, k) || !values_.mentions(added, k) || has_growing_range(once, k)) return std::nullopt;
    const Atom i = ints_.fresh("i");
    auto folded = [&](const std::string& op, Value term) {
        return values_.reduce(op, i, lo, Poly::of(k), values_.replace(term, {{k, Poly::of(i)}}));
    };
    if (n.kind != ValueNode::Kind::extreme) return values_.add(initial, folded("sum", added));
    Value result = initial;
    for (Value term : n.args) {
        if (term != initial) result = values_.apply(n.name, {result, folded(n.name, term)});
    }
    return result;
}

namespace {

// How the index of some element in `v` moves from iteration to iteration, counted in steps of a coordinate of the tile: (coordinate,
// steps).
std::optional<std::pair<Atom, std::int64_t>> moves_by(const Values& values, const std::set<Atom>& coordinates, Value v, Atom k) {
    const ValueNode& n = values.node(v);
    if (n.kind == ValueNode::Kind::element) {
        for (const Poly& index : n.indices) {
            const auto along = index.linear_in(k);
            if (!along || *along == 0) continue;
            for (Atom c : coordinates) {
                const auto step = index.linear_in(c);
                if (step && *step != 0 && *along % *step == 0) return std::pair{c, *along / *step};
            }
        }
    }
    for (Value a : n.args) {
        if (auto found = moves_by(values, coordinates, a, k)) return found;
    }
    return std::nullopt;
}

}  // namespace

// Only the first of the tiles that a loop goes through may need a mask (the ragged one, the one on the diagonal), and code after it has
// none. What the tile is at the head of an iteration has that mask all the same, moved along: it holds everywhere but in the first. Pre:
// `initial` is the state before the loop.
std::optional<Value> Flow::masked_as_before(Value guess, Value initial, Atom k, const Poly& lo) {
    const ValueNode n = values_.node(guess);
    if (n.kind == ValueNode::Kind::where && !ints_.mentions(n.condition, k)) {
        const auto inside = masked_as_before(n.args[0], initial, k, lo), outside = masked_as_before(n.args[1], initial, k, lo);
        return inside || outside ? std::optional(values_.where(n.condition, inside.value_or(n.args[0]), outside.value_or(n.args[1])))
                                 : std::nullopt;
    }
    const ValueNode start = values_.node(initial);
    if (start.kind != ValueNode::Kind::where) return std::nullopt;
    const bool zero_outside = values_.as_number(start.args[1]) == Coefficient(0),
               zero_inside = values_.as_number(start.args[0]) == Coefficient(0);
    if (!zero_outside && !zero_inside) return std::nullopt;
    const auto move = moves_by(values_, coordinates_, guess, k);
    if (!move) return std::nullopt;
    const Condition mask = zero_outside ? start.condition : negated(start.condition);
    const Condition moved = ints_.replace(mask, {{move->first, Poly::of(move->first) + Poly(move->second) * (Poly::of(k) - lo)}});
    return values_.where(moved, guess, values_.number(0));
}

// A reduction over chunks of which the first is cut off at its front (rows from the aligned address before their start): at the head of
// iteration k, what lies between where the first iteration began and where the one before k has ended.
std::optional<Value> Flow::cut_at_first(Value value, Value initial, Atom k, const Poly& lo) {
    if (values_.node(value).kind != ValueNode::Kind::where) return std::nullopt;
    const ValueNode first = values_.node(values_.simplified(values_.replace(value, {{k, lo}})));
    prover_.push();
    prover_.assume(less(lo, Poly::of(k)));
    const ValueNode later = values_.node(values_.simplified(value));
    prover_.pop();
    if (first.kind != ValueNode::Kind::reduce || later.kind != ValueNode::Kind::reduce || first.name != later.name) return std::nullopt;
    if (!ints_.mentions(later.lo, k) || ints_.replace(later.lo, {{k, lo}}) == first.lo) return std::nullopt;
    const Atom i = ints_.fresh("i");
    const Value all = values_.reduce(later.name, i, first.lo, ints_.replace(later.hi, {{k, Poly::of(k) - Poly(1)}}),
                                     values_.replace(later.args[0], {{later.variable, Poly::of(i)}}));
    return values_.where(equals(Poly::of(k), lo), initial, all);
}

// A guess claims nothing of elements outside a mask that does not move, unless they are as before the loop, nor of unknown ones.
Value Flow::within_masks(Value guess, Value initial, Atom k) {
    const ValueNode& n = values_.node(guess);
    if (n.kind == ValueNode::Kind::unknown) return guess;
    if (n.kind != ValueNode::Kind::where) return n.unknown_inside ? values_.unknown("outside the mask") : guess;
    std::vector<Atom> atoms;
    ints_.collect(n.condition, atoms);
    const bool still_mask =
        !ints_.mentions(n.condition, k) && std::any_of(atoms.begin(), atoms.end(), [&](Atom a) { return coordinates_.count(a) > 0; });
    if (!still_mask) return values_.where(n.condition, within_masks(n.args[0], initial, k), within_masks(n.args[1], initial, k));
    return n.args[1] == initial ? guess
                                : values_.where(n.condition, within_masks(n.args[0], initial, k), values_.unknown("outside the mask"));
}

// A value relative to a running maximum `then`, made relative to `now`: what online softmax does with its rescaling.
Value Flow::rebased(Value v, Value then, Value now) {
    const ValueNode n = values_.node(then);
    if (n.kind == ValueNode::Kind::where) {
        bool moved = false;  // otherwise the case distinction is not the value's: it may speak of coordinates that only `then` has
        const Value cases = in_both_cases(n.condition, [&](int side) {
            const Value here = values_.simplified(v), there = rebased(here, values_.simplified(n.args[at(side)]), values_.simplified(now));
            moved |= there != here;
            return there;
        });
        return moved ? cases : v;
    }
    const bool maximum = n.kind == ValueNode::Kind::reduce && n.name != "sum";
    return maximum && !values_.has_unknown(now) ? values_.substitute(v, then, now) : v;
}

// A sum of terms exp(x - top) that an iteration rescales when it moves the running maximum `top`: with `once` what the first iteration
// leaves of a sum that was 0, and `next_top` the maximum it leaves, the terms are once * exp(next_top), and at the head of iteration k
// the sum is theirs over all iterations before, times exp(-top).
std::optional<Value> Flow::relative_sum(Value once, Value next_top, Value top, Atom k, const Poly& lo, const Poly& hi) {
    if (values_.has_unknown(once) || values_.has_unknown(next_top) || !has_moving_range(next_top, k) || !has_moving_range(once, k))
        return std::nullopt;
    std::function<Value(Value, Value)> unscaled = [&](Value v, Value by) {
        for (Value split : {v, by}) {
            const ValueNode n = values_.node(split);
            if (n.kind != ValueNode::Kind::where) continue;
            return in_both_cases(n.condition, [&](int) { return unscaled(values_.simplified(v), values_.simplified(by)); });
        }
        const Value scale = values_.apply("exp", {by});
        const ValueNode n = values_.node(v);
        if (n.kind != ValueNode::Kind::sum) return values_.product({{v, 1}, {scale, 1}});
        std::vector<std::pair<Coefficient, Value>> terms;
        if (!n.number.zero()) terms.emplace_back(n.number, scale);
        for (std::size_t i = 0; i < n.args.size(); ++i) terms.emplace_back(n.weights[i], values_.product({{n.args[i], 1}, {scale, 1}}));
        return values_.sum(0, std::move(terms));
    };
    const Value term = unscaled(values_.simplified(once), values_.simplified(next_top));
    if (has_growing_range(term, k) || !values_.mentions(term, k)) return std::nullopt;
    const Atom i = ints_.fresh("i");
    // Formed without the facts of an iteration, as every guess.
    prover_.pop();
    prover_.push();
    prover_.assume(at_least(Poly::of(k), lo));
    const Value all = values_.reduce("sum", i, lo, Poly::of(k), values_.replace(term, {{k, Poly::of(i)}}));
    const Value result = values_.product({{all, 1}, {values_.apply("exp", {top}), -1}});
    prover_.pop();
    prover_.push();
    prover_.assume(at_least(Poly::of(k), lo));
    prover_.assume(less(Poly::of(k), hi));
    return result;
}

// The place of an extreme value `top` that an iteration moves on: with `once` the place that an iteration finds of `next_top` among its own
// elements, at the head of iteration k it is that of `top` among those of all iterations before.
std::optional<Value> Flow::relative_place(Value once, Value next_top, Value top, Atom k, const Poly& lo) {
    if (values_.has_unknown(once) || values_.has_unknown(next_top) || values_.has_unknown(top)) return std::nullopt;
    const Value some_top = values_.scalar(1 << 20);
    const auto term = values_.place_of_other(once, next_top, some_top, false, {});
    if (!term || values_.as_number(*term)) return std::nullopt;
    const Atom i = ints_.fresh("i");
    const Value all = values_.reduce("min", i, lo, Poly::of(k), values_.replace(*term, {{k, Poly::of(i)}}));
    return values_.place_of_other(all, some_top, top, false, {});
}

// A window of constant width that moves further than it is wide (a vector of each chunk) does not grow: it is a term of its own in each
// iteration.
bool Flow::has_growing_range(Value v, Atom k) {
    const ValueNode& n = values_.node(v);
    if (n.kind == ValueNode::Kind::reduce && (ints_.mentions(n.lo, k) || ints_.mentions(n.hi, k))) {
        bool narrow = false;
        for (const Poly& first : ints_.alternatives(n.lo, AtomInfo::Kind::maximum)) {  // cut off or not
            for (const Poly& end : ints_.alternatives(n.hi, AtomInfo::Kind::minimum)) {
                const auto step = first.linear_in(k), width = (end - first).constant();
                narrow |= step && width && *width < std::abs(*step);
            }
        }
        if (!narrow) return true;
    }
    return std::any_of(n.args.begin(), n.args.end(), [&](Value a) { return has_growing_range(a, k); });
}

bool Flow::has_moving_range(Value v, Atom k) {
    const ValueNode& n = values_.node(v);
    if (n.kind == ValueNode::Kind::reduce && (ints_.mentions(n.lo, k) || ints_.mentions(n.hi, k))) return true;
    return std::any_of(n.args.begin(), n.args.end(), [&](Value a) { return has_moving_range(a, k); });
}

}  // namespace tw::verify::detail
