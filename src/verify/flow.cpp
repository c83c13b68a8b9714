// Data flow by abstract interpretation of the last IR.
//
// The abstract value of a fragment is one tag over tile coordinates: "element (c0, c1) is A[128*bm + c0, 64*kt + c1]". A
// statement substitutes: a load puts in an element of a tensor (masked: where(in bounds, element, fill)), elementwise code
// builds functions, reductions and matrix units build reduce() over the contracted coordinate. A shared-memory read takes
// the tag that its writer stored: verify/order says which statement wrote it and in which iteration.
//
// Loops with symbolic trip counts are summarised by guess and check. Run the body once from the state before the loop, with
// the loop variable k a symbol. Guess from the result that the state at the head of iteration k is "the same with every
// range grown from the start to k" (Values::widened). Then check it like any induction: the guess at k = lo is the state
// before the loop, and the body takes the guess at k to the guess at k + 1. What fails is forgotten (unknown) and the rest is
// checked again without it. Only checked guesses are used, so a wrong guess costs a proof, never soundness.
#include "verify/flow.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "verify/operands.h"
#include "verify/value.h"

namespace tw::verify {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

struct State {
    std::map<int, Value> fragments;
    std::map<int, Poly> scalars;
};

// A digit of the space of executions of a statement: values 0 <= atom < extent.
struct Digit {
    Atom atom = -1;
    Poly extent;
    bool tile_loop = false;      // a persistent loop: stands for the pair of tile coordinates derived from it
};

struct SharedWrite {
    Value value = 0;                         // over the coordinates of the view
    std::vector<int> extents;
    std::vector<Poly> origin;                // per buffer dimension
    std::vector<int> dims;
    int buffer = -1;
    bool faithful = true;                    // puts element c of the view where the buffer's layout says
    std::string why;
};

class Flow {
public:
    Flow(const ir::Kernel& k, const FlowInputs& in) : k_(k), inputs_(in), prover_(ints_), values_(ints_, prover_) {}

    FlowResult run() {
        for (std::size_t i = 0; i < k_.sizes.size(); ++i) size_atoms_.push_back(ints_.symbol(k_.sizes[i], 0));
        for (int axis = 0; axis < 3; ++axis) {
            static const char* names[] = {"block.x", "block.y", "block.z", "grid.x", "grid.y", "grid.z"};
            block_[axis] = ints_.symbol(names[axis], 0);
            grid_[axis] = ints_.symbol(names[axis + 3], 1);
        }
        State state;
        for (const ir::Assumption& a : k_.assumptions) prover_.assume(ints_.condition_from(a.condition, leaf(state)));
        for (int axis = 0; axis < 3; ++axis) {
            prover_.assume(less(Poly::of(block_[axis]), Poly::of(grid_[axis])));
            const Poly wanted = ints_.from(k_.grid[axis], leaf(state));
            if (k_.persistent && axis == 0) prover_.assume(at_least(wanted, Poly::of(grid_[axis])));
            else prover_.assume(equals(Poly::of(grid_[axis]), wanted));
            if (!k_.persistent || axis > 0) {
                if (wanted.constant() != 1) digits_.push_back({block_[axis], wanted, false});
            }
        }
        // The first passes record what is written to shared memory, so that a reader may come before its writer in the text.
        for (int pass = 0; pass < 3 && !recording_; ++pass) {
            recording_ = pass == 2 || (pass == 1 && !writer_missing_);
            writer_missing_ = false;
            State s = state;
            execute(k_.body, s);
        }
        finish_outputs();
        return std::move(result_);
    }

private:
    // -------------------------------------------------------------------------------------------------------- expressions

    Integers::Leaf leaf(const State& s) {
        return [this, &s](const ir::ExprNode& n) -> Poly {
            switch (n.kind) {
                case ir::ExprKind::size: return Poly::of(size_atoms_[at(n.id)]);
                case ir::ExprKind::block_index: return Poly::of(block_[n.id]);
                case ir::ExprKind::grid_size: return Poly::of(grid_[n.id]);
                case ir::ExprKind::cluster_rank: return Poly::of(ints_.symbol("cluster_rank", 0, cluster_size() - 1));
                case ir::ExprKind::var: {
                    auto it = s.scalars.find(n.id);
                    if (it != s.scalars.end()) return it->second;
                    return Poly::of(var_atom(n.id));
                }
                default: return Poly::of(ints_.fresh("unset"));
            }
        };
    }
    int cluster_size() const { return k_.cluster[0] * k_.cluster[1] * k_.cluster[2]; }
    Poly poly(const ir::Expr& e, const State& s) { return ints_.from(e, leaf(s)); }
    Atom var_atom(int id) { return ints_.symbol(k_.vars[at(id)].name + "$" + std::to_string(id)); }
    // Coordinate `dim` of a tile with this extent there.
    Atom coordinate(int dim, int extent) { return ints_.symbol("c" + std::to_string(dim) + "." + std::to_string(extent), 0, extent - 1); }
    std::string tensor_name(int id) const { return k_.tensors[at(id)].name; }
    std::string show(Value v) const {
        std::string s = values_.text(v, [this](int id) { return tensor_name(id); });
        return s.size() > 600 ? s.substr(0, 600) + "..." : s;
    }

    // -------------------------------------------------------------------------------------------------------- obligations

    void oblige(const char* kind, const char* code, std::string text, const ir::Stmt& s, bool proved, std::string reason, std::vector<std::string> used = {}) {
        if (!recording_) return;
        Obligation o;
        o.kind = kind;
        o.code = code;
        o.text = std::move(text);
        o.loc = s.loc;
        o.status = proved ? Status::proved : Status::not_proved;
        o.prover = proved ? (prover_.last().empty() ? "affine" : prover_.last()) : "";
        const auto now = std::chrono::steady_clock::now();
        o.milliseconds = std::chrono::duration<double, std::milli>(now - last_).count();
        last_ = now;
        if (!proved) o.reason = std::move(reason);
        o.used = std::move(used);
        for (const ir::Assumption& a : k_.assumptions) o.used.push_back("precondition: " + a.text);
        result_.obligations.push_back(std::move(o));
    }

    // ---------------------------------------------------------------------------------------------------------- execution

    void execute(const ir::Region& region, State& s) {
        for (const ir::Stmt& stmt : region) {
            std::visit([&](const auto& op) { run(op, stmt, s); }, stmt.op);
        }
    }

    template <class T>
    void run(const T&, const ir::Stmt&, State&) {}   // synchronisation moves no data

    void run(const ir::Role& r, const ir::Stmt&, State& s) {
        State inner = s;
        const auto mark = digits_.size();
        if (r.instance_var >= 0) {
            const Atom a = ints_.symbol(k_.vars[at(r.instance_var)].name + "$" + std::to_string(r.instance_var), 0, r.instances - 1);
            inner.scalars[r.instance_var] = Poly::of(a);
            digits_.push_back({a, Poly(r.instances), false});
        } else if (r.instances > 1) {
            digits_.push_back({ints_.fresh("instance", 0, r.instances - 1), Poly(r.instances), false});
        }
        execute(r.body, inner);
        digits_.resize(mark);
    }
    void run(const ir::Elect& e, const ir::Stmt&, State& s) { execute(e.body, s); }

    void run(const ir::If& i, const ir::Stmt&, State& s) {
        const Condition c = ints_.condition_from(i.condition, leaf(s));
        State yes = s, no = s;
        const bool always = prover_.holds(c), never = !always && prover_.holds(negated(c));
        prover_.push();
        prover_.assume(c);
        conditional_ += !always;
        execute(i.then, yes);
        conditional_ -= !always;
        prover_.pop();
        prover_.push();
        prover_.assume(negated(c));
        conditional_ += !never;
        execute(i.otherwise, no);
        conditional_ -= !never;
        prover_.pop();
        for (auto& [id, v] : yes.fragments) {
            auto it = no.fragments.find(id);
            s.fragments[id] = it == no.fragments.end() ? values_.unknown("set in one branch only") : values_.where(c, v, it->second);
        }
        for (auto& [id, v] : no.fragments) {
            if (!yes.fragments.count(id)) s.fragments[id] = values_.unknown("set in one branch only");
        }
        for (auto& [id, p] : yes.scalars) {
            auto it = no.scalars.find(id);
            s.scalars[id] = it == no.scalars.end() ? Poly::of(ints_.fresh("unset")) : ints_.choice(c, p, it->second);
        }
    }

    void run(const ir::Assign& a, const ir::Stmt&, State& s) {
        const Poly value = values_.simplified(poly(a.value, s));
        // Tile coordinates derived from a persistent loop's index become symbols with a definition.
        if (in_tile_loop_ >= 0 && derived_from_tile(value) && !(value == Poly::of(in_tile_loop_))) {
            // Its range is part of the lemma on the tile order (tiles_are_a_bijection), not of every query.
            const Atom name = ints_.symbol(k_.vars[at(a.var)].name + "$" + std::to_string(a.var) + "@tile", 0);
            tile_definition_[name] = value;
            s.scalars[a.var] = Poly::of(name);
            return;
        }
        s.scalars[a.var] = value;
    }

    bool derived_from_tile(const Poly& p) {
        if (ints_.mentions(p, in_tile_loop_)) return true;
        std::vector<Atom> atoms;
        ints_.collect(p, atoms);
        return std::any_of(atoms.begin(), atoms.end(), [&](Atom a) { return tile_definition_.count(a) > 0; });
    }
    // A tile symbol in terms of the tile loop's variable and sizes alone.
    Poly expanded(const Poly& p) {
        Poly now = p;
        for (int depth = 0; depth < 16; ++depth) {
            std::vector<Atom> atoms;
            ints_.collect(now, atoms);
            std::map<Atom, Poly> with;
            for (Atom a : atoms) {
                auto it = tile_definition_.find(a);
                if (it != tile_definition_.end()) with[a] = it->second;
            }
            if (with.empty()) break;
            now = ints_.replace(now, with);
        }
        return now;
    }

    static void collect_assigned(const ir::Region& region, std::set<int>& fragments, std::set<int>& scalars) {
        ir::for_each_stmt(region, [&](const ir::Stmt& s) {
            if (auto* x = std::get_if<ir::Assign>(&s.op)) scalars.insert(x->var);
            if (auto* x = std::get_if<ir::Compute>(&s.op)) fragments.insert(x->dst);
            if (auto* x = std::get_if<ir::Reduce>(&s.op)) fragments.insert(x->dst);
            if (auto* x = std::get_if<ir::Scan>(&s.op)) fragments.insert(x->dst);
            if (auto* x = std::get_if<ir::Shuffle>(&s.op)) fragments.insert(x->dst);
            if (auto* x = std::get_if<ir::LoadGlobal>(&s.op)) fragments.insert(x->dst);
            if (auto* x = std::get_if<ir::LoadShared>(&s.op)) fragments.insert(x->dst);
            if (auto* x = std::get_if<ir::Wgmma>(&s.op)) fragments.insert(x->acc);
            if (auto* x = std::get_if<ir::Mma>(&s.op)) fragments.insert(x->acc);
        });
    }

    void run(const ir::For& f, const ir::Stmt&, State& s) {
        const Atom k = var_atom(f.var);
        const Poly lo = poly(f.lo, s), hi = poly(f.hi, s), step = poly(f.step, s);
        std::set<int> fragments, scalars;
        collect_assigned(f.body, fragments, scalars);
        const bool recording = recording_;
        const bool unit = step.constant() == 1;
        // A persistent loop visits every t in [0, hi) once over all blocks exactly when it is block, block + grid, ...
        const bool whole_grid = lo == Poly::of(block_[0]) && step == Poly::of(grid_[0]) && k_.persistent;
        const bool tile_loop = !unit && in_tile_loop_ < 0 && whole_grid;
        const auto mark = digits_.size();
        // A digit counts from 0; a loop that does not gets a symbol of its own, which no index can use.
        if (unit) digits_.push_back({lo.constant() == 0 ? k : ints_.fresh("iteration"), hi - lo, false});
        else digits_.push_back({tile_loop ? k : ints_.fresh("iteration"), hi, tile_loop});
        const Atom outer_tile = in_tile_loop_;
        if (tile_loop) in_tile_loop_ = k;
        prover_.push();
        prover_.assume(at_least(Poly::of(k), lo));
        prover_.assume(less(Poly::of(k), hi));
        auto body = [&](State from) {
            from.scalars[f.var] = Poly::of(k);
            prover_.push();
            execute(f.body, from);
            prover_.pop();
            return from;
        };
        State head = s;
        head.scalars[f.var] = Poly::of(k);
        recording_ = false;
        auto forget_fragment = [&](int id) { head.fragments[id] = values_.unknown("carried by the loop: " + k_.fragments[at(id)].name); };
        auto forget_scalar = [&](int id) { head.scalars[id] = Poly::of(ints_.fresh(k_.vars[at(id)].name)); };
        std::set<int> known_fragments, known_scalars;
        if (unit) {
            const State once = body(s);
            std::map<int, Value> guessed;
            for (int id : fragments) {
                auto before = s.fragments.find(id);
                auto after = once.fragments.find(id);
                if (before == s.fragments.end() || after == once.fragments.end()) {
                    forget_fragment(id);
                    continue;
                }
                guessed[id] = after->second;
                known_fragments.insert(id);
            }
            // The guess must also make sense at k = hi, so it is formed without the facts of an iteration.
            prover_.pop();
            prover_.push();
            prover_.assume(at_least(Poly::of(k), lo));
            for (const auto& [id, value] : guessed) {
                Value guess = values_.widened(value, k, lo);
                const ValueNode outer = values_.node(guess);
                const bool still = outer.kind == ValueNode::Kind::where && !ints_.mentions(outer.condition, k);
                const auto initial = values_.as_number(values_.simplified(s.fragments.at(id)));
                if (!values_.mentions(guess, k) || (initial && *initial == 0 && !has_moving_range(value, k))) {
                    // Nothing in it grows: one term an iteration, added up (an accumulator that is not a matrix product).
                    if (initial && *initial == 0 && values_.mentions(value, k)) {
                        const Atom i = ints_.fresh("i");
                        guess = values_.reduce("sum", i, lo, Poly::of(k), values_.replace(value, {{k, Poly::of(i)}}));
                    }
                } else if (still && outer.args[1] != s.fragments.at(id)) {
                    guess = values_.where(outer.condition, outer.args[0], values_.unknown("outside the mask"));
                }
                head.fragments[id] = guess;
            }
            prover_.pop();
            prover_.push();
            prover_.assume(at_least(Poly::of(k), lo));
            prover_.assume(less(Poly::of(k), hi));
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
                stable = true;
                const State next = body(head);
                const std::map<Atom, Poly> advance = {{k, Poly::of(k) + Poly(1)}}, begin = {{k, lo}};
                std::vector<int> failed_fragments, failed_scalars;
                for (int id : known_fragments) {
                    const Value guess = head.fragments.at(id);
                    // Elements outside a mask that does not move are unknown in the guess: nothing is claimed of them.
                    const ValueNode outer = values_.node(guess);
                    const bool masked = outer.kind == ValueNode::Kind::where && values_.node(outer.args[1]).kind == ValueNode::Kind::unknown;
                    prover_.push();
                    if (masked) prover_.assume(outer.condition);
                    const Value want = values_.simplified(values_.replace(guess, advance));
                    const Value got = values_.simplified(next.fragments.at(id));
                    const Value start = values_.simplified(values_.replace(guess, begin));
                    const Value initial = values_.simplified(s.fragments.at(id));
                    prover_.pop();
                    if (!agree(want, got, masked ? outer.condition : Condition{}, 3) || !agree(start, initial, masked ? outer.condition : Condition{}, 2)) {
                        failed_fragments.push_back(id);
                        if (trace_) {
                            std::fprintf(stderr, "flow: %s is not inductive\n  guess   %s\n  next    %s\n  wanted  %s\n  start   %s\n  initial %s\n", k_.fragments[at(id)].name.c_str(), show(guess).c_str(),
                                         show(got).c_str(), show(want).c_str(), show(start).c_str(), show(initial).c_str());
                        }
                    }
                }
                for (int id : known_scalars) {
                    const Poly guess = head.scalars.at(id);
                    if (!(values_.simplified(ints_.replace(guess, advance)) == values_.simplified(next.scalars.at(id)))) failed_scalars.push_back(id);
                }
                for (int id : failed_fragments) {
                    known_fragments.erase(id);
                    forget_fragment(id);
                    stable = false;
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
        body(head);
        prover_.pop();
        // After the loop: the guess at k = max(lo, hi).
        const Poly end = values_.simplified(ints_.maximum(lo, hi));
        for (int id : fragments) {
            s.fragments[id] = known_fragments.count(id) ? values_.simplified(values_.replace(head.fragments.at(id), {{k, end}}))
                                                        : values_.unknown("after the loop: " + k_.fragments[at(id)].name);
        }
        for (int id : scalars) {
            s.scalars[id] = known_scalars.count(id) ? values_.simplified(ints_.replace(head.scalars.at(id), {{k, end}})) : Poly::of(ints_.fresh(k_.vars[at(id)].name));
        }
        in_tile_loop_ = outer_tile;
        digits_.resize(mark);
    }

    // Equal tags, if need be case by case of the masks at their top.
    bool agree(Value a, Value b, const Condition& given, int depth) {
        if (a == b) return true;
        if (depth == 0) return false;
        {
            const ValueNode m = values_.node(a), n = values_.node(b);
            if (m.kind == n.kind && m.kind != ValueNode::Kind::where && m.name == n.name && m.id == n.id && m.number == n.number && m.weights == n.weights && m.args.size() == n.args.size() &&
                m.indices == n.indices && !m.args.empty()) {
                bool same = m.kind != ValueNode::Kind::reduce || (m.variable == n.variable && prover_.holds(equals(m.lo, n.lo)) && prover_.holds(equals(m.hi, n.hi)));
                for (std::size_t i = 0; i < m.args.size() && same; ++i) same = agree(m.args[i], n.args[i], given, m.kind == ValueNode::Kind::reduce ? 0 : depth - 1);
                if (same) return true;
            }
        }
        for (Value v : {a, b}) {   // a short sum of constant length against the same written out
            const ValueNode n = values_.node(v);
            auto first = n.lo.constant(), end = n.hi.constant();
            if (n.kind != ValueNode::Kind::reduce || n.name != "sum" || !first || !end || *end - *first > 32) continue;
            std::vector<std::pair<double, Value>> terms;
            for (std::int64_t i = *first; i < *end; ++i) terms.emplace_back(1.0, values_.replace(n.args[0], {{n.variable, Poly(i)}}));
            const Value spread = values_.sum(0, std::move(terms));
            if (spread == (v == a ? b : a)) return true;
        }
        for (Value v : {a, b}) {
            const ValueNode n = values_.node(v);
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

    // Does a reduce in it have a range that depends on k?
    bool has_moving_range(Value v, Atom k) {
        const ValueNode n = values_.node(v);
        if (n.kind == ValueNode::Kind::reduce && (ints_.mentions(n.lo, k) || ints_.mentions(n.hi, k))) return true;
        return std::any_of(n.args.begin(), n.args.end(), [&](Value a) { return has_moving_range(a, k); });
    }

    // ---------------------------------------------------------------------------------------------------------- registers

    // A fragment's tag with its coordinates replaced.
    Value fragment_at(int id, const State& s, const std::vector<Poly>& coordinates) {
        auto it = s.fragments.find(id);
        if (it == s.fragments.end()) return values_.unknown("unset: " + k_.fragments[at(id)].name);
        std::map<Atom, Poly> with;
        const auto& shape = k_.fragments[at(id)].dist.shape;
        for (std::size_t d = 0; d < shape.size(); ++d) with[coordinate(static_cast<int>(d), shape[d])] = coordinates[d];
        return values_.replace(it->second, with);
    }
    std::vector<Poly> own_coordinates(const std::vector<int>& shape) {
        std::vector<Poly> c;
        for (std::size_t d = 0; d < shape.size(); ++d) c.push_back(Poly::of(coordinate(static_cast<int>(d), shape[d])));
        return c;
    }

    Value element(const ir::Element& e, const State& s, const std::vector<Poly>& c) {
        switch (e->op) {
            case ir::ElementOp::fragment: {
                const auto& shape = k_.fragments[at(e->id)].dist.shape;
                std::vector<Poly> mine;
                for (std::size_t d = 0; d < shape.size(); ++d) {
                    mine.push_back(shape[d] == 1 ? Poly(0) : c[e->dims.empty() ? d : at(e->dims[d])] + Poly(e->offset.empty() ? 0 : e->offset[d]));
                }
                return fragment_at(e->id, s, mine);
            }
            case ir::ElementOp::number: return values_.number(e->number);
            case ir::ElementOp::scalar: return values_.scalar(e->id);
            case ir::ElementOp::index: return values_.index(poly(e->index, s));
            case ir::ElementOp::coordinate: return values_.index(c[at(e->id)]);
            default: break;
        }
        std::vector<Value> args;
        for (const auto& a : e->args) args.push_back(element(a, s, c));
        return values_.apply(ir::name_of(e->op), std::move(args));
    }

    void run(const ir::Compute& op, const ir::Stmt&, State& s) {
        s.fragments[op.dst] = element(op.value, s, own_coordinates(k_.fragments[at(op.dst)].dist.shape));
    }

    void run(const ir::Reduce& op, const ir::Stmt&, State& s) {
        const ir::Distribution& src = k_.fragments[at(op.src)].dist;
        const ir::Distribution& dst = k_.fragments[at(op.dst)].dist;
        const std::vector<Poly> out = own_coordinates(dst.shape);
        std::vector<Poly> in(src.shape.size());
        for (std::size_t d = 0, o = 0; d < src.shape.size(); ++d) {
            if (static_cast<int>(d) != op.dim) in[d] = out[o++];
        }
        if (op.across <= 1) {
            const Atom x = ints_.fresh("r", 0, src.shape[at(op.dim)] - 1);
            in[at(op.dim)] = Poly::of(x);
            s.fragments[op.dst] = values_.reduce(op.op, x, 0, src.shape[at(op.dim)], fragment_at(op.src, s, in));
            return;
        }
        // Per warp: the digits of the reduced dimension inside a warp are folded, those across warps are the last coordinate.
        struct Part { int extent, step; };
        std::vector<Part> parts;
        Poly across = 0;
        int lanes = 1, warps = 1;
        bool plain = true;
        for (const ir::DistDigit& d : src.thread) {
            if (lanes < 32) {
                if (lanes * d.extent > 32) plain = false;
                if (d.dim == op.dim) parts.push_back({d.extent, d.step});
                lanes *= d.extent;
            } else {
                if (d.dim == op.dim) {
                    if (warps > 1) plain = false;
                    across = Poly(d.step) * out.back();
                    warps *= d.extent;
                }
            }
        }
        for (const ir::DistDigit& d : src.value) {
            if (d.dim == op.dim) parts.push_back({d.extent, d.step});
        }
        if (!plain || warps != op.across) {
            s.fragments[op.dst] = values_.unknown("a reduction whose warps hold the tile in an unusual way");
            return;
        }
        std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.step < b.step; });
        std::vector<Atom> atoms;
        Poly index = across;
        for (const Part& p : parts) {
            atoms.push_back(ints_.fresh("r", 0, p.extent - 1));
            index = index + Poly(p.step) * Poly::of(atoms.back());
        }
        in[at(op.dim)] = index;
        Value v = fragment_at(op.src, s, in);
        for (std::size_t i = 0; i < parts.size(); ++i) v = values_.reduce(op.op, atoms[i], 0, parts[i].extent, v);
        s.fragments[op.dst] = v;
    }

    void run(const ir::Scan& op, const ir::Stmt&, State& s) {
        const ir::Distribution& src = k_.fragments[at(op.src)].dist;
        int lanes = 1;
        for (const ir::DistDigit& d : src.thread) {
            if (lanes >= 32 && d.dim == op.dim) {
                s.fragments[op.dst] = values_.unknown("a scan across warps");
                return;
            }
            lanes *= d.extent;
        }
        std::vector<Poly> c = own_coordinates(src.shape);
        const Poly here = c[at(op.dim)];
        const Atom x = ints_.fresh("r", 0, src.shape[at(op.dim)] - 1);
        c[at(op.dim)] = Poly::of(x);
        const Value body = fragment_at(op.src, s, c);
        s.fragments[op.dst] = op.reverse ? values_.reduce(op.op, x, here, src.shape[at(op.dim)], body) : values_.reduce(op.op, x, 0, here + Poly(1), body);
    }

    void run(const ir::Shuffle& op, const ir::Stmt&, State& s) { s.fragments[op.dst] = values_.unknown("shuffle"); }

    // ------------------------------------------------------------------------------------------------------- global memory

    struct Place {
        std::vector<Poly> index;      // per tensor dimension
        Condition inside;             // what masks the access
    };
    Place place(const ir::GlobalView& v, const ir::Stmt& stmt, const State& s, const std::vector<Poly>& c) {
        Place p;
        const ir::Tensor& t = k_.tensors[at(v.tensor)];
        for (const ir::Expr& e : v.origin) p.index.push_back(poly(e, s));
        for (std::size_t i = 0; i < v.dims.size(); ++i) {
            const std::size_t d = at(v.dims[i]);
            const Poly position = p.index[d] + c[i];
            if (v.gather_dim == v.dims[i]) {
                bool ok = true;
                p.index[d] = integer_fragment(v.gather_fragment, s, c[i], ok);
                if (i < v.limit.size() && v.limit[i]) p.inside = both(p.inside, less(c[i], poly(*v.limit[i], s)));
                (void)ok;
            } else {
                p.index[d] = position;
                if (i < v.limit.size() && v.limit[i]) p.inside = both(p.inside, less(position, poly(*v.limit[i], s)));
            }
            const Poly extent = poly(t.dims[d], s);
            const Condition bound = less(p.index[d], extent);
            const bool claimed = i < v.in_bounds.size() && v.in_bounds[i];
            if (claimed) {
                oblige("in bounds", "TW1003", t.name + " dimension " + std::to_string(d) + " is claimed to be in bounds", stmt, prover_.holds_given(p.inside, bound),
                       "could not show " + ints_.text(bound));
            } else if (!prover_.holds_given(p.inside, bound)) {
                p.inside = both(p.inside, bound);
            }
        }
        for (std::size_t d = 0; d < p.index.size(); ++d) {
            const bool tile_dim = std::find(v.dims.begin(), v.dims.end(), static_cast<int>(d)) != v.dims.end();
            Condition need = at_least(p.index[d], Poly(0));
            if (!tile_dim) need = both(need, less(p.index[d], poly(t.dims[d], s)));
            if (tile_dim && v.gather_dim == static_cast<int>(d)) continue;   // the promise on the index tensor's contents
            oblige("in bounds", "TW1003", t.name + " dimension " + std::to_string(d) + (tile_dim ? " is never negative" : " is in range"), stmt,
                   prover_.holds_given(p.inside, need), "could not show " + ints_.text(need));
        }
        return p;
    }

    // An integer fragment's element as an index: an element of an index tensor, or arithmetic on coordinates.
    Poly integer_fragment(int id, const State& s, const Poly& c, bool& ok) {
        const Value v = fragment_at(id, s, {c});
        std::function<Poly(Value)> convert = [&](Value x) -> Poly {
            const ValueNode n = values_.node(x);
            if (n.kind == ValueNode::Kind::index) return n.indices[0];
            if (n.kind == ValueNode::Kind::number) return Poly(static_cast<std::int64_t>(n.number));
            if (n.kind == ValueNode::Kind::element) return ints_.element(n.id, n.indices);
            if (n.kind == ValueNode::Kind::where) return ints_.choice(n.condition, convert(n.args[0]), convert(n.args[1]));
            if (n.kind == ValueNode::Kind::sum) {
                Poly p(static_cast<std::int64_t>(n.number));
                for (std::size_t i = 0; i < n.args.size(); ++i) p = p + Poly(static_cast<std::int64_t>(n.weights[i])) * convert(n.args[i]);
                return p;
            }
            ok = false;
            return Poly::of(ints_.fresh("index"));
        };
        return convert(v);
    }

    Value loaded(const ir::GlobalView& v, const ir::Stmt& stmt, const State& s, const std::vector<Poly>& c, bool has_fill, double fill) {
        const Place p = place(v, stmt, s, c);
        if (!has_fill) {
            oblige("in bounds", "TW1003", "a load of " + k_.tensors[at(v.tensor)].name + " with no fill stays in bounds", stmt, prover_.holds(p.inside), "could not show " + ints_.text(p.inside));
        }
        if (k_.tensors[at(v.tensor)].is_output && !k_.tensors[at(v.tensor)].zero_initialised) return values_.unknown("read of an output");
        return values_.where(p.inside, values_.element(v.tensor, p.index), values_.number(fill));
    }

    void run(const ir::LoadGlobal& op, const ir::Stmt& stmt, State& s) {
        s.fragments[op.dst] = loaded(op.src, stmt, s, own_coordinates(k_.fragments[at(op.dst)].dist.shape), op.has_fill, op.fill);
    }

    struct Store {
        const ir::Stmt* stmt;
        int tensor;
        std::vector<Poly> index;
        std::vector<Digit> digits;
        bool atomic;
        std::vector<Condition> facts;
        std::string partial;     // why not every execution stores every element in bounds
    };

    void store(int tensor, const ir::Stmt& stmt, const Place& p, Value value, std::vector<Digit> coordinates, bool atomic) {
        if (!recording_) return;
        const ir::Equation* equation = nullptr;
        for (const ir::Equation& e : k_.computes.equations) {
            if (e.output == tensor) equation = &e;
        }
        const std::string name = tensor_name(tensor);
        if (!equation) {
            oblige("output value", "TW1001", name + " is what `computes` says", stmt, false, "`computes` has no equation for " + name);
            return;
        }
        State empty;
        // Only the tensor's own bounds may mask a store: anything else leaves elements out.
        std::string partial;
        {
            Condition bounds;
            for (std::size_t d = 0; d < p.index.size(); ++d) bounds = both(bounds, both(less(p.index[d], poly(k_.tensors[at(tensor)].dims[d], empty)), at_least(p.index[d], Poly(0))));
            if (!prover_.holds_given(bounds, p.inside)) partial = "a mask leaves elements out: " + ints_.text(p.inside);
            if (conditional_ > 0) partial = "the store is under a condition";
        }
        prover_.push();
        prover_.assume(p.inside);
        for (std::size_t d = 0; d < p.index.size(); ++d) {
            prover_.assume(less(p.index[d], poly(k_.tensors[at(tensor)].dims[d], empty)));
            prover_.assume(at_least(p.index[d], Poly(0)));
        }
        std::map<int, Poly> bound;
        for (std::size_t d = 0; d < equation->output_vars.size(); ++d) bound[equation->output_vars[d]] = p.index[d];
        const Integers::Leaf sizes = leaf(empty);
        const Value want = values_.simplified(values_.from(equation->value, sizes, bound));
        const Value got = values_.simplified(value);
        if (atomic) {
            oblige("output value", "TW1001", name + " is what `computes` says", stmt, false, "sums formed by atomic adds are not proved yet");
        } else {
            oblige("output value", "TW1001", name + " is what `computes` says", stmt, agree(want, got, p.inside, 3) && !values_.has_unknown(got),
                   "expected " + show(want) + "\n      but it is " + show(got));
        }
        prover_.pop();
        for (const Digit& d : digits_) coordinates.push_back(d);
        stores_.push_back({&stmt, tensor, p.index, std::move(coordinates), atomic, prover_.facts(), partial});
    }

    void run(const ir::StoreGlobal& op, const ir::Stmt& stmt, State& s) {
        const auto& shape = k_.fragments[at(op.src)].dist.shape;
        const std::vector<Poly> c = own_coordinates(shape);
        const Place p = place(op.dst, stmt, s, c);
        std::vector<Digit> digits;
        for (std::size_t d = 0; d < shape.size(); ++d) digits.push_back({coordinate(static_cast<int>(d), shape[d]), Poly(shape[d]), false});
        store(op.dst.tensor, stmt, p, fragment_at(op.src, s, c), std::move(digits), false);
    }
    void run(const ir::AtomicAdd& op, const ir::Stmt& stmt, State& s) {
        const auto& shape = k_.fragments[at(op.src)].dist.shape;
        const std::vector<Poly> c = own_coordinates(shape);
        store(op.dst.tensor, stmt, place(op.dst, stmt, s, c), fragment_at(op.src, s, c), {}, true);
    }

    // ------------------------------------------------------------------------------------------------------- shared memory

    void record_write(const ir::Stmt& stmt, const ir::SharedView& v, const State& s, Value value) {
        SharedWrite w;
        if (v.cluster_rank) value = values_.unknown("written to another block's shared memory");
        w.value = value;
        w.buffer = v.buffer;
        w.dims = v.dims;
        w.extents = v.extents;
        for (const ir::Expr& e : v.origin) w.origin.push_back(poly(e, s));
        writes_[&stmt] = std::move(w);
    }

    void run(const ir::StoreShared& op, const ir::Stmt& stmt, State& s) {
        if (op.matrix) operands(op, stmt);
        record_write(stmt, op.dst, s, fragment_at(op.src, s, own_coordinates(op.dst.extents)));
    }
    void run(const ir::CpAsync& op, const ir::Stmt& stmt, State& s) {
        record_write(stmt, op.dst, s, loaded(op.src, stmt, s, own_coordinates(op.dst.extents), op.zero_fill, 0));
    }
    void run(const ir::TmaLoad& op, const ir::Stmt& stmt, State& s) {
        const ir::TensorMap& map = k_.tensor_maps[at(op.map)];
        const ir::Tensor& t = k_.tensors[at(map.tensor)];
        // View dimension i (outer to inner) is box dimension rank-1-i; extents of 1 may be dropped by the view.
        std::vector<Poly> index(t.dims.size(), Poly(0));
        Condition inside;
        std::string why;
        std::vector<Poly> boxed = box_coordinates(op.dst.extents, map.box, why);
        for (std::size_t i = 0; i < map.dims.size(); ++i) {
            const std::size_t d = at(map.dims[i]);
            index[d] = poly(op.coordinates[i], s) + boxed[i];
            const Condition bound = both(less(index[d], poly(t.dims[d], s)), at_least(index[d], Poly(0)));
            if (!prover_.holds(bound)) inside = both(inside, bound);
        }
        const Value v = values_.where(inside, values_.element(map.tensor, index), map.nan_fill ? values_.unknown("NaN fill") : values_.number(0));
        record_write(stmt, op.dst, s, v);
        SharedWrite& w = writes_[&stmt];
        if (op.multicast_mask) why = "a multicast load comes from another block's coordinates, which is not followed yet";
        w.faithful = why.empty() && box_is_faithful(op.dst, map, why);
        w.why = why;
    }

    // Coordinates of box dimensions (innermost first) in terms of the view's coordinates (outermost first).
    std::vector<Poly> box_coordinates(const std::vector<int>& extents, const std::vector<int>& box, std::string& why) {
        std::vector<Poly> result(box.size(), Poly(0));
        std::size_t b = 0;
        for (std::size_t i = extents.size(); i-- > 0;) {
            while (b < box.size() && box[b] == 1 && extents[i] != 1) ++b;
            if (b >= box.size() || box[b] != extents[i]) {
                why = "the box of the tensor map does not have the shape of the shared view";
                return result;
            }
            result[b++] = Poly::of(coordinate(static_cast<int>(i), extents[i]));
        }
        while (b < box.size() && box[b] == 1) ++b;
        if (b != box.size()) why = "the box of the tensor map does not have the shape of the shared view";
        return result;
    }

    // A number that divides the expression, whatever its variables are.
    static std::int64_t multiple_of(const ir::Expr& e) {
        if (auto c = e.as_constant()) return *c < 0 ? -*c : *c;
        if (e.kind() == ir::ExprKind::mul) return multiple_of(e->args[0]) * multiple_of(e->args[1]);
        if (e.kind() == ir::ExprKind::add || e.kind() == ir::ExprKind::sub) return std::__gcd(multiple_of(e->args[0]), multiple_of(e->args[1]));
        return 1;
    }

    // TMA writes its box densely with the map's swizzle on the address. Is that where the buffer's layout has the elements?
    bool box_is_faithful(const ir::SharedView& view, const ir::TensorMap& map, std::string& why) {
        const ir::SharedBuffer& b = k_.buffers[at(view.buffer)];
        auto key = std::make_pair(&view, &map);
        auto found = faithful_.find(key);
        if (found != faithful_.end()) {
            why = found->second;
            return why.empty();
        }
        std::vector<int> origin(b.dims.size(), 0);
        for (std::size_t d = 0; d < origin.size(); ++d) {
            if (auto c = view.origin[d].as_constant()) origin[d] = static_cast<int>(*c);
        }
        // An origin that moves (a ring slot) must move by whole swizzle patterns; then slot 0 speaks for all.
        const int pattern = target::pattern_bytes(b.swizzle);
        for (std::size_t d = 0; d < origin.size(); ++d) {
            if (view.origin[d].as_constant()) continue;
            const std::int64_t steps = multiple_of(view.origin[d]);
            for (std::size_t i = 0; i < b.dims[d].strides.size(); ++i) {
                if (steps * b.dims[d].strides[i] * target::bytes(b.dtype) % pattern != 0) why = "a moving origin is not a multiple of the swizzle pattern";
            }
        }
        auto linear = [&](const std::vector<int>& c) {
            int elements = 0;
            for (std::size_t d = 0; d < c.size(); ++d) {
                int index = c[d];
                for (std::size_t i = 0; i < b.dims[d].extents.size(); ++i) {
                    elements += (index % b.dims[d].extents[i]) * b.dims[d].strides[i];
                    index /= b.dims[d].extents[i];
                }
            }
            return b.byte_offset + elements * target::bytes(b.dtype);
        };
        const int base = linear(origin);
        int total = 1;
        for (int e : view.extents) total *= e;
        for (int n = 0; n < total && why.empty(); ++n) {   // dense order: last view dimension fastest
            std::vector<int> c = origin;
            int rest = n;
            for (std::size_t i = view.extents.size(); i-- > 0;) {
                c[at(view.dims[i])] += rest % view.extents[i];
                rest /= view.extents[i];
            }
            const int written = static_cast<int>(target::swizzled(map.swizzle, static_cast<std::uint32_t>(base + n * target::bytes(b.dtype))));
            if (written != ir::shared_address(b, c)) {
                why = "TMA puts element " + std::to_string(n) + " of its box at byte " + std::to_string(written - b.byte_offset) + " of `" + b.name + "`, the buffer's layout has it at " +
                      std::to_string(ir::shared_address(b, c) - b.byte_offset);
            }
        }
        faithful_[key] = why;
        return why.empty();
    }

    // The tag a read of shared memory finds, over the coordinates of its view.
    Value read_shared(const ir::SharedView& v, const ir::Stmt& stmt, const State& s, const std::vector<Poly>& c) {
        Value result = -1;
        if (v.cluster_rank) return values_.unknown("another block's shared memory");
        std::map<Condition, std::vector<std::pair<Condition, Value>>> groups;   // by the iterations or instances they are for
        std::vector<Poly> origin;
        for (const ir::Expr& e : v.origin) origin.push_back(poly(e, s));
        std::string missing = "no write of `" + k_.buffers[at(v.buffer)].name + "` reaches this read";
        for (const Dependence& d : inputs_.dependences) {
            if (d.read != &stmt) continue;
            auto it = writes_.find(d.write);
            if (it == writes_.end()) {
                writer_missing_ = true;
                if (destination(d.write) == v.buffer) missing = "its writer has not been interpreted";
                continue;
            }
            const SharedWrite& w = it->second;
            if (w.buffer != v.buffer) {
                // A run saw this read find those bytes: they are not what the other writers put there.
                if (overlaps(w.buffer, v.buffer)) return values_.unknown("the bytes were written through another view of them");
                continue;
            }
            if (!d.exact) return values_.unknown("the iteration that wrote it has no affine relation to the one that reads it");
            if (!w.faithful) return values_.unknown(w.why);
            // The writer's loop variables in terms of the reader's.
            std::map<Atom, Poly> with;
            for (const auto& [var, value] : d.writer_vars) {
                const Poly p = poly(value, s);
                if (k_.vars[at(var)].kind == ir::Variable::Kind::instance) {
                    with[ints_.symbol(k_.vars[at(var)].name + "$" + std::to_string(var))] = p;
                } else {
                    with[var_atom(var)] = p;
                }
            }
            // Tile symbols derived from a persistent loop: those of the writer are those of the reader when the loops agree.
            match_tiles(d, with, s);
            std::vector<Poly> base;
            for (const Poly& p : w.origin) base.push_back(ints_.replace(p, with));
            // Coordinates inside the written view.
            std::map<Atom, Poly> place = with;
            Condition covered, special;
            for (std::size_t i = 0; i < w.dims.size(); ++i) {
                const std::size_t dim = at(w.dims[i]);
                Poly where = origin[dim] - base[dim];
                for (std::size_t j = 0; j < v.dims.size(); ++j) {
                    if (v.dims[j] == w.dims[i]) where = where + c[j];
                }
                where = values_.simplified(where);
                place[coordinate(static_cast<int>(i), w.extents[i])] = where;
                const Condition in = both(at_least(where, Poly(0)), less(where, Poly(w.extents[i])));
                if (!prover_.holds(in)) covered = both(covered, in);
            }
            for (std::size_t dim = 0; dim < origin.size(); ++dim) {   // fixed dimensions: ring slots agree because the run saw it; instances are compared
                if (std::find(w.dims.begin(), w.dims.end(), static_cast<int>(dim)) != w.dims.end()) continue;
                Poly difference = origin[dim] - base[dim];
                for (std::size_t j = 0; j < v.dims.size(); ++j) {
                    if (v.dims[j] == static_cast<int>(dim)) difference = difference + c[j];
                }
                std::vector<Atom> atoms;
                ints_.collect(difference, atoms);
                const bool bounded = std::all_of(atoms.begin(), atoms.end(), [&](Atom a) { return ints_.info(a).lower && ints_.info(a).upper; });
                if (bounded) special = both(special, equals(difference, Poly(0)));
            }
            for (const auto& [var, value] : d.only_when) {
                const Poly here = poly(ir::var_expr(var), s);
                if (here.constant()) continue;
                special = both(special, equals(here, Poly(value)));
            }
            if (covered.is_no() || special.is_no()) continue;
            const Value tag = values_.replace(w.value, place);
            groups[special].emplace_back(covered, tag);
        }
        // Writers that hold for every iteration and instance come first (`special` is then "yes" and sorts first); peeled
        // iterations and single instances are exceptions to them.
        Condition somewhere;
        somewhere.kind = Condition::Kind::no;
        for (const auto& [special, list] : groups) {
            Value mine = -1;
            Condition anywhere;
            anywhere.kind = Condition::Kind::no;
            for (const auto& [covered, tag] : list) {
                mine = mine < 0 || mine == tag ? tag : values_.where(covered, tag, mine);
                anywhere = either(anywhere, covered);
            }
            if (!prover_.holds_given(special, anywhere)) mine = values_.where(anywhere, mine, values_.unknown("not written"));
            result = result < 0 ? mine : values_.where(special, mine, result);
            somewhere = either(somewhere, special);
        }
        if (!groups.empty() && !prover_.holds(somewhere)) result = values_.where(somewhere, result, values_.unknown("not written"));
        return result < 0 ? values_.unknown(missing) : result;
    }

    int destination(const ir::Stmt* s) const {
        if (auto* x = std::get_if<ir::StoreShared>(&s->op)) return x->dst.buffer;
        if (auto* x = std::get_if<ir::CpAsync>(&s->op)) return x->dst.buffer;
        if (auto* x = std::get_if<ir::TmaLoad>(&s->op)) return x->dst.buffer;
        return -1;
    }
    bool overlaps(int a, int b) const {
        const ir::SharedBuffer &x = k_.buffers[at(a)], &y = k_.buffers[at(b)];
        return x.byte_offset < y.byte_offset + y.bytes && y.byte_offset < x.byte_offset + x.bytes;
    }

    // Two roles walk the same tiles: symbols whose definitions agree once the loop variables are matched are equal.
    void match_tiles(const Dependence&, std::map<Atom, Poly>& with, const State& s) {
        std::map<Atom, Poly> mine;   // the reader's tile symbols
        for (const auto& [id, value] : s.scalars) {
            (void)id;
            if (value.terms.size() != 1 || value.terms.begin()->first.size() != 1 || value.terms.begin()->second != 1) continue;
            const Atom a = value.terms.begin()->first[0];
            if (tile_definition_.count(a)) mine[a] = expanded(value);
        }
        for (const auto& [name, definition] : tile_definition_) {
            const Poly moved = ints_.replace(expanded(Poly::of(name)), with);
            for (const auto& [other, theirs] : mine) {
                if (theirs == moved) {
                    with[name] = Poly::of(other);
                    break;
                }
            }
        }
    }

    void run(const ir::LoadShared& op, const ir::Stmt& stmt, State& s) {
        if (op.matrix) operands(op, stmt);
        s.fragments[op.dst] = read_shared(op.src, stmt, s, own_coordinates(k_.fragments[at(op.dst)].dist.shape));
    }

    Value matrix_product(const std::function<Value(const Poly&, const Poly&)>& a, const std::function<Value(const Poly&, const Poly&)>& b, int rows, int columns, int depth) {
        const Atom x = ints_.fresh("k", 0, depth - 1);
        const Poly m = Poly::of(coordinate(0, rows)), n = Poly::of(coordinate(1, columns));
        return values_.reduce("sum", x, 0, depth, values_.mul(a(m, Poly::of(x)), b(n, Poly::of(x))));
    }

    template <class Multiply>
    void operands(const Multiply& op, const ir::Stmt& stmt) {
        if (!recording_) return;
        const std::string obstacle = operand_obstacle(k_, op);
        oblige("operands", "TW1011", "the register operands lie as the instruction takes them", stmt, obstacle.empty(), obstacle);
        if (obstacle.empty()) result_.obligations.back().prover = "layout";
    }

    void run(const ir::Wgmma& op, const ir::Stmt& stmt, State& s) {
        operands(op, stmt);
        const auto& shape = k_.fragments[at(op.acc)].dist.shape;
        const Value made = matrix_product(
            [&](const Poly& m, const Poly& x) {
                if (auto* f = std::get_if<int>(&op.a)) return fragment_at(*f, s, {m, x});
                return read_shared(std::get<ir::SharedView>(op.a), stmt, s, {m, x});
            },
            [&](const Poly& n, const Poly& x) { return read_shared(op.b, stmt, s, {n, x}); }, shape[0], shape[1], op.b.extents[1]);
        const Condition keep = ints_.condition_from(op.accumulate, leaf(s));
        const Value old = keep.is_no() ? values_.number(0) : fragment_at(op.acc, s, own_coordinates(shape));
        s.fragments[op.acc] = values_.simplified(values_.where(keep, values_.add(old, made), made));
    }
    void run(const ir::Mma& op, const ir::Stmt& stmt, State& s) {
        operands(op, stmt);
        const auto& shape = k_.fragments[at(op.acc)].dist.shape;
        const Value made = matrix_product([&](const Poly& m, const Poly& x) { return fragment_at(op.a, s, {m, x}); },
                                          [&](const Poly& n, const Poly& x) { return fragment_at(op.b, s, {n, x}); }, shape[0], shape[1],
                                          k_.fragments[at(op.a)].dist.shape[1]);
        s.fragments[op.acc] = values_.add(fragment_at(op.acc, s, own_coordinates(shape)), made);
    }

    void run(const ir::TmaStore& op, const ir::Stmt& stmt, State& s) {
        const ir::TensorMap& map = k_.tensor_maps[at(op.map)];
        const ir::Tensor& t = k_.tensors[at(map.tensor)];
        std::string why;
        const std::vector<Poly> boxed = box_coordinates(op.src.extents, map.box, why);
        Place p;
        p.index.assign(t.dims.size(), Poly(0));
        for (std::size_t i = 0; i < map.dims.size(); ++i) {
            const std::size_t d = at(map.dims[i]);
            p.index[d] = poly(op.coordinates[i], s) + boxed[i];
            oblige("in bounds", "TW1003", t.name + " dimension " + std::to_string(d) + " is never negative", stmt, prover_.holds(at_least(p.index[d], Poly(0))), "could not show " + ints_.text(p.index[d]) + " >= 0");
            const Condition bound = less(p.index[d], poly(t.dims[d], s));
            if (!prover_.holds(bound)) p.inside = both(p.inside, bound);
        }
        Value value = why.empty() && box_is_faithful(op.src, map, why) ? read_shared(op.src, stmt, s, own_coordinates(op.src.extents)) : values_.unknown(why);
        std::vector<Digit> digits;
        for (std::size_t d = 0; d < op.src.extents.size(); ++d) digits.push_back({coordinate(static_cast<int>(d), op.src.extents[d]), Poly(op.src.extents[d]), false});
        store(map.tensor, stmt, p, value, std::move(digits), op.reduce_add);
    }

    void run(const ir::Expect& e, const ir::Stmt& stmt, State& s) {
        if (!recording_) return;
        if (e.home == ir::Expect::Home::condition) {
            const Condition c = ints_.condition_from(e.condition, leaf(s));
            oblige("expect", "TW1010", e.text, stmt, prover_.holds(c), "could not show " + ints_.text(c));
            return;
        }
        const std::vector<int> shape = e.home == ir::Expect::Home::fragment ? k_.fragments[at(e.fragment)].dist.shape : e.view.extents;
        const std::vector<Poly> c = own_coordinates(shape);
        const Value got = values_.simplified(e.home == ir::Expect::Home::fragment ? fragment_at(e.fragment, s, c) : read_shared(e.view, stmt, s, c));
        std::map<int, Poly> bound;
        for (std::size_t i = 0; i < e.coordinate_vars.size(); ++i) bound[e.coordinate_vars[i]] = c[i];
        const Value want = values_.simplified(values_.from(e.tag, leaf(s), bound));
        oblige("expect", "TW1010", e.text, stmt, want == got && !values_.has_unknown(got), "expected " + show(want) + "\n      but it is " + show(got));
    }

    // ------------------------------------------------------------------------------------------------------- written once

    // All outputs: every element exactly once. The index of each dimension must be a mixed-radix number whose digits are all
    // the ways in which the store is executed.
    void finish_outputs() {
        recording_ = true;
        std::map<int, std::vector<const Store*>> by_tensor;
        for (const Store& s : stores_) by_tensor[s.tensor].push_back(&s);
        for (const ir::Equation& e : k_.computes.equations) {
            auto it = by_tensor.find(e.output);
            const std::string name = tensor_name(e.output);
            if (it == by_tensor.end()) {
                const ir::Stmt nowhere{ir::BlockSync{}, k_.loc, {}};
                oblige("written once", "TW1002", "every element of " + name + " is written exactly once", nowhere, false, "nothing is stored to " + name);
                continue;
            }
            std::string why;
            std::vector<std::string> lemmas;
            const bool ok = partition(it->second, why, lemmas);
            oblige("written once", "TW1002", "every element of " + name + " is written exactly once", *it->second.front()->stmt, ok, why, lemmas);
        }
    }

    bool partition(const std::vector<const Store*>& stores, std::string& why, std::vector<std::string>& lemmas) {
        // Several store statements (panels): their constant offsets form one more digit.
        const Store& first = *stores.front();
        for (const Store* s : stores) {
            if (!s->partial.empty()) return why = s->partial, false;
            const bool same = s->digits.size() == first.digits.size() && std::equal(s->digits.begin(), s->digits.end(), first.digits.begin(), [](const Digit& x, const Digit& y) {
                return x.atom == y.atom && x.extent == y.extent;
            });
            if (!same) return why = "two statements store to it in different ways", false;
        }
        std::vector<Digit> digits = first.digits;
        std::vector<Poly> index = first.index;
        if (stores.size() > 1) {
            // offsets along one dimension, evenly spaced
            int moving = -1;
            std::vector<std::int64_t> offsets = {0};
            for (std::size_t i = 1; i < stores.size(); ++i) {
                const Store& s = *stores[i];
                if (s.index.size() != index.size()) return why = "the stores to it have different shapes", false;
                for (std::size_t d = 0; d < index.size(); ++d) {
                    auto c = (s.index[d] - index[d]).constant();
                    if (!c) return why = "two stores to it are not a constant distance apart", false;
                    if (*c == 0) continue;
                    if (moving >= 0 && moving != static_cast<int>(d)) return why = "stores to it differ in several dimensions", false;
                    moving = static_cast<int>(d);
                    offsets.push_back(*c);
                }
            }
            std::sort(offsets.begin(), offsets.end());
            if (moving < 0 || offsets.size() != stores.size()) return why = "two stores write the same elements", false;
            for (std::size_t i = 1; i < offsets.size(); ++i) {
                if (offsets[i] - offsets[i - 1] != offsets[1] - offsets[0]) return why = "stores to it are not evenly spaced", false;
            }
            const Atom x = ints_.fresh("store", 0, static_cast<std::int64_t>(stores.size()) - 1);
            digits.push_back({x, Poly(static_cast<std::int64_t>(stores.size())), false});
            index[at(moving)] = index[at(moving)] + Poly(offsets[0]) + Poly(offsets[1] - offsets[0]) * Poly::of(x);
        }
        std::set<Atom> used;
        std::map<Atom, int> tile_used;
        Prover local(ints_);
        for (const Condition& c : first.facts) local.assume(c);
        for (const ir::Assumption& a : k_.assumptions) {
            State empty;
            local.assume(ints_.condition_from(a.condition, leaf(empty)));
        }
        for (std::size_t d = 0; d < index.size(); ++d) {
            State empty;
            const Poly dim = poly(k_.tensors[at(first.tensor)].dims[d], empty);
            struct Part { std::int64_t step; Poly extent; Atom atom; bool tile; };
            std::vector<Part> parts;
            for (const auto& [m, c] : index[d].terms) {
                if (m.empty()) {
                    return why = "dimension " + std::to_string(d) + " starts at " + std::to_string(c), false;
                }
                if (m.size() != 1) return why = "dimension " + std::to_string(d) + " is not an affine function of the executions: " + ints_.text(index[d]), false;
                const Atom a = m[0];
                auto digit = std::find_if(digits.begin(), digits.end(), [&](const Digit& x) { return x.atom == a; });
                if (digit != digits.end() && !digit->tile_loop) {
                    parts.push_back({c, digit->extent, a, false});
                } else if (tile_definition_.count(a)) {
                    parts.push_back({c, Poly(0), a, true});
                } else if (digit != digits.end()) {
                    parts.push_back({c, digit->extent, a, true});
                } else {
                    return why = "dimension " + std::to_string(d) + " uses " + ints_.text(Poly::of(a)) + ", which is no loop or block index", false;
                }
            }
            std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.step < b.step; });
            std::int64_t expected = 1;
            bool open = false;   // a digit of symbolic extent ends the number
            for (const Part& p : parts) {
                if (open) return why = "dimension " + std::to_string(d) + ": a digit stands above one of unknown extent", false;
                if (p.step != expected) {
                    return why = "dimension " + std::to_string(d) + ": steps of " + std::to_string(p.step) + " where " + std::to_string(expected) + " is needed to cover every index once", false;
                }
                if (p.tile) {
                    tile_used[p.atom] = static_cast<int>(d);
                    tile_extent_[p.atom] = {p.step, dim};
                    open = true;
                    continue;
                }
                used.insert(p.atom);
                if (auto n = p.extent.constant()) {
                    expected *= *n;
                } else {
                    open = true;
                    // Covers when step * extent >= dim.
                    if (!local.holds(at_least(Poly(p.step) * p.extent, dim))) return why = "dimension " + std::to_string(d) + ": could not show that " + ints_.text(Poly(p.step) * p.extent) + " reaches " + ints_.text(dim), false;
                }
            }
            if (!open && !local.holds(at_least(Poly(expected), dim))) return why = "dimension " + std::to_string(d) + ": only " + std::to_string(expected) + " indices are written, the extent is " + ints_.text(dim), false;
        }
        // Every way of executing the store must show in the index, or elements are written more than once.
        for (const Digit& d : digits) {
            if (d.tile_loop) {
                if (tile_used.empty()) return why = "a tile loop does not show in the index", false;
                if (!tiles_are_a_bijection(d.atom, tile_used, why, lemmas)) return false;
                continue;
            }
            if (used.count(d.atom) || d.extent.constant() == 1) continue;
            return why = "the store is executed once per " + ints_.info(d.atom).name + ", which its index does not depend on", false;
        }
        return true;
    }

    // A persistent loop t = block, block + grid, ... < n runs through every t once. The tile coordinates must be a bijection
    // from [0, n) to the grid of tiles. The formula of tw.tiles is recognised by enumeration over all small grids and by its
    // shape (quotients and remainders of t by products of the tile counts), which repeat with the group: a named lemma.
    bool tiles_are_a_bijection(Atom t, const std::map<Atom, int>& names, std::string& why, std::vector<std::string>& lemmas) {
        auto loop = std::find_if(stores_.front().digits.begin(), stores_.front().digits.end(), [&](const Digit& d) { return d.atom == t; });
        std::vector<Atom> order;
        for (const auto& [a, d] : names) order.push_back(a);
        // Values of the sizes: the products of small tile counts with the tile extents.
        std::vector<Atom> sizes;
        for (Atom a : order) {
            std::vector<Atom> all;
            ints_.collect(tile_extent_[a].second, all);
            for (Atom x : all) {
                if (std::find(sizes.begin(), sizes.end(), x) == sizes.end()) sizes.push_back(x);
            }
        }
        if (order.size() > 3 || sizes.size() > 4) return why = "too many tile dimensions to check their order", false;
        std::vector<Poly> derived;
        for (const auto& [symbol, definition] : tile_definition_) {
            const Poly whole = expanded(definition);
            if (ints_.mentions(whole, t)) derived.push_back(whole);
        }
        std::vector<std::int64_t> counts(order.size(), 1);
        const int top = order.size() == 1 ? 40 : order.size() == 2 ? 12 : 6;
        for (;;) {
            std::map<Atom, std::int64_t> env;
            for (std::size_t i = 0; i < order.size(); ++i) {
                const auto& [step, dim] = tile_extent_[order[i]];
                std::vector<Atom> all;
                ints_.collect(dim, all);
                if (all.size() == 1) env[all[0]] = counts[i] * step;
            }
            auto n = evaluate(loop->extent, env);
            std::int64_t product = 1;
            for (std::int64_t c : counts) product *= c;
            if (!n || *n != product) return why = "the number of tiles is not the product of the tile counts", false;
            std::set<std::vector<std::int64_t>> seen;
            for (std::int64_t i = 0; i < *n; ++i) {
                env[t] = i;
                std::vector<std::int64_t> tile;
                for (std::size_t j = 0; j < order.size(); ++j) {
                    auto def = tile_definition_.find(order[j]);
                    auto v = def == tile_definition_.end() ? std::optional(i) : evaluate(def->second, env);
                    if (!v || *v < 0 || *v >= counts[j]) return why = "a tile coordinate leaves its range", false;
                    tile.push_back(*v);
                }
                for (const Poly& definition : derived) {   // every symbol was taken to be non-negative
                    auto v = evaluate(definition, env);
                    if (!v || *v < 0) return why = "a value derived from the tile loop is negative", false;
                }
                if (!seen.insert(tile).second) return why = "two iterations of the tile loop give one tile", false;
            }
            std::size_t d = 0;
            while (d < counts.size() && ++counts[d] > top) counts[d++] = 1;
            if (d == counts.size()) break;
        }
        lemmas.push_back("lemma: the tile order is a bijection (all grids up to " + std::to_string(top) + " tiles a side, enumerated)");
        return true;
    }

    std::optional<std::int64_t> evaluate(const Poly& p, const std::map<Atom, std::int64_t>& env) {
        std::int64_t sum = 0;
        for (const auto& [m, k] : p.terms) {
            std::int64_t product = k;
            for (Atom a : m) {
                auto it = env.find(a);
                if (it != env.end()) {
                    product *= it->second;
                    continue;
                }
                auto def = tile_definition_.find(a);
                if (def != tile_definition_.end()) {
                    auto v = evaluate(def->second, env);
                    if (!v) return std::nullopt;
                    product *= *v;
                    continue;
                }
                const AtomInfo& i = ints_.info(a);
                std::vector<std::int64_t> args;
                for (const Poly& q : i.args) {
                    auto v = evaluate(q, env);
                    if (!v) return std::nullopt;
                    args.push_back(*v);
                }
                switch (i.kind) {
                    case AtomInfo::Kind::quotient:
                        if (args[1] == 0) return std::nullopt;
                        product *= ir::floor_div(args[0], args[1]);
                        break;
                    case AtomInfo::Kind::minimum: product *= std::min(args[0], args[1]); break;
                    case AtomInfo::Kind::maximum: product *= std::max(args[0], args[1]); break;
                    default: return std::nullopt;
                }
            }
            sum += product;
        }
        return sum;
    }

    const ir::Kernel& k_;
    const FlowInputs& inputs_;
    Integers ints_;
    Prover prover_;
    Values values_;
    FlowResult result_;
    bool recording_ = false;
    bool writer_missing_ = false; // a read came before its writer in this pass
    int conditional_ = 0;         // how many undecided conditions surround the statement
    const bool trace_ = std::getenv("TILEWRIGHT_TRACE_FLOW") != nullptr;   // says why a loop summary was given up
    std::vector<Atom> size_atoms_;
    Atom block_[3] = {}, grid_[3] = {};
    std::vector<Digit> digits_;
    Atom in_tile_loop_ = -1;
    std::map<Atom, Poly> tile_definition_;
    std::map<Atom, std::pair<std::int64_t, Poly>> tile_extent_;
    std::map<const ir::Stmt*, SharedWrite> writes_;
    std::map<std::pair<const ir::SharedView*, const ir::TensorMap*>, std::string> faithful_;
    std::vector<Store> stores_;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

FlowResult check_flow(const ir::Kernel& kernel, const FlowInputs& inputs) { return Flow(kernel, inputs).run(); }

}  // namespace tw::verify
