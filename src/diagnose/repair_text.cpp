// Expressions of the last form, written as the source would have them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/explain.h"
#include "diagnose/repair_list.h"

namespace tw::diagnose {
namespace {

using ir::Element;
using ir::ElementOp;
using ir::Expr;
using ir::ExprKind;

std::string number_text(double x) {
    if (std::isinf(x)) return x < 0 ? "float(\"-inf\")" : "float(\"inf\")";
    return fmt::format("{:.9g}", x);
}

const char* sign_of(ElementOp op) {
    switch (op) {
        case ElementOp::add: return "+";
        case ElementOp::sub: return "-";
        case ElementOp::mul: return "*";
        case ElementOp::div: return "/";
        case ElementOp::mod: return "%";
        case ElementOp::lt: return "<";
        case ElementOp::le: return "<=";
        case ElementOp::gt: return ">";
        case ElementOp::ge: return ">=";
        case ElementOp::eq: return "==";
        case ElementOp::ne: return "!=";
        case ElementOp::logic_and: return "&";
        case ElementOp::logic_or: return "|";
        default: return nullptr;
    }
}
// Binds tighter: higher.
int tightness(ElementOp op) {
    switch (op) {
        case ElementOp::logic_and:
        case ElementOp::logic_or: return 1;
        case ElementOp::lt:
        case ElementOp::le:
        case ElementOp::gt:
        case ElementOp::ge:
        case ElementOp::eq:
        case ElementOp::ne: return 2;
        case ElementOp::add:
        case ElementOp::sub: return 3;
        case ElementOp::mul:
        case ElementOp::div:
        case ElementOp::mod: return 4;
        default: return 9;
    }
}

// One pair of parentheses around the whole says nothing.
std::string bare(std::string s) {
    while (s.size() > 2 && s.front() == '(' && s.back() == ')') {
        int depth = 0;
        for (std::size_t i = 0; i + 1 < s.size(); ++i) {
            depth += s[i] == '(' ? 1 : s[i] == ')' ? -1 : 0;
            if (depth == 0) return s;
        }
        s = s.substr(1, s.size() - 2);
    }
    return s;
}

// A name that stands twice loses the number that keeps the two apart in the IR.
std::string fragment_name(const ir::Kernel& k, int id) {
    const std::string& name = k.fragments[static_cast<std::size_t>(id)].name;
    const auto at = name.rfind('_');
    if (at == std::string::npos || at == 0 || at + 1 == name.size() || name.find_first_not_of("0123456789", at + 1) != std::string::npos)
        return name;
    const std::string base = name.substr(0, at);
    const bool twice = std::any_of(k.fragments.begin(), k.fragments.end(), [&](const ir::Fragment& f) { return f.name == base; });
    return twice ? base : name;
}

std::string text_of(const ir::Kernel& k, const Element& e, int outside) {
    switch (e->op) {
        case ElementOp::fragment: return fragment_name(k, e->id);
        case ElementOp::number: return number_text(e->number);
        case ElementOp::scalar: return k.scalars[static_cast<std::size_t>(e->id)].name;
        case ElementOp::index: {
            const std::string s = source_text(k, e->index);
            return outside > 2 && s.find(' ') != std::string::npos ? "(" + s + ")" : s;
        }
        case ElementOp::coordinate: return fmt::format("coord({})", e->id);
        case ElementOp::cast: return text_of(k, e->args[0], outside);
        default: break;
    }
    if (const char* sign = sign_of(e->op); sign && e->args.size() == 2) {
        const int own = tightness(e->op);
        if (e->op == ElementOp::add && e->args[1]->op == ElementOp::number && e->args[1]->number < 0) {
            return text_of(k, e->args[0], own) + " - " + number_text(-e->args[1]->number);
        }
        const std::string s = text_of(k, e->args[0], own) + " " + sign + " " +
                              text_of(k, e->args[1], own + (e->op == ElementOp::sub || e->op == ElementOp::div));
        return own < outside || (own <= 2 && outside > 0) ? "(" + s + ")" : s;
    }
    std::string s = e->op == ElementOp::select ? "tw.where("
                    : e->op == ElementOp::max  ? "tw.maximum("
                    : e->op == ElementOp::min  ? "tw.minimum("
                                               : std::string(ir::name_of(e->op)) + "(";
    if (e->op == ElementOp::neg) return "-" + text_of(k, e->args[0], 9);
    for (std::size_t i = 0; i < e->args.size(); ++i) s += (i ? ", " : "") + text_of(k, e->args[i], 0);
    return s + ")";
}

std::string cut(std::string s) {
    constexpr std::size_t most = 90;
    return s.size() <= most ? s : s.substr(0, most - 14) + " ... " + s.substr(s.size() - 9);
}

std::string instead(const std::string& before, const std::string& after) { return "`" + cut(after) + "` instead of `" + cut(before) + "`"; }

bool is_leaf(const Element& e) { return e->args.empty(); }

}  // namespace

std::string source_text(const ir::Kernel& k, const Expr& e) {
    ir::ExprNames names = ir::names_of(k);
    names.var = [&k](int id) { return source_name(k, id); };
    return bare(ir::to_string(e, names));
}

std::string source_text(const ir::Kernel& k, const Element& e) { return text_of(k, e, 0); }

std::string instead_text(const ir::Kernel& k, const Expr& before, const Expr& after) {
    return instead(source_text(k, before), source_text(k, after));
}

std::string instead_text(const ir::Kernel& k, const Element& before, const Element& after) {
    Element a = before, b = after, above_a = before, above_b = after;
    while (a->op == b->op && a->args.size() == b->args.size() && a->op != ElementOp::fragment) {
        std::size_t different = a->args.size(), count = 0;
        for (std::size_t i = 0; i < a->args.size(); ++i) {
            if (a->args[i] != b->args[i]) different = i, ++count;
        }
        if (count != 1) break;
        above_a = a, above_b = b;
        a = a->args[different], b = b->args[different];
    }
    // A number alone says little: what it is compared with, added to or divided into says more. Casts and choices around it do not.
    const bool widen = (is_leaf(a) || is_leaf(b)) && sign_of(above_a->op);
    return widen ? instead(source_text(k, above_a), source_text(k, above_b)) : instead(source_text(k, a), source_text(k, b));
}

}  // namespace tw::diagnose
