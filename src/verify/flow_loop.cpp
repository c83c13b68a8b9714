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
    const bool from_digit = stride && *stride > 1 && lo.terms.size() == 1 && lo.terms.begin()->second == 1 &&
                            lo.terms.begin()->first.size() == 1 && prover_.holds(both(at_least(lo, Poly(0)), less(lo, step)));
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
        if (std::holds_alternative<ir::TeamSend>(inner.op)) frame.senders.insert(&inner);
    });
    std::map<const ir::Stmt*, std::pair<Value, std::vector<Poly>>> carried;  // by the last run of the body
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
            if (values_.node(used.first).kind == ValueNode::Kind::unknown) continue;  // nothing was taken from it
            if (now != writes_.end() && now->second.value == used.first && now->second.origin == used.second) continue;
            settled = false;
            if (++carried_attempts_[stmt] > 6) forgotten_writes_.insert(stmt);
        }
        return settled;
    };
    const Condition entered = less(lo, hi);
    if (unit && prover_.holds(at_least(lo + Poly(1), hi))) {  // one iteration or none: nothing has to be guessed
        State after = body(s);
        prover_.pop();
        for (int id : fragments) {
            s.roundings[id] = joined(rounding_of(id, s), rounding_of(id, after));
            const auto before = s.fragments.find(id);
            const Value was =
                before != s.fragments.end() ? before->second : values_.unknown("after the loop: " + k_.fragments[at(id)].name);
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
        value = values_.simplified(value);  // what no iteration has (an empty range, say) does not grow
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
            if (const auto masked = masked_as_before(result, values_.simplified(s.fragments.at(id)), k, lo);
                masked && starts_right(id, *masked))
                result = *masked;
        }
        if (const auto cut = cut_at_first(value, s.fragments.at(id), k, lo)) result = *cut;
        // A sum of integers may leave their type in some iteration, though not in the first.
        if (const target::DType type = k_.fragments[at(id)].dtype; !target::info(type).is_float && type != target::DType::Bool)
            result = values_.wrapped(type, result);
        prover_.pop();
        prover_.push();
        prover_.assume(at_least(Poly::of(k), lo));
        prover_.assume(less(Poly::of(k), hi));
        return result;
    };
    std::map<int, int> attempts;  // what hangs on another fragment of the loop can be guessed right only after that one: a value that goes
                                  // through n of them needs n
    const auto [own, first_time] = carried_.try_emplace(&f);
    if (first_time) own->second = carried_by(k_, f);
    const Carried& handed = own->second;
    auto hands_on = [](const std::set<int>& assigned, const std::set<int>& carried) {
        return std::any_of(assigned.begin(), assigned.end(), [&](int id) { return carried.count(id) > 0; });
    };
    if (unit && frame.writers.empty() && !hands_on(fragments, handed.fragments) &&
        !hands_on(scalars, handed.scalars)) {  // every iteration for itself
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
            head.roundings[id] = joined(rounding_of(id, s), rounding_of(id, once));
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
            for (int id : known_fragments) {
                const Rounding found = joined(rounding_of(id, head), rounding_of(id, next));
                if (found == rounding_of(id, head)) continue;
                head.roundings[id] = found;
                stable = false;
            }
            const std::map<Atom, Poly> advance = {{k, Poly::of(k) + Poly(1)}};
            std::vector<int> failed_fragments, failed_scalars;
            for (int id : known_fragments) {
                const Value claimed = head.fragments.at(id);
                const Value want = values_.replace(claimed, advance), got = next.fragments.at(id);
                auto holds = [&](Value claim) {
                    return agree_where_known(values_.replace(claim, advance), got) && starts_right(id, claim);
                };
                if (holds(claimed)) continue;
                // What is right inside a mask that does not move (rows of a tensor) may be wrong outside: then nothing is claimed there.
                if (const ValueNode n = values_.node(claimed);
                    n.kind == ValueNode::Kind::where && !ints_.mentions(n.condition, k) && values_.as_number(s.fragments.at(id))) {
                    bool weaker = false;
                    for (int side = 0; side < 2 && !weaker; ++side) {
                        if (values_.has_unknown(n.args[at(side)])) continue;
                        const Value nothing = values_.unknown("outside the mask");
                        const Value part =
                            side == 0 ? values_.where(n.condition, n.args[0], nothing) : values_.where(n.condition, nothing, n.args[1]);
                        if (!(weaker = holds(part))) continue;
                        head.fragments[id] = part;
                        stable = false;
                    }
                    if (weaker) continue;
                }
                failed_fragments.push_back(id);
                if (trace_) {
                    std::fprintf(stderr, "flow: %s is not inductive\n  guess   %s\n  next    %s\n  wanted  %s\n  initial %s\n",
                                 k_.fragments[at(id)].name.c_str(), show(claimed).c_str(), show(got).c_str(), show(want).c_str(),
                                 show(s.fragments.at(id)).c_str());
                }
            }
            for (int id : known_scalars) {
                const Poly guess = head.scalars.at(id);
                if (!(values_.simplified(ints_.replace(guess, advance)) == values_.simplified(next.scalars.at(id))))
                    failed_scalars.push_back(id);
            }
            std::vector<int> again;
            for (int id : failed_fragments) {
                stable = false;
                if (++attempts[id] <= 4 && failed_fragments.size() < known_fragments.size()) {
                    again.push_back(id);
                } else {
                    known_fragments.erase(id);
                    forget_fragment(id);
                }
            }
            if (!again.empty()) {  // one iteration from their start, with the others as they were found
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
                        relative =
                            relative_sum(once_more.fragments.at(id), once_more.fragments.at(other), head.fragments.at(other), k, lo, hi);
                    }
                    for (int other : known_fragments) {
                        if (other == id || relative || std::find(again.begin(), again.end(), other) != again.end()) continue;
                        relative =
                            relative_place(once_more.fragments.at(id), once_more.fragments.at(other), head.fragments.at(other), k, lo);
                    }
                    head.fragments[id] = relative && (values_.as_number(s.fragments.at(id)) == Coefficient(0) ||
                                                      values_.as_number(s.fragments.at(id)) == Coefficient(Values::identity("min")))
                                             ? *relative
                                             : guess(id, once_more.fragments.at(id));
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
        s.roundings[id] = rounding_of(id, head);
        const Value claimed = head.fragments.at(id);
        prover_.push();
        prover_.assume(negated(entered));
        const bool always = starts_right(id, claimed);
        prover_.pop();
        const Value after = values_.replace(claimed, {{k, end}});
        s.fragments[id] = values_.simplified(always ? after : values_.where(entered, after, s.fragments.at(id)));
    }
    for (int id : scalars) {
        s.scalars[id] = known_scalars.count(id) ? values_.simplified(ints_.replace(head.scalars.at(id), {{k, end}}))
                                                : Poly::of(ints_.fresh(k_.vars[at(id)].name));
    }
    in_tile_loop_ = outer_tile;
    tile_loop_end_ = outer_end;
    digits_.resize(mark);
}

}  // namespace tw::verify::detail
