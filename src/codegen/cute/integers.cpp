// Integer expressions as C++ text, and what is known of their sign and divisors.
#include <numeric>

#include "codegen/cute/printer.h"

namespace tw::codegen::cute {

using ir::Expr;
using ir::ExprKind;

std::string Printer::expr(const Expr& e, bool wide) {
    auto arg = [&](std::size_t i) { return expr(e->args[i], wide); };
    auto infix = [&](const char* op) { return "(" + arg(0) + " " + op + " " + arg(1) + ")"; };
    auto leaf = [&](const std::string& text) { return wide ? "int64_t(" + text + ")" : text; };
    const bool natural = e->args.size() == 2 && non_negative(e->args[0]) && non_negative(e->args[1]);
    switch (e.kind()) {
        case ExprKind::constant: return e->value < 0 ? fmt::format("({})", e->value) : std::to_string(e->value);
        case ExprKind::size: return leaf(size_names_[static_cast<std::size_t>(e->id)]);
        case ExprKind::var: return leaf(var_names_[static_cast<std::size_t>(e->id)]);
        case ExprKind::block_index: return leaf(fmt::format("int(blockIdx.{})", "xyz"[e->id]));
        case ExprKind::grid_size: return leaf(fmt::format("int(gridDim.{})", "xyz"[e->id]));
        case ExprKind::cluster_rank: return leaf("int(block_rank_in_cluster())");
        case ExprKind::element: {
            std::string list;
            for (std::size_t i = 0; i < e->args.size(); ++i) list += (i ? ", " : "") + expr(e->args[i]);
            return leaf(fmt::format("int({}({}))", tensor_names_[static_cast<std::size_t>(e->id)], list.empty() ? "0" : list));
        }
        case ExprKind::add: return infix("+");
        case ExprKind::sub: return infix("-");
        case ExprKind::mul: return infix("*");
        case ExprKind::floor_div:
            if (natural) return infix("/");
            use("floor_div");
            return "tw::floor_div(" + arg(0) + ", " + arg(1) + ")";
        case ExprKind::mod:
            if (natural) return infix("%");
            use("floor_div");
            return "tw::floor_mod(" + arg(0) + ", " + arg(1) + ")";
        case ExprKind::min: return "cute::min(" + arg(0) + ", " + arg(1) + ")";
        case ExprKind::max: return "cute::max(" + arg(0) + ", " + arg(1) + ")";
        case ExprKind::lt: return infix("<");
        case ExprKind::le: return infix("<=");
        case ExprKind::eq: return infix("==");
        case ExprKind::ne: return infix("!=");
        case ExprKind::logic_and: return infix("&&");
        case ExprKind::logic_or: return infix("||");
        case ExprKind::logic_not: return "(!" + arg(0) + ")";
        case ExprKind::select: return "(" + arg(0) + " ? " + arg(1) + " : " + arg(2) + ")";
        case ExprKind::bit_xor: return infix("^");
        case ExprKind::bit_and: return infix("&");
        case ExprKind::shift_left: return infix("<<");
        case ExprKind::shift_right: return infix(">>");
    }
    return "0";
}

std::string Printer::quotient(const Expr& e, int by) {
    if (by == 1) return expr(e);
    if (auto c = e.as_constant()) return std::to_string(*c / by);
    if (e.kind() == ExprKind::mul) {
        for (std::size_t i = 0; i < 2; ++i) {
            const auto factor = e->args[i].as_constant();
            if (factor && *factor % by == 0)
                return *factor == by ? expr(e->args[1 - i]) : fmt::format("({} * {})", expr(e->args[1 - i]), *factor / by);
        }
    }
    return fmt::format("({} / {})", expr(e), by);
}

bool Printer::non_negative(const Expr& e) const {
    auto arg = [&](std::size_t i) { return non_negative(e->args[i]); };
    switch (e.kind()) {
        case ExprKind::constant: return e->value >= 0;
        case ExprKind::var: return var_non_negative_[static_cast<std::size_t>(e->id)];
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
        case ExprKind::mod: return arg(1);
        case ExprKind::select: return arg(1) && arg(2);
        case ExprKind::element: return false;
        default: return true;  // sizes, indices of blocks, conditions
    }
}

std::int64_t Printer::multiple(const Expr& e) const {
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
            if (var_value_[id]) return multiple(*var_value_[id]);
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

void Printer::analyse_variables() {
    const std::size_t n = k_.vars.size();
    var_non_negative_.assign(n, true);
    var_value_.assign(n, std::nullopt);
    var_assignments_.assign(n, 0);
    loop_lo_.assign(n, std::nullopt);
    loop_step_.assign(n, std::nullopt);
    std::vector<std::pair<int, Expr>> sources;
    ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op)) {
            const auto id = static_cast<std::size_t>(a->var);
            sources.emplace_back(a->var, a->value);
            var_value_[id] = var_assignments_[id]++ == 0 ? std::optional(a->value) : std::nullopt;
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
            if (var_non_negative_[id] && !non_negative(value)) var_non_negative_[id] = false, changed = true;
        }
    }
}

}  // namespace tw::codegen::cute
