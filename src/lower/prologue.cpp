// Step 10, prologue: one thread initialises every mbarrier, a fence makes that visible to the asynchronous proxy and to the
// cluster, and everybody waits before the first use. Roles with a register budget start by taking or giving registers. In a
// cluster all blocks also wait for one another at the start, unless the text itself does before it reaches a peer, and at the
// end, so that nobody's shared memory goes away while a peer may still use it.
#include <iterator>

#include "ir/legality.h"
#include "lower/steps.h"
#include "target/arch.h"
#include "target/registers.h"

namespace tw::lower {
namespace {

// Can it touch another block of the cluster, or be touched by one? Registers, tensors and this block's own shared memory cannot.
bool reaches_across(const ir::Stmt& stmt) {
    bool reaches = false;
    ir::for_each_stmt(ir::Region{stmt}, [&](const ir::Stmt& s) {
        if (const auto* l = std::get_if<ir::LoadShared>(&s.op)) reaches |= l->src.cluster_rank.has_value();
        else if (const auto* st = std::get_if<ir::StoreShared>(&s.op)) reaches |= st->dst.cluster_rank.has_value();
        else if (!std::holds_alternative<ir::For>(s.op) && !std::holds_alternative<ir::If>(s.op) &&
                 !std::holds_alternative<ir::Assign>(s.op) && !std::holds_alternative<ir::Compute>(s.op) &&
                 !std::holds_alternative<ir::Reduce>(s.op) && !std::holds_alternative<ir::Scan>(s.op) &&
                 !std::holds_alternative<ir::Shuffle>(s.op) && !std::holds_alternative<ir::LoadGlobal>(s.op) &&
                 !std::holds_alternative<ir::StoreGlobal>(s.op) && !std::holds_alternative<ir::AtomicAdd>(s.op) &&
                 !std::holds_alternative<ir::BlockSync>(s.op) && !std::holds_alternative<ir::WarpSync>(s.op) &&
                 !std::holds_alternative<ir::CpAsync>(s.op) && !std::holds_alternative<ir::CpAsyncCommit>(s.op) &&
                 !std::holds_alternative<ir::CpAsyncWait>(s.op) && !std::holds_alternative<ir::Expect>(s.op)) {
            reaches = true;
        }
    });
    return reaches;
}

// Do all blocks of the cluster meet at a barrier of the text before anything reaches a peer?
bool meets_first(const ir::Kernel& k) {
    if (!k.barriers.empty()) return false;
    for (const ir::Stmt& s : k.body) {
        if (std::holds_alternative<ir::ClusterWait>(s.op)) return true;
        if (!std::holds_alternative<ir::ClusterArrive>(s.op) && reaches_across(s)) return false;
    }
    return false;
}

}  // namespace

void add_prologue(Draft& draft, const Context&) {
    ir::Kernel& k = draft.kernel;
    const bool cluster = k.cluster[0] * k.cluster[1] * k.cluster[2] > 1;
    ir::Region start;
    if (!k.barriers.empty()) {
        ir::Elect elect;
        for (std::size_t i = 0; i < k.barriers.size(); ++i) {
            for (int slot = 0; slot < k.barriers[i].slots; ++slot) {
                elect.body.push_back(
                    {ir::BarrierInit{{static_cast<int>(i), slot, std::nullopt}, k.barriers[i].arrivals}, k.barriers[i].loc, ""});
            }
        }
        elect.body.push_back({ir::BarrierInitFence{}, {}, ""});
        start.push_back({std::move(elect), {}, "initialise the mbarriers"});
    }
    if (cluster && !meets_first(k)) {
        start.push_back({ir::ClusterArrive{}, {}, "all blocks of the cluster have started and initialised"});
        start.push_back({ir::ClusterWait{}, {}, ""});
    } else if (!k.barriers.empty()) {
        start.push_back({ir::BlockSync{}, {}, "the mbarriers are initialised"});
    }
    const target::Arch& arch = *target::find_arch(k.arch);
    const int launch = target::max_registers_for_block(arch, 32 * k.warps, k.min_blocks_per_sm);
    for_each_region(k.body, [&](ir::Region& region) {
        for (ir::Stmt& s : region) {
            auto* role = std::get_if<ir::Role>(&s.op);
            if (!role || role->registers == 0) continue;
            role->body.insert(role->body.begin(), {ir::SetMaxRegisters{role->registers, role->registers > launch}, s.loc, ""});
        }
    });
    if (k.dependent_launch) {
        // The next grid may set itself up as soon as all blocks of this one are on their way; it waits for our end before it
        // touches what we write. In the same way each group of ours waits before its first access to a tensor that a grid
        // before may still write; a role that touches none (it reads weights, say) begins at once.
        start.insert(start.begin(), {ir::GridLaunch{}, {}, "the next kernel may begin its set-up"});
        auto touches = [&](const ir::Region& region) {
            bool any = false;
            ir::for_each_stmt(region, [&](const ir::Stmt& s) { any |= ir::touches_unstable_tensor(k, s); });
            return any;
        };
        const ir::Stmt wait{ir::GridWait{}, {}, "the kernel before has ended"};
        for (std::size_t i = 0; i < k.body.size(); ++i) {
            if (auto* role = std::get_if<ir::Role>(&k.body[i].op)) {
                if (!touches(role->body)) continue;
                const bool budget = !role->body.empty() && std::holds_alternative<ir::SetMaxRegisters>(role->body.front().op);
                role->body.insert(role->body.begin() + (budget ? 1 : 0), wait);
            } else if (touches({k.body[i]})) {
                k.body.insert(k.body.begin() + static_cast<std::ptrdiff_t>(i), wait);  // from here on everybody has waited
                break;
            }
        }
    }
    k.body.insert(k.body.begin(), std::make_move_iterator(start.begin()), std::make_move_iterator(start.end()));
    if (cluster) {
        // Arrive as soon as nothing but registers and global memory is left to work on.
        auto last = k.body.end();
        while (last != k.body.begin() && !reaches_across(*std::prev(last))) --last;
        k.body.insert(last, {ir::ClusterArrive{}, {}, "no block leaves while a peer may still reach its shared memory"});
        k.body.push_back({ir::ClusterWait{}, {}, ""});
    }
}

}  // namespace tw::lower
