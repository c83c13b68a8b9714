#include "lower/facts.h"

#include <numeric>
#include <unordered_map>

namespace tw::lower {
namespace {

using ir::Expr;
using ir::ExprKind;

constexpr std::int64_t kHighest = std::int64_t{1} << 20;

// Affine form over non-affine sub-terms, compared structurally.
struct Affine {
    std::unordered_map<Expr, std::int64_t, ir::ExprHash, ir::ExprSame> terms;
    std::int64_t constant = 0;
    bool overflow = false;
};

void accumulate(const Expr& e, std::int64_t scale, Affine& out) {
    auto scaled = [&](std::int64_t by) {
        std::int64_t r = 0;
        if (__builtin_mul_overflow(scale, by, &r)) out.overflow = true;
        return r;
    };
    switch (e.kind()) {
        case ExprKind::constant: {
            std::int64_t v = scaled(e->value);
            if (__builtin_add_overflow(out.constant, v, &out.constant)) out.overflow = true;
            return;
        }
        case ExprKind::add:
            accumulate(e->args[0], scale, out);
            accumulate(e->args[1], scale, out);
            return;
        case ExprKind::sub:
            accumulate(e->args[0], scale, out);
            accumulate(e->args[1], scaled(-1), out);
            return;
        case ExprKind::mul:
            if (auto c = e->args[0].as_constant()) return accumulate(e->args[1], scaled(*c), out);
            if (auto c = e->args[1].as_constant()) return accumulate(e->args[0], scaled(*c), out);
            break;
        default: break;
    }
    std::int64_t& slot = out.terms[e];
    if (__builtin_add_overflow(slot, scale, &slot)) out.overflow = true;
}

std::int64_t power_of_two_in(std::int64_t v) {
    if (v == 0) return kHighest;
    const std::int64_t low = v & -v;
    return low < 0 || low > kHighest ? kHighest : low;
}

void read_assumption(const Expr& e, std::vector<std::int64_t>& sizes) {
    if (e.kind() == ExprKind::logic_and) {
        read_assumption(e->args[0], sizes);
        read_assumption(e->args[1], sizes);
        return;
    }
    if (e.kind() != ExprKind::eq) return;
    for (int side = 0; side < 2; ++side) {
        const Expr& left = e->args[static_cast<std::size_t>(side)];
        const Expr& right = e->args[static_cast<std::size_t>(1 - side)];
        if (left.kind() == ExprKind::mod && right.is_constant(0) && left->args[0].kind() == ExprKind::size) {
            if (auto c = left->args[1].as_constant()) {
                auto& known = sizes[static_cast<std::size_t>(left->args[0]->id)];
                known = std::max(known, power_of_two_in(*c));
            }
        }
        if (left.kind() == ExprKind::size && right.as_constant()) {
            auto& known = sizes[static_cast<std::size_t>(left->id)];
            known = std::max(known, power_of_two_in(*right.as_constant()));
        }
    }
}

}  // namespace

std::optional<std::int64_t> constant_difference(const Expr& a, const Expr& b) {
    Affine form;
    accumulate(b, 1, form);
    accumulate(a, -1, form);
    if (form.overflow) return std::nullopt;
    for (const auto& [term, coefficient] : form.terms) {
        if (coefficient != 0) return std::nullopt;
    }
    return form.constant;
}

Multiples::Multiples(const ir::Kernel& kernel) : sizes_(kernel.sizes.size(), 1), vars_(kernel.vars.size(), kHighest) {
    for (const ir::Assumption& a : kernel.assumptions) read_assumption(a.condition, sizes_);
    for (std::size_t v = 0; v < vars_.size(); ++v) {
        if (kernel.vars[v].kind == ir::Variable::Kind::instance) vars_[v] = 1;
    }
    // Start from the most optimistic answer and weaken to a fixed point: each round can only halve a power of two.
    for (int round = 0; round < 24; ++round) {
        bool changed = false;
        auto weaken = [&](int var, std::int64_t to) {
            auto& known = vars_[static_cast<std::size_t>(var)];
            if (to < known) known = to, changed = true;
        };
        ir::for_each_stmt(kernel.body, [&](const ir::Stmt& s) {
            if (auto* a = std::get_if<ir::Assign>(&s.op)) weaken(a->var, of(a->value));
            if (auto* f = std::get_if<ir::For>(&s.op)) weaken(f->var, std::min(of(f->lo), of(f->step)));
            if (std::get_if<ir::Sugar>(&s.op)) return;
        });
        if (!changed) return;
    }
    for (auto& v : vars_) v = 1;
}

std::int64_t Multiples::of(const Expr& e) const {
    switch (e.kind()) {
        case ExprKind::constant: return power_of_two_in(e->value);
        case ExprKind::size: return sizes_[static_cast<std::size_t>(e->id)];
        case ExprKind::var: return vars_[static_cast<std::size_t>(e->id)];
        case ExprKind::add:
        case ExprKind::sub:
        case ExprKind::min:
        case ExprKind::max: return std::min(of(e->args[0]), of(e->args[1]));
        case ExprKind::mul: return std::min(kHighest, of(e->args[0]) * of(e->args[1]));
        case ExprKind::select: return std::min(of(e->args[1]), of(e->args[2]));
        case ExprKind::shift_left:
            if (auto c = e->args[1].as_constant(); c && *c >= 0 && *c <= 20) return std::min(kHighest, of(e->args[0]) << *c);
            return 1;
        default: return 1;
    }
}

}  // namespace tw::lower
