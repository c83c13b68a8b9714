// Asynchronous work: cp.async, TMA, bulk stores, wgmma.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/index.h"
#include "emulate/machine.h"

namespace tw::emulate {
namespace {}  // namespace

FragmentTable whole_vectors(const ir::Kernel& k, const ir::CpAsync& copy) {
    const FragmentTable vectors = tabulate(copy.dist);
    const int rows = copy.dst.extents[0], width = copy.dst.extents[1],
              run = copy.bytes / target::bytes(k.buffers[at(copy.dst.buffer)].dtype);
    FragmentTable out{vectors.threads, vectors.values + (rows + vectors.threads - 1) / vectors.threads * run, 2, {}};
    out.coordinates.assign(at(out.threads * out.values * 2), -1);
    for (int t = 0; t < out.threads; ++t) {
        int* to = &out.coordinates[at(t * out.values * 2)];
        auto put = [&](int row, int column) {
            if (column >= 0 && column < width) to[0] = row, to[1] = column;
            to += 2;
        };
        for (int v = 0; v < vectors.values; ++v)
            put(vectors.at(t, v)[0], vectors.at(t, v)[1] - ir::row_phase(k, copy, vectors.at(t, v)[0]));
        for (int row = t; row < rows; row += vectors.threads) {
            for (int i = 0; i < run; ++i) put(row, width - ir::row_phase(k, copy, row) + i);
        }
    }
    return out;
}

void Machine::cp_async(Warp& w, const Stmt& s, const ir::CpAsync& op) {
    std::vector<std::int64_t> origin, shared_origin;
    std::vector<std::optional<std::int64_t>> limits;
    for (const ir::Expr& e : op.src.origin) origin.push_back(must(w, e, s));
    for (const ir::Expr& e : op.dst.origin) shared_origin.push_back(must(w, e, s));
    for (const auto& l : op.src.limit) limits.push_back(l ? std::optional(must(w, *l, s)) : std::nullopt);
    if (op.src.gather_fragment >= 0 && !readable(w, s, op.src.gather_fragment)) return;
    const ir::SharedBuffer& buffer = k_.buffers[at(op.dst.buffer)];
    const int size = target::bytes(buffer.dtype);
    const TensorData& tensor = tensors_[at(op.src.tensor)];
    const FragmentTable& table = *copy_table_.at(&op);
    const int first = 32 * warp_in_group(w);
    int gather_view_dim = -1;
    for (std::size_t i = 0; i < op.src.dims.size(); ++i) {
        if (op.src.dims[i] == op.src.gather_dim) gather_view_dim = static_cast<int>(i);
    }
    CopyTask task;
    task.stmt = &s;
    task.first_thread = first;
    task.at_issue = w.knows;
    tick(w);  // what the warp does from here on, the copy may overtake
    task.time = ++w.copy_time;
    task.waited = w.own_copies;
    task.lanes_clock = w.lanes_clock;
    task.snapshot = w.event;
    if (!options_.values) {
        task.origin = shared_origin;
        task.snapshot = snapshot_of(w);
        w.copies_open.push_back(std::move(task));
        return;
    }
    const int per_copy = std::max(1, op.bytes / size);
    prepare_access(w, s, op.src, origin);
    for (int t = first; t < first + 32 && t < table.threads; ++t) {
        if (holds_a_copy(op.dist, t)) continue;
        for (int v = 0; v < table.values; ++v) {
            const int* c = table.at(t, v);
            if (op.whole_vectors && c[0] < 0) continue;
            std::vector<int> place(buffer.dims.size());
            for (std::size_t d = 0; d < place.size(); ++d) place[d] = static_cast<int>(shared_origin[d]);
            for (std::size_t i = 0; i < op.dst.dims.size(); ++i) place[at(op.dst.dims[i])] += c[i];
            for (std::size_t d = 0; d < place.size(); ++d) {
                if (place[d] < 0 || place[d] >= buffer.extent(static_cast<int>(d))) {
                    fault(FaultKind::out_of_bounds, "a copy outside shared buffer `" + buffer.name + "`", &w, t % 32, s);
                    return;
                }
            }
            const int address = ir::shared_address(buffer, place);
            std::int64_t gathered = 0;
            if (gather_view_dim >= 0) {
                // The row index lives in a fragment: find the slot of this thread that holds it.
                const FragmentTable& rows = tables_[at(op.src.gather_fragment)];
                int slot = -1;
                for (int i = 0; i < rows.values; ++i) {
                    if (rows.at(t, i)[0] == c[gather_view_dim]) slot = i;
                }
                if (slot < 0) {
                    fault(FaultKind::divergence, "thread does not hold the row index it needs", &w, t % 32, s);
                    return;
                }
                gathered = static_cast<std::int64_t>(group_of(w).fragments[at(op.src.gather_fragment)].values[at(t * rows.values + slot)]);
            }
            bool oob = false;
            auto offset = global_offset(op.src, origin, limits, c, table.at(t, v - v % per_copy), gathered, oob, s, w);
            std::vector<std::uint8_t> bytes(at(size), op.whole_vectors ? 0xff : 0);  // anything: as a float, NaN
            if (offset) {
                if (op.whole_vectors && (*offset * size - address) % op.bytes != 0) {
                    fault(FaultKind::out_of_bounds,
                          "a row of " + std::to_string(op.bytes) + "-byte vectors lies otherwise in global (byte " +
                              std::to_string(*offset * size) + ") than in shared memory (byte " + std::to_string(address) + ")",
                          &w, t % 32, s);
                    return;
                }
                if (!op.whole_vectors && v % per_copy == 0 && ((*offset * size) % op.bytes != 0 || address % op.bytes != 0)) {
                    fault(FaultKind::out_of_bounds,
                          "a " + std::to_string(op.bytes) + "-byte cp.async is misaligned (global byte " + std::to_string(*offset * size) +
                              ", shared byte " + std::to_string(address) + ")",
                          &w, t % 32, s);
                    return;
                }
                std::memcpy(bytes.data(), &tensor.bytes[static_cast<std::size_t>(*offset * size)], at(size));
            } else if (!op.zero_fill && !op.whole_vectors) {
                fault(FaultKind::out_of_bounds, "a cp.async beyond the bounds of `" + k_.tensors[at(op.src.tensor)].name + "` has no fill",
                      &w, t % 32, s);
                return;
            }
            if (options_.history) {
                const MadeId made = offset ? made_in_tensor(op.src.tensor, *offset) : options_.history->fill(0.0, w.event);
                task.made.push_back(options_.history->move(made, w.event, thread_of(w, t), address, c, at(table.rank)));
            }
            task.pieces.emplace_back(address, std::move(bytes));
            task.lanes.push_back(static_cast<std::uint8_t>(t % 32));
        }
    }
    w.copies_open.push_back(std::move(task));
    if (!options_.schedule.lazy) land_copies(w, w.copies_open, w.knows);
}

// Writes through the generic proxy, as an actor of its own that only the covering wait joins.
void Machine::land_copies(Warp& w, std::vector<CopyTask>& tasks, const Knowledge&) {
    for (CopyTask& t : tasks) {
        Access a;
        a.actor = static_cast<std::uint16_t>(actor_copies(w.number));
        a.lane = no_lane;
        a.time = t.time;
        a.asynchronous = true;
        a.serial = t.time;
        a.issuer = static_cast<std::uint16_t>(w.number);
        a.lanes_clock = t.lanes_clock;
        a.copies_actor = a.actor;
        a.own_copies = t.waited;
        a.stmt = t.stmt;
        a.snapshot = t.snapshot;
        if (!options_.values) {
            if (t.landed) continue;
            t.landed = true;
            const auto& op = std::get<ir::CpAsync>(t.stmt->op);
            const ir::SharedBuffer& buffer = k_.buffers[at(op.dst.buffer)];
            const Footprint& f = footprint(w, *t.stmt, t.origin, 0, [&](Footprint& out) {
                const FragmentTable& table = *copy_table_.at(&op);
                for (int th = t.first_thread; th < t.first_thread + 32 && th < table.threads; ++th) {
                    if (holds_a_copy(op.dist, th)) continue;
                    for (int v = 0; v < table.values; ++v) {
                        if (op.whole_vectors && table.at(th, v)[0] < 0) continue;
                        std::vector<int> c(buffer.dims.size());
                        for (std::size_t d = 0; d < c.size(); ++d) c[d] = static_cast<int>(t.origin[d]);
                        for (std::size_t i = 0; i < op.dst.dims.size(); ++i) c[at(op.dst.dims[i])] += table.at(th, v)[i];
                        for (std::size_t d = 0; d < c.size(); ++d) out.outside |= c[d] < 0 || c[d] >= buffer.extent(static_cast<int>(d));
                        if (out.outside) return;
                        out.touches.emplace_back(static_cast<std::uint8_t>(th % 32), ir::shared_address(buffer, c) / granule_);
                    }
                }
            });
            touch(w.block, f, true, a, t.at_issue, w, *t.stmt);
            continue;
        }
        for (std::size_t i = 0; i < t.pieces.size(); ++i) {
            a.lane = t.lanes[i];
            if (!shared_touch(w.block, t.pieces[i].first, static_cast<int>(t.pieces[i].second.size()), true, a, t.at_issue, &w, *t.stmt))
                break;
            std::memcpy(&blocks_[at(w.block)].arena[at(t.pieces[i].first)], t.pieces[i].second.data(), t.pieces[i].second.size());
            if (options_.history) put_in_arena(w.block, t.pieces[i].first, static_cast<int>(t.pieces[i].second.size()), t.made[i]);
        }
        t.pieces.clear();
    }
}

void Machine::tma_issue(Warp& w, const Stmt& s) {
    TmaTask t;
    t.stmt = &s;
    t.block = w.block;
    t.warp = w.number;
    t.at_issue = known_to_one_thread(w);
    tick(w);  // what the warp does from here on, the copy may overtake
    t.snapshot = options_.values ? w.event : snapshot_of(w);
    const int copies = w.single ? 1 : 32;  // a TMA statement outside `elect` is issued by every lane: shown as what it is
    if (copies != 1) {
        fault(FaultKind::divergence, "a TMA instruction is issued by all threads of the group; it must be elected", &w, 0, s);
        return;
    }
    if (auto* load = std::get_if<ir::TmaLoad>(&s.op)) {
        t.kind = TmaTask::Kind::load;
        for (const ir::Expr& e : load->coordinates) t.coordinates.push_back(must(w, e, s));
        for (const ir::Expr& e : load->dst.origin) t.origin.push_back(must(w, e, s));
        auto place = barrier_slot(w, s, load->barrier);
        if (!place) return;
        t.barrier = place->second;
        t.barrier_block = place->first;
        if (load->multicast_mask) {
            const std::int64_t mask = must(w, *load->multicast_mask, s);
            for (int r = 0; r < cluster_size_; ++r) {
                if (!(mask >> r & 1)) continue;
                t.targets.push_back(r);
                // The same barrier of every block that receives is completed on: it must be known to be there.
                const BarrierSlot& slot = blocks_[at(r)].barriers[at(t.barrier)];
                if (r != w.block && (!slot.initialised || w.knows.order[at(slot.initialiser)] < slot.init_time)) {
                    fault(FaultKind::barrier,
                          "the multicast completes on an mbarrier of block " + std::to_string(r) +
                              " of the cluster that is not known to be initialised",
                          &w, 0, s);
                    return;
                }
            }
            if (mask >> cluster_size_) fault(FaultKind::out_of_bounds, "the multicast mask names a block outside the cluster", &w, 0, s);
        } else {
            t.targets.push_back(w.block);
        }
        for (int r : t.targets) count_in_phase(w, s, blocks_[at(r)].barriers[at(t.barrier)]);
        t.landed.assign(t.targets.size(), 0);
        t.done = t.targets.empty();
        tma_.push_back(std::move(t));
        open_loads_.push_back(static_cast<int>(tma_.size()) - 1);
        while (!options_.schedule.lazy && !tma_.back().done) tma_load_piece(tma_.back());
        return;
    }
    const auto& store = std::get<ir::TmaStore>(s.op);
    t.kind = TmaTask::Kind::store;
    for (const ir::Expr& e : store.coordinates) t.coordinates.push_back(must(w, e, s));
    for (const ir::Expr& e : store.src.origin) t.origin.push_back(must(w, e, s));
    t.time = ++w.bulk_time;
    w.bulk_open.push_back(static_cast<int>(tma_.size()));
    tma_.push_back(std::move(t));
    if (!options_.schedule.lazy) {
        // Eager only in its effect: it still counts as reading until a wait covers it.
        TmaTask& task = tma_.back();
        tma_store_read(task);
        task.read_done = false;
        task.done = true;
    }
}

namespace {
// Calls f(box index per map dimension, dense element number) for every element of a box, innermost first.
template <class F>
void for_each_in_box(const std::vector<int>& box, F f) {
    std::vector<int> index(box.size(), 0);
    int total = 1;
    for (int b : box) total *= b;
    for (int n = 0; n < total; ++n) {
        f(index, n);
        for (std::size_t d = 0; d < box.size(); ++d) {
            if (++index[d] < box[d]) break;
            index[d] = 0;
        }
    }
}
}  // namespace

namespace {

// The place of the n-th of `count` chunks of a box in the order in which they arrive.
int chunk_in_order(Schedule::Order order, int n, int count) {
    switch (order) {
        case Schedule::Order::round_robin: return n;
        case Schedule::Order::reverse: return count - 1 - n;
        case Schedule::Order::random: return (n + count / 2) % count;
        case Schedule::Order::starve: {  // every other one first
            const int even = (count + 1) / 2;
            return n < even ? 2 * n : 2 * (n - even) + 1;
        }
    }
    return n;
}

// Does the box, put at this origin, begin or end outside its buffer along dimension d?
bool leaves_buffer(const ir::SharedBuffer& buffer, const ir::SharedView& view, const std::vector<std::int64_t>& origin, std::size_t d) {
    std::int64_t extent = 1;
    for (std::size_t i = 0; i < view.dims.size(); ++i) {
        if (at(view.dims[i]) == d) extent = view.extents[i];
    }
    return origin[d] < 0 || origin[d] > buffer.extent(static_cast<int>(d)) - extent;
}

int box_bytes(const ir::TensorMap& map, int element) {
    int bytes = element;
    for (int extent : map.box) bytes *= extent;
    return bytes;
}

}  // namespace

void Machine::tma_load_piece(TmaTask& t) {
    if (t.done) return;
    const auto& op = std::get<ir::TmaLoad>(t.stmt->op);
    const ir::TensorMap& map = k_.tensor_maps[at(op.map)];
    const ir::SharedBuffer& buffer = k_.buffers[at(op.dst.buffer)];
    for (std::size_t d = 0; d < t.origin.size(); ++d) {
        if (leaves_buffer(buffer, op.dst, t.origin, d)) {
            fault(FaultKind::out_of_bounds, "a TMA load writes outside shared buffer `" + buffer.name + "`", &warps_[at(t.warp)], 0,
                  *t.stmt);
            t.done = true;
            return;
        }
    }
    const int all = box_bytes(map, target::bytes(k_.tensors[at(map.tensor)].dtype));
    const std::size_t which = static_cast<std::size_t>(std::min_element(t.landed.begin(), t.landed.end()) - t.landed.begin());
    const int rank = t.targets[which];
    BarrierSlot& slot = blocks_[at(rank)].barriers[at(t.barrier)];
    Access a;
    a.actor = static_cast<std::uint16_t>(actor_slot(rank, t.barrier));
    a.lane = no_lane;
    a.async_proxy = a.asynchronous = a.fills = true;
    a.serial = static_cast<std::uint64_t>(&t - tma_.data()) + 1;
    a.time = slot.tma_time + 1;
    a.stmt = t.stmt;
    a.snapshot = t.snapshot;
    // A quarter of the box, but never past the byte that completes the barrier's phase: its waiters may go then.
    int bytes = options_.values ? std::min((all / 4 + 15) / 16 * 16, all - t.landed[which]) : all - t.landed[which];
    if (slot.state.pending == 0 && slot.state.tx > 0 && slot.state.tx < all - t.landed[which]) {
        // Nothing can be announced for this phase any more: it ends in the middle of the box.
        int array = 0;
        while (array + 1 < static_cast<int>(barrier_base_.size()) && barrier_base_[at(array + 1)] <= t.barrier) ++array;
        // Once, not for every piece.
        if (outcome_.faults.empty() || outcome_.faults.back().kind != FaultKind::byte_count) {
            fault(FaultKind::byte_count,
                  "mbarrier `" + k_.barriers[at(array)].name + "[" + std::to_string(t.barrier - barrier_base_[at(array)]) +
                      "]` waits for " + std::to_string(slot.state.tx) + " bytes more, and this load brings " +
                      std::to_string(all - t.landed[which]) + ": the phase ends, and its waiters go on, while the rest is still on its way",
                  &warps_[at(t.warp)], 0, *t.stmt);
        }
        bytes = std::min<int>(bytes, static_cast<int>(slot.state.tx));
    }
    if (options_.values) bytes = land_box_part(t, rank, t.landed[which], bytes, a);
    else skeleton_box(t, rank, op.dst, map, true, a);
    t.landed[which] += bytes;
    blocks_[at(rank)].visits[a.actor] = {a.time, t.stmt, t.warp};
    note_arrival(rank, t.barrier, t.snapshot, 0, 0, bytes);
    Knowledge& passed = slot.gathering.all;
    passed.order.resize(at(actors_), 0);
    passed.order[a.actor] = std::max(passed.order[a.actor], a.time);
    if (!options_.values) slot.landing.emplace_back(a.actor, a.time);
    join(passed.waits, t.at_issue.waits);  // no order of memory, but the issuing thread was there
    const auto step = target::mbarrier_complete_tx(slot.state, bytes);
    if (!step.legal) fault(FaultKind::byte_count, step.legal.reason, &warps_[at(t.warp)], 0, *t.stmt);
    advance_barrier(slot, step);
    t.done = stopped() || std::all_of(t.landed.begin(), t.landed.end(), [&](int landed) { return landed >= all; });
    if (t.done) t.at_issue = {};  // there may be very many boxes in one launch
}

// Bytes [from, from + bytes) of the box in the order of arrival, in whole chunks of the 16 bytes that swizzles keep together; how
// many bytes that was.
int Machine::land_box_part(TmaTask& t, int rank, int from, int bytes, const Access& a) {
    const auto& op = std::get<ir::TmaLoad>(t.stmt->op);
    const ir::TensorMap& map = k_.tensor_maps[at(op.map)];
    const TensorData& tensor = tensors_[at(map.tensor)];
    const ir::SharedBuffer& buffer = k_.buffers[at(op.dst.buffer)];
    const int size = target::bytes(tensor.dtype);
    const int base = ir::linear_address(buffer, std::vector<int>(t.origin.begin(), t.origin.end()));
    const int chunk = map.box[0] * size % 16 == 0 && base % 16 == 0 ? 16 : size;
    const int count = box_bytes(map, size) / chunk, elements = chunk / size;
    const int first = from / chunk, last = (from + bytes + chunk - 1) / chunk;
    std::uint8_t* arena = blocks_[at(rank)].arena.data();
    for (int n = first; n < last; ++n) {
        const int place = chunk_in_order(options_.schedule.order, n, count);
        const int address = static_cast<int>(target::swizzled(map.swizzle, static_cast<std::uint32_t>(base + place * chunk)));
        if (!shared_touch(rank, address, chunk, true, a, t.at_issue, &warps_[at(t.warp)], *t.stmt)) break;
        std::int64_t offset = 0, inner = 0;
        bool inside = true;
        int rest = place * elements;
        for (std::size_t i = 0; i < map.dims.size(); ++i) {
            const std::int64_t c = t.coordinates[i] + rest % map.box[i];
            rest /= map.box[i];
            if (i == 0) inner = c;
            else inside &= c >= 0 && c < tensor.dims[at(map.dims[i])];
            offset += c * tensor.strides[at(map.dims[i])];
        }
        const std::int64_t extent = tensor.dims[at(map.dims[0])], stride = tensor.strides[at(map.dims[0])];
        for (int e = 0; options_.history && e < elements; ++e) {
            const bool there = inside && inner + e >= 0 && inner + e < extent;
            const MadeId made = there ? made_in_tensor(map.tensor, offset + e * stride)
                                      : options_.history->fill(map.nan_fill ? std::nan("") : 0.0, t.snapshot);
            const int n_th = place * elements + e;
            const int cell[2] = {map.box.size() > 1 ? n_th / map.box[0] % map.box[1] : 0,
                                 n_th % map.box[0]};  // as rows: the box's innermost dimension is the column
            put_in_arena(rank, address + e * size, size,
                         options_.history->move(made, t.snapshot, -1, address + e * size, map.box.size() > 1 ? cell : cell + 1,
                                                std::min<std::size_t>(map.box.size(), 2)));
        }
        if (inside && stride == 1 && inner >= 0 && inner + elements <= extent) {
            std::memcpy(arena + address, &tensor.bytes[static_cast<std::size_t>(offset * size)], at(chunk));
            continue;
        }
        for (int e = 0; e < elements; ++e) {
            std::uint8_t* to = arena + address + e * size;
            if (inside && inner + e >= 0 && inner + e < extent)
                std::memcpy(to, &tensor.bytes[static_cast<std::size_t>((offset + e * stride) * size)], at(size));
            else store_value(to, tensor.dtype, map.nan_fill ? std::nan("") : 0.0);
        }
    }
    return (last - first) * chunk;
}

// The copy engine reads the source and writes global memory.
void Machine::tma_store_read(TmaTask& t) {
    t.read_done = true;
    if (t.done) return;
    t.done = true;
    const auto& op = std::get<ir::TmaStore>(t.stmt->op);
    const ir::TensorMap& map = k_.tensor_maps[at(op.map)];
    TensorData& tensor = tensors_[at(map.tensor)];
    const ir::SharedBuffer& buffer = k_.buffers[at(op.src.buffer)];
    const int size = target::bytes(tensor.dtype);
    std::vector<int> origin;
    for (std::size_t d = 0; d < t.origin.size(); ++d) {
        origin.push_back(static_cast<int>(t.origin[d]));
        if (leaves_buffer(buffer, op.src, t.origin, d)) {
            fault(FaultKind::out_of_bounds, "a TMA store reads outside shared buffer `" + buffer.name + "`", &warps_[at(t.warp)], 0,
                  *t.stmt);
            return;
        }
    }
    const int base = ir::linear_address(buffer, origin);
    Access a;
    a.actor = static_cast<std::uint16_t>(actor_bulk(t.warp));
    a.lane = no_lane;
    a.async_proxy = a.asynchronous = true;
    a.serial = static_cast<std::uint64_t>(&t - tma_.data()) + 1;
    a.time = t.time;
    a.stmt = t.stmt;
    a.snapshot = t.snapshot;
    if (!options_.values) {
        skeleton_box(t, t.block, op.src, map, false, a);
        return;
    }
    bool ok = true;
    for_each_in_box(map.box, [&](const std::vector<int>& index, int n) {
        if (!ok) return;
        const int address = static_cast<int>(target::swizzled(map.swizzle, static_cast<std::uint32_t>(base + n * size)));
        ok = shared_touch(t.block, address, size, false, a, t.at_issue, &warps_[at(t.warp)], *t.stmt);
        if (!ok) return;
        std::int64_t offset = 0;
        bool inside = true;
        for (std::size_t i = 0; i < map.dims.size(); ++i) {
            const std::int64_t c = t.coordinates[i] + index[i];
            inside &= c >= 0 && c < tensor.dims[at(map.dims[i])];
            offset += c * tensor.strides[at(map.dims[i])];
        }
        if (!inside) return;
        global_touch(map.tensor, offset, true, op.reduce_add, warps_[at(t.warp)], 0, *t.stmt, a, t.at_issue);
        std::uint8_t* place = &tensor.bytes[static_cast<std::size_t>(offset * size)];
        const double x = load_value(&blocks_[at(t.block)].arena[at(address)], buffer.dtype);
        store_value(place, tensor.dtype, op.reduce_add ? rounded(load_value(place, tensor.dtype) + x, tensor.dtype) : x);
        if (!options_.history) return;
        const int cell[2] = {index.size() > 1 ? index[1] : index[0], index[0]};
        const MadeId read = options_.history->move(made_in_arena(t.block, address, size), t.snapshot, -1, address,
                                                   index.size() > 1 ? cell : cell + 1, std::min<std::size_t>(index.size(), 2));
        put_in_tensor(map.tensor, offset, read, op.reduce_add, t.snapshot, -1, nullptr, 0);
    });
}

void Machine::issue_wgmma(Warp& w, const Stmt& s, const ir::Wgmma& op) {
    Group& g = group_of(w);
    const std::size_t i = at(warp_in_group(w));
    if (w.single) {
        fault(FaultKind::divergence, "wgmma is executed by one elected thread; all four warps of a warpgroup must execute it", &w, 0, s);
        return;
    }
    WgmmaTask t;
    t.stmt = &s;
    t.group = &g;
    t.accumulate = must(w, op.accumulate, s) != 0;
    FragmentState& acc = fragment(g, op.acc);
    const std::string& name = k_.fragments[at(op.acc)].name;
    if (t.accumulate && !acc.written[i]) {
        fault(FaultKind::uninitialised, "wgmma adds to fragment `" + name + "`, which has no value yet", &w, 0, s);
        return;
    }
    if (acc.touched[i]) {
        fault({FaultKind::in_flight, FaultCause::no_wgmma_fence},
              "fragment `" + name + "` was changed by ordinary instructions and no wgmma fence follows before the wgmma", &w, 0, s);
        return;
    }
    if (const int* a = std::get_if<int>(&op.a)) {
        FragmentState& f = fragment(g, *a);
        if (!readable(w, s, *a)) return;
        if (f.touched[i]) {
            fault({FaultKind::in_flight, FaultCause::no_wgmma_fence},
                  "fragment `" + k_.fragments[at(*a)].name +
                      "` was changed by ordinary instructions and no wgmma fence follows before the wgmma",
                  &w, 0, s);
            return;
        }
        ++f.in_flight[i];
        f.owner = &s;
    } else {
        for (const ir::Expr& e : std::get<ir::SharedView>(op.a).origin) t.a_origin.push_back(must(w, e, s));
    }
    for (const ir::Expr& e : op.b.origin) t.b_origin.push_back(must(w, e, s));
    ++acc.in_flight[i];
    acc.owner = &s;
    acc.written[i] = 1;
    t.at_issue = w.knows;
    t.snapshot = options_.values ? w.event : snapshot_of(w);
    t.time = ++w.wgmma_time;
    if (!options_.values) w.waits_at_wgmma.push_back(w.knows.waits[static_cast<std::size_t>(w.number)]);
    if (!options_.schedule.lazy) finish_wgmma(w, t);
    w.wgmma_open.push_back(std::move(t));
}

void Machine::release_fragments(Warp& w, const WgmmaTask& t) {
    const auto& op = std::get<ir::Wgmma>(t.stmt->op);
    const std::size_t i = at(w.index - t.group->first_warp);
    --t.group->fragments[at(op.acc)].in_flight[i];
    if (const int* a = std::get_if<int>(&op.a)) --t.group->fragments[at(*a)].in_flight[i];
}

}  // namespace tw::emulate
