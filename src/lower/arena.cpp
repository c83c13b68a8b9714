// Step 9, arena: byte offsets in the block's shared memory. Swizzled buffers start at multiples of 1024 bytes (where the
// pattern of every mode starts), buffers that TMA touches at 128, others at 16; the strictest ones come first so that nothing
// is lost between them. Overlays lie inside the buffer they were made from. Barriers and mailboxes come last.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "ir/team.h"
#include "lower/steps.h"
#include "target/arch.h"
#include "target/sync.h"

namespace tw::lower {

void place_arena(Draft& draft, const Context& context) {
    ir::Kernel& k = draft.kernel;
    std::vector<int> alignment(k.buffers.size(), 16);
    auto root = [&](int b) {
        while (k.buffers[static_cast<std::size_t>(b)].overlay_of >= 0) b = k.buffers[static_cast<std::size_t>(b)].overlay_of;
        return static_cast<std::size_t>(b);
    };
    for (std::size_t i = 0; i < k.buffers.size(); ++i) {
        auto& wanted = alignment[root(static_cast<int>(i))];
        if (k.buffers[i].swizzle != target::SwizzleMode::None) wanted = std::max(wanted, 1024);
    }
    for (const auto& [buffer, wanted] : draft.alignments) alignment[root(buffer)] = std::max(alignment[root(buffer)], wanted);
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* l = std::get_if<ir::TmaLoad>(&s.op)) alignment[root(l->dst.buffer)] = std::max(alignment[root(l->dst.buffer)], 128);
        if (auto* st = std::get_if<ir::TmaStore>(&s.op)) alignment[root(st->src.buffer)] = std::max(alignment[root(st->src.buffer)], 128);
        auto wide = [&](const ir::SharedView& v) { alignment[root(v.buffer)] = std::max(alignment[root(v.buffer)], 128); };
        if (auto* w = std::get_if<ir::Wgmma>(&s.op)) {
            wide(w->b);
            if (auto* a = std::get_if<ir::SharedView>(&w->a)) wide(*a);
        }
    });
    std::vector<std::size_t> order(k.buffers.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return alignment[a] > alignment[b]; });
    long long at = 0;
    auto up = [](long long v, long long to) { return (v + to - 1) / to * to; };
    for (std::size_t i : order) {
        ir::SharedBuffer& b = k.buffers[i];
        if (b.overlay_of >= 0) continue;
        at = up(at, alignment[i]);
        b.byte_offset = static_cast<int>(at);
        at += b.bytes;
        if (at > (1 << 28)) break;
    }
    for (std::size_t i = 0; i < k.buffers.size(); ++i) {  // overlays were made after what they lie in
        ir::SharedBuffer& b = k.buffers[i];
        if (b.overlay_of >= 0) b.byte_offset += k.buffers[static_cast<std::size_t>(b.overlay_of)].byte_offset;
    }
    for (ir::BarrierArray& b : k.barriers) {
        at = up(at, 8);
        b.byte_offset = static_cast<int>(at);
        at += static_cast<long long>(b.slots) * target::mbarrier_bytes;
    }
    for (ir::Team& t : k.teams) {
        at = up(at, 16);
        t.byte_offset = static_cast<int>(at);
        t.bytes = ir::team_box_bytes(t, k.warps);
        at += t.bytes;
    }
    const target::Arch& arch = *target::find_arch(k.arch);
    if (at > arch.max_shared_bytes_per_block) {
        std::string detail;
        for (const ir::SharedBuffer& b : k.buffers) {
            if (b.overlay_of < 0) detail += fmt::format("{}{} {}", detail.empty() ? "" : ", ", b.name, b.bytes);
        }
        auto& diagnostic = context.error(
            Code::shared_memory_size, k.loc,
            fmt::format("the kernel needs {} bytes of shared memory, {} has {} per block", at, arch.name, arch.max_shared_bytes_per_block));
        diagnostic.with_note({}, "bytes by buffer: " + detail);
        diagnostic.with_hint("use fewer stages or smaller tiles, or overlay buffers that are not used together");
    }
    k.shared_bytes = static_cast<int>(std::min<long long>(up(at, 16), 1 << 28));
}

}  // namespace tw::lower
