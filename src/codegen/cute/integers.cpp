// Integer expressions as C++ text.
#include "codegen/cute/printer.h"
#include "codegen/operator_text.h"

namespace tw::codegen::cute {

using ir::Expr;
using ir::ExprKind;

std::string Printer::expr(const Expr& e, bool wide) {
    auto arg = [&](std::size_t i) { return expr(e->args[i], wide); };
    auto infix = [&](const char* op) { return "(" + arg(0) + " " + op + " " + arg(1) + ")"; };
    auto leaf = [&](const std::string& text) { return wide ? "int64_t(" + text + ")" : text; };
    const bool natural = e->args.size() == 2 && facts_.non_negative(e->args[0]) && facts_.non_negative(e->args[1]);
    if (const char* sign = infix_sign(e.kind())) return infix(sign);
    switch (e.kind()) {
        case ExprKind::constant: return e->value < 0 ? fmt::format("({})", e->value) : std::to_string(e->value);
        case ExprKind::size: return leaf(names_.sizes[static_cast<std::size_t>(e->id)]);
        case ExprKind::var: return leaf(names_.vars[static_cast<std::size_t>(e->id)]);
        case ExprKind::block_index: return leaf(fmt::format("int(blockIdx.{})", "xyz"[e->id]));
        case ExprKind::grid_size: return leaf(fmt::format("int(gridDim.{})", "xyz"[e->id]));
        case ExprKind::cluster_rank: return leaf("int(block_rank_in_cluster())");
        case ExprKind::element: {
            std::string list;
            for (std::size_t i = 0; i < e->args.size(); ++i) list += (i ? ", " : "") + expr(e->args[i]);
            return leaf(fmt::format("int({}({}))", names_.tensors[static_cast<std::size_t>(e->id)], list.empty() ? "0" : list));
        }
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
        case ExprKind::logic_not: return "(!" + arg(0) + ")";
        case ExprKind::select: return "(" + arg(0) + " ? " + arg(1) + " : " + arg(2) + ")";
        default: return "0";
    }
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
    if ((e.kind() == ExprKind::add || e.kind() == ExprKind::sub) && facts_.multiple(e->args[0]) % by == 0)
        return fmt::format("({} {} {})", quotient(e->args[0], by), infix_sign(e.kind()), quotient(e->args[1], by));
    return fmt::format("({} / {})", expr(e), by);
}

}  // namespace tw::codegen::cute
