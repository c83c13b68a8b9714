// What the device form adds to statements (ir/device.h), thread by thread.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/index.h"
#include "emulate/machine.h"
#include "ir/device.h"
#include "ir/element_math.h"

namespace tw::emulate {

// ---------------------------------------------------------------------------------------------------------------- registers

// C's own operators on int: what leaves 32 bits is nothing that a program may count on.
double plain_result(ir::ElementOp op, const double* a) {
    double r = std::nan("");
    if (op == ir::ElementOp::add) r = a[0] + a[1];
    if (op == ir::ElementOp::sub) r = a[0] - a[1];
    if (op == ir::ElementOp::mul) r = a[0] * a[1];
    if (op == ir::ElementOp::neg) r = -a[0];
    if (op == ir::ElementOp::div && a[1] != 0) r = std::trunc(a[0] / a[1]);
    return std::fabs(r) < 2147483648.0 ? r : std::nan("");
}

double Machine::coordinate_part(const ir::ElementNode& e, int dst, int t, int v) const {
    const FragmentTable& table = tables_[at(dst)];
    const int slot = v / e.run * e.run;
    const int thread = table.at(t, 0)[e.id] - table.at(0, 0)[e.id], value = table.at(0, slot)[e.id];
    return e.part == ir::ElementNode::Part::thread ? thread : e.part == ir::ElementNode::Part::value ? value : table.at(t, slot)[e.id];
}

bool Machine::all_ones(Warp& w, int factors) {
    const int values = tables_[at(factors)].values;
    const auto first = fragment(group_of(w), factors).values.begin() + 32 * warp_in_group(w) * values;
    return std::all_of(first, first + 32 * values, [](double x) { return x == 1.0; });
}

// Does this thread look for the places of a value? Its flag says so from here on.
bool Machine::looks(Warp& w, const Stmt& s, const ir::Search& how, int dst, int t) {
    Group& g = group_of(w);
    bool flag = false;
    if (how.own >= 0) {
        const double own = fragment(g, how.own).values[at(t)];
        const double best = fragment(g, how.best).values[at(t * tables_[at(how.best)].values)];
        flag = how.is_max ? own >= best : own <= best;
    } else {
        const FragmentTable& table = tables_[at(dst)];
        for (int v = 0; v < table.values; ++v) flag |= element(w, s, *how.any, dst, t, v, table.at(t, v)) != 0;
    }
    fragment(g, how.flag).values[at(t)] = flag;
    fragment(g, how.flag).written[at(warp_in_group(w))] = 1;
    return flag;
}

// What slot v of a masked tile is computed from: all of the selection, or what is selected where the mask is true.
const ir::ElementNode& Machine::masked_value(Warp& w, const Stmt& s, const ir::Compute& op, const ir::MaskSplit& how, bool everywhere,
                                             int t, int v) {
    const ir::ElementNode& select = *op.value;
    if (everywhere) return *select.args[1];
    if (how.run == 0) return select;
    const FragmentTable& table = tables_[at(op.dst)];
    const int first = v / how.run * how.run, last = first + how.run - 1;
    auto inside = [&](int slot) { return element(w, s, *select.args[0], op.dst, t, slot, table.at(t, slot)) != 0; };
    return inside(first) && inside(last) ? *select.args[1] : select;
}

namespace {

// One thread's values of each result, as words of two halves (the upper one unused where values are folded one by one).
struct Word {
    double low = std::nan(""), high = std::nan("");
};

Word joined(ir::FoldKind kind, const Word& a, const Word& b, target::DType type, bool words) {
    const ir::ElementOp op = ir::operation_of(kind);
    const double low[3] = {a.low, b.low, 0}, high[3] = {a.high, b.high, 0};
    return {ir::computed(op, type, low), words ? ir::computed(op, type, high) : std::nan("")};
}

// A thread's own part of one result, in chains.
Word own_part(const ir::FoldPlan& plan, const std::vector<int>& part, ir::FoldKind kind, target::DType type, const double* values,
              int count) {
    const bool words = plan.unit != ir::FoldPlan::Unit::value;
    auto value = [&](int slot) {
        if (!words) return Word{values[slot], std::nan("")};
        return Word{values[2 * slot], 2 * slot + 1 < count ? values[2 * slot + 1] : std::nan("")};
    };
    std::vector<Word> r;
    for (std::size_t i = 0; i < part.size(); ++i) {
        const std::size_t chain = i % at(plan.chains);
        if (i < at(plan.chains)) r.push_back(value(part[i]));
        else r[chain] = joined(kind, r[chain], value(part[i]), type, words);
    }
    for (std::size_t apart = 1; apart < r.size(); apart *= 2) {
        for (std::size_t i = 0; i + apart < r.size(); i += 2 * apart) r[i] = joined(kind, r[i], r[i + apart], type, words);
    }
    if (plan.left_over >= 0) {
        const double last = values[plan.left_over];
        r[0] = joined(kind, r[0], {last, last}, type, words);
    }
    return plan.meet ? joined(kind, r[0], {r[0].high, r[0].low}, type, words) : r[0];
}

}  // namespace

void Machine::fold_as_planned(Warp& w, const Stmt& s, const ir::Reduce& op, const ir::FoldPlan& plan) {
    if (!plan.cannot.empty()) return fault(FaultKind::divergence, plan.cannot, &w, 0, s);
    Group& g = group_of(w);
    const int from = tables_[at(op.src)].values, to = tables_[at(op.dst)].values, first = 32 * warp_in_group(w);
    const target::DType type = k_.fragments[at(op.dst)].dtype;
    const bool words = plan.unit != ir::FoldPlan::Unit::value;
    FragmentState &src = fragment(g, op.src), &dst = fragment(g, op.dst);
    for (std::size_t p = 0; p < plan.parts.size(); ++p) {
        std::vector<Word> lanes(32);
        for (int lane = 0; lane < 32; ++lane) {
            const int t = first + lane;
            Word& r = lanes[at(lane)];
            const bool sits_out = plan.flag >= 0 && fragment(g, plan.flag).values[at(t)] == 0;
            if (sits_out) r = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
            else r = own_part(plan, plan.parts[p], op.op, type, &src.values[at(t * from)], from);
            if (plan.own >= 0) {
                fragment(g, plan.own).values[at(t)] = r.low;
                fragment(g, plan.own).written[at(warp_in_group(w))] = 1;
            }
        }
        for (int distance : plan.lanes) {
            const std::vector<Word> before = lanes;
            for (int lane = 0; lane < 32; ++lane)
                lanes[at(lane)] = joined(op.op, before[at(lane)], before[at(lane ^ distance)], type, words);
        }
        for (int lane = 0; lane < 32; ++lane) {
            double* mine = &dst.values[at((first + lane) * to)];
            if (plan.unit == ir::FoldPlan::Unit::two_results) mine[2 * p] = lanes[at(lane)].low, mine[2 * p + 1] = lanes[at(lane)].high;
            else mine[p] = lanes[at(lane)].low;
        }
    }
    written(w, s, op.dst);
}

void Machine::count_ring(Warp& w, const ir::Assign& op, const ir::RingCounter& ring) {
    auto set = [&](int var, std::int64_t value) {
        w.vars[at(var)] = value;
        w.var_set[at(var)] = 1;
    };
    if (op.value.is_constant(0)) return set(ring.slot, 0), set(ring.phase, 0);
    if (!w.var_set[at(ring.slot)]) set(ring.slot, 0), set(ring.phase, 0);
    set(ring.slot, w.vars[at(ring.slot)] + 1);
    if (w.vars[at(ring.slot)] == ring.period) set(ring.slot, 0), set(ring.phase, w.vars[at(ring.phase)] ^ 1);
}

// ------------------------------------------------------------------------------------------------------------------- memory

void Machine::prepare_access(Warp& w, const Stmt& s, const ir::GlobalView& view, const std::vector<std::int64_t>& origin) {
    access_ends_.clear();
    if (!s.device || !s.device->access) return;
    const ir::AccessPlan& plan = *s.device->access;
    access_inside_ = plan.two_ways;
    for (std::size_t i = 0; i < plan.dims.size(); ++i) {
        const std::int64_t first = origin[at(view.dims[i])];
        access_ends_.push_back(plan.dims[i].tested ? must(w, plan.dims[i].end, s) : 0);
        if (!plan.dims[i].tested) continue;
        access_inside_ &= access_ends_.back() - first >= view.extents[i] && (!plan.dims[i].from_start || first >= 0);
    }
}

// The tensor offset of an element of an access as the thread asks for it: nothing where a test of its keeps it away. `unit` is the
// coordinate of the access's first element.
std::optional<std::int64_t> Machine::planned_offset(const ir::GlobalView& view, const ir::AccessPlan& plan,
                                                    const std::vector<std::int64_t>& origin,
                                                    const std::vector<std::optional<std::int64_t>>& limits, const int* coordinate,
                                                    const int* unit, std::int64_t gathered, const Stmt& s, const Warp& w) {
    const auto& dims = dims_[at(view.tensor)];
    std::int64_t index[8] = {};
    for (std::size_t d = 0; d < dims.size(); ++d) index[d] = origin[d];
    bool there = true;
    for (std::size_t i = 0; i < view.dims.size(); ++i) {
        const std::size_t d = at(view.dims[i]);
        const bool inner = i + 1 == view.dims.size(), gathers = view.gather_dim == view.dims[i];
        index[d] = gathers ? gathered : origin[d] + coordinate[i];
        if (gathers)
            there &= gathered >= 0 && gathered < access_ends_[i] && (i >= limits.size() || !limits[i] || coordinate[i] < *limits[i]);
        if (gathers || access_inside_ || !plan.dims[i].tested) continue;
        const bool by_element = inner && plan.ends != ir::AccessPlan::Ends::whole;
        const int asked = by_element ? coordinate[i] : unit ? unit[i] : inner ? coordinate[i] - coordinate[i] % plan.width : coordinate[i];
        const std::int64_t place = origin[d] + asked;
        const bool from_start = plan.dims[i].from_start && (!by_element || plan.ends == ir::AccessPlan::Ends::between);
        there &= place < access_ends_[i] && (!from_start || place >= 0);
    }
    if (!there) return std::nullopt;
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) {
        if (index[d] < 0 || index[d] >= dims[d]) {
            fault(FaultKind::out_of_bounds,
                  "index " + std::to_string(index[d]) + " of `" + k_.tensors[at(view.tensor)].name + "`, dimension " + std::to_string(d) +
                      ", is outside [0, " + std::to_string(dims[d]) + "), and no test of the device form keeps it away",
                  &w, 0, s);
            return std::nullopt;
        }
        offset += index[d] * strides_[at(view.tensor)][d];
    }
    return offset;
}

}  // namespace tw::emulate
