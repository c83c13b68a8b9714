#include "device/form.h"

#include <array>
#include <cmath>

#include "device/rewrite.h"
#include "device/steps.h"

namespace tw::device {

using ir::Element;
using ir::ElementOp;

namespace {

struct Step {
    std::string_view name;
    void (*run)(ir::Kernel&, const Facts&);
};
constexpr Step kSteps[] = {
    {"remarks", keep_remarks},      {"rings", count_rings},      {"functions", shorten_functions},
    {"searches", guard_searches},   {"skips", skip_ones},        {"masks", split_masks},
    {"folds", plan_folds},          {"accesses", plan_accesses}, {"loops", mark_loops},
    {"integers", arrange_integers}, {"late", delay_integers},    {"pins", pin_accumulators},
    {"teams", add_carriers},
};

}  // namespace

std::span<const std::string_view> step_names() {
    static const auto names = [] {
        std::array<std::string_view, std::size(kSteps)> list;
        for (std::size_t i = 0; i < list.size(); ++i) list[i] = kSteps[i].name;
        return list;
    }();
    return names;
}

ir::Kernel device_form(const ir::Kernel& kernel, const StepObserver& observer) {
    if (kernel.device) return kernel;
    const Facts facts(kernel);
    ir::Kernel k = kernel;
    k.device = std::make_shared<const ir::DeviceKernel>(ir::DeviceKernel{32 * k.warps, {}});
    for (const Step& step : kSteps) {
        step.run(k, facts);
        if (observer) observer(step.name, k);
    }
    ir::number_statements(k);
    return k;
}

void keep_remarks(ir::Kernel& k, const Facts&) {
    for_each_place(k, [&](ir::Stmt& s, const Place&) {
        const bool named = std::visit(
            []<class Op>(const Op&) {
                return std::is_same_v<Op, ir::Compute> || std::is_same_v<Op, ir::Reduce> || std::is_same_v<Op, ir::Scan> ||
                       std::is_same_v<Op, ir::Shuffle> || std::is_same_v<Op, ir::LoadGlobal> || std::is_same_v<Op, ir::StoreGlobal> ||
                       std::is_same_v<Op, ir::AtomicAdd> || std::is_same_v<Op, ir::LoadShared> || std::is_same_v<Op, ir::StoreShared> ||
                       std::is_same_v<Op, ir::CpAsync> || std::is_same_v<Op, ir::TmaLoad> || std::is_same_v<Op, ir::TmaStore> ||
                       std::is_same_v<Op, ir::Wgmma> || std::is_same_v<Op, ir::Mma> || std::is_same_v<Op, ir::TeamSend> ||
                       std::is_same_v<Op, ir::TeamReceive>;
            },
            s.op);
        if (named && s.note.empty()) s.note = ir::print(k, s);
    });
}

// ------------------------------------------------------------------------------------------------------------------- functions

namespace {

// x where the product is 0.5 * x * (1 + erf(x / sqrt 2)) with the approximate erf; null where it is something else.
const Element* argument_of_gelu(const Element& product) {
    auto is = [](const Element& e, double value) {
        return e->op == ElementOp::number && static_cast<float>(e->number) == static_cast<float>(value);
    };  // the same f32
    // What a sum or product with this constant has beside it.
    auto beside = [&](const Element& e, ElementOp op, double value) -> const Element* {
        if (e->op != op) return nullptr;
        return is(e->args[0], value) ? &e->args[1] : is(e->args[1], value) ? &e->args[0] : nullptr;
    };
    if (product->op != ElementOp::mul || product->dtype != ir::DType::F32) return nullptr;
    for (std::size_t i = 0; i < 2; ++i) {
        const Element *half = beside(product->args[i], ElementOp::mul, 0.5), *erf = beside(product->args[1 - i], ElementOp::add, 1.0);
        if (!half || !erf || (*erf)->op != ElementOp::erf || !(*erf)->approximate) continue;
        const Element* scaled = beside((*erf)->args[0], ElementOp::mul, 0.70710678118654752);
        if (scaled && same(*half, *scaled)) return half;
    }
    return nullptr;
}

}  // namespace

void shorten_functions(ir::Kernel& k, const Facts&) {
    for_each_place(k, [&](ir::Stmt& s, const Place&) {
        auto* c = std::get_if<ir::Compute>(&s.op);
        if (!c) return;
        c->value = mapped(c->value, [](const Element& e) -> Element {
            const Element* x = argument_of_gelu(e);
            if (!x) return e;
            auto gelu = std::make_shared<ir::ElementNode>();
            gelu->op = ElementOp::gelu, gelu->dtype = e->dtype, gelu->approximate = true, gelu->args = {*x};
            return gelu;
        });
    });
}

}  // namespace tw::device
