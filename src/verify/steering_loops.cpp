// Loops that steer: where they start, how their trip counts change, after how many iterations they repeat.
#include "verify/steering_reader.h"

#include <algorithm>
#include <numeric>

#include "base/index.h"

namespace tw::verify {

// Where a loop does not start at a constant, the place where it starts is as periodic as what follows its variable; and the variable of
// a loop that strides over the blocks of a launch says nothing of how many iterations were before.
void SteeringReader::starts_of_loops() {
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
void SteeringReader::loops_over_tiles() {
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

bool SteeringReader::over_tiles(const ir::For& f) const {
    bool any = false;
    visit(f.step, [&](const Expr& x) { any |= k_.persistent && x.kind() == ExprKind::grid_size; });
    return any;
}

// The runs have one block, which goes through all tiles: what follows the number of tiles anywhere else (a loop beside those over tiles, a
// slot or a phase after them) is right there and nowhere else, because a block of several goes through fewer.
void SteeringReader::others_follow_tiles() {
    std::set<Followed> tiles;
    for (const CountedLoop& c : counted_) {
        if (c.over_tiles) tiles.merge(followed_by(c));
    }
    if (tiles.empty()) return;
    const auto follows = [&](const Expr& e) {
        bool any = false;
        visit(written_out(e), [&](const Expr& x) { any |= x.kind() == ExprKind::size && tiles.count({x.kind(), x->id}) > 0; });
        return any;
    };
    for (const CountedLoop& c : counted_) {
        if (c.over_tiles) continue;
        const std::set<Followed> mine = followed_by(c);
        if (std::none_of(mine.begin(), mine.end(), [&](const Followed& f) { return tiles.count(f) > 0; })) continue;
        if (c.inside) result_.tiles_decide_inside = true;
        else
            complain("the trip count " + text(c.trips) + c.line +
                     ", outside of the loops over tiles, follows what the number of tiles of all blocks follows");
    }
    for (const auto& [atom, step] : period_) {
        if (step > 1 && tiles.count(atom) > 0)
            complain("a slot, a phase or a condition follows " +
                     (atom.first == ExprKind::size ? k_.sizes[at(atom.second)] : std::string("what")) +
                     ", by which the number of tiles of all blocks is counted; count those of this block in a variable");
    }
    for (const auto& [condition, stmt, threshold] : trip_conditions_) {
        if (follows(condition)) complain("the condition " + text(condition) + " follows the number of tiles of all blocks");
    }
}

// Does the contents of a tensor have a part in it, also through variables?
bool SteeringReader::reads_data(const Expr& e) {
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

ir::Expr SteeringReader::written_out(const Expr& e) {
    bool cut = false;
    const auto meaning = [&](const ir::ExprNode& n) -> std::optional<Expr> {
        if (n.kind == ExprKind::grid_size && !(k_.persistent && n.id == 0)) return k_.grid[at(n.id)];
        if (n.kind != ExprKind::var || !loops_[n.id].empty() || assigned_[n.id].size() != 1 || mentions(assigned_[n.id][0], n.id))
            return std::nullopt;
        return assigned_[n.id][0];
    };
    Expr all = ir::written_out(e, meaning, &cut);
    if (cut) complain("the integer " + text(e) + " stands for too much to be written out");  // it may hide what nobody then looks at
    return all;
}

// A trip count that changes along the loops around: periodically, or growing with one of them, or else anyhow (`irregular`).
void SteeringReader::bounds_of_loops(const ir::Region& region, std::vector<const ir::For*> around) {
    for (const Stmt& s : region) {
        if (auto* f = std::get_if<ir::For>(&s.op)) {
            const bool steers = result_.steers(s) && !(f->lo.as_constant() && f->hi.as_constant());
            inside_tiles_ = std::any_of(around.begin(), around.end(), [&](const ir::For* a) { return over_tiles(*a); });
            if (steers) bounds_of(s, *f, around);
            inside_tiles_ = false;
            auto inside = around;
            if (steers) inside.push_back(f);
            bounds_of_loops(f->body, inside);
        }
        if (auto* i = std::get_if<ir::If>(&s.op)) bounds_of_loops(i->then, around), bounds_of_loops(i->otherwise, around);
        if (auto* r = std::get_if<ir::Role>(&s.op)) bounds_of_loops(r->body, around);
        if (auto* e = std::get_if<ir::Elect>(&s.op)) bounds_of_loops(e->body, around);
    }
}

bool SteeringReader::of_sizes_or_data(const Expr& e) {
    bool any = false;
    visit(e, [&](const Expr& x) { any |= x.kind() == ExprKind::size || x.kind() == ExprKind::element || x.kind() == ExprKind::grid_size; });
    return any;
}

// Trip counts of which instances show all that sizes can do: they grow with each size in steps of one width (what two loops that belong
// together do differently, they do for one of the least sizes of a trip count), turn at small counts, or follow a small remainder.
// `scale`: what the expression is divided by.
void SteeringReader::examine_trips(const Expr& e, std::int64_t scale, const std::string& line) {
    const auto refuse = [&](const char* why) { complain("the trip count has " + text(e) + ", " + why + line); };
    const auto small = [&](std::int64_t c) { return std::abs(c) / scale <= farthest_reach; };
    switch (e.kind()) {
        case ExprKind::constant:
            if (!small(*e.as_constant())) refuse("a constant that no instance reaches");
            return;
        case ExprKind::size: divisors_[e->id].insert(scale); return;
        case ExprKind::var:
        case ExprKind::block_index:
        case ExprKind::grid_size:
        case ExprKind::cluster_rank:
        case ExprKind::element: return;
        case ExprKind::add:
        case ExprKind::sub:
        case ExprKind::min:
        case ExprKind::max:
            for (const Expr& a : e->args) {
                const auto c = a.as_constant();
                if (c && small(*c) && (e.kind() == ExprKind::min || e.kind() == ExprKind::max))
                    least_cap_ = std::max(least_cap_, std::abs(*c) / scale + 2);
                examine_trips(a, scale, line);
            }
            return;
        case ExprKind::mul:
            for (const Expr& a : e->args) {
                if (!a.as_constant()) examine_trips(a, scale, line);
            }
            return;
        case ExprKind::floor_div:
            if (const auto d = e->args[1].as_constant(); d && *d > 0 && *d < (std::int64_t{1} << 40) / scale)
                return examine_trips(e->args[0], scale * *d, line);
            if (of_sizes_or_data(e->args[1]) && e->args[1].kind() != ExprKind::grid_size) return refuse("divided by a size");
            return examine_trips(e->args[0], scale, line);
        case ExprKind::mod:
            if (!of_sizes_or_data(e)) return;
            if (const auto d = e->args[1].as_constant(); d && *d > 0 && e->args[0].kind() == ExprKind::size) {
                std::int64_t& p = period_[{ExprKind::size, e->args[0]->id}];
                p = std::min(std::lcm(std::max<std::int64_t>(1, p), *d), longest_period);
                return;
            }
            return refuse("a remainder of more than a size");
        default:
            if (of_sizes_or_data(e)) refuse("which sizes or data turn at any place");
            return;
    }
}

// A size that is cut into narrow tiles and into much wider ones in one trip count: instances that are short in narrow tiles do not show
// what the wide ones do. (Parts of a loop that the blocks deal out have trip counts of the wide tiles alone.)
void SteeringReader::compare_divisors(const Expr& trips, const std::string& line) {
    bool dealt = false;
    visit(trips, [&](const Expr& x) { dealt |= x.kind() == ExprKind::block_index; });
    for (const auto& [size, widths] : divisors_) {
        if (*widths.rbegin() / *widths.begin() > (dealt ? 512 : 8))
            complain("a trip count divides " + k_.sizes[at(size)] + " by " + std::to_string(*widths.begin()) + " and by " +
                     std::to_string(*widths.rbegin()) + line);
    }
    divisors_.clear();
}

// A trip count, or a number that one must agree with.
void SteeringReader::count_of(const Expr& trips, const Expr& step, const std::string& line) {
    examine_trips(trips, std::max<std::int64_t>(1, step.as_constant().value_or(1)), line);
    compare_divisors(trips, line);
    bool dealt = false;
    visit(step, [&](const Expr& x) { dealt |= k_.persistent && x.kind() == ExprKind::grid_size; });
    counted_.push_back({trips, step, dealt, inside_tiles_, line});
}

void SteeringReader::bounds_of(const Stmt& s, const ir::For& f, const std::vector<const ir::For*>& around) {
    const Expr trips = written_out(f.hi - f.lo);
    const auto examine = [&] { count_of(trips, f.step, s.loc.line ? " at line " + ir::line_text(s.loc) : ""); };
    bool moves = false;
    visit(trips, [&](const Expr& x) { moves |= x.kind() == ExprKind::var && !instances_.count(x->id) && !leaf_shape(x).atoms.empty(); });
    visit(trips, [&](const Expr& x) { moves |= x.kind() == ExprKind::var && !leaf_shape(x).known(); });
    if (!moves || reads_data(trips)) return examine();
    const Shape shape = shapes_.of(trips);
    std::optional<int> grows_with;
    bool regular = shape.known();
    for (const auto& [atom, step] : shape.atoms) {
        if (atom.first != ExprKind::var) continue;
        if (step.growth == 0) {
            std::int64_t& round = trips_period_[atom.second];
            round = std::min(std::lcm(std::max<std::int64_t>(1, round), step.period), longest_period);
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
    if (regular) return examine();
    result_.irregular.push_back({&s, around.empty() ? nullptr : around.front(), trips});
    if (around.size() != 1 || !f.lo.as_constant() || !f.step.is_constant(1))
        complain("the trip count " + text(f.hi) + " of a loop inside another is followed only one loop deep" +
                 (s.loc.line ? " at line " + ir::line_text(s.loc) : ""));
}

SteeringReader::Gain SteeringReader::gain(const ir::Region& region, int variable) {
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
void SteeringReader::caps(const ir::Region& region) {
    for (const Stmt& s : region) {
        if (auto* f = std::get_if<ir::For>(&s.op)) {
            caps(f->body);
            if (!result_.steers(s) || (f->lo.as_constant() && f->hi.as_constant())) continue;
            const SteeringLoop loop = result_.loops[&s] = cap_of(*f);
            // A trip count that grows with a loop around: that loop goes on until this one has run through all that can be told apart.
            if (const auto found = growing_.find(f); found != growing_.end()) {
                const auto& [variable, step] = found->second;
                std::int64_t& far = reach_[variable];
                far = std::max(far,
                               std::min<std::int64_t>((loop.cap + 2) * step.period / std::max<std::int64_t>(1, std::abs(step.growth)) + 1,
                                                      4 * farthest_reach));
            }
        }
        if (auto* i = std::get_if<ir::If>(&s.op)) caps(i->then), caps(i->otherwise);
        if (auto* r = std::get_if<ir::Role>(&s.op)) caps(r->body);
        if (auto* e = std::get_if<ir::Elect>(&s.op)) caps(e->body);
    }
}

SteeringLoop SteeringReader::cap_of(const ir::For& f) {
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
                // By a loop inside whose trip count goes round with this one: both must come round.
                if (g.in_loops && trips_period_.count(f.var)) own = std::min(own * trips_period_.at(f.var), longest_period + 1);
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
    if (const auto p = phases_.find(&f); p != phases_.end()) loop.period = std::min(std::lcm(loop.period, p->second), longest_period + 1);
    if (const auto n = phases_anyhow_.find(&f); n != phases_anyhow_.end())
        loop.period = std::min(loop.period * n->second, longest_period + 1);
    for (const auto& [counter_id, far] : reach_) {
        if (!counter(counter_id)) continue;
        const Gain g = gain(f.body, counter_id);
        if (g.touched) loop.reach = std::max(loop.reach, loop.own_reach + far);
        if (g.touched && !g.in_loops) loop.own_part = std::max(loop.own_part, far);
    }
    loop.own_part += loop.own_reach;
    if (loop.period > longest_period)
        complain("the slots and phases repeat after more than " + std::to_string(longest_period) + " iterations");
    loop.cap = std::max(loop.reach + loop.period + in_memory + 1, least_cap_);
    loop.distance = loop.reach + in_memory + 1;
    result_.period = std::max(result_.period, std::min(loop.period, longest_period));
    return loop;
}

}  // namespace tw::verify
