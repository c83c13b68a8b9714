// Ordinary accesses to shared memory.
#include <algorithm>
#include <array>

#include "base/index.h"
#include "emulate/machine.h"

namespace tw::emulate {

std::string message_of(Conflict conflict) {
    switch (conflict) {
        case Conflict::none: return "";
        case Conflict::race: return "two accesses to one place in shared memory are not ordered by any barrier, and one of them writes";
        case Conflict::proxy:
            return "ordinary stores to shared memory are followed by the copy engine or tensor cores with no proxy fence between "
                   "(tw.fence_async() after the stores, before the barrier)";
        case Conflict::unfenced_read:
            return "the copy engine writes where ordinary loads read before, with no proxy fence between: the loads may still find what it "
                   "brings (tw.fence_async() after the loads, before the barrier)";
    }
    return "";
}

std::string Machine::arena_place(int address) const {
    for (const ir::SharedBuffer& b : k_.buffers) {
        if (address >= b.byte_offset && address < b.byte_offset + b.bytes) {
            return "`" + b.name + "` byte " + std::to_string(address - b.byte_offset);
        }
    }
    return "shared byte " + std::to_string(address);
}

bool Machine::shared_touch(int block, int address, int bytes, bool is_write, const Access& access, const Knowledge& k, const Warp* w,
                           const Stmt& s) {
    Block& b = blocks_[at(block)];
    if (address < 0 || address + bytes > static_cast<int>(b.arena.size())) {
        fault(FaultKind::out_of_bounds,
              "shared byte " + std::to_string(address) + " is outside the block's " + std::to_string(b.arena.size()) + " bytes", w,
              access.lane, s);
        return false;
    }
    for (int g = address / granule_; g <= (address + bytes - 1) / granule_; ++g) {
        if (!is_write && !b.shadow.at(at(g)).initialised) {
            fault(FaultKind::uninitialised, "shared memory is read before anything was written there", w, access.lane, s, nullptr,
                  arena_place(address), &access);
            return false;
        }
        if (!options_.detect_races) {
            b.shadow.at(at(g)).initialised = true;
            continue;
        }
        const Finding f = is_write ? b.shadow.write(at(g), access, k) : b.shadow.read(at(g), access, k);
        if (f.conflict != Conflict::none) {
            fault(what_of(f.conflict), message_of(f.conflict), w, access.lane, s, f.other.stmt, arena_place(address), &access, &f.other);
            return false;
        }
    }
    return true;
}

namespace {

// Address of a view element; nothing when it lies outside the buffer.
std::optional<int> view_address(const ir::SharedBuffer& buffer, const ir::SharedView& view, const std::vector<std::int64_t>& origin,
                                const int* coordinate) {
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
    if (rank >= 0 && rank < cluster_size_) {
        const auto block = static_cast<int>(rank);
        if (block != w.block) visit_peer(block, w, w.knows.order[at(w.number)], s);
        return block;
    }
    fault(FaultKind::out_of_bounds, "cluster rank " + std::to_string(rank) + " does not exist", &w, 0, s);
    return -1;
}

void Machine::visit_peer(int block, Warp& w, std::uint32_t time, const Stmt& s) {
    const auto first = static_cast<std::size_t>(block) * at(k_.warps);
    const bool started =
        std::any_of(w.knows.order.begin() + static_cast<std::ptrdiff_t>(first),
                    w.knows.order.begin() + static_cast<std::ptrdiff_t>(first) + k_.warps, [](std::uint32_t t) { return t > 0; });
    if (!started) {
        fault({FaultKind::race, FaultCause::peer_not_started},
              "the shared memory of block " + std::to_string(block) +
                  " of the cluster is reached before that block is known to have started; a cluster barrier must come first",
              &w, 0, s);
    }
    blocks_[at(block)].visits[w.number] = {time, &s, w.number};
}

bool Machine::shared_vector_fits(int address, int v, int size, int bytes, int& start, const ir::SharedBuffer& buffer, const Warp& w,
                                 int lane, const Stmt& s) {
    const int per_vector = bytes / size;
    if (per_vector <= 1) return true;
    if (v % per_vector == 0) start = address;
    if (v % per_vector == 0 ? address % bytes == 0 : address == start + v % per_vector * size) return true;
    fault(FaultKind::out_of_bounds,
          "a " + std::to_string(bytes) + "-byte access to shared buffer `" + buffer.name +
              "` is misaligned or takes values that do not lie side by side",
          &w, lane, s);
    return false;
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
        int start = 0;
        for (int v = 0; v < table.values; ++v) {
            const int* c = table.at(t, v);
            auto address = view_address(buffer, op.src, origin, swaps ? exchanged(c).data() : c);
            if (!address) {
                fault(FaultKind::out_of_bounds, "a load outside shared buffer `" + buffer.name + "`", &w, t % 32, s);
                return;
            }
            if (!op.matrix && !shared_vector_fits(*address, v, size, op.vector_bytes, start, buffer, w, t % 32, s)) return;
            if (!shared_touch(block, *address, size, false, access_of(w, op.matrix ? several_lanes : t % 32, s), w.knows, &w, s)) return;
            dst.values[at(t * table.values + v)] = load_value(&blocks_[at(block)].arena[at(*address)], buffer.dtype);
            if (options_.history)
                dst.made[at(t * table.values + v)] =
                    options_.history->move(made_in_arena(block, *address, size), w.event, thread_of(w, t), *address, c, at(table.rank));
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
        int start = 0;
        for (int v = 0; v < table.values; ++v) {
            const int* c = table.at(t, v);
            auto address = view_address(buffer, op.dst, origin, swaps ? exchanged(c).data() : c);
            if (!address) {
                fault(FaultKind::out_of_bounds, "a store outside shared buffer `" + buffer.name + "`", &w, t % 32, s);
                return;
            }
            if (!op.matrix && !shared_vector_fits(*address, v, size, op.vector_bytes, start, buffer, w, t % 32, s)) return;
            if (!shared_touch(block, *address, size, true, access_of(w, op.matrix ? several_lanes : t % 32, s), w.knows, &w, s)) return;
            store_value(&blocks_[at(block)].arena[at(*address)], buffer.dtype, src.values[at(t * table.values + v)]);
            if (options_.history)
                put_in_arena(
                    block, *address, size,
                    options_.history->move(src.made[at(t * table.values + v)], w.event, thread_of(w, t), *address, c, at(table.rank)));
        }
    }
}

}  // namespace tw::emulate
