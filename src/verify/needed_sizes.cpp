#include "verify/needed_sizes.h"

#include <algorithm>
#include <string>

#include "base/index.h"

namespace tw::verify {

using ir::Expr;
using ir::ExprKind;
using ir::Term;
using ir::TermKind;

namespace {

// Sizes of which none may be 0 if the expression is not to be.
void add_factors(const Expr& e, std::set<int>& out) {
    if (e.kind() == ExprKind::size) out.insert(e->id);
    if (e.kind() == ExprKind::mul)
        for (const Expr& a : e->args) add_factors(a, out);
}

// Sizes of which none may be 0 if the term is not to be: a sum over nothing is.
void add_divisors(const Term& t, std::set<int>& out) {
    if (t->kind == TermKind::index) add_factors(t->indices[0], out);
    if (t->kind == TermKind::cast || (t->kind == TermKind::apply && t->name == "mul"))
        for (const Term& a : t->args) add_divisors(a, out);
    if (t->kind == TermKind::reduce && t->name == "sum" && t->indices[0].is_constant(0)) add_factors(t->indices[1], out);
}

// Is the result infinite, or no number, where this argument is?
bool passes_infinity_on(const std::string& function, std::size_t argument) {
    static const std::set<std::string> all = {"add", "sub", "neg", "mul", "fma", "abs", "log", "log2", "sqrt"};
    return all.count(function) > 0 || (function == "div" && argument == 0);
}

// The body of a fold counts where the fold has an element; what a condition may not choose does not. `infinite`: an infinity here is one of
// the whole equation. A maximum over nothing is one, and maximum(0, max(n, X[n])) over nothing is 0.
void add_needed(const Term& t, const std::vector<ir::Tensor>& tensors, bool infinite, std::set<int>& out) {
    if (t->kind == TermKind::element) {
        for (const Expr& extent : tensors[at(t->id)].dims) add_factors(extent, out);
    } else if (t->kind == TermKind::reduce) {
        if (!t->indices[0].is_constant(0)) return;
        std::set<int> range;
        add_factors(t->indices[1], range);
        if ((t->name == "max" || t->name == "min") && infinite) out.insert(range.begin(), range.end());
        const bool some = t->indices[1].kind() == ExprKind::size || t->indices[1].kind() == ExprKind::constant;
        if (!some || !std::includes(out.begin(), out.end(), range.begin(), range.end())) return;
    } else if (t->kind == TermKind::apply && t->name == "select") {
        return;
    } else if (t->kind == TermKind::apply && t->name == "div") {
        add_divisors(t->args[1], out);
    }
    for (std::size_t i = 0; i < t->args.size(); ++i)
        add_needed(t->args[i], tensors, infinite && (t->kind != TermKind::apply || passes_infinity_on(t->name, i)), out);
}

}  // namespace

std::set<int> sizes_needed(const ir::Computes& computes, const std::vector<ir::Tensor>& tensors) {
    std::set<int> common;
    for (std::size_t i = 0; i < computes.equations.size(); ++i) {
        const ir::Equation& e = computes.equations[i];
        std::set<int> mine;
        for (const Expr& extent : e.output_extents) add_factors(extent, mine);
        for (std::size_t known = mine.size() + 1; known != mine.size();) known = mine.size(), add_needed(e.value, tensors, true, mine);
        if (i == 0) common = mine;
        std::erase_if(common, [&](int size) { return mine.count(size) == 0; });
    }
    return common;
}

}  // namespace tw::verify
