#include "verify/needed_sizes.h"

#include <algorithm>

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

void add_divisors(const Term& t, std::set<int>& out) {
    if (t->kind == TermKind::index) add_factors(t->indices[0], out);
    if (t->kind == TermKind::cast || (t->kind == TermKind::apply && t->name == "mul"))
        for (const Term& a : t->args) add_divisors(a, out);
}

// The body of a fold counts where the fold has an element; what a condition may not choose does not.
void add_needed(const Term& t, const std::vector<ir::Tensor>& tensors, std::set<int>& out) {
    if (t->kind == TermKind::element) {
        for (const Expr& extent : tensors[at(t->id)].dims) add_factors(extent, out);
    } else if (t->kind == TermKind::reduce) {
        if (!t->indices[0].is_constant(0)) return;
        std::set<int> range;
        add_factors(t->indices[1], range);
        if (t->name == "max" || t->name == "min") out.insert(range.begin(), range.end());
        const bool some = t->indices[1].kind() == ExprKind::size || t->indices[1].kind() == ExprKind::constant;
        if (!some || !std::includes(out.begin(), out.end(), range.begin(), range.end())) return;
    } else if (t->kind == TermKind::apply && t->name == "select") {
        return;
    } else if (t->kind == TermKind::apply && t->name == "div") {
        add_divisors(t->args[1], out);
    }
    for (const Term& a : t->args) add_needed(a, tensors, out);
}

}  // namespace

std::set<int> sizes_needed(const ir::Computes& computes, const std::vector<ir::Tensor>& tensors) {
    std::set<int> common;
    for (std::size_t i = 0; i < computes.equations.size(); ++i) {
        const ir::Equation& e = computes.equations[i];
        std::set<int> mine;
        for (const Expr& extent : e.output_extents) add_factors(extent, mine);
        for (std::size_t known = mine.size() + 1; known != mine.size();) known = mine.size(), add_needed(e.value, tensors, mine);
        if (i == 0) common = mine;
        std::erase_if(common, [&](int size) { return mine.count(size) == 0; });
    }
    return common;
}

}  // namespace tw::verify
