// Does the order in which persistent blocks walk tiles reach every tile once? By enumeration over all small grids, on compiled polynomials.
#include <numeric>

#include "verify/flow_engine.h"
#include "verify/tile_order_shape.h"

namespace tw::verify::detail {

// Polynomials evaluated many times over: atoms have slots, and one that is made of others is computed once for each setting.
class Evaluator {
public:
    Evaluator(const Integers& ints, const std::map<Atom, Poly>& definitions) : ints_(ints), definitions_(definitions) {}

    using Compiled = std::vector<std::pair<std::int64_t, std::vector<int>>>;  // coefficient, slots of the factors

    void set(Atom a, std::int64_t value) {
        Slot& s = slots_[static_cast<std::size_t>(given(a))];
        s.value = value;
        s.known = true;
        ++setting_;
    }
    void unset(Atom a) {
        slots_[static_cast<std::size_t>(given(a))].known = false;
        ++setting_;
    }
    // Pre: everything that is ever set was set once before.
    Compiled compile(const Poly& p) {
        Compiled c;
        for (const auto& [m, k] : p.terms) {
            c.emplace_back(k, std::vector<int>());
            for (Atom a : m) {
                const int slot = slot_of(a);
                c.back().second.push_back(slot);
            }
        }
        return c;
    }
    std::optional<std::int64_t> value(const Compiled& p) {
        std::int64_t sum = 0;
        for (const auto& [k, factors] : p) {
            std::int64_t product = k;
            for (int f : factors) {
                const auto v = value(f);
                if (!v || __builtin_mul_overflow(product, *v, &product)) return std::nullopt;
            }
            if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
        }
        return sum;
    }

private:
    struct Slot {
        enum class Kind : std::uint8_t { given, defined, quotient, minimum, maximum, other } kind = Kind::given;
        std::vector<Compiled> args;
        std::int64_t value = 0;
        bool known = false;
        std::uint64_t setting = 0;  // in which it was computed
    };

    int given(Atom a) {
        const auto [it, fresh] = by_atom_.emplace(a, static_cast<int>(slots_.size()));
        if (fresh) slots_.emplace_back();
        return it->second;
    }

    int slot_of(Atom a) {
        const auto found = by_atom_.find(a);
        if (found != by_atom_.end()) return found->second;
        Slot s;
        const AtomInfo& i = ints_.info(a);
        const auto definition = definitions_.find(a);
        if (definition != definitions_.end()) {
            s.kind = Slot::Kind::defined;
            s.args.push_back(compile(definition->second));
        } else {
            s.kind = i.kind == AtomInfo::Kind::quotient  ? Slot::Kind::quotient
                     : i.kind == AtomInfo::Kind::minimum ? Slot::Kind::minimum
                     : i.kind == AtomInfo::Kind::maximum ? Slot::Kind::maximum
                                                         : Slot::Kind::other;
            if (s.kind != Slot::Kind::other) {
                for (const Poly& p : i.args) s.args.push_back(compile(p));
            }
        }
        const int slot = static_cast<int>(slots_.size());
        by_atom_.emplace(a, slot);
        slots_.push_back(std::move(s));
        return slot;
    }

    std::optional<std::int64_t> value(int slot) {
        Slot& s = slots_[static_cast<std::size_t>(slot)];
        if (s.kind == Slot::Kind::given || s.setting == setting_) return s.known ? std::optional(s.value) : std::nullopt;
        s.setting = setting_;
        s.known = false;
        std::int64_t args[2] = {0, 0};
        for (std::size_t i = 0; i < s.args.size() && i < 2; ++i) {
            const auto v = value(s.args[i]);
            if (!v) return std::nullopt;
            args[i] = *v;
        }
        switch (s.kind) {
            case Slot::Kind::defined: s.value = args[0]; break;
            case Slot::Kind::quotient:
                if (args[1] == 0) return std::nullopt;
                s.value = ir::floor_div(args[0], args[1]);
                break;
            case Slot::Kind::minimum: s.value = std::min(args[0], args[1]); break;
            case Slot::Kind::maximum: s.value = std::max(args[0], args[1]); break;
            default: return std::nullopt;
        }
        s.known = true;
        return s.value;
    }

    const Integers& ints_;
    const std::map<Atom, Poly>& definitions_;
    std::map<Atom, int> by_atom_;
    std::deque<Slot> slots_;
    std::uint64_t setting_ = 1;
};

struct CompiledCondition {
    Condition::Kind kind = Condition::Kind::yes;
    Evaluator::Compiled poly;
    std::vector<CompiledCondition> parts;
};

namespace {

CompiledCondition compiled(const Condition& c, Evaluator& e) {
    CompiledCondition out{c.kind, e.compile(c.poly), {}};
    for (const Condition& p : c.parts) out.parts.push_back(compiled(p, e));
    return out;
}

int tiles_a_side(std::size_t dimensions) { return dimensions == 1 ? 40 : dimensions == 2 ? 12 : 6; }
std::string shown_lemma(std::size_t dimensions) {
    return "lemma: the tile order is a bijection (all grids up to " + std::to_string(tiles_a_side(dimensions)) +
           " tiles a side, enumerated)";
}

// The numbers of tiles a side that are enumerated: all small ones, and those around every constant of the formula and its double (a group
// of tile rows, and the ragged one after it).
std::set<std::int64_t> tiles_enumerated(std::size_t dimensions, const std::set<std::int64_t>& constants) {
    std::set<std::int64_t> sides;
    for (std::int64_t t = 1; t <= tiles_a_side(dimensions); ++t) sides.insert(t);
    for (std::int64_t c : constants) {
        for (std::int64_t t : {c - 1, c, c + 1, 2 * c - 1, 2 * c, 2 * c + 1, 2 * c + c / 2}) sides.insert(std::max<std::int64_t>(1, t));
    }
    return sides;
}

// The values of a size with so many tiles: whole ones, and the least that the assumptions admit into the last of them (a loop that forgets
// the ragged tile must show); the same for parts of a tile by which the order goes; every one where it goes by elements.
std::vector<std::int64_t> values_enumerated(const std::set<std::int64_t>& sides, std::int64_t unit, const std::set<std::int64_t>& parts,
                                            bool every, const std::function<bool(std::int64_t)>& admitted) {
    std::set<std::int64_t> values;
    const auto first_of = [&](std::int64_t low, std::int64_t end) {
        for (std::int64_t v = low; v < end; ++v) {
            if (!admitted(v)) continue;
            values.insert(v);
            return;
        }
    };
    for (std::int64_t t : sides) {
        const std::int64_t before = (t - 1) * unit;
        values.insert(before + unit);
        first_of(before + 1, before + unit);
        for (std::int64_t part : parts) {
            for (std::int64_t at = part; at < unit; at += part) values.insert(before + at), first_of(before + at + 1, before + at + part);
        }
        for (std::int64_t r = 1; every && r <= unit; ++r) values.insert(before + r);
    }
    return {values.begin(), values.end()};
}

// By what a size is multiplied wherever it stands in these formulas and in what they are made of (eight heads for each of K and V): then
// the order knows that product alone. 0: it stands in none.
std::int64_t factor_of_size(const Integers& ints, Atom size, const std::vector<Poly>& formulas) {
    std::int64_t factor = 0;
    std::set<Atom> seen;
    const std::function<void(const Poly&)> look = [&](const Poly& p) {
        for (const auto& [monomial, coefficient] : p.terms) {
            for (const Atom a : monomial) {
                if (a == size) {
                    factor = std::gcd(factor, coefficient);
                    continue;
                }
                if (!seen.insert(a).second) continue;
                const AtomInfo info = ints.info(a);
                const bool plain = info.kind == AtomInfo::Kind::symbol || info.kind == AtomInfo::Kind::quotient ||
                                   info.kind == AtomInfo::Kind::minimum || info.kind == AtomInfo::Kind::maximum;
                if (!plain) factor = 1;
                for (const Poly& arg : info.args) look(arg);
            }
        }
    };
    for (const Poly& p : formulas) look(p);
    return factor;
}

// What all sizes that are admitted are multiples of, as far as that is seen: the least one, if there is none before its double.
std::int64_t multiple_of_sizes(const std::function<bool(std::int64_t)>& admitted) {
    constexpr std::int64_t largest = 512;
    std::int64_t least = 1;
    while (least <= largest && !admitted(least)) ++least;
    if (least > largest) return 1;
    for (std::int64_t v = least + 1; v < 2 * least; ++v) {
        if (admitted(v)) return 1;
    }
    return admitted(2 * least) ? least : 1;
}

// Is some size admitted for each number of tiles, up to the largest that is?
bool admits_small_sizes(const std::set<std::int64_t>& sides, std::int64_t unit, const std::function<bool(std::int64_t)>& admitted) {
    bool ended = false, some = false;
    for (std::int64_t t : sides) {
        bool any = false;
        for (std::int64_t v = t * unit; v > (t - 1) * unit && !any; --v) any = admitted(v);
        if (any && ended) return false;
        some = some || any;
        ended = ended || !any;
    }
    return some;
}

constexpr std::int64_t largest_unit_by_element = 64;
constexpr std::int64_t most_tiles_enumerated = 4'000'000;
constexpr std::int64_t largest_constant_of_an_order = 256;

// The sizes that are set make it false.
bool excludes(const CompiledCondition& c, Evaluator& e) {
    auto excluded = [&](const CompiledCondition& p) { return excludes(p, e); };
    switch (c.kind) {
        case Condition::Kind::yes: return false;
        case Condition::Kind::no: return true;
        case Condition::Kind::all: return std::any_of(c.parts.begin(), c.parts.end(), excluded);
        case Condition::Kind::any: return std::all_of(c.parts.begin(), c.parts.end(), excluded);
        default: break;
    }
    const auto v = e.value(c.poly);
    if (!v) return false;
    return c.kind == Condition::Kind::at_least_zero ? *v < 0 : c.kind == Condition::Kind::zero ? *v != 0 : *v == 0;
}

}  // namespace

// The question whether the tile loops of one output reach every tile once, and what its steps share. Every step that may refuse says why.
struct Flow::TileOrder {
    Flow& flow;
    const std::vector<Digit>& executions;  // the tile loops, from the outermost
    const std::map<Atom, int>& names;      // the tile coordinates, each with its dimension of the output
    std::string& why;

    std::vector<Atom> order = {};  // the tile coordinates
    // One size per tile dimension: the multiples of the tile's extent (or of one, where the dimension is a multiple of the size).
    std::vector<Atom> sizes = {};
    std::vector<std::int64_t> units = {};
    std::vector<std::pair<Atom, Poly>> derived = {};  // symbols made of the tile loops, by their definitions
    // Quotients and bounds of sizes that no tile dimension has (so many heads fit into a cache) take any value: they are enumerated like
    // sizes.
    std::vector<std::pair<Atom, std::int64_t>> elsewhere = {};  // and their least value
    std::set<Atom> looked_at = {};
    std::set<Atom> loops = {}, given = {};
    std::vector<std::int64_t> factors = {};  // by what each size is multiplied wherever it stands
    TileOrderShape shape{flow.ints_, sizes, units, factors, loops, given};
    Evaluator known{flow.ints_, flow.tile_definition_};
    std::vector<Evaluator::Compiled> extents = {}, trips = {}, coordinates = {}, others = {};
    std::vector<CompiledCondition> assumed = {};  // where the sizes at hand say nothing of one, it excludes nothing
    std::set<std::int64_t> sides = {};
    // Sizes that the assumptions exclude are left out, if those that they admit are the small ones. Where they begin further away (M >=
    // 5000, M * N >= 1e8) nothing would be tried: then the order has to be right for all sizes.
    bool heeds = true;
    std::vector<std::vector<std::int64_t>> values = {};  // of each size, to be tried
    std::int64_t enumerated = 0, grids = 0, tried = 0;

    bool list_sizes();
    OrderShown form() const;
    void list_derived();
    void look_at(const Poly& p);
    bool has_shape();
    void compile();
    bool admitted(std::size_t i, std::int64_t v);
    void choose_sides();
    bool list_values();
    bool all_of_one_grid();
    bool all_grids();
    bool reaches_every_tile_once();
};

// The tile coordinates and the sizes of their dimensions.
bool Flow::TileOrder::list_sizes() {
    for (const auto& [a, d] : names) order.push_back(a);
    for (Atom a : order) {
        const auto& [step, dim] = flow.tile_extent_[a];
        std::vector<Atom> all;
        flow.ints_.collect(dim, all);
        if (all.size() > 1) return why = "a tiled dimension has more than one size", false;
        if (all.empty() || std::find(sizes.begin(), sizes.end(), all[0]) != sizes.end()) continue;
        sizes.push_back(all[0]);
        units.push_back(dim == Poly::of(all[0]) ? step : 1);
    }
    if (order.size() > 3 || sizes.size() > 3) return why = "too many tile dimensions to check their order", false;
    return true;
}

// What the answer depends on, to know an output whose order was shown before.
Flow::OrderShown Flow::TileOrder::form() const {
    OrderShown shown;
    for (Atom a : order) shown.tiles.emplace_back(a, flow.tile_extent_[a]);
    for (const Digit& d : executions) shown.loops.emplace_back(d.atom, d.extent);
    return shown;
}

// The symbols that are made of the tile loops, and what is enumerated beside the sizes.
void Flow::TileOrder::list_derived() {
    for (const auto& [symbol, definition] : flow.tile_definition_) {
        const Poly whole = flow.expanded(definition);
        const bool here =
            std::any_of(executions.begin(), executions.end(), [&](const Digit& d) { return flow.ints_.mentions(whole, d.atom); });
        // What is shown to be non-negative anyway (a slot of a ring) may depend on sizes that are not enumerated here.
        if (here && !flow.prover_.holds(at_least(definition, Poly(0)))) derived.emplace_back(symbol, whole);
    }
    for (Atom a : order) look_at(Poly::of(a));
    for (const auto& [symbol, definition] : derived) look_at(definition);
}

// Finds the quotients and bounds in a formula that are enumerated like sizes.
void Flow::TileOrder::look_at(const Poly& p) {
    for (const auto& [m, k] : p.terms) {
        for (Atom a : m) {
            if (!looked_at.insert(a).second) continue;
            if (const auto definition = flow.tile_definition_.find(a); definition != flow.tile_definition_.end()) {
                look_at(definition->second);
                continue;
            }
            const AtomInfo i = flow.ints_.info(a);
            if (i.kind != AtomInfo::Kind::quotient && i.kind != AtomInfo::Kind::minimum && i.kind != AtomInfo::Kind::maximum) continue;
            const bool apart = !i.inside.empty() && std::all_of(i.inside.begin(), i.inside.end(), [&](Atom inner) {
                if (flow.ints_.info(inner).kind != AtomInfo::Kind::symbol) return flow.ints_.info(inner).kind != AtomInfo::Kind::element;
                return std::find(flow.size_atoms_.begin(), flow.size_atoms_.end(), inner) != flow.size_atoms_.end() &&
                       std::find(sizes.begin(), sizes.end(), inner) == sizes.end();
            });
            if (apart && flow.prover_.holds(at_least(Poly::of(a), Poly(0))))
                elsewhere.emplace_back(a, flow.prover_.holds(at_least(Poly::of(a), Poly(1))) ? 1 : 0);
            else
                for (const Poly& arg : i.args) look_at(arg);
        }
    }
}

// Are the formulas of a shape of which small grids speak for all?
bool Flow::TileOrder::has_shape() {
    for (const Digit& d : executions) loops.insert(d.atom);
    for (const auto& [a, least] : elsewhere) given.insert(a);
    std::vector<Poly> formulas;
    for (Atom a : order) formulas.push_back(flow.expanded(Poly::of(a))), formulas.push_back(flow.tile_extent_[a].second);
    for (const auto& [symbol, definition] : derived) formulas.push_back(definition);
    for (const Digit& d : executions) formulas.push_back(flow.expanded(d.extent));
    for (std::size_t i = 0; i < sizes.size(); ++i)
        factors.push_back(units[i] == 1 ? std::max<std::int64_t>(1, factor_of_size(flow.ints_, sizes[i], formulas)) : 1);
    for (Atom a : order) shape.look(flow.expanded(Poly::of(a)));
    for (const auto& [symbol, definition] : derived) shape.look(definition);
    for (const Digit& d : executions) shape.look(flow.expanded(d.extent));
    if (!shape.obstacle().empty()) return why = shape.obstacle(), false;
    const std::set<std::int64_t>& constants = shape.constants();
    if (!constants.empty() && *constants.rbegin() > largest_constant_of_an_order)
        return why = "the tile order has the constant " + std::to_string(*constants.rbegin()) + ": too large to try all grids around it",
               false;
    if (elsewhere.size() > 1) return why = "the tile order depends on more than one quotient of sizes that are no tile's", false;
    return true;
}

// The formulas and the assumptions, to be evaluated for many grids.
void Flow::TileOrder::compile() {
    for (Atom a : sizes) known.set(a, 0);
    for (const auto& [a, least] : elsewhere) known.set(a, least);
    for (const Digit& d : executions) {
        known.set(d.atom, 0);
        known.unset(d.atom);
    }
    for (Atom a : order) {
        extents.push_back(known.compile(flow.tile_extent_[a].second));
        coordinates.push_back(known.compile(Poly::of(a)));
    }
    for (const Digit& d : executions) trips.push_back(known.compile(d.extent));
    for (const auto& [symbol, definition] : derived) others.push_back(known.compile(definition));
    for (const ir::Assumption& a : flow.k_.assumptions) {
        State empty;
        assumed.push_back(compiled(flow.ints_.condition_from(a.condition, flow.leaf(empty)), known));
    }
}

// Does the assumption on this size alone admit it?
bool Flow::TileOrder::admitted(std::size_t i, std::int64_t v) {
    for (Atom a : sizes) known.unset(a);
    known.set(sizes[i], v);
    return std::none_of(assumed.begin(), assumed.end(), [&](const auto& a) { return excludes(a, known); });
}

// The numbers of tiles a side, and whether the assumptions are heeded.
void Flow::TileOrder::choose_sides() {
    for (std::size_t i = 0; i < sizes.size(); ++i)
        units[i] = std::lcm(units[i], multiple_of_sizes([&](std::int64_t v) { return admitted(i, v); }));
    sides = tiles_enumerated(order.size(), shape.constants());
    for (std::size_t i = 0; i < sizes.size(); ++i)
        heeds = heeds && admits_small_sizes(sides, units[i], [&](std::int64_t v) { return admitted(i, v); });
}

// The values of each size that are tried.
bool Flow::TileOrder::list_values() {
    values.clear();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const bool every = shape.by_element().count(sizes[i]) != 0;
        if (every && units[i] > largest_unit_by_element)
            return why = "the tile order follows the elements of a size, not its tiles of " + std::to_string(units[i]), false;
        const auto parts = shape.parts().find(sizes[i]);
        // Of a size that stands for so many tiles there are fewer values up to a number of tiles.
        const std::int64_t factor = factors[i];
        std::set<std::int64_t> own = factor > 1 ? std::set<std::int64_t>{1, 2, 3} : sides;
        for (std::int64_t t : sides) own.insert(factor > 1 ? (t + factor - 1) / factor : t);
        values.push_back(values_enumerated(own, units[i], parts == shape.parts().end() ? std::set<std::int64_t>() : parts->second, every,
                                           [&](std::int64_t v) { return !heeds || admitted(i, v); }));
    }
    return true;
}

// One grid: do the loops around the store reach each of its tiles once?
bool Flow::TileOrder::all_of_one_grid() {
    std::vector<std::int64_t> counts;
    std::int64_t product = 1;
    for (std::size_t j = 0; j < order.size(); ++j) {
        const auto dim = known.value(extents[j]);
        if (!dim) return why = "a tiled dimension has no value", false;
        const std::int64_t step = flow.tile_extent_[order[j]].first;
        counts.push_back((*dim + step - 1) / step);
        product *= counts.back();
    }
    std::set<std::vector<std::int64_t>> seen;
    // The loops around the store, from the outermost: an inner one may run a number of times that depends on the outer ones.
    std::function<bool(std::size_t)> run = [&](std::size_t depth) -> bool {
        if (depth < executions.size()) {
            const auto n = known.value(trips[depth]);
            if (!n) return why = "the trip count of a tile loop has no value", false;
            if (*n > 4 * product + 64) return why = "the number of tiles is not the product of the tile counts", false;
            for (std::int64_t i = 0; i < *n; ++i) {
                known.set(executions[depth].atom, i);
                if (!run(depth + 1)) return false;
            }
            known.unset(executions[depth].atom);
            return true;
        }
        std::vector<std::int64_t> tile;
        for (std::size_t j = 0; j < order.size(); ++j) {
            const auto v = known.value(coordinates[j]);
            if (!v || *v < 0 || *v >= counts[j]) return why = "a tile coordinate leaves its range", false;
            tile.push_back(*v);
        }
        for (const auto& definition : others) {  // every symbol was taken to be non-negative
            const auto v = known.value(definition);
            if (!v || *v < 0) return why = "a value derived from the tile loop is negative", false;
        }
        if (!seen.insert(tile).second) return why = "two iterations of the tile loop give one tile", false;
        return true;
    };
    for (std::int64_t more : {0, 1, 2, 4, 1 << 20}) {
        for (const auto& [a, least] : elsewhere) known.set(a, least + more);
        seen.clear();
        enumerated += product;
        if (enumerated > most_tiles_enumerated)
            return why = "the tile order has constants that are too large to try all grids around them", false;
        if (!run(0)) return false;
        if (static_cast<std::int64_t>(seen.size()) != product)
            return why = "the number of tiles is not the product of the tile counts", false;
        if (elsewhere.empty()) break;
    }
    return true;
}

// All grids of the listed values.
bool Flow::TileOrder::all_grids() {
    if (!list_values()) return false;
    grids = tried = 0;
    std::vector<std::size_t> chosen(sizes.size(), 0);
    for (std::size_t d = 0; d == 0 || d < chosen.size();) {
        bool alone = true;  // each size by itself
        for (std::size_t i = 0; heeds && i < sizes.size(); ++i) alone = alone && admitted(i, values[i][chosen[i]]);
        for (std::size_t i = 0; i < sizes.size(); ++i) known.set(sizes[i], values[i][chosen[i]]);
        const bool here = !heeds || std::none_of(assumed.begin(), assumed.end(), [&](const auto& a) { return excludes(a, known); });
        grids += alone, tried += here;
        if (here && !all_of_one_grid()) return false;
        d = 0;
        while (d < chosen.size() && ++chosen[d] == values[d].size()) chosen[d++] = 0;
        if (chosen.empty()) break;
    }
    return true;
}

// All grids that are tried: with the assumptions heeded, or without where those leave too few.
bool Flow::TileOrder::reaches_every_tile_once() {
    if (!all_grids()) return false;
    if (heeds && 4 * tried < grids) {  // what several sizes are together leaves too few
        heeds = false;
        if (!all_grids()) return false;
    }
    return true;
}

bool Flow::tiles_are_a_bijection(const std::vector<Digit>& executions, const std::map<Atom, int>& names, std::string& why,
                                 std::vector<std::string>& lemmas) {
    TileOrder tiles{*this, executions, names, why};
    if (!tiles.list_sizes()) return false;
    OrderShown shown = tiles.form();  // of another output before?
    if (shown == order_shown_) {
        lemmas.push_back(shown_lemma(tiles.order.size()));
        return true;
    }
    tiles.list_derived();
    if (!tiles.has_shape()) return false;
    tiles.compile();
    tiles.choose_sides();
    if (!tiles.reaches_every_tile_once()) return false;
    lemmas.push_back(shown_lemma(tiles.order.size()));
    order_shown_ = std::move(shown);
    // An index that is a tile coordinate itself is in range by the same lemma.
    for (const Pending& p : by_tile_order_) {
        auto it = tile_extent_.find(p.coordinate);
        if (!names.count(p.coordinate) || it == tile_extent_.end() || it->second.first != 1 || !(it->second.second == p.extent)) continue;
        Obligation& o = result_.obligations[p.obligation];
        o.status = Status::proved;
        o.prover = "enumeration";
        o.reason.clear();
        o.used.push_back(lemmas.back());
    }
    return true;
}

}  // namespace tw::verify::detail
