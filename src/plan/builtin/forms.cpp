#include "plan/builtin/forms.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tw::plan::builtin {
namespace {

std::optional<double> constant_of(const Term& t) {
    if (t->kind == TermKind::constant) return t->number;
    if (t->kind == TermKind::cast) return constant_of(t->args[0]);
    if (t->kind == TermKind::apply && t->name == "neg") {
        if (auto c = constant_of(t->args[0])) return -*c;
    }
    if (t->kind == TermKind::index) {
        if (auto c = t->indices[0].as_constant()) return static_cast<double>(*c);
    }
    return std::nullopt;
}

// where(c, a, k) with a constant k, on either side of c.
struct Choice {
    Term condition, value;
    double other = 0;
};
bool reads(const Term& t) {
    if (t->kind == TermKind::element || t->kind == TermKind::reduce) return true;
    return std::any_of(t->args.begin(), t->args.end(), reads) ||
           std::any_of(t->indices.begin(), t->indices.end(), [](const Expr& e) { return has_gather(e); });
}
// Conditions on indices alone: a choice by data stays where `computes` has it.
std::optional<Choice> choice_of(const Term& t) {
    if (t->kind != TermKind::apply || t->name != "select") return std::nullopt;
    const auto other = constant_of(t->args[2]);
    if (!other || constant_of(t->args[1]) || reads(t->args[0])) return std::nullopt;
    return Choice{t->args[0], t->args[1], *other};
}
Term chosen(const Term& condition, const Term& value, double other) {
    return ir::apply_term("select", {condition, value, ir::constant_term(other)});
}
bool minus_infinity(double x) { return std::isinf(x) && x < 0; }

Term rebuilt(const Term& t, std::vector<Term> args) {
    ir::TermNode n = *t;
    n.args = std::move(args);
    return std::make_shared<const ir::TermNode>(std::move(n));
}

Term lifted_apply(const Term& t) {
    const auto& a = t->args;
    const auto first = a.empty() ? std::nullopt : choice_of(a[0]);
    const auto second = a.size() == 2 ? choice_of(a[1]) : std::nullopt;
    if (t->name == "exp" && first && minus_infinity(first->other))
        return chosen(first->condition, ir::apply_term("exp", {first->value}), 0);
    if ((t->name == "sub" || t->name == "add") && first && minus_infinity(first->other) && !second)
        return chosen(first->condition, ir::apply_term(t->name, {first->value, a[1]}), first->other);
    if (t->name == "add" && second && minus_infinity(second->other) && !first)
        return chosen(second->condition, ir::apply_term("add", {a[0], second->value}), second->other);
    if (t->name == "mul" || t->name == "div") {
        const auto scale = a.size() == 2 ? constant_of(a[1]) : std::nullopt;
        if (first && minus_infinity(first->other) && scale && *scale > 0)
            return chosen(first->condition, ir::apply_term(t->name, {first->value, a[1]}), first->other);
        if (first && first->other == 0 && !second)
            return chosen(first->condition, lifted_apply(ir::apply_term(t->name, {first->value, a[1]})), 0);
        if (t->name == "mul" && second && second->other == 0 && !first)
            return chosen(second->condition, lifted_apply(ir::apply_term("mul", {a[0], second->value})), 0);
    }
    return t;
}

}  // namespace

Term lifted(const Term& t) {
    if (t->args.empty()) return t;
    std::vector<Term> args;
    for (const Term& a : t->args) args.push_back(lifted(a));
    const Term now = rebuilt(t, std::move(args));
    if (now->kind == TermKind::cast) {
        if (const auto c = choice_of(now->args[0]); c && (c->other == 0 || std::isinf(c->other)) && target::info(now->dtype).is_float)
            return chosen(c->condition, rebuilt(now, {c->value}), c->other);
    }
    return now->kind == TermKind::apply ? lifted_apply(now) : now;
}

std::pair<double, Term> factor_of(const Term& body) {
    if (body->kind != TermKind::apply) return {1, body};
    if (const auto c = choice_of(body); c && std::isinf(c->other)) {
        const auto [factor, rest] = factor_of(c->value);
        return factor == 1 ? std::pair(1.0, body) : std::pair(factor, chosen(c->condition, rest, c->other));
    }
    if (body->name != "mul") return {1, body};
    for (std::size_t side : {0U, 1U}) {
        if (const auto k = constant_of(body->args[side]); k && *k > 0 && !std::isinf(*k)) {
            const auto [factor, rest] = factor_of(body->args[1 - side]);
            return {factor * *k, rest};
        }
    }
    return {1, body};
}

bool is_integer_term(const Term& t, const ir::Kernel& spec) {
    switch (t->kind) {
        case TermKind::element: return !target::info(spec.tensors[static_cast<std::size_t>(t->id)].dtype).is_float;
        case TermKind::scalar: return !target::info(spec.scalars[static_cast<std::size_t>(t->id)].dtype).is_float;
        case TermKind::constant: return t->number == std::floor(t->number) && std::abs(t->number) < 2147483648.0;
        case TermKind::index: return true;
        case TermKind::cast: return !target::info(t->dtype).is_float;
        case TermKind::reduce: return is_integer_term(t->args[0], spec);
        case TermKind::apply: break;
    }
    if (t->name == "select") return is_integer_term(t->args[1], spec) && is_integer_term(t->args[2], spec);
    if (t->name != "add" && t->name != "sub" && t->name != "mul" && t->name != "neg" && t->name != "max" && t->name != "min") return false;
    for (const Term& a : t->args)
        if (!is_integer_term(a, spec)) return false;
    return true;
}

bool has_reduction(const Term& t) {
    if (t->kind == TermKind::reduce) return true;
    for (const Term& a : t->args)
        if (has_reduction(a)) return true;
    return false;
}

Term body_of_chain(const Term& reduce) {
    Term at = reduce;
    while (at->kind == TermKind::reduce && at->name == reduce->name) at = at->args[0];
    return at;
}

std::string computes_text(const Expr& e, const TermNames& names) {
    const auto list = [&](const char* function) {
        std::string out = std::string(function) + "(";
        for (std::size_t i = 0; i < e->args.size(); ++i) out += (i ? ", " : "") + computes_text(e->args[i], names);
        return out + ")";
    };
    const auto infix = [&](const char* op) {
        return fmt::format("({} {} {})", computes_text(e->args[0], names), op, computes_text(e->args[1], names));
    };
    switch (e.kind()) {
        case ExprKind::constant: return e->value < 0 ? fmt::format("({})", e->value) : std::to_string(e->value);
        case ExprKind::size: return names.size(e->id);
        case ExprKind::var: return names.variable(e->id);
        case ExprKind::element: {
            std::string out = names.tensor(e->id) + "[";
            for (std::size_t i = 0; i < e->args.size(); ++i) out += (i ? ", " : "") + computes_text(e->args[i], names);
            return out + "]";
        }
        case ExprKind::add: return infix("+");
        case ExprKind::sub: return infix("-");
        case ExprKind::mul: return infix("*");
        case ExprKind::floor_div: return infix("//");
        case ExprKind::mod: return infix("%");
        case ExprKind::min: return list("minimum");
        case ExprKind::max: return list("maximum");
        case ExprKind::lt: return infix("<");
        case ExprKind::le: return infix("<=");
        case ExprKind::eq: return infix("==");
        case ExprKind::ne: return infix("!=");
        case ExprKind::logic_and: return infix("and");
        case ExprKind::logic_or: return infix("or");
        case ExprKind::logic_not: return fmt::format("(not {})", computes_text(e->args[0], names));
        case ExprKind::select: return list("where");
        default: return "?";
    }
}

std::string computes_text(const Term& t, const TermNames& names) {
    const auto arg = [&](std::size_t i) { return computes_text(t->args[i], names); };
    switch (t->kind) {
        case TermKind::element: {
            std::string out = names.tensor(t->id);
            for (std::size_t i = 0; i < t->indices.size(); ++i) out += (i ? ", " : "[") + computes_text(t->indices[i], names);
            return t->indices.empty() ? out : out + "]";
        }
        case TermKind::scalar: return names.scalar(t->id);
        case TermKind::constant: {
            if (std::isinf(t->number)) return t->number < 0 ? "(-inf)" : "inf";
            const std::string text = t->number == std::floor(t->number) && std::abs(t->number) < 1e15
                                         ? fmt::format("{}", static_cast<std::int64_t>(t->number))
                                         : fmt::format("{}", t->number);
            return t->number < 0 ? "(" + text + ")" : text;
        }
        case TermKind::index: return computes_text(t->indices[0], names);
        case TermKind::cast: return fmt::format("{}({})", target::name(t->dtype), arg(0));
        case TermKind::reduce:
            return fmt::format("{}({} in {}:{}, {})", t->name, names.variable(t->id), computes_text(t->indices[0], names),
                               computes_text(t->indices[1], names), arg(0));
        case TermKind::apply: break;
    }
    static const std::map<std::string, const char*> operators = {{"add", "+"},   {"sub", "-"}, {"mul", "*"}, {"div", "/"}, {"lt", "<"},
                                                                 {"le", "<="},   {"gt", ">"},  {"ge", ">="}, {"eq", "=="}, {"ne", "!="},
                                                                 {"and", "and"}, {"or", "or"}, {"pow", "**"}};
    if (const auto op = operators.find(t->name); op != operators.end() && t->args.size() == 2)
        return fmt::format("({} {} {})", arg(0), op->second, arg(1));
    if (t->name == "neg") return fmt::format("(-{})", arg(0));
    if (t->name == "not") return fmt::format("(not {})", arg(0));
    std::string out = t->name == "select" ? "where" : t->name == "max" ? "maximum" : t->name == "min" ? "minimum" : t->name;
    out += "(";
    for (std::size_t i = 0; i < t->args.size(); ++i) out += (i ? ", " : "") + arg(i);
    return out + ")";
}

}  // namespace tw::plan::builtin
