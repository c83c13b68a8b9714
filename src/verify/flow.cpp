// Statements and control of the abstract interpreter (flow_engine.h).
#include <cmath>

#include "ir/promise.h"
#include "verify/flow_engine.h"
#include "verify/work.h"

namespace tw::verify::detail {

Integers::Leaf Flow::leaf(const State& s) {
    return [this, &s](const ir::ExprNode& n) -> Poly {
        switch (n.kind) {
            case ir::ExprKind::size: return Poly::of(size_atoms_[at(n.id)]);
            case ir::ExprKind::block_index: return block_index_[n.id];
            case ir::ExprKind::grid_size: return grid_size_[n.id];
            case ir::ExprKind::cluster_rank: return Poly::of(rank_);
            case ir::ExprKind::var: {
                auto it = s.scalars.find(n.id);
                if (it != s.scalars.end()) return it->second;
                return Poly::of(var_atom(n.id));
            }
            default: return Poly::of(ints_.fresh("unset"));
        }
    };
}

std::string Flow::show(Value v) const {
    std::string s = values_.text(v, [this](int id) { return tensor_name(id); });
    return s.size() > 600 && !trace_ ? s.substr(0, 600) + "..." : s;
}

void Flow::oblige(const char* kind, const char* code, std::string text, const ir::Stmt& s, bool proved, std::string reason,
                  const std::function<bool()>& blind, std::vector<std::string> used) {
    if (!recording_) return;
    Obligation o;
    o.kind = kind;
    o.code = code;
    o.text = std::move(text);
    o.loc = s.loc;
    o.status = proved ? Status::proved : Status::not_proved;
    o.prover = proved ? (prover_.last().empty() ? "affine" : prover_.last()) : "";
    const double now = processor_milliseconds();
    o.milliseconds = now - last_;
    last_ = now;
    if (!proved) o.reason = std::move(reason);
    const bool unreachable = proved && !impossible_ && !path_.empty() && prover_.contradictory();
    if (proved && (impossible_ || unreachable || (blind && blind()))) {
        o.status = Status::vacuous;
        o.reason = impossible_   ? "the assumptions exclude each other: no launch satisfies them"
                   : unreachable ? "no launch reaches it: the conditions around it exclude each other"
                                 : "it holds whatever its operands are, so it says nothing about this kernel";
    }
    o.used = std::move(used);
    for (const ir::Assumption& a : k_.assumptions) o.used.push_back("precondition: " + a.text);
    o.used.insert(o.used.end(), promised_.begin(), promised_.end());
    if (!reads_checked_.empty())
        o.used.push_back("axiom: an element of a tensor that the kernel does not write is the same value whenever it is read");
    result_.obligations.push_back(std::move(o));
}

void Flow::execute(const ir::Region& region, State& s) {
    for (const ir::Stmt& stmt : region) {
        spend(100);
        working_on(stmt.loc);
        check_divisors(stmt, s);
        std::visit([&](const auto& op) { run(op, stmt, s); }, stmt.op);
    }
}

Atom Flow::instance(const ir::Role& r) {
    return ints_.symbol(k_.vars[at(r.instance_var)].name + "$" + std::to_string(r.instance_var), 0, r.instances - 1);
}

void Flow::run(const ir::Role& r, const ir::Stmt&, State& s) {
    State inner = s;
    const auto mark = digits_.size();
    if (r.instance_var >= 0) {
        const Atom a = instance(r);
        inner.scalars[r.instance_var] = Poly::of(a);
        digits_.push_back({a, Poly(r.instances), false});
    } else if (r.instances > 1) {
        digits_.push_back({ints_.fresh("instance", 0, r.instances - 1), Poly(r.instances), false});
    }
    execute(r.body, inner);
    digits_.resize(mark);
}

// A flag set on one of two paths, compared with a number, is the condition of that path.
Condition Flow::decided_by_choice(const Condition& c) const {
    if (c.kind != Condition::Kind::zero && c.kind != Condition::Kind::nonzero) return c;
    Atom flag = -1;
    for (const auto& [m, k] : c.poly.terms) {
        if (m.empty()) continue;
        if (m.size() != 1 || flag >= 0 || ints_.info(m[0]).kind != AtomInfo::Kind::choice) return c;
        flag = m[0];
    }
    if (flag < 0) return c;
    const AtomInfo& info = ints_.info(flag);
    const auto then = info.args[0].constant(), otherwise = info.args[1].constant();
    if (!then || !otherwise) return c;
    const std::int64_t factor = c.poly.linear_in(flag).value_or(0), rest = c.poly.constant_part();
    auto holds = [&](std::int64_t v) { return (factor * v + rest == 0) == (c.kind == Condition::Kind::zero); };
    Condition result;
    if (holds(*then) && holds(*otherwise)) return result;
    if (holds(*then)) return info.condition;
    if (holds(*otherwise)) return negated(info.condition);
    result.kind = Condition::Kind::no;
    return result;
}

// Drops the digit that `c` fixes to one of its values; false where `c` is another kind of condition.
bool Flow::pin_digit(const Condition& c) {
    if (c.kind != Condition::Kind::zero) return false;
    Atom atom = -1;
    std::int64_t factor = 0, constant = 0;
    for (const auto& [monomial, weight] : c.poly.terms) {
        if (monomial.empty()) {
            constant = weight;
        } else {
            if (monomial.size() != 1 || atom >= 0 || (weight != 1 && weight != -1)) return false;
            atom = monomial[0];
            factor = weight;
        }
    }
    auto digit = std::find_if(digits_.begin(), digits_.end(), [&](const Digit& d) { return d.atom == atom && !d.tile_loop; });
    if (digit == digits_.end()) return false;
    const std::int64_t value = -constant * factor;
    // For every launch, not only for those in which a block or an iteration comes this far.
    Prover launch(ints_);
    State empty;
    for (const ir::Assumption& a : k_.assumptions) launch.assume(ints_.condition_from(a.condition, leaf(empty)));
    if (value < 0 || !launch.holds(less(Poly(value), digit->extent))) return false;
    digits_.erase(digit);
    return true;
}

// The value that both of two ways lead to; unknown where they may differ.
Value Flow::common(Value usual, Value rare) {
    usual = values_.simplified(usual), rare = values_.simplified(rare);
    const ValueNode n = values_.node(usual);
    if (!n.unknown_inside && agree(usual, rare, Condition{}, 3)) return usual;
    if (n.kind == ValueNode::Kind::where) {  // the same inside the tensor, perhaps
        Value sides[2];
        for (int side = 0; side < 2; ++side) {
            prover_.push();
            prover_.assume(side == 0 ? n.condition : negated(n.condition));
            sides[side] = common(n.args[at(side)], rare);
            prover_.pop();
        }
        return values_.where(n.condition, sides[0], sides[1]);
    }
    return values_.unknown("another value in the branch of tw.any");
}

void Flow::run(const ir::If& i, const ir::Stmt& stmt, State& s) {
    if (order_only_.branches.count(&stmt)) return;
    if (i.vote >= 0) return run_vote(i, s);
    check_reads(i.condition, stmt, s);
    const Condition c = decided_by_choice(ints_.condition_from(i.condition, leaf(s)));
    if (c.is_yes() && behind_ && (behind_->inside || prover_.holds(behind_->entered))) {  // there is something to store
        prover_.push();
        assume_previous(*behind_);
        execute(i.then, s);
        return prover_.pop();
    }
    if (c.is_yes()) return execute(i.then, s);
    if (c.is_no()) return execute(i.otherwise, s);
    State yes = s, no = s;
    const bool always = prover_.holds(c), never = !always && prover_.holds(negated(c));
    // `if digit == constant`: one of the digit's values takes the branch, so what it stores is stored without that digit.
    const std::vector<Digit> digits = digits_;
    const bool pinned = !always && pin_digit(c);
    auto enter = [&](const Condition& taken, bool open) {
        PathStep step{taken, prover_.facts().size(), 0, open};
        prover_.push();
        prover_.assume(taken);
        step.last_fact = prover_.facts().size();
        path_.push_back(std::move(step));
    };
    enter(c, !always && !pinned);
    if (behind_ && !behind_->inside) {  // the code after such a loop asks whether there was an iteration, and then uses what it left
        if (prover_.holds(behind_->entered)) assume_previous(*behind_);
        for (auto& [id, p] : yes.scalars) p = values_.simplified(p);
        for (auto& [id, v] : yes.fragments) v = values_.simplified(v);
    }
    conditional_ += !always && !pinned;
    execute(i.then, yes);
    path_.pop_back();
    conditional_ -= !always && !pinned;
    digits_ = digits;
    prover_.pop();
    enter(negated(c), !never);
    conditional_ += !never;
    execute(i.otherwise, no);
    path_.pop_back();
    conditional_ -= !never;
    prover_.pop();
    // A branch may be a shorter way to what the other one makes in general (a mask left out where it holds for all): then what the
    // general one makes is the value of both.
    auto joined = [&](Value taken, Value not_taken) {
        if (taken == not_taken) return taken;
        for (const bool side : {true, false}) {
            prover_.push();
            prover_.assume(side ? c : negated(c));
            const Value here = values_.simplified(taken), there = values_.simplified(not_taken);
            const bool same = !values_.has_unknown(here) && !values_.has_unknown(there) && agree(here, there, Condition{}, 1);
            prover_.pop();
            if (same) return side ? not_taken : taken;
        }
        return values_.where(c, taken, not_taken);
    };
    for (auto& [id, v] : yes.fragments) {
        s.roundings[id] = verify::joined(rounding_of(id, yes), rounding_of(id, no));
        auto it = no.fragments.find(id);
        s.fragments[id] = it == no.fragments.end() ? values_.unknown("set in one branch only") : joined(v, it->second);
    }
    for (auto& [id, v] : no.fragments) {
        if (!yes.fragments.count(id)) s.fragments[id] = values_.unknown("set in one branch only");
    }
    for (auto& [id, p] : yes.scalars) {
        auto it = no.scalars.find(id);
        s.scalars[id] = it == no.scalars.end() ? Poly::of(ints_.fresh("unset")) : ints_.choice(c, p, it->second);
    }
}

std::vector<Condition> Flow::not_implied_by(const Condition& written) {
    Prover without(ints_);  // the facts that hold whether or not the branches are taken
    const auto& facts = prover_.facts();
    for (std::size_t i = 0; i < facts.size(); ++i) {
        const bool by_branch =
            std::any_of(path_.begin(), path_.end(), [&](const PathStep& p) { return p.open && i >= p.first_fact && i < p.last_fact; });
        if (!by_branch) without.assume(facts[i]);
    }
    without.assume(written);
    std::vector<Condition> rest;
    for (const PathStep& p : path_) {
        if (p.open && !without.holds(p.condition)) rest.push_back(p.condition);
    }
    return rest;
}

void Flow::check_reads(const ir::Expr& e, const ir::Stmt& stmt, const State& s) {
    if (!recording_) return;
    if (e.kind() == ir::ExprKind::element) {
        const ir::Tensor& t = k_.tensors[at(e->id)];
        if (t.is_output)
            oblige("in bounds", "TW1003", "the element of " + t.name + " that is read is the same for every thread", stmt, false,
                   "the kernel writes " + t.name + ": two reads of one element may differ", {});
        std::vector<Poly> index;
        for (const ir::Expr& i : e->args) index.push_back(poly(i, s));
        const Atom read = ints_.element(e->id, index).terms.begin()->first[0];
        if (reads_checked_.emplace(&stmt, read).second) {
            Condition need;
            for (std::size_t d = 0; d < index.size(); ++d)
                need = both(need, both(at_least(index[d], Poly(0)), less(index[d], poly(t.dims[d], s))));
            oblige("in bounds", "TW1003", "the element of " + t.name + " that is read exists", stmt, prover_.holds(need),
                   "could not show " + ints_.text(need), [&] {
                       Condition any;
                       for (const ir::Expr& extent : t.dims)
                           any = both(any, both(at_least(anything(), Poly(0)), less(anything(), poly(extent, s))));
                       return prover_.holds(any);
                   });
        }
    }
    for (const ir::Expr& a : e->args) check_reads(a, stmt, s);
}

// The integer algebra divides by whatever it is given: that it is not 0 is shown here. What comes from a tile's number is evaluated for
// every tile (flow_tile_order.cpp), where a division by 0 has no value.
void Flow::check_divisors(const ir::Stmt& stmt, const State& s) {
    if (!recording_) return;
    const std::function<void(const ir::Expr&)> look = [&](const ir::Expr& e) {
        const bool divides = e.kind() == ir::ExprKind::floor_div || e.kind() == ir::ExprKind::mod;
        if (divides && !e->args[1].as_constant()) check_divisor(poly(e->args[1], s), stmt);
        for (const ir::Expr& a : e->args) look(a);
    };
    ir::visit_uses(stmt, {.expr = look, .synchronises = look});
}

void Flow::check_divisor(const Poly& divisor, const ir::Stmt& stmt) {
    if (divisor.constant() || (in_tile_loop_ >= 0 && derived_from_tile(divisor)) || !divisors_checked_.emplace(&stmt, divisor).second)
        return;
    prover_.push();
    for (Atom size : values_.sizes) prover_.assume(at_least(Poly::of(size), Poly(1)));
    const bool proved = prover_.holds(at_least(divisor, Poly(1))) || prover_.holds(at_least(Poly(-1), divisor));
    prover_.pop();
    oblige("divisor", "TW1004", "the divisor " + ints_.text(divisor) + " is not 0", stmt, proved,
           "could not show that it is not 0 for all sizes: say so with tw.assume(...)", {});
}

void Flow::run(const ir::Assign& a, const ir::Stmt& stmt, State& s) {
    if (order_only_.scalars.count(a.var)) return;
    check_reads(a.value, stmt, s);
    const Poly value = values_.simplified(poly(a.value, s));
    // Tile coordinates derived from a persistent loop's index become symbols with a definition. What stands beside them (the
    // rank in a cluster) and a common factor stay outside: bm = 2 * symbol + rank. What is affine in such symbols (the first row of
    // a tile) needs no name of its own.
    // A variable with several assignments (a counter) has several values: one symbol cannot stand for them, nor for what is made of one.
    if (in_tile_loop_ >= 0 && assigned_once(a.var) && !made_of_counters(value) && derived_from_tile(value) &&
        !(value == Poly::of(in_tile_loop_)) && !affine_in_tile_symbols(value)) {
        Poly beside, core;
        std::int64_t factor = 0;
        for (const auto& [m, k] : value.terms) {
            const bool simple =
                m.size() == 1 && ints_.info(m[0]).kind == AtomInfo::Kind::symbol && ints_.info(m[0]).lower && ints_.info(m[0]).upper;
            (simple ? beside : core).terms[m] = k;
            if (!simple) factor = std::__gcd(factor, k < 0 ? -k : k);
        }
        for (auto& [m, k] : core.terms) k /= factor;
        if (core.terms.size() == 1 && core.terms.begin()->first.size() == 1 &&
            (core == Poly::of(in_tile_loop_) || tile_definition_.count(core.terms.begin()->first[0]))) {
            s.scalars[a.var] = value;
            return;
        }
        // Its range is part of the lemma on the tile order (tiles_are_a_bijection), not of every query.
        const Atom name = ints_.symbol(k_.vars[at(a.var)].name + "$" + std::to_string(a.var) + "@tile", 0);
        define_tile(name, core);
        assume_range_of(name, core);
        s.scalars[a.var] = beside + Poly(factor) * Poly::of(name);
        return;
    }
    s.scalars[a.var] = value;
}

bool Flow::assigned_once(int var) {
    if (assignments_.empty()) {
        assignments_.assign(k_.vars.size(), 0);
        ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
            if (auto* a = std::get_if<ir::Assign>(&s.op)) ++assignments_[at(a->var)];
        });
    }
    return assignments_[at(var)] == 1;
}

bool Flow::made_of_counters(const Poly& p) {
    std::vector<Atom> atoms;
    ints_.collect(p, atoms);
    return std::any_of(atoms.begin(), atoms.end(), [&](Atom a) {
        return ints_.info(a).fresh && !ints_.info(a).lower &&
               std::none_of(digits_.begin(), digits_.end(), [&](const Digit& d) { return d.atom == a; });
    });
}

bool Flow::affine_in_tile_symbols(const Poly& p) {
    return std::all_of(p.terms.begin(), p.terms.end(), [&](const auto& term) {
        if (term.first.empty()) return true;
        if (term.first.size() != 1) return false;
        const AtomInfo info = ints_.info(term.first[0]);
        // An element of an index tensor is a name already.
        if (info.kind == AtomInfo::Kind::element)
            return std::all_of(info.args.begin(), info.args.end(),
                               [&](const Poly& i) { return i == Poly::of(in_tile_loop_) || affine_in_tile_symbols(i); });
        return tile_definition_.count(term.first[0]) > 0 || !derived_from_tile(Poly::of(term.first[0]));
    });
}

std::optional<Poly> Flow::end_in_tile_loop(const Poly& p) {
    if (p == Poly::of(in_tile_loop_)) return tile_loop_end_;
    if (p.terms.size() != 1 || p.terms.begin()->second != 1 || p.terms.begin()->first.size() != 1) return std::nullopt;
    const AtomInfo info = ints_.info(p.terms.begin()->first[0]);
    if (auto definition = tile_definition_.find(p.terms.begin()->first[0]); definition != tile_definition_.end())
        return end_in_tile_loop(definition->second);
    if (info.kind != AtomInfo::Kind::quotient || info.args[1].terms.size() != 1) return std::nullopt;
    const auto end = end_in_tile_loop(info.args[0]);
    if (!end) return std::nullopt;
    // 0 <= n < q * d, so d is not 0 and n // d < q.
    const auto& [divisor, factor] = *info.args[1].terms.begin();
    Poly q;
    for (const auto& [monomial, coefficient] : end->terms) {
        if (coefficient % factor != 0) return std::nullopt;
        Monomial rest = monomial;
        for (Atom a : divisor) {
            auto it = std::find(rest.begin(), rest.end(), a);
            if (it == rest.end()) return std::nullopt;
            rest.erase(it);
        }
        q.terms[rest] = coefficient / factor;
    }
    return prover_.holds(at_least(info.args[1], Poly(0))) ? std::optional(q) : std::nullopt;
}

// Quotients and remainders of the tile loop's index: 0 <= t < q * d makes t // d < q, and anything % d < d.
void Flow::assume_range_of(Atom symbol, const Poly& definition) {
    if (auto end = end_in_tile_loop(definition)) prover_.assume(less(Poly::of(symbol), *end));
    if (const auto all = ints_.alternatives(definition, AtomInfo::Kind::minimum);
        all.size() > 1) {  // the least of several: beyond none, one of them, and positive if all are
        const bool positive = std::all_of(all.begin(), all.end(), [&](const Poly& one) { return prover_.holds(at_least(one, Poly(1))); });
        Condition reached = less(Poly::of(symbol), Poly::of(symbol));
        for (const Poly& one : all) {
            prover_.assume(at_least(one, Poly::of(symbol)));
            reached = either(reached, at_least(Poly::of(symbol), one));
        }
        prover_.assume(reached);
        if (positive) prover_.assume(at_least(Poly::of(symbol), Poly(1)));
    }
    std::vector<Atom> atoms;
    ints_.collect(definition, atoms);
    for (Atom a : atoms) {
        const AtomInfo info = ints_.info(a);
        if (info.kind != AtomInfo::Kind::quotient || !(definition + info.args[1] * Poly::of(a) == info.args[0])) continue;
        // The remainder's divisor divides the number of tiles, which is not 0 here; or it is a positive constant.
        const auto constant = info.args[1].constant();
        if ((constant && *constant > 0) || end_in_tile_loop(Poly::of(a))) prover_.assume(less(Poly::of(symbol), info.args[1]));
    }
}

bool Flow::derived_from_tile(const Poly& p) {
    if (ints_.mentions(p, in_tile_loop_)) return true;
    std::vector<Atom> atoms;
    ints_.collect(p, atoms);
    return std::any_of(atoms.begin(), atoms.end(), [&](Atom a) { return tile_definition_.count(a) > 0; });
}

void Flow::define_tile(Atom symbol, const Poly& definition) {
    const auto known = tile_definition_.find(symbol);
    if (known != tile_definition_.end() && known->second == definition) return;
    tile_definition_[symbol] = definition;
    expansions_.clear();
}

Poly Flow::expanded(const Poly& p) {
    std::vector<Atom> atoms;
    ints_.collect(p, atoms);
    std::map<Atom, Poly> with;
    for (Atom a : atoms) {
        const auto definition = tile_definition_.find(a);
        if (definition == tile_definition_.end()) continue;
        if (expansions_.emplace(a, Poly::of(a)).second) {  // itself while it is being expanded
            const Poly all = expanded(definition->second);
            expansions_[a] = all;
        }
        with[a] = expansions_.at(a);
    }
    return with.empty() ? p : ints_.replace(p, with);
}

bool Flow::holds_of_anything(const Condition& c) {
    std::vector<Atom> atoms;
    ints_.collect(c, atoms);
    std::map<Atom, Poly> with;
    for (Atom a : atoms) {
        const auto kind = ints_.info(a).kind;
        if ((kind == AtomInfo::Kind::symbol || kind == AtomInfo::Kind::element || kind == AtomInfo::Kind::opaque) && !with.count(a))
            with[a] = anything();
    }
    Prover nothing_known(ints_);
    return nothing_known.holds(ints_.replace(c, with));
}

}  // namespace tw::verify::detail

namespace tw::verify {

namespace {

bool has_doubles(const ir::Element& e) {
    return e->dtype == target::DType::F64 || std::any_of(e->args.begin(), e->args.end(), has_doubles);
}

bool computes_in_doubles(const ir::Kernel& kernel) {
    const auto is_double = [](const auto& x) { return x.dtype == target::DType::F64; };
    bool any = std::any_of(kernel.tensors.begin(), kernel.tensors.end(), is_double) ||
               std::any_of(kernel.fragments.begin(), kernel.fragments.end(), is_double);
    ir::for_each_stmt(kernel.body, [&](const ir::Stmt& s) {
        if (auto* c = std::get_if<ir::Compute>(&s.op)) any = any || has_doubles(c->value);
    });
    return any;
}

}  // namespace

FlowResult check_flow(const ir::Kernel& kernel, const FlowInputs& inputs) {
    const std::uint64_t overflows = coefficient_overflows();
    const DoubleLiterals literals(computes_in_doubles(kernel));
    FlowResult result = detail::Flow(kernel, inputs).run();
    distrust_after_overflow(result.obligations, overflows);
    return result;
}

}  // namespace tw::verify
