// Loop summaries by guess and check.
#include "verify/flow_engine.h"

namespace tw::verify::detail {

void Flow::collect_assigned(const ir::Region& region, std::set<int>& fragments, std::set<int>& scalars) {
    ir::for_each_stmt(region, [&](const ir::Stmt& s) {
        if (auto* x = std::get_if<ir::Assign>(&s.op); x && !order_only_.scalars.count(x->var)) scalars.insert(x->var);
        ir::visit_uses(s, {.writes = [&](int f) { fragments.insert(f); }});
    });
}

// One loop, from the state before it to the state after it. Internal to this file: a nested class, so that it may use the engine.
class Flow::LoopSummary {
public:
    LoopSummary(Flow& flow, const ir::For& loop, State& s)
        : flow_(flow),
          loop_(loop),
          s_(s),
          variable_(flow.var_atom(loop.var)),
          lo_(flow.poly(loop.lo, s)),
          hi_(flow.poly(loop.hi, s)),
          step_(flow.poly(loop.step, s)),
          entered_(less(lo_, hi_)) {}
    void run();

private:
    void add_digit(bool unit, bool tile_loop);
    void look_into_body();
    void assume_iteration() {
        prover_.assume(at_least(Poly::of(variable_), lo_));
        prover_.assume(less(Poly::of(variable_), hi_));
    }

    State body(State from);
    State guessing(State from);
    bool writes_settled();

    void at_most_once();
    void by_induction(bool unit);

    // The guess at the head of iteration k, and what is claimed of it.
    void forget_fragment(int id) { head_.fragments[id] = values_.unknown("carried by the loop: " + fragment_name(id)); }
    void forget_scalar(int id) { head_.scalars[id] = fresh_scalar(id); }
    void forget_all();
    const Carried& handed_on();
    bool every_iteration_for_itself(const Carried& handed) const;
    bool starts_right(int id, Value guessed) {
        return flow_.agree_where_known(values_.replace(guessed, {{variable_, lo_}}), s_.fragments.at(id));
    }
    Value guess(int id, Value value);
    void guess_from_one_iteration(const Carried& handed);
    void guess_fragments(const State& once, const Carried& handed);
    void guess_scalars(const State& once);

    // The check: one run of the body from the guess. What fails is guessed again or forgotten.
    std::map<Atom, Poly> advance() const { return {{variable_, Poly::of(variable_) + Poly(1)}}; }
    bool inductive();
    bool roundings_settled(const State& next);
    bool holds(int id, Value claim, Value got) {
        return flow_.agree_where_known(values_.replace(claim, advance()), got) && starts_right(id, claim);
    }
    bool claim_less(int id, Value got);
    std::vector<int> failed_fragments(const State& next, bool& stable);
    std::vector<int> failed_scalars(const State& next);
    void guess_again(const std::vector<int>& again);
    std::optional<Value> relative_to_others(int id, const State& once_more, const std::vector<int>& again);

    void after_the_loop();

    std::string fragment_name(int id) const { return flow_.k_.fragments[at(id)].name; }
    Poly fresh_scalar(int id) { return Poly::of(ints_.fresh(flow_.k_.vars[at(id)].name)); }

    Flow& flow_;
    Integers& ints_ = flow_.ints_;
    Prover& prover_ = flow_.prover_;
    Values& values_ = flow_.values_;
    const ir::For& loop_;
    State& s_;             // before the loop, and at last after it
    const Atom variable_;  // the loop's, k in what follows
    const Poly lo_, hi_, step_;
    const Condition entered_;
    std::set<int> fragments_, scalars_;  // that the body assigns
    LoopFrame frame_;
    std::map<const ir::Stmt*, std::pair<Value, std::vector<Poly>>> carried_;  // by the last run of the body
    State head_;
    std::set<int> known_fragments_, known_scalars_;
    std::map<int, int> attempts_;  // what hangs on another fragment of the loop can be guessed right only after that one: a value that goes
                                   // through n of them needs n
};

void Flow::run(const ir::For& f, const ir::Stmt& stmt, State& s) {
    for (const ir::Expr& bound : {f.lo, f.hi, f.step}) check_reads(bound, stmt, s);
    LoopSummary(*this, f, s).run();
}

void Flow::LoopSummary::run() {
    flow_.collect_assigned(loop_.body, fragments_, scalars_);
    const bool unit = step_.constant() == 1;
    // A persistent loop visits every t in [0, hi) once over all blocks exactly when it is block, block + grid, ...
    const bool whole_grid = lo_ == Poly::of(flow_.block_[0]) && step_ == Poly::of(flow_.grid_[0]) && flow_.k_.persistent;
    const bool tile_loop = !unit && flow_.in_tile_loop_ < 0 && whole_grid;
    if (whole_grid) flow_.persistent_.insert(loop_.var);
    const auto outer_digits = flow_.digits_.size();
    add_digit(unit, tile_loop);
    const Atom outer_tile = flow_.in_tile_loop_;
    const Poly outer_end = flow_.tile_loop_end_;
    if (tile_loop) {
        flow_.in_tile_loop_ = variable_;
        flow_.tile_loop_end_ = hi_;
    }
    prover_.push();
    assume_iteration();
    look_into_body();
    if (unit && prover_.holds(at_least(lo_ + Poly(1), hi_))) at_most_once();
    else if (tile_loop && flow_.recording_ && !flow_.behind_ &&
             flow_.runs_behind(loop_, s_, fragments_, scalars_, entered_, [this](State from) { return body(std::move(from)); }))
        prover_.pop();
    else by_induction(unit);
    flow_.in_tile_loop_ = outer_tile;
    flow_.tile_loop_end_ = outer_end;
    flow_.digits_.resize(outer_digits);
}

// A digit counts from 0; a loop that does not gets a symbol of its own, which no index can use (but see count_from_zero).
void Flow::LoopSummary::add_digit(bool unit, bool tile_loop) {
    const auto stride = step_.constant();
    const bool from_digit = stride && *stride > 1 && lo_.terms.size() == 1 && lo_.terms.begin()->second == 1 &&
                            lo_.terms.begin()->first.size() == 1 && prover_.holds(both(at_least(lo_, Poly(0)), less(lo_, step_)));
    if (unit && lo_.constant() == 0) flow_.digits_.push_back({variable_, hi_, false});
    else if (unit) flow_.digits_.push_back({ints_.fresh("iteration"), hi_ - lo_, false, -1, 1, variable_, lo_});
    else if (from_digit) flow_.digits_.push_back({variable_, hi_, false, lo_.terms.begin()->first[0], *stride});
    else flow_.digits_.push_back({tile_loop ? variable_ : ints_.fresh("iteration"), hi_, tile_loop});
}

void Flow::LoopSummary::look_into_body() {
    frame_.variable = loop_.var;
    frame_.end = hi_;
    ir::for_each_stmt(loop_.body, [&](const ir::Stmt& inner) {
        if (flow_.destination(&inner) >= 0) frame_.writers.insert(&inner);
        if (std::holds_alternative<ir::TeamSend>(inner.op)) frame_.senders.insert(&inner);
    });
}

State Flow::LoopSummary::body(State from) {
    from.scalars[loop_.var] = Poly::of(variable_);
    prover_.push();
    frame_.run_serial = ++flow_.serial_;
    flow_.loop_frames_.push_back(frame_);
    flow_.execute(loop_.body, from);
    carried_ = std::move(flow_.loop_frames_.back().carried);
    flow_.loop_frames_.pop_back();
    prover_.pop();
    return from;
}

// For a guess from a start that is not that of iteration k: a difference of infinities shows when the guess is checked.
State Flow::LoopSummary::guessing(State from) {
    ++flow_.guessing_;
    State after = body(std::move(from));
    --flow_.guessing_;
    return after;
}

// Shared memory that the body reads from an earlier iteration: was it what the body writes?
bool Flow::LoopSummary::writes_settled() {
    bool settled = true;
    for (const auto& [stmt, used] : carried_) {
        const auto now = flow_.writes_.find(stmt);
        if (values_.node(used.first).kind == ValueNode::Kind::unknown) continue;  // nothing was taken from it
        if (now != flow_.writes_.end() && now->second.value == used.first && now->second.origin == used.second) continue;
        settled = false;
        if (++flow_.carried_attempts_[stmt] > 6) flow_.forgotten_writes_.insert(stmt);
    }
    return settled;
}

// One iteration or none: nothing has to be guessed.
void Flow::LoopSummary::at_most_once() {
    State after = body(s_);
    prover_.pop();
    for (int id : fragments_) {
        const auto made = after.fragments.find(id);
        if (made == after.fragments.end()) continue;  // in a branch that is never taken
        s_.roundings[id] = joined(rounding_of(id, s_), rounding_of(id, after));
        const auto before = s_.fragments.find(id);
        const Value was = before != s_.fragments.end() ? before->second : values_.unknown("after the loop: " + fragment_name(id));
        s_.fragments[id] = values_.simplified(values_.where(entered_, values_.replace(made->second, {{variable_, lo_}}), was));
    }
    for (int id : scalars_) {
        const auto made = after.scalars.find(id);
        if (made == after.scalars.end()) continue;
        const auto before = s_.scalars.find(id);
        const Poly was = before != s_.scalars.end() ? before->second : fresh_scalar(id);
        s_.scalars[id] = values_.simplified(ints_.choice(entered_, ints_.replace(made->second, {{variable_, lo_}}), was));
    }
}

void Flow::LoopSummary::by_induction(bool unit) {
    const bool recording = flow_.recording_;
    // What inner, hypothetical runs of this loop read is no matter of the loops around it.
    const std::vector<LoopFrame> outer_frames = flow_.loop_frames_;
    head_ = s_;
    head_.scalars[loop_.var] = Poly::of(variable_);
    flow_.recording_ = false;
    if (const Carried& handed = handed_on(); !unit || every_iteration_for_itself(handed)) {
        forget_all();
    } else {
        guess_from_one_iteration(handed);
        while (!inductive()) {
        }
    }
    flow_.recording_ = recording;
    flow_.loop_frames_ = outer_frames;
    body(head_);
    prover_.pop();
    after_the_loop();
}

void Flow::LoopSummary::forget_all() {
    for (int id : fragments_) forget_fragment(id);
    for (int id : scalars_) forget_scalar(id);
}

const Carried& Flow::LoopSummary::handed_on() {
    const auto [own, first_time] = flow_.carried_.try_emplace(&loop_);
    if (first_time) own->second = carried_by(flow_.k_, loop_);
    return own->second;
}

bool Flow::LoopSummary::every_iteration_for_itself(const Carried& handed) const {
    auto hands_on = [](const std::set<int>& assigned, const std::set<int>& carried) {
        return std::any_of(assigned.begin(), assigned.end(), [&](int id) { return carried.count(id) > 0; });
    };
    return frame_.writers.empty() && !hands_on(fragments_, handed.fragments) && !hands_on(scalars_, handed.scalars);
}

// From what one iteration made of a fragment, what it is at the head of iteration k.
Value Flow::LoopSummary::guess(int id, Value value) {
    value = values_.simplified(value);  // what no iteration has (an empty range, say) does not grow
    // It must also make sense at k = hi, so it is formed without the facts of an iteration.
    prover_.pop();
    prover_.push();
    prover_.assume(at_least(Poly::of(variable_), lo_));
    Value result = values_.widened(value, variable_, lo_);
    if (const auto each = flow_.one_term_each(value, values_.simplified(s_.fragments.at(id)), variable_, lo_)) {
        result = *each;
        // Made anew in every iteration, as code before the loop made the first: what the iteration before left.
        if (const Value initial = values_.simplified(s_.fragments.at(id)); !values_.as_number(initial)) {
            const Value before = values_.replace(value, {{variable_, Poly::of(variable_) - Poly(1)}});
            const auto masked = flow_.masked_as_before(before, initial, variable_, lo_);
            if (starts_right(id, before)) result = before;
            else if (masked && starts_right(id, *masked)) result = *masked;
        }
    } else if (values_.mentions(result, variable_)) {
        result = values_.simplified(flow_.within_masks(result, s_.fragments.at(id), variable_));
    }
    if (!starts_right(id, result)) {
        if (const auto masked = flow_.masked_as_before(result, values_.simplified(s_.fragments.at(id)), variable_, lo_);
            masked && starts_right(id, *masked))
            result = *masked;
    }
    if (const auto cut = flow_.cut_at_first(value, s_.fragments.at(id), variable_, lo_)) result = *cut;
    // A sum of integers may leave their type in some iteration, though not in the first.
    if (const target::DType type = flow_.k_.fragments[at(id)].dtype; !target::info(type).is_float && type != target::DType::Bool)
        result = values_.wrapped(type, result);
    prover_.pop();
    prover_.push();
    assume_iteration();
    return result;
}

void Flow::LoopSummary::guess_from_one_iteration(const Carried& handed) {
    const State once = guessing(s_);
    guess_fragments(once, handed);
    guess_scalars(once);
}

void Flow::LoopSummary::guess_fragments(const State& once, const Carried& handed) {
    std::map<int, Value> guessed;
    for (int id : fragments_) {
        const auto after = once.fragments.find(id);
        if (!s_.fragments.count(id) || after == once.fragments.end() || !handed.fragments.count(id)) {
            forget_fragment(id);
            continue;
        }
        guessed[id] = after->second;
        known_fragments_.insert(id);
        head_.roundings[id] = joined(rounding_of(id, s_), rounding_of(id, once));
    }
    for (const auto& [id, value] : guessed) head_.fragments[id] = guess(id, value);
}

// What an iteration adds, k - lo times.
void Flow::LoopSummary::guess_scalars(const State& once) {
    for (int id : scalars_) {
        const auto before = s_.scalars.find(id);
        const auto after = once.scalars.find(id);
        if (before == s_.scalars.end() || after == once.scalars.end()) {
            forget_scalar(id);
            continue;
        }
        const Poly difference = after->second - before->second;
        if (ints_.mentions(difference, variable_)) {
            forget_scalar(id);
            continue;
        }
        head_.scalars[id] = before->second + difference * (Poly::of(variable_) - lo_);
        known_scalars_.insert(id);
    }
}

// Does the body take what is claimed of iteration k to what is claimed of k + 1? What fails is guessed again, or forgotten.
bool Flow::LoopSummary::inductive() {
    const State next = body(head_);
    bool stable = writes_settled();
    if (!roundings_settled(next)) stable = false;
    const std::vector<int> fragments = failed_fragments(next, stable), scalars = failed_scalars(next);
    std::vector<int> again;
    for (int id : fragments) {
        if (++attempts_[id] <= 4 && fragments.size() < known_fragments_.size()) {
            again.push_back(id);
        } else {
            known_fragments_.erase(id);
            forget_fragment(id);
        }
    }
    if (!again.empty()) guess_again(again);
    for (int id : scalars) {
        known_scalars_.erase(id);
        forget_scalar(id);
    }
    return stable && fragments.empty() && scalars.empty();
}

bool Flow::LoopSummary::roundings_settled(const State& next) {
    bool settled = true;
    for (int id : known_fragments_) {
        const Rounding found = joined(rounding_of(id, head_), rounding_of(id, next));
        if (found == rounding_of(id, head_)) continue;
        head_.roundings[id] = found;
        settled = false;
    }
    return settled;
}

// What is right inside a mask that does not move (rows of a tensor) may be wrong outside: then nothing is claimed there.
bool Flow::LoopSummary::claim_less(int id, Value got) {
    const ValueNode n = values_.node(head_.fragments.at(id));
    if (n.kind != ValueNode::Kind::where || ints_.mentions(n.condition, variable_) || !values_.as_number(s_.fragments.at(id))) return false;
    for (int side = 0; side < 2; ++side) {
        if (values_.has_unknown(n.args[at(side)])) continue;
        const Value nothing = values_.unknown("outside the mask");
        const Value part = side == 0 ? values_.where(n.condition, n.args[0], nothing) : values_.where(n.condition, nothing, n.args[1]);
        if (!holds(id, part, got)) continue;
        head_.fragments[id] = part;
        return true;
    }
    return false;
}

std::vector<int> Flow::LoopSummary::failed_fragments(const State& next, bool& stable) {
    std::vector<int> failed;
    for (int id : known_fragments_) {
        const Value claimed = head_.fragments.at(id), got = next.fragments.at(id);
        if (holds(id, claimed, got)) continue;
        if (claim_less(id, got)) {
            stable = false;
            continue;
        }
        failed.push_back(id);
        if (flow_.trace_) {
            std::fprintf(stderr, "flow: %s is not inductive\n  guess   %s\n  next    %s\n  wanted  %s\n  initial %s\n",
                         fragment_name(id).c_str(), flow_.show(claimed).c_str(), flow_.show(got).c_str(),
                         flow_.show(values_.replace(claimed, advance())).c_str(), flow_.show(s_.fragments.at(id)).c_str());
        }
    }
    return failed;
}

std::vector<int> Flow::LoopSummary::failed_scalars(const State& next) {
    std::vector<int> failed;
    for (int id : known_scalars_) {
        const Poly claimed = head_.scalars.at(id);
        if (!(values_.simplified(ints_.replace(claimed, advance())) == values_.simplified(next.scalars.at(id)))) failed.push_back(id);
    }
    return failed;
}

// From one iteration from their start, with the others as they were found.
void Flow::LoopSummary::guess_again(const std::vector<int>& again) {
    State from = head_;
    for (int id : again) {
        Value start = s_.fragments.at(id);
        for (int other : known_fragments_) {
            if (other != id) start = flow_.rebased(start, s_.fragments.at(other), head_.fragments.at(other));
        }
        from.fragments[id] = start;
    }
    const State once_more = guessing(from);
    for (int id : again) {
        const std::optional<Value> relative = relative_to_others(id, once_more, again);
        const auto start = values_.as_number(s_.fragments.at(id));
        head_.fragments[id] = relative && (start == Coefficient(0) || start == Coefficient(Values::identity("min")))
                                  ? *relative
                                  : guess(id, once_more.fragments.at(id));
    }
}

// A fragment that follows another one of the loop: a sum that is scaled when a maximum grows, a place that goes with it.
std::optional<Value> Flow::LoopSummary::relative_to_others(int id, const State& once_more, const std::vector<int>& again) {
    const Value once = once_more.fragments.at(id);
    auto first_of = [&](const auto& relative) -> std::optional<Value> {
        for (int other : known_fragments_) {
            if (other == id || std::find(again.begin(), again.end(), other) != again.end()) continue;
            if (const auto found = relative(once_more.fragments.at(other), head_.fragments.at(other))) return found;
        }
        return std::nullopt;
    };
    if (const auto sum = first_of([&](Value next_top, Value top) { return flow_.relative_sum(once, next_top, top, variable_, lo_, hi_); }))
        return sum;
    return first_of([&](Value next_top, Value top) { return flow_.relative_place(once, next_top, top, variable_, lo_); });
}

// The guess at k = max(lo, hi). It was checked for loops that run; one that does not leaves what was there.
void Flow::LoopSummary::after_the_loop() {
    const Poly end = values_.simplified(ints_.maximum(lo_, hi_));
    for (int id : fragments_) {
        if (!known_fragments_.count(id)) {
            s_.fragments[id] = values_.unknown("after the loop: " + fragment_name(id));
            continue;
        }
        s_.roundings[id] = rounding_of(id, head_);
        const Value claimed = head_.fragments.at(id);
        prover_.push();
        prover_.assume(negated(entered_));
        const bool always = starts_right(id, claimed);
        prover_.pop();
        const Value after = values_.replace(claimed, {{variable_, end}});
        s_.fragments[id] = values_.simplified(always ? after : values_.where(entered_, after, s_.fragments.at(id)));
    }
    for (int id : scalars_)
        s_.scalars[id] =
            known_scalars_.count(id) ? values_.simplified(ints_.replace(head_.scalars.at(id), {{variable_, end}})) : fresh_scalar(id);
}

}  // namespace tw::verify::detail
