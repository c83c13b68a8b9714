// Ordinary accesses to global memory: masks, bounds, and races between blocks.
#include <algorithm>

#include "base/index.h"
#include "emulate/machine.h"

namespace tw::emulate {

namespace {}  // namespace

// The tensor offset of a view element, or nothing where it is masked. `oob` says that it lies outside the tensor itself.
std::optional<std::int64_t> Machine::global_offset(const ir::GlobalView& view, const std::vector<std::int64_t>& origin,
                                                   const std::vector<std::optional<std::int64_t>>& limits, const int* coordinate,
                                                   const int* unit, std::int64_t gathered, bool& oob, const Stmt& s, const Warp& w) {
    if (s.device && s.device->access) return planned_offset(view, *s.device->access, origin, limits, coordinate, unit, gathered, s, w);
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
        if (index[d] < 0 && view.gather_dim != view.dims[i] && row_starts_.before(view.origin[d])) masked = true;
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
            fault(FaultKind::out_of_bounds,
                  "index " + std::to_string(index[d]) + " of `" + k_.tensors[at(view.tensor)].name + "` (extent " +
                      std::to_string(dims[d]) + ") was claimed to be in bounds",
                  &w, 0, s);
        }
    }
    if (oob) {
        for (std::size_t d = 0; d < dims.size(); ++d) {
            const bool tile_dim = std::find(view.dims.begin(), view.dims.end(), static_cast<int>(d)) != view.dims.end();
            if (view.gather_dim == static_cast<int>(d)) continue;  // compared as an unsigned number: masked on both sides
            if ((index[d] < 0 || (!tile_dim && index[d] >= dims[d])) && !masked) {
                fault(FaultKind::out_of_bounds,
                      "index " + std::to_string(index[d]) + " of `" + k_.tensors[at(view.tensor)].name + "`, dimension " +
                          std::to_string(d) + ", is outside [0, " + std::to_string(dims[d]) + ")",
                      &w, 0, s);
            }
        }
    }
    if (masked || oob) return std::nullopt;
    return offset;
}

std::string Machine::tensor_place(int tensor, std::int64_t offset) const {
    const auto& dims = dims_[at(tensor)];
    const auto& strides = strides_[at(tensor)];
    // The largest stride first: the index, where strides nest as those of a tensor without overlaps do.
    std::vector<std::size_t> order(dims.size());
    for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return strides[a] > strides[b]; });
    std::vector<std::int64_t> index(dims.size(), 0);
    for (std::size_t d : order) {
        if (dims[d] <= 1 || strides[d] <= 0) continue;
        index[d] = offset / strides[d];
        offset %= strides[d];
    }
    std::string s = k_.tensors[at(tensor)].name + "[";
    for (std::size_t d = 0; d < index.size(); ++d) s += (d ? ", " : "") + std::to_string(index[d]);
    return s + "]";
}

// The access that left an element of an output as it is; null without a history.
const Access* Machine::last_writer(int tensor, std::int64_t offset) {
    if (!options_.history) return nullptr;
    const Made& m = options_.history->nodes[options_.history->tensors[at(tensor)][static_cast<std::size_t>(offset)]];
    if (m.kind != Made::Kind::move) return nullptr;
    writer_ = Access{};
    writer_.stmt = options_.history->events[m.event].stmt;
    writer_.snapshot = m.event;
    writer_.lane = m.thread == Made::engine ? no_lane : static_cast<std::uint8_t>(m.thread % 32);
    return &writer_;
}

void Machine::global_touch(int tensor, std::int64_t offset, bool is_write, bool atomic, const Warp& w, int lane, const Stmt& s,
                           const Access& access, const Knowledge& k) {
    if (!tracked_[at(tensor)] || !options_.detect_races) return;
    GlobalCell& cell = cells_[at(tensor)][static_cast<std::size_t>(offset)];
    const auto me = static_cast<std::int32_t>(cluster_);
    auto place = [&] { return tensor_place(tensor, offset); };
    if (is_write) {
        const bool other_writer = cell.writer >= 0 && cell.writer != me && !(atomic && cell.atomic);
        const bool other_reader = cell.reader >= 0 && cell.reader != me;
        if (other_writer || other_reader) {
            fault(FaultKind::race,
                  std::string("two blocks touch one output element and at least one writes it (") +
                      (other_writer ? "both write" : "one reads") + ")",
                  &w, lane, s, nullptr, place(), &access, other_writer ? last_writer(tensor, offset) : nullptr);
            return;
        }
        cell.writer = me;
        cell.atomic = atomic;
    } else {
        if (cell.writer >= 0 && cell.writer != me) {
            fault(FaultKind::race, "a block reads an element that another block of the same launch writes", &w, lane, s, nullptr, place(),
                  &access, last_writer(tensor, offset));
            return;
        }
        cell.reader = me;
    }
    Shadow& shadow = global_shadow_[at(tensor)].page(static_cast<std::size_t>(offset));
    const std::size_t granule = static_cast<std::size_t>(offset) % PagedShadow::page_size;
    if (atomic && shadow.at(granule).atomic) return;
    const Finding f = is_write ? shadow.write(granule, access, k) : shadow.read(granule, access, k);
    if (f.conflict != Conflict::none) {
        fault(f.conflict == Conflict::race ? FaultKind::race : FaultKind::proxy,
              "two accesses to one element of global memory are not ordered", &w, lane, s, f.other.stmt, place(), &access, &f.other);
    } else if (atomic) {
        shadow.at(granule).atomic = true;
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
    prepare_access(w, s, op.src, o.origin);
    const int width = s.device && s.device->access ? s.device->access->width : 1;
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        auto unit_of = [&](int v) { return table.at(t, v - v % width); };
        std::optional<std::int64_t> vector_start;
        for (int v = 0; v < table.values && !stopped(); ++v) {
            std::int64_t gathered = 0;
            if (gather_view_dim >= 0) {
                const int slot = slot_table(op.src.gather_fragment, gather_dims, op.dst)[at(t * table.values + v)];
                if (slot < 0) {
                    fault(FaultKind::divergence, "thread does not hold the row index it needs", &w, t % 32, s);
                    return;
                }
                gathered = static_cast<std::int64_t>(
                    g.fragments[at(op.src.gather_fragment)].values[at(t * tables_[at(op.src.gather_fragment)].values + slot)]);
            }
            bool oob = false;
            auto offset = global_offset(op.src, o.origin, o.limits, table.at(t, v), unit_of(v), gathered, oob, s, w);
            double x = op.fill;
            if (offset) {
                if (!vector_fits(offset, v, per_vector, op.vector_bytes, op.src.tensor, vector_start, w, t % 32, s)) return;
                global_touch(op.src.tensor, *offset, false, false, w, t % 32, s, access_of(w, t % 32, s), w.knows);
                x = load_value(&tensor.bytes[static_cast<std::size_t>(*offset * size)], tensor.dtype);
            } else if (!op.has_fill) {
                fault({FaultKind::out_of_bounds, FaultCause::no_fill},
                      "a load beyond the bounds of `" + k_.tensors[at(op.src.tensor)].name + "` has no fill value", &w, t % 32, s);
                return;
            }
            dst.values[at(t * table.values + v)] = rounded(x, k_.fragments[at(op.dst)].dtype);
            if (options_.history) {
                const MadeId made = offset ? made_in_tensor(op.src.tensor, *offset) : options_.history->fill(x, w.event);
                dst.made[at(t * table.values + v)] =
                    options_.history->move(made, w.event, thread_of(w, t), offset.value_or(-1), table.at(t, v), at(table.rank));
            }
        }
    }
    written(w, s, op.dst);
}

// One access takes `per_vector` values from a thread's slots on: they must lie side by side, from a multiple of its width on.
bool Machine::vector_fits(std::optional<std::int64_t> offset, int v, int per_vector, int bytes, int tensor,
                          std::optional<std::int64_t>& start, const Warp& w, int lane, const Stmt& s) {
    if (per_vector <= 1) return true;
    const int at_slot = v % per_vector;
    if (at_slot == 0) start = offset;
    if (!offset || !start) return true;
    const int size = target::bytes(tensors_[at(tensor)].dtype);
    if (at_slot == 0 && (*offset * size) % bytes != 0) {
        fault(FaultKind::out_of_bounds,
              "a " + std::to_string(bytes) + "-byte access at byte " + std::to_string(*offset * size) + " of `" +
                  k_.tensors[at(tensor)].name + "` is misaligned",
              &w, lane, s);
        return false;
    }
    if (*offset != *start + at_slot) {
        fault(FaultKind::out_of_bounds,
              "a " + std::to_string(bytes) + "-byte access to `" + k_.tensors[at(tensor)].name +
                  "` takes values that do not lie side by side",
              &w, lane, s);
        return false;
    }
    return true;
}

void Machine::store_global(Warp& w, const Stmt& s, const ir::GlobalView& view, int src, int vector_bytes, bool atomic) {
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
    prepare_access(w, s, view, o.origin);
    const auto* store = std::get_if<ir::StoreGlobal>(&s.op);
    const bool exchanged = store && store->by_quads;  // another lane stores it, in a run of the last dimension
    const int width = s.device && s.device->access && !exchanged ? s.device->access->width : 1;
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        if (holds_a_copy(dist, t)) continue;
        auto unit_of = [&](int v) { return exchanged ? nullptr : table.at(t, v - v % width); };
        std::optional<std::int64_t> vector_start;
        for (int v = 0; v < table.values && !stopped(); ++v) {
            std::int64_t gathered = 0;
            if (gather_view_dim >= 0) {
                const int slot = slot_table(view.gather_fragment, {gather_view_dim}, src)[at(t * table.values + v)];
                if (slot < 0) {
                    fault(FaultKind::divergence, "thread does not hold the row index it needs", &w, t % 32, s);
                    return;
                }
                gathered = static_cast<std::int64_t>(
                    g.fragments[at(view.gather_fragment)].values[at(t * tables_[at(view.gather_fragment)].values + slot)]);
            }
            bool oob = false;
            auto offset = global_offset(view, o.origin, o.limits, table.at(t, v), unit_of(v), gathered, oob, s, w);
            if (!vector_fits(offset, v, std::max(1, vector_bytes / size), vector_bytes, view.tensor, vector_start, w, t % 32, s)) return;
            if (!offset) continue;
            global_touch(view.tensor, *offset, true, atomic, w, t % 32, s, access_of(w, t % 32, s), w.knows);
            std::uint8_t* place = &tensor.bytes[static_cast<std::size_t>(*offset * size)];
            const double x = values.values[at(t * table.values + v)];
            if (options_.history)
                put_in_tensor(view.tensor, *offset, values.made[at(t * table.values + v)], atomic, w.event, thread_of(w, t), table.at(t, v),
                              at(table.rank));
            store_value(place, tensor.dtype, atomic ? rounded(load_value(place, tensor.dtype) + x, tensor.dtype) : x);
        }
    }
}

}  // namespace tw::emulate
