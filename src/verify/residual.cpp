#include "verify/residual.h"

#include <algorithm>

namespace tw::verify {

using ir::Term;
using ir::TermKind;

namespace {

// Are they one term, with their casts to floats (`casts`) or but for them?
bool same_term(Term a, Term b, bool casts) {
    const auto bare = [&](Term& t) {
        while (!casts && t->kind == TermKind::cast && is_float(t->dtype)) t = Term(t->args[0]);
    };
    bare(a), bare(b);
    if (a == b) return true;
    if (a->kind != b->kind || a->id != b->id || a->number != b->number || a->name != b->name || a->dtype != b->dtype ||
        a->indices.size() != b->indices.size() || a->args.size() != b->args.size())
        return false;
    for (std::size_t i = 0; i < a->indices.size(); ++i)
        if (!ir::same(a->indices[i], b->indices[i])) return false;
    for (std::size_t i = 0; i < a->args.size(); ++i)
        if (!same_term(a->args[i], b->args[i], casts)) return false;
    return true;
}

bool has_residual(const Term& t) {
    const bool subtracts = t->kind == TermKind::apply && t->name == "sub";
    if (subtracts && same_term(t->args[0], t->args[1], false) && !same_term(t->args[0], t->args[1], true)) return true;
    return std::any_of(t->args.begin(), t->args.end(), has_residual);
}

}  // namespace

bool subtracts_own_rounding(const ir::TermNode& t) {
    if (t.kind != TermKind::apply || t.name != "sub") return false;
    Term part = t.args[1];
    while (part->kind == TermKind::cast && is_float(part->dtype)) part = Term(part->args[0]);
    return same_term(t.args[0], part, true);
}

bool states_rounding_error(const ir::Computes& computes) {
    return std::any_of(computes.equations.begin(), computes.equations.end(), [](const ir::Equation& e) { return has_residual(e.value); });
}

}  // namespace tw::verify
