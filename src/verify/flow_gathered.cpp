// Atomic updates at places that data name: G[idx[t], n] += X[t, n].
//
// Such an update is told by the element that it may reach: along a dimension where data say the place, its index is a symbol v, and what
// one execution adds to the element at v is where(place == v, value, 0). The element's sum is then over all executions that do not show in
// its other indices, and has to be what `computes` says of v. So nothing is asked of the places: two sources may name one, and one that
// lies outside of the tensor is none of the v. (A maximum folds -inf where a sum adds 0.)
#include "verify/flow_engine.h"

namespace tw::verify::detail {

// A condition over choices, where(c, a, b) == v, by their cases; those that cannot be are left out.
Condition Flow::by_cases(const Condition& c, int depth) {
    std::vector<Atom> atoms;
    ints_.collect(c, atoms);
    const auto choice = std::find_if(atoms.begin(), atoms.end(), [&](Atom a) { return ints_.info(a).kind == AtomInfo::Kind::choice; });
    if (choice == atoms.end() || depth == 0) return settled(c);
    const AtomInfo info = ints_.info(*choice);
    Condition result;
    result.kind = Condition::Kind::no;
    for (const int side : {0, 1}) {
        const Condition one =
            both(side == 0 ? info.condition : negated(info.condition), ints_.replace(c, {{*choice, info.args[at(side)]}}));
        if (!prover_.holds(negated(one))) result = either(result, by_cases(one, depth - 1));
    }
    return result;
}

// A conjunction with the elements that name a place told as that place, without what is known.
Condition Flow::settled(const Condition& c) {
    const std::vector<Condition> parts = c.kind == Condition::Kind::all ? c.parts : std::vector<Condition>{c};
    Condition result;
    std::map<Atom, Poly> names;
    for (const Condition& p : parts) {
        if (p.kind != Condition::Kind::zero) continue;
        for (const auto& [monomial, weight] : p.poly.terms) {
            if (monomial.size() != 1 || (weight != 1 && weight != -1) || ints_.info(monomial[0]).kind != AtomInfo::Kind::element) continue;
            const Poly is = weight == 1 ? Poly::of(monomial[0]) - p.poly : Poly::of(monomial[0]) + p.poly;
            if (names.count(monomial[0]) || ints_.mentions_any(is, names) || ints_.mentions(is, monomial[0])) continue;
            names.emplace(monomial[0], is);
            result = both(result, p);
            break;
        }
    }
    for (const Condition& p : parts) {
        const Condition told = ints_.replace(p, names);
        if (!prover_.holds(told)) result = both(result, told);
    }
    return result;
}

// What masks an update, `inside`, and the place it is at; the elements of `store` are then those at the symbols.
Condition Flow::gathered_places(Store& store, const StoredPart& part, const Condition& inside) {
    State empty;
    Condition all = inside;
    prover_.push();
    for (std::size_t d = 0; d < store.index.size(); ++d) {
        std::vector<Atom> atoms;
        ints_.collect(store.index[d], atoms);
        if (std::any_of(atoms.begin(), atoms.end(), [&](Atom a) { return ints_.info(a).kind == AtomInfo::Kind::element; })) {
            const Atom v = ints_.symbol("place " + std::to_string(d) + " of " + tensor_name(store.tensor), 0);
            all = both(all, equals(store.index[d], Poly::of(v)));
            store.index[d] = Poly(0);
            store.gathered.push_back({d, v});
        }
    }
    for (std::size_t d = 0; d < store.index.size() && !store.gathered.empty(); ++d) {
        const auto named = std::find_if(store.gathered.begin(), store.gathered.end(), [&](const auto& g) { return g.dim == d; });
        const Poly index = named == store.gathered.end() ? store.index[d] : Poly::of(named->place);
        prover_.assume(less(index, poly(part.equation->output_extents[d], empty)));
        prover_.assume(at_least(index, Poly(0)));
    }
    if (!store.gathered.empty()) all = by_cases(all, 4);
    prover_.pop();
    return all;
}

// The same where the index is data that integers do not follow: a bin, floor((x - low) / width).
Value Flow::gathered_by_value(Store& store, const Place::ByValue& place, const StoredPart& part, Value value) {
    const Atom v = ints_.symbol("place " + std::to_string(place.dim) + " of " + tensor_name(store.tensor), 0);
    store.index[place.dim] = Poly(0);
    store.gathered.push_back({place.dim, v});
    const Value here = values_.apply("eq", {place.index, values_.index(Poly::of(v) + part.starts[place.dim])});
    return values_.apply("select", {here, value, values_.number(Values::identity(store.fold))});
}

bool Flow::adds_up_everywhere(const std::vector<const Store*>& stores, const ir::Equation& e, std::string& why,
                              std::vector<std::string>& lemmas, bool of_anything) {
    const Store& first = *stores.front();
    std::vector<Poly> index = first.index;
    for (const Store* s : stores) {
        if (!s->atomic) return why = "some statements store to it and others add to it", false;
        if (s->fold != first.fold) return why = "its elements are updated in two ways", false;
        if (s->when != Store::When::now) return why = "sums are not added to one iteration behind", false;
        if (s->conditional) return why = "the store is under a condition", false;
        const bool same = s->index == first.index && std::equal(s->gathered.begin(), s->gathered.end(), first.gathered.begin(),
                                                                first.gathered.end(), [](auto& a, auto& b) { return a.place == b.place; });
        if (!same) return why = "two statements add to it in different ways", false;
    }
    for (const Store::Gathered& g : first.gathered) index[g.dim] = Poly::of(g.place);
    State empty;
    prover_.push();
    for (std::size_t d = 0; d < index.size(); ++d) {
        prover_.assume(less(index[d], poly(e.output_extents[d], empty)));
        prover_.assume(at_least(index[d], Poly(0)));
    }
    // Statements that the same executions reach are told together: the rows of one and of the other are then rows of one iteration.
    std::map<std::vector<Atom>, std::pair<std::vector<Digit>, std::vector<Value>>> together;
    bool ok = true;
    for (const Store* s : stores) {
        std::vector<Digit> folded;
        ok = ok && partition({s}, why, lemmas, folded);
        std::vector<Atom> atoms;
        for (const Digit& d : folded) atoms.push_back(d.atom);
        together[atoms].first = folded;
        together[atoms].second.push_back(of_anything ? values_.unknown("anything") : s->added);
    }
    std::vector<Value> parts;
    for (const auto& [atoms, part] : together) {
        const auto total = ok ? sum_of_parts(first, part.second, part.first, why) : std::nullopt;
        ok = total.has_value();
        if (ok) parts.push_back(*total);
    }
    ok = ok && same_in_the_end(first, e, index, parts, why);
    prover_.pop();
    return ok;
}

// What the launch found, or the zero that the launcher put there, together with all parts: is it what `computes` says?
bool Flow::same_in_the_end(const Store& store, const ir::Equation& e, const std::vector<Poly>& index, const std::vector<Value>& parts,
                           std::string& why) {
    State empty;
    std::vector<Poly> whole = index;
    for (std::size_t d = 0; d < whole.size(); ++d) whole[d] = whole[d] + poly(ir::start_of(e, d), empty);
    std::vector<Value> all = {k_.tensors[at(store.tensor)].zero_initialised ? values_.number(0) : values_.element(store.tensor, whole)};
    all.insert(all.end(), parts.begin(), parts.end());
    Value total = folded(store, all);
    const target::DType type = k_.tensors[at(store.tensor)].dtype;
    total = values_.simplified(target::info(type).is_float ? total : values_.wrapped(type, total));
    std::map<int, Poly> bound;
    for (std::size_t d = 0; d < e.output_vars.size(); ++d) bound[e.output_vars[d]] = index[d];
    const Value want = values_.simplified(values_.from(e.value, leaf(empty), bound, type));
    if (agree_in_form(want, total, Condition{}, 3) && !values_.has_unknown(total)) return true;
    return why = "expected " + show(want) + "\n      but the parts add up to " + show(total), false;
}

void Flow::finish_gathered(const std::vector<const Store*>& stores, const ir::Equation& e) {
    std::string why;
    std::vector<std::string> lemmas;
    const bool ok = parts_are_apart(e, why) && adds_up_everywhere(stores, e, why, lemmas, false);
    const auto blind = [&] {
        std::string unread;
        std::vector<std::string> none;
        return adds_up_everywhere(stores, e, unread, none, true);
    };
    for (const Store* s : stores)
        oblige("output value", "TW1001", tensor_name(e.output) + " is what `computes` says", *s->stmt, ok, why, blind, lemmas);
    oblige("written once", "TW1002", "every element of " + tensor_name(e.output) + " receives every part of its sum exactly once",
           *stores.front()->stmt, ok, why, blind, lemmas);
}

bool Flow::keeps_what_was_there(const ir::Equation& e) const {
    std::function<bool(const ir::Term&)> reads = [&](const ir::Term& t) {
        return (t->kind == ir::TermKind::element && t->id == e.output) || std::any_of(t->args.begin(), t->args.end(), reads);
    };
    return reads(e.value);
}

Value Flow::folded(const Store& store, const std::vector<Value>& values) {
    Value all = values.front();
    const Rounding rounding = added_roundings_[store.tensor];
    const auto cancels = [&](Value v) { return values_.cancels_rounded("add", {{all, rounding}, {v, rounding}}, false); };
    for (std::size_t i = 1; i < values.size(); ++i)
        all = store.fold == "sum" && cancels(values[i]) ? values_.unknown("a difference in which what a narrower type has rounded cancels")
              : store.fold == "sum"                     ? values_.add(all, values[i])
                                                        : values_.apply(store.fold, {all, values[i]});
    return all;
}

// What all executions that add to one element add together.
std::optional<Value> Flow::sum_of_parts(const Store& store, const std::vector<Value>& added, const std::vector<Digit>& executions,
                                        std::string& why) {
    // They become bound variables of a sum; what was known of one of them is not known of all.
    std::map<Atom, Poly> renamed;
    for (const Digit& d : executions) renamed[d.atom] = Poly::of(ints_.fresh("part", 0));
    std::vector<Value> parts;  // of each statement; after the first digit, rows that lie side by side, they are one
    for (const Value v : added) parts.push_back(values_.simplified(values_.replace(v, renamed)));
    for (const Digit& d : executions) {
        for (const Digit& other : executions) {
            if (ints_.mentions(d.extent, other.atom)) return why = "the number of parts depends on another loop", std::nullopt;
        }
        for (const Value part : parts) {
            const Atom execution = renamed.at(d.atom).terms.begin()->first[0];
            if (store.fold == "sum" && values_.fold_cancels_rounded(execution, 0, d.extent, {part, added_roundings_[store.tensor]}))
                return why = "a difference in which what a narrower type has rounded cancels", std::nullopt;
        }
        for (Value& part : parts) part = values_.reduce(store.fold, renamed.at(d.atom).terms.begin()->first[0], 0, d.extent, part);
        parts = {folded(store, parts)};
    }
    return folded(store, parts);
}

}  // namespace tw::verify::detail
