#include "diagnose/mutate_device.h"

#include <chrono>

#include "device/form.h"
#include "device/rewrite.h"
#include "diagnose/failing_trial.h"

namespace tw::diagnose {
namespace {

using device::mapped;
using ir::DeviceStmt;
using ir::Element;
using ir::ElementNode;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;

class DeviceMutants {
public:
    DeviceMutants(const ir::Kernel& kernel, std::string only) : form_(device::device_form(kernel)), only_(std::move(only)) {}

    std::vector<Mutant> take() {
        int place = 0;
        ir::for_each_stmt(form_.body, [&](const Stmt& s) {
            place_ = place++, loc_ = s.loc, text_ = ir::print(form_, s);
            integers(s);
            if (std::holds_alternative<ir::ProxyFence>(s.op))
                change("device/fence", "a fence of the block, not between proxies", [](Stmt& x) { x.op = ir::BlockFence{}; });
            if (s.device) parts(*s.device);
        });
        return std::move(mutants_);
    }

private:
    // A copy of the form with its statement at this place changed.
    void change(const char* operation, const char* what, const std::function<void(Stmt&)>& apply) {
        if (!only_.empty() && only_ != operation) return;
        Mutant m{operation, std::string(what) + ": `" + text_ + "`", loc_, form_};
        int at = 0;
        ir::for_each_stmt(m.kernel.body, [&](Stmt& s) {
            if (at++ == place_) apply(s);
        });
        mutants_.push_back(std::move(m));
    }
    void part(const char* operation, const char* what, const std::function<void(DeviceStmt&)>& apply) {
        change(operation, what, [&](Stmt& s) { device::set_device(s, apply); });
    }

    void parts(const DeviceStmt& d) {
        if (d.mask) {
            part("device/mask", "the mask is taken to hold everywhere", [](DeviceStmt& x) { x.mask->everywhere = Expr(1); });
            if (d.mask->run > 0)
                part("device/mask", "runs twice as long are tested at their ends", [](DeviceStmt& x) { x.mask->run *= 2; });
        }
        if (d.search) {
            part("device/search", "nobody looks", [](DeviceStmt& x) { x.search->own = -1, x.search->any = no(); });
        }
        if (d.fold && d.fold->cannot.empty()) folds(*d.fold);
        if (d.access) accesses(*d.access);
        if (d.ring) {
            part("device/ring", "a slot more", [](DeviceStmt& x) { ++x.ring->period; });
            part("device/ring", "a slot less", [](DeviceStmt& x) { --x.ring->period; });
        }
    }

    void folds(const ir::FoldPlan& plan) {
        if (plan.parts[0].size() > 1) {
            part("device/fold", "a slot left out", [](DeviceStmt& x) { x.fold->parts[0].pop_back(); });
            part("device/fold", "a slot twice", [](DeviceStmt& x) { x.fold->parts[0].back() = x.fold->parts[0].front(); });
        }
        if (!plan.lanes.empty()) {
            part("device/lanes", "a step of the lanes left out", [](DeviceStmt& x) { x.fold->lanes.pop_back(); });
            part("device/lanes", "a step of the lanes twice", [](DeviceStmt& x) { x.fold->lanes.back() = x.fold->lanes.front(); });
        }
        if (plan.meet) part("device/fold", "the halves of a word do not meet", [](DeviceStmt& x) { x.fold->meet = false; });
        if (plan.left_over >= 0) part("device/fold", "the last value left out", [](DeviceStmt& x) { x.fold->left_over = -1; });
        if (plan.flag >= 0) part("device/search", "those who did not look are folded", [](DeviceStmt& x) { x.fold->flag = -1; });
    }

    void accesses(const ir::AccessPlan& plan) {
        using Ends = ir::AccessPlan::Ends;
        for (std::size_t i = 0; i < plan.dims.size(); ++i) {
            if (!plan.dims[i].tested) continue;
            part("device/test", "a test left out", [i](DeviceStmt& x) { x.access->dims[i].tested = false; });
            part("device/test", "the end one element farther",
                 [i](DeviceStmt& x) { x.access->dims[i].end = x.access->dims[i].end + Expr(1); });
            part("device/test", "the end one element nearer",
                 [i](DeviceStmt& x) { x.access->dims[i].end = x.access->dims[i].end - Expr(1); });
            if (plan.dims[i].from_start)
                part("device/test", "the start is not asked for", [i](DeviceStmt& x) { x.access->dims[i].from_start = false; });
        }
        if (plan.ends != Ends::whole)
            part("device/width", "a vector across the end taken whole", [](DeviceStmt& x) { x.access->ends = Ends::whole; });
        if (plan.ends == Ends::between)
            part("device/width", "a vector across the start taken whole", [](DeviceStmt& x) { x.access->ends = Ends::some; });
    }

    // Divisions as C divides, whatever the sign; coordinates by another part.
    void integers(const Stmt& s) {
        auto truncated = [](const Expr& e) {
            if (e.kind() != ExprKind::floor_div && e.kind() != ExprKind::mod) return e;
            return ir::make_expr(e.kind() == ExprKind::mod ? ExprKind::remainder : ExprKind::quotient, e->args);
        };
        bool rounds_down = false;
        Stmt copy = s;
        device::map_exprs(copy, [&](const Expr& e) {
            return mapped(e, [&](const Expr& n) { return rounds_down |= n.kind() == ExprKind::floor_div || n.kind() == ExprKind::mod, n; });
        });
        if (rounds_down)
            change("device/division", "quotients are not rounded down",
                   [&](Stmt& x) { device::map_exprs(x, [&](const Expr& e) { return mapped(e, truncated); }); });
        const auto* c = std::get_if<ir::Compute>(&s.op);
        if (!c) return;
        auto nodes = [&](const std::function<bool(const ElementNode&)>& is) {
            bool any = false;
            mapped(c->value, [&](const Element& n) { return any |= is(*n), n; });
            return any;
        };
        auto rewrite = [&](const char* operation, const char* what, const std::function<bool(const ElementNode&)>& is,
                           const std::function<void(ElementNode&)>& apply) {
            if (!nodes(is)) return;
            change(operation, what, [&](Stmt& x) {
                auto& value = std::get<ir::Compute>(x.op).value;
                value = mapped(value, [&](const Element& n) -> Element {
                    if (!is(*n)) return n;
                    auto other = std::make_shared<ElementNode>(*n);
                    apply(*other);
                    return other;
                });
            });
        };
        using Part = ElementNode::Part;
        const auto is_part = [](const ElementNode& n) { return n.op == ir::ElementOp::coordinate && n.part == Part::value; };
        rewrite("device/coordinate", "the value's part of a coordinate left out", is_part, [](ElementNode& n) { n.run = 1 << 20; });
        rewrite("device/coordinate", "the value's part of a coordinate for the whole", is_part,
                [](ElementNode& n) { n.part = Part::whole; });
        rewrite(
            "device/division", "a quotient of tile elements is not rounded down",
            [](const ElementNode& n) { return n.op == ir::ElementOp::div && n.dtype == ir::DType::I32 && !n.plain; },
            [](ElementNode& n) { n.plain = true; });
        rewrite(
            "device/function", "GELU for what is not GELU", [](const ElementNode& n) { return n.op == ir::ElementOp::erf; },
            [](ElementNode& n) { n.op = ir::ElementOp::gelu; });
    }

    static Element no() {
        auto node = std::make_shared<ElementNode>();
        node->op = ir::ElementOp::number, node->dtype = ir::DType::Bool;
        return node;
    }

    const ir::Kernel form_;
    const std::string only_;
    int place_ = 0;
    ir::Loc loc_;
    std::string text_;
    std::vector<Mutant> mutants_;
};

}  // namespace

const std::vector<MutationOperator>& device_mutation_operators() {
    static const std::vector<MutationOperator> list = {
        {"device/mask", "a mask is tested for fewer elements than it cuts"},
        {"device/search", "the wrong threads look for a value, or are folded"},
        {"device/fold", "a thread folds one of its values twice or not at all"},
        {"device/lanes", "lanes fold with the wrong ones"},
        {"device/test", "a bounds test is left out or off by one"},
        {"device/width", "a vector that lies across an end is taken whole"},
        {"device/ring", "slot and phase of a ring drift from its counter"},
        {"device/division", "a quotient is not rounded down"},
        {"device/coordinate", "a comparison takes another part of a coordinate"},
        {"device/function", "another function"},
        {"device/fence", "a proxy fence is none"},
    };
    return list;
}

std::vector<Mutant> device_mutants_of(const ir::Kernel& kernel, const std::string& operation) {
    return DeviceMutants(kernel, operation).take();
}

Judgement judge_device(const ir::Kernel& mutant, const JudgeOptions& options) {
    Judgement j;
    const auto start = std::chrono::steady_clock::now();
    if (const auto wrong = device::illegal_in_device_form(mutant); !wrong.empty()) {
        j.verdict = MutantVerdict::illegal;
        j.evidence = wrong.front();
    } else {
        TrialSearch search;
        search.seconds = options.trial_seconds;
        search.trials = options.trials;
        search.seed = options.seed;
        j.evidence = failing_trial(mutant, search);
        j.real = !j.evidence.empty();
        j.verdict = j.real ? MutantVerdict::caught : MutantVerdict::undecided;
    }
    j.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return j;
}

}  // namespace tw::diagnose
