// The types of terms, as far as `computes` has types.
#pragma once

#include <functional>
#include <set>

#include "ir/term.h"

namespace tw::ir {

// An integer's, where the term is made of integers by + - * // % min max abs and where; that of an element or a cast; F32 for every other
// number. A number without a fraction is an integer. `tensor`: the type of a tensor's elements.
target::DType type_of(const Term& t, const std::function<target::DType(int tensor)>& tensor);
// A whole number, or the place of an extreme value that is not there (an infinity).
bool is_whole(const Term& t, const std::function<target::DType(int tensor)>& tensor);
// a // b of integers is floor(a / b) in a term: the quotient a / b where the term is that (of any two numbers), else null.
const TermNode* floor_divided(const TermNode& t);
// The terms that something is compared with, or that become an integer, and their parts: of those a cast to a float is what it makes of the
// number; of all others it is rounding, which tags and references leave out.
std::set<const TermNode*> decisive_terms(const Term& t);
// The products of integers of which only the low 32 bits count: an integer output, or a cast to an integer, has the low bits of its
// equation. A double does not hold the product of two 32-bit numbers, and holds these.
std::set<const TermNode*> low_products(const Term& t, target::DType output, const std::function<target::DType(int tensor)>& tensor);
double low_product(double a, double b);  // a number with the low 32 bits of a * b; pre: whole numbers below 2^53

}  // namespace tw::ir
