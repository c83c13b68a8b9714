// Do the stores to an output write every element of it once? The index of each dimension as a mixed-radix number of the executions.
#include "verify/flow_engine.h"

namespace tw::verify::detail {

// The question whether stores partition an output, and what its steps share. Every step that may refuse says why.
struct Flow::Partition {
    Flow& flow;
    const std::vector<const Store*>& stores;
    std::string& why;
    std::vector<std::string>& lemmas;
    std::vector<Digit>& folded;

    const Store& first = *stores.front();
    // One store in place of all: its index, how far each dimension of that goes, and the digits of its executions.
    std::vector<Digit> digits = first.digits;
    std::vector<Poly> index = first.index;
    std::vector<Poly> dims = {};
    bool entire = !first.equation->scatter;  // the equation is for all of the tensor, by its own indices
    std::map<Atom, Poly> reversed = {};
    std::set<Atom> used = {};            // the digits that show in the index
    std::map<Atom, int> tile_used = {};  // the tile coordinates that do, each with its dimension
    Prover local{flow.ints_};
    struct Part {
        Poly step;
        Poly extent;
        Atom atom;
        bool tile;
    };  // a step may be symbolic: the extent of a loop below it

    bool stores_are_alike();
    bool join_stores();
    void find_dimensions();
    void name_rows();
    void count_upwards();
    void assume_what_is_known();
    bool collect_parts(std::size_t d, const Poly& before, std::vector<Part>& parts);
    bool starts_at_every_place(const Part& p, std::size_t d);
    bool covers(std::size_t d);
    bool every_execution_shows();
};

// Do all of them store, or add, in one way?
bool Flow::Partition::stores_are_alike() {
    if (first.atomic && !flow.k_.tensors[at(first.tensor)].zero_initialised && !flow.keeps_what_was_there(*first.equation))
        return why = "it is added to, but not zeroed before the launch (zeroed=True)", false;
    for (const Store* s : stores) {
        if (s->atomic != first.atomic) return why = "some statements store to it and others add to it", false;
        if (!s->partial.empty() && !s->atomic) return why = s->partial, false;
        const bool same = s->digits.size() == first.digits.size() &&
                          std::equal(s->digits.begin(), s->digits.end(), first.digits.begin(),
                                     [](const Digit& x, const Digit& y) { return x.atom == y.atom && x.extent == y.extent; });
        if (!same) return why = "two statements store to it in different ways", false;
    }
    return true;
}

// Several store statements (panels): their constant offsets form one more digit.
bool Flow::Partition::join_stores() {
    const auto [family, mirror] = families(stores);
    if (!mirror.empty()) {
        const auto pair = flow.mirrored(first, family, mirror);
        if (!pair) return why = "two stores to it are not a constant distance apart", false;
        digits.push_back({pair->which, Poly(2), false});
        index[pair->dim] = pair->index;
        lemmas.push_back("lemma: a number below n and its mirror image 2 n - 1 - i are the numbers below 2 n, each once");
    }
    if (family.size() > 1 && !flow.panels(family, digits, index, why)) return false;
    return true;
}

void Flow::Partition::find_dimensions() {
    for (std::size_t d = 0; d < index.size(); ++d) {
        State empty;
        dims.push_back(flow.extent_of(*first.equation, d));
        entire = entire && dims[d] == flow.poly(flow.k_.tensors[at(first.tensor)].dims[d], empty) &&
                 flow.poly(ir::start_of(*first.equation, d), empty) == Poly(0);
    }
}

// Indices that data name, by what names them.
void Flow::Partition::name_rows() {
    // A permutation takes every place once.
    for (std::size_t d = 0; d < index.size() && entire && !first.atomic; ++d) {
        if (const auto before = flow.before_permutation(first.tensor, d, index[d])) {
            lemmas.push_back("lemma: a permutation of the indices is a bijection");
            index[d] = *before;
        }
    }
    // The rows of all groups, starts[e] .. starts[e + 1], are all rows, each once: the index along them is a pair (e, row in the group).
    if (entire && !first.atomic) {
        if (const auto group = flow.grouped(first.tensor, index)) {
            index[group->dim] = index[group->dim] - Poly::of(group->start);
            dims[group->dim] = group->end - Poly::of(group->start);
            index.push_back(group->group);
            dims.push_back(group->groups);
            lemmas.push_back(group->lemma);
        }
    }
}

// A digit that counts downwards (the last tile first) counts upwards under another name: n - 1 - d.
void Flow::Partition::count_upwards() {
    for (const Digit& digit : digits) {
        const bool falls = std::any_of(index.begin(), index.end(), [&](const Poly& p) { return p.linear_in(digit.atom).value_or(0) < 0; });
        if (falls && !digit.tile_loop) reversed[digit.atom] = digit.extent - Poly(1) - Poly::of(digit.atom);
    }
    for (Poly& p : index) p = flow.ints_.replace(p, reversed);
}

void Flow::Partition::assume_what_is_known() {
    // What is known of one execution (that its loops run at all) is not known of the whole.
    for (const Condition& c : first.facts) {
        if (!flow.of_one_execution(c, digits)) local.assume(flow.ints_.replace(c, reversed));
    }
    for (const ir::Assumption& a : flow.k_.assumptions) {
        State empty;
        local.assume(flow.ints_.condition_from(a.condition, flow.leaf(empty)));
    }
}

// The terms of the index along one dimension, each a digit and its step.
bool Flow::Partition::collect_parts(std::size_t d, const Poly& before, std::vector<Part>& parts) {
    for (const auto& [m, c] : (index[d] - before).terms) {
        if (m.empty()) {
            return why = "dimension " + std::to_string(d) + " starts at " + std::to_string(c), false;
        }
        auto executes = [&](Atom x) { return std::any_of(digits.begin(), digits.end(), [&](const Digit& y) { return y.atom == x; }); };
        const auto place = m.size() == 1 ? m.begin() : std::find_if(m.begin(), m.end(), executes);
        if (place == m.end())
            return why = "dimension " + std::to_string(d) + " is not an affine function of the executions: " + flow.ints_.text(index[d]),
                   false;
        const Atom a = *place;
        Poly step(c);
        for (auto x = m.begin(); x != m.end(); ++x) {
            if (x == place) continue;
            if (executes(*x))
                return why =
                           "dimension " + std::to_string(d) + " is not an affine function of the executions: " + flow.ints_.text(index[d]),
                       false;
            step = step * Poly::of(*x);
        }
        auto digit = std::find_if(digits.begin(), digits.end(), [&](const Digit& x) { return x.atom == a; });
        if (digit != digits.end() && !digit->tile_loop) {
            parts.push_back({step, digit->extent, a, false});
        } else if (flow.tile_definition_.count(a)) {
            parts.push_back({step, Poly(0), a, true});
        } else if (digit != digits.end()) {
            parts.push_back({step, digit->extent, a, true});
        } else {
            return why = "dimension " + std::to_string(d) + " uses " + flow.ints_.text(Poly::of(a)) + ", which is no loop or block index",
                   false;
        }
    }
    return true;
}

// A strided loop has taken in the digit that it starts from.
bool Flow::Partition::starts_at_every_place(const Part& p, std::size_t d) {
    if (auto loop = std::find_if(digits.begin(), digits.end(), [&](const Digit& x) { return x.atom == p.atom; });
        loop != digits.end() && loop->first >= 0) {
        auto start = std::find_if(digits.begin(), digits.end(), [&](const Digit& x) { return x.atom == loop->first; });
        if (start != digits.end() && !start->tile_loop) {
            if (!(start->extent == Poly(loop->stride)) || !used.insert(start->atom).second)
                return why = "a loop with a stride does not start at every place below it once", false;
        } else if (flow.tile_definition_.count(loop->first) && !tile_used.count(loop->first)) {
            tile_used[loop->first] = static_cast<int>(d);
            flow.tile_extent_[loop->first] = {1, Poly(loop->stride)};
        } else {
            return why = "a loop with a stride does not start at every place below it once", false;
        }
    }
    return true;
}

// Does the index along this dimension take every value of it once?
bool Flow::Partition::covers(std::size_t d) {
    const Poly dim = dims[d];
    std::vector<Part> parts;
    // Rows that start at or before 0, each at a place of its own: what the other dimensions say is the same for all elements of a row.
    const Poly before = flow.start_of_row(index, digits, d);
    if (!collect_parts(d, before, parts)) return false;
    // Each digit's step is the number of indices that the digits below it count through: the index is then a bijection from
    // the digits to [0, product of the extents), which must reach the dimension.
    Poly expected(1);
    bool open = false;  // a tile loop ends the number: its coordinates' range is a lemma
    while (!parts.empty()) {
        if (open) return why = "dimension " + std::to_string(d) + ": a digit stands above one of unknown extent", false;
        auto next = std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.step == expected; });
        if (next == parts.end()) {
            return why = "dimension " + std::to_string(d) + ": steps of " + flow.ints_.text(parts.front().step) + " where " +
                         flow.ints_.text(expected) + " is needed to cover every index once",
                   false;
        }
        const Part p = *next;
        parts.erase(next);
        if (p.tile) {
            if (!tile_used.emplace(p.atom, static_cast<int>(d)).second)
                return why = "two dimensions use " + flow.ints_.text(Poly::of(p.atom)), false;
            if (!p.step.constant()) return why = "dimension " + std::to_string(d) + ": a tile of symbolic extent", false;
            // Below another digit it counts as far as that one's step, which the lemma on the tile order has to show.
            std::optional<std::int64_t> above;
            for (const Part& q : parts) {
                if (const auto step = q.step.constant();
                    step && *step > *p.step.constant() && *step % *p.step.constant() == 0 && (!above || *step < *above))
                    above = step;
            }
            if (above) {
                flow.tile_extent_[p.atom] = {1, Poly(*above / *p.step.constant())};
                expected = Poly(*above);
                continue;
            }
            flow.tile_extent_[p.atom] = {*p.step.constant(), dim};
            open = true;
            continue;
        }
        if (!used.insert(p.atom).second) return why = "two dimensions use " + flow.ints_.text(Poly::of(p.atom)), false;
        if (!starts_at_every_place(p, d)) return false;
        expected = expected * p.extent;
    }
    if (!(before == Poly(0)) && (open || !local.holds(at_least(Poly(0), before)) || !local.holds(at_least(before + expected, dim)))) {
        return why = "dimension " + std::to_string(d) + ": could not show that rows from " + flow.ints_.text(before) + " on, of " +
                     flow.ints_.text(expected) + " indices, are whole",
               false;
    }
    if (!open && !local.holds(at_least(expected, dim)))
        return why = "dimension " + std::to_string(d) + ": could not show that " + flow.ints_.text(expected) + " indices reach " +
                     flow.ints_.text(dim),
               false;
    return true;
}

// Every way of executing the store must show in the index, or elements are written more than once.
bool Flow::Partition::every_execution_shows() {
    std::vector<Digit> tile_loops;  // the persistent loop, and loops inside it that tile coordinates are made of
    for (const Digit& d : digits) {
        const bool makes_tiles = d.tile_loop || std::any_of(tile_used.begin(), tile_used.end(), [&](const auto& named) {
                                     return flow.tile_definition_.count(named.first) &&
                                            flow.ints_.mentions(flow.expanded(flow.tile_definition_.at(named.first)), d.atom);
                                 });
        if (makes_tiles && !used.count(d.atom)) tile_loops.push_back(d);
    }
    for (const Digit& d : digits) {
        if (d.tile_loop && tile_used.empty() && !first.gathered.empty()) {  // every tile once, wherever it adds
            folded.push_back(d);
            continue;
        }
        if (d.tile_loop) {
            if (tile_used.empty()) return why = "a tile loop does not show in the index", false;
            if (!flow.tiles_are_a_bijection(tile_loops, tile_used, why, lemmas)) return false;
            continue;
        }
        if (std::any_of(tile_loops.begin(), tile_loops.end(), [&](const Digit& t) { return t.atom == d.atom; })) continue;
        if (used.count(d.atom) || d.extent.constant() == 1) continue;
        if (first.atomic) {
            folded.push_back(d);
            continue;
        }
        return why = "the store is executed once per " + flow.ints_.info(d.atom).name + ", which its index does not depend on", false;
    }
    return true;
}

bool Flow::partition(const std::vector<const Store*>& stores, std::string& why, std::vector<std::string>& lemmas,
                     std::vector<Digit>& folded) {
    Partition all{*this, stores, why, lemmas, folded};
    if (!all.stores_are_alike() || !all.join_stores()) return false;
    all.find_dimensions();
    all.name_rows();
    all.count_upwards();
    all.assume_what_is_known();
    const Store& first = *stores.front();
    for (std::size_t d = 0; d < all.index.size(); ++d) {
        if (std::any_of(first.gathered.begin(), first.gathered.end(), [&](const Store::Gathered& g) { return g.dim == d; })) continue;
        if (!all.covers(d)) return false;
    }
    return all.every_execution_shows();
}

}  // namespace tw::verify::detail
