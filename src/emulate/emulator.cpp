// A launch: what it needs before the first cluster runs, and the clusters in turn.
#include "emulate/emulator.h"

#include <algorithm>

#include "emulate/contents.h"
#include "emulate/machine.h"

namespace tw::emulate {

const char* name_of(FaultKind kind) {
    switch (kind) {
        case FaultKind::race: return "race";
        case FaultKind::deadlock: return "deadlock";
        case FaultKind::out_of_bounds: return "out_of_bounds";
        case FaultKind::uninitialised: return "uninitialised";
        case FaultKind::phase: return "phase";
        case FaultKind::byte_count: return "byte_count";
        case FaultKind::proxy: return "proxy";
        case FaultKind::in_flight: return "in_flight";
        case FaultKind::barrier: return "barrier";
        case FaultKind::divergence: return "divergence";
        case FaultKind::launch: return "launch";
        case FaultKind::limit: return "limit";
    }
    return "?";
}

std::optional<std::int64_t> size_value(const ir::Expr& e, const std::vector<std::int64_t>& sizes) {
    return ir::evaluate(e, [&](const ir::ExprNode& n, const std::vector<std::int64_t>&) -> std::optional<std::int64_t> {
        if (n.kind == ir::ExprKind::size && n.id >= 0 && n.id < static_cast<int>(sizes.size()))
            return sizes[static_cast<std::size_t>(n.id)];
        return std::nullopt;
    });
}

Outcome run(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, const std::vector<double>& scalars,
            std::vector<TensorData>& tensors, const Options& options) {
    return Machine(kernel, sizes, scalars, tensors, options).run();
}

Machine::Machine(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, const std::vector<double>& scalars,
                 std::vector<TensorData>& tensors, const Options& options)
    : k_(kernel), sizes_(sizes), scalars_(scalars), tensors_(tensors), options_(options), random_(options.schedule.seed) {
    if (!options_.cache) options_.cache = make_skeleton_cache();
}

bool Machine::prepare() {
    const Stmt nowhere{ir::BlockSync{}, k_.loc, {}};
    auto refuse = [&](std::string why) {
        fault(FaultKind::launch, std::move(why), nullptr, -1, nowhere);
        return false;
    };
    if (sizes_.size() != k_.sizes.size())
        return refuse("the launch gives " + std::to_string(sizes_.size()) + " sizes, the kernel has " + std::to_string(k_.sizes.size()));
    if (tensors_.size() != k_.tensors.size())
        return refuse("the launch gives " + std::to_string(tensors_.size()) + " tensors, the kernel has " +
                      std::to_string(k_.tensors.size()));
    if (scalars_.size() != k_.scalars.size())
        return refuse("the launch gives " + std::to_string(scalars_.size()) + " scalars, the kernel has " +
                      std::to_string(k_.scalars.size()));
    for (const ir::Assumption& a : k_.assumptions) {
        auto v = size_value(a.condition, sizes_);
        if (!v || *v == 0) return refuse("the launch does not satisfy `assume " + a.text + "`");
    }
    for (int i = 0; i < 3; ++i) {
        auto v = size_value(k_.grid[i], sizes_);
        if (!v || *v < 0) return refuse("the grid has no valid size along axis " + std::to_string(i));
        // As the driver: a launch beyond this fails.
        const std::int64_t most = i == 0 ? 2147483647 : 65535;
        if (*v > most)
            return refuse("the grid has " + std::to_string(*v) + " blocks along axis " + std::to_string(i) + "; a launch may have " +
                          std::to_string(most));
        if (!k_.persistent && *v % k_.cluster[i] != 0)
            return refuse("the grid has " + std::to_string(*v) + " blocks along axis " + std::to_string(i) +
                          ", which is no whole number of clusters of " + std::to_string(k_.cluster[i]) + ": such a launch does not start");
        grid_[i] = *v;
    }
    cluster_size_ = k_.cluster[0] * k_.cluster[1] * k_.cluster[2];
    if (k_.persistent) {
        std::int64_t resident = std::max<std::int64_t>(options_.resident_blocks / cluster_size_, 1) * cluster_size_;
        grid_[0] = std::min(grid_[0], resident);
    }
    if (auto impossible = impossible_shape(k_.tensors, sizes_); impossible && options_.values) return refuse(*impossible);
    for (const ir::Tensor& t : k_.tensors) {  // without values index tensors are read too
        if (auto none = without_memory(t, sizes_); none && !target::info(t.dtype).is_float) return refuse(*none);
    }
    for (std::size_t i = 0; i < k_.tensors.size(); ++i) {
        std::vector<std::int64_t> dims, strides;
        for (const ir::Expr& e : k_.tensors[i].dims) dims.push_back(size_value(e, sizes_).value_or(-1));
        for (const ir::Expr& e : k_.tensors[i].strides) strides.push_back(size_value(e, sizes_).value_or(-1));
        if (options_.values && dims != tensors_[i].dims)
            return refuse("argument `" + k_.tensors[i].name + "` does not have the declared shape");
        dims_.push_back(std::move(dims));
        strides_.push_back(std::move(strides));
    }
    if (options_.values) {
        if (auto broken = broken_promise(k_, sizes_, tensors_)) return refuse(*broken);
    }
    tracked_.assign(k_.tensors.size(), false);
    bool bytewise = false;
    ir::for_each_stmt(k_.body, [&](const Stmt& s) {
        if (auto* st = std::get_if<ir::StoreGlobal>(&s.op)) tracked_[static_cast<std::size_t>(st->dst.tensor)] = true;
        if (auto* st = std::get_if<ir::AtomicAdd>(&s.op)) tracked_[static_cast<std::size_t>(st->dst.tensor)] = true;
        if (auto* st = std::get_if<ir::TmaStore>(&s.op))
            tracked_[static_cast<std::size_t>(k_.tensor_maps[static_cast<std::size_t>(st->map)].tensor)] = true;
        if (auto* c = std::get_if<ir::CpAsync>(&s.op)) {
            auto [it, fresh] = options_.cache->copies.try_emplace(c);
            if (fresh) it->second = c->whole_vectors ? whole_vectors(k_, *c) : tabulate(c->dist);
            copy_table_[c] = &it->second;
        }
    });
    for (const ir::SharedBuffer& b : k_.buffers) bytewise |= target::bytes(b.dtype) == 1;
    granule_ = options_.values ? (bytewise ? 1 : 2) : choose_granule();
    cells_.resize(k_.tensors.size());
    global_shadow_.resize(k_.tensors.size());
    for (std::size_t i = 0; i < k_.tensors.size(); ++i) {
        if (!tracked_[i] || !options_.values) continue;
        cells_[i].resize(tensors_[i].bytes.size() / static_cast<std::size_t>(target::bytes(tensors_[i].dtype)));
        global_shadow_[i] = PagedShadow(cells_[i].size());
    }
    if (options_.history) {
        options_.history->tensors.resize(k_.tensors.size());
        for (std::size_t i = 0; i < k_.tensors.size(); ++i) {
            options_.history->tensors[i].assign(tensors_[i].bytes.size() / static_cast<std::size_t>(target::bytes(tensors_[i].dtype)), 0);
        }
    }
    if (options_.cache->tables.empty()) {
        for (const ir::Fragment& f : k_.fragments) options_.cache->tables.push_back(tabulate(f.dist));
    }
    tables_ = options_.cache->tables;
    for (const ir::BarrierArray& b : k_.barriers) {
        barrier_base_.push_back(slots_);
        slots_ += b.slots;
    }
    bool loads = false, copies = false;
    ir::for_each_stmt(k_.body, [&](const Stmt& s) {
        loads |= std::holds_alternative<ir::LoadShared>(s.op), copies |= std::holds_alternative<ir::TmaLoad>(s.op);
    });
    refills_ = loads && copies;
    return true;
}

void Machine::report_progress(std::int64_t clusters_done) {
    if (!options_.progress || limit_hit_ || options_.progress({clusters_done, clusters_, outcome_.steps})) return;
    fault(FaultKind::limit,
          "stopped after " + std::to_string(clusters_done * cluster_size_) + " of " + std::to_string(outcome_.blocks) + " blocks, " +
              std::to_string(outcome_.steps) + " statements",
          nullptr, -1, k_.body.front());
    limit_hit_ = true;
}

Outcome Machine::run() {
    if (!prepare()) return outcome_;
    std::int64_t blocks = grid_[0] * grid_[1] * grid_[2];
    outcome_.blocks = blocks;
    clusters_ = options_.one_cluster ? std::min<std::int64_t>(1, blocks / cluster_size_) : blocks / cluster_size_;
    if (options_.values && !k_.teams.empty()) run_team();
    else run_clusters();
    for (Block& b : blocks_) options_.cache->shadows.push_back(std::move(b.shadow));
    return std::move(outcome_);
}

void Machine::run_clusters() {
    for (std::int64_t c = 0; c < clusters_ && !stopped(); ++c) {
        if (options_.wanted) {
            std::vector<std::array<std::int64_t, 3>> members;
            for (int rank = 0; rank < cluster_size_; ++rank) members.push_back(block_index(c, rank));
            if (!options_.wanted(members, {grid_[0], grid_[1], grid_[2]})) continue;
        }
        start_cluster(c);
        run_cluster();
        report_progress(c + 1);
    }
}

void Machine::fault(What what, std::string message, const Warp* w, int lane, const Stmt& s, const Stmt* other, std::string element,
                    const Access* now, const Access* before) {
    if (outcome_.faults.size() >= options_.fault_limit) return;
    Fault f;
    f.kind = what.kind;
    f.cause = what.cause;
    f.message = std::move(message);
    f.loc = s.loc;
    f.statement = ir::print(k_, s);
    if (other) {
        f.other = other->loc;
        f.other_statement = ir::print(k_, *other);
    }
    if (w) {
        f.warp = w->index;
        f.thread = w->index * 32 + (lane >= 0 && lane < 32 ? lane : 0);  // the engines have no lane: the warp's first stands for them
        for (int i = 0; i < 3; ++i) f.block[i] = static_cast<int>(blocks_[static_cast<std::size_t>(w->block)].index[i]);
    }
    f.element = std::move(element);
    if (options_.history) {
        const std::vector<Event>& events = options_.history->events;
        if (!other && before) other = before->stmt;
        f.event = now ? now->snapshot : w ? w->event : 0;
        f.by_engine = now && now->lane == no_lane;
        if (other && before) {
            f.other = other->loc;
            f.other_statement = ir::print(k_, *other);
            f.other_event = before->snapshot;
            if (before->lane < 32) f.other_thread = events[f.other_event].warp * 32 + before->lane;
        } else if (other && w) {
            // The warp's last execution of that statement.
            for (std::size_t i = events.size(); i-- > 1 && !f.other_event;) {
                if (events[i].stmt == other && events[i].warp == w->index && events[i].rank == w->block)
                    f.other_event = static_cast<std::uint32_t>(i);
            }
        }
    }
    outcome_.faults.push_back(std::move(f));
}

}  // namespace tw::emulate
