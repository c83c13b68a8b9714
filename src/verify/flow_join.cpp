// Stores that together are one: after a loop, in pieces, in branches.
#include "verify/flow_engine.h"

namespace tw::verify::detail {

namespace {

// Where a store goes and how often: its index, and what runs through the elements and executions of it (a loop around it may run never, or
// twice).
using Placed = std::pair<std::vector<Poly>, std::vector<std::pair<Atom, Poly>>>;

template <typename Store>
Placed placed(const Store& s) {
    Placed p{s.index, {}};
    for (const auto& d : s.digits) p.second.emplace_back(d.atom, d.extent);
    std::sort(p.second.begin(), p.second.end());
    return p;
}

}  // namespace

// A store of the iteration before and its twin after the loop are one store of every iteration (Behind). Both must be there.
bool Flow::join_stores_behind(std::vector<const Store*>& stores, std::string& why, std::vector<std::string>& lemmas) {
    std::vector<Store> inside;
    std::vector<Placed> in_loop, after;
    for (const Store* s : stores) {
        if (s->when == Store::When::now) continue;
        if (s->atomic) return why = "sums are not added to one iteration behind", false;
        if (!s->partial.empty()) return why = s->partial, false;
        if (s->when == Store::When::next_iteration) inside.push_back(*s);
        else after.push_back(placed(*s));
    }
    if (inside.empty() && after.empty()) return true;
    if (!join_alternatives_behind(inside, why, lemmas)) return false;
    for (const Store& s : inside) in_loop.push_back(placed(s));
    std::sort(in_loop.begin(), in_loop.end());
    std::sort(after.begin(), after.end());
    if (in_loop != after) return why = "what the loop stores one iteration behind is not what is stored after the loop", false;
    std::erase_if(stores, [](const Store* s) { return s->when != Store::When::now; });
    for (Store& s : inside) {
        joined_.push_back(std::move(s));
        stores.push_back(&joined_.back());
    }
    lemmas.push_back("lemma: stores one iteration behind the loop, and one after it, are one store of each iteration");
    return true;
}

// Stores at one place in branches that exclude each other and leave nothing out: every execution takes exactly one of them, so they are one
// store, of which is known what is known in every branch.
void Flow::join_branches(std::vector<const Store*>& stores, std::vector<std::string>& lemmas) {
    std::map<Placed, std::vector<const Store*>> by_place;
    for (const Store* s : stores) {
        if (s->branch && s->when == Store::When::now) by_place[placed(*s)].push_back(s);
    }
    for (const auto& [place, list] : by_place) {
        std::vector<std::vector<Condition>> alternatives;
        for (const Store* s : list) alternatives.push_back(s->alternative);
        if (list.size() < 2 || choice_of(alternatives, Condition{}) != Choice::exact) continue;
        Store one = *list.front();
        for (const Store* s : list) {
            std::erase_if(one.facts, [&](const Condition& c) { return std::find(s->facts.begin(), s->facts.end(), c) == s->facts.end(); });
        }
        one.partial.clear();
        one.alternative.clear();
        one.conditional = one.branch = false;
        joined_.push_back(std::move(one));
        std::erase_if(stores, [&list = list](const Store* s) { return std::find(list.begin(), list.end(), s) != list.end(); });
        stores.push_back(&joined_.back());
        lemmas.push_back("lemma: every execution takes one of " + std::to_string(list.size()) + " branches that store at the same place");
    }
}

// Stores to the same rows, each of a piece that a limit ends where the next one begins: one store of whole rows. A piece is [first, end) as
// far as it lies in the row and its tile reaches; `end` is the row's own where there is no limit.
bool Flow::join_pieces(std::vector<const Store*>& stores, std::string& why, std::vector<std::string>& lemmas) {
    const auto cut = std::find_if(stores.begin(), stores.end(), [](const Store* s) { return s->end.has_value(); });
    if (cut == stores.end()) return true;
    struct Piece {
        Poly first, reach, end;
    };
    const std::size_t d = (*cut)->end->dim;
    State empty;
    const Poly row = extent_of(*(*cut)->equation, d);
    Store whole = **cut;
    std::vector<Piece> pieces;
    std::map<Atom, Poly> around;  // how often each is executed, apart from the coordinate along the row
    for (const Store* s : stores) {
        if (!s->partial.empty() && !s->end) return why = s->partial, false;
        const auto own = std::find_if(s->digits.begin(), s->digits.end(),
                                      [&](const Digit& x) { return coordinates_.count(x.atom) && s->index[d].linear_in(x.atom) == 1; });
        if (s->atomic || s->when != Store::When::now || (s->end && s->end->dim != d) || own == s->digits.end())
            return why = (*cut)->partial, false;
        const Poly first = s->index[d] - Poly::of(own->atom);
        std::map<Atom, Poly> others;
        for (const Digit& x : s->digits) {
            if (x.tile_loop || x.first >= 0) return why = (*cut)->partial, false;
            if (&x != &*own) others.emplace(x.atom, x.extent);
        }
        std::vector<Poly> index = s->index;
        index[d] = Poly(0);
        const bool apart = std::any_of(index.begin(), index.end(), [&](const Poly& p) { return ints_.mentions(p, own->atom); }) ||
                           ints_.mentions(first, own->atom);
        const bool moves = std::any_of(others.begin(), others.end(),
                                       [&](const auto& x) { return coordinates_.count(x.first) && ints_.mentions(first, x.first); });
        if (pieces.empty()) whole.index = index, around = others;
        if (apart || moves || index != whole.index || others != around) return why = (*cut)->partial, false;
        pieces.push_back({first, first + own->extent, s->end ? s->end->place : row});
    }
    // Of every execution: what is known of all of them.
    Prover local(ints_);
    for (const Condition& c : (*cut)->facts) {
        if (!of_one_execution(c, (*cut)->digits)) local.assume(c);
    }
    for (const ir::Assumption& a : k_.assumptions) local.assume(ints_.condition_from(a.condition, leaf(empty)));
    for (const auto& [atom, extent] : around) local.assume(both(at_least(Poly::of(atom), Poly(0)), less(Poly::of(atom), extent)));
    auto starts = [&](const Poly& at) {
        return std::find_if(pieces.begin(), pieces.end(), [&](const Piece& p) {
            return at == Poly(0) ? local.holds(at_least(Poly(0), p.first)) : local.holds(equals(p.first, at));
        });
    };
    Poly at(0);
    for (bool begun = false;; begun = true) {
        const auto next = starts(at);
        if (next == pieces.end()) return why = "no store begins at " + ints_.text(at) + ", where the ones before it end", false;
        const Piece p = *next;
        pieces.erase(next);
        if (!local.holds(either(at_least(p.reach, p.end), at_least(p.reach, row))))
            return why = "a store from " + ints_.text(p.first) + " on is not shown to reach " + ints_.text(p.end), false;
        if (pieces.empty()) {
            if (!local.holds(at_least(p.end, row)))
                return why = "no store begins at " + ints_.text(p.end) + ", where the ones before it end", false;
            break;
        }
        if (begun && !local.holds(at_least(p.end, p.first)))
            return why = "a store from " + ints_.text(p.first) + " on may end before it, at " + ints_.text(p.end), false;
        at = p.end;
    }
    const Atom x = ints_.fresh("place", 0);
    whole.index[d] = Poly::of(x);
    whole.digits = {{x, row, false}};
    for (const auto& [atom, extent] : around) whole.digits.push_back({atom, extent, false});
    whole.partial.clear();
    whole.end.reset();
    lemmas.push_back("lemma: " + std::to_string(stores.size()) + " stores take a row in pieces, each from where the one before it ends");
    joined_.push_back(std::move(whole));
    stores = {&joined_.back()};
    return true;
}

// Branches of an iteration that all store the same of what the one before left, and of which every iteration takes exactly one: one store,
// of which is known what is known in every branch.
bool Flow::join_alternatives_behind(std::vector<Store>& inside, std::string& why, std::vector<std::string>& lemmas) {
    if (std::none_of(inside.begin(), inside.end(), [](const Store& s) { return s.conditional; })) return true;
    std::map<std::vector<Condition>, std::map<Placed, std::vector<Store>>> ways;
    for (const Store& s : inside) ways[s.alternative][placed(s)].push_back(s);
    std::vector<std::vector<Condition>> alternatives;
    std::vector<Store> joined;
    for (auto& [conditions, by_place] : ways) {
        alternatives.push_back(conditions);
        const bool first = alternatives.size() == 1;
        if (!first && by_place.size() != joined.size())
            return why = "the branches of an iteration do not store the same of what the one before left", false;
        for (auto& entry : by_place) {
            const auto& place = entry.first;
            const auto& list = entry.second;
            if (list.size() != 1) return why = "a branch stores the same elements twice", false;
            if (first) {
                joined.push_back(list[0]);
                continue;
            }
            const auto twin = std::find_if(joined.begin(), joined.end(), [&](const Store& s) { return placed(s) == place; });
            if (twin == joined.end() || twin->equation != list[0].equation)
                return why = "the branches of an iteration do not store the same of what the one before left", false;
            std::erase_if(twin->facts, [&](const Condition& c) {
                return std::find(list[0].facts.begin(), list[0].facts.end(), c) == list[0].facts.end();
            });
        }
    }
    const Choice choice = choice_of(alternatives, Condition{});
    if (choice == Choice::overlapping) return why = "two branches that store what the iteration before left may both be taken", false;
    if (choice == Choice::incomplete) return why = "an iteration may take no branch that stores what the one before left", false;
    for (Store& s : joined) s.conditional = false, s.alternative.clear();
    lemmas.push_back("lemma: every iteration takes one of " + std::to_string(alternatives.size()) +
                     " branches that store what the one before left");
    inside = std::move(joined);
    return true;
}

}  // namespace tw::verify::detail
