// Step 8, elect: statements that one thread executes for its group. A maximal run of TMA copies, bulk commits and waits, and
// mbarrier arrivals is put under one Elect. A role that does nothing else (with its loops, counters and mbarrier waits) is
// elected as a whole, so that the producer is one thread from start to end. Elect always picks the same thread of a group, which is
// what bulk groups need.
#include "lower/groups.h"
#include "lower/steps.h"

namespace tw::lower {
namespace {

bool single_thread(const ir::Operation& op) {
    return std::holds_alternative<ir::TmaLoad>(op) || std::holds_alternative<ir::TmaStore>(op) ||
           std::holds_alternative<ir::BulkCommit>(op) || std::holds_alternative<ir::BulkWait>(op) ||
           std::holds_alternative<ir::BarrierArrive>(op) || std::holds_alternative<ir::BarrierExpect>(op);
}

// Only single-thread statements and what may surround them; `any`: at least one of the former.
bool all_single(const ir::Region& region, bool& any) {
    for (const ir::Stmt& s : region) {
        if (single_thread(s.op)) {
            any = true;
        } else if (auto* f = std::get_if<ir::For>(&s.op)) {
            if (!all_single(f->body, any)) return false;
        } else if (auto* i = std::get_if<ir::If>(&s.op)) {
            if (!all_single(i->then, any) || !all_single(i->otherwise, any)) return false;
        } else if (!std::holds_alternative<ir::Assign>(s.op) && !std::holds_alternative<ir::BarrierWait>(s.op) &&
                   !std::holds_alternative<ir::Expect>(s.op)) {
            return false;
        }
    }
    return true;
}

void wrap_runs(ir::Region& region) {
    ir::Region out;
    for (std::size_t i = 0; i < region.size();) {
        if (!single_thread(region[i].op)) {
            out.push_back(std::move(region[i++]));
            continue;
        }
        const ir::Loc loc = region[i].loc;
        ir::Elect elect;
        // An expectation between two of them makes no code, so it does not part them either.
        auto goes_on = [&] {
            std::size_t next = i;
            while (next < region.size() && std::holds_alternative<ir::Expect>(region[next].op)) ++next;
            return next < region.size() && single_thread(region[next].op);
        };
        while (i < region.size() && goes_on()) elect.body.push_back(std::move(region[i++]));
        out.push_back({std::move(elect), loc, ""});
    }
    region = std::move(out);
}

void walk(ir::Region& region) {
    for (ir::Stmt& s : region) {
        if (auto* f = std::get_if<ir::For>(&s.op)) walk(f->body);
        if (auto* i = std::get_if<ir::If>(&s.op)) walk(i->then), walk(i->otherwise);
        if (auto* r = std::get_if<ir::Role>(&s.op)) {
            bool any = false;
            if (all_single(r->body, any) && any) {
                ir::Elect elect{std::move(r->body)};
                r->body.clear();
                r->body.push_back({std::move(elect), s.loc, "one thread does all of this role"});
            } else {
                walk(r->body);
            }
        }
        // Inside an Elect that the text asked for, everything is single-threaded already.
    }
    wrap_runs(region);
}

}  // namespace

void elect_threads(Draft& draft, const Context&) { walk(draft.kernel.body); }

}  // namespace tw::lower
