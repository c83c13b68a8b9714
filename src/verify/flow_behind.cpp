// Loops whose iterations store what the one before them left.
#include "verify/flow_engine.h"

namespace tw::verify::detail {

// The interpretation of a loop whose iterations store what the one before them left, and what its steps share.
struct Flow::BehindRun {
    Flow& flow;
    State& s;  // before the loop
    const std::set<int>& fragments;
    const std::set<int>& scalars;
    const Condition& entered;
    const std::function<State(State)>& body;
    const Atom k;  // its variable

    const std::vector<LoopFrame> frames = flow.loop_frames_;
    struct Mark {
        std::size_t stores, obligations, pending;
        decltype(Flow::reads_checked_) reads;
        decltype(Flow::divisors_checked_) divisors;
    };
    Mark before = {}, after_first = {};
    State once = {};  // after the first iteration
    std::set<int> kept_fragments = {}, kept_scalars = {};
    bool flag = false;
    Behind b = {};
    std::map<int, Rounding> roundings = {};  // at the head of an iteration, where more than one way leads there

    Mark mark() const;
    void back_to(const Mark& m);
    Value known(Value v);
    void run_first();
    void keep_what_is_left();
    void name_previous();
    State left();
    void run_others();
    void find_flag();
    void forget();
    void leave();
};

Flow::BehindRun::Mark Flow::BehindRun::mark() const {
    return Mark{flow.stores_.size(), flow.result_.obligations.size(), flow.by_tile_order_.size(), flow.reads_checked_,
                flow.divisors_checked_};
}

void Flow::BehindRun::back_to(const Mark& m) {
    flow.stores_.resize(m.stores);
    flow.result_.obligations.resize(m.obligations);
    flow.by_tile_order_.resize(m.pending);
    flow.reads_checked_ = m.reads;
    flow.divisors_checked_ = m.divisors;
    flow.loop_frames_ = frames;
}

// Nothing is claimed of an element with something unknown in it.
Value Flow::BehindRun::known(Value v) {
    const ValueNode& n = flow.values_.node(v);
    if (!n.unknown_inside || n.kind == ValueNode::Kind::unknown) return v;
    return n.kind == ValueNode::Kind::where ? flow.values_.where(n.condition, known(n.args[0]), known(n.args[1]))
                                            : flow.values_.unknown("outside the mask");
}

void Flow::BehindRun::run_first() {
    before = mark();
    once = body(s);
    flow.loop_frames_ = frames;
    after_first = mark();
    for (auto& [id, v] : once.fragments) v = known(flow.values_.simplified(v));
}

// What the first iteration may leave for the next one.
void Flow::BehindRun::keep_what_is_left() {
    // A flag says that there is something to store: it differs after the first iteration, from one constant to another.
    for (int id : scalars) {
        if (!s.scalars.count(id) || !once.scalars.count(id)) continue;
        kept_scalars.insert(id);
        flag |= s.scalars.at(id).constant() && once.scalars.at(id).constant() && !(s.scalars.at(id) == once.scalars.at(id));
    }
    for (int id : fragments) {
        if (s.fragments.count(id) && once.fragments.count(id) && flow.values_.node(once.fragments.at(id)).kind != ValueNode::Kind::unknown)
            kept_fragments.insert(id);
    }
    if (flow.trace_) {
        for (int id : fragments) {
            if (once.fragments.count(id))
                std::fprintf(stderr, "flow: an iteration leaves %s = %s\n", flow.k_.fragments[at(id)].name.c_str(),
                             flow.show(once.fragments.at(id)).c_str());
        }
    }
}

// Gives the tile symbols of the iteration before names of their own.
void Flow::BehindRun::name_previous() {
    b.variable = k;
    b.previous = flow.ints_.fresh("previous", 0);
    b.entered = entered;
    b.digit = flow.digits_.back();
    b.renamed[k] = Poly::of(b.previous);
    b.back[b.previous] = Poly::of(k);
    const auto definitions = flow.tile_definition_;
    for (const auto& [name, definition] : definitions) {
        if (!flow.ints_.mentions(flow.expanded(definition), k)) continue;
        const Atom other = flow.ints_.symbol(flow.ints_.info(name).name + "-previous", 0);
        b.renamed[name] = Poly::of(other);
        b.back[other] = Poly::of(name);
    }
    for (const auto& [name, other] : b.renamed) {
        if (name != k) flow.define_tile(other.terms.begin()->first[0], flow.ints_.replace(definitions.at(name), b.renamed));
    }
    b.end = flow.tile_loop_end_;
}

// The state at the head of any iteration but the first.
State Flow::BehindRun::left() {
    State head = s;
    for (int id : fragments)
        head.roundings[id] = roundings.count(id) ? roundings.at(id) : joined(rounding_of(id, s), rounding_of(id, once));
    for (int id : fragments)
        head.fragments[id] = kept_fragments.count(id) ? flow.values_.replace(once.fragments.at(id), b.renamed)
                                                      : flow.values_.unknown("carried by the loop: " + flow.k_.fragments[at(id)].name);
    for (int id : scalars)
        head.scalars[id] = kept_scalars.count(id) ? flow.ints_.replace(once.scalars.at(id), b.renamed)
                                                  : Poly::of(flow.ints_.fresh(flow.k_.vars[at(id)].name));
    return head;
}

// What an iteration leaves must not depend on what it found: the same after the first iteration and after any other.
void Flow::BehindRun::run_others() {
    b.inside = true;
    flow.behind_ = b;
    for (bool stable = false; !stable;) {
        back_to(after_first);
        const State next = body(left());
        flow.loop_frames_ = frames;
        stable = true;
        for (auto it = kept_fragments.begin(); it != kept_fragments.end();) {
            const bool same =
                flow.agree_where_known(once.fragments.at(*it), next.fragments.at(*it));  // unknown elements are claimed of nothing
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
            const bool same = flow.values_.simplified(once.scalars.at(*it)) == flow.values_.simplified(next.scalars.at(*it));
            stable &= same;
            it = same ? std::next(it) : kept_scalars.erase(it);
        }
    }
}

// Is there still a flag among what is kept?
void Flow::BehindRun::find_flag() {
    flag = false;
    for (int id : kept_scalars)
        flag |= s.scalars.at(id).constant() && once.scalars.at(id).constant() && !(s.scalars.at(id) == once.scalars.at(id));
}

// Nothing has happened.
void Flow::BehindRun::forget() {
    back_to(before);
    flow.behind_.reset();
    for (const auto& [other, name] : b.back) flow.tile_definition_.erase(other), flow.expansions_.erase(other);
}

// The state after the loop.
void Flow::BehindRun::leave() {
    flow.behind_->inside = false;
    State after = left();
    for (int id : fragments) s.roundings[id] = joined(rounding_of(id, s), rounding_of(id, after));
    const bool always = flow.prover_.holds(entered);  // every block of a persistent grid has a tile
    for (int id : fragments)
        s.fragments[id] = !always && s.fragments.count(id) ? flow.values_.where(entered, after.fragments.at(id), s.fragments.at(id))
                                                           : after.fragments.at(id);
    for (int id : scalars)
        s.scalars[id] =
            !always && s.scalars.count(id) ? flow.ints_.choice(entered, after.scalars.at(id), s.scalars.at(id)) : after.scalars.at(id);
}

// Is this a loop whose iterations store what the one before them left (Behind)? Then it is interpreted here: the first iteration, which
// must store nothing, any later one, and the state after the loop. Otherwise nothing has happened.
bool Flow::runs_behind(const ir::For& f, State& s, const std::set<int>& fragments, const std::set<int>& scalars, const Condition& entered,
                       const std::function<State(State)>& body) {
    if (std::none_of(scalars.begin(), scalars.end(), [&](int id) { return s.scalars.count(id) && s.scalars.at(id).constant(); }))
        return false;  // no flag
    BehindRun loop{*this, s, fragments, scalars, entered, body, var_atom(f.var)};
    loop.run_first();
    loop.keep_what_is_left();
    if (!loop.flag || loop.kept_fragments.empty() || loop.after_first.stores != loop.before.stores) {  // it stores what it makes at once
        loop.back_to(loop.before);
        return false;
    }
    loop.name_previous();
    loop.run_others();
    loop.find_flag();
    if (!loop.flag) {
        loop.forget();
        return false;
    }
    loop.leave();
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
