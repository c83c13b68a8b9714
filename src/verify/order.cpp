#include "verify/order.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

namespace tw::verify {
namespace {

using ir::Expr;
using ir::ExprKind;

// For each size: the constants it is divided by (tile extents), and the divisors its assumptions demand.
struct SizeUse {
    std::set<std::int64_t> tiles;
    std::set<std::string> quotients;   // the ways in which it is divided: whole tiles apart from all tiles means a loop for the rest
    std::int64_t multiple = 1;
};

void collect_tiles(const Expr& e, const ir::ExprNames& names, std::vector<SizeUse>& use) {
    if (e.kind() == ExprKind::floor_div || e.kind() == ExprKind::mod) {
        if (auto d = e->args[1].as_constant(); d && *d > 1) {
            std::function<void(const Expr&)> mark = [&](const Expr& x) {
                if (x.kind() == ExprKind::size) {
                    use[static_cast<std::size_t>(x->id)].tiles.insert(*d);
                    use[static_cast<std::size_t>(x->id)].quotients.insert(ir::to_string(e, names));
                }
                if (x.kind() == ExprKind::add || x.kind() == ExprKind::sub || x.kind() == ExprKind::min || x.kind() == ExprKind::max) {
                    for (const Expr& a : x->args) mark(a);
                }
            };
            mark(e->args[0]);
        }
    }
    for (const Expr& a : e->args) collect_tiles(a, names, use);
}

template <class F>
void for_each_expr(const ir::Kernel& k, F f) {
    for (const Expr& g : k.grid) f(g);
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* l = std::get_if<ir::For>(&s.op)) f(l->lo), f(l->hi), f(l->step);
        if (auto* i = std::get_if<ir::If>(&s.op)) f(i->condition);
        if (auto* a = std::get_if<ir::Assign>(&s.op)) f(a->value);
    });
}

int largest_ring(const ir::Kernel& k) {
    int slots = 1;
    for (const ir::BarrierArray& b : k.barriers) slots = std::max(slots, b.slots);
    // Multi-stage buffers without mbarriers: a variable taken modulo a constant in a shared origin.
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        std::function<void(const Expr&)> look = [&](const Expr& e) {
            if (e.kind() == ExprKind::mod) {
                if (auto d = e->args[1].as_constant(); d && *d > 1 && *d <= 64) slots = std::max(slots, static_cast<int>(*d));
            }
            for (const Expr& a : e->args) look(a);
        };
        auto view = [&](const ir::SharedView& v) {
            for (const Expr& e : v.origin) look(e);
        };
        if (auto* l = std::get_if<ir::LoadShared>(&s.op)) view(l->src);
        if (auto* l = std::get_if<ir::StoreShared>(&s.op)) view(l->dst);
        if (auto* l = std::get_if<ir::CpAsync>(&s.op)) view(l->dst);
        if (auto* l = std::get_if<ir::TmaLoad>(&s.op)) view(l->dst);
        if (auto* l = std::get_if<ir::Wgmma>(&s.op)) view(l->b);
        if (auto* a = std::get_if<ir::Assign>(&s.op)) look(a->value);
    });
    return slots;
}

bool satisfies(const ir::Kernel& k, const std::vector<std::int64_t>& sizes) {
    for (const ir::Assumption& a : k.assumptions) {
        auto v = emulate::size_value(a.condition, sizes);
        if (!v || *v == 0) return false;
    }
    return true;
}

std::string instance_text(const ir::Kernel& k, const std::vector<std::int64_t>& sizes) {
    std::string s;
    for (std::size_t i = 0; i < sizes.size(); ++i) s += (i ? " " : "") + k.sizes[i] + "=" + std::to_string(sizes[i]);
    return s;
}

double since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Does a trip count differ from block to block (a causal mask)? Persistent loops, which step by the grid, do not count.
bool trips_vary_by_block(const ir::Kernel& k) {
    std::set<int> varying;   // scalars derived from the block index
    auto depends = [&](const Expr& e) {
        std::function<bool(const Expr&)> look = [&](const Expr& x) {
            if (x.kind() == ExprKind::block_index || (x.kind() == ExprKind::var && varying.count(x->id))) return true;
            return std::any_of(x->args.begin(), x->args.end(), look);
        };
        return look(e);
    };
    bool found = false;
    for (int pass = 0; pass < 3; ++pass) {   // derived from derived ones, to a small depth
        ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
            if (auto* a = std::get_if<ir::Assign>(&s.op); a && depends(a->value)) varying.insert(a->var);
            if (auto* l = std::get_if<ir::For>(&s.op)) {
                if (l->step.is_constant(1)) found = found || depends(l->lo) || depends(l->hi);
                else if (depends(l->lo)) varying.insert(l->var);
            }
        });
    }
    return found;
}

}  // namespace

std::vector<Instance> cutoff_instances(const ir::Kernel& k) {
    std::vector<SizeUse> use(k.sizes.size());
    const ir::ExprNames names = ir::names_of(k);
    for_each_expr(k, [&](const Expr& e) { collect_tiles(e, names, use); });
    for (const ir::Assumption& a : k.assumptions) {   // K % 8 == 0
        if (a.condition.kind() == ExprKind::eq && a.condition->args[0].kind() == ExprKind::mod && a.condition->args[1].is_constant(0)) {
            const Expr& n = a.condition->args[0]->args[0];
            auto d = a.condition->args[0]->args[1].as_constant();
            if (n.kind() == ExprKind::size && d && *d > 0) use[static_cast<std::size_t>(n->id)].multiple = *d;
        }
    }
    const std::int64_t period = 2 * largest_ring(k);
    // Per size: tiny, one tile, one more than a tile, and enough tiles to pass the period.
    std::vector<std::vector<std::int64_t>> choices(k.sizes.size());
    for (std::size_t i = 0; i < k.sizes.size(); ++i) {
        const std::int64_t m = use[i].multiple;
        auto add = [&](std::int64_t n) {
            n = (n + m - 1) / m * m;
            if (std::find(choices[i].begin(), choices[i].end(), n) == choices[i].end()) choices[i].push_back(n);
        };
        add(1);
        if (use[i].tiles.empty()) {
            add(2);
            add(3);
            continue;
        }
        const std::int64_t tile = *use[i].tiles.rbegin();
        add(tile);
        add(2 * tile + 1);
        add((period + 2) * tile);
        if (use[i].quotients.size() > 1) add((period + 2) * tile + 1);
    }
    std::vector<Instance> list;
    auto emit = [&](std::vector<std::int64_t> sizes, int resident) {
        if (!satisfies(k, sizes)) return;
        for (const Instance& i : list) {
            if (i.sizes == sizes && i.resident_blocks == resident) return;
        }
        list.push_back({sizes, resident, instance_text(k, sizes)});
    };
    const std::size_t n = k.sizes.size();
    // Each size through its choices while the others are at one tile, then at a few tiles.
    for (int background : {1, 2}) {
        std::vector<std::int64_t> base(n);
        for (std::size_t i = 0; i < n; ++i) base[i] = choices[i][std::min<std::size_t>(choices[i].size() - 1, static_cast<std::size_t>(background))];
        emit(base, 1);
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t c = 0; c < choices[i].size(); ++c) {
                // The long choice of one size with several tiles of the others is kept to one background.
                if (c >= 3 && background == 2) continue;
                std::vector<std::int64_t> sizes = base;
                sizes[i] = choices[i][c];
                emit(sizes, 1);
            }
        }
    }
    if (n == 0) emit({}, 1);
    if (trips_vary_by_block(k)) {   // every trip count in one instance: all sizes long
        std::vector<std::int64_t> sizes(n);
        for (std::size_t i = 0; i < n; ++i) sizes[i] = use[i].tiles.empty() ? choices[i][0] : choices[i].back();
        emit(sizes, 1);
    }
    return list;
}

std::string cutoff_obstacle(const ir::Kernel& k) {
    // Scalars that may stand in synchronisation: assigned constants or counters that step by a constant.
    std::map<int, bool> counter;
    std::map<int, bool> derived;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op)) {
            const Expr& v = a->value;
            const bool constant = v.as_constant().has_value();
            const bool step = v.kind() == ExprKind::add && v->args[0].kind() == ExprKind::var && v->args[0]->id == a->var && v->args[1].as_constant();
            auto [it, fresh] = counter.emplace(a->var, constant || step);
            if (!fresh) it->second = it->second && (constant || step);
            if (!constant && !step) derived[a->var] = true;
        }
    });
    std::string obstacle;
    const ir::ExprNames names = ir::names_of(k);
    // A data-dependent value decides synchronisation only through trip counts, which the instances cover by their range.
    std::function<bool(const Expr&)> regular = [&](const Expr& e) -> bool {
        switch (e.kind()) {
            case ExprKind::constant:
            case ExprKind::size:
            case ExprKind::block_index:
            case ExprKind::grid_size:
            case ExprKind::cluster_rank:
            case ExprKind::var: return true;
            case ExprKind::element: return false;
            case ExprKind::bit_and:
            case ExprKind::bit_xor:
            case ExprKind::shift_left:
            case ExprKind::shift_right: {
                for (const Expr& a : e->args) {
                    if (!regular(a)) return false;
                }
                return true;
            }
            case ExprKind::lt:
            case ExprKind::le:
            case ExprKind::eq:
            case ExprKind::ne: {
                // A threshold must be near an end of the iteration space: large constants would need larger instances.
                for (const Expr& a : e->args) {
                    if (auto c = a.as_constant(); c && (*c > 64 || *c < -64)) {
                        bool counts = false;
                        std::function<void(const Expr&)> look = [&](const Expr& x) {
                            counts |= x.kind() == ExprKind::var;
                            for (const Expr& y : x->args) look(y);
                        };
                        for (const Expr& b : e->args) look(b);
                        if (counts) return false;
                    }
                    if (!regular(a)) return false;
                }
                return true;
            }
            default: {
                for (const Expr& a : e->args) {
                    if (!regular(a)) return false;
                }
                return true;
            }
        }
    };
    auto check = [&](const Expr& e, const char* what, const ir::Stmt& s) {
        if (obstacle.empty() && !regular(e)) obstacle = std::string(what) + " " + ir::to_string(e, names) + " at line " + std::to_string(s.loc.line);
    };
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        auto bar = [&](const ir::BarrierRef& b) { check(b.slot, "slot", s); };
        if (auto* b = std::get_if<ir::BarrierWait>(&s.op)) bar(b->barrier), check(b->parity, "parity", s);
        if (auto* b = std::get_if<ir::BarrierArrive>(&s.op)) bar(b->barrier);
        if (auto* b = std::get_if<ir::BarrierExpect>(&s.op)) bar(b->barrier), check(b->bytes, "byte count", s);
        if (auto* b = std::get_if<ir::NamedSync>(&s.op)) check(b->id, "barrier number", s);
        if (auto* b = std::get_if<ir::NamedArrive>(&s.op)) check(b->id, "barrier number", s);
        if (auto* b = std::get_if<ir::If>(&s.op)) check(b->condition, "condition", s);
    });
    return obstacle;
}

namespace {

using Samples = std::vector<const emulate::DependenceSample*>;

Expr reader_variable(int id) { return id == emulate::DependenceSample::rank_of_block ? ir::cluster_rank() : ir::var_expr(id); }

// Fits writer variables as reader variables plus constants over all samples of one (read, write) pair.
Dependence fit(const Samples& list) {
    Dependence d;
    d.read = list.front()->read;
    d.write = list.front()->write;
    d.exact = true;
    const auto& first = *list.front();
    for (std::size_t i = 0; i < first.at_write.size() && d.exact; ++i) {
        const int variable = first.at_write[i].first;
        std::optional<Expr> value;
        // Candidates: each reader variable plus a constant (same position first), then a constant.
        std::vector<int> order;
        for (std::size_t j = 0; j < first.at_read.size(); ++j) order.push_back(static_cast<int>(j));
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
            auto rank = [&](int j) { return first.at_read[static_cast<std::size_t>(j)].first == variable ? 0 : j == static_cast<int>(i) ? 1 : 2; };
            return rank(a) < rank(b);
        });
        auto shape_ok = [&](const emulate::DependenceSample& s) {
            return s.at_write.size() == first.at_write.size() && s.at_read.size() == first.at_read.size() && s.at_write[i].first == variable;
        };
        for (int j : order) {
            const auto at = static_cast<std::size_t>(j);
            const std::int64_t offset = first.at_write[i].second - first.at_read[at].second;
            bool all = true;
            std::set<std::int64_t> values;
            for (const auto* s : list) {
                all = all && shape_ok(*s) && s->at_read[at].first == first.at_read[at].first && s->at_write[i].second - s->at_read[at].second == offset;
                if (!all) break;
                values.insert(s->at_read[at].second);
            }
            if (all && values.size() > 1) {
                value = reader_variable(first.at_read[at].first) + Expr(offset);
                break;
            }
        }
        if (!value) {
            bool all = true;
            for (const auto* s : list) all = all && shape_ok(*s) && s->at_write[i].second == first.at_write[i].second;
            if (all) value = Expr(first.at_write[i].second);
        }
        if (value) {
            d.writer_vars.emplace_back(variable, *value);
            continue;
        }
        // What the last iterations wrote, read after the loop.
        auto distance = [&](const emulate::DependenceSample& s) { return s.write_ends[i] - s.at_write[i].second; };
        const bool is_loop = variable != emulate::DependenceSample::rank_of_block && first.write_ends[i] > 0;
        if (is_loop && std::all_of(list.begin(), list.end(), [&](const auto* s) { return shape_ok(*s) && distance(*s) == distance(first); })) {
            d.from_end.emplace_back(variable, distance(first));
        } else {
            d.exact = false;
        }
    }
    // A write that only some iterations of the reader find (a peeled prologue): say which.
    for (std::size_t j = 0; j < first.at_read.size(); ++j) {
        bool all = true;
        for (const auto* s : list) all = all && s->at_read.size() == first.at_read.size() && s->at_read[j].second == first.at_read[j].second;
        if (all) d.only_when.push_back(first.at_read[j]);
    }
    for (const auto* s : list) {
        for (const auto& [var, value] : s->at_read) d.seen[var].insert(value);
    }
    return d;
}

// One dependence for a (read, write) pair where one fits; else one for each instance or block that wrote part of what is read
// (a multicast in a cluster, a tile that two warpgroups write together).
void fit_split(const ir::Kernel& k, const Samples& list, std::vector<Dependence>& result, int depth = 0) {
    Dependence whole = fit(list);
    if (!whole.exact && depth < 2) {
        const auto& first = *list.front();
        for (std::size_t i = static_cast<std::size_t>(depth); i < first.at_write.size(); ++i) {
            const int variable = first.at_write[i].first;
            const bool bounded = variable == emulate::DependenceSample::rank_of_block || k.vars[static_cast<std::size_t>(variable)].kind == ir::Variable::Kind::instance;
            if (!bounded) continue;
            std::map<std::int64_t, Samples> parts;
            bool same_shape = true;
            for (const auto* s : list) {
                same_shape = same_shape && s->at_write.size() > i && s->at_write[i].first == variable;
                if (same_shape) parts[s->at_write[i].second].push_back(s);
            }
            if (!same_shape || parts.size() < 2) continue;
            std::vector<Dependence> separate;
            for (const auto& [value, part] : parts) fit_split(k, part, separate, depth + 1);
            if (std::all_of(separate.begin(), separate.end(), [](const Dependence& d) { return d.exact; })) {
                for (auto& d : separate) result.push_back(std::move(d));
                return;
            }
        }
    }
    result.push_back(std::move(whole));
}

std::vector<Dependence> fit(const ir::Kernel& k, const std::set<emulate::DependenceSample>& samples) {
    std::map<std::pair<const ir::Stmt*, const ir::Stmt*>, Samples> pairs;
    for (const auto& s : samples) pairs[{s.read, s.write}].push_back(&s);
    std::vector<Dependence> result;
    for (const auto& [key, list] : pairs) fit_split(k, list, result);
    return result;
}

const char* obligation_of(emulate::FaultKind kind) {
    switch (kind) {
        case emulate::FaultKind::race: return "no race";
        case emulate::FaultKind::deadlock: return "no deadlock";
        case emulate::FaultKind::proxy: return "proxy fences";
        case emulate::FaultKind::in_flight: return "nothing in flight is touched";
        case emulate::FaultKind::uninitialised: return "no uninitialised read";
        case emulate::FaultKind::out_of_bounds: return "in bounds";
        case emulate::FaultKind::barrier:
        case emulate::FaultKind::phase:
        case emulate::FaultKind::byte_count: return "barrier protocol";
        case emulate::FaultKind::divergence: return "convergent collectives";
        default: return "runs to its end";
    }
}

const char* code_of(emulate::FaultKind kind) {
    switch (kind) {
        case emulate::FaultKind::race: return "TW2001";
        case emulate::FaultKind::deadlock: return "TW2002";
        case emulate::FaultKind::proxy: return "TW2003";
        case emulate::FaultKind::in_flight: return "TW2004";
        case emulate::FaultKind::uninitialised: return "TW2005";
        case emulate::FaultKind::out_of_bounds: return "TW2006";
        case emulate::FaultKind::barrier:
        case emulate::FaultKind::phase:
        case emulate::FaultKind::byte_count: return "TW2007";
        case emulate::FaultKind::divergence: return "TW2008";
        default: return "TW2009";
    }
}

}  // namespace

OrderResult check_order(const ir::Kernel& k) {
    OrderResult result;
    const auto start = std::chrono::steady_clock::now();
    const std::string obstacle = cutoff_obstacle(k);
    const std::vector<Instance> instances = cutoff_instances(k);
    std::set<emulate::DependenceSample> samples;
    const auto cache = emulate::make_skeleton_cache();
    for (const Instance& instance : instances) {
        std::vector<emulate::TensorData> tensors(k.tensors.size());
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            tensors[i].dtype = k.tensors[i].dtype;
            for (const Expr& e : k.tensors[i].dims) tensors[i].dims.push_back(emulate::size_value(e, instance.sizes).value_or(0));
            for (const Expr& e : k.tensors[i].strides) tensors[i].strides.push_back(emulate::size_value(e, instance.sizes).value_or(0));
            if (!target::info(k.tensors[i].dtype).is_float) {   // index tensors steer control flow: zeros are valid indices
                tensors[i] = emulate::make_tensor(tensors[i].dtype, tensors[i].dims, tensors[i].strides);
            }
        }
        emulate::Options options;
        options.values = false;
        options.cache = cache;
        options.resident_blocks = instance.resident_blocks;
        options.fault_limit = 1;
        options.step_limit = 5'000'000;
        options.schedule.lazy = true;
        const std::vector<double> scalars(k.scalars.size(), 1.0);
        emulate::Outcome outcome = emulate::run(k, instance.sizes, scalars, tensors, options);
        ++result.instances;
        samples.insert(outcome.dependences.begin(), outcome.dependences.end());
        if (!outcome.clean()) {
            result.faults = std::move(outcome.faults);
            result.failing = instance;
            break;
        }
    }
    result.dependences = fit(k, samples);
    static constexpr emulate::FaultKind kinds[] = {
        emulate::FaultKind::race, emulate::FaultKind::deadlock, emulate::FaultKind::proxy, emulate::FaultKind::in_flight,
        emulate::FaultKind::uninitialised, emulate::FaultKind::out_of_bounds, emulate::FaultKind::barrier, emulate::FaultKind::divergence};
    const double elapsed = since(start);
    bool has_wgmma = false;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) { has_wgmma |= std::holds_alternative<ir::Wgmma>(s.op); });
    for (emulate::FaultKind kind : kinds) {
        Obligation o;
        o.kind = obligation_of(kind);
        o.code = code_of(kind);
        o.text = std::string(o.kind) + " (shared memory and registers), all sizes";
        o.loc = k.loc;
        o.prover = "happens-before";
        o.milliseconds = elapsed / std::size(kinds);
        o.used = {"lemma: order of events is schedule-independent", "lemma: periodic cut-off (" + std::to_string(result.instances) + " instances)"};
        if (has_wgmma) o.used.push_back("axiom: a wgmma that is complete for one warp of its warpgroup is complete for all four");
        o.status = Status::proved;
        if (!obstacle.empty()) {
            o.status = Status::not_proved;
            o.reason = "the periodic cut-off lemma does not apply: " + obstacle;
        }
        if (!result.faults.empty()) {
            const emulate::Fault& f = result.faults.front();
            const bool mine = o.code == code_of(f.kind);
            o.status = Status::not_proved;
            o.reason = mine ? f.message + " (" + result.failing.text + ")" : "not examined further: " + std::string(obligation_of(f.kind)) + " fails first";
            if (mine) o.loc = f.loc;
        }
        result.obligations.push_back(std::move(o));
    }
    return result;
}

}  // namespace tw::verify
