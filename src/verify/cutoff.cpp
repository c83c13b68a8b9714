#include "verify/cutoff.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "base/index.h"
#include "verify/instances.h"
#include "verify/prove.h"
#include "verify/steering.h"

namespace tw::verify {
namespace {

using ir::Expr;
using ir::ExprKind;

std::vector<bool> mattering(const ir::Kernel& k, const Steering& steering) {
    std::vector<bool> matters(k.sizes.size(), false);
    std::function<void(const Expr&)> mark = [&](const Expr& e) {
        if (e.kind() == ExprKind::size) matters[at(e->id)] = true;
        for (const Expr& a : e->args) mark(a);
    };
    for (const Expr& e : steering.expressions) mark(e);
    if (steering.by_block || k.persistent) {
        for (const Expr& g : k.grid) mark(g);
    }
    for (int t : steering.tensors) {
        const ir::Tensor& tensor = k.tensors[at(t)];
        for (const Expr& d : tensor.dims) mark(d);
        if (tensor.content_range) mark(tensor.content_range->first), mark(tensor.content_range->second);
    }
    return matters;
}

// The constant at which the last of the loops inside these branches starts.
std::int64_t latest_start_in(const std::set<const ir::Stmt*>& branches) {
    std::int64_t start = 0;
    for (const ir::Stmt* branch : branches) {
        const auto& i = std::get<ir::If>(branch->op);
        for (const ir::Region* region : {&i.then, &i.otherwise}) {
            ir::for_each_stmt(*region, [&](const ir::Stmt& s) {
                if (auto* f = std::get_if<ir::For>(&s.op)) start = std::max(start, f->lo.as_constant().value_or(0));
            });
        }
    }
    return start;
}

// The sizes that bound loops inside these branches, directly or through scalars.
std::set<int> bounding_in(const ir::Kernel& k, const std::set<const ir::Stmt*>& branches) {
    std::map<int, std::vector<Expr>> assigned;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op)) assigned[a->var].push_back(a->value);
    });
    std::set<int> sizes, seen;
    std::function<void(const Expr&)> mark = [&](const Expr& e) {
        if (e.kind() == ExprKind::size) sizes.insert(e->id);
        if (e.kind() == ExprKind::var && seen.insert(e->id).second) {
            for (const Expr& v : assigned[e->id]) mark(v);
        }
        for (const Expr& a : e->args) mark(a);
    };
    for (const ir::Stmt* branch : branches) {
        const auto& i = std::get<ir::If>(branch->op);
        for (const ir::Region* region : {&i.then, &i.otherwise}) {
            ir::for_each_stmt(*region, [&](const ir::Stmt& s) {
                if (auto* f = std::get_if<ir::For>(&s.op)) mark(f->lo), mark(f->hi), mark(f->step);
            });
        }
    }
    return sizes;
}

// Statements that only wait for the warp's own work, or end the kernel together: what they do is the same after any number of iterations.
bool quiet(const ir::Region& region) {
    bool all = true;
    ir::for_each_stmt(region, [&](const ir::Stmt& s) {
        auto is = [&]<class... Ops>() { return (std::holds_alternative<Ops>(s.op) || ...); };
        all = all && is.operator()<ir::Elect, ir::BulkCommit, ir::BulkWait, ir::WgmmaWait, ir::CpAsyncWait, ir::ClusterArrive,
                                   ir::ClusterWait, ir::SetMaxRegisters, ir::GridLaunch, ir::GridWait, ir::Assign>();
    });
    return all;
}

// The outermost loops that steer, if they are of the kind of Cutoff::in_step.
class InStep {
public:
    InStep(const ir::Kernel& k, const Steering& steering) : k_(k), steering_(steering) {}
    std::set<const ir::For*> loops() {
        look(k_.body, true);
        return fit_ ? loops_ : std::set<const ir::For*>();
    }

private:
    void look(const ir::Region& region, bool last) {
        for (std::size_t i = 0; i < region.size() && fit_; ++i) {
            const ir::Stmt& s = region[i];
            const bool ends = last && quiet(ir::Region(region.begin() + static_cast<std::ptrdiff_t>(i) + 1, region.end()));
            if (auto* f = std::get_if<ir::For>(&s.op)) {
                if (const auto found = steering_.loops.find(&s); found != steering_.loops.end()) take(*f, found->second, ends);
                else look(f->body, false);
            }
            if (auto* x = std::get_if<ir::If>(&s.op)) look(x->then, false), look(x->otherwise, false);
            if (auto* r = std::get_if<ir::Role>(&s.op)) look(r->body, last && roles_after(region, i));
            if (auto* e = std::get_if<ir::Elect>(&s.op)) look(e->body, ends);
        }
    }
    // After a role, its warps come to the other roles only, which are not theirs.
    static bool roles_after(const ir::Region& region, std::size_t i) {
        ir::Region rest;
        for (std::size_t j = i + 1; j < region.size(); ++j) {
            if (!std::holds_alternative<ir::Role>(region[j].op)) rest.push_back(region[j]);
        }
        return quiet(rest);
    }
    void take(const ir::For& f, const SteeringLoop& loop, bool ends) {
        ir::ExprNames names = ir::names_of(k_);
        const std::string trips = ir::to_string(written_out(f.lo), names) + " : " + ir::to_string(written_out(f.hi), names) + " : " +
                                  ir::to_string(written_out(f.step), names);
        fit_ = fit_ && ends && loop.own_reach == 0 && (loops_.empty() || trips == trips_);
        trips_ = trips;
        loops_.insert(&f);
    }
    Expr written_out(const Expr& e) {
        if (assigned_.empty()) {
            ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
                if (auto* a = std::get_if<ir::Assign>(&s.op)) assigned_[a->var].push_back(a->value);
            });
        }
        return ir::written_out(e, [&](const ir::ExprNode& n) -> std::optional<Expr> {
            const auto found = n.kind == ExprKind::var ? assigned_.find(n.id) : assigned_.end();
            if (found == assigned_.end() || found->second.size() != 1 || ir::mentions_var(found->second[0], n.id)) return std::nullopt;
            return found->second[0];
        });
    }

    const ir::Kernel& k_;
    const Steering& steering_;
    std::map<int, std::vector<Expr>> assigned_;
    std::set<const ir::For*> loops_;
    std::string trips_;
    bool fit_ = true;
};

// Every word of so many letters, going round: the last letters of `result` and its first are words too.
std::vector<std::int64_t> all_words(const std::vector<std::int64_t>& letters, std::size_t length) {
    std::vector<std::size_t> word(length * letters.size(), 0);
    std::vector<std::int64_t> result;
    std::function<void(std::size_t, std::size_t)> grow = [&](std::size_t t, std::size_t p) {  // Lyndon words, in order
        if (t > length) {
            if (length % p == 0) {
                for (std::size_t i = 1; i <= p; ++i) result.push_back(letters[word[i]]);
            }
            return;
        }
        word[t] = word[t - p];
        grow(t + 1, p);
        for (std::size_t j = word[t - p] + 1; j < letters.size(); ++j) word[t] = j, grow(t + 1, t);
    };
    grow(1, 1);
    return result;
}

// Trip counts for irregular loops, one for each iteration around: every pair of neighbours, and every three of none, one and many,
// beginning in every state of the rings.
std::vector<std::int64_t> any_trips(std::int64_t period, std::int64_t distance) {
    std::vector<std::int64_t> counts;
    for (std::int64_t n = 0; n < distance + 2; ++n) counts.push_back(n);
    std::vector<std::int64_t> round = all_words(counts, 2);
    const std::vector<std::int64_t> threes = all_words({0, 1, distance + 1}, 3);
    round.insert(round.end(), threes.begin(), threes.end());
    std::vector<std::int64_t> all;
    for (std::int64_t state = 0; state < period; ++state) {
        std::rotate(round.begin(), round.begin() + 1, round.end());  // the loop around goes on by itself
        std::vector<std::int64_t> block = round;
        block.insert(block.end(), round.begin(), round.begin() + 2);
        // The next round begins one further, whatever an iteration around advances beside: a multiple of the period of iterations.
        const std::int64_t sum = std::accumulate(block.begin(), block.end(), std::int64_t{0});
        block.push_back(((1 - sum) % period + period) % period);
        while (static_cast<std::int64_t>(block.size()) % period != 0) block.push_back(0);
        all.insert(all.end(), block.begin(), block.end());
    }
    return all;
}

// Irregular loops of the kind that Cutoff::any_trips decides; otherwise why not.
std::string take_irregular(const ir::Kernel& k, const Steering& steering, Cutoff& c) {
    if (steering.irregular.empty()) return {};
    std::set<int> outer;
    for (const IrregularLoop& i : steering.irregular) outer.insert(i.around ? i.around->var : -1);
    ir::ExprNames names = ir::names_of(k);
    const auto name = names.var;
    names.var = [&](int v) { return outer.count(v) ? std::string("@") : name(v); };
    std::set<std::string> texts;
    std::int64_t period = 1, distance = 1;
    for (const IrregularLoop& i : steering.irregular) {
        const SteeringLoop& loop = steering.loops.at(i.stmt);
        texts.insert(ir::to_string(i.trips, names));
        period = std::max(period, loop.period), distance = std::max(distance, loop.distance);
        c.irregular.insert(loop.loop);
        // Iterations around can be joined into one without changing what those of the inner loop do, so that neighbours speak for all: only
        // where no iteration knows its number.
        if (loop.by_own)
            return "the trip count " + ir::to_string(i.trips, ir::names_of(k)) +
                   " changes with the loop around it, and a slot or a condition follows the loop's own variable; count in a variable that "
                   "goes on";
        std::function<bool(const Expr&)> by_instance = [&](const Expr& e) {
            return (e.kind() == ExprKind::var && !outer.count(e->id)) || std::any_of(e->args.begin(), e->args.end(), by_instance);
        };
        if (by_instance(i.trips))
            return "the trip count " + ir::to_string(i.trips, ir::names_of(k)) + " depends on more than the iteration around it";
    }
    if (texts.size() > 1)
        return "loops inside a loop have different trip counts that change with it: " + *texts.begin() + " and " + *texts.rbegin();
    if (c.in_step.empty())
        return "the trip count " + *texts.begin() +
               " changes with the loop around it, and that loop is not the last thing that its warps do";
    if (!steering.tensors.empty())
        return "the trip count " + *texts.begin() + " changes with the loop around it, and the contents of tensors steer too";
    c.any_trips = any_trips(period, distance);
    const std::vector<SizeDemand> demands = demands_of(k, steering, c.in_step);
    const auto choices = choices_of(k, demands, false);
    std::vector<std::int64_t> base;
    for (const Choices& choice : choices) base.push_back(choice.values[1]);
    for (std::size_t i = 0; i < demands.size(); ++i) {
        for (const Expr& trips : demands[i].trips) {
            const auto n = least_for(trips, base, i, static_cast<std::int64_t>(c.any_trips.size()));
            std::vector<std::int64_t> sizes = base;
            if (!n || (c.any_trips_in && c.any_trips_in->sizes[i] <= *n)) continue;
            sizes[i] = std::max<std::int64_t>(1, *n);
            if (const auto fit = admitted(k, sizes)) c.any_trips_in = Instance{*fit, 1, instance_text(k, *fit)};
        }
    }
    if (!c.any_trips_in) return "no instance has enough iterations around a loop of trip count " + *texts.begin();
    if (c.any_trips.size() > 2000) return "the trip count " + *texts.begin() + " changes with the loop around it, in too many ways to try";
    return {};
}

}  // namespace

Cutoff cutoff(const ir::Kernel& k, bool in_step) {
    Cutoff c;
    const Steering steering = steering_of(k);
    c.obstacle = steering.obstacle;
    c.period = steering.period;
    c.forced = steering.fixed_conditions;
    c.unlike = steering.unlike_conditions;
    c.one_block = !steering.by_block && !k.persistent;
    c.steering_tensors = steering.tensors;
    if (in_step) c.in_step = InStep(k, steering).loops();
    if (const std::string why = take_irregular(k, steering, c); c.obstacle.empty()) c.obstacle = why;
    const std::vector<SizeDemand> demands = demands_of(k, steering, c.in_step);
    for (const SizeDemand& d : demands) {
        if (d.residue > 64 && c.obstacle.empty())
            c.obstacle = "places in shared memory or conditions follow a size's remainder by " + std::to_string(d.residue);
    }
    if (auto list = vary(k, choices_of(k, demands, true), mattering(k, steering), demands, c.period, true)) c.instances = std::move(*list);
    else if (c.obstacle.empty())
        c.obstacle =
            "too many combinations of trip counts and remainders decide the order of events, or the assumptions admit too few of them";
    if (steering.tiles_decide_inside) {  // fewer tiles with loops as long: more blocks, up to one for each tile
        for (const int blocks : {2, 3, 1 << 20}) {
            for (std::size_t i = 0, n = c.instances.size(); i < n; ++i) {
                if (c.instances[i].resident_blocks != 1) continue;
                Instance more = c.instances[i];
                more.resident_blocks = blocks;
                c.instances.push_back(std::move(more));
            }
        }
    }
    if (steering.by_block && !k.persistent) {  // trip counts that differ from block to block (a causal mask): every one in one instance
        for (Instance& i : longer_instances(k, 0)) c.instances.push_back(std::move(i));
    }
    if (!steering.by_data.empty()) {  // branches that a table of tiles decides: rows for many tiles of every height
        for (const ir::Tensor& t : k.tensors) {
            if (!t.tile_ends || k.tensors[at(t.tile_ends->groups)].dims[0].kind() != ExprKind::size) continue;
            std::optional<int> table;  // the size that its length is, or is a multiple of
            std::function<void(const Expr&)> look = [&](const Expr& e) {
                if (e.kind() == ExprKind::size) table = e->id;
                for (const Expr& a : e->args) look(a);
            };
            look(t.dims[0]);
            if (!table) continue;
            std::vector<SizeDemand> longer = demands;
            for (SizeDemand& d : longer) d.cap += latest_start_in(steering.by_data);
            const auto choices = choices_of(k, longer, true);
            const std::set<int> inner = bounding_in(k, steering.by_data);
            const int rows = k.tensors[at(t.tile_ends->groups)].dims[0]->id;
            for (std::size_t longest = 0; longest <= k.sizes.size(); ++longest) {  // each size of their loops through many tiles, then none
                if (longest < k.sizes.size() && !inner.count(static_cast<int>(longest))) continue;
                constexpr std::int64_t wanted = 48;
                std::vector<std::int64_t> sizes(k.sizes.size());
                for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = choices[i].values[i == longest ? 3 : 1];
                auto tiles = [&] { return emulate::size_value(t.dims[0], sizes).value_or(wanted); };
                for (sizes[at(*table)] = 1; sizes[at(*table)] < wanted && tiles() < wanted;) ++sizes[at(*table)];
                sizes[at(rows)] = tiles() * t.tile_ends->width / 2;
                if (auto fit = admitted(k, sizes)) c.instances.push_back({*fit, 1, instance_text(k, *fit), emulate::Spread::random});
            }
        }
    }
    if (c.instances.empty() && c.obstacle.empty()) c.obstacle = "no small instance satisfies the assumptions";
    return c;
}

std::vector<Instance> grown_instances(const ir::Kernel& k, std::int64_t tiles) {
    const Steering steering = steering_of(k);
    const std::vector<bool> matters = mattering(k, steering);
    const std::vector<SizeUse> use = uses_of(k);
    std::vector<Instance> instances;
    if (steering.tensors.empty()) return instances;
    for (std::size_t grown = 0; grown < k.sizes.size(); ++grown) {
        if (!matters[grown] || use[grown].tiles.empty()) continue;
        std::vector<SizeDemand> demands = demands_of(k, steering, {});
        demands[grown].cap = std::max(demands[grown].cap, tiles);
        const auto choices = choices_of(k, demands, false);
        for (const bool others : {false, true}) {
            std::vector<std::int64_t> sizes(k.sizes.size());
            for (std::size_t i = 0; i < sizes.size(); ++i)
                sizes[i] = choices[i].values[i == grown || (others && matters[i] && !use[i].tiles.empty()) ? 3 : 1];
            const auto fit = admitted(k, sizes);
            if (!fit) continue;
            instances.push_back({*fit, 1, instance_text(k, *fit), emulate::Spread::lowest});
            if (others) instances.push_back({*fit, 1, instance_text(k, *fit), emulate::Spread::random});
        }
    }
    return instances;
}

// Sizes that say how many blocks there are along an axis of which a loop's bounds follow the block's index.
static std::set<int> sizes_of_blocks_in_trips(const ir::Kernel& k) {
    std::map<int, std::vector<Expr>> assigned;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op)) assigned[a->var].push_back(a->value);
    });
    std::set<int> sizes, seen;
    const std::function<void(const Expr&)> collect = [&](const Expr& e) {
        if (e.kind() == ExprKind::size) sizes.insert(e->id);
        for (const Expr& a : e->args) collect(a);
    };
    const std::function<void(const Expr&)> look = [&](const Expr& e) {
        if (e.kind() == ExprKind::block_index) collect(k.grid[at(e->id)]);
        if (e.kind() == ExprKind::var && seen.insert(e->id).second)
            for (const Expr& v : assigned[e->id]) look(v);
        for (const Expr& a : e->args) look(a);
    };
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* f = std::get_if<ir::For>(&s.op)) look(f->lo), look(f->hi), look(f->step);
    });
    return sizes;
}

std::vector<Instance> longer_instances(const ir::Kernel& k, int round) {
    const Steering steering = steering_of(k);
    const std::vector<bool> matters = mattering(k, steering);
    std::vector<SizeDemand> demands = demands_of(k, steering, {});
    for (SizeDemand& d : demands) d.cap <<= round;
    const auto choices = choices_of(k, demands, false);
    const std::vector<SizeUse> use = uses_of(k);
    std::vector<std::int64_t> sizes(k.sizes.size());
    // Sizes that are not cut into tiles had their long loops among the first instances; here they would only multiply the blocks. Where
    // that is not enough, a loop that steers nothing (it begins at its second tile, say) has yet to be entered: then all that are cut grow.
    // Where a loop is as long as the number of its block says, there have to be as many blocks.
    const std::set<int> of_blocks = sizes_of_blocks_in_trips(k);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const bool grows = ((matters[i] || round > 1) && !use[i].tiles.empty()) || of_blocks.count(static_cast<int>(i)) > 0;
        sizes[i] = choices[i].values[grows ? 3 : 1];
    }
    auto fit = admitted(k, sizes);
    if (!fit) return {};
    return {{*fit, 1, instance_text(k, *fit)}};
}

void force_untried(const ir::Kernel& k, const emulate::CoverageMap& coverage, Cutoff& cutoff) {
    const Steering steering = steering_of(k);
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        auto* i = std::get_if<ir::If>(&s.op);
        if (!i) return;
        auto holds = [&](const std::vector<Expr>& list) {
            return std::any_of(list.begin(), list.end(), [&](const Expr& e) { return ir::same(e, i->condition); });
        };
        const auto found = coverage.find(&s);
        const bool tried = found != coverage.end() && found->second.taken && found->second.passed;
        if (holds(steering.calm_conditions) && !tried && !holds(cutoff.forced)) cutoff.forced.push_back(i->condition);
    });
}

namespace {

// Can the loop run more than `trips` times at all? Scalars that have one definition stand for it.
bool never_runs_longer(const ir::Kernel& k, const ir::For& loop, std::int64_t trips) {
    if (!loop.step.is_constant(1)) return false;
    std::map<int, std::vector<Expr>> definitions;
    std::map<int, int> instances;  // how many of its role there are, by the variable that numbers them
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op)) definitions[a->var].push_back(a->value);
        if (auto* r = std::get_if<ir::Role>(&s.op); r && r->instance_var >= 0) instances[r->instance_var] = r->instances;
    });
    Integers ints;
    Prover prover(ints);
    int depth = 0;
    Integers::Leaf leaf = [&](const ir::ExprNode& n) -> Poly {
        if (n.kind == ExprKind::size) return Poly::of(ints.symbol(k.sizes[at(n.id)], 0));
        if (n.kind == ExprKind::var) {
            const auto found = definitions.find(n.id);
            if (found != definitions.end() && found->second.size() == 1 && depth < 8) {
                ++depth;
                const Poly value = ints.from(found->second.front(), leaf);
                --depth;
                return value;
            }
            const std::string name = "var" + std::to_string(n.id);
            const auto role = instances.find(n.id);
            return Poly::of(role == instances.end() ? ints.symbol(name) : ints.symbol(name, 0, role->second - 1));
        }
        if (n.kind == ExprKind::block_index) return Poly::of(ints.symbol("block" + std::to_string(n.id), 0));
        return Poly::of(ints.fresh("any"));
    };
    for (const ir::Assumption& a : k.assumptions) prover.assume(ints.condition_from(a.condition, leaf));
    return prover.holds(at_least(Poly(trips), ints.from(loop.hi, leaf) - ints.from(loop.lo, leaf)));
}

}  // namespace

CoverageGap coverage_gap(const ir::Kernel& k, const Cutoff& cutoff, const emulate::CoverageMap& coverage) {
    const Steering steering = steering_of(k);
    const std::vector<SizeUse> use = uses_of(k);
    CoverageGap gap;
    auto line = [](const ir::Stmt& s) { return s.loc.line ? " at line " + ir::line_text(s.loc) : std::string(" made by the compiler"); };
    const ir::ExprNames names = ir::names_of(k);
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (gap.kind != CoverageGap::Kind::none) return;
        const auto found = coverage.find(&s);
        const emulate::Coverage seen = found == coverage.end() ? emulate::Coverage{} : found->second;
        if (auto* l = std::get_if<ir::For>(&s.op)) {
            const Expr trips = l->hi - l->lo;
            if (l->lo.as_constant() && l->hi.as_constant()) return;
            const auto steering_loop = steering.loops.find(&s);
            std::int64_t needed = steering_loop != steering.loops.end() ? steering_loop->second.cap : 1;
            if (cutoff.irregular.count(l)) needed = std::min<std::int64_t>(needed, 1);  // run with counts of their own
            if (auto most = upper_bound(l->hi); most && l->lo.as_constant())
                needed = std::min(needed, std::max<std::int64_t>(0, *most - *l->lo.as_constant()));
            // Sizes with an upper end: the instances include it, and more is not possible.
            bool bounded = true;
            std::function<void(const Expr&)> look = [&](const Expr& e) {
                if (e.kind() == ExprKind::size) bounded = bounded && use[at(e->id)].most.has_value();
                if (e.kind() == ExprKind::var || e.kind() == ExprKind::element || e.kind() == ExprKind::block_index ||
                    e.kind() == ExprKind::grid_size)
                    bounded = false;
                for (const Expr& a : e->args) look(a);
            };
            look(trips);
            if (bounded) {
                std::vector<std::int64_t> largest;
                for (const SizeUse& u : use) largest.push_back(u.most.value_or(1));
                const auto most = emulate::size_value(ir::ceil_div(trips, l->step), largest);
                needed = std::min(needed, std::max<std::int64_t>(1, most.value_or(needed)));
            }
            if (seen.most_trips < needed && !(seen.most_trips > 0 && never_runs_longer(k, *l, seen.most_trips))) {
                gap = {CoverageGap::Kind::loop,
                       "the loop" + line(s) + " ran at most " + std::to_string(std::max<std::int64_t>(0, seen.most_trips)) +
                           " times in any instance, " + std::to_string(needed) + " are needed",
                       needed};
            }
        }
        if (auto* i = std::get_if<ir::If>(&s.op)) {
            if (i->condition.as_constant()) return;
            if (steering.steers(s) && !steering.by_data.count(&s))
                return;  // periodic, or near an end of its loop: long loops show all it does
            const bool forced =
                std::any_of(cutoff.forced.begin(), cutoff.forced.end(), [&](const Expr& e) { return ir::same(e, i->condition); });
            if (forced || (seen.taken && seen.passed)) return;
            gap = {CoverageGap::Kind::condition, "the condition " + ir::to_string(i->condition, names) + line(s) + " was never " +
                                                     (seen.taken ? "false" : "true") + " in any instance"};
        }
    });
    return gap;
}

std::vector<Instance> edge_instances(const ir::Kernel& k) {
    const std::int64_t period = steering_of(k).period;
    std::vector<SizeDemand> demands(k.sizes.size());
    for (SizeDemand& d : demands) d.cap = period + 2;
    return *vary(k, choices_of(k, demands, false, true), std::vector<bool>(k.sizes.size(), true), demands, period, false);
}

}  // namespace tw::verify
