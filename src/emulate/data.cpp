// Statements that move or compute values at once: registers, ordinary global and shared accesses, mma.sync.
#include <algorithm>
#include <array>
#include <cmath>

#include "emulate/machine.h"

namespace tw::emulate {

using ir::ElementOp;

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// max.f32 and min.f32: a NaN is dropped, and +0 counts as more than -0.
double larger(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : a == b ? (std::signbit(a) ? b : a) : std::max(a, b); }
double smaller(double a, double b) { return -larger(-a, -b); }

double fold(const std::string& op, double a, double b, target::DType type) {
    if (op == "sum") return rounded(a + b, type);
    if (op == "prod") return rounded(a * b, type);
    if (op == "max") return larger(a, b);
    if (op == "min") return smaller(a, b);
    if (op == "any") return a != 0 || b != 0;
    return std::nan("");
}

double apply(ElementOp op, const double* a) {
    switch (op) {
        case ElementOp::add: return a[0] + a[1];
        case ElementOp::sub: return a[0] - a[1];
        case ElementOp::mul: return a[0] * a[1];
        case ElementOp::div: return a[0] / a[1];
        case ElementOp::neg: return -a[0];
        case ElementOp::min: return smaller(a[0], a[1]);
        case ElementOp::max: return larger(a[0], a[1]);
        case ElementOp::abs: return std::fabs(a[0]);
        case ElementOp::pow: return std::pow(a[0], a[1]);
        case ElementOp::floor: return std::floor(a[0]);
        case ElementOp::ceil: return std::ceil(a[0]);
        case ElementOp::mod: return a[0] - std::floor(a[0] / a[1]) * a[1];
        case ElementOp::exp: return std::exp(a[0]);
        case ElementOp::exp2: return std::exp2(a[0]);
        case ElementOp::log: return std::log(a[0]);
        case ElementOp::log2: return std::log2(a[0]);
        case ElementOp::sqrt: return std::sqrt(a[0]);
        case ElementOp::rsqrt: return 1.0 / std::sqrt(a[0]);
        case ElementOp::rcp: return 1.0 / a[0];
        case ElementOp::sin: return std::sin(a[0]);
        case ElementOp::cos: return std::cos(a[0]);
        case ElementOp::tanh: return std::tanh(a[0]);
        case ElementOp::erf: return std::erf(a[0]);
        case ElementOp::sigmoid: return 1.0 / (1.0 + std::exp(-a[0]));
        case ElementOp::lt: return a[0] < a[1];
        case ElementOp::le: return a[0] <= a[1];
        case ElementOp::gt: return a[0] > a[1];
        case ElementOp::ge: return a[0] >= a[1];
        case ElementOp::eq: return a[0] == a[1];
        case ElementOp::ne: return a[0] != a[1];
        case ElementOp::logic_and: return a[0] != 0 && a[1] != 0;
        case ElementOp::logic_or: return a[0] != 0 || a[1] != 0;
        case ElementOp::logic_not: return a[0] == 0;
        case ElementOp::select: return a[0] != 0 ? a[1] : a[2];
        default: return std::nan("");
    }
}

}  // namespace

FragmentState& Machine::fragment(Group& g, int id) {
    FragmentState& f = g.fragments[at(id)];
    if (f.values.empty()) {
        const FragmentTable& table = tables_[at(id)];
        f.values.assign(at(table.threads * table.values), std::nan(""));
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
        fault(FaultKind::in_flight, "fragment `" + name + "` is read while a wgmma still owns its registers; wait for the group first (tw.wgmma_wait)", &w, 0, s, f.owner);
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
        fault(FaultKind::in_flight, "fragment `" + k_.fragments[at(id)].name + "` is written while a wgmma still owns its registers", &w, 0, s, f.owner);
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
                fault(FaultKind::divergence, "thread does not hold the element of `" + k_.fragments[at(e.id)].name + "` that it needs: the layouts do not fit", &w, t % 32, s);
                return std::nan("");
            }
            return group_of(w).fragments[at(e.id)].values[at(t * tables_[at(e.id)].values + slot)];
        }
        case ElementOp::number: return rounded(e.number, e.dtype);
        case ElementOp::scalar: return scalars_[at(e.id)];
        case ElementOp::index: return static_cast<double>(must(w, e.index, s));
        case ElementOp::coordinate: return coordinate[e.id];
        case ElementOp::cast: return rounded(element(w, s, *e.args[0], dst, t, v, coordinate), e.dtype);
        case ElementOp::fma: {
            const double a = element(w, s, *e.args[0], dst, t, v, coordinate), b = element(w, s, *e.args[1], dst, t, v, coordinate),
                         c = element(w, s, *e.args[2], dst, t, v, coordinate);
            if (e.dtype == target::DType::F32) return std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
            return rounded(std::fma(a, b, c), e.dtype);
        }
        default: {
            double args[3] = {0, 0, 0};
            for (std::size_t i = 0; i < e.args.size() && i < 3; ++i) args[i] = element(w, s, *e.args[i], dst, t, v, coordinate);
            double r = apply(e.op, args);
            const bool integer = !target::info(e.dtype).is_float;
            if (e.op == ElementOp::div && integer) r = std::trunc(r);
            return rounded(r, e.dtype);
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
    std::vector<double> out;
    out.reserve(at(32 * table.values));
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        for (int v = 0; v < table.values; ++v) out.push_back(element(w, s, *op.value, op.dst, t, v, table.at(t, v)));
        if (stopped()) return;
    }
    FragmentState& dst = fragment(g, op.dst);
    std::copy(out.begin(), out.end(), dst.values.begin() + first * table.values);
    written(w, s, op.dst);
}

void Machine::reduce(Warp& w, const Stmt& s, const ir::Reduce& op) {
    if (!readable(w, s, op.src)) return;
    if (!options_.values) return written(w, s, op.dst);
    Group& g = group_of(w);
    const FragmentTable& from = tables_[at(op.src)];
    const FragmentTable& to = tables_[at(op.dst)];
    auto& folds = fold_tables_[&op];
    if (folds.empty()) {   // per (thread, value) of dst: the elements its warp holds that agree with it but along dim
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
                    std::vector<int> c(to.at(t, v), to.at(t, v) + from.rank - 1);
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
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        for (int v = 0; v < table.values; ++v) {
            std::vector<int> c(table.at(t, v), table.at(t, v) + table.rank);
            const int along = c[at(op.dim)];
            c.erase(c.begin() + op.dim);
            lines[c][op.reverse ? -along : along] = src.values[at(t * table.values + v)];
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
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        for (int v = 0; v < table.values; ++v) {
            std::vector<int> c(table.at(t, v), table.at(t, v) + table.rank);
            const int along = c[at(op.dim)];
            c.erase(c.begin() + op.dim);
            dst.values[at(t * table.values + v)] = lines[c][op.reverse ? -along : along];
        }
    }
    written(w, s, op.dst);
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
    for (int lane = 0; lane < 32; ++lane) {
        int from = lane;
        if (op.mode == "idx") from = op.lane_arg & 31;
        if (op.mode == "bfly") from = lane ^ op.lane_arg;
        if (op.mode == "up") from = lane - op.lane_arg;
        if (op.mode == "down") from = lane + op.lane_arg;
        if (from < 0 || from > 31) from = lane;
        for (int v = 0; v < values; ++v) out[at(lane * values + v)] = src.values[at((first + from) * values + v)];
    }
    std::copy(out.begin(), out.end(), dst.values.begin() + first * values);
    written(w, s, op.dst);
}

// The tensor offset of a view element, or nothing where it is masked. `oob` says that it lies outside the tensor itself.
std::optional<std::int64_t> Machine::global_offset(const ir::GlobalView& view, const std::vector<std::int64_t>& origin,
                                                   const std::vector<std::optional<std::int64_t>>& limits, const int* coordinate,
                                                   std::int64_t gathered, bool& oob, const Stmt& s, const Warp& w) {
    const auto& dims = dims_[at(view.tensor)];
    const auto& strides = strides_[at(view.tensor)];
    std::int64_t index[8] = {};
    for (std::size_t d = 0; d < dims.size(); ++d) index[d] = origin[d];
    bool masked = false;
    oob = false;
    for (std::size_t i = 0; i < view.dims.size(); ++i) {
        const std::size_t d = at(view.dims[i]);
        // A masked position of a gathered dimension: the limit applies to the position, the bound to the gathered index.
        const std::int64_t position = origin[d] + coordinate[i];
        index[d] = view.gather_dim == view.dims[i] ? gathered : position;
        if (i < limits.size() && limits[i] && (view.gather_dim == view.dims[i] ? coordinate[i] : position) >= *limits[i]) masked = true;
    }
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) {
        if (index[d] < 0 || index[d] >= dims[d]) oob = true;
        offset += index[d] * strides[d];
    }
    for (std::size_t i = 0; i < view.dims.size(); ++i) {
        const std::size_t d = at(view.dims[i]);
        const bool outside = index[d] < 0 || index[d] >= dims[d];
        if (outside && !masked && i < view.in_bounds.size() && view.in_bounds[i]) {
            fault(FaultKind::out_of_bounds, "index " + std::to_string(index[d]) + " of `" + k_.tensors[at(view.tensor)].name + "` (extent " + std::to_string(dims[d]) + ") was claimed to be in bounds", &w, 0, s);
        }
    }
    if (oob) {
        for (std::size_t d = 0; d < dims.size(); ++d) {
            const bool tile_dim = std::find(view.dims.begin(), view.dims.end(), static_cast<int>(d)) != view.dims.end();
            if ((index[d] < 0 || (!tile_dim && index[d] >= dims[d])) && !masked) {
                fault(FaultKind::out_of_bounds, "index " + std::to_string(index[d]) + " of `" + k_.tensors[at(view.tensor)].name + "`, dimension " + std::to_string(d) + ", is outside [0, " + std::to_string(dims[d]) + ")", &w, 0, s);
            }
        }
    }
    if (masked || oob) return std::nullopt;
    return offset;
}

void Machine::global_touch(int tensor, std::int64_t offset, bool is_write, bool atomic, const Warp& w, int lane, const Stmt& s,
                           const Access& access, const Knowledge& k) {
    if (!tracked_[at(tensor)] || !options_.detect_races) return;
    GlobalCell& cell = cells_[at(tensor)][static_cast<std::size_t>(offset)];
    const auto me = static_cast<std::int32_t>(cluster_);
    const std::string place = k_.tensors[at(tensor)].name + " element " + std::to_string(offset);
    if (is_write) {
        const bool other_writer = cell.writer >= 0 && cell.writer != me && !(atomic && cell.atomic);
        const bool other_reader = cell.reader >= 0 && cell.reader != me;
        if (other_writer || other_reader) {
            fault(FaultKind::race, std::string("two blocks touch one output element and at least one writes it (") + (other_writer ? "both write" : "one reads") + ")", &w, lane, s, nullptr, place);
            return;
        }
        cell.writer = me;
        cell.atomic = atomic;
    } else {
        if (cell.writer >= 0 && cell.writer != me) {
            fault(FaultKind::race, "a block reads an element that another block of the same launch writes", &w, lane, s, nullptr, place);
            return;
        }
        cell.reader = me;
    }
    Shadow& shadow = global_shadow_[at(tensor)];
    if (atomic && shadow.at(static_cast<std::size_t>(offset)).atomic) return;
    const Finding f = is_write ? shadow.write(static_cast<std::size_t>(offset), access, k) : shadow.read(static_cast<std::size_t>(offset), access, k);
    if (f.conflict != Conflict::none) {
        fault(f.conflict == Conflict::race ? FaultKind::race : FaultKind::proxy, "two accesses to one element of global memory are not ordered", &w, lane, s, f.other.stmt, place);
    } else if (atomic) {
        shadow.at(static_cast<std::size_t>(offset)).atomic = true;
    }
}

namespace {
struct GlobalOrigin {
    std::vector<std::int64_t> origin;
    std::vector<std::optional<std::int64_t>> limits;
};
}  // namespace

void Machine::load_global(Warp& w, const Stmt& s, const ir::LoadGlobal& op) {
    GlobalOrigin o;
    for (const ir::Expr& e : op.src.origin) o.origin.push_back(must(w, e, s));
    for (const auto& l : op.src.limit) o.limits.push_back(l ? std::optional(must(w, *l, s)) : std::nullopt);
    if (op.src.gather_fragment >= 0 && !readable(w, s, op.src.gather_fragment)) return;
    if (!options_.values) return written(w, s, op.dst);
    Group& g = group_of(w);
    const FragmentTable& table = tables_[at(op.dst)];
    FragmentState& dst = fragment(g, op.dst);
    const TensorData& tensor = tensors_[at(op.src.tensor)];
    const int size = target::bytes(tensor.dtype);
    const int first = 32 * warp_in_group(w);
    const int per_vector = op.vector_bytes > size ? op.vector_bytes / size : 1;
    int gather_view_dim = -1;
    std::vector<int> gather_dims;
    for (std::size_t i = 0; i < op.src.dims.size(); ++i) {
        if (op.src.dims[i] == op.src.gather_dim) gather_view_dim = static_cast<int>(i);
    }
    if (gather_view_dim >= 0) gather_dims = {gather_view_dim};
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        for (int v = 0; v < table.values && !stopped(); ++v) {
            std::int64_t gathered = 0;
            if (gather_view_dim >= 0) {
                const int slot = slot_table(op.src.gather_fragment, gather_dims, op.dst)[at(t * table.values + v)];
                if (slot < 0) {
                    fault(FaultKind::divergence, "thread does not hold the row index it needs", &w, t % 32, s);
                    return;
                }
                gathered = static_cast<std::int64_t>(g.fragments[at(op.src.gather_fragment)].values[at(t * tables_[at(op.src.gather_fragment)].values + slot)]);
            }
            bool oob = false;
            auto offset = global_offset(op.src, o.origin, o.limits, table.at(t, v), gathered, oob, s, w);
            double x = op.fill;
            if (offset) {
                if (v % per_vector == 0 && per_vector > 1 && (*offset * size) % op.vector_bytes != 0) {
                    fault(FaultKind::out_of_bounds, "a " + std::to_string(op.vector_bytes) + "-byte access at byte " + std::to_string(*offset * size) + " of `" + k_.tensors[at(op.src.tensor)].name + "` is misaligned", &w, t % 32, s);
                    return;
                }
                global_touch(op.src.tensor, *offset, false, false, w, t % 32, s, access_of(w, t % 32, s), w.knows);
                x = load_value(&tensor.bytes[static_cast<std::size_t>(*offset * size)], tensor.dtype);
            } else if (!op.has_fill) {
                fault(FaultKind::out_of_bounds, "a load beyond the bounds of `" + k_.tensors[at(op.src.tensor)].name + "` has no fill value", &w, t % 32, s);
                return;
            }
            dst.values[at(t * table.values + v)] = rounded(x, k_.fragments[at(op.dst)].dtype);
        }
    }
    written(w, s, op.dst);
}

void Machine::store_global(Warp& w, const Stmt& s, const ir::GlobalView& view, int src, bool atomic) {
    GlobalOrigin o;
    for (const ir::Expr& e : view.origin) o.origin.push_back(must(w, e, s));
    for (const auto& l : view.limit) o.limits.push_back(l ? std::optional(must(w, *l, s)) : std::nullopt);
    if (!readable(w, s, src)) return;
    if (view.gather_fragment >= 0 && !readable(w, s, view.gather_fragment)) return;
    if (!options_.values) return;
    Group& g = group_of(w);
    const FragmentTable& table = tables_[at(src)];
    FragmentState& values = fragment(g, src);
    TensorData& tensor = tensors_[at(view.tensor)];
    const int size = target::bytes(tensor.dtype);
    const int first = 32 * warp_in_group(w);
    int gather_view_dim = -1;
    for (std::size_t i = 0; i < view.dims.size(); ++i) {
        if (view.dims[i] == view.gather_dim) gather_view_dim = static_cast<int>(i);
    }
    // Copies of an element in several threads are stored once, by the first thread that holds it.
    const ir::Distribution& dist = k_.fragments[at(src)].dist;
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        if (holds_a_copy(dist, t)) continue;
        for (int v = 0; v < table.values && !stopped(); ++v) {
            std::int64_t gathered = 0;
            if (gather_view_dim >= 0) {
                const int slot = slot_table(view.gather_fragment, {gather_view_dim}, src)[at(t * table.values + v)];
                if (slot < 0) {
                    fault(FaultKind::divergence, "thread does not hold the row index it needs", &w, t % 32, s);
                    return;
                }
                gathered = static_cast<std::int64_t>(g.fragments[at(view.gather_fragment)].values[at(t * tables_[at(view.gather_fragment)].values + slot)]);
            }
            bool oob = false;
            auto offset = global_offset(view, o.origin, o.limits, table.at(t, v), gathered, oob, s, w);
            if (!offset) continue;
            global_touch(view.tensor, *offset, true, atomic, w, t % 32, s, access_of(w, t % 32, s), w.knows);
            std::uint8_t* place = &tensor.bytes[static_cast<std::size_t>(*offset * size)];
            const double x = values.values[at(t * table.values + v)];
            store_value(place, tensor.dtype, atomic ? rounded(load_value(place, tensor.dtype) + x, tensor.dtype) : x);
        }
    }
}

std::string Machine::arena_place(int address) const {
    for (const ir::SharedBuffer& b : k_.buffers) {
        if (address >= b.byte_offset && address < b.byte_offset + b.bytes) {
            return "`" + b.name + "` byte " + std::to_string(address - b.byte_offset);
        }
    }
    return "shared byte " + std::to_string(address);
}

bool Machine::shared_touch(int block, int address, int bytes, bool is_write, const Access& access, const Knowledge& k, const Warp* w, const Stmt& s) {
    Block& b = blocks_[at(block)];
    if (address < 0 || address + bytes > static_cast<int>(b.arena.size())) {
        fault(FaultKind::out_of_bounds, "shared byte " + std::to_string(address) + " is outside the block's " + std::to_string(b.arena.size()) + " bytes", w, access.lane, s);
        return false;
    }
    for (int g = address / granule_; g <= (address + bytes - 1) / granule_; ++g) {
        if (!is_write && !b.shadow.at(at(g)).initialised) {
            fault(FaultKind::uninitialised, "shared memory is read before anything was written there", w, access.lane, s, nullptr, arena_place(address));
            return false;
        }
        if (!options_.detect_races) {
            b.shadow.at(at(g)).initialised = true;
            continue;
        }
        const Finding f = is_write ? b.shadow.write(at(g), access, k) : b.shadow.read(at(g), access, k);
        if (f.conflict == Conflict::race) {
            fault(FaultKind::race, "two accesses to one place in shared memory are not ordered by any barrier, and one of them writes", w, access.lane, s, f.other.stmt, arena_place(address));
            return false;
        }
        if (f.conflict == Conflict::proxy) {
            fault(FaultKind::proxy, "ordinary stores to shared memory are followed by the copy engine or tensor cores with no proxy fence between (tw.fence_async() after the stores, before the barrier)", w, access.lane, s, f.other.stmt, arena_place(address));
            return false;
        }
    }
    return true;
}

namespace {

// Address of a view element; nothing when it lies outside the buffer.
std::optional<int> view_address(const ir::SharedBuffer& buffer, const ir::SharedView& view, const std::vector<std::int64_t>& origin, const int* coordinate) {
    std::vector<int> c(buffer.dims.size());
    for (std::size_t d = 0; d < c.size(); ++d) c[d] = static_cast<int>(origin[d]);
    for (std::size_t i = 0; i < view.dims.size(); ++i) c[at(view.dims[i])] += coordinate[i];
    for (std::size_t d = 0; d < c.size(); ++d) {
        if (c[d] < 0 || c[d] >= buffer.extent(static_cast<int>(d))) return std::nullopt;
    }
    return ir::shared_address(buffer, c);
}

// ldmatrix and stmatrix with the wrong .trans exchange rows and columns inside each 8 x 8 matrix. Right is: transposed exactly
// where a lane's pair of elements does not run along the buffer's rows.
bool exchanges_matrices(const ir::SharedBuffer& buffer, const ir::SharedView& view, const FragmentTable& table, bool transposed) {
    if (view.dims.size() != 2 || table.values < 2) return false;
    int pair = 0;
    for (int d : {0, 1}) {
        if (table.at(0, 0)[d] != table.at(0, 1)[d]) pair = d;
    }
    const bool along_rows = buffer.dims[at(view.dims[at(pair)])].strides[0] == 1;
    return transposed == along_rows;
}

std::array<int, 2> exchanged(const int* c) { return {(c[0] & ~7) | (c[1] & 7), (c[1] & ~7) | (c[0] & 7)}; }

}  // namespace

int Machine::block_of(Warp& w, const ir::SharedView& view, const Stmt& s) {
    if (!view.cluster_rank) return w.block;
    const std::int64_t rank = must(w, *view.cluster_rank, s);
    if (rank >= 0 && rank < cluster_size_) return static_cast<int>(rank);
    fault(FaultKind::out_of_bounds, "cluster rank " + std::to_string(rank) + " does not exist", &w, 0, s);
    return -1;
}

void Machine::load_shared(Warp& w, const Stmt& s, const ir::LoadShared& op) {
    if (!options_.values) return skeleton_move(w, s, op.src, op.dst, false);
    w.touched_shared = true;
    std::vector<std::int64_t> origin;
    for (const ir::Expr& e : op.src.origin) origin.push_back(must(w, e, s));
    const int block = block_of(w, op.src, s);
    if (block < 0) return;
    const ir::SharedBuffer& buffer = k_.buffers[at(op.src.buffer)];
    const int size = target::bytes(buffer.dtype);
    Group& g = group_of(w);
    const FragmentTable& table = tables_[at(op.dst)];
    FragmentState& dst = fragment(g, op.dst);
    const int first = 32 * warp_in_group(w);
    const bool swaps = op.matrix && exchanges_matrices(buffer, op.src, table, op.matrix_transposed);
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        for (int v = 0; v < table.values; ++v) {
            const int* c = table.at(t, v);
            auto address = view_address(buffer, op.src, origin, swaps ? exchanged(c).data() : c);
            if (!address) {
                fault(FaultKind::out_of_bounds, "a load outside shared buffer `" + buffer.name + "`", &w, t % 32, s);
                return;
            }
            if (!shared_touch(block, *address, size, false, access_of(w, t % 32, s), w.knows, &w, s)) return;
            dst.values[at(t * table.values + v)] = load_value(&blocks_[at(block)].arena[at(*address)], buffer.dtype);
        }
    }
    written(w, s, op.dst);
}

void Machine::store_shared(Warp& w, const Stmt& s, const ir::StoreShared& op) {
    if (!options_.values) return skeleton_move(w, s, op.dst, op.src, true);
    w.touched_shared = true;
    std::vector<std::int64_t> origin;
    for (const ir::Expr& e : op.dst.origin) origin.push_back(must(w, e, s));
    if (!readable(w, s, op.src)) return;
    const int block = block_of(w, op.dst, s);
    if (block < 0) return;
    const ir::SharedBuffer& buffer = k_.buffers[at(op.dst.buffer)];
    const int size = target::bytes(buffer.dtype);
    const FragmentTable& table = tables_[at(op.src)];
    FragmentState& src = fragment(group_of(w), op.src);
    const int first = 32 * warp_in_group(w);
    const bool swaps = op.matrix && exchanges_matrices(buffer, op.dst, table, op.matrix_transposed);
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        if (holds_a_copy(k_.fragments[at(op.src)].dist, t)) continue;
        for (int v = 0; v < table.values; ++v) {
            const int* c = table.at(t, v);
            auto address = view_address(buffer, op.dst, origin, swaps ? exchanged(c).data() : c);
            if (!address) {
                fault(FaultKind::out_of_bounds, "a store outside shared buffer `" + buffer.name + "`", &w, t % 32, s);
                return;
            }
            if (!shared_touch(block, *address, size, true, access_of(w, t % 32, s), w.knows, &w, s)) return;
            store_value(&blocks_[at(block)].arena[at(*address)], buffer.dtype, src.values[at(t * table.values + v)]);
        }
    }
}

void Machine::mma(Warp& w, const Stmt& s, const ir::Mma& op) {
    if (!readable(w, s, op.a) || !readable(w, s, op.b) || !readable(w, s, op.acc)) return;
    if (!options_.values) return written(w, s, op.acc);
    Group& g = group_of(w);
    const int first = 32 * warp_in_group(w);
    // A warp multiplies what its own lanes hold: rows of A and of B, NaN where it holds nothing.
    const int depth = k_.fragments[at(op.a)].dist.shape[1];
    auto gather = [&](int id) {
        const FragmentTable& table = tables_[at(id)];
        FragmentState& f = fragment(g, id);
        std::map<int, std::pair<std::vector<double>, std::vector<char>>> rows;
        for (int t = first; t < first + 32 && t < table.threads; ++t) {
            for (int v = 0; v < table.values; ++v) {
                auto& [values, held] = rows[table.at(t, v)[0]];
                values.resize(at(depth), std::nan("")), held.resize(at(depth), 0);
                const int k = table.at(t, v)[1];
                if (k < depth) values[at(k)] = f.values[at(t * table.values + v)], held[at(k)] = 1;
            }
        }
        std::map<int, MatrixOperand> operands;
        for (auto& [row, content] : rows) {
            if (std::find(content.second.begin(), content.second.end(), 0) == content.second.end()) operands.emplace(row, MatrixOperand(k_.fragments[at(id)].dtype, std::move(content.first)));
        }
        return operands;
    };
    const auto a = gather(op.a), b = gather(op.b);
    const FragmentTable& table = tables_[at(op.acc)];
    FragmentState& acc = fragment(g, op.acc);
    const int step = std::max(1, 32 / target::bytes(k_.fragments[at(op.a)].dtype));   // elements one instruction sums
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        for (int v = 0; v < table.values; ++v) {
            const auto x = a.find(table.at(t, v)[0]), y = b.find(table.at(t, v)[1]);
            if (x == a.end() || y == b.end()) {
                fault(FaultKind::divergence, "the warp does not hold the operands of its accumulator element", &w, t % 32, s);
                return;
            }
            double& sum = acc.values[at(t * table.values + v)];
            for (int k = 0; k < depth; k += step) {
                sum = product_sum(target::MatrixUnit::MmaSync, x->second, at(k), y->second, at(k), at(std::min(step, depth - k)), sum, k_.fragments[at(op.acc)].dtype);
            }
        }
    }
    written(w, s, op.acc);
}

}  // namespace tw::emulate
