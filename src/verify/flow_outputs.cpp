// Coverage of the outputs: every element is written exactly once.
#include "verify/flow_engine.h"

namespace tw::verify::detail {

// Roles that walk the same tiles have names of their own for them. As far as their stores go they are one loop: the first one's names.
void Flow::unify_tile_loops() {
    const Digit* common = nullptr;
    for (Store& s : stores_) {
        const auto loop = std::find_if(s.digits.begin(), s.digits.end(), [](const Digit& d) { return d.tile_loop; });
        if (loop == s.digits.end()) continue;
        if (!common) {
            common = &*loop;
            continue;
        }
        if (loop->atom == common->atom || !(loop->extent == common->extent)) continue;
        const std::map<Atom, Poly> loops = {{loop->atom, Poly::of(common->atom)}};
        std::map<Atom, Poly> names = loops;
        for (const auto& [symbol, definition] : tile_definition_) {
            const Poly whole = expanded(definition);
            if (!ints_.mentions(whole, loop->atom)) continue;
            const Poly moved = ints_.replace(whole, loops);
            for (const auto& [other, its] : tile_definition_) {
                if (other == symbol || !(expanded(its) == moved)) continue;
                names.emplace(symbol, Poly::of(other));
                break;
            }
        }
        for (Poly& i : s.index) i = ints_.replace(i, names);
        for (Digit& d : s.digits) {
            d.extent = ints_.replace(d.extent, names);
            if (d.atom == loop->atom && d.tile_loop) d.atom = common->atom;
        }
        for (Condition& c : s.facts) c = ints_.replace(c, names);
        for (Condition& c : s.alternative) c = ints_.replace(c, names);
    }
}

void Flow::finish_outputs() {
    recording_ = true;
    unify_tile_loops();
    std::map<const ir::Equation*, std::vector<const Store*>> by_equation;
    for (const Store& s : stores_) by_equation[s.equation].push_back(&s);
    for (const ir::Equation& e : k_.computes.equations) {
        auto it = by_equation.find(&e);
        const std::string name = tensor_name(e.output);
        if (it == by_equation.end()) {
            const ir::Stmt nowhere{ir::BlockSync{}, k_.loc, {}};
            oblige("written once", "TW1002", "every element of " + name + " is written exactly once", nowhere, false,
                   "nothing is stored to " + name, {});
            continue;
        }
        std::string why;
        std::vector<std::string> lemmas;
        std::vector<Digit> folded;
        if (std::any_of(it->second.begin(), it->second.end(), [](const Store* s) { return !s->gathered.empty(); })) {
            finish_gathered(it->second, e);
            continue;
        }
        join_branches(it->second, lemmas);
        const bool paired = names_places_once(e, why, lemmas) && parts_are_apart(e, why) && join_stores_behind(it->second, why, lemmas) &&
                            join_pieces(it->second, why, lemmas);
        const bool ok = paired && partition_by_alternatives(it->second, why, lemmas, folded);
        // Stores that may go anywhere cover nothing for sure. (What has one element has no elsewhere.)
        std::function<bool()> blind;
        if (!it->second.front()->index.empty())
            blind = [&] {
                Store anywhere = *it->second.front();
                for (Poly& p : anywhere.index) p = anything();
                std::string unread;
                std::vector<std::string> none;
                std::vector<Digit> any;
                return partition({&anywhere}, unread, none, any);
            };
        if (it->second.front()->atomic) {
            for (const Store* store : it->second) {
                std::string reason = why;
                const bool sums = ok && adds_up(*store, e, folded, reason);
                oblige("output value", "TW1001", name + " is what `computes` says", *store->stmt, sums, reason, [&] {
                    Store of_anything = *store;
                    of_anything.added = values_.unknown("anything");
                    std::string unread;
                    return adds_up(of_anything, e, folded, unread);
                });
            }
            oblige("written once", "TW1002", "every element of " + name + " receives every part of its sum exactly once",
                   *it->second.front()->stmt, ok, why, blind, lemmas);
            continue;
        }
        const std::string which = e.scatter ? " that " + tensor_name(e.scatter->index) + " names is written exactly once, and no other"
                                            : std::string(" is written exactly once");
        oblige("written once", "TW1002", "every element of " + name + which, *it->second.front()->stmt, ok, why, blind, lemmas);
    }
}

// An element in two parts of an output would be written twice.
bool Flow::parts_are_apart(const ir::Equation& e, std::string& why) {
    State empty;
    for (const ir::Equation& other : k_.computes.equations) {
        if (&other == &e || other.output != e.output) continue;
        Condition apart;
        apart.kind = Condition::Kind::no;
        for (std::size_t d = 0; d < e.output_vars.size(); ++d) {
            const Poly a = poly(ir::start_of(e, d), empty), b = poly(ir::start_of(other, d), empty);
            apart = either(
                apart, either(at_least(b, a + poly(e.output_extents[d], empty)), at_least(a, b + poly(other.output_extents[d], empty))));
        }
        if (!prover_.holds(apart))
            return why = "the ranges of two equations for " + tensor_name(e.output) + " are not shown to be apart", false;
    }
    return true;
}

bool Flow::adds_up(const Store& store, const ir::Equation& equation, const std::vector<Digit>& folded, std::string& why) {
    State empty;
    prover_.push();
    for (const Condition& f : store.facts) {
        const bool of_one = std::any_of(folded.begin(), folded.end(), [&](const Digit& d) { return ints_.mentions(f, d.atom); }) ||
                            std::any_of(std::begin(block_), std::end(block_), [&](Atom b) {  // a block index that was taken apart
                                return ints_.mentions(f, b) &&
                                       std::none_of(store.digits.begin(), store.digits.end(), [&](const Digit& d) { return d.atom == b; });
                            });
        if (!of_one) prover_.assume(f);
    }
    for (std::size_t d = 0; d < store.index.size(); ++d) {
        prover_.assume(less(store.index[d], poly(equation.output_extents[d], empty)));
        prover_.assume(at_least(store.index[d], Poly(0)));
    }
    const auto total = sum_of_parts(store, {store.added}, folded, why);
    const bool same = total && same_in_the_end(store, equation, store.index, {*total}, why);
    prover_.pop();
    return same;
}

bool Flow::partition_by_alternatives(const std::vector<const Store*>& stores, std::string& why, std::vector<std::string>& lemmas,
                                     std::vector<Digit>& folded) {
    if (std::none_of(stores.begin(), stores.end(), [](const Store* s) { return s->conditional; }))
        return partition(stores, why, lemmas, folded);
    std::map<std::vector<Condition>, std::vector<const Store*>> ways;
    for (const Store* s : stores) ways[s->alternative].push_back(s);
    std::optional<Grouped> group;
    std::vector<std::vector<Condition>> alternatives;
    for (const auto& [conditions, list] : ways) {
        const auto mine =
            list.front()->partial.empty() && !list.front()->atomic ? grouped(list.front()->tensor, list.front()->index) : std::nullopt;
        if (conditions.empty() || !mine || (group && !(group->start == mine->start && group->end == mine->end && group->dim == mine->dim)))
            return why = "the store is under a condition", false;
        group = mine;
        // Which way is taken may depend on the group alone: then it is the same for all that could write an element of it.
        std::vector<Atom> atoms, allowed = {group->start};
        ints_.collect(group->end, allowed);
        std::map<Atom, Poly> hidden;
        for (Atom a : allowed) {
            const AtomInfo info = ints_.info(a);
            if (info.kind == AtomInfo::Kind::element && info.args.size() == 1 &&
                (a == group->start || info.args[0] == group->group || info.args[0] == group->group + Poly(1)))
                hidden.emplace(a, Poly::of(ints_.fresh("bound of the group")));
        }
        for (const Condition& c : conditions) {
            const Condition rest = ints_.replace(c, hidden);
            auto varies = [&](Atom a) { return ints_.mentions(rest, a); };
            const bool moves =
                std::any_of(list.front()->digits.begin(), list.front()->digits.end(), [&](const Digit& d) { return varies(d.atom); }) ||
                std::any_of(tile_definition_.begin(), tile_definition_.end(), [&](const auto& d) { return varies(d.first); }) ||
                std::any_of(coordinates_.begin(), coordinates_.end(), varies);
            if (moves) return why = "the store is under a condition", false;
        }
        alternatives.push_back(conditions);
    }
    const Choice choice = choice_of(alternatives, less(Poly::of(group->start), group->end));
    if (choice == Choice::overlapping) return why = "two branches that store to it may both be taken", false;
    if (choice == Choice::incomplete) return why = "a group may be of a size for which no branch stores it", false;
    for (const auto& [conditions, list] : ways) {
        if (!partition(list, why, lemmas, folded)) return false;
    }
    lemmas.push_back("lemma: the size of a group chooses one of " + std::to_string(ways.size()) + " ways to store it");
    return true;
}

// Where `given` holds: does one alternative hold, and do no two?
Flow::Choice Flow::choice_of(const std::vector<std::vector<Condition>>& alternatives, const Condition& given) {
    auto parts_of = [](const std::vector<Condition>& conditions) {
        std::vector<Condition> parts;
        std::function<void(const Condition&)> add = [&](const Condition& c) {
            if (c.kind != Condition::Kind::all) return parts.push_back(c);
            for (const Condition& p : c.parts) add(p);
        };
        for (const Condition& c : conditions) add(c);
        return parts;
    };
    for (std::size_t i = 0; i < alternatives.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            Prover two(ints_);
            for (const Condition& c : alternatives[i]) two.assume(c);
            const bool apart =
                std::any_of(alternatives[j].begin(), alternatives[j].end(), [&](const Condition& c) { return two.holds(negated(c)); });
            if (!apart) return Choice::overlapping;
        }
    }
    // No alternative holds: what is left of each, given that the others do not, must come to nothing.
    Prover none(ints_);
    none.assume(given);
    std::vector<std::vector<Condition>> open;
    for (const auto& a : alternatives) open.push_back(parts_of(a));
    for (bool progress = true; progress;) {
        progress = false;
        for (std::size_t i = 0; i < open.size(); ++i) {
            std::erase_if(open[i], [&](const Condition& c) { return none.holds(c); });
            if (open[i].empty()) return Choice::exact;
            if (open[i].size() > 1) continue;
            none.assume(negated(open[i][0]));
            open.erase(open.begin() + static_cast<std::ptrdiff_t>(i--));
            progress = true;
        }
    }
    return Choice::incomplete;
}

// Stores a constant distance from the first one, and the others.
std::pair<std::vector<const Flow::Store*>, std::vector<const Flow::Store*>> Flow::families(const std::vector<const Store*>& stores) {
    std::pair<std::vector<const Store*>, std::vector<const Store*>> out;
    for (const Store* s : stores) {
        bool near = s->index.size() == stores[0]->index.size();
        for (std::size_t d = 0; near && d < s->index.size(); ++d) near = (s->index[d] - stores[0]->index[d]).constant().has_value();
        (near ? out.first : out.second).push_back(s);
    }
    return out;
}

// Two stores, one at step * i + rest, the other at step * (2 n - 1 - i) + rest, where i counts to n (a short tile of a triangle and the
// long one that complements it): together they are one store at 2 step * i + step * which + rest. That i takes the values below n is shown
// afterwards, of that index: for a block index or a loop by its extent, for a coordinate of a tile loop by the lemma on its order, which
// takes n to be the dimension over the step, rounded up. So n has to be just that here. Each of the two may be a family of stores at the
// same constant distances (panels).
std::optional<Flow::Mirrored> Flow::mirrored(const Store& a, const std::vector<const Store*>& family,
                                             const std::vector<const Store*>& mirror) {
    // The member of the other family that stands where `a` stands in its own: equal but for one dimension.
    const Store* partner = nullptr;
    std::size_t dim = 0;
    for (const Store* s : mirror) {
        if (s->index.size() != a.index.size()) return std::nullopt;
        std::vector<std::size_t> differ;
        for (std::size_t d = 0; d < a.index.size(); ++d) {
            if (!(a.index[d] == s->index[d])) differ.push_back(d);
        }
        if (differ.size() != 1 || (a.index[differ[0]] - s->index[differ[0]]).constant()) continue;
        if (partner) return std::nullopt;
        partner = s;
        dim = differ[0];
    }
    if (!partner) return std::nullopt;
    auto distances = [](const std::vector<const Store*>& stores, const Store& from) {
        std::vector<std::vector<Poly>> out;
        for (const Store* s : stores) {
            out.emplace_back();
            for (std::size_t d = 0; d < s->index.size(); ++d) out.back().push_back(s->index[d] - from.index[d]);
        }
        std::sort(out.begin(), out.end());
        return out;
    };
    if (distances(family, a) != distances(mirror, *partner)) return std::nullopt;
    State empty;
    const Poly extent = extent_of(*a.equation, dim);
    for (const auto& [monomial, coefficient] : a.index[dim].terms) {
        if (monomial.size() != 1) continue;
        const Atom i = monomial[0];
        const std::int64_t step = coefficient < 0 ? -coefficient : coefficient;
        if (partner->index[dim].linear_in(i) != -coefficient) continue;
        const auto digit = std::find_if(a.digits.begin(), a.digits.end(), [&](const Digit& x) { return x.atom == i; });
        Poly n;
        if (digit != a.digits.end() && !digit->tile_loop) n = digit->extent;
        else if (tile_definition_.count(i)) n = ints_.quotient(extent + Poly(2 * step - 1), Poly(2 * step));
        else continue;
        const Poly& rising = coefficient > 0 ? a.index[dim] : partner->index[dim];
        const Poly& falling = coefficient > 0 ? partner->index[dim] : a.index[dim];
        const Poly rest = rising - Poly(step) * Poly::of(i);
        if (ints_.mentions(rest, i) || ints_.mentions(n, i)) continue;
        if (!(falling - rest == Poly(step) * (Poly(2) * n - Poly(1) - Poly::of(i)))) continue;
        const Atom which = ints_.fresh("store", 0, 1);
        return Mirrored{dim, Poly(2 * step) * Poly::of(i) + Poly(step) * Poly::of(which) + rest, which};
    }
    return std::nullopt;
}

// The part of the index along dimension `d` that is made of sizes and of the executions that show, alone, in another dimension: where rows
// start that do not all start at the same place. 0 where there is none of the kind, that is, no quotient among it.
Poly Flow::start_of_row(const std::vector<Poly>& index, const std::vector<Digit>& digits, std::size_t d) {
    std::set<Atom> own;  // executions that no other dimension shows
    for (const Digit& x : digits) {
        bool elsewhere = false;
        for (std::size_t other = 0; other < index.size(); ++other)
            elsewhere |= other != d && index[other].linear_in(x.atom).value_or(0) != 0;
        if (!elsewhere) own.insert(x.atom);
    }
    Poly start;
    bool quotient = false;
    for (const auto& [m, c] : index[d].terms) {
        if (m.empty() || std::any_of(m.begin(), m.end(), [&](Atom a) { return own.count(a) || tile_definition_.count(a); })) continue;
        Poly term(c);
        for (Atom a : m) term = term * Poly::of(a), quotient |= ints_.info(a).kind == AtomInfo::Kind::quotient;
        if (std::any_of(own.begin(), own.end(), [&](Atom a) { return ints_.mentions(term, a); })) return Poly(0);
        start = start + term;
    }
    return quotient ? start : Poly(0);
}

// Does it speak of one execution of a store (that its loops run at all, that there is such a block), not of the launch?
bool Flow::of_one_execution(const Condition& c, const std::vector<Digit>& digits) const {
    return std::any_of(digits.begin(), digits.end(), [&](const Digit& d) { return ints_.mentions(c, d.atom); }) ||
           std::any_of(std::begin(block_), std::end(block_), [&](Atom b) { return ints_.mentions(c, b); });
}

// Stores a constant distance apart: along each dimension their offsets are evenly spaced, and each combination is there once, so that they
// are one more digit in each dimension along which they move.
bool Flow::panels(const std::vector<const Store*>& family, std::vector<Digit>& digits, std::vector<Poly>& index, std::string& why) {
    const Store& first = *family.front();
    std::set<std::vector<std::int64_t>> places;
    std::vector<std::set<std::int64_t>> offsets(index.size());
    for (const Store* s : family) {
        std::vector<std::int64_t> place;
        for (std::size_t d = 0; d < index.size(); ++d) {
            place.push_back(*(s->index[d] - first.index[d]).constant());
            offsets[d].insert(place.back());
        }
        if (!places.insert(place).second) return why = "two stores write the same elements", false;
    }
    std::size_t combinations = 1;
    for (const auto& along : offsets) combinations *= along.size();
    if (combinations != family.size()) return why = "stores to it differ in several dimensions", false;
    for (std::size_t d = 0; d < index.size(); ++d) {
        if (offsets[d].size() == 1) continue;
        const std::int64_t from = *offsets[d].begin(), step = *std::next(offsets[d].begin()) - from;
        std::int64_t expected = from;
        for (const std::int64_t offset : offsets[d]) {
            if (offset != expected) return why = "stores to it are not evenly spaced", false;
            expected += step;
        }
        const auto count = static_cast<std::int64_t>(offsets[d].size());
        const Atom x = ints_.fresh("store", 0, count - 1);
        digits.push_back({x, Poly(count), false});
        index[d] = index[d] + Poly(from) + Poly(step) * Poly::of(x);
    }
    return true;
}

}  // namespace tw::verify::detail
