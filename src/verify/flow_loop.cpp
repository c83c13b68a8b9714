// Loop summaries by guess and check.
#include "verify/flow_engine.h"

namespace tw::verify::detail {

void Flow::collect_assigned(const ir::Region& region, std::set<int>& fragments, std::set<int>& scalars) {
    ir::for_each_stmt(region, [&](const ir::Stmt& s) {
        if (auto* x = std::get_if<ir::Assign>(&s.op); x && !order_only_.scalars.count(x->var)) scalars.insert(x->var);
        ir::visit_uses(s, {.writes = [&](int f) { fragments.insert(f); }});
    });
}

void Flow::run(const ir::For& f, const ir::Stmt& stmt, State& s) {
    for (const ir::Expr& bound : {f.lo, f.hi, f.step}) check_reads(bound, stmt, s);
    const Atom k = var_atom(f.var);
    const Poly lo = poly(f.lo, s), hi = poly(f.hi, s), step = poly(f.step, s);
    std::set<int> fragments, scalars;
    collect_assigned(f.body, fragments, scalars);
    const bool recording = recording_;
    const bool unit = step.constant() == 1;
    // A persistent loop visits every t in [0, hi) once over all blocks exactly when it is block, block + grid, ...
    const bool whole_grid = lo == Poly::of(block_[0]) && step == Poly::of(grid_[0]) && k_.persistent;
    const bool tile_loop = !unit && in_tile_loop_ < 0 && whole_grid;
    if (whole_grid) persistent_.insert(f.var);
    const auto mark = digits_.size();
    // A digit counts from 0; a loop that does not gets a symbol of its own, which no index can use.
    const auto stride = step.constant();
    const bool from_digit = stride && *stride > 1 && lo.terms.size() == 1 && lo.terms.begin()->second == 1 && lo.terms.begin()->first.size() == 1 &&
                            prover_.holds(both(at_least(lo, Poly(0)), less(lo, step)));
    if (unit) digits_.push_back({lo.constant() == 0 ? k : ints_.fresh("iteration"), hi - lo, false});
    else if (from_digit) digits_.push_back({k, hi, false, lo.terms.begin()->first[0], *stride});
    else digits_.push_back({tile_loop ? k : ints_.fresh("iteration"), hi, tile_loop});
    const Atom outer_tile = in_tile_loop_;
    const Poly outer_end = tile_loop_end_;
    if (tile_loop) {
        in_tile_loop_ = k;
        tile_loop_end_ = hi;
    }
    prover_.push();
    prover_.assume(at_least(Poly::of(k), lo));
    prover_.assume(less(Poly::of(k), hi));
    LoopFrame frame;
    frame.variable = f.var;
    frame.end = hi;
    ir::for_each_stmt(f.body, [&](const ir::Stmt& inner) {
        if (destination(&inner) >= 0) frame.writers.insert(&inner);
    });
    std::map<const ir::Stmt*, std::pair<Value, std::vector<Poly>>> carried;   // by the last run of the body
    auto body = [&](State from) {
        from.scalars[f.var] = Poly::of(k);
        prover_.push();
        frame.run_serial = ++serial_;
        loop_frames_.push_back(frame);
        execute(f.body, from);
        carried = std::move(loop_frames_.back().carried);
        loop_frames_.pop_back();
        prover_.pop();
        return from;
    };
    // For a guess from a start that is not that of iteration k: a difference of infinities shows when the guess is checked.
    auto guessing = [&](State from) {
        ++guessing_;
        State after = body(std::move(from));
        --guessing_;
        return after;
    };
    // Shared memory that the body reads from an earlier iteration: was it what the body writes?
    auto writes_settled = [&] {
        bool settled = true;
        for (const auto& [stmt, used] : carried) {
            const auto now = writes_.find(stmt);
            if (values_.node(used.first).kind == ValueNode::Kind::unknown) continue;   // nothing was taken from it
            if (now != writes_.end() && now->second.value == used.first && now->second.origin == used.second) continue;
            settled = false;
            if (++carried_attempts_[stmt] > 6) forgotten_writes_.insert(stmt);
        }
        return settled;
    };
    const Condition entered = less(lo, hi);
    if (unit && prover_.holds(at_least(lo + Poly(1), hi))) {   // one iteration or none: nothing has to be guessed
        State after = body(s);
        prover_.pop();
        for (int id : fragments) {
            const auto before = s.fragments.find(id);
            const Value was = before != s.fragments.end() ? before->second : values_.unknown("after the loop: " + k_.fragments[at(id)].name);
            s.fragments[id] = values_.simplified(values_.where(entered, values_.replace(after.fragments.at(id), {{k, lo}}), was));
        }
        for (int id : scalars) {
            const auto before = s.scalars.find(id);
            const Poly was = before != s.scalars.end() ? before->second : Poly::of(ints_.fresh(k_.vars[at(id)].name));
            s.scalars[id] = values_.simplified(ints_.choice(entered, ints_.replace(after.scalars.at(id), {{k, lo}}), was));
        }
        in_tile_loop_ = outer_tile;
        tile_loop_end_ = outer_end;
        digits_.resize(mark);
        return;
    }
    if (tile_loop && recording_ && !behind_ && runs_behind(f, s, fragments, scalars, entered, body)) {
        prover_.pop();
        in_tile_loop_ = outer_tile;
        tile_loop_end_ = outer_end;
        digits_.resize(mark);
        return;
    }
    // What inner, hypothetical runs of this loop read is no matter of the loops around it.
    const std::vector<LoopFrame> outer_frames = loop_frames_;
    State head = s;
    head.scalars[f.var] = Poly::of(k);
    recording_ = false;
    auto forget_fragment = [&](int id) { head.fragments[id] = values_.unknown("carried by the loop: " + k_.fragments[at(id)].name); };
    auto forget_scalar = [&](int id) { head.scalars[id] = Poly::of(ints_.fresh(k_.vars[at(id)].name)); };
    std::set<int> known_fragments, known_scalars;
    auto starts_right = [&](int id, Value guessed) { return agree_where_known(values_.replace(guessed, {{k, lo}}), s.fragments.at(id)); };
    // From what one iteration made of a fragment, what it is at the head of iteration k.
    auto guess = [&](int id, Value value) {
        value = values_.simplified(value);   // what no iteration has (an empty range, say) does not grow
        // It must also make sense at k = hi, so it is formed without the facts of an iteration.
        prover_.pop();
        prover_.push();
        prover_.assume(at_least(Poly::of(k), lo));
        Value result = values_.widened(value, k, lo);
        if (const auto each = one_term_each(value, values_.simplified(s.fragments.at(id)), k, lo)) {
            result = *each;
            // Made anew in every iteration, as code before the loop made the first: what the iteration before left.
            if (const Value initial = values_.simplified(s.fragments.at(id)); !values_.as_number(initial)) {
                const Value before = values_.replace(value, {{k, Poly::of(k) - Poly(1)}});
                const auto masked = masked_as_before(before, initial, k, lo);
                if (starts_right(id, before)) result = before;
                else if (masked && starts_right(id, *masked)) result = *masked;
            }
        } else if (values_.mentions(result, k)) {
            result = values_.simplified(within_masks(result, s.fragments.at(id), k));
        }
        if (!starts_right(id, result)) {
            if (const auto masked = masked_as_before(result, values_.simplified(s.fragments.at(id)), k, lo); masked && starts_right(id, *masked)) result = *masked;
        }
        prover_.pop();
        prover_.push();
        prover_.assume(at_least(Poly::of(k), lo));
        prover_.assume(less(Poly::of(k), hi));
        return result;
    };
    std::map<int, int> attempts;   // what hangs on another fragment of the loop can be guessed right only after that one
    const auto [own, first_time] = carried_.try_emplace(&f);
    if (first_time) own->second = carried_by(k_, f);
    const Carried& handed = own->second;
    auto hands_on = [](const std::set<int>& assigned, const std::set<int>& carried) { return std::any_of(assigned.begin(), assigned.end(), [&](int id) { return carried.count(id) > 0; }); };
    if (unit && frame.writers.empty() && !hands_on(fragments, handed.fragments) && !hands_on(scalars, handed.scalars)) {   // every iteration for itself
        for (int id : fragments) forget_fragment(id);
        for (int id : scalars) forget_scalar(id);
    } else if (unit) {
        const State once = guessing(s);
        std::map<int, Value> guessed;
        for (int id : fragments) {
            auto before = s.fragments.find(id);
            auto after = once.fragments.find(id);
            if (before == s.fragments.end() || after == once.fragments.end() || !handed.fragments.count(id)) {
                forget_fragment(id);
                continue;
            }
            guessed[id] = after->second;
            known_fragments.insert(id);
        }
        for (const auto& [id, value] : guessed) head.fragments[id] = guess(id, value);
        for (int id : scalars) {
            auto before = s.scalars.find(id);
            auto after = once.scalars.find(id);
            if (before == s.scalars.end() || after == once.scalars.end()) {
                forget_scalar(id);
                continue;
            }
            const Poly difference = after->second - before->second;
            if (ints_.mentions(difference, k)) {
                forget_scalar(id);
                continue;
            }
            head.scalars[id] = before->second + difference * (Poly::of(k) - lo);
            known_scalars.insert(id);
        }
        // Check, and forget what fails, until what is left is inductive.
        for (bool stable = false; !stable;) {
            const State next = body(head);
            stable = writes_settled();
            const std::map<Atom, Poly> advance = {{k, Poly::of(k) + Poly(1)}};
            std::vector<int> failed_fragments, failed_scalars;
            for (int id : known_fragments) {
                const Value claimed = head.fragments.at(id);
                const Value want = values_.replace(claimed, advance), got = next.fragments.at(id);
                auto holds = [&](Value claim) { return agree_where_known(values_.replace(claim, advance), got) && starts_right(id, claim); };
                if (holds(claimed)) continue;
                // What is right inside a mask that does not move (rows of a tensor) may be wrong outside: then nothing is claimed there.
                if (const ValueNode n = values_.node(claimed); n.kind == ValueNode::Kind::where && !ints_.mentions(n.condition, k) && values_.as_number(s.fragments.at(id))) {
                    bool weaker = false;
                    for (int side = 0; side < 2 && !weaker; ++side) {
                        if (values_.has_unknown(n.args[at(side)])) continue;
                        const Value nothing = values_.unknown("outside the mask");
                        const Value part = side == 0 ? values_.where(n.condition, n.args[0], nothing) : values_.where(n.condition, nothing, n.args[1]);
                        if (!(weaker = holds(part))) continue;
                        head.fragments[id] = part;
                        stable = false;
                    }
                    if (weaker) continue;
                }
                failed_fragments.push_back(id);
                if (trace_) {
                    std::fprintf(stderr, "flow: %s is not inductive\n  guess   %s\n  next    %s\n  wanted  %s\n  initial %s\n", k_.fragments[at(id)].name.c_str(), show(claimed).c_str(),
                                 show(got).c_str(), show(want).c_str(), show(s.fragments.at(id)).c_str());
                }
            }
            for (int id : known_scalars) {
                const Poly guess = head.scalars.at(id);
                if (!(values_.simplified(ints_.replace(guess, advance)) == values_.simplified(next.scalars.at(id)))) failed_scalars.push_back(id);
            }
            std::vector<int> again;
            for (int id : failed_fragments) {
                stable = false;
                if (++attempts[id] <= 2 && failed_fragments.size() < known_fragments.size()) {
                    again.push_back(id);
                } else {
                    known_fragments.erase(id);
                    forget_fragment(id);
                }
            }
            if (!again.empty()) {   // one iteration from their start, with the others as they were found
                State from = head;
                for (int id : again) {
                    Value start = s.fragments.at(id);
                    for (int other : known_fragments) {
                        if (other != id) start = rebased(start, s.fragments.at(other), head.fragments.at(other));
                    }
                    from.fragments[id] = start;
                }
                const State once_more = guessing(from);
                for (int id : again) {
                    std::optional<Value> relative;
                    for (int other : known_fragments) {
                        if (other == id || relative || std::find(again.begin(), again.end(), other) != again.end()) continue;
                        relative = relative_sum(once_more.fragments.at(id), once_more.fragments.at(other), head.fragments.at(other), k, lo, hi);
                    }
                    for (int other : known_fragments) {
                        if (other == id || relative || std::find(again.begin(), again.end(), other) != again.end()) continue;
                        relative = relative_place(once_more.fragments.at(id), once_more.fragments.at(other), head.fragments.at(other), k, lo);
                    }
                    head.fragments[id] = relative && (values_.as_number(s.fragments.at(id)) == 0.0 || values_.as_number(s.fragments.at(id)) == Values::identity("min")) ? *relative : guess(id, once_more.fragments.at(id));
                }
            }
            for (int id : failed_scalars) {
                known_scalars.erase(id);
                forget_scalar(id);
                stable = false;
            }
        }
    } else {
        for (int id : fragments) forget_fragment(id);
        for (int id : scalars) forget_scalar(id);
    }
    recording_ = recording;
    loop_frames_ = outer_frames;
    body(head);
    prover_.pop();
    // After the loop: the guess at k = max(lo, hi). It was checked for loops that run; one that does not leaves what was there.
    const Poly end = values_.simplified(ints_.maximum(lo, hi));
    for (int id : fragments) {
        if (!known_fragments.count(id)) {
            s.fragments[id] = values_.unknown("after the loop: " + k_.fragments[at(id)].name);
            continue;
        }
        const Value claimed = head.fragments.at(id);
        prover_.push();
        prover_.assume(negated(entered));
        const bool always = starts_right(id, claimed);
        prover_.pop();
        const Value after = values_.replace(claimed, {{k, end}});
        s.fragments[id] = values_.simplified(always ? after : values_.where(entered, after, s.fragments.at(id)));
    }
    for (int id : scalars) {
        s.scalars[id] = known_scalars.count(id) ? values_.simplified(ints_.replace(head.scalars.at(id), {{k, end}})) : Poly::of(ints_.fresh(k_.vars[at(id)].name));
    }
    in_tile_loop_ = outer_tile;
    tile_loop_end_ = outer_end;
    digits_.resize(mark);
}

// Is this a loop whose iterations store what the one before them left (Behind)? Then it is interpreted here: the first iteration, which
// must store nothing, any later one, and the state after the loop. Otherwise nothing has happened.
bool Flow::runs_behind(const ir::For& f, State& s, const std::set<int>& fragments, const std::set<int>& scalars, const Condition& entered, const std::function<State(State)>& body) {
    if (std::none_of(scalars.begin(), scalars.end(), [&](int id) { return s.scalars.count(id) && s.scalars.at(id).constant(); })) return false;   // no flag
    const Atom k = var_atom(f.var);
    const auto frames = loop_frames_;
    struct Mark {
        std::size_t stores, obligations, pending;
        decltype(reads_checked_) reads;
    };
    auto mark = [&] { return Mark{stores_.size(), result_.obligations.size(), by_tile_order_.size(), reads_checked_}; };
    auto back_to = [&](const Mark& m) {
        stores_.resize(m.stores);
        result_.obligations.resize(m.obligations);
        by_tile_order_.resize(m.pending);
        reads_checked_ = m.reads;
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
        return n.kind == ValueNode::Kind::where ? values_.where(n.condition, known(n.args[0]), known(n.args[1])) : values_.unknown("outside the mask");
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
        if (s.fragments.count(id) && once.fragments.count(id) && values_.node(once.fragments.at(id)).kind != ValueNode::Kind::unknown) kept_fragments.insert(id);
    }
    if (trace_) {
        for (int id : fragments) {
            if (once.fragments.count(id)) std::fprintf(stderr, "flow: an iteration leaves %s = %s\n", k_.fragments[at(id)].name.c_str(), show(once.fragments.at(id)).c_str());
        }
    }
    if (!flag || kept_fragments.empty() || after_first.stores != before.stores) {   // it stores what it makes at once
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
    auto left = [&] {   // the state at the head of any iteration but the first
        State head = s;
        for (int id : fragments) head.fragments[id] = kept_fragments.count(id) ? values_.replace(once.fragments.at(id), b.renamed) : values_.unknown("carried by the loop: " + k_.fragments[at(id)].name);
        for (int id : scalars) head.scalars[id] = kept_scalars.count(id) ? ints_.replace(once.scalars.at(id), b.renamed) : Poly::of(ints_.fresh(k_.vars[at(id)].name));
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
            const bool same = agree_where_known(once.fragments.at(*it), next.fragments.at(*it));   // unknown elements are claimed of nothing
            stable &= same;
            it = same ? std::next(it) : kept_fragments.erase(it);
        }
        for (auto it = kept_scalars.begin(); it != kept_scalars.end();) {
            const bool same = values_.simplified(once.scalars.at(*it)) == values_.simplified(next.scalars.at(*it));
            stable &= same;
            it = same ? std::next(it) : kept_scalars.erase(it);
        }
    }
    flag = false;
    for (int id : kept_scalars) flag |= s.scalars.at(id).constant() && once.scalars.at(id).constant() && !(s.scalars.at(id) == once.scalars.at(id));
    if (!flag) {
        back_to(before);
        behind_.reset();
        for (const auto& [other, name] : b.back) tile_definition_.erase(other), expansions_.erase(other);
        return false;
    }
    behind_->inside = false;
    State after = left();
    const bool always = prover_.holds(entered);   // every block of a persistent grid has a tile
    for (int id : fragments) s.fragments[id] = !always && s.fragments.count(id) ? values_.where(entered, after.fragments.at(id), s.fragments.at(id)) : after.fragments.at(id);
    for (int id : scalars) s.scalars[id] = !always && s.scalars.count(id) ? ints_.choice(entered, after.scalars.at(id), s.scalars.at(id)) : after.scalars.at(id);
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
        for (int side = 0; side < 2; ++side) {   // rows beyond a tensor add the same in every iteration: nothing is claimed of them
            if (!sides[side] && sides[1 - side] && values_.as_number(initial) && values_.mentions(*sides[1 - side], k) && !values_.mentions(n.args[at(side)], k)) sides[side] = values_.unknown("outside the mask");
        }
        if (!sides[0] || !sides[1]) return std::nullopt;
        return values_.where(n.condition, *sides[0], *sides[1]);
    }
    if (const auto start = values_.as_number(initial); start && values_.mentions(once, k) && !has_growing_range(once, k)) {   // from the fold's identity
        for (const char* op : {"max", "min"}) {
            if (*start != Values::identity(op)) continue;
            const Atom i = ints_.fresh("i");
            return values_.reduce(op, i, lo, Poly::of(k), values_.replace(once, {{k, Poly::of(i)}}));
        }
    }
    if (n.kind == ValueNode::Kind::where && n.args[1] == initial) {   // a running extreme of what a moving mask lets through
        const ValueNode taken = values_.node(n.args[0]);
        if (taken.kind == ValueNode::Kind::extreme && std::find(taken.args.begin(), taken.args.end(), initial) != taken.args.end() && !has_growing_range(once, k)) {
            Value result = initial;
            const Value nothing = values_.number(Values::identity(taken.name));
            for (Value term : taken.args) {
                if (term == initial) continue;
                const Atom i = ints_.fresh("i");
                const Value masked = values_.where(n.condition, term, nothing);
                result = values_.apply(taken.name, {result, values_.reduce(taken.name, i, lo, Poly::of(k), values_.replace(masked, {{k, Poly::of(i)}}))});
            }
            return result;
        }
    }
    const Value added = values_.sum(0, {{1, once}, {-1, initial}});
    if (values_.mentions(initial, k) || !values_.mentions(added, k) || has_growing_range(once, k)) return std::nullopt;
    const Atom i = ints_.fresh("i");
    auto folded = [&](const std::string& op, Value term) { return values_.reduce(op, i, lo, Poly::of(k), values_.replace(term, {{k, Poly::of(i)}})); };
    if (n.kind != ValueNode::Kind::extreme) return values_.add(initial, folded("sum", added));
    Value result = initial;
    for (Value term : n.args) {
        if (term != initial) result = values_.apply(n.name, {result, folded(n.name, term)});
    }
    return result;
}

namespace {

// How the index of some element in `v` moves from iteration to iteration, counted in steps of a coordinate of the tile: (coordinate, steps).
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

// Only the first of the tiles that a loop goes through may need a mask (the ragged one, the one on the diagonal), and code after it has none.
// What the tile is at the head of an iteration has that mask all the same, moved along: it holds everywhere but in the first. Pre: `initial` is
// the state before the loop.
std::optional<Value> Flow::masked_as_before(Value guess, Value initial, Atom k, const Poly& lo) {
    const ValueNode n = values_.node(guess);
    if (n.kind == ValueNode::Kind::where && !ints_.mentions(n.condition, k)) {
        const auto inner = masked_as_before(n.args[0], initial, k, lo);
        return inner ? std::optional(values_.where(n.condition, *inner, n.args[1])) : std::nullopt;
    }
    const ValueNode start = values_.node(initial);
    if (start.kind != ValueNode::Kind::where) return std::nullopt;
    const bool zero_outside = values_.as_number(start.args[1]) == 0.0, zero_inside = values_.as_number(start.args[0]) == 0.0;
    if (!zero_outside && !zero_inside) return std::nullopt;
    const auto move = moves_by(values_, coordinates_, guess, k);
    if (!move) return std::nullopt;
    const Condition mask = zero_outside ? start.condition : negated(start.condition);
    const Condition moved = ints_.replace(mask, {{move->first, Poly::of(move->first) + Poly(move->second) * (Poly::of(k) - lo)}});
    return values_.where(moved, guess, values_.number(0));
}

// A guess claims nothing of elements outside a mask that does not move, unless they are as before the loop, nor of unknown ones.
Value Flow::within_masks(Value guess, Value initial, Atom k) {
    const ValueNode& n = values_.node(guess);
    if (n.kind == ValueNode::Kind::unknown) return guess;
    if (n.kind != ValueNode::Kind::where) return n.unknown_inside ? values_.unknown("outside the mask") : guess;
    std::vector<Atom> atoms;
    ints_.collect(n.condition, atoms);
    const bool still_mask = !ints_.mentions(n.condition, k) && std::any_of(atoms.begin(), atoms.end(), [&](Atom a) { return coordinates_.count(a) > 0; });
    if (!still_mask) return values_.where(n.condition, within_masks(n.args[0], initial, k), within_masks(n.args[1], initial, k));
    return n.args[1] == initial ? guess : values_.where(n.condition, within_masks(n.args[0], initial, k), values_.unknown("outside the mask"));
}

// A value relative to a running maximum `then`, made relative to `now`: what online softmax does with its rescaling.
Value Flow::rebased(Value v, Value then, Value now) {
    const ValueNode& n = values_.node(then);
    if (n.kind == ValueNode::Kind::where) {
        Value sides[2];
        for (int side = 0; side < 2; ++side) {
            prover_.push();
            prover_.assume(side == 0 ? n.condition : negated(n.condition));
            sides[side] = rebased(values_.simplified(v), values_.simplified(n.args[at(side)]), values_.simplified(now));
            prover_.pop();
        }
        return values_.where(n.condition, sides[0], sides[1]);
    }
    const bool maximum = n.kind == ValueNode::Kind::reduce && n.name != "sum";
    return maximum && !values_.has_unknown(now) ? values_.substitute(v, then, now) : v;
}

// A sum of terms exp(x - top) that an iteration rescales when it moves the running maximum `top`: with `once` what the first iteration
// leaves of a sum that was 0, and `next_top` the maximum it leaves, the terms are once * exp(next_top), and at the head of iteration k
// the sum is theirs over all iterations before, times exp(-top).
std::optional<Value> Flow::relative_sum(Value once, Value next_top, Value top, Atom k, const Poly& lo, const Poly& hi) {
    if (values_.has_unknown(once) || values_.has_unknown(next_top) || !has_moving_range(next_top, k) || !has_moving_range(once, k)) return std::nullopt;
    std::function<Value(Value, Value)> unscaled = [&](Value v, Value by) {
        for (Value split : {v, by}) {
            const ValueNode n = values_.node(split);
            if (n.kind != ValueNode::Kind::where) continue;
            Value sides[2];
            for (int side = 0; side < 2; ++side) {
                prover_.push();
                prover_.assume(side == 0 ? n.condition : negated(n.condition));
                sides[side] = unscaled(values_.simplified(v), values_.simplified(by));
                prover_.pop();
            }
            return values_.where(n.condition, sides[0], sides[1]);
        }
        const Value scale = values_.apply("exp", {by});
        const ValueNode n = values_.node(v);
        if (n.kind != ValueNode::Kind::sum) return values_.product({{v, 1}, {scale, 1}});
        std::vector<std::pair<double, Value>> terms;
        if (n.number != 0) terms.emplace_back(n.number, scale);
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

// The place of an extreme value `top` that an iteration moves on: with `once` the place that an iteration finds of `next_top` among its own elements, at
// the head of iteration k it is that of `top` among those of all iterations before.
std::optional<Value> Flow::relative_place(Value once, Value next_top, Value top, Atom k, const Poly& lo) {
    if (values_.has_unknown(once) || values_.has_unknown(next_top) || values_.has_unknown(top)) return std::nullopt;
    const Value some_top = values_.scalar(1 << 20);
    const auto term = values_.place_of_other(once, next_top, some_top, false, {});
    if (!term || values_.as_number(*term)) return std::nullopt;
    const Atom i = ints_.fresh("i");
    const Value all = values_.reduce("min", i, lo, Poly::of(k), values_.replace(*term, {{k, Poly::of(i)}}));
    return values_.place_of_other(all, some_top, top, false, {});
}

// Equal wherever the claim is not "unknown".
bool Flow::agree_where_known(Value claim, Value got) {
    claim = values_.simplified(claim);
    got = values_.simplified(got);
    const ValueNode& n = values_.node(claim);
    if (n.kind == ValueNode::Kind::unknown) return true;
    if (n.kind != ValueNode::Kind::where || !n.unknown_inside) return agree(claim, got, Condition{}, 3);
    for (int side = 0; side < 2; ++side) {
        prover_.push();
        prover_.assume(side == 0 ? n.condition : negated(n.condition));
        const bool same = agree_where_known(n.args[at(side)], got);
        prover_.pop();
        if (!same) return false;
    }
    return true;
}

// The same indices: the same ends, or both empty.
bool Flow::same_range(const ValueNode& a, const ValueNode& b) {
    if (!inputs_.track_covers) return true;
    const Condition ends = both(equals(a.lo, b.lo), equals(a.hi, b.hi));
    if (ends.is_yes()) return true;
    return prover_.holds(either(ends, both(at_least(a.lo, a.hi), at_least(b.lo, b.hi))));
}

Value Flow::counts_collected(Value v) {
    const ValueNode n = values_.node(v);
    if (n.kind != ValueNode::Kind::sum) return v;
    using Factors = std::vector<std::pair<Value, double>>;
    std::map<std::pair<double, Factors>, std::vector<Value>> terms;   // by weight and factors: the terms, and their counts
    std::map<Value, Poly> counts;
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        const ValueNode t = values_.node(n.args[i]);
        int counted = -1;
        for (std::size_t j = 0; t.kind == ValueNode::Kind::product && j < t.args.size(); ++j) {
            if (values_.node(t.args[j]).kind == ValueNode::Kind::index && t.weights[j] == 1) counted = counted < 0 ? static_cast<int>(j) : -2;
        }
        if (counted < 0) continue;
        Factors others;
        for (std::size_t j = 0; j < t.args.size(); ++j) {
            if (static_cast<int>(j) != counted) others.emplace_back(t.args[j], t.weights[j]);
        }
        terms[{n.weights[i], std::move(others)}].push_back(n.args[i]);
        counts[n.args[i]] = values_.node(t.args[at(counted)]).indices[0];
    }
    for (std::size_t i = 0; i < n.args.size(); ++i) {   // what is there once more, without a count
        if (counts.count(n.args[i])) continue;
        const ValueNode t = values_.node(n.args[i]);
        Factors factors;
        for (std::size_t j = 0; t.kind == ValueNode::Kind::product && j < t.args.size(); ++j) factors.emplace_back(t.args[j], t.weights[j]);
        if (t.kind != ValueNode::Kind::product) factors.emplace_back(n.args[i], 1);
        const auto same = terms.find({n.weights[i], std::move(factors)});
        if (same == terms.end()) continue;
        same->second.push_back(n.args[i]);
        counts[n.args[i]] = Poly(1);
    }
    std::vector<std::pair<double, Value>> made;
    std::set<Value> gone;
    for (auto& [key, list] : terms) {
        if (list.size() < 2) continue;
        Poly total;
        for (Value t : list) total = total + counts.at(t), gone.insert(t);
        Factors factors = key.second;
        factors.emplace_back(values_.index(total), 1);
        made.emplace_back(key.first, values_.product(std::move(factors)));
    }
    if (made.empty()) return v;
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        if (!gone.count(n.args[i])) made.emplace_back(n.weights[i], n.args[i]);
    }
    return values_.sum(n.number, std::move(made));
}

// Indices that are digits put together (shuffles, XOR of coordinates) have many forms; others are equal where their normal forms are.
bool Flow::same_index(const Poly& a, const Poly& b, const Condition& given) {
    if (a == b) return true;
    const Poly difference = a - b;
    const bool digits = std::any_of(difference.terms.begin(), difference.terms.end(), [&](const auto& term) {
        return term.first.size() == 1 && ints_.info(term.first[0]).kind == AtomInfo::Kind::quotient;
    });
    return digits && prover_.holds_given(given, equals(a, b));
}

bool Flow::agree(Value a, Value b, const Condition& given, int depth) {
    if (a == b) return true;
    {
        const ValueNode &m = values_.node(a), &n = values_.node(b);
        if (m.kind == ValueNode::Kind::index && n.kind == ValueNode::Kind::index) return prover_.holds_given(given, equals(m.indices[0], n.indices[0]));
        if (m.kind == ValueNode::Kind::sum && n.kind == ValueNode::Kind::sum && m.args.size() != n.args.size()) {
            const Value x = counts_collected(a), y = counts_collected(b);
            if (x != a || y != b) return agree(x, y, given, depth);
        }
        if (m.kind == ValueNode::Kind::element && n.kind == ValueNode::Kind::element && m.id == n.id && m.indices.size() == n.indices.size()) {
            for (std::size_t d = 0; d < m.indices.size(); ++d) {
                if (!same_index(m.indices[d], n.indices[d], given)) return false;
            }
            return true;
        }
        const bool alike = m.kind == n.kind && m.name == n.name && m.id == n.id && m.number == n.number && m.args.size() == n.args.size() && m.indices == n.indices && !m.args.empty();
        bool same = alike;
        if (alike && m.kind == ValueNode::Kind::reduce) {
            same = m.variable == n.variable && same_range(m, n) && agree(m.args[0], n.args[0], given, 0);
        } else if (alike && (m.kind == ValueNode::Kind::sum || m.kind == ValueNode::Kind::product || m.kind == ValueNode::Kind::extreme)) {
            // Their order is that of their numbers, which says nothing.
            std::vector<bool> taken(n.args.size(), false);
            for (std::size_t i = 0; i < m.args.size() && same; ++i) {
                same = false;
                for (std::size_t j = 0; j < n.args.size() && !same; ++j) {
                    if (taken[j] || (!m.weights.empty() && m.weights[i] != n.weights[j]) || !agree(m.args[i], n.args[j], given, 0)) continue;
                    taken[j] = same = true;
                }
            }
        } else if (alike && m.kind != ValueNode::Kind::where) {
            for (std::size_t i = 0; i < m.args.size() && same; ++i) same = agree(m.args[i], n.args[i], given, depth);
        } else {
            same = false;
        }
        if (same) return true;
    }
    for (Value v : {a, b}) {   // a short sum of constant length against the same written out
        const ValueNode& n = values_.node(v);
        auto first = n.lo.constant(), end = n.hi.constant();
        if (n.kind != ValueNode::Kind::reduce || n.name != "sum" || !first || !end || *end - *first > 32) continue;
        std::vector<std::pair<double, Value>> terms;
        for (std::int64_t i = *first; i < *end; ++i) terms.emplace_back(1.0, values_.replace(n.args[0], {{n.variable, Poly(i)}}));
        const Value spread = values_.sum(0, std::move(terms));
        if (spread == (v == a ? b : a)) return true;
    }
    if (depth == 0) return false;
    for (Value v : {a, b}) {
        const ValueNode& n = values_.node(v);
        if (n.kind != ValueNode::Kind::where) continue;
        for (const Condition& side : {n.condition, negated(n.condition)}) {
            prover_.push();
            prover_.assume(given);
            prover_.assume(side);
            const bool same = agree(values_.simplified(a), values_.simplified(b), both(given, side), depth - 1);
            prover_.pop();
            if (!same) return false;
        }
        return true;
    }
    return false;
}

// A window of constant width that moves further than it is wide (a vector of each chunk) does not grow: it is a term of its own in each iteration.
bool Flow::has_growing_range(Value v, Atom k) {
    const ValueNode& n = values_.node(v);
    if (n.kind == ValueNode::Kind::reduce && (ints_.mentions(n.lo, k) || ints_.mentions(n.hi, k))) {
        bool narrow = false;
        for (const Poly& first : ints_.alternatives(n.lo, AtomInfo::Kind::maximum)) {   // cut off or not
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
