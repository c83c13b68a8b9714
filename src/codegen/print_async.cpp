// TMA, wgmma, barriers and fences.
#include <algorithm>

#include "codegen/matrix_text.h"
#include "codegen/printer.h"
#include "device/matrices.h"

namespace tw::codegen {

using ir::DType;

// Only a plain arrival reaches another block's barrier.
std::string Printer::barrier(const ir::BarrierRef& b, bool may_be_a_peers) {
    if (b.cluster_rank && !may_be_a_peers) fail("this operation on another block's barrier has no CUDA text");
    const std::string name = "AT_" + names_.barriers[static_cast<std::size_t>(b.array)];
    if (auto c = b.slot.as_constant()) return *c == 0 ? "smem + " + name : fmt::format("smem + {} + {}", name, 8 * *c);
    return fmt::format("smem + {} + 8 * {}", name, wrapped(b.slot));
}

void Printer::tma_load(const ir::TmaLoad& op) {
    std::string text = fmt::format("tw::tma_load_{}d{}{}(smem + {}, &{}, {}", op.coordinates.size(), op.multicast_mask ? "_multicast" : "",
                                   op.hint == ir::CacheHint::none ? "" : "_hint", shared_origin(op.dst),
                                   names_.maps[static_cast<std::size_t>(op.map)], barrier(op.barrier));
    for (const auto& c : op.coordinates) text += ", " + expr(c);
    if (op.multicast_mask) text += fmt::format(", tw::u16({})", expr(*op.multicast_mask));
    if (op.hint != ir::CacheHint::none) text += op.hint == ir::CacheHint::evict_last ? ", tw::l2_evict_last()" : ", tw::l2_evict_first()";
    line(text + ");");
}

void Printer::tma_store(const ir::TmaStore& op) {
    if (op.reduce_add && op.hint != ir::CacheHint::none) return fail("a TMA reduction with a cache hint has no CUDA text yet");
    std::string text =
        fmt::format("tw::tma_{}_{}d{}(&{}, smem + {}", op.reduce_add ? "reduce_add" : "store", op.coordinates.size(),
                    op.hint == ir::CacheHint::none ? "" : "_hint", names_.maps[static_cast<std::size_t>(op.map)], shared_origin(op.src));
    for (const auto& c : op.coordinates) text += ", " + expr(c);
    if (op.hint != ir::CacheHint::none) text += op.hint == ir::CacheHint::evict_last ? ", tw::l2_evict_last()" : ", tw::l2_evict_first()";
    line(text + ");");
}

void Printer::wgmma(const ir::Wgmma& op) {
    const auto found = device::wgmma_operands(k_, op, [this](const ir::SharedView& view) {
        std::int64_t divisor = 0;
        runtime_bytes(view, divisor);
        return divisor;
    });
    if (!found) return fail(found.error());
    const auto& [i, blocks, steps, a, b, register_values, common] = *found;
    std::string function = function_name(i);
    if (common) {
        const std::string trans = !a                          ? (b.mn_major ? "<1>" : "")
                                  : a->mn_major || b.mn_major ? fmt::format("<{}, {}>", int(a->mn_major), int(b.mn_major))
                                                              : "";
        function = fmt::format("wgmma_m64n{}k16_{}_{}{}", i.n, target::name(i.b), a ? "ss" : "rs", trans);
    } else functions_[function] = function_text(i);
    open("");
    auto descriptor = [&](const char* name, const ir::SharedView& view, const device::MatrixOperand& o) {
        line(fmt::format("const tw::u64 {} = tw::descriptor(smem + {}, {}, {}, {});", name, shared_origin(view), o.leading, o.stride,
                         o.swizzle));
    };
    if (a) descriptor("desc_a", std::get<ir::SharedView>(op.a), *a);
    descriptor("desc_b", op.b, b);
    auto add = [](const std::string& name, int bytes) { return bytes ? fmt::format("{} + {}", name, bytes / 16) : name; };
    for (int j = 0; j < steps; ++j) {
        for (int m = 0; m < blocks; ++m) {
            const std::string acc = common && blocks == 1
                                        ? fragment_name(op.acc)
                                        : fmt::format("reinterpret_cast<{}(&)[{}]>({}[{}])", i.d == DType::I32 ? "int" : "float", i.n / 2,
                                                      fragment_name(op.acc), m * i.n / 2);
            std::string left;
            if (a) left = add("desc_a", a->offset[static_cast<std::size_t>(m)][static_cast<std::size_t>(j)]);
            else {
                const int f = std::get<int>(op.a), first = (m * steps + j) * register_values;
                for (int w = 0; w < 4; ++w)
                    left += (w ? ", " : "") + (common ? fmt::format("{}[{}]", fragment_name(f), first / 2 + w)
                                                      : operand_word(f, std::to_string(packed(f) ? first / 2 : first), w));
            }
            line(fmt::format("tw::{}({}, {}, {}, {});", function, acc, left, add("desc_b", b.offset[0][static_cast<std::size_t>(j)]),
                             j == 0 ? expr(op.accumulate) : "1"));
        }
    }
    close();
}

void Printer::pin(const ir::Pin& op) {
    for (int f : op.fragments) {
        const std::string v = open_unrolled(values(f));
        line(fmt::format("tw::wgmma_pin{}({}[{}]);", dtype(f) == DType::I32 ? "_int" : "", fragment_name(f), v));
        close_unrolled(values(f));
    }
}

void Printer::synchronise(const ir::Stmt& s) {
    std::string text;
    if (auto* p = std::get_if<ir::Pin>(&s.op)) return pin(*p);
    if (std::holds_alternative<ir::CpAsyncCommit>(s.op)) text = "tw::cp_async_commit();";
    else if (auto* w = std::get_if<ir::CpAsyncWait>(&s.op)) text = fmt::format("tw::cp_async_wait<{}>();", w->pending);
    else if (auto* w = std::get_if<ir::CpAsyncArrive>(&s.op))
        text = fmt::format("tw::cp_async_mbarrier_arrive{}({});", w->noinc ? "_noinc" : "", barrier(w->barrier));
    else if (std::holds_alternative<ir::BulkCommit>(s.op)) text = "tw::bulk_commit();";
    else if (auto* w = std::get_if<ir::BulkWait>(&s.op)) text = fmt::format("tw::bulk_wait{}<{}>();", w->read ? "_read" : "", w->pending);
    else if (auto* b = std::get_if<ir::BarrierInit>(&s.op))
        text = fmt::format("tw::mbarrier_init({}, {});", barrier(b->barrier), b->arrivals);
    else if (std::holds_alternative<ir::BarrierInitFence>(s.op)) text = "tw::fence_mbarrier_init();";
    else if (auto* b = std::get_if<ir::BarrierArrive>(&s.op)) {
        if (b->count != 1 && b->barrier.cluster_rank)
            return fail("an arrival of more than one at another block's barrier has no CUDA text yet");
        if (b->count != 1) text = fmt::format("tw::mbarrier_arrive_many({}, {});", barrier(b->barrier), b->count);
        else if (!b->barrier.cluster_rank) text = fmt::format("tw::mbarrier_arrive({});", barrier(b->barrier));
        else {
            text = fmt::format("tw::mbarrier_arrive{}_cluster({}, {});", b->release == ir::Scope::none ? "_relaxed" : "",
                               barrier(b->barrier, true), expr(*b->barrier.cluster_rank));
        }
    } else if (auto* b = std::get_if<ir::BarrierExpect>(&s.op))
        text = fmt::format("tw::mbarrier_arrive_expect_tx({}, {});", barrier(b->barrier), expr(b->bytes));
    else if (auto* b = std::get_if<ir::BarrierWait>(&s.op)) {
        const char* form = b->acquire == ir::Scope::block ? "" : b->acquire == ir::Scope::cluster ? "_cluster" : "_relaxed_cluster";
        text = fmt::format("tw::mbarrier_wait{}({}, {});", form, barrier(b->barrier), expr(b->parity));
    } else if (std::holds_alternative<ir::BlockFence>(s.op)) text = "__threadfence_block();";
    else if (std::holds_alternative<ir::BlockSync>(s.op)) text = "__syncthreads();";
    else if (auto* n = std::get_if<ir::NamedSync>(&s.op)) text = fmt::format("tw::named_barrier_sync({}, {});", expr(n->id), n->threads);
    else if (auto* n = std::get_if<ir::NamedArrive>(&s.op))
        text = fmt::format("tw::named_barrier_arrive({}, {});", expr(n->id), n->threads);
    else if (std::holds_alternative<ir::WarpSync>(s.op)) text = "__syncwarp();";
    else if (auto* c = std::get_if<ir::ClusterArrive>(&s.op)) text = c->relaxed ? "tw::cluster_arrive_relaxed();" : "tw::cluster_arrive();";
    else if (std::holds_alternative<ir::ClusterWait>(s.op)) text = "tw::cluster_wait();";
    else if (std::holds_alternative<ir::ProxyFence>(s.op)) text = "tw::fence_proxy_async_shared();";
    else if (auto* r = std::get_if<ir::SetMaxRegisters>(&s.op))
        text = fmt::format("TW_SETMAXNREG_{}({});", r->increase ? "INC" : "DEC", r->count);
    else if (std::holds_alternative<ir::GridWait>(s.op)) text = "tw::grid_dependency_wait();";
    else if (std::holds_alternative<ir::GridLaunch>(s.op)) text = "tw::grid_dependency_launch();";
    else if (std::holds_alternative<ir::WgmmaFence>(s.op)) text = "tw::wgmma_fence();";
    else if (std::holds_alternative<ir::WgmmaCommit>(s.op)) text = "tw::wgmma_commit();";
    else if (auto* w = std::get_if<ir::WgmmaWait>(&s.op)) text = fmt::format("tw::wgmma_wait<{}>();", w->pending);
    else return fail(fmt::format("`{}` has no CUDA text yet", ir::kind_name(s.op)));
    if (!s.note.empty()) text += "  // " + comment_text(s.note);
    line(text);
}

}  // namespace tw::codegen
