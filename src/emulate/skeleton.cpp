// Skeleton runs: the same statements with footprints instead of values.
#include <algorithm>
#include <cmath>

#include "base/index.h"
#include "emulate/machine.h"

namespace tw::emulate {

std::shared_ptr<SkeletonCache> make_skeleton_cache() { return std::make_shared<SkeletonCache>(); }

namespace {

// The operands that footprints are kept of. Those of a copy engine's box and of wgmma's B are the same for all warps.
constexpr int of_move = 0, of_box = 1, of_b = 2, of_a = 3;

}  // namespace

// The widest granule that no two lanes of one statement share: the narrowest ordinary access decides.
int Machine::choose_granule() const {
    int granule = 16;
    auto narrow = [&](int buffer, int vector_bytes, bool matrix) {
        const int element = target::bytes(k_.buffers[at(buffer)].dtype);
        granule = std::min(granule, matrix ? 16 : std::max(vector_bytes, element));
    };
    ir::for_each_stmt(k_.body, [&](const Stmt& s) {
        if (auto* l = std::get_if<ir::LoadShared>(&s.op)) narrow(l->src.buffer, l->vector_bytes, l->matrix);
        if (auto* l = std::get_if<ir::StoreShared>(&s.op)) narrow(l->dst.buffer, l->vector_bytes, l->matrix);
        if (auto* c = std::get_if<ir::CpAsync>(&s.op))
            granule = std::min(granule, c->whole_vectors ? target::bytes(k_.buffers[at(c->dst.buffer)].dtype) : c->bytes);
    });
    return std::max(granule, 1);
}

std::uint32_t Machine::snapshot_of(Warp& w) {
    if (w.snapshot) return *w.snapshot;
    Snapshot snapshot;
    auto& values = snapshot.values;
    if (cluster_size_ > 1) values.emplace_back(DependenceSample::rank_of_block, w.block);
    for (std::size_t v = 0; v < k_.vars.size(); ++v) {
        if (k_.vars[v].kind == ir::Variable::Kind::instance && w.var_set[v]) values.emplace_back(static_cast<int>(v), w.vars[v]);
    }
    for (const Frame& f : w.frames) {
        if (!f.loop) continue;
        snapshot.ends.resize(values.size(), 0);
        snapshot.ends.push_back(f.hi);
        values.emplace_back(f.loop->var, w.vars[at(f.loop->var)]);
    }
    snapshot.ends.resize(values.size(), 0);
    const auto [found, fresh] = snapshot_ids_.emplace(std::move(snapshot), static_cast<std::uint32_t>(snapshots_.size()));
    if (fresh) snapshots_.push_back(found->first);
    w.snapshot = found->second;
    return found->second;
}

const Footprint& Machine::footprint(const Warp& w, const Stmt& s, const std::vector<std::int64_t>& origin, int which,
                                    const std::function<void(Footprint&)>& make) {
    FootprintKey& key = options_.cache->wanted;
    key.stmt = &s;
    key.warp = which == of_box || which == of_b ? -1 : warp_in_group(w);
    key.which = which;
    key.origin = origin;
    auto& known = options_.cache->footprints;
    auto found = known.find(key);
    if (found == known.end()) {
        Footprint f;
        make(f);
        if (options_.whole_warps) {
            for (auto& [lane, granule] : f.touches) lane = lane == no_lane ? no_lane : several_lanes;
        }
        options_.cache->places.settle(f);
        found = known.emplace(key, std::move(f)).first;
    }
    options_.cache->places.follow(found->second);
    return found->second;
}

void Machine::touch(int block, const Footprint& f, bool is_write, Access access, const Knowledge& k, const Warp& w, const Stmt& s) {
    if (f.outside) {
        fault(FaultKind::out_of_bounds, "an access outside its shared buffer", &w, 0, s);
        return;
    }
    if (f.outside_memory) {
        fault(FaultKind::out_of_bounds, "an access outside the block's shared memory", &w, 0, s);
        return;
    }
    Shadow& shadow = blocks_[at(block)].shadow;
    const Places& places = options_.cache->places;
    while (shadow.size() < places.size()) shadow.split(at(places.split_from(shadow.size())));
    const Stmt* writer = nullptr;
    std::uint32_t written_at = 0;
    int unwritten = -1;  // a place that is read before anything was written there
    const auto place_name = [&](int place) { return arena_place(places.first_granule(place) * granule_); };
    for (const auto& [lane, place] : f.touches) {
        access.lane = lane;
        const int told = lane < 32 ? lane : 0;
        const Granule& cell = shadow.at(at(place));
        if (!is_write) {
            if (!cell.initialised) {  // told at the end: a race says more of what is missing
                if (unwritten < 0) unwritten = place;
                continue;
            }
            const bool as_before = cell.write.stmt == writer && cell.write.snapshot == written_at;  // neighbours mostly come from one write
            writer = cell.write.stmt, written_at = cell.write.snapshot;
            if (cell.write.stmt && !as_before &&
                seen_dependences_.insert({&s, cell.write.stmt, access.snapshot, cell.write.snapshot}).second) {
                const Snapshot &at_read = snapshots_[access.snapshot], &at_write = snapshots_[cell.write.snapshot];
                outcome_.dependences.push_back({&s, cell.write.stmt, at_read.values, at_write.values, at_write.ends});
            }
        }
        const Finding found = is_write ? shadow.write(at(place), access, k) : shadow.read(at(place), access, k);
        if (found.conflict != Conflict::none) {
            fault(what_of(found.conflict), message_of(found.conflict), &w, told, s, found.other.stmt, place_name(place));
            return;
        }
    }
    if (unwritten >= 0)
        fault(FaultKind::uninitialised, "shared memory is read before anything was written there", &w, 0, s, nullptr,
              place_name(unwritten));
}

void Machine::skeleton_move(Warp& w, const Stmt& s, const ir::SharedView& view, int id, bool is_write) {
    std::vector<std::int64_t> origin;
    for (const ir::Expr& e : view.origin) origin.push_back(must(w, e, s));
    if (is_write && !readable(w, s, id)) return;
    const int block = block_of(w, view, s);
    if (block < 0) return;
    const ir::SharedBuffer& buffer = k_.buffers[at(view.buffer)];
    const Footprint& f = footprint(w, s, origin, of_move, [&](Footprint& out) {
        const FragmentTable& table = tables_[at(id)];
        const int first = 32 * warp_in_group(w);
        const auto* load = std::get_if<ir::LoadShared>(&s.op);
        const auto* store = std::get_if<ir::StoreShared>(&s.op);
        const bool together =
            (load && load->matrix) || (store && store->matrix);  // ldmatrix and stmatrix: a lane's elements are moved for it by others
        std::vector<int> c(buffer.dims.size());
        for (int t = first; t < first + 32 && t < table.threads; ++t) {
            if (is_write && holds_a_copy(k_.fragments[at(id)].dist, t)) continue;
            for (int v = 0; v < table.values; ++v) {
                for (std::size_t d = 0; d < c.size(); ++d) c[d] = static_cast<int>(origin[d]);
                for (std::size_t i = 0; i < view.dims.size(); ++i) c[at(view.dims[i])] += table.at(t, v)[i];
                for (std::size_t d = 0; d < c.size(); ++d) out.outside |= c[d] < 0 || c[d] >= buffer.extent(static_cast<int>(d));
                if (out.outside) return;
                out.touches.emplace_back(together ? several_lanes : static_cast<std::uint8_t>(t % 32),
                                         ir::shared_address(buffer, c) / granule_);
            }
        }
    });
    w.touched_shared = true;
    Access a = access_of(w, 0, s);
    a.snapshot = snapshot_of(w);
    touch(block, f, is_write, a, w.knows, w, s);
    if (!is_write) written(w, s, id);
}

void Machine::skeleton_box(TmaTask& t, int rank, const ir::SharedView& view, const ir::TensorMap& map, bool is_write,
                           const Access& access) {
    const ir::SharedBuffer& buffer = k_.buffers[at(view.buffer)];
    const Warp& w = warps_[at(t.warp)];
    const Footprint& f = footprint(w, *t.stmt, t.origin, of_box, [&](Footprint& out) {
        const int size = target::bytes(buffer.dtype);
        const int base = ir::linear_address(buffer, std::vector<int>(t.origin.begin(), t.origin.end()));
        int bytes = size;
        for (int extent : map.box) bytes *= extent;
        for (int b = 0; b < bytes; b += granule_) {
            const auto address = target::swizzled(map.swizzle, static_cast<std::uint32_t>(base + b));
            out.touches.emplace_back(no_lane, static_cast<int>(address) / granule_);
        }
    });
    touch(rank, f, is_write, access, t.at_issue, w, *t.stmt);
}

void Machine::skeleton_wgmma(Warp& w, WgmmaTask& t) {
    const auto& op = std::get<ir::Wgmma>(t.stmt->op);
    Access a;
    a.actor = static_cast<std::uint16_t>(actor_wgmma(w.number));
    a.lane = no_lane;
    a.async_proxy = true;
    a.time = t.time;
    a.stmt = t.stmt;
    a.snapshot = t.snapshot;
    const int depth = op.b.extents[1];
    auto read = [&](const ir::SharedView& view, const std::vector<std::int64_t>& origin, int which,
                    const std::function<std::vector<int>()>& rows) {
        const ir::SharedBuffer& buffer = k_.buffers[at(view.buffer)];
        const Footprint& f = footprint(w, *t.stmt, origin, which, [&](Footprint& out) {
            // Neighbours along the contiguous dimension share granules: step over them.
            const int stride = std::max(1, granule_ / target::bytes(buffer.dtype));
            const int along_k = buffer.dims[at(view.dims[1])].strides[0] == 1 ? stride : 1;
            const int along_rows = along_k == 1 && buffer.dims[at(view.dims[0])].strides[0] == 1 ? stride : 1;
            std::vector<int> c(buffer.dims.size());
            for (int r : rows()) {
                if (r % along_rows != 0) continue;
                for (int k = 0; k < depth; k += along_k) {
                    for (std::size_t d = 0; d < c.size(); ++d) c[d] = static_cast<int>(origin[d]);
                    c[at(view.dims[0])] += r;
                    c[at(view.dims[1])] += k;
                    for (std::size_t d = 0; d < c.size(); ++d) out.outside |= c[d] < 0 || c[d] >= buffer.extent(static_cast<int>(d));
                    if (out.outside) return;
                    out.touches.emplace_back(no_lane, ir::shared_address(buffer, c) / granule_);
                }
            }
        });
        touch(w.block, f, false, a, t.at_issue, w, *t.stmt);
    };
    read(op.b, t.b_origin, of_b, [&] {
        std::vector<int> all(at(op.b.extents[0]));
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
        return all;
    });
    if (auto* view = std::get_if<ir::SharedView>(&op.a)) {
        read(*view, t.a_origin, of_a, [&] {  // the rows of this warp
            const FragmentTable& table = tables_[at(op.acc)];
            const int first = 32 * (w.index - t.group->first_warp);
            std::set<int> rows;
            for (int th = first; th < first + 32 && th < table.threads; ++th) {
                for (int v = 0; v < table.values; ++v) rows.insert(table.at(th, v)[0]);
            }
            return std::vector<int>(rows.begin(), rows.end());
        });
    }
}

}  // namespace tw::emulate
