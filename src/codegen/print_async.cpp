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
    const auto found = device::wgmma_operands(k_, facts_, op);
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

// One line that says it all.
void Printer::synchronise(const std::string& text, const ir::Stmt& s) {
    line(s.note.empty() ? text : text + "  // " + comment_text(s.note));
}

std::string Printer::text_of(const ir::BarrierArrive& a) {
    if (!a.barrier.cluster_rank)
        return a.count == 1 ? fmt::format("tw::mbarrier_arrive({});", barrier(a.barrier))
                            : fmt::format("tw::mbarrier_arrive_many({}, {});", barrier(a.barrier), a.count);
    if (a.count != 1) fail("an arrival of more than one at another block's barrier has no CUDA text yet");
    return fmt::format("tw::mbarrier_arrive{}_cluster({}, {});", a.release == ir::Scope::none ? "_relaxed" : "", barrier(a.barrier, true),
                       expr(*a.barrier.cluster_rank));
}

std::string Printer::text_of(const ir::BarrierWait& w) {
    const char* form = w.acquire == ir::Scope::block ? "" : w.acquire == ir::Scope::cluster ? "_cluster" : "_relaxed_cluster";
    return fmt::format("tw::mbarrier_wait{}({}, {});", form, barrier(w.barrier), expr(w.parity));
}

}  // namespace tw::codegen
