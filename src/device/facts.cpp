#include "device/facts.h"

#include <functional>
#include <numeric>

namespace tw::device {

using ir::Expr;
using ir::ExprKind;

Facts::Facts(const ir::Kernel& kernel) : k_(kernel) {
    const std::size_t n = k_.vars.size();
    non_negative_.assign(n, true);
    value_.assign(n, std::nullopt);
    assignments_.assign(n, 0);
    loop_lo_.assign(n, std::nullopt);
    loop_step_.assign(n, std::nullopt);
    std::vector<std::pair<int, Expr>> sources;
    ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op)) {
            sources.emplace_back(a->var, a->value);
            const auto id = static_cast<std::size_t>(a->var);
            // `multiple` uses divisors alone, so a value that is made from variables that change later is as good as any.
            value_[id] = assignments_[id]++ == 0 ? std::optional(a->value) : std::nullopt;
        }
        if (auto* f = std::get_if<ir::For>(&s.op)) {
            sources.emplace_back(f->var, f->lo);
            loop_lo_[static_cast<std::size_t>(f->var)] = f->lo;
            loop_step_[static_cast<std::size_t>(f->var)] = f->step;
        }
    });
    for (bool changed = true; changed;) {
        changed = false;
        for (const auto& [var, value] : sources) {
            const auto id = static_cast<std::size_t>(var);
            if (non_negative_[id] && !non_negative(value)) non_negative_[id] = false, changed = true;
        }
    }
}

bool Facts::non_negative(const Expr& e) const {
    auto arg = [&](std::size_t i) { return non_negative(e->args[i]); };
    switch (e.kind()) {
        case ExprKind::constant: return e->value >= 0;
        // A variable that a step has added is the slot or the phase of a counter.
        case ExprKind::var:
            return static_cast<std::size_t>(e->id) >= non_negative_.size() || non_negative_[static_cast<std::size_t>(e->id)];
        case ExprKind::size:
        case ExprKind::block_index:
        case ExprKind::grid_size:
        case ExprKind::cluster_rank: return true;
        case ExprKind::add:
        case ExprKind::mul:
        case ExprKind::floor_div:
        case ExprKind::min:
        case ExprKind::bit_xor:
        case ExprKind::shift_left:
        case ExprKind::shift_right: return arg(0) && arg(1);
        case ExprKind::sub: {  // (x + c) - d with d <= c
            const auto d = e->args[1].as_constant();
            if (!d || e->args[0].kind() != ExprKind::add) return false;
            const auto c = e->args[0]->args[1].as_constant();
            return c && *c >= *d && non_negative(e->args[0]->args[0]);
        }
        case ExprKind::max:
        case ExprKind::bit_and: return arg(0) || arg(1);
        case ExprKind::quotient:
        case ExprKind::remainder: return true;
        case ExprKind::mod: return arg(1);
        case ExprKind::select: return arg(1) && arg(2);
        case ExprKind::lt:
        case ExprKind::le:
        case ExprKind::eq:
        case ExprKind::ne:
        case ExprKind::logic_and:
        case ExprKind::logic_or:
        case ExprKind::logic_not: return true;
        default: return false;
    }
}

std::int64_t Facts::multiple(const Expr& e) const {
    auto arg = [&](std::size_t i) { return multiple(e->args[i]); };
    switch (e.kind()) {
        case ExprKind::constant: return e->value < 0 ? -e->value : e->value;
        case ExprKind::size: {
            std::int64_t known = 1;
            for (const ir::Assumption& a : k_.assumptions) {
                const Expr& c = a.condition;
                if (c.kind() != ExprKind::eq || !c->args[1].is_constant(0) || c->args[0].kind() != ExprKind::mod) continue;
                const Expr& x = c->args[0]->args[0];
                if (x.kind() != ExprKind::size || x->id != e->id) continue;
                if (auto n = c->args[0]->args[1].as_constant(); n && *n > 0) known = std::lcm(known, *n);
            }
            return known;
        }
        case ExprKind::var: {
            const auto id = static_cast<std::size_t>(e->id);
            if (id >= value_.size()) return 1;
            if (value_[id]) return multiple(*value_[id]);
            if (loop_lo_[id]) return std::gcd(multiple(*loop_lo_[id]), multiple(*loop_step_[id]));
            return 1;
        }
        case ExprKind::mul: return arg(0) * arg(1);
        case ExprKind::add:
        case ExprKind::sub:
        case ExprKind::min:
        case ExprKind::max: return std::gcd(arg(0), arg(1));
        case ExprKind::select: return std::gcd(arg(1), arg(2));
        default: return 1;
    }
}

bool Facts::whole_vectors(const Expr& limit, const Expr& origin, const Expr& end, int width) const {
    auto is_assigned = [&](const Expr& e) {
        return e.kind() == ExprKind::var && static_cast<std::size_t>(e->id) < value_.size() && value_[static_cast<std::size_t>(e->id)];
    };
    auto value = [&](Expr e) {
        while (is_assigned(e)) e = *value_[static_cast<std::size_t>(e->id)];
        return e;
    };
    auto same = [&](const Expr& a, const Expr& b) { return ir::same(a, b) || ir::same(value(a), value(b)); };
    const Expr sum = value(limit);
    if (sum.kind() != ExprKind::add || !same(sum->args[0], origin) || sum->args[1].kind() != ExprKind::mul) return false;
    const Expr &quotient = sum->args[1]->args[0], &factor = sum->args[1]->args[1];
    if (quotient.kind() != ExprKind::floor_div || quotient->args[0].kind() != ExprKind::sub || !same(quotient->args[1], factor))
        return false;
    const auto n = factor.as_constant();
    return n && *n > 0 && *n % width == 0 && same(quotient->args[0]->args[0], end) && same(quotient->args[0]->args[1], origin);
}

int Facts::ring_period(int var) const {
    if (k_.vars[static_cast<std::size_t>(var)].kind != ir::Variable::Kind::scalar) return 0;
    const Expr self = ir::var_expr(var);
    bool legal = true;
    std::int64_t period = 0;
    std::function<void(const Expr&)> look = [&](const Expr& e) {
        if (e.kind() == ExprKind::mod && ir::same(e->args[0], self)) {
            auto c = e->args[1].as_constant();
            if (!c || (period && period != *c)) legal = false;
            else period = *c;
        }
        for (const Expr& a : e->args) look(a);
    };
    ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op)) {
            if (a->var == var && !a->value.is_constant(0) && !ir::same(a->value, self + Expr(1))) legal = false;
            look(a->value);
        } else if (auto* w = std::get_if<ir::BarrierWait>(&s.op)) look(w->barrier.slot), look(w->parity);
        else if (auto* b = std::get_if<ir::BarrierArrive>(&s.op)) look(b->barrier.slot);
    });
    return legal && period > 1 ? static_cast<int>(period) : 0;
}

}  // namespace tw::device
