// Loops whose iterations store what the one before them left.
#include "verify/flow_engine.h"

namespace tw::verify::detail {

// Is this a loop whose iterations store what the one before them left (Behind)? Then it is interpreted here: the first iteration, which
// must store nothing, any later one, and the state after the loop. Otherwise nothing has happened.
bool Flow::runs_behind(const ir::For& f, State& s, const std::set<int>& fragments, const std::set<int>& scalars, const Condition& entered,
                       const std::function<State(State)>& body) {
    if (std::none_of(scalars.begin(), scalars.end(), [&](int id) { return s.scalars.count(id) && s.scalars.at(id).constant(); }))
        return false;  // no flag
    const Atom k = var_atom(f.var);
    const auto frames = loop_frames_;
    struct Mark {
        std::size_t stores, obligations, pending;
        decltype(reads_checked_) reads;
        decltype(divisors_checked_) divisors;
    };
    auto mark = [&] { return Mark{stores_.size(), result_.obligations.size(), by_tile_order_.size(), reads_checked_, divisors_checked_}; };
    auto back_to = [&](const Mark& m) {
        stores_.resize(m.stores);
        result_.obligations.resize(m.obligations);
        by_tile_order_.resize(m.pending);
        reads_checked_ = m.reads;
        divisors_checked_ = m.divisors;
        loop_frames_ = frames;
    };
    const Mark before = mark();
    State once = body(s);
    loop_frames_ = frames;
    const Mark after_first = mark();
    // Nothing is claimed of an element with something unknown in it.
    std::function<Value(Value)> known = [&](Value v) {
        const ValueNode& n = values_.node(v);
        if (!n.unknown_inside || n.kind == ValueNode::Kind::unknown) return v;
        return n.kind == ValueNode::Kind::where ? values_.where(n.condition, known(n.args[0]), known(n.args[1]))
                                                : values_.unknown("outside the mask");
    };
    for (auto& [id, v] : once.fragments) v = known(values_.simplified(v));
    // A flag says that there is something to store: it differs after the first iteration, from one constant to another.
    std::set<int> kept_fragments, kept_scalars;
    bool flag = false;
    for (int id : scalars) {
        if (!s.scalars.count(id) || !once.scalars.count(id)) continue;
        kept_scalars.insert(id);
        flag |= s.scalars.at(id).constant() && once.scalars.at(id).constant() && !(s.scalars.at(id) == once.scalars.at(id));
    }
    for (int id : fragments) {
        if (s.fragments.count(id) && once.fragments.count(id) && values_.node(once.fragments.at(id)).kind != ValueNode::Kind::unknown)
            kept_fragments.insert(id);
    }
    if (trace_) {
        for (int id : fragments) {
            if (once.fragments.count(id))
                std::fprintf(stderr, "flow: an iteration leaves %s = %s\n", k_.fragments[at(id)].name.c_str(),
                             show(once.fragments.at(id)).c_str());
        }
    }
    if (!flag || kept_fragments.empty() || after_first.stores != before.stores) {  // it stores what it makes at once
        back_to(before);
        return false;
    }
    Behind b;
    b.variable = k;
    b.previous = ints_.fresh("previous", 0);
    b.entered = entered;
    b.digit = digits_.back();
    b.renamed[k] = Poly::of(b.previous);
    b.back[b.previous] = Poly::of(k);
    const auto definitions = tile_definition_;
    for (const auto& [name, definition] : definitions) {
        if (!ints_.mentions(expanded(definition), k)) continue;
        const Atom other = ints_.symbol(ints_.info(name).name + "-previous", 0);
        b.renamed[name] = Poly::of(other);
        b.back[other] = Poly::of(name);
    }
    for (const auto& [name, other] : b.renamed) {
        if (name != k) define_tile(other.terms.begin()->first[0], ints_.replace(definitions.at(name), b.renamed));
    }
    b.end = tile_loop_end_;
    std::map<int, Rounding> roundings;  // at the head of an iteration, where more than one way leads there
    auto left = [&] {                   // the state at the head of any iteration but the first
        State head = s;
        for (int id : fragments)
            head.roundings[id] = roundings.count(id) ? roundings.at(id) : joined(rounding_of(id, s), rounding_of(id, once));
        for (int id : fragments)
            head.fragments[id] = kept_fragments.count(id) ? values_.replace(once.fragments.at(id), b.renamed)
                                                          : values_.unknown("carried by the loop: " + k_.fragments[at(id)].name);
        for (int id : scalars)
            head.scalars[id] =
                kept_scalars.count(id) ? ints_.replace(once.scalars.at(id), b.renamed) : Poly::of(ints_.fresh(k_.vars[at(id)].name));
        return head;
    };
    // What an iteration leaves must not depend on what it found: the same after the first iteration and after any other.
    b.inside = true;
    behind_ = b;
    for (bool stable = false; !stable;) {
        back_to(after_first);
        const State next = body(left());
        loop_frames_ = frames;
        stable = true;
        for (auto it = kept_fragments.begin(); it != kept_fragments.end();) {
            const bool same = agree_where_known(once.fragments.at(*it), next.fragments.at(*it));  // unknown elements are claimed of nothing
            stable &= same;
            it = same ? std::next(it) : kept_fragments.erase(it);
        }
        for (int id : kept_fragments) {
            const Rounding had = roundings.count(id) ? roundings.at(id) : joined(rounding_of(id, s), rounding_of(id, once)),
                           found = joined(had, rounding_of(id, next));
            stable &= found == had;
            roundings[id] = found;
        }
        for (auto it = kept_scalars.begin(); it != kept_scalars.end();) {
            const bool same = values_.simplified(once.scalars.at(*it)) == values_.simplified(next.scalars.at(*it));
            stable &= same;
            it = same ? std::next(it) : kept_scalars.erase(it);
        }
    }
    flag = false;
    for (int id : kept_scalars)
        flag |= s.scalars.at(id).constant() && once.scalars.at(id).constant() && !(s.scalars.at(id) == once.scalars.at(id));
    if (!flag) {
        back_to(before);
        behind_.reset();
        for (const auto& [other, name] : b.back) tile_definition_.erase(other), expansions_.erase(other);
        return false;
    }
    behind_->inside = false;
    State after = left();
    for (int id : fragments) s.roundings[id] = joined(rounding_of(id, s), rounding_of(id, after));
    const bool always = prover_.holds(entered);  // every block of a persistent grid has a tile
    for (int id : fragments)
        s.fragments[id] =
            !always && s.fragments.count(id) ? values_.where(entered, after.fragments.at(id), s.fragments.at(id)) : after.fragments.at(id);
    for (int id : scalars)
        s.scalars[id] =
            !always && s.scalars.count(id) ? ints_.choice(entered, after.scalars.at(id), s.scalars.at(id)) : after.scalars.at(id);
    return true;
}

// What is known of an iteration's place and tile symbols, of those of the iteration before.
void Flow::assume_previous(const Behind& b) {
    prover_.assume(less(Poly::of(b.previous), b.end));
    const Atom variable = in_tile_loop_;
    const Poly end = tile_loop_end_;
    in_tile_loop_ = b.previous;
    tile_loop_end_ = b.end;
    for (const auto& [name, other] : b.renamed) {
        const Atom symbol = other.terms.begin()->first[0];
        if (symbol != b.previous) assume_range_of(symbol, tile_definition_.at(symbol));
    }
    in_tile_loop_ = variable;
    tile_loop_end_ = end;
}

}  // namespace tw::verify::detail
