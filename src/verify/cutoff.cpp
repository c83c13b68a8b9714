#include "verify/cutoff.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "verify/cluster_signature.h"
#include "verify/prove.h"
#include "verify/steering.h"

namespace tw::verify {
namespace {

using ir::Expr;
using ir::ExprKind;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// For each size: the constants it is divided by (tile extents), and what the assumptions say of it alone.
struct SizeUse {
    std::set<std::int64_t> tiles;
    std::set<std::string> quotients;
    std::int64_t multiple = 1;
    std::int64_t least = 1;
    std::optional<std::int64_t> most;
    std::set<std::int64_t> thresholds;   // constants that a condition compares it with
};

// What expressions are read with: variables that hold an element of an index tensor, and where such elements end.
struct Reading {
    const ir::Kernel& kernel;
    ir::ExprNames names;
    std::map<int, Expr> elements;   // by variable
};

// `stride`: the step of the loop that the expression bounds.
void collect_tiles(const Expr& e, const Reading& reading, std::vector<SizeUse>& use, std::int64_t stride = 1) {
    if (e.kind() == ExprKind::floor_div || e.kind() == ExprKind::mod) {
        if (auto d = e->args[1].as_constant(); d && *d > 1) {
            std::function<void(const Expr&)> mark = [&](const Expr& x) {
                // An element of an index tensor counts up to where its range ends.
                if (x.kind() == ExprKind::var && reading.elements.count(x->id)) return mark(reading.elements.at(x->id));
                if (x.kind() == ExprKind::element) {
                    const auto& range = reading.kernel.tensors[at(x->id)].content_range;
                    std::function<void(const Expr&)> sizes = [&](const Expr& y) {
                        if (y.kind() == ExprKind::size) use[at(y->id)].tiles.insert(*d * stride);
                        for (const Expr& a : y->args) sizes(a);
                    };
                    if (range) sizes(range->second);
                    return;
                }
                if (x.kind() == ExprKind::size) {
                    use[at(x->id)].tiles.insert(*d);
                    use[at(x->id)].quotients.insert(ir::to_string(e, reading.names));
                }
                if (x.kind() == ExprKind::add || x.kind() == ExprKind::sub || x.kind() == ExprKind::min || x.kind() == ExprKind::max) {
                    for (const Expr& a : x->args) mark(a);
                }
            };
            mark(e->args[0]);
        }
    }
    for (const Expr& a : e->args) collect_tiles(a, reading, use, stride);
}

void collect_thresholds(const Expr& e, std::vector<SizeUse>& use) {
    if (e->args.size() == 2) {
        for (int side : {0, 1}) {
            const Expr &n = e->args[at(side)], &c = e->args[at(1 - side)];
            if (auto v = c.as_constant(); v && n.kind() == ExprKind::size && *v > 0 && *v < 100'000) use[at(n->id)].thresholds.insert(*v);
        }
    }
    for (const Expr& a : e->args) collect_thresholds(a, use);
}

// The extents of the tiles that move along dimensions that are sizes.
void collect_views(const ir::Kernel& k, std::vector<SizeUse>& use) {
    auto along = [&](int tensor, int dim, int extent) {
        const Expr& e = k.tensors[at(tensor)].dims[at(dim)];
        if (e.kind() == ExprKind::size && extent > 1) use[at(e->id)].tiles.insert(extent);
    };
    auto view = [&](const ir::GlobalView& v) {
        for (std::size_t i = 0; i < v.dims.size(); ++i) along(v.tensor, v.dims[i], v.extents[i]);
    };
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* x = std::get_if<ir::LoadGlobal>(&s.op)) view(x->src);
        if (auto* x = std::get_if<ir::StoreGlobal>(&s.op)) view(x->dst);
        if (auto* x = std::get_if<ir::AtomicAdd>(&s.op)) view(x->dst);
        if (auto* x = std::get_if<ir::CpAsync>(&s.op)) view(x->src);
    });
    for (const ir::TensorMap& m : k.tensor_maps) {
        for (std::size_t i = 0; i < m.dims.size(); ++i) along(m.tensor, m.dims[i], m.box[i]);
    }
}

// `by_views`: tiles are also what views and tensor maps say, not only what sizes are divided by.
std::vector<SizeUse> uses_of(const ir::Kernel& k, bool by_views = false) {
    std::vector<SizeUse> use(k.sizes.size());
    Reading names{k, ir::names_of(k), {}};
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op); a && a->value.kind() == ExprKind::element) names.elements.emplace(a->var, a->value);
    });
    for (const ir::Tensor& t : k.tensors) {   // a table of tiles cuts the rows into tiles
        if (!t.tile_ends) continue;
        const Expr& rows = k.tensors[at(t.tile_ends->groups)].dims[0];
        if (rows.kind() == ExprKind::size) use[at(rows->id)].tiles.insert(t.tile_ends->width);
    }
    if (by_views) collect_views(k, use);
    for (const Expr& g : k.grid) collect_tiles(g, names, use);
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* l = std::get_if<ir::For>(&s.op)) collect_tiles(l->lo, names, use), collect_tiles(l->hi, names, use, std::max<std::int64_t>(1, l->step.as_constant().value_or(1))), collect_tiles(l->step, names, use);
        if (auto* i = std::get_if<ir::If>(&s.op)) collect_tiles(i->condition, names, use), collect_thresholds(i->condition, use);
        if (auto* a = std::get_if<ir::Assign>(&s.op)) collect_tiles(a->value, names, use);
    });
    for (const ir::Assumption& a : k.assumptions) {
        std::function<void(const Expr&)> learn = [&](const Expr& c) {
            if (c.kind() == ExprKind::logic_and) learn(c->args[0]), learn(c->args[1]);
            if (c->args.size() != 2) return;
            const Expr &l = c->args[0], &r = c->args[1];
            if (c.kind() == ExprKind::eq && l.kind() == ExprKind::mod && r.is_constant(0) && l->args[0].kind() == ExprKind::size) {
                if (auto d = l->args[1].as_constant(); d && *d > 0) use[at(l->args[0]->id)].multiple = *d;
            }
            const int strict = c.kind() == ExprKind::lt ? 1 : 0;
            if (c.kind() == ExprKind::lt || c.kind() == ExprKind::le) {
                if (auto d = r.as_constant(); d && l.kind() == ExprKind::size) use[at(l->id)].most = *d - strict;
                if (auto d = l.as_constant(); d && r.kind() == ExprKind::size) use[at(r->id)].least = std::max<std::int64_t>(1, *d + strict);
            }
            if (c.kind() == ExprKind::eq) {
                if (auto d = r.as_constant(); d && l.kind() == ExprKind::size) use[at(l->id)].most = use[at(l->id)].least = *d;
                if (auto d = l.as_constant(); d && r.kind() == ExprKind::size) use[at(r->id)].most = use[at(r->id)].least = *d;
            }
        };
        learn(a.condition);
    }
    return use;
}

bool satisfies(const ir::Kernel& k, const std::vector<std::int64_t>& sizes) {
    return std::all_of(k.assumptions.begin(), k.assumptions.end(), [&](const ir::Assumption& a) { return emulate::size_value(a.condition, sizes).value_or(0) != 0; });
}

// Sizes nearby that the assumptions admit: relations between sizes are repaired one by one.
std::optional<std::vector<std::int64_t>> admitted(const ir::Kernel& k, std::vector<std::int64_t> sizes) {
    for (int round = 0; round < 6 && !satisfies(k, sizes); ++round) {
        for (const ir::Assumption& a : k.assumptions) {
            const Expr& c = a.condition;
            if (emulate::size_value(c, sizes).value_or(0) != 0 || c->args.size() != 2) continue;
            const Expr &l = c->args[0], &r = c->args[1];
            const auto lv = emulate::size_value(l, sizes), rv = emulate::size_value(r, sizes);
            const int strict = c.kind() == ExprKind::lt ? 1 : 0;
            if (c.kind() == ExprKind::eq && l.kind() == ExprKind::mod && l->args[0].kind() == ExprKind::size) {
                auto d = emulate::size_value(l->args[1], sizes);
                auto& n = sizes[at(l->args[0]->id)];
                if (d && *d > 0 && rv) n = (n + *d - 1) / *d * *d + ((*rv % *d) + *d) % *d;
            } else if (c.kind() == ExprKind::eq && l.kind() == ExprKind::size && rv) {
                sizes[at(l->id)] = *rv;
            } else if (c.kind() == ExprKind::eq && r.kind() == ExprKind::size && lv) {
                sizes[at(r->id)] = *lv;
            } else if ((c.kind() == ExprKind::lt || c.kind() == ExprKind::le) && r.kind() == ExprKind::size && lv) {
                sizes[at(r->id)] = *lv + strict;
            } else if ((c.kind() == ExprKind::lt || c.kind() == ExprKind::le) && l.kind() == ExprKind::size && rv) {
                sizes[at(l->id)] = *rv - strict;
            }
        }
    }
    if (!satisfies(k, sizes) || std::any_of(sizes.begin(), sizes.end(), [](std::int64_t n) { return n < 0; })) return std::nullopt;
    return sizes;
}

std::string instance_text(const ir::Kernel& k, const std::vector<std::int64_t>& sizes) {
    std::string s;
    for (std::size_t i = 0; i < sizes.size(); ++i) s += (i ? " " : "") + k.sizes[i] + "=" + std::to_string(sizes[i]);
    return s;
}

// Values of a size: tiny, one tile, a few tiles and a bit, enough tiles to pass the period, and others; none, where asked for. Then the trip
// counts between: whether one of those is worth a run is asked of the instance.
struct Choices {
    std::vector<std::int64_t> values;
    std::size_t always = 0;   // so many of them are no mere trip counts
};

std::vector<Choices> choices_of(const ir::Kernel& k, std::int64_t period, bool empty_too, bool by_views = false) {
    const std::vector<SizeUse> use = uses_of(k, by_views);
    std::vector<Choices> choices(k.sizes.size());
    for (std::size_t i = 0; i < k.sizes.size(); ++i) {
        const SizeUse& u = use[i];
        auto& values = choices[i].values;
        auto add = [&](std::int64_t n) {
            n = std::max(n, u.least);
            n = (n + u.multiple - 1) / u.multiple * u.multiple;
            if (u.most) n = std::min(n, *u.most / u.multiple * u.multiple);
            if (std::find(values.begin(), values.end(), n) == values.end()) values.push_back(n);
        };
        const std::int64_t tile = u.tiles.empty() ? 1 : *u.tiles.rbegin();
        add(1);
        add(tile == 1 ? 2 : tile);
        add(tile == 1 ? 3 : 2 * tile + 1);
        add((period + 2) * tile);
        if (u.quotients.size() > 1) add((period + 2) * tile + 1);
        for (std::int64_t t : u.thresholds) add(t), add(t + 1);
        if (by_views && u.most && *u.most <= 65536) add(*u.most);   // a row that fills what was made for it
        if (by_views && tile > 2) add(tile / 2 + 1);                // part of a tile, and more than one element: a mean of one hides what padding does
        while (values.size() < 4) values.push_back(values.back());   // bounded sizes have fewer
        if (empty_too && u.least <= 1) values.push_back(0);
        choices[i].always = values.size();
        if (!empty_too) continue;
        // Every trip count up to the period: what comes after a loop, or happens where its start meets its end, may be wrong for one alone.
        // (Where the period is long, up to a bound: the work grows with its square.)
        for (std::int64_t trips = 2; trips < std::min<std::int64_t>(period, 48) + 2; ++trips) add(trips * tile);
    }
    return choices;
}

// Beyond the period, trip counts that differ by whole periods end alike. What a persistent kernel does hangs on its sizes through the
// parts of ClusterSignature: sizes that give equal parts, up to whole periods where they are larger than that, make no further instance.
class TripCounts {
public:
    TripCounts(const ir::Kernel& k, std::int64_t period) : k_(k), signature_(k), period_(period) {}
    // Is this the first time that it is asked of such sizes?
    bool fresh(const std::vector<std::int64_t>& sizes) {
        if (!k_.persistent) return true;
        ClusterSignature::BlockIndex grid{k_.cluster[0] * k_.cluster[1] * k_.cluster[2], 1, 1};   // one cluster goes through all tiles
        std::vector<ClusterSignature::BlockIndex> blocks;
        for (std::int64_t rank = 0; rank < grid[0]; ++rank) blocks.push_back({rank, 0, 0});
        std::vector<std::int64_t> parts = signature_.of(sizes, blocks, grid);
        for (std::int64_t& v : parts) {
            if (v > period_ + 2) v = period_ + 3 + v % period_;
        }
        return seen_.insert(std::move(parts)).second;
    }

private:
    const ir::Kernel& k_;
    ClusterSignature signature_;
    std::int64_t period_;
    std::set<std::vector<std::int64_t>> seen_;
};

// Each size that matters through its choices while the others are at one tile, then at a few tiles.
std::vector<Instance> vary(const ir::Kernel& k, const std::vector<Choices>& choices, const std::vector<bool>& matters, std::int64_t period) {
    std::vector<Instance> list;
    TripCounts trips(k, period);
    auto emit = [&](const std::vector<std::int64_t>& wanted, bool always) {
        auto sizes = admitted(k, wanted);
        if (!sizes) return;
        for (const Instance& i : list) {
            if (i.sizes == *sizes) return;
        }
        if (!trips.fresh(*sizes) && !always) return;
        list.push_back({*sizes, 1, instance_text(k, *sizes)});
    };
    const std::size_t n = k.sizes.size();
    for (int background : {1, 2}) {
        std::vector<std::int64_t> base(n);
        for (std::size_t i = 0; i < n; ++i) base[i] = choices[i].values[static_cast<std::size_t>(matters[i] ? background : 1)];
        emit(base, true);
        for (std::size_t i = 0; i < n; ++i) {
            if (!matters[i]) continue;
            for (std::size_t c = 0; c < choices[i].values.size(); ++c) {
                // The long choice of one size with several tiles of the others is kept to one background.
                if (c >= 3 && background == 2) continue;
                std::vector<std::int64_t> sizes = base;
                sizes[i] = choices[i].values[c];
                emit(sizes, c < choices[i].always);
            }
        }
    }
    if (n == 0) emit({}, true);
    return list;
}

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

}  // namespace

Cutoff cutoff(const ir::Kernel& k) {
    Cutoff c;
    const Steering steering = steering_of(k);
    c.obstacle = steering.obstacle;
    c.period = steering.period;
    c.forced = steering.fixed_conditions;
    c.one_block = !steering.by_block && !k.persistent;
    c.steering_tensors = steering.tensors;
    c.instances = vary(k, choices_of(k, c.period, true), mattering(k, steering), c.period);
    if (steering.by_block && !k.persistent) {   // trip counts that differ from block to block (a causal mask): every one in one instance
        for (Instance& i : longer_instances(k, 0)) c.instances.push_back(std::move(i));
    }
    if (!steering.by_data.empty()) {   // branches that a table of tiles decides: rows for many tiles of every height
        for (const ir::Tensor& t : k.tensors) {
            if (!t.tile_ends || k.tensors[at(t.tile_ends->groups)].dims[0].kind() != ExprKind::size) continue;
            std::optional<int> table;   // the size that its length is, or is a multiple of
            std::function<void(const Expr&)> look = [&](const Expr& e) {
                if (e.kind() == ExprKind::size) table = e->id;
                for (const Expr& a : e->args) look(a);
            };
            look(t.dims[0]);
            if (!table) continue;
            const auto choices = choices_of(k, c.period + latest_start_in(steering.by_data), true);
            const std::set<int> inner = bounding_in(k, steering.by_data);
            const int rows = k.tensors[at(t.tile_ends->groups)].dims[0]->id;
            for (std::size_t longest = 0; longest <= k.sizes.size(); ++longest) {   // each size of their loops through many tiles, then none
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

std::vector<Instance> longer_instances(const ir::Kernel& k, int round) {
    const Steering steering = steering_of(k);
    const std::vector<bool> matters = mattering(k, steering);
    const auto choices = choices_of(k, steering.period << round, false);
    const std::vector<SizeUse> use = uses_of(k);
    std::vector<std::int64_t> sizes(k.sizes.size());
    // Sizes that are not cut into tiles had their long loops among the first instances; here they would only multiply the blocks.
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = choices[i].values[matters[i] && !use[i].tiles.empty() ? 3 : 1];
    auto fit = admitted(k, sizes);
    if (!fit) return {};
    return {{*fit, 1, instance_text(k, *fit)}};
}

void force_untried(const ir::Kernel& k, const emulate::CoverageMap& coverage, Cutoff& cutoff) {
    const Steering steering = steering_of(k);
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        auto* i = std::get_if<ir::If>(&s.op);
        if (!i) return;
        auto holds = [&](const std::vector<Expr>& list) { return std::any_of(list.begin(), list.end(), [&](const Expr& e) { return ir::same(e, i->condition); }); };
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
    std::map<int, int> instances;   // how many of its role there are, by the variable that numbers them
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

std::string coverage_gap(const ir::Kernel& k, const Cutoff& cutoff, const emulate::CoverageMap& coverage) {
    const Steering steering = steering_of(k);
    const std::vector<SizeUse> use = uses_of(k);
    std::string gap;
    auto line = [](const ir::Stmt& s) { return s.loc.line ? " at line " + std::to_string(s.loc.line) : std::string(" made by the compiler"); };
    const ir::ExprNames names = ir::names_of(k);
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (!gap.empty()) return;
        const auto found = coverage.find(&s);
        const emulate::Coverage seen = found == coverage.end() ? emulate::Coverage{} : found->second;
        if (auto* l = std::get_if<ir::For>(&s.op)) {
            const Expr trips = l->hi - l->lo;
            if (l->lo.as_constant() && l->hi.as_constant()) return;
            std::int64_t needed = steering.steers(s) ? cutoff.period + 2 : 1;
            if (auto most = upper_bound(l->hi); most && l->lo.as_constant()) needed = std::min(needed, std::max<std::int64_t>(0, *most - *l->lo.as_constant()));
            // Sizes with an upper end: the instances include it, and more is not possible.
            bool bounded = true;
            std::function<void(const Expr&)> look = [&](const Expr& e) {
                if (e.kind() == ExprKind::size) bounded = bounded && use[at(e->id)].most.has_value();
                if (e.kind() == ExprKind::var || e.kind() == ExprKind::element || e.kind() == ExprKind::block_index || e.kind() == ExprKind::grid_size) bounded = false;
                for (const Expr& a : e->args) look(a);
            };
            look(trips);
            if (bounded) needed = std::min<std::int64_t>(needed, 1);
            if (seen.most_trips < needed && !(seen.most_trips > 0 && never_runs_longer(k, *l, seen.most_trips))) {
                gap = "the loop" + line(s) + " ran at most " + std::to_string(std::max<std::int64_t>(0, seen.most_trips)) + " times in any instance, " + std::to_string(needed) + " are needed";
            }
        }
        if (auto* i = std::get_if<ir::If>(&s.op)) {
            if (i->condition.as_constant()) return;
            if (steering.steers(s) && !steering.by_data.count(&s)) return;   // periodic, or near an end of its loop: long loops show all it does
            const bool forced = std::any_of(cutoff.forced.begin(), cutoff.forced.end(), [&](const Expr& e) { return ir::same(e, i->condition); });
            if (forced || (seen.taken && seen.passed)) return;
            gap = "the condition " + ir::to_string(i->condition, names) + line(s) + " was never " + (seen.taken ? "false" : "true") + " in any instance";
        }
    });
    return gap;
}

std::vector<Instance> edge_instances(const ir::Kernel& k) {
    const std::int64_t period = steering_of(k).period;
    return vary(k, choices_of(k, period, false, true), std::vector<bool>(k.sizes.size(), true), period);
}

}  // namespace tw::verify
