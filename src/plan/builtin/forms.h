// Other forms of the terms of `computes`: choices pulled outwards, constants pulled out of maxima, and terms as text.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "plan/builtin/terms.h"

namespace tw::plan::builtin {

// A choice whose other side is an identity goes outwards: exp(where(c, a, -inf) - t) is where(c, exp(a - t), 0).
Term lifted(const Term& t);

// A positive factor in front of what is folded by max or min, and the rest: max(k * x) is k * max(x). The factor is 1 where there is none.
std::pair<double, Term> factor_of(const Term& body);

bool is_integer_term(const Term& t, const ir::Kernel& spec);  // computed in integers
bool has_reduction(const Term& t);

// A chain of reductions of one kind, sum(c, sum(r, ...)), is one fold: what it folds.
Term body_of_chain(const Term& reduce);

// The text of a term in the language of `computes`.
struct TermNames {
    std::function<std::string(int)> variable, tensor;
    std::function<std::string(int)> size, scalar;
};
std::string computes_text(const Expr& e, const TermNames& names);
std::string computes_text(const Term& t, const TermNames& names);

}  // namespace tw::plan::builtin
