#include "verify/instances.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/index.h"
#include "verify/cluster_signature.h"

namespace tw::verify {
namespace {

using ir::Expr;
using ir::ExprKind;

// What expressions are read with: variables that hold an element of an index tensor, and where such elements end.
struct Reading {
    const ir::Kernel& kernel;
    ir::ExprNames names;
    std::map<int, Expr> elements;  // by variable
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

}  // namespace

std::vector<SizeUse> uses_of(const ir::Kernel& k, bool by_views) {
    std::vector<SizeUse> use(k.sizes.size());
    Reading names{k, ir::names_of(k), {}};
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op); a && a->value.kind() == ExprKind::element) names.elements.emplace(a->var, a->value);
    });
    for (const ir::Tensor& t : k.tensors) {  // a table of tiles cuts the rows into tiles
        if (!t.tile_ends) continue;
        const Expr& rows = k.tensors[at(t.tile_ends->groups)].dims[0];
        if (rows.kind() == ExprKind::size) use[at(rows->id)].tiles.insert(t.tile_ends->width);
    }
    if (by_views) collect_views(k, use);
    for (const Expr& g : k.grid) collect_tiles(g, names, use);
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* l = std::get_if<ir::For>(&s.op))
            collect_tiles(l->lo, names, use),
                collect_tiles(l->hi, names, use, std::max<std::int64_t>(1, l->step.as_constant().value_or(1))),
                collect_tiles(l->step, names, use);
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
                if (auto d = l.as_constant(); d && r.kind() == ExprKind::size)
                    use[at(r->id)].least = std::max<std::int64_t>(1, *d + strict);
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

namespace {

bool satisfies(const ir::Kernel& k, const std::vector<std::int64_t>& sizes) {
    return std::all_of(k.assumptions.begin(), k.assumptions.end(),
                       [&](const ir::Assumption& a) { return emulate::size_value(a.condition, sizes).value_or(0) != 0; });
}

}  // namespace

namespace {

// Doubles a size of the larger side that the smaller one does not have, until the comparison holds.
void grow_into(const Expr& comparison, std::vector<std::int64_t>& sizes) {
    const std::function<bool(const Expr&, std::size_t)> has = [&](const Expr& e, std::size_t size) {
        return (e.kind() == ExprKind::size && at(e->id) == size) ||
               std::any_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return has(a, size); });
    };
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (!has(comparison->args[1], i) || has(comparison->args[0], i)) continue;
        std::vector<std::int64_t> larger = sizes;
        for (larger[i] = std::max<std::int64_t>(1, larger[i]); larger[i] < (std::int64_t{1} << 24); larger[i] *= 2) {
            if (emulate::size_value(comparison, larger).value_or(0) == 0) continue;
            sizes = larger;
            return;
        }
    }
}

}  // namespace

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
            } else if (c.kind() == ExprKind::lt || c.kind() == ExprKind::le) {
                grow_into(c, sizes);
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

namespace {

constexpr std::size_t most_combinations = 400'000;

}  // namespace

std::optional<std::int64_t> least_for(const Expr& e, std::vector<std::int64_t> sizes, std::size_t i, std::int64_t wanted) {
    auto value = [&](std::int64_t n) {
        sizes[i] = n;
        return emulate::size_value(e, sizes);
    };
    std::int64_t low = 0, high = 1;
    const auto first = value(0);
    if (!first) return std::nullopt;
    if (*first >= wanted) return 0;
    for (;; high *= 2) {
        const auto v = value(high);
        if (!v || high > 1 << 24) return std::nullopt;
        if (*v >= wanted) break;
        low = high;
    }
    while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        const auto v = value(middle);
        if (!v) return std::nullopt;
        (*v >= wanted ? high : low) = middle;
    }
    return high;
}

std::vector<Choices> choices_of(const ir::Kernel& k, const std::vector<SizeDemand>& demands, bool empty_too, bool by_views) {
    const std::vector<SizeUse> use = uses_of(k, by_views);
    std::vector<Choices> choices(k.sizes.size());
    std::vector<std::int64_t> one_tile;
    for (const SizeUse& u : use) one_tile.push_back(std::max<std::int64_t>(1, u.tiles.empty() ? 1 : *u.tiles.rbegin()));
    for (std::size_t i = 0; i < k.sizes.size(); ++i) {
        const SizeUse& u = use[i];
        const SizeDemand& d = demands[i];
        auto& values = choices[i].values;
        auto add = [&](std::int64_t n) {
            n = std::max(n, u.least);
            n = (n + u.multiple - 1) / u.multiple * u.multiple;
            if (u.most) n = std::min(n, *u.most / u.multiple * u.multiple);
            if (std::find(values.begin(), values.end(), n) == values.end()) values.push_back(n);
        };
        const std::int64_t tile = one_tile[i];
        add(1);
        add(tile == 1 ? 2 : tile);
        add(tile == 1 ? 3 : 2 * tile + 1);
        std::int64_t longest = d.cap * tile;
        if (d.trips.size() == 1) {  // tiles that are not seen in its form
            std::vector<std::int64_t> sizes = one_tile;
            sizes[i] = longest;
            const auto reached = emulate::size_value(d.trips[0], sizes);
            if (reached && *reached < d.cap) longest = std::max(longest, least_for(d.trips[0], one_tile, i, d.cap).value_or(longest));
        }
        add(longest);
        if (u.quotients.size() > 1) add(d.cap * tile + 1);
        for (std::int64_t t : u.thresholds) add(t), add(t + 1);
        if (by_views && u.most && *u.most <= 65536) add(*u.most);  // a row that fills what was made for it
        if (by_views && tile > 2) add(tile / 2 + 1);  // part of a tile, and more than one element: a mean of one hides what padding does
        while (values.size() < 4) values.push_back(values.back());  // bounded sizes have fewer
        if (empty_too && u.least <= 1) values.push_back(0);
        choices[i].always = values.size();
        if (!empty_too) continue;
        // Every trip count up to the cap: what comes after a loop, or happens where its start meets its end, may be wrong for one alone.
        if (!d.apart) {
            for (const Expr& count : d.counts) {
                bool any = false;
                std::vector<std::int64_t> least = one_tile;
                least[i] = 0;
                const std::int64_t first = std::max<std::int64_t>(0, emulate::size_value(count, least).value_or(0));
                for (std::int64_t t = 1; t <= d.cap; ++t) {  // from none on, and from the least on that there are
                    for (const std::int64_t wanted : std::set<std::int64_t>{t, first + t}) {
                        if (const auto n = least_for(count, one_tile, i, wanted)) add(std::max<std::int64_t>(1, *n)), any = true;
                    }
                }
                for (std::int64_t t = 1; !any && t <= d.cap; ++t) {  // by contents: in each width that they may be cut into
                    for (std::int64_t wide : u.tiles.empty() ? std::set<std::int64_t>{1} : u.tiles) add(t * wide);
                }
            }
            for (std::int64_t t = 0; d.falls && t <= d.cap; ++t) {
                for (std::int64_t wide : u.tiles.empty() ? std::set<std::int64_t>{1} : u.tiles) add(t * wide), add(t * wide + 1);
            }
            // The assumptions admit none of the short ones, or not every one: from the first on that they admit.
            const std::int64_t narrow = u.tiles.empty() ? 1 : *u.tiles.begin();
            const auto whole = [&](std::int64_t n) { return (n + u.multiple - 1) / u.multiple * u.multiple; };
            if (!d.trips.empty() && (u.least > narrow || u.multiple > narrow)) {
                const std::int64_t more = d.cap + std::min<std::int64_t>(16, tile / narrow);
                for (std::int64_t t = 0; t <= more; ++t) add(whole(u.least) + t * whole(narrow));
            }
        }
        if (d.residue > 1) {
            const std::vector<std::int64_t> before = values;
            for (std::int64_t n : before) {
                for (std::int64_t r = 0; r < d.residue; ++r) add(n + r * d.residue_step);
            }
        }
        for (const auto& [divisor, remainder] : d.remainders) {
            if (divisor == 0) add(remainder);
            else
                for (std::int64_t t : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, d.cap}) add(t * divisor + remainder);
        }
    }
    return choices;
}

namespace {

// Beyond the cap, trip counts that differ by whole periods end alike. What a persistent kernel does hangs on its sizes through the
// parts of ClusterSignature: sizes that give equal parts, up to whole periods where they are larger than that, make no further instance.
class TripCounts {
public:
    // `fold`: parts beyond the cap are trip counts, not places that follow a size's remainder.
    TripCounts(const ir::Kernel& k, std::int64_t period, std::int64_t cap, bool fold)
        : k_(k), signature_(k), period_(period), cap_(cap), fold_(fold) {}
    // Is this the first time that it is asked of such sizes?
    bool fresh(const std::vector<std::int64_t>& sizes) {
        if (!k_.persistent) return true;
        ClusterSignature::BlockIndex grid{k_.cluster[0] * k_.cluster[1] * k_.cluster[2], 1, 1};  // one cluster goes through all tiles
        std::vector<ClusterSignature::BlockIndex> blocks;
        for (std::int64_t rank = 0; rank < grid[0]; ++rank) blocks.push_back({rank, 0, 0});
        std::vector<std::int64_t> parts = signature_.of(sizes, blocks, grid);
        for (std::int64_t& v : parts) {
            if (v > cap_ && fold_) v = cap_ + 1 + v % period_;
        }
        return seen_.insert(std::move(parts)).second;
    }

private:
    const ir::Kernel& k_;
    ClusterSignature signature_;
    std::int64_t period_, cap_;
    bool fold_;
    std::set<std::vector<std::int64_t>> seen_;
};

}  // namespace

namespace {

// A loop that repeats only because those inside it advance counters has come round the sooner the longer they are: so many iterations are
// needed.
std::int64_t rounds_needed(const std::vector<SizeDemand>& demands, const std::vector<std::size_t>& crossed, std::size_t outer,
                           const std::vector<std::int64_t>& sizes) {
    std::optional<std::int64_t> least;
    for (std::size_t c : crossed) {
        if (c == outer) continue;
        for (const Expr& t : demands[c].trips) {
            const auto v = emulate::size_value(t, sizes);
            least = v && (!least || *v < *least) ? v : least;
        }
    }
    const SizeDemand& d = demands[outer];
    const std::int64_t inner = std::max<std::int64_t>(1, least.value_or(1));
    return std::min(d.cap, d.period + d.own_part + (std::max<std::int64_t>(1, d.distance - d.own_part) + inner - 1) / inner);
}

}  // namespace

std::optional<std::vector<Instance>> vary(const ir::Kernel& k, const std::vector<Choices>& choices, const std::vector<bool>& matters,
                                          const std::vector<SizeDemand>& demands, std::int64_t period, bool jointly) {
    std::vector<Instance> list;
    std::set<std::vector<std::int64_t>> listed;
    std::int64_t cap = 4;
    for (const SizeDemand& d : demands) cap = std::max(cap, d.cap);
    const bool by_remainder =
        std::any_of(demands.begin(), demands.end(), [](const SizeDemand& d) { return d.residue > 1 || !d.remainders.empty(); });
    TripCounts trips(k, period, cap, !by_remainder);
    std::size_t asked = 0, refused = 0;
    auto emit = [&](const std::vector<std::int64_t>& wanted, bool always) {
        auto sizes = admitted(k, wanted);
        ++asked, refused += !sizes;
        if (!sizes || listed.count(*sizes)) return;
        if (!trips.fresh(*sizes) && !always) return;
        listed.insert(*sizes);
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
                if (c >= 3 && background == 2) continue;  // among the combinations, where it matters
                std::vector<std::int64_t> sizes = base;
                sizes[i] = choices[i].values[c];
                emit(sizes, c < choices[i].always);
            }
        }
    }
    if (n == 0) emit({}, true);
    if (!jointly) return list;
    // The assumptions may leave too little of what decides.
    const auto all_or_too_few = [&] { return 2 * refused > asked ? std::nullopt : std::optional(list); };
    // Sizes that bound loops inside others, or have remainders: all combinations. The others at one tile, then each at so many that its
    // loop goes round.
    std::vector<std::size_t> crossed, others;
    std::size_t combinations = 1;
    for (std::size_t i = 0; i < n; ++i) {
        if (!matters[i]) continue;
        // One of two that enter the same one trip count alone (rows and columns of tiles) is enough: it takes every value by each of them.
        auto alike = [&](std::size_t j) {
            return std::equal(demands[i].trips.begin(), demands[i].trips.end(), demands[j].trips.begin(), demands[j].trips.end(), ir::same);
        };
        const bool twin = demands[i].trips.size() == 1 && demands[i].residue == 1 && demands[i].remainders.empty() &&
                          std::any_of(crossed.begin(), crossed.end(), alike);
        if (demands[i].apart) others.push_back(i);
        else if (!twin) crossed.push_back(i), combinations *= choices[i].values.size();
        if (combinations > most_combinations) return std::nullopt;
    }
    if (crossed.empty() || (crossed.size() == 1 && others.empty())) return all_or_too_few();
    for (std::size_t background = 0; background <= others.size(); ++background) {
        std::vector<std::int64_t> sizes(n);
        for (std::size_t i = 0; i < n; ++i) sizes[i] = choices[i].values[1];
        const std::size_t outer = background > 0 ? others[background - 1] : n;
        if (outer < n) {
            auto same_loops = [&](std::size_t i) {
                return std::equal(demands[i].trips.begin(), demands[i].trips.end(), demands[outer].trips.begin(),
                                  demands[outer].trips.end(), ir::same);
            };
            if (demands[outer].trips.empty() ||
                std::any_of(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(background) - 1, same_loops))
                continue;
            sizes[outer] = choices[outer].values[3];
        }
        std::vector<std::size_t> digit(crossed.size(), 0);
        for (bool more = true; more;) {
            for (std::size_t c = 0; c < crossed.size(); ++c) sizes[crossed[c]] = choices[crossed[c]].values[digit[c]];
            if (outer < n && demands[outer].by_inner && demands[outer].trips.size() == 1) {
                const auto enough = least_for(demands[outer].trips.front(), sizes, outer, rounds_needed(demands, crossed, outer, sizes));
                sizes[outer] = enough ? std::max<std::int64_t>(1, *enough) : choices[outer].values[3];
            }
            const bool longer = std::any_of(crossed.begin(), crossed.end(), [&](std::size_t c) {
                if (!demands[c].by_inner || demands[c].trips.size() != 1) return false;
                const auto trips_now = emulate::size_value(demands[c].trips.front(), sizes);
                return trips_now && *trips_now > rounds_needed(demands, crossed, c, sizes);
            });
            if (!longer) emit(sizes, false);
            more = false;
            for (std::size_t c = 0; c < crossed.size() && !more; ++c) {
                if (++digit[c] < choices[crossed[c]].values.size()) more = true;
                else digit[c] = 0;
            }
        }
    }
    return all_or_too_few();
}

}  // namespace tw::verify
