// Is a kernel in its device form complete, and does each attribute stand where it means something?
#include <functional>
#include <set>

#include "device/form.h"
#include "ir/team.h"

namespace tw::device {
namespace {

class Check {
public:
    explicit Check(const ir::Kernel& k) : k_(k) {}

    std::vector<std::string> run() {
        if (!k_.device) return {"the kernel is in a tile form"};
        frame();
        ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) { written(s); });
        int next = 0;
        ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
            if (s.number != next++) say(s, "is not numbered in its place");
            stmt(s);
        });
        return std::move(found_);
    }

private:
    void say(const ir::Stmt& s, const std::string& what) { found_.push_back("`" + ir::print(k_, s) + "` " + what); }

    void written(const ir::Stmt& s) {
        if (auto* x = std::get_if<ir::StoreGlobal>(&s.op)) written_.insert(x->dst.tensor);
        if (auto* x = std::get_if<ir::AtomicAdd>(&s.op)) written_.insert(x->dst.tensor);
        if (auto* x = std::get_if<ir::TmaStore>(&s.op)) written_.insert(k_.tensor_maps[static_cast<std::size_t>(x->map)].tensor);
    }

    void frame() {
        int threads = 32 * k_.warps;
        for (const ir::Carrier& c : k_.device->carriers) {
            if (c.first_thread != threads || c.threads != 96) found_.push_back("three warps carry a team's messages, after all others");
            threads += c.threads;
        }
        if (k_.device->carriers.size() != k_.teams.size()) found_.push_back("every team has its carriers");
        if (k_.device->threads != threads || threads > 1024)
            found_.push_back("a block has its own threads and the carriers', 1024 at most");
        for (const ir::Team& t : k_.teams) {
            if (t.bytes != ir::team_box_bytes(t, k_.warps)) found_.push_back("the mailboxes of `" + t.name + "` have another size");
            if (t.byte_offset < 0 || t.byte_offset % 8 || t.byte_offset + t.bytes > k_.shared_bytes)
                found_.push_back("the mailboxes of `" + t.name + "` lie outside the arena");
        }
    }

    void stmt(const ir::Stmt& s) {
        const ir::DeviceStmt plain;
        const ir::DeviceStmt& how = s.device ? *s.device : plain;
        const auto* compute = std::get_if<ir::Compute>(&s.op);
        const auto* fold = std::get_if<ir::Reduce>(&s.op);
        if ((how.mask || how.search || how.unless_ones >= 0 || how.in_words || how.pinned) && !compute)
            say(s, "computes nothing that could be masked, searched or left out");
        if (how.mask && compute && compute->value->op != ir::ElementOp::select) say(s, "has no mask to be split");
        if (bool(how.fold) != bool(fold)) say(s, "says how it folds exactly where it does");
        if (fold && how.fold && how.fold->cannot.empty()) folds(s, *fold, *how.fold);
        const ir::GlobalView* view = view_of(s);
        if (bool(how.access) != bool(view)) say(s, "says what it asks exactly where it reads or writes a tensor");
        if (view && how.access) access(s, *view, *how.access);
        if (how.ring && (!std::holds_alternative<ir::Assign>(s.op) || how.ring->period < 2)) say(s, "counts no ring");
        if (how.opaque && !std::holds_alternative<ir::For>(s.op)) say(s, "is no loop");
        if (std::holds_alternative<ir::BlockSync>(s.op) && !k_.teams.empty()) say(s, "would wait for the warps that carry messages");
    }

    void folds(const ir::Stmt& s, const ir::Reduce& op, const ir::FoldPlan& plan) {
        const int values = k_.fragments[static_cast<std::size_t>(op.src)].dist.values();
        const bool words = plan.unit != ir::FoldPlan::Unit::value;
        std::multiset<int> slots;
        for (const auto& part : plan.parts) {
            for (int slot : part) {
                slots.insert(words ? 2 * slot : slot);
                if (words && 2 * slot + 1 < values) slots.insert(2 * slot + 1);
            }
        }
        if (plan.left_over >= 0) slots.insert(plan.left_over);
        int next = 0;
        for (int slot : slots) {
            if (slot != next++) return say(s, "folds a slot of a thread twice, or leaves one out");
        }
        if (next != values) say(s, "leaves slots of a thread out");
        for (int distance : plan.lanes) {
            if (distance < 1 || distance > 16 || (distance & (distance - 1))) say(s, "folds with a lane that there is not");
        }
    }

    static const ir::GlobalView* view_of(const ir::Stmt& s) {
        if (auto* x = std::get_if<ir::LoadGlobal>(&s.op)) return &x->src;
        if (auto* x = std::get_if<ir::StoreGlobal>(&s.op)) return &x->dst;
        if (auto* x = std::get_if<ir::AtomicAdd>(&s.op)) return &x->dst;
        if (auto* x = std::get_if<ir::CpAsync>(&s.op); x && !x->whole_vectors) return &x->src;
        return nullptr;
    }

    void access(const ir::Stmt& s, const ir::GlobalView& view, const ir::AccessPlan& plan) {
        if (plan.dims.size() != view.dims.size() || plan.width < 1) return say(s, "does not say what it asks of each dimension");
        for (std::size_t i = 0; i < view.dims.size(); ++i) {
            const bool inside = i < view.in_bounds.size() && view.in_bounds[i] && !(i < view.limit.size() && view.limit[i]);
            if (!plan.dims[i].tested && !inside) say(s, "leaves a test out that nobody has proved to be needless");
        }
        if (plan.read_only && written_.count(view.tensor)) say(s, "takes the read-only path to a tensor that the kernel writes");
    }

    const ir::Kernel& k_;
    std::set<int> written_;
    std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> illegal_in_device_form(const ir::Kernel& kernel) { return Check(kernel).run(); }

}  // namespace tw::device
