// Tables of tiles (tile_ends of ir/promise.h) that a program has made: tiles that follow one another from row 0 to the last take each row
// once, and those of one tile are of one group.
#include <algorithm>

#include "verify/index_facts.h"

namespace tw::verify {

// The laws of the tensors that a table is made of, at the elements that its conditions mention.
class TileTable {
public:
    explicit TileTable(IndexFacts& facts) : f_(facts), ints_(facts.ints_) {}

    bool shown(int starts, int ends, std::int64_t width, int groups);

private:
    using Known = IndexFacts::Known;
    bool follows(const Condition& given, const Condition& goal);
    void add_laws(std::vector<Condition>& facts, std::vector<Atom> atoms);
    void add_prefix_laws(int tensor, const std::vector<Poly>& at, std::vector<Condition>& facts);
    void add_differences(int a, int b, const std::vector<Poly>& at, std::vector<Condition>& facts);
    void add_beginning(Atom count, const std::vector<Poly>& at, std::vector<Condition>& facts);
    void add_ranks(int place, Atom source, const Poly& group, std::vector<Condition>& facts);
    std::optional<Poly> at_end(int tensor);
    bool is_beginning(int tensor);
    bool names_groups(int tensor) const;
    Poly element(int tensor, const Poly& at) { return ints_.element(tensor, {at}); }
    Poly last_of(int tensor) const { return f_.known(tensor)->extents[0] - Poly(1); }

    IndexFacts& f_;
    Integers& ints_;
    std::set<int> prefixes_;
    std::map<int, std::optional<Poly>> at_end_;
    std::map<int, bool> beginnings_;
    std::vector<Condition> ranks_;  // of the rows that are asked about
};

// The sum of all, where it counts every one of a length.
std::optional<Poly> TileTable::at_end(int tensor) {
    if (const auto it = at_end_.find(tensor); it != at_end_.end()) return it->second;
    std::optional<Poly> all;
    for (const Poly& n : f_.lengths_) {
        const auto m = f_.members(tensor, {last_of(tensor)}, n, {});
        if (!m) continue;
        const Poly i = Poly::of(m->member);
        if (f_.implied(both(at_least(i, Poly(0)), less(i, n)), m->condition)) all = n;
        break;
    }
    return at_end_[tensor] = all;
}

void TileTable::add_prefix_laws(int tensor, const std::vector<Poly>& at, std::vector<Condition>& facts) {
    const auto prefix = *f_.prefix_of(tensor);
    const Poly last = last_of(tensor);
    const auto in = [&](const Poly& t) { return both(at_least(t, Poly(0)), at_least(last, t)); };
    const auto law = [&](const Condition& given, const Condition& then) { facts.push_back(either(negated(given), then)); };
    const bool sorted = f_.is_sorted(tensor);
    const auto all = at_end(tensor);
    for (const Poly& t : at) {
        law(equals(t, Poly(0)), equals(element(tensor, t), Poly(0)));
        if (all) law(equals(t, last), equals(element(tensor, t), *all));
        for (const Poly& u : at) {
            if (u == t) continue;
            if (sorted) law(both(both(in(t), in(u)), at_least(u, t)), at_least(element(tensor, u), element(tensor, t)));
            const Condition next = both(both(in(t), in(u)), equals(u, t + Poly(1)));
            law(next, equals(element(tensor, u) - element(tensor, t), ints_.replace(prefix.body, {{prefix.variable, t}})));
        }
    }
}

// c (B[y] - B[x]) <= A[y] - A[x] + d (y - x), and the other way round, where B adds quotients by c.
void TileTable::add_differences(int a, int b, const std::vector<Poly>& at, std::vector<Condition>& facts) {
    const auto of_a = *f_.prefix_of(a), of_b = *f_.prefix_of(b);
    const Poly last = last_of(a);
    if (!(last == last_of(b))) return;
    const Poly body = ints_.replace(of_a.body, {{of_a.variable, Poly::of(of_b.variable)}}), v = Poly::of(of_b.variable);
    const Condition inside = both(at_least(v, Poly(0)), less(v, last));
    std::vector<Atom> atoms;
    ints_.collect(of_b.body, atoms);
    std::set<std::int64_t> divisors;
    for (const Atom x : atoms) {
        const AtomInfo& info = ints_.info(x);
        const auto d = info.kind == AtomInfo::Kind::quotient ? info.args[1].constant() : std::nullopt;
        if (d && *d > 1) divisors.insert(*d);
    }
    for (const std::int64_t c : divisors) {
        for (const bool below : {true, false}) {  // c b <= a + d, or a <= c b + d
            for (const std::int64_t d : {std::int64_t{0}, c - 1}) {
                const Poly less_one = below ? Poly(c) * of_b.body : body, more = (below ? body : Poly(c) * of_b.body) + Poly(d);
                if (!f_.implied(inside, at_least(more, less_one))) continue;
                for (const Poly& x : at) {
                    for (const Poly& y : at) {
                        if (x == y) continue;
                        const Poly step_b = Poly(c) * (element(b, y) - element(b, x)), step_a = element(a, y) - element(a, x);
                        const Poly smaller = below ? step_b : step_a, larger = (below ? step_a : step_b) + Poly(d) * (y - x);
                        const Condition given = both(both(at_least(x, Poly(0)), at_least(last, y)), at_least(y, x));
                        facts.push_back(either(negated(given), at_least(larger, smaller)));
                    }
                }
                break;
            }
        }
    }
}

// Does the condition hold for a first part of its range alone, whatever is counted?
bool TileTable::is_beginning(int tensor) {
    if (const auto it = beginnings_.find(tensor); it != beginnings_.end()) return it->second;
    beginnings_[tensor] = false;
    const Known& k = *f_.known(tensor);
    const Atom x = ints_.fresh("x");
    const auto b = f_.beginning_of(tensor, Poly::of(x));
    if (!b) return false;
    const Poly v = Poly::of(b->variable);
    const Condition later = ints_.replace(b->holds, {{b->variable, v + Poly(1)}});
    std::vector<Condition> facts = {both(at_least(Poly::of(x), Poly(0)), less(Poly::of(x), k.extents[0])),
                                    both(at_least(v, b->lo), less(v + Poly(1), b->hi)), later};
    std::vector<Atom> atoms;
    ints_.collect(later, atoms);
    ints_.collect(b->holds, atoms);
    std::set<int> tensors;
    for (const Atom a : atoms) {
        if (ints_.info(a).kind == AtomInfo::Kind::element && f_.prefix_of(ints_.info(a).tensor)) tensors.insert(ints_.info(a).tensor);
    }
    Condition given;
    for (const int t : tensors) add_prefix_laws(t, {v, v + Poly(1)}, facts);
    for (const Condition& c : facts) given = both(given, c);
    return beginnings_[tensor] = f_.implied(given, b->holds);
}

void TileTable::add_beginning(Atom count, const std::vector<Poly>& at, std::vector<Condition>& facts) {
    const AtomInfo info = ints_.info(count);
    if (!is_beginning(info.tensor)) return;
    const auto b = *f_.beginning_of(info.tensor, info.args[0]);
    const Poly n = Poly::of(count);
    const Condition in = f_.inside(info.args, f_.known(info.tensor)->extents);
    const auto law = [&](const Condition& given, const Condition& then) { facts.push_back(either(negated(both(in, given)), then)); };
    law({}, both(at_least(n, Poly(0)), at_least(ints_.maximum(b.hi - b.lo, Poly(0)), n)));
    std::vector<Poly> places = at;
    if (const auto lo = b.lo.constant(), hi = b.hi.constant(); lo && hi && *hi - *lo <= 16) {  // all of them
        places.clear();
        for (std::int64_t v = *lo; v < *hi; ++v) places.emplace_back(v);
    }
    for (const Poly& t : places) {
        const Condition holds = ints_.replace(b.holds, {{b.variable, t}}), in_range = both(at_least(t, b.lo), less(t, b.hi));
        law(both(in_range, holds), less(t, b.lo + n));
        law(both(in_range, less(t, b.lo + n)), holds);
    }
}

// Where the row's place lies among the counts of rows of groups: a set that holds another has as many, and more where it has one more.
void TileTable::add_ranks(int place, Atom source, const Poly& group, std::vector<Condition>& facts) {
    const Poly n = f_.known(place)->extents[0], s = Poly::of(source), rank = element(place, s);
    const Condition in = both(at_least(s, Poly(0)), less(s, n));
    const auto own = f_.members(place, {s}, n, in);
    if (!own) return;
    for (const int a : prefixes_) {
        for (const Poly& t : {group, group + Poly(1)}) {
            const Condition given = both(in, both(at_least(t, Poly(0)), at_least(last_of(a), t)));
            const auto other = f_.members(a, {t}, n, given);
            if (!other) continue;
            const Condition theirs = ints_.replace(other->condition, {{other->member, Poly::of(own->member)}});
            const Condition member = both(given, both(at_least(Poly::of(own->member), Poly(0)), less(Poly::of(own->member), n)));
            if (f_.implied(both(member, theirs), own->condition)) facts.push_back(either(negated(given), at_least(rank, element(a, t))));
            if (!f_.implied(both(member, own->condition), theirs)) continue;
            const std::map<Atom, Poly> itself = {{own->member, s}};
            const bool more = f_.implied(given, both(ints_.replace(theirs, itself), negated(ints_.replace(own->condition, itself))));
            facts.push_back(either(negated(given), at_least(element(a, t), rank + Poly(more ? 1 : 0))));
        }
    }
}

// Does it count places of the sums, so that it is an index of theirs?
bool TileTable::names_groups(int tensor) const {
    const auto b = f_.beginning_of(tensor, Poly(0));
    return std::any_of(prefixes_.begin(), prefixes_.end(), [&](int t) { return b->hi == last_of(t); });
}

void TileTable::add_laws(std::vector<Condition>& facts, std::vector<Atom> atoms) {
    std::sort(atoms.begin(), atoms.end());
    atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
    std::vector<Poly> at;
    std::vector<Atom> counts;
    const auto add = [&](const Poly& t) {
        if (std::find(at.begin(), at.end(), t) == at.end()) at.push_back(t);
    };
    for (const Atom a : atoms) {
        const AtomInfo& info = ints_.info(a);
        if (info.kind != AtomInfo::Kind::element) continue;
        if (f_.prefix_of(info.tensor)) {
            add(info.args[0]);
        } else if (f_.known(info.tensor) && f_.known(info.tensor)->extents.size() == 1 && f_.beginning_of(info.tensor, info.args[0])) {
            counts.push_back(a);
            if (!names_groups(info.tensor)) continue;
            add(Poly::of(a));
            add(Poly::of(a) + Poly(1));
        }
    }
    for (const int t : prefixes_) {
        add(Poly(0));
        add(last_of(t));
    }
    for (const int t : prefixes_) {
        add_prefix_laws(t, at, facts);
        for (const int u : prefixes_) {
            if (t != u) add_differences(t, u, at, facts);
        }
    }
    for (const Atom a : counts) add_beginning(a, at, facts);
}

bool TileTable::follows(const Condition& given, const Condition& goal) {
    std::vector<Condition> facts = {given};
    std::vector<Atom> atoms;
    ints_.collect(given, atoms);
    ints_.collect(goal, atoms);
    for (const Condition& c : ranks_) {
        ints_.collect(c, atoms);
        facts.push_back(c);
    }
    add_laws(facts, std::move(atoms));
    Condition all;
    for (const Condition& c : facts) all = both(all, c);
    return f_.implied(all, goal, 20'000'000);
}

bool TileTable::shown(int starts, int ends, std::int64_t width, int groups) {
    const Known *first = f_.known(starts), *end = f_.known(ends), *group = f_.known(groups);
    const auto plain = [](const Known* k) { return k && k->value && k->value->sums.empty() && k->extents.size() == 1; };
    if (!plain(first) || !plain(end) || !(first->extents == end->extents) || !group || group->by < 0 || !group->scattered) return false;
    const Poly tiles = first->extents[0], rows = group->extents[0];
    const Atom x = ints_.fresh("x");
    const auto start_of = [&](const Poly& i) { return ints_.replace(first->value->plain, {{first->variables[0], i}}); };
    const auto stop_of = [&](const Poly& i) {
        return ints_.minimum(ints_.replace(end->value->plain, {{end->variables[0], i}}), start_of(i) + Poly(width));
    };
    const Poly i = Poly::of(x), next = i + Poly(1);
    std::vector<Atom> atoms;
    ints_.collect(start_of(i), atoms);
    ints_.collect(stop_of(i), atoms);
    for (const Atom a : atoms) {
        if (ints_.info(a).kind == AtomInfo::Kind::element && f_.prefix_of(ints_.info(a).tensor)) prefixes_.insert(ints_.info(a).tensor);
    }
    const auto in = [&](const Poly& t) { return both(at_least(t, Poly(0)), less(t, tiles)); };
    const auto full = [&](const Poly& t) { return less(start_of(t), stop_of(t)); };
    // Every first row is one, no tile ends after the last.
    if (!follows(in(i), both(at_least(start_of(i), Poly(0)), less(start_of(i), rows)))) return false;
    if (!follows(in(i), at_least(rows, ints_.replace(end->value->plain, {{end->variables[0], i}}))) ||
        !follows(in(i), at_least(ints_.replace(end->value->plain, {{end->variables[0], i}}), Poly(0))))
        return false;
    // From row 0 on, each begins where the one before it ends; after the last row there are empty ones alone.
    if (!follows({}, at_least(tiles, Poly(1))) || !follows({}, both(full(Poly(0)), equals(start_of(Poly(0)), Poly(0))))) return false;
    const Condition two = both(in(i), in(next));
    if (!follows(both(two, both(full(i), full(next))), equals(start_of(next), stop_of(i)))) return false;
    if (!follows(both(two, both(full(i), negated(full(next)))), equals(stop_of(i), rows))) return false;
    if (!follows(both(two, negated(full(i))), negated(full(next)))) return false;
    const Poly last = tiles - Poly(1);
    if (!follows(full(last), equals(stop_of(last), rows))) return false;
    // Two rows of one tile: the places of two sources.
    const Atom a = ints_.fresh("s"), b = ints_.fresh("s");
    const auto group_of = [&](Atom s) { return ints_.replace(*group->scattered, {{group->source, Poly::of(s)}}); };
    Condition both_in = in(i);
    for (const Atom s : {a, b}) {
        const Poly row = element(group->by, Poly::of(s));
        both_in = both(both_in, both(at_least(Poly::of(s), Poly(0)), less(Poly::of(s), rows)));
        both_in = both(both_in, both(at_least(row, start_of(i)), less(row, stop_of(i))));
        add_ranks(group->by, s, group_of(s), ranks_);
    }
    return follows(both_in, equals(group_of(a), group_of(b)));
}

bool IndexFacts::is_table_of_tiles(int starts, int ends, std::int64_t width, int groups) {
    const auto [it, fresh] = tables_.try_emplace({starts, ends, width, groups}, false);
    if (fresh) it->second = TileTable(*this).shown(starts, ends, width, groups);
    return it->second;
}

}  // namespace tw::verify
