// What surrounds the work of a thread: loops that make addresses anew, accumulators that come back, warps that carry messages.
#include <algorithm>

#include "device/rewrite.h"
#include "device/steps.h"
#include "ir/row_starts.h"

namespace tw::device {

// Vectors that may lie across the start of their row: which of a thread's elements are inside takes a test each, and all of these would be
// carried in registers over the rounds of a loop. In a loop that is never unrolled each round makes them again.
void mark_loops(ir::Kernel& k, const Facts&) {
    const ir::RowStarts starts(k);
    for_each_place(k, [&](ir::Stmt& s, const Place&) {
        const auto* loop = std::get_if<ir::For>(&s.op);
        if (!loop || loop->unroll != 1) return;
        bool found = false;
        ir::for_each_stmt(loop->body, [&](const ir::Stmt& inner) {
            const ir::GlobalView* view = nullptr;
            if (auto* l = std::get_if<ir::LoadGlobal>(&inner.op)) view = &l->src;
            if (auto* c = std::get_if<ir::CpAsync>(&inner.op)) view = &c->src;
            found |= view && !view->dims.empty() && starts.before(view->origin[static_cast<std::size_t>(view->dims.back())]);
        });
        if (found) set_device(s, [](ir::DeviceStmt& d) { d.opaque = true; });
    });
}

namespace {

// Accumulators that no wait has completed, as the text goes: a loop may begin with what its last round left.
class Pins {
public:
    void region(ir::Region& body) {
        ir::Region out;
        for (ir::Stmt& s : body) {
            if (auto* f = std::get_if<ir::For>(&s.op)) left_by(f->body), region(f->body);
            if (auto* i = std::get_if<ir::If>(&s.op)) region(i->then), region(i->otherwise);
            if (auto* r = std::get_if<ir::Role>(&s.op)) region(r->body);
            if (auto* e = std::get_if<ir::Elect>(&s.op)) region(e->body);
            if (auto* w = std::get_if<ir::Wgmma>(&s.op)) issue(w->acc);
            commits_ += std::holds_alternative<ir::WgmmaCommit>(s.op);
            std::vector<int> back;
            if (auto* w = std::get_if<ir::WgmmaWait>(&s.op)) back = complete(w->pending);
            const ir::Loc loc = s.loc;
            out.push_back(std::move(s));
            if (!back.empty()) out.push_back({ir::Pin{std::move(back)}, loc});
        }
        body = std::move(out);
    }

private:
    struct Flying {
        int fragment = 0, commits = 0;  // commits before its newest wgmma
    };
    void issue(int acc) {
        auto known = std::find_if(flying_.begin(), flying_.end(), [&](const Flying& f) { return f.fragment == acc; });
        if (known == flying_.end()) flying_.push_back({acc, commits_});
        else known->commits = commits_;
    }
    std::vector<int> complete(int pending) {
        const auto done = [&](const Flying& f) { return pending == 0 || f.commits < commits_ - pending; };
        std::vector<int> back;
        for (const Flying& f : flying_) {
            if (done(f)) back.push_back(f.fragment);
        }
        std::erase_if(flying_, done);
        return back;
    }
    void left_by(const ir::Region& body) {
        ir::for_each_stmt(body, [&](const ir::Stmt& s) {
            if (auto* w = std::get_if<ir::Wgmma>(&s.op)) {
                const bool known = std::any_of(flying_.begin(), flying_.end(), [&](const Flying& f) { return f.fragment == w->acc; });
                if (!known) flying_.push_back({w->acc, commits_ - 1});  // it may be the newest group before the round
            }
            if (auto* w = std::get_if<ir::WgmmaWait>(&s.op); w && w->pending == 0) flying_.clear();
        });
    }

    std::vector<Flying> flying_;
    int commits_ = 0;  // groups that the text so far has closed
};

}  // namespace

void pin_accumulators(ir::Kernel& k, const Facts&) {
    std::vector<bool> accumulates(k.fragments.size());
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* w = std::get_if<ir::Wgmma>(&s.op)) accumulates[static_cast<std::size_t>(w->acc)] = true;
    });
    // ptxas serialises the wgmmas when it sees a constant where their accumulator begins.
    for_each_place(k, [&](ir::Stmt& s, const Place&) {
        const auto* c = std::get_if<ir::Compute>(&s.op);
        if (c && c->value->op == ir::ElementOp::number && accumulates[static_cast<std::size_t>(c->dst)])
            set_device(s, [](ir::DeviceStmt& d) { d.pinned = true; });
    });
    Pins().region(k.body);
}

void add_carriers(ir::Kernel& k, const Facts&) {
    if (k.teams.empty()) return;
    ir::DeviceKernel device = *k.device;
    for (std::size_t i = 0; i < k.teams.size(); ++i) {
        device.carriers.push_back({static_cast<int>(i), device.threads});
        device.threads += device.carriers.back().threads;
    }
    k.device = std::make_shared<const ir::DeviceKernel>(std::move(device));
    // The kernel's own warps meet without the carriers.
    for_each_place(k, [&](ir::Stmt& s, const Place&) {
        if (std::holds_alternative<ir::BlockSync>(s.op)) s.op = ir::NamedSync{ir::Expr(0), 32 * k.warps};
    });
}

}  // namespace tw::device
