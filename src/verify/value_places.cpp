// Tags: the first place of an extreme value. A place is min(n, select(x(n) == top, n, inf)) with top the extreme of all x(n), and stays one
// when top becomes that of more elements: as a sum of exponentials relative to a maximum does.
#include "verify/value_keys.h"

namespace tw::verify {

// select(a == b, then, otherwise): the three, whichever way round a and b are.
std::optional<Values::Chosen> Values::chosen_where_equal(Value v) const {
    const ValueNode& n = node(v);
    if (n.kind != Kind::function || n.name != "select") return std::nullopt;
    const ValueNode& c = node(n.args[0]);
    if (c.kind != Kind::function || c.name != "eq") return std::nullopt;
    return Chosen{c.args[0], c.args[1], n.args[1], n.args[2]};
}

// Is x one of the elements that `top` is an extreme of? `around`: the variables of the folds that x stands in, outermost first; the prover
// knows their ranges.
bool Values::is_among(Value x, const std::vector<Atom>& around, Value top) {
    if (x == top) return true;
    const ValueNode n = node(top);
    if (n.kind == Kind::extreme) return std::any_of(n.args.begin(), n.args.end(), [&](Value a) { return is_among(x, around, a); });
    if (n.kind != Kind::reduce || (n.name != "max" && n.name != "min")) return false;
    auto inside = [&](const ValueNode& fold, const Poly& i) { return prover_.holds(both(at_least(i, fold.lo), less(i, fold.hi))); };
    // Fold by fold, the same variables.
    Value body = top;
    std::size_t depth = 0;
    for (; depth < around.size() && node(body).kind == Kind::reduce && node(body).name == n.name; ++depth) {
        const ValueNode fold = node(body);
        if (!inside(fold, Poly::of(around[depth]))) break;
        ++opening_;
        body = replace(fold.args[0], {{fold.variable, Poly::of(around[depth])}});
        --opening_;
    }
    if (body == x) return true;
    // Or one fold over the place that x comes from.
    const ValueNode &mine = node(x), &theirs = node(n.args[0]);
    if (mine.kind != Kind::element || theirs.kind != Kind::element || mine.id != theirs.id) return false;
    for (std::size_t d = 0; d < theirs.indices.size(); ++d) {
        if (theirs.indices[d].linear_in(n.variable) != 1) continue;
        const Poly i = mine.indices[d] - (theirs.indices[d] - Poly::of(n.variable));
        return replace(n.args[0], {{n.variable, i}}) == x && inside(n, i);
    }
    return false;
}

// Every element that `part` is an extreme of is one of those of `whole`.
bool Values::is_part_of(Value part, Value whole, std::vector<Atom> around) {
    if (is_among(part, around, whole)) return true;
    const ValueNode n = node(part);
    if (n.kind == Kind::extreme) return std::all_of(n.args.begin(), n.args.end(), [&](Value a) { return is_part_of(a, whole, around); });
    if (n.kind != Kind::reduce) return false;
    const Atom i = ints_.fresh("i");
    around.push_back(i);
    prover_.push();
    prover_.assume(both(at_least(Poly::of(i), n.lo), less(Poly::of(i), n.hi)));
    ++opening_;
    const Value body = replace(n.args[0], {{n.variable, Poly::of(i)}});
    --opening_;
    const bool all = is_part_of(body, whole, around);
    prover_.pop();
    return all;
}

// The place of `from` in v, as that of `to`. With `checked`, every element compared must be among those of `from`.
std::optional<Value> Values::place_of_other(Value v, Value from, Value to, bool checked, std::vector<Atom> around) {
    const ValueNode n = node(v);
    if (n.kind == Kind::number && n.number == identity("min")) return v;
    if (n.kind == Kind::extreme && n.name == "min") {
        std::vector<Value> args;
        for (Value a : n.args) {
            const auto other = place_of_other(a, from, to, checked, around);
            if (!other) return std::nullopt;
            args.push_back(*other);
        }
        return extreme("min", std::move(args));
    }
    if (n.kind == Kind::reduce && n.name == "min") {
        const Atom i = ints_.fresh("i");
        around.push_back(i);
        prover_.push();
        prover_.assume(both(at_least(Poly::of(i), n.lo), less(Poly::of(i), n.hi)));
        ++opening_;
        const Value body = replace(n.args[0], {{n.variable, Poly::of(i)}});
        --opening_;
        const auto other = place_of_other(body, from, to, checked, around);
        prover_.pop();
        return other ? std::optional(reduce("min", i, n.lo, n.hi, *other)) : std::nullopt;
    }
    const auto c = chosen_where_equal(v);
    if (!c || c->otherwise != number(identity("min"))) return std::nullopt;
    for (const bool swapped : {false, true}) {
        const Value x = swapped ? c->b : c->a, top = swapped ? c->a : c->b;
        if (top != from || (checked && !is_among(x, around, from))) continue;
        return apply("select", {apply("eq", {x, to}), c->then, c->otherwise});
    }
    return std::nullopt;
}

// min(n, select(x(n) == top, n, inf)).
bool Values::folds_places(Value v) const {
    const ValueNode& n = node(v);
    return n.kind == Kind::reduce && n.name == "min" && chosen_where_equal(n.args[0]);
}

// A place that is `first` or a later one, or none (infinity).
bool Values::not_before(Value v, const Poly& first) {
    const ValueNode n = node(v);
    if (n.kind == Kind::number && n.number == identity("min")) return true;
    if (n.kind == Kind::index) return prover_.holds(at_least(n.indices[0], first));
    if (n.kind == Kind::extreme && n.name == "min")
        return std::all_of(n.args.begin(), n.args.end(), [&](Value a) { return not_before(a, first); });
    if (n.kind == Kind::function && n.name == "select") return not_before(n.args[1], first) && not_before(n.args[2], first);
    if (n.kind != Kind::reduce || n.name != "min") return false;
    const Atom i = ints_.fresh("i");
    prover_.push();
    prover_.assume(both(at_least(Poly::of(i), n.lo), less(Poly::of(i), n.hi)));
    ++opening_;
    const Value body = replace(n.args[0], {{n.variable, Poly::of(i)}});
    --opening_;
    const bool all = not_before(body, first);
    prover_.pop();
    return all;
}

// A row has the place of its own extreme: those after the row, which a fill may add, are not the first.
void Values::drop_later_places(std::vector<Value>& places) {
    for (std::size_t i = 0; i < places.size(); ++i) {
        const ValueNode row = node(places[i]);
        if (!folds_places(places[i]) || chosen_where_equal(row.args[0])->then != index(Poly::of(row.variable))) continue;
        if (!names_an_element(row) || !prover_.holds(less(row.lo, row.hi))) continue;
        const Value found = places[i];
        std::erase_if(places, [&](Value p) { return p != found && not_before(p, row.hi); });
        i = static_cast<std::size_t>(std::find(places.begin(), places.end(), found) - places.begin());
    }
}

// select(part == whole, place of part, inf), where `whole` is the extreme of more elements than `part`: an element that equals `whole`
// equals `part`, and then `part` equals `whole`. So it is the place of `whole` among the elements of `part`.
std::optional<Value> Values::place_in_whole(Value v) {
    const auto c = chosen_where_equal(v);
    if (!c || c->otherwise != number(identity("min"))) return std::nullopt;
    for (const bool swapped : {false, true}) {
        const Value part = swapped ? c->b : c->a, whole = swapped ? c->a : c->b;
        const std::string &a = node(part).name, &b = node(whole).name;
        if (part == whole || a != b || (a != "max" && a != "min") || has_unknown(v)) continue;
        const auto place = place_of_other(c->then, part, whole, true, {});
        if (place && is_part_of(part, whole, {})) return place;
    }
    return std::nullopt;
}

}  // namespace tw::verify
