#include "verify/steering.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "base/index.h"
#include "verify/integer.h"
#include "verify/shapes.h"

namespace tw::verify {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;

constexpr std::int64_t longest_period = 512;  // beyond it the instances would take too long
constexpr std::int64_t farthest_reach = 96;   // iterations from an end of a loop at which a condition may change
constexpr std::size_t largest_domain = 1024;  // values of a variable that is updated from itself

bool compares(ExprKind k) { return k == ExprKind::lt || k == ExprKind::le || k == ExprKind::eq || k == ExprKind::ne; }

// A statement that takes no part in the order of events, besides the registers it reads and writes.
bool neutral(const Stmt& s) {
    if (auto* e = std::get_if<ir::Expect>(&s.op)) {  // what it says of shared memory counts as a read
        return e->home != ir::Expect::Home::shared && !(e->home == ir::Expect::Home::fresh && e->fragment < 0) &&
               std::none_of(e->fields.begin(), e->fields.end(), [](const ir::Field& f) { return f.fragment < 0; });
    }
    return std::holds_alternative<ir::Compute>(s.op) || std::holds_alternative<ir::Reduce>(s.op) ||
           std::holds_alternative<ir::Scan>(s.op) || std::holds_alternative<ir::Shuffle>(s.op) ||
           std::holds_alternative<ir::LoadGlobal>(s.op) || std::holds_alternative<ir::StoreGlobal>(s.op) ||
           std::holds_alternative<ir::AtomicAdd>(s.op) || std::holds_alternative<ir::Mma>(s.op) ||
           std::holds_alternative<ir::SetMaxRegisters>(s.op) || std::holds_alternative<ir::Assign>(s.op) ||
           std::holds_alternative<ir::For>(s.op) || std::holds_alternative<ir::If>(s.op) || std::holds_alternative<ir::Role>(s.op) ||
           std::holds_alternative<ir::Elect>(s.op);
}

bool neutral(const ir::Region& region) {
    bool all = true;
    ir::for_each_stmt(region, [&](const Stmt& s) { all = all && neutral(s); });
    return all;
}

// sum of coefficient * atom + constant; atoms by their printed form.
struct Affine {
    std::map<std::string, std::pair<Expr, std::int64_t>> terms;
    std::int64_t constant = 0;
};

class Reader {
public:
    explicit Reader(const ir::Kernel& k) : k_(k), names_(ir::names_of(k)) {
        shapes_.leaf = [this](const Expr& e) { return leaf_shape(e); };
        shapes_.threshold = [this](const Expr& e) { return threshold_at_an_end(e); };
        ir::for_each_stmt(k.body, [&](const Stmt& s) {
            if (auto* a = std::get_if<ir::Assign>(&s.op)) assigned_[a->var].push_back(a->value);
            if (auto* f = std::get_if<ir::For>(&s.op)) loops_[f->var].push_back(f);
            if (auto* r = std::get_if<ir::Role>(&s.op); r && r->instance_var >= 0)
                instances_[r->instance_var] = std::max(instances_[r->instance_var], r->instances);
        });
    }

    Steering read() {
        collect(k_.body);
        // Variables in steering expressions steer through what they are assigned.
        std::set<int> seen;
        result_.direct = result_.expressions.size();
        std::vector<Expr> queue = result_.expressions;
        while (!queue.empty()) {
            const Expr e = queue.back();
            queue.pop_back();
            visit(e, [&](const Expr& x) {
                if (x.kind() == ExprKind::block_index) result_.by_block = true;
                if (x.kind() == ExprKind::element) add_tensor(x->id);
                if (x.kind() != ExprKind::var || !seen.insert(x->id).second) return;
                for (const Expr& v : assigned_[x->id]) result_.expressions.push_back(v), queue.push_back(v);
                for (const ir::For* f : loops_[x->id]) {
                    for (const Expr& b : {f->lo, f->hi, f->step}) result_.expressions.push_back(b), queue.push_back(b);
                }
            });
        }
        for (const auto& [e, what, line, in_memory] : places_) demand(e, what, line, in_memory);
        for (const auto& [e, stmt, line] : conditions_) {
            if (decided_by_data(e)) result_.by_data.insert(stmt);
            else demand(e, "the condition", line, false);
        }
        bounds_of_loops(k_.body, {});
        starts_of_loops();
        loops_over_tiles();
        for (const auto& [condition, stmt, threshold] :
             trip_conditions_) {  // instances run every trip count that it can tell from longer ones
            if (threshold <= farthest_reach) {
                trip_reach_ = std::max(trip_reach_, threshold);
                continue;
            }
            result_.statements.erase(stmt);
            add_once(result_.fixed_conditions, condition);
        }
        caps(k_.body);
        for (const auto& [atom, step] : period_) {
            if (atom.first == ExprKind::size) result_.residues[atom.second] = step;
            if (atom.first == ExprKind::block_index) result_.block_residues[atom.second] = step;
        }
        for (int t : result_.tensors) {
            if (!k_.tensors[at(t)].content_range && !in_a_table(t)) {
                complain("the order of events depends on the contents of `" + k_.tensors[at(t)].name + "`, of which nothing is promised");
            }
        }
        return std::move(result_);
    }

private:
    std::string text(const Expr& e) const { return ir::to_string(e, names_); }
    void complain(std::string why) {
        if (result_.obstacle.empty()) result_.obstacle = std::move(why);
    }
    void add_tensor(int t) {
        if (std::find(result_.tensors.begin(), result_.tensors.end(), t) == result_.tensors.end()) result_.tensors.push_back(t);
    }
    static void visit(const Expr& e, const std::function<void(const Expr&)>& f) {
        f(e);
        for (const Expr& a : e->args) visit(a, f);
    }

    Shape leaf_shape(const Expr& e) {
        switch (e.kind()) {
            case ExprKind::size: return atom_shape({ExprKind::size, e->id}, 0);
            case ExprKind::cluster_rank: return constant_shape(0, k_.cluster[0] * k_.cluster[1] * k_.cluster[2] - 1);
            case ExprKind::block_index:
            case ExprKind::grid_size: {
                const auto blocks = k_.grid[at(e->id)].as_constant();
                if (!blocks || (k_.persistent && e->id == 0)) return atom_shape({e.kind(), e->id}, 0);
                return e.kind() == ExprKind::grid_size ? constant_shape(*blocks, *blocks) : constant_shape(0, *blocks - 1);
            }
            case ExprKind::var: {
                const auto found = variables_.find(e->id);
                if (found != variables_.end()) return found->second;
                variables_[e->id] = no_shape("depends on itself through other variables");
                return variables_[e->id] = variable_shape(e->id);
            }
            default: return no_shape("depends on the contents of `" + k_.tensors[at(e->id)].name + "`");
        }
    }

    Shape variable_shape(int id) {
        if (const auto role = instances_.find(id); role != instances_.end()) return constant_shape(0, role->second - 1);
        const auto& loops = loops_[id];
        const auto& values = assigned_[id];
        if (!loops.empty()) {
            if (!values.empty()) return no_shape("is a loop's variable that is assigned to");
            std::int64_t least = 0, most = 0;
            bool constant = true;
            for (const ir::For* f : loops) {
                const auto lo = f->lo.as_constant(), hi = f->hi.as_constant();
                constant = constant && lo && hi;
                if (lo && hi) least = std::min(least, *lo), most = std::max(most, *hi - 1);
            }
            return constant ? constant_shape(least, most) : atom_shape({ExprKind::var, id}, 0);
        }
        if (values.size() == 1 && !mentions(values[0], id)) return shapes_.of(values[0]);
        if (counter(id)) return atom_shape({ExprKind::var, id}, std::nullopt);
        return finite_shape(id);
    }

    // A variable that takes few values: set to periodic ones, and updated from itself alone, so that it goes round.
    Shape finite_shape(int id) {
        std::optional<Shape> whole;
        std::vector<Expr> updates;
        for (const Expr& v : assigned_[id]) {
            if (mentions(v, id)) {
                if (std::none_of(updates.begin(), updates.end(), [&](const Expr& u) { return ir::same(u, v); })) updates.push_back(v);
                continue;
            }
            const Shape s = shapes_.of(v);
            whole = whole ? either(*whole, s) : s;
            if (!whole->periodic()) return no_shape(whole->known() ? "takes values that grow" : whole->obstacle);
        }
        if (!whole) return no_shape("has no first value");
        if (updates.empty()) return *whole;
        if (!whole->least || !whole->most || *whole->most - *whole->least >= static_cast<std::int64_t>(largest_domain))
            return no_shape("is updated from itself over a range that is not known");
        auto next = [&](const Expr& update, std::int64_t x) {
            return ir::evaluate(update, [&](const ir::ExprNode& n, const std::vector<std::int64_t>&) {
                return n.kind == ExprKind::var && n.id == id ? std::optional(x) : std::nullopt;
            });
        };
        std::set<std::int64_t> domain;
        std::vector<std::int64_t> open;
        for (std::int64_t x = *whole->least; x <= *whole->most; ++x) domain.insert(x), open.push_back(x);
        while (!open.empty()) {
            const std::int64_t x = open.back();
            open.pop_back();
            for (const Expr& u : updates) {
                const auto y = next(u, x);
                if (!y) return no_shape("is updated with something else than itself and constants");
                if (domain.insert(*y).second) open.push_back(*y);
                if (domain.size() > largest_domain) return no_shape("is updated from itself and grows");
            }
        }
        std::int64_t round = 1;
        for (const Expr& u : updates) {
            for (const Expr& v : updates) {  // in whatever order they come
                for (std::int64_t x : domain) {
                    if (next(u, *next(v, x)) != next(v, *next(u, x))) return no_shape("is updated in ways whose order matters");
                }
            }
            for (std::int64_t x : domain) {
                std::map<std::int64_t, std::int64_t> seen;
                std::int64_t steps = 0;
                while (seen.emplace(x, steps).second) x = *next(u, x), ++steps;
                round = std::lcm(round, steps - seen[x]);
                reach_[id] = std::max(reach_[id], seen[x]);  // before it goes round
                if (round > longest_period) return no_shape("goes round after more than " + std::to_string(longest_period) + " updates");
            }
        }
        whole->atoms[{ExprKind::var, id}] = {round, 0};
        whole->least = *domain.begin(), whole->most = *domain.rbegin();
        return *whole;
    }

    // Periodic in all that grows, or the lemma does not apply.
    void demand(const Expr& e, const std::string& what, const std::string& line, bool in_memory) {
        const Shape s = shapes_.of(e);
        if (!s.periodic()) {
            complain(what + " " + text(e) + " " + (s.known() ? "grows with its loop, the sizes or the data" : s.obstacle) + line);
            return;
        }
        for (const auto& [atom, step] : s.atoms) {
            if (atom.first == ExprKind::grid_size || (k_.persistent && atom.first == ExprKind::block_index))
                complain(what + " " + text(e) + " depends on how many blocks run, and on which this is" + line);
            std::int64_t& p = period_[atom];
            p = std::lcm(std::max<std::int64_t>(1, p), step.period);
            if (in_memory) {
                std::int64_t& q = places_period_[atom];
                q = std::lcm(std::max<std::int64_t>(1, q), step.period);
            }
            if (p > longest_period) {
                complain("the slots and phases repeat after more than " + std::to_string(longest_period) + " iterations");
                p = 1;
            }
        }
    }

    // Where a loop does not start at a constant, the place where it starts is as periodic as what follows its variable; and the variable of
    // a loop that strides over the blocks of a launch says nothing of how many iterations were before.
    void starts_of_loops() {
        for (const auto& [variable, list] : loops_) {
            const auto found = period_.find({ExprKind::var, variable});
            if (found == period_.end()) continue;
            for (const ir::For* f : list) {
                if (!f->step.as_constant() || (k_.persistent && shapes_.of(f->lo).atoms.count({ExprKind::block_index, 0}) != 0)) {
                    complain("a slot, a phase or a condition follows `" + k_.vars[at(variable)].name +
                             "`, which counts the tiles of all blocks; count those of this block in a variable of its own");
                    continue;
                }
                if (f->lo.as_constant() || found->second <= 1) continue;
                const Shape s = shapes_.modulo(f->lo, found->second);
                if (!s.known()) complain("the start " + text(f->lo) + " of a loop " + s.obstacle);
                for (const auto& [atom, step] : s.atoms) {
                    std::int64_t& p = period_[atom];
                    p = std::min(std::lcm(std::max<std::int64_t>(1, p), step.period), longest_period);
                }
            }
        }
    }

    // The runs are those of one block that goes through all tiles. They speak for any number of blocks where all roles go through the tiles
    // in the same way: loops that stride over the blocks start at the same place of this block, with the same step.
    void loops_over_tiles() {
        const ir::For* first = nullptr;
        for (const auto& [variable, list] : loops_) {
            for (const ir::For* f : list) {
                const auto mentions = [](const Expr& e, ExprKind kind) {
                    bool any = false;
                    visit(e, [&](const Expr& x) { any = any || x.kind() == kind; });
                    return any;
                };
                if (!k_.persistent || !mentions(f->step, ExprKind::grid_size)) continue;
                if (!mentions(f->lo, ExprKind::block_index) || (first && (!ir::same(first->lo, f->lo) || !ir::same(first->step, f->step))))
                    complain("the loop of `" + k_.vars[at(variable)].name + "` over the tiles of this block starts at " + text(f->lo) +
                             (first ? ", another one at " + text(first->lo) : ""));
                if (!first) first = f;
            }
        }
    }

    // Does the contents of a tensor have a part in it, also through variables?
    bool reads_data(const Expr& e) {
        bool any = false;
        visit(e, [&](const Expr& x) {
            if (x.kind() == ExprKind::element) any = true;
            if (x.kind() != ExprKind::var || depth_ > 8) return;
            ++depth_;
            for (const Expr& v : assigned_[x->id]) any = any || reads_data(v);
            --depth_;
        });
        return any;
    }
    Expr written_out(const Expr& e, int depth = 0) {
        return ir::substitute(e, [&](const ir::ExprNode& n) -> std::optional<Expr> {
            if (n.kind != ExprKind::var || !loops_[n.id].empty() || assigned_[n.id].size() != 1 || mentions(assigned_[n.id][0], n.id) ||
                depth > 16)
                return std::nullopt;
            return written_out(assigned_[n.id][0], depth + 1);
        });
    }

    // A trip count that changes along the loops around: periodically, or growing with one of them, or else anyhow (`irregular`).
    void bounds_of_loops(const ir::Region& region, std::vector<const ir::For*> around) {
        for (const Stmt& s : region) {
            if (auto* f = std::get_if<ir::For>(&s.op)) {
                const bool steers = result_.steers(s) && !(f->lo.as_constant() && f->hi.as_constant());
                if (steers) bounds_of(s, *f, around);
                auto inside = around;
                if (steers) inside.push_back(f);
                bounds_of_loops(f->body, inside);
            }
            if (auto* i = std::get_if<ir::If>(&s.op)) bounds_of_loops(i->then, around), bounds_of_loops(i->otherwise, around);
            if (auto* r = std::get_if<ir::Role>(&s.op)) bounds_of_loops(r->body, around);
            if (auto* e = std::get_if<ir::Elect>(&s.op)) bounds_of_loops(e->body, around);
        }
    }
    void bounds_of(const Stmt& s, const ir::For& f, const std::vector<const ir::For*>& around) {
        const Expr trips = written_out(f.hi - f.lo);
        bool moves = false;
        visit(trips,
              [&](const Expr& x) { moves |= x.kind() == ExprKind::var && !instances_.count(x->id) && !leaf_shape(x).atoms.empty(); });
        visit(trips, [&](const Expr& x) { moves |= x.kind() == ExprKind::var && !leaf_shape(x).known(); });
        if (!moves || reads_data(trips)) return;
        const Shape shape = shapes_.of(trips);
        std::optional<int> grows_with;
        bool regular = shape.known();
        for (const auto& [atom, step] : shape.atoms) {
            if (atom.first != ExprKind::var) continue;
            if (step.growth == 0) {
                std::int64_t& p = period_[atom];
                p = std::min(std::lcm(std::max<std::int64_t>(1, p), step.period), longest_period);
                continue;
            }
            regular = regular && !grows_with;
            grows_with = atom.second;
            const auto loop = loops_.find(atom.second);
            regular = regular && loop != loops_.end() && loop->second.size() == 1 && loop->second[0]->step.as_constant() &&
                      loop->second[0]->lo.as_constant();
            if (regular) growing_.emplace(&f, std::make_pair(atom.second, step));
        }
        if (regular) return;
        result_.irregular.push_back({&s, around.empty() ? nullptr : around.front(), trips});
        if (around.size() != 1 || !f.lo.as_constant() || !f.step.is_constant(1))
            complain("the trip count " + text(f.hi) + " of a loop inside another is followed only one loop deep" +
                     (s.loc.line ? " at line " + ir::line_text(s.loc) : ""));
    }

    // What a variable gains in one execution of a region.
    struct Gain {
        std::int64_t net = 0;
        bool touched = false, exact = true;
        bool in_loops = false;    // in a loop of its own, whose trip count is no constant
        std::int64_t slower = 1;  // by conditions around it
    };
    Gain gain(const ir::Region& region, int variable) {
        Gain g;
        auto join = [&](const Gain& inner, std::int64_t times, bool exact) {
            if (!inner.touched) return;
            g.touched = true;
            g.in_loops |= inner.in_loops;
            g.exact = g.exact && exact && inner.exact;
            g.net += times * inner.net;
            g.slower = std::min(std::lcm(g.slower, inner.slower), longest_period);
        };
        for (const Stmt& s : region) {
            if (auto* a = std::get_if<ir::Assign>(&s.op); a && a->var == variable) {
                g.touched = true;
                const bool adds = a->value.kind() == ExprKind::add && a->value->args[0].kind() == ExprKind::var &&
                                  a->value->args[0]->id == variable && a->value->args[1].as_constant();
                if (adds) g.net += *a->value->args[1].as_constant();
                else g.exact = false;
            }
            if (auto* f = std::get_if<ir::For>(&s.op)) {
                const auto lo = f->lo.as_constant(), hi = f->hi.as_constant(), step = f->step.as_constant();
                const bool constant = lo && hi && step && *step > 0;
                Gain inner = gain(f->body, variable);
                inner.in_loops |= inner.touched && !constant;
                join(inner, constant ? std::max<std::int64_t>(0, (*hi - *lo + *step - 1) / *step) : 1, constant);
            }
            if (auto* i = std::get_if<ir::If>(&s.op)) {
                Gain inner = gain(i->then, variable);
                const Gain other = gain(i->otherwise, variable);
                inner.slower = std::lcm(inner.slower, other.slower);
                inner.touched |= other.touched;
                inner.in_loops |= other.in_loops;
                if (inner.touched && !fixed(i->condition)) {
                    for (const auto& [atom, step] : shapes_.of(i->condition).atoms)
                        inner.slower = std::min(inner.slower * step.period, longest_period);
                }
                join(inner, 1, false);
            }
            if (auto* r = std::get_if<ir::Role>(&s.op)) join(gain(r->body, variable), 1, true);
            if (auto* e = std::get_if<ir::Elect>(&s.op)) join(gain(e->body, variable), 1, true);
        }
        return g;
    }

    // For each loop that steers: after how many iterations it repeats, and how many trip counts tell it from all others.
    void caps(const ir::Region& region) {
        for (const Stmt& s : region) {
            if (auto* f = std::get_if<ir::For>(&s.op)) {
                caps(f->body);
                if (!result_.steers(s) || (f->lo.as_constant() && f->hi.as_constant())) continue;
                const SteeringLoop loop = result_.loops[&s] = cap_of(*f);
                // A trip count that grows with a loop around: that loop goes on until this one has run through all that can be told apart.
                if (const auto found = growing_.find(f); found != growing_.end()) {
                    const auto& [variable, step] = found->second;
                    std::int64_t& far = reach_[variable];
                    far = std::max(
                        far, std::min<std::int64_t>((loop.cap + 2) * step.period / std::max<std::int64_t>(1, std::abs(step.growth)) + 1,
                                                    4 * farthest_reach));
                }
            }
            if (auto* i = std::get_if<ir::If>(&s.op)) caps(i->then), caps(i->otherwise);
            if (auto* r = std::get_if<ir::Role>(&s.op)) caps(r->body);
            if (auto* e = std::get_if<ir::Elect>(&s.op)) caps(e->body);
        }
    }
    SteeringLoop cap_of(const ir::For& f) {
        SteeringLoop loop;
        loop.loop = &f;
        loop.reach = loop.own_reach = trip_reach_ + reach_[f.var] + end_reach_[f.var];  // start and end may lie apart
        loop.by_own = reach_[f.var] + end_reach_[f.var] > 0;
        std::int64_t in_memory = 1;
        auto iterations = [&](const std::map<ShapeAtom, std::int64_t>& periods) {
            std::int64_t all = 1;
            for (const auto& [atom, p] : periods) {
                if (atom.first != ExprKind::var) continue;
                std::int64_t own = 1;
                if (atom.second == f.var) {
                    own = p / std::gcd(p, std::abs(f.step.as_constant().value_or(1)));
                    loop.by_inner = loop.by_inner && own == 1;
                    loop.by_own |= own > 1;
                } else if (const Gain g = gain(f.body, atom.second); g.touched) {
                    own = g.exact ? p / std::gcd(p, std::abs(g.net)) : std::min(p * g.slower, longest_period + 1);
                    loop.by_inner = loop.by_inner && (own == 1 || (g.in_loops && g.slower == 1));
                    loop.reach = std::max(loop.reach, loop.own_reach + reach_[atom.second]);
                }
                all = std::min(std::lcm(all, own), longest_period + 1);
            }
            return all;
        };
        loop.period = iterations(period_);
        in_memory = iterations(places_period_);
        bool barriers = false;  // their phases go on whatever the text says
        ir::for_each_stmt(f.body, [&](const Stmt& s) {
            barriers |= std::holds_alternative<ir::BarrierWait>(s.op) || std::holds_alternative<ir::BarrierArrive>(s.op) ||
                        std::holds_alternative<ir::BarrierExpect>(s.op) || std::holds_alternative<ir::CpAsyncArrive>(s.op);
        });
        if (barriers) loop.period = std::min(std::lcm(loop.period, 2 * in_memory), longest_period + 1);
        for (const auto& [counter_id, far] : reach_) {
            if (!counter(counter_id)) continue;
            const Gain g = gain(f.body, counter_id);
            if (g.touched) loop.reach = std::max(loop.reach, loop.own_reach + far);
            if (g.touched && !g.in_loops) loop.own_part = std::max(loop.own_part, far);
        }
        loop.own_part += loop.own_reach;
        if (loop.period > longest_period)
            complain("the slots and phases repeat after more than " + std::to_string(longest_period) + " iterations");
        loop.cap = loop.reach + loop.period + in_memory + 1;
        loop.distance = loop.reach + in_memory + 1;
        result_.period = std::max(result_.period, std::min(loop.period, longest_period));
        return loop;
    }

    static void accumulate(Affine& a, const Affine& b, std::int64_t factor) {
        for (const auto& [name, term] : b.terms) {
            auto [it, fresh] = a.terms.emplace(name, std::make_pair(term.first, std::int64_t{0}));
            if ((it->second.second = plus(it->second.second, times(factor, term.second))) == 0) a.terms.erase(it);
        }
        a.constant = plus(a.constant, times(factor, b.constant));
    }

    Affine affine(const Expr& e) {
        Affine a;
        auto add = [&](const Affine& b, std::int64_t factor) { accumulate(a, b, factor); };
        if (auto c = e.as_constant()) {
            a.constant = *c;
            return a;
        }
        if (e.kind() == ExprKind::add) return add(affine(e->args[0]), 1), add(affine(e->args[1]), 1), a;
        if (e.kind() == ExprKind::sub) return add(affine(e->args[0]), 1), add(affine(e->args[1]), -1), a;
        if (e.kind() == ExprKind::mul) {
            if (auto c = e->args[0].as_constant()) return add(affine(e->args[1]), *c), a;
            if (auto c = e->args[1].as_constant()) return add(affine(e->args[0]), *c), a;
        }
        // A variable that is assigned once, outside its own loops, is what it was assigned.
        if (e.kind() == ExprKind::var && loops_[e->id].empty() && assigned_[e->id].size() == 1 && !mentions(assigned_[e->id][0], e->id) &&
            depth_ < 8) {
            ++depth_;
            a = affine(assigned_[e->id][0]);
            --depth_;
            return a;
        }
        a.terms.emplace(text(e), std::make_pair(e, std::int64_t{1}));
        return a;
    }
    static bool mentions(const Expr& e, int var) { return ir::mentions_var(e, var); }

    // Part of a table of tiles: which contents it may have is promised.
    bool in_a_table(int tensor) const {
        return std::any_of(k_.tensors.begin(), k_.tensors.end(), [&](const ir::Tensor& t) {
            return t.tile_ends && (&t == &k_.tensors[at(tensor)] || t.tile_ends->starts == tensor);
        });
    }

    // A comparison of entries of a table of tiles with one another and with constants (how high is this tile?): like a trip count that
    // depends on promised contents, what it does is seen in the runs, over tables with tiles of every height in mixed order.
    bool decided_by_data(const Expr& c) {
        if (!compares(c.kind())) return false;
        bool data = false, other = false;
        for (const auto& [name, term] : affine(c->args[0] - c->args[1]).terms) {
            const Expr& x = term.first;
            if (x.kind() == ExprKind::element && in_a_table(x->id)) data = true;
            else if (x.kind() == ExprKind::size || !shapes_.of(x).periodic()) other = true;
        }
        return data && !other;
    }

    // Comparisons along a loop: their truth may change near its start or near its end. How near goes to `reach_`.
    bool threshold_at_an_end(const Expr& c) {
        Affine d = affine(c->args[0] - c->args[1]);
        std::string name, partner;
        Expr variable, other;
        std::int64_t factor = 0;
        for (const auto& [text, term] : d.terms) {
            if (term.first.kind() != ExprKind::var || !grows(term.first->id)) continue;
            if (factor != 0 && !(counter(variable->id) && counter(term.first->id) && term.second == -factor))
                return false;  // where two that grow meet is anywhere
            if (!partner.empty()) return false;
            if (factor != 0)
                partner = text, other = term.first;  // two counters: their difference starts at a constant and changes by constants
            else name = text, variable = term.first, factor = term.second;
        }
        if (factor == 0) return edge_of_a_size(d);
        const std::int64_t step = counter(variable->id) || loops_[variable->id].empty()
                                      ? 1
                                      : std::abs(loops_[variable->id].front()->step.as_constant().value_or(1));
        // How many iterations from where `rest` is zero the truth may change; nothing where that is not known.
        auto near = [&](const Affine& rest) -> std::optional<std::int64_t> {
            std::int64_t far = std::abs(rest.constant);
            for (const auto& [text, term] : rest.terms) {
                const Shape s = shapes_.of(term.first);
                if (!s.periodic() || !s.least || !s.most) return std::nullopt;
                far += std::abs(term.second) * std::max(std::abs(*s.least), std::abs(*s.most));
            }
            const std::int64_t scale = std::abs(factor) * std::max<std::int64_t>(1, step);
            const std::int64_t iterations = (far + scale - 1) / scale + 1;
            return iterations <= farthest_reach ? std::optional(iterations) : std::nullopt;
        };
        auto accept = [&](std::int64_t iterations, std::map<int, std::int64_t>& reach) {
            for (const Expr& v : {variable, other}) {
                if (v.kind() == ExprKind::var) reach[v->id] = std::max(reach[v->id], iterations);
            }
            return true;
        };
        // Near the start: counters start at constants, loops mostly at 0.
        Affine rest = d;
        rest.terms.erase(name);
        if (!partner.empty()) rest.terms.erase(partner);
        const bool from_zero =
            loops_[variable->id].empty() || std::all_of(loops_[variable->id].begin(), loops_[variable->id].end(),
                                                        [](const ir::For* f) { return f->lo.as_constant().has_value(); });
        if (const auto n = near(rest); n && from_zero) return accept(*n, reach_);
        if (!partner.empty() || loops_[variable->id].empty()) return false;
        // Near the end of the variable's own loop, or near the start of one that starts elsewhere: of each that it has.
        std::int64_t farthest = 0;
        for (const ir::For* f : loops_[variable->id]) {
            const Affine hi = affine(f->hi);
            Affine r = rest;  // factor * v + rest, with v = hi: should be near zero
            accumulate(r, hi, factor);
            auto n = near(r);
            // factor * ((x + q) / factor) is x up to factor.
            if (!n && hi.terms.size() == 1) {
                const Expr& h = hi.terms.begin()->second.first;
                if (hi.terms.begin()->second.second == 1 && h.kind() == ExprKind::floor_div && h->args[1].is_constant(std::abs(factor))) {
                    Affine x = affine(h->args[0]);
                    Affine s = rest;
                    const int sign = factor > 0 ? 1 : -1;
                    accumulate(s, x, sign);
                    s.constant = plus(s.constant, times(factor, hi.constant));
                    n = near(s);
                    if (n) residue_points(rest, std::abs(factor));
                }
            }
            if (!n) {
                Affine l = rest;
                accumulate(l, affine(f->lo), factor);
                n = near(l);
            }
            if (!n) return false;
            farthest = std::max(farthest, *n);
        }
        return accept(farthest, end_reach_);  // or at its start, which counts alike
    }
    // No loop moves it: blocks of a few elements up to where a size ends. Which of them are there hangs on the size's remainder, or on the
    // size where it is small.
    bool edge_of_a_size(const Affine& d) {
        std::int64_t wide = std::abs(d.constant), blocks = 0;
        int size = -1;
        for (const auto& [name, term] : d.terms) {
            if (term.first.kind() == ExprKind::size) {
                if (size >= 0 || std::abs(term.second) != 1) return false;
                size = term.first->id;
                continue;
            }
            const Shape s = shapes_.of(term.first);
            if (term.first.kind() == ExprKind::block_index && !s.atoms.empty()) {
                if (k_.persistent) return false;
                blocks = std::gcd(blocks, std::abs(term.second));
                continue;
            }
            if (!s.periodic() || !s.least || !s.most) return false;
            wide += std::abs(term.second) * std::max(std::abs(*s.least), std::abs(*s.most));
        }
        if (size < 0 || wide > farthest_reach) return false;
        auto& points = result_.remainders[size];
        for (std::int64_t r = 0; r <= wide + 1; ++r) {
            if (blocks == 0) points.insert({0, r});
            else points.insert({blocks, r % blocks}), points.insert({blocks, ir::floor_mod(-r, blocks)});
        }
        return true;
    }
    // factor * v + size + constant changes its sign in the last iterations, or the one before: at these remainders of the size.
    void residue_points(const Affine& rest, std::int64_t factor) {
        for (const auto& [text, term] : rest.terms) {
            if (term.first.kind() != ExprKind::size || std::abs(term.second) != 1) continue;
            const std::int64_t turn = ir::floor_mod(term.second > 0 ? -rest.constant : rest.constant, factor);
            for (std::int64_t near : {turn - 1, turn, turn + 1})
                result_.remainders[term.first->id].insert({factor, ir::floor_mod(near, factor)});
        }
    }
    // A loop's variable or a counter, whose value has no bound.
    bool grows(int id) {
        if (k_.vars[at(id)].kind == ir::Variable::Kind::instance) return false;
        const Shape s = leaf_shape(ir::var_expr(id));
        return !s.known() || !s.periodic();
    }

    // Set to constants and advanced by constants, nothing else.
    bool counter(int id) {
        const auto& values = assigned_[id];
        return loops_[id].empty() && !values.empty() && std::all_of(values.begin(), values.end(), [&](const Expr& v) {
                   return v.as_constant() || (v.kind() == ExprKind::add && v->args[0].kind() == ExprKind::var && v->args[0]->id == id &&
                                              v->args[1].as_constant());
               });
    }

    void collect(const ir::Region& region) {
        for (const Stmt& s : region) {
            const std::string line = s.loc.line ? " at line " + ir::line_text(s.loc) : "";
            auto place = [&](const Expr& e, const char* what) {
                result_.expressions.push_back(e);
                places_.emplace_back(e, what, line, std::string_view(what) != "the parity");
            };
            auto view = [&](const ir::SharedView& v) {
                for (const Expr& e : v.origin) place(e, "the place in shared memory");
                if (v.cluster_rank) place(*v.cluster_rank, "the rank");
            };
            auto bar = [&](const ir::BarrierRef& b) {
                place(b.slot, "the slot");
                if (b.cluster_rank) place(*b.cluster_rank, "the rank");
            };
            if (auto* x = std::get_if<ir::LoadShared>(&s.op)) view(x->src);
            if (auto* x = std::get_if<ir::StoreShared>(&s.op)) view(x->dst);
            if (auto* x = std::get_if<ir::CpAsync>(&s.op)) view(x->dst);
            if (auto* x = std::get_if<ir::CpAsyncArrive>(&s.op)) bar(x->barrier);
            if (auto* x = std::get_if<ir::TmaLoad>(&s.op)) {
                view(x->dst), bar(x->barrier);
                if (x->multicast_mask) place(*x->multicast_mask, "the multicast mask");
            }
            if (auto* x = std::get_if<ir::TmaStore>(&s.op)) view(x->src);
            if (auto* x = std::get_if<ir::BarrierInit>(&s.op)) bar(x->barrier);
            if (auto* x = std::get_if<ir::BarrierArrive>(&s.op)) bar(x->barrier);
            if (auto* x = std::get_if<ir::BarrierExpect>(&s.op)) bar(x->barrier), place(x->bytes, "the byte count");
            if (auto* x = std::get_if<ir::BarrierWait>(&s.op)) bar(x->barrier), place(x->parity, "the parity");
            if (auto* x = std::get_if<ir::NamedSync>(&s.op)) place(x->id, "the barrier number");
            if (auto* x = std::get_if<ir::NamedArrive>(&s.op)) place(x->id, "the barrier number");
            if (auto* x = std::get_if<ir::TeamSend>(&s.op)) message(x->message, line);
            if (auto* x = std::get_if<ir::TeamReceive>(&s.op)) message(x->message, line);
            if (auto* x = std::get_if<ir::Wgmma>(&s.op)) {
                if (auto* a = std::get_if<ir::SharedView>(&x->a)) view(*a);
                view(x->b);
                place(x->accumulate, "the choice to accumulate");
            }
            if (auto* x = std::get_if<ir::For>(&s.op)) {
                if (!neutral(x->body)) {
                    result_.statements.insert(&s);
                    for (const Expr& e : {x->lo, x->hi, x->step}) result_.expressions.push_back(e);
                }
                collect(x->body);
            }
            if (auto* x = std::get_if<ir::If>(&s.op); x && x->vote >= 0)
                collect(x->then);  // runs take it always; it has no part in the order of events
            else if (x) {
                const bool calm = neutral(x->then) && neutral(x->otherwise);  // forced where no run takes it both ways: it steers nothing
                if (const auto threshold = calm ? std::nullopt : trip_threshold(x->condition)) {
                    result_.statements.insert(&s);
                    result_.expressions.push_back(x->condition);
                    trip_conditions_.emplace_back(x->condition, &s, *threshold);
                } else if (fixed(x->condition)) {
                    add_once(calm ? result_.calm_conditions : result_.fixed_conditions, x->condition);
                } else if (calm) {
                    add_once(result_.calm_conditions, x->condition);
                } else {
                    result_.statements.insert(&s);
                    result_.expressions.push_back(x->condition);
                    conditions_.emplace_back(x->condition, &s, line);
                }
                collect(x->then);
                collect(x->otherwise);
            }
            if (auto* x = std::get_if<ir::Role>(&s.op)) collect(x->body);
            if (auto* x = std::get_if<ir::Elect>(&s.op)) collect(x->body);
        }
    }

    // The number of a message counts with a loop from 0 in steps of 1: then what holds in the first iterations holds in all, since
    // with each of them the number and the count of messages grow by one.
    void message(const Expr& e, const std::string& line) {
        result_.expressions.push_back(e);
        const Affine a = affine(e);
        bool counts = a.terms.size() == 1 && a.terms.begin()->second.second == 1 && a.terms.begin()->second.first.kind() == ExprKind::var;
        if (counts) {
            const auto& loops = loops_[a.terms.begin()->second.first->id];
            counts = loops.size() == 1 && loops[0]->lo.is_constant(0) && loops[0]->step.is_constant(1);
        }
        if (!counts) complain("the message " + text(e) + " is no loop's count plus a constant" + line);
    }

    static void add_once(std::vector<Expr>& list, const Expr& condition) {
        if (!condition.as_constant() && std::none_of(list.begin(), list.end(), [&](const Expr& e) { return ir::same(e, condition); }))
            list.push_back(condition);
    }

    // The trip count of a loop from 0 in steps of 1, compared with a constant: that constant.
    std::optional<std::int64_t> trip_threshold(const Expr& c) {
        if ((c.kind() != ExprKind::lt && c.kind() != ExprKind::le) || !fixed(c)) return std::nullopt;
        const Affine d = affine(c->args[0] - c->args[1]);
        for (const auto& [variable, list] : loops_) {
            for (const ir::For* f : list) {
                if (!f->lo.is_constant(0) || !f->step.is_constant(1) || f->hi.as_constant() || neutral(f->body) || !fixed(f->hi)) continue;
                const Affine trips = affine(f->hi);
                for (int sign : {1, -1}) {
                    bool same = trips.terms.size() == d.terms.size();
                    for (const auto& [name, term] : trips.terms) {
                        const auto found = d.terms.find(name);
                        same = same && found != d.terms.end() && found->second.second == sign * term.second;
                    }
                    if (same) return std::abs(d.constant - sign * trips.constant) + 1;
                }
            }
        }
        return std::nullopt;
    }

    // The index along an axis on which one cluster lies: every cluster has all its values, as it has all ranks.
    bool is_rank(const Expr& e) const {
        if (e.kind() != ExprKind::block_index || (k_.persistent && e->id == 0)) return false;
        const int blocks = k_.cluster[at(e->id)];
        return blocks > 1 && k_.grid[at(e->id)].is_constant(blocks);
    }

    // The same for the whole run of a block: sizes and block indices, also through variables that are assigned once.
    bool fixed(const Expr& e) {
        bool all = true;
        visit(e, [&](const Expr& x) {
            if (x.kind() == ExprKind::element || x.kind() == ExprKind::cluster_rank || is_rank(x)) all = false;
            if (x.kind() != ExprKind::var) return;
            if (!loops_[x->id].empty() || assigned_[x->id].size() != 1 || k_.vars[at(x->id)].kind == ir::Variable::Kind::instance ||
                depth_ > 8) {
                all = false;
                return;
            }
            ++depth_;
            all = all && fixed(assigned_[x->id][0]);
            --depth_;
        });
        return all;
    }

    const ir::Kernel& k_;
    ir::ExprNames names_;
    std::map<int, std::vector<Expr>> assigned_;
    std::map<int, std::vector<const ir::For*>> loops_;
    std::map<int, int> instances_;  // how many of its role there are, by the variable that numbers them
    ShapeReader shapes_;
    std::map<int, Shape> variables_;
    std::map<ShapeAtom, std::int64_t> period_, places_period_;  // of all that steers; of slots and places in memory
    std::map<int, std::int64_t> reach_,
        end_reach_;  // by variable: iterations from the start, and from the end of its loop, at which a condition may change
    std::int64_t trip_reach_ = 0;
    std::map<const ir::For*, std::pair<int, Shape::Step>> growing_;  // loops whose trip count grows with the variable of one around
    std::vector<std::tuple<Expr, std::string, std::string, bool>> places_;
    std::vector<std::tuple<Expr, const Stmt*, std::string>> conditions_;
    std::vector<std::tuple<Expr, const Stmt*, std::int64_t>> trip_conditions_;  // with the constant they compare with
    int depth_ = 0;
    Steering result_;
};

}  // namespace

Steering steering_of(const ir::Kernel& kernel) { return Reader(kernel).read(); }

std::optional<std::int64_t> upper_bound(const Expr& e) {
    if (auto c = e.as_constant()) return c;
    if (e.kind() == ExprKind::mod) {
        if (auto d = e->args[1].as_constant(); d && *d > 0) return *d - 1;
    }
    if (e.kind() == ExprKind::min) {
        const auto a = upper_bound(e->args[0]), b = upper_bound(e->args[1]);
        return a && b ? std::optional(std::min(*a, *b)) : a ? a : b;
    }
    if (e.kind() == ExprKind::max || e.kind() == ExprKind::select) {
        const std::size_t first = e.kind() == ExprKind::select ? 1 : 0;
        const auto a = upper_bound(e->args[first]), b = upper_bound(e->args[first + 1]);
        if (a && b) return std::max(*a, *b);
    }
    if (e.kind() == ExprKind::add) {
        const auto a = upper_bound(e->args[0]), b = upper_bound(e->args[1]);
        if (a && b) return *a + *b;
    }
    return std::nullopt;
}

}  // namespace tw::verify
