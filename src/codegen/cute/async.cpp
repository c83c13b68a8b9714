// Barriers, fences, commit groups and TMA.
#include "base/text.h"
#include "codegen/cute/printer.h"
#include "codegen/user_text.h"

namespace tw::codegen::cute {

std::string Printer::barrier(const ir::BarrierRef& b) {
    const std::string slot = expr(b.slot);
    return fmt::format("{}[{}]", names_.barriers[static_cast<std::size_t>(b.array)], slot);
}

bool Printer::synchronisation(const ir::Stmt& s) {
    auto say = [&](const std::string& text) {
        line(text + (s.note.empty() ? "" : "   // " + comment_text(s.note)));
        return true;
    };
    const std::string transaction = "cutlass::arch::ClusterTransactionBarrier";
    if (std::holds_alternative<ir::BlockSync>(s.op)) return say("__syncthreads();");
    if (std::holds_alternative<ir::WarpSync>(s.op)) return say("__syncwarp();");
    if (std::holds_alternative<ir::CpAsyncCommit>(s.op)) return say("cp_async_fence();");
    if (auto* o = std::get_if<ir::CpAsyncWait>(&s.op)) return say(fmt::format("cp_async_wait<{}>();", o->pending));
    if (std::holds_alternative<ir::BulkCommit>(s.op)) return say("tma_store_arrive();");
    if (auto* o = std::get_if<ir::BulkWait>(&s.op)) {
        if (o->read) return say(fmt::format("tma_store_wait<{}>();", o->pending));
        use("bulk_wait");
        return say(fmt::format("tw::bulk_wait<{}>();", o->pending));
    }
    if (auto* o = std::get_if<ir::BarrierInit>(&s.op))
        return say(fmt::format("{}::init(&{}, {});", transaction, barrier(o->barrier), o->arrivals));
    if (std::holds_alternative<ir::BarrierInitFence>(s.op)) return say("cutlass::arch::fence_barrier_init();");
    if (std::holds_alternative<ir::BlockFence>(s.op)) return say("__threadfence_block();");
    if (auto* o = std::get_if<ir::ClusterArrive>(&s.op))
        return use("cluster_barrier"), say(o->relaxed ? "tw::cluster_arrive_relaxed();" : "tw::cluster_arrive();");
    if (std::holds_alternative<ir::ClusterWait>(s.op)) return use("cluster_barrier"), say("tw::cluster_wait();");
    if (auto* o = std::get_if<ir::CpAsyncArrive>(&s.op))
        return say(fmt::format("cutlass::arch::cpasync_barrier_arrive{}(&{});", o->noinc ? "_noinc" : "", barrier(o->barrier)));
    if (auto* o = std::get_if<ir::NamedArrive>(&s.op)) {
        use("named_arrive");
        return say(fmt::format("tw::named_arrive({}, {});", expr(o->id), o->threads));
    }
    if (std::holds_alternative<ir::GridWait>(s.op)) return use("grid_wait"), say("tw::grid_wait();");
    if (std::holds_alternative<ir::GridLaunch>(s.op)) return use("grid_launch"), say("tw::grid_launch();");
    if (auto* o = std::get_if<ir::BarrierExpect>(&s.op))
        return say(fmt::format("{}::arrive_and_expect_tx(&{}, {});", transaction, barrier(o->barrier), expr(o->bytes)));
    if (auto* o = std::get_if<ir::BarrierArrive>(&s.op)) {
        if (o->count != 1 && o->barrier.cluster_rank) return fail("several arrivals at another block's barrier"), true;
        if (o->count != 1) {
            use("arrive_many");
            return say(fmt::format("tw::arrive_many(&{}, {});", barrier(o->barrier), o->count));
        }
        if (o->barrier.cluster_rank && o->release != ir::Scope::none) {
            use("arrive_barrier_cluster");
            return say(fmt::format("tw::arrive_barrier_cluster({}, {});", barrier(o->barrier), expr(*o->barrier.cluster_rank)));
        }
        if (o->barrier.cluster_rank)
            return say(
                fmt::format("cutlass::arch::ClusterBarrier::arrive(&{}, {}, true);", barrier(o->barrier), expr(*o->barrier.cluster_rank)));
        return say(fmt::format("{}::arrive(&{});", transaction, barrier(o->barrier)));
    }
    if (auto* o = std::get_if<ir::BarrierWait>(&s.op)) {
        // ClusterBarrier::wait has a time limit for each try, and the machine code of it sleeps in between.
        const bool cluster = o->acquire == ir::Scope::cluster;
        if (cluster) use("wait_barrier_cluster");
        return say(fmt::format("{}({}, {});", cluster ? "tw::wait_barrier_cluster" : "wait_barrier", barrier(o->barrier), expr(o->parity)));
    }
    if (auto* o = std::get_if<ir::NamedSync>(&s.op)) {
        use("named_sync");
        return say(fmt::format("tw::named_sync({}, {});", expr(o->id), o->threads));
    }
    if (std::holds_alternative<ir::ProxyFence>(s.op)) return use("proxy_fence"), say("tw::proxy_fence();");
    if (auto* o = std::get_if<ir::SetMaxRegisters>(&s.op))
        return say(fmt::format("cutlass::arch::warpgroup_reg_{}<{}>();", o->increase ? "alloc" : "dealloc", o->count));
    if (std::holds_alternative<ir::WgmmaFence>(s.op)) return say("warpgroup_arrive();");
    if (std::holds_alternative<ir::WgmmaCommit>(s.op)) return say("warpgroup_commit_batch();");
    if (auto* o = std::get_if<ir::WgmmaWait>(&s.op)) return say(fmt::format("warpgroup_wait<{}>();", o->pending));
    if (auto* o = std::get_if<ir::Pin>(&s.op)) {
        for (int f : o->fragments) line(fmt::format("warpgroup_fence_operand({});", name(f)));
        return true;
    }
    return false;
}

// A map can be told by CuTe when it runs over all dimensions of its tensor, the innermost first, and one box is a whole row of its swizzle
// at most.
void Printer::check_maps() {
    loc_ = k_.loc;
    ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
        if (auto* o = std::get_if<ir::TmaLoad>(&s.op)) {
            maps_loaded_.insert(o->map);
            if (o->multicast_mask) maps_multicast_.insert(o->map);
        }
        if (auto* o = std::get_if<ir::TmaStore>(&s.op)) maps_stored_.insert(o->map);
    });
    for (std::size_t i = 0; i < k_.tensor_maps.size(); ++i) {
        const ir::TensorMap& m = k_.tensor_maps[i];
        const ir::Tensor& t = k_.tensors[static_cast<std::size_t>(m.tensor)];
        bool plain = m.dims.size() == t.dims.size() && !m.nan_fill;
        for (std::size_t d = 0; d < m.dims.size(); ++d) plain = plain && m.dims[d] == static_cast<int>(m.dims.size() - 1 - d);
        if (!plain) return fail(fmt::format("a TMA map of `{}` that is not over all its dimensions in their order", t.name));
        if (maps_loaded_.count(static_cast<int>(i)) && maps_stored_.count(static_cast<int>(i)))
            return fail(fmt::format("a TMA map of `{}` that both loads and stores", t.name));
    }
}

// "make_tma_copy(...)": the box is a tile in shared memory with the map's swizzle.
std::string Printer::map_tensor(std::size_t map, const std::string& tensor) {
    const ir::TensorMap& m = k_.tensor_maps[map];
    const ir::Tensor& t = k_.tensors[static_cast<std::size_t>(m.tensor)];
    std::vector<std::pair<int, int>> modes;
    int stride = 1;
    for (std::size_t i = 0; i < m.box.size(); ++i) modes.insert(modes.begin(), {m.box[i], stride}), stride *= m.box[i];
    std::vector<std::string> shapes, strides;
    for (const auto& [extent, step] : modes) shapes.push_back(integer(extent)), strides.push_back(integer(step));
    std::string box = fmt::format("Layout<Shape<{}>, Stride<{}>>{{}}", join(shapes, ", "), join(strides, ", "));
    if (m.swizzle != target::SwizzleMode::None)
        box = fmt::format("make_composed_layout(Swizzle<{}, 4, 3>{{}}, smem_ptr_flag_bits<{}>{{}}, {})", target::swizzle_bits(m.swizzle),
                          target::bytes(t.dtype) * 8, box);
    const bool store = maps_stored_.count(static_cast<int>(map)) != 0;
    return fmt::format("make_tma_copy({}{{}}, {}, {})",
                       store                                          ? "SM90_TMA_STORE"
                       : maps_multicast_.count(static_cast<int>(map)) ? "SM90_TMA_LOAD_MULTICAST"
                                                                      : "SM90_TMA_LOAD",
                       tensor, box);
}

// The box of the map's tensor at the coordinates, as TMA's own coordinates.
std::string Printer::box_text(int map, const std::vector<ir::Expr>& coordinates) {
    const ir::TensorMap& m = k_.tensor_maps[static_cast<std::size_t>(map)];
    const ir::Tensor& t = k_.tensors[static_cast<std::size_t>(m.tensor)];
    std::vector<std::string> dims;
    for (const auto& d : t.dims) dims.push_back(expr(d));
    const std::vector<ir::Expr> origin(coordinates.rbegin(), coordinates.rend());
    const std::vector<int> extents(m.box.rbegin(), m.box.rend());
    std::vector<int> all;
    for (std::size_t d = 0; d < extents.size(); ++d) all.push_back(static_cast<int>(d));
    return tile_text(fmt::format("tma{}.get_tma_tensor(make_shape({}))", map, join(dims, ", ")), origin, all, extents);
}

// The tile in shared memory with as many modes as the map's box: where the tile has none for a dimension of the box, that is one row long.
std::optional<std::string> Printer::boxed_tile(const ir::SharedView& view, int map) {
    const auto tile = shared_tile(view);
    const std::vector<int>& box = k_.tensor_maps[static_cast<std::size_t>(map)].box;  // innermost first
    if (!tile || view.dims.size() >= box.size()) return tile;
    std::vector<std::string> modes;
    std::size_t left = view.extents.size();
    for (int extent : box) {
        const bool has = left > 0 && view.extents[left - 1] == extent;
        if (!has && extent != 1) return fail("a TMA box that its tile in shared memory is no part of"), std::nullopt;
        modes.insert(modes.begin(), has ? fmt::format("layout<{}>(tile)", --left) : "Layout<_1, _0>{}");
    }
    if (left > 0) return fail("a TMA box that its tile in shared memory is no part of"), std::nullopt;
    line(fmt::format("Tensor tile = {};", *tile));
    return fmt::format("make_tensor(tile.data(), make_layout({}))", join(modes, ", "));
}

void Printer::tma_load(const ir::TmaLoad& op) {
    if (!op.multicast_mask && maps_multicast_.count(op.map)) return fail("a TMA map that is used with several receivers and with one");
    open("");
    const auto tile = boxed_tile(op.dst, op.map);
    if (!tile) return;
    line(fmt::format("auto block = tma{}.get_slice(0);", op.map));
    std::string with = barrier(op.barrier);
    const bool hint = op.hint != ir::CacheHint::none;
    if (op.multicast_mask || hint) with += fmt::format(", uint16_t({})", op.multicast_mask ? expr(*op.multicast_mask) : "0");
    if (hint) with += fmt::format(", TMA::CacheHintSm90::EVICT_{}", op.hint == ir::CacheHint::evict_first ? "FIRST" : "LAST");
    line(fmt::format("copy(tma{}.with({}), block.partition_S({}), block.partition_D({}));", op.map, with, box_text(op.map, op.coordinates),
                     *tile));
    close();
}

void Printer::tma_store(const ir::TmaStore& op) {
    if (op.reduce_add) return fail("a TMA store that adds");
    open("");
    const auto tile = boxed_tile(op.src, op.map);
    if (!tile) return;
    line(fmt::format("auto block = tma{}.get_slice(0);", op.map));
    line(fmt::format("copy(tma{}, block.partition_S({}), block.partition_D({}));", op.map, *tile, box_text(op.map, op.coordinates)));
    close();
}

}  // namespace tw::codegen::cute
