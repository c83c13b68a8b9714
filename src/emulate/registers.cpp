// Values in registers: element-wise work, reductions, scans, shuffles.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/index.h"
#include "emulate/machine.h"
#include "ir/element_math.h"
#include "ir/shuffle.h"

namespace tw::emulate {

using ir::ElementOp;

namespace {

double fold(ir::FoldKind kind, double a, double b, target::DType type) {
    const double args[3] = {a, b, 0};
    return ir::computed(ir::operation_of(kind), type, args);
}

}  // namespace

FragmentState& Machine::fragment(Group& g, int id) {
    FragmentState& f = g.fragments[at(id)];
    if (f.written.empty()) {
        const FragmentTable& table = tables_[at(id)];
        if (options_.values) f.values.assign(at(table.threads * table.values), std::nan(""));
        if (options_.history) f.made.assign(f.values.size(), 0);
        f.written.assign(at(g.warps), 0);
        f.in_flight.assign(at(g.warps), 0);
        f.touched.assign(at(g.warps), 0);
    }
    return f;
}

bool Machine::readable(Warp& w, const Stmt& s, int id) {
    FragmentState& f = fragment(group_of(w), id);
    const std::size_t i = at(warp_in_group(w));
    const std::string& name = k_.fragments[at(id)].name;
    if (f.in_flight[i]) {
        fault(FaultKind::in_flight,
              "fragment `" + name + "` is read while a wgmma still owns its registers; wait for the group first (tw.wgmma_wait)", &w, 0, s,
              f.owner);
        return false;
    }
    if (!f.written[i]) {
        fault(FaultKind::uninitialised, "fragment `" + name + "` is read before it has a value", &w, 0, s);
        return false;
    }
    return true;
}

void Machine::written(Warp& w, const Stmt& s, int id) {
    FragmentState& f = fragment(group_of(w), id);
    const std::size_t i = at(warp_in_group(w));
    if (f.in_flight[i]) {
        fault(FaultKind::in_flight, "fragment `" + k_.fragments[at(id)].name + "` is written while a wgmma still owns its registers", &w, 0,
              s, f.owner);
    }
    f.written[i] = 1;
    f.touched[i] = 1;
}

const std::vector<int>& Machine::slot_table(int leaf, const std::vector<int>& dims, int dst, const std::vector<int>& offset) {
    auto key = std::make_tuple(leaf, dst, dims, offset);
    auto found = slot_tables_.find(key);
    if (found != slot_tables_.end()) return found->second;
    const FragmentTable& from = tables_[at(leaf)];
    const FragmentTable& to = tables_[at(dst)];
    std::vector<int> table(at(to.threads * to.values), -1);
    for (int t = 0; t < to.threads && t < from.threads; ++t) {
        std::map<std::vector<int>, int> held;
        for (int v = 0; v < from.values; ++v) {
            const int* c = from.at(t, v);
            held.emplace(std::vector<int>(c, c + from.rank), v);
        }
        for (int v = 0; v < to.values; ++v) {
            std::vector<int> want(at(from.rank));
            for (int d = 0; d < from.rank; ++d) {
                const int extent = k_.fragments[at(leaf)].dist.shape[at(d)];
                want[at(d)] = extent == 1 ? 0 : to.at(t, v)[dims.empty() ? d : dims[at(d)]] + (offset.empty() ? 0 : offset[at(d)]);
            }
            auto it = held.find(want);
            if (it != held.end()) table[at(t * to.values + v)] = it->second;
        }
    }
    return slot_tables_.emplace(std::move(key), std::move(table)).first->second;
}

void Machine::check_leaves(Warp& w, const Stmt& s, const ir::ElementNode& e, bool& ok) {
    if (e.op == ElementOp::fragment) ok = readable(w, s, e.id) && ok;
    for (const auto& a : e.args) check_leaves(w, s, *a, ok);
}

double Machine::element(Warp& w, const Stmt& s, const ir::ElementNode& e, int dst, int t, int v, const int* coordinate) {
    switch (e.op) {
        case ElementOp::fragment: {
            const std::vector<int>& slots = slot_table(e.id, e.dims, dst, e.offset);
            const int slot = slots[at(t * tables_[at(dst)].values + v)];
            if (slot < 0) {
                fault(FaultKind::divergence,
                      "thread does not hold the element of `" + k_.fragments[at(e.id)].name + "` that it needs: the layouts do not fit", &w,
                      t % 32, s);
                return std::nan("");
            }
            return group_of(w).fragments[at(e.id)].values[at(t * tables_[at(e.id)].values + slot)];
        }
        case ElementOp::number: return rounded(e.number, e.dtype);
        case ElementOp::scalar: return scalars_[at(e.id)];
        case ElementOp::index: return static_cast<double>(must(w, e.index, s));
        case ElementOp::coordinate:
            return e.part == ir::ElementNode::Part::whole && e.run == 1 ? coordinate[e.id] : coordinate_part(e, dst, t, v);
        case ElementOp::cast: return ir::converted(element(w, s, *e.args[0], dst, t, v, coordinate), e.args[0]->dtype, e.dtype);
        default: {
            double args[ir::most_operands] = {};
            for (std::size_t i = 0; i < e.args.size() && i < ir::most_operands; ++i)
                args[i] = element(w, s, *e.args[i], dst, t, v, coordinate);
            return e.plain ? plain_result(e.op, args) : ir::computed(e.op, e.dtype, args);
        }
    }
}

void Machine::compute(Warp& w, const Stmt& s, const ir::Compute& op) {
    bool ok = true;
    check_leaves(w, s, *op.value, ok);
    if (!ok) return;
    if (!options_.values) return written(w, s, op.dst);
    Group& g = group_of(w);
    const FragmentTable& table = tables_[at(op.dst)];
    const int first = 32 * warp_in_group(w);
    const ir::DeviceStmt* how = s.device.get();
    if (how && how->unless_ones >= 0 && all_ones(w, how->unless_ones)) return written(w, s, op.dst);
    const bool everywhere = how && how->mask && must(w, how->mask->everywhere, s) != 0;
    FragmentState& dst = fragment(g, op.dst);
    std::vector<double> out;
    out.reserve(at(32 * table.values));
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        if (how && how->search && !looks(w, s, *how->search, op.dst, t)) {
            out.insert(out.end(), at(table.values), -std::numeric_limits<double>::infinity());  // anything: what would hurt a minimum most
            continue;
        }
        for (int v = 0; v < table.values; ++v) {
            const ir::ElementNode& value = how && how->mask ? masked_value(w, s, op, *how->mask, everywhere, t, v) : *op.value;
            out.push_back(element(w, s, value, op.dst, t, v, table.at(t, v)));
        }
        if (stopped()) return;
    }
    if (options_.history) {
        std::vector<MadeId> made;
        for (int t = first; t < first + 32 && t < table.threads; ++t) {
            for (int v = 0; v < table.values; ++v) made.push_back(element_made(w, s, *op.value, op.dst, t, v, table.at(t, v)));
        }
        std::copy(made.begin(), made.end(), dst.made.begin() + first * table.values);
    }
    std::copy(out.begin(), out.end(), dst.values.begin() + first * table.values);
    written(w, s, op.dst);
}

void Machine::reduce(Warp& w, const Stmt& s, const ir::Reduce& op) {
    if (!readable(w, s, op.src)) return;
    if (!options_.values) return written(w, s, op.dst);
    if (s.device && s.device->fold && !options_.history) return fold_as_planned(w, s, op, *s.device->fold);
    Group& g = group_of(w);
    const FragmentTable& from = tables_[at(op.src)];
    const FragmentTable& to = tables_[at(op.dst)];
    auto& folds = fold_tables_[&op];
    if (folds.empty()) {  // per (thread, value) of dst: the elements its warp holds that agree with it but along dim
        folds.resize(at(to.threads * to.values));
        for (int warp = 0; warp * 32 < to.threads; ++warp) {
            std::map<std::vector<int>, std::vector<std::pair<int, int>>> held;
            std::map<std::vector<int>, bool> seen;
            for (int t = 32 * warp; t < 32 * warp + 32 && t < from.threads; ++t) {
                for (int v = 0; v < from.values; ++v) {
                    std::vector<int> c(from.at(t, v), from.at(t, v) + from.rank);
                    if (!seen.emplace(c, true).second) continue;
                    c.erase(c.begin() + op.dim);
                    held[c].emplace_back(t, v);
                }
            }
            for (int t = 32 * warp; t < 32 * warp + 32 && t < to.threads; ++t) {
                for (int v = 0; v < to.values; ++v) {
                    std::vector<int> c(to.at(t, v), to.at(t, v) + (from.rank - 1));
                    folds[at(t * to.values + v)] = held[c];
                }
            }
        }
    }
    FragmentState& src = fragment(g, op.src);
    FragmentState& dst = fragment(g, op.dst);
    const int first = 32 * warp_in_group(w);
    const target::DType type = k_.fragments[at(op.dst)].dtype;
    for (int t = first; t < first + 32 && t < to.threads; ++t) {
        for (int v = 0; v < to.values; ++v) {
            const auto& list = folds[at(t * to.values + v)];
            double r = std::nan("");
            for (std::size_t i = 0; i < list.size(); ++i) {
                const double x = src.values[at(list[i].first * from.values + list[i].second)];
                r = i == 0 ? x : fold(op.op, r, x, type);
            }
            dst.values[at(t * to.values + v)] = rounded(r, type);
            if (options_.history) {
                std::vector<MadeId> made;
                for (const auto& [thread, value] : list) made.push_back(src.made[at(thread * from.values + value)]);
                dst.made[at(t * to.values + v)] = options_.history->fold(ir::operation_of(op.op), made, w.event);
            }
        }
    }
    written(w, s, op.dst);
}

void Machine::scan(Warp& w, const Stmt& s, const ir::Scan& op) {
    if (!readable(w, s, op.src)) return;
    if (!options_.values) return written(w, s, op.dst);
    Group& g = group_of(w);
    const FragmentTable& table = tables_[at(op.src)];
    FragmentState& src = fragment(g, op.src);
    FragmentState& dst = fragment(g, op.dst);
    const int first = 32 * warp_in_group(w);
    const target::DType type = k_.fragments[at(op.dst)].dtype;
    std::map<std::vector<int>, std::map<int, double>> lines;
    std::map<std::vector<int>, std::map<int, MadeId>> made;
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        for (int v = 0; v < table.values; ++v) {
            std::vector<int> c(table.at(t, v), table.at(t, v) + table.rank);
            const int along = c[at(op.dim)];
            c.erase(c.begin() + op.dim);
            lines[c][op.reverse ? -along : along] = src.values[at(t * table.values + v)];
            if (options_.history) made[c][op.reverse ? -along : along] = src.made[at(t * table.values + v)];
        }
    }
    for (auto& [key, line] : lines) {
        bool start = true;
        double running = 0;
        for (auto& [along, x] : line) {
            running = start ? x : fold(op.op, running, x, type);
            start = false;
            x = running;
        }
    }
    for (auto& [key, line] : made) {
        MadeId running = 0;
        for (auto& [along, x] : line) running = x = running ? options_.history->fold(ir::operation_of(op.op), {running, x}, w.event) : x;
    }
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        for (int v = 0; v < table.values; ++v) {
            std::vector<int> c(table.at(t, v), table.at(t, v) + table.rank);
            const int along = c[at(op.dim)];
            c.erase(c.begin() + op.dim);
            if (options_.history) dst.made[at(t * table.values + v)] = made[c][op.reverse ? -along : along];
            dst.values[at(t * table.values + v)] = lines[c][op.reverse ? -along : along];
        }
    }
    written(w, s, op.dst);
}

bool Machine::vote(Warp& w, const Stmt& s, int id) {
    if (!readable(w, s, id) || !options_.values) return true;
    const int values = tables_[at(id)].values;
    const auto first = fragment(group_of(w), id).values.begin() + 32 * warp_in_group(w) * values;
    return std::any_of(first, first + 32 * values, [](double x) { return x != 0; });
}

void Machine::shuffle(Warp& w, const Stmt& s, const ir::Shuffle& op) {
    if (!readable(w, s, op.src)) return;
    if (!options_.values) return written(w, s, op.dst);
    Group& g = group_of(w);
    const int values = tables_[at(op.src)].values;
    FragmentState& src = fragment(g, op.src);
    FragmentState& dst = fragment(g, op.dst);
    const int first = 32 * warp_in_group(w);
    std::vector<double> out(at(32 * values));
    std::vector<MadeId> made(options_.history ? out.size() : 0);
    for (int lane = 0; lane < 32; ++lane) {
        const int from = ir::shuffle_source(op, lane);
        for (int v = 0; v < values; ++v) {
            out[at(lane * values + v)] = src.values[at((first + from) * values + v)];
            if (options_.history)
                made[at(lane * values + v)] = options_.history->move(src.made[at((first + from) * values + v)], w.event,
                                                                     thread_of(w, first + lane), thread_of(w, first + from));
        }
    }
    if (options_.history) std::copy(made.begin(), made.end(), dst.made.begin() + first * values);
    std::copy(out.begin(), out.end(), dst.values.begin() + first * values);
    written(w, s, op.dst);
}

}  // namespace tw::emulate
