// Step 7, wgmma: the register fence before and the commit after. Each tw.wgmma is its own group; inside tw.wgmma_batch() one
// fence stands before the first and one commit after the last, so that several operations are waited for together.
#include "lower/groups.h"
#include "lower/steps.h"

namespace tw::lower {
namespace {

void walk(Draft& draft, const Context& context, ir::Region& region) {
    ir::Region out;
    bool batch = false, fenced = false;
    for (ir::Stmt& s : region) {
        if (auto* f = std::get_if<ir::For>(&s.op)) walk(draft, context, f->body);
        if (auto* i = std::get_if<ir::If>(&s.op)) walk(draft, context, i->then), walk(draft, context, i->otherwise);
        if (auto* r = std::get_if<ir::Role>(&s.op)) walk(draft, context, r->body);
        const auto* sugar = std::get_if<ir::Sugar>(&s.op);
        const SugarOp* op = sugar ? &draft.sugar[static_cast<std::size_t>(sugar->id)] : nullptr;
        if (op && std::holds_alternative<WgmmaBatchBegin>(*op)) {
            batch = true;
            fenced = false;
            continue;
        }
        if (op && std::holds_alternative<WgmmaBatchEnd>(*op)) {
            if (!fenced)
                context.error(Code::ring_use, s.loc, "tw.wgmma_batch() holds no tw.wgmma at its own level")
                    .with_hint("a batch is straight-line code; put the loop around it, or use tw.unroll inside");
            batch = false;
            out.push_back({ir::WgmmaCommit{}, s.loc, ""});
            continue;
        }
        const bool matrix = std::holds_alternative<ir::Wgmma>(s.op);
        const ir::Loc loc = s.loc;
        if (matrix && (!batch || !fenced)) {
            out.push_back({ir::WgmmaFence{}, loc, ""});
            fenced = true;
        }
        out.push_back(std::move(s));
        if (matrix && !batch) out.push_back({ir::WgmmaCommit{}, loc, ""});
    }
    region = std::move(out);
}

}  // namespace

void lower_wgmma(Draft& draft, const Context& context) { walk(draft, context, draft.kernel.body); }

}  // namespace tw::lower
