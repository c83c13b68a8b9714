// TMA, wgmma, barriers and fences.
#include <algorithm>

#include "codegen/matrix_text.h"
#include "codegen/printer.h"

namespace tw::codegen {

using ir::DType;

// Only a plain arrival reaches another block's barrier.
std::string Printer::barrier(const ir::BarrierRef& b, bool may_be_a_peers) {
    if (b.cluster_rank && !may_be_a_peers) fail("this operation on another block's barrier has no CUDA text");
    const std::string name = "AT_" + barrier_names_[static_cast<std::size_t>(b.array)];
    if (auto c = b.slot.as_constant()) return *c == 0 ? "smem + " + name : fmt::format("smem + {} + {}", name, 8 * *c);
    return fmt::format("smem + {} + 8 * {}", name, wrapped(b.slot));
}

void Printer::tma_load(const ir::TmaLoad& op) {
    std::string text = fmt::format("tw::tma_load_{}d{}{}(smem + {}, &{}, {}", op.coordinates.size(), op.multicast_mask ? "_multicast" : "",
                                   op.hint == ir::CacheHint::none ? "" : "_hint", shared_origin(op.dst),
                                   map_names_[static_cast<std::size_t>(op.map)], barrier(op.barrier));
    for (const auto& c : op.coordinates) text += ", " + expr(c);
    if (op.multicast_mask) text += fmt::format(", tw::u16({})", expr(*op.multicast_mask));
    if (op.hint != ir::CacheHint::none) text += op.hint == ir::CacheHint::evict_last ? ", tw::l2_evict_last()" : ", tw::l2_evict_first()";
    line(text + ");");
}

void Printer::tma_store(const ir::TmaStore& op) {
    if (op.reduce_add && op.hint != ir::CacheHint::none) return fail("a TMA reduction with a cache hint has no CUDA text yet");
    std::string text =
        fmt::format("tw::tma_{}_{}d{}(&{}, smem + {}", op.reduce_add ? "reduce_add" : "store", op.coordinates.size(),
                    op.hint == ir::CacheHint::none ? "" : "_hint", map_names_[static_cast<std::size_t>(op.map)], shared_origin(op.src));
    for (const auto& c : op.coordinates) text += ", " + expr(c);
    if (op.hint != ir::CacheHint::none) text += op.hint == ir::CacheHint::evict_last ? ", tw::l2_evict_last()" : ", tw::l2_evict_first()";
    line(text + ");");
}

// A matrix operand in shared memory: view dimension 0 is M or N, dimension 1 is K. The descriptor's offsets are distances
// between elements of the buffer, as target/descriptor.h defines them; here they are read off the buffer itself.
std::optional<Printer::Operand> Printer::operand(const ir::SharedView& view, int mn_step, int k_elements) {
    const ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(view.buffer)];
    const int size = target::bytes(b.dtype), span = target::span_bytes(b.swizzle), chunk = 16 / size, wide = span / size;
    auto at = [&](int mn, int k) { return *constant_bytes(view, {mn, k}); };
    Operand o;
    const int mn_extent = view.extents[0], k_extent = view.extents[1], start = at(0, 0);
    o.mn_major = k_extent > 1 && at(0, 1) - start != size;
    static constexpr int codes[] = {0, 3, 2, 1};
    o.swizzle = codes[static_cast<std::size_t>(b.swizzle)];
    const bool plain = b.swizzle == target::SwizzleMode::None;
    if (!o.mn_major) {
        o.stride = mn_extent > 8 ? at(8, 0) - start : span * 8;
        o.leading = plain && k_extent > chunk ? at(0, chunk) - start : 16;
        for (int r = 1; r < 8 && r < mn_extent; ++r) {
            if (at(r, 0) - start != r * span) return std::nullopt;
        }
    } else {
        o.stride = plain ? (mn_extent > chunk ? at(chunk, 0) - start : 128) : (k_extent > 8 ? at(0, 8) - start : span * 8);
        o.leading = plain ? (k_extent > 8 ? at(0, 8) - start : 128) : (mn_extent > wide ? at(wide, 0) - start : 16);
        for (int r = 1; r < 8; ++r) {
            if (at(0, r) - start != r * span) return std::nullopt;
        }
    }
    for (int mn = 0; mn < mn_extent; mn += mn_step) {
        o.offset.emplace_back();
        for (int k = 0; k < k_extent; k += k_elements) o.offset.back().push_back(at(mn, k) - start);
    }
    std::int64_t divisor = 0;
    runtime_bytes(view, divisor);
    if (!plain && (divisor % target::pattern_bytes(b.swizzle) != 0 || start % target::pattern_bytes(b.swizzle) >= span))
        return std::nullopt;
    o.start = "smem + " + shared_origin(view);
    return o;
}

void Printer::wgmma(const ir::Wgmma& op) {
    const DType type = k_.buffers[static_cast<std::size_t>(op.b.buffer)].dtype;
    // The device headers have functions for the common shapes of 16-bit types.
    static constexpr int common[] = {8,   16,  24,  32,  48,  64,  80,  96,  104, 112, 120, 128,
                                     136, 144, 152, 160, 168, 176, 184, 192, 208, 224, 240, 256};
    const bool known = std::find(std::begin(common), std::end(common), op.b.extents[0]) != std::end(common);
    if ((type != DType::BF16 && type != DType::F16) || dtype(op.acc) != DType::F32 || !known) return wgmma_of_any_type(op);
    const int k_step = 16, m = dist(op.acc).shape[0], n = op.b.extents[0], k = op.b.extents[1];
    const auto* a_view = std::get_if<ir::SharedView>(&op.a);
    const int blocks = m / 64, steps = k / k_step;
    auto b = operand(op.b, n, k_step);
    std::optional<Operand> a;
    if (a_view) a = operand(*a_view, 64, k_step);
    if (!b || (a_view && !a)) return fail("a wgmma operand does not lie as a descriptor can say");
    if (!a_view) {  // registers: words 4 j .. 4 j + 3 are the A fragment of k step j
        const ir::Distribution& d = dist(std::get<int>(op.a));
        for (int j = 0; j < steps * blocks; ++j) {
            const auto c = d.at(0, 8 * j), c2 = d.at(0, 8 * j + 2), c4 = d.at(0, 8 * j + 4);
            const int row = 64 * (j / steps), column = 16 * (j % steps);
            if (c != std::vector<int>{row, column} || c2 != std::vector<int>{row + 8, column} || c4 != std::vector<int>{row, column + 8}) {
                return fail("the A fragment of a wgmma does not fit");
            }
        }
    }
    open("");
    auto descriptor = [&](const Operand& o) {
        return fmt::format("tw::descriptor({}, {}, {}, {})", o.start, o.leading, o.stride, o.swizzle);
    };
    if (a) line(fmt::format("const tw::u64 desc_a = {};", descriptor(*a)));
    line(fmt::format("const tw::u64 desc_b = {};", descriptor(*b)));
    auto add = [](const std::string& name, int bytes) { return bytes ? fmt::format("{} + {}", name, bytes / 16) : name; };
    for (int j = 0; j < steps; ++j) {
        for (int i = 0; i < blocks; ++i) {
            const std::string acc = blocks == 1
                                        ? fragment_name(op.acc)
                                        : fmt::format("reinterpret_cast<float(&)[{}]>({}[{}])", n / 2, fragment_name(op.acc), i * n / 2);
            const std::string trans = b->mn_major || (a && a->mn_major) ? (a ? fmt::format("<{}, {}>", int(a->mn_major), int(b->mn_major))
                                                                             : fmt::format("<{}>", int(b->mn_major)))
                                                                        : "";
            std::string left;
            if (a) left = add("desc_a", a->offset[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]);
            else {
                const std::string& x = fragment_name(std::get<int>(op.a));
                const int w = 4 * (i * steps + j);
                left = fmt::format("{0}[{1}], {0}[{2}], {0}[{3}], {0}[{4}]", x, w, w + 1, w + 2, w + 3);
            }
            line(fmt::format("tw::wgmma_m64n{}k16_{}_{}{}({}, {}, {}, {});", n, target::name(type), a ? "ss" : "rs", trans, acc, left,
                             add("desc_b", b->offset[0][static_cast<std::size_t>(j)]), j == 0 ? expr(op.accumulate) : "1"));
        }
    }
    close();
}

// Any type and any legal N. As above, with the instruction's own function printed before the kernel.
void Printer::wgmma_of_any_type(const ir::Wgmma& op) {
    const auto* a_view = std::get_if<ir::SharedView>(&op.a);
    const int n = op.b.extents[0], k = op.b.extents[1], blocks = dist(op.acc).shape[0] / 64;
    target::WgmmaInstruction i;
    i.n = n;
    i.b = k_.buffers[static_cast<std::size_t>(op.b.buffer)].dtype;
    i.a = a_view ? k_.buffers[static_cast<std::size_t>(a_view->buffer)].dtype : dtype(std::get<int>(op.a));
    i.d = dtype(op.acc);
    i.a_in_registers = !a_view;
    if (i.d != DType::F32 && i.d != DType::I32) return fail("wgmma of these types has no CUDA text: accumulate in f32, integers in i32");
    const int steps = k / i.k();
    auto b = operand(op.b, n, i.k());
    std::optional<Operand> a;
    if (a_view) a = operand(*a_view, 64, i.k());
    if (!b || (a_view && !a)) return fail("a wgmma operand does not lie as a descriptor can say");
    i.a_major = a && a->mn_major ? target::Major::MN : target::Major::K;
    i.b_major = b->mn_major ? target::Major::MN : target::Major::K;
    if (const auto legal = target::wgmma_legal(*target::find_arch(k_.arch), i); !legal) return fail(legal.reason);
    const target::FragmentMap map = target::wgmma_a_register_map(i.a);
    if (!a_view) {  // registers: the A fragment of k step j of block m in neighbouring slots
        const ir::Distribution& d = dist(std::get<int>(op.a));
        for (int v = 0; v < d.values(); ++v) {
            const int step = v / map.values();
            const auto c = map.at(0, v % map.values());
            if (d.at(0, v) != std::vector<int>{64 * (step / steps) + c.row, i.k() * (step % steps) + c.col})
                return fail("the A fragment of a wgmma does not fit");
        }
    }
    functions_[function_name(i)] = function_text(i);
    open("");
    auto descriptor = [&](const Operand& o) {
        return fmt::format("tw::descriptor({}, {}, {}, {})", o.start, o.leading, o.stride, o.swizzle);
    };
    if (a) line(fmt::format("const tw::u64 desc_a = {};", descriptor(*a)));
    line(fmt::format("const tw::u64 desc_b = {};", descriptor(*b)));
    auto add = [](const std::string& name, int bytes) { return bytes ? fmt::format("{} + {}", name, bytes / 16) : name; };
    for (int j = 0; j < steps; ++j) {
        for (int m = 0; m < blocks; ++m) {
            const std::string acc = fmt::format("reinterpret_cast<{}(&)[{}]>({}[{}])", i.d == DType::I32 ? "int" : "float", n / 2,
                                                fragment_name(op.acc), m * n / 2);
            std::string left;
            if (a) left = add("desc_a", a->offset[static_cast<std::size_t>(m)][static_cast<std::size_t>(j)]);
            else {
                const int f = std::get<int>(op.a), first = (m * steps + j) * map.values();
                for (int w = 0; w < 4; ++w) left += (w ? ", " : "") + operand_word(f, std::to_string(packed(f) ? first / 2 : first), w);
            }
            line(fmt::format("tw::{}({}, {}, {}, {});", function_name(i), acc, left,
                             add("desc_b", b->offset[0][static_cast<std::size_t>(j)]), j == 0 ? expr(op.accumulate) : "1"));
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
