// Whole numbers that launches of a program store, as sums: a polynomial, and sums of polynomials over variables in ranges where a condition
// holds. A count is a sum of ones.
//
//   place[p] = offsets[g[p]] + sum(i in 0:p, where(g[i] == g[p], 1, 0))
//            = {plain: offsets[g[p]], sums: [{over: i in 0:p, given: g[i] == g[p], each: 1}]}
//
// They are numbers without an end: what is stored is shown to fit its type before anything is concluded from it (index_facts.h).
#pragma once

#include <optional>
#include <vector>

#include "ir/term.h"
#include "verify/prove.h"

namespace tw::verify {

struct BoundVariable {
    Atom variable = -1;
    Poly lo, hi;  // lo <= variable < hi; may mention the variables before it
};

struct Addend {
    std::vector<BoundVariable> over;
    Condition given;
    Poly each;
};

struct Whole {
    Poly plain;
    std::vector<Addend> sums;
};

// The same with other variables in the place of some, and with bound variables of its own.
Whole instance(const Whole& w, const std::map<Atom, Poly>& with, Integers& ints);
// lo <= v < hi of every variable, and what is given.
Condition constraints(const Addend& a);

// Translates the right side of an equation. `tensor` renames the tensors of the term; `bound` are its index variables.
class WholeReader {
public:
    // `type`: of a tensor of the term.
    WholeReader(Integers& ints, Prover& prover, Integers::Leaf leaf, std::function<int(int)> tensor, std::function<target::DType(int)> type)
        : ints_(ints), prover_(prover), leaf_(std::move(leaf)), tensor_(std::move(tensor)), type_(std::move(type)) {}

    std::optional<Whole> read(const ir::Term& t);
    std::map<int, Poly> bound;
    std::function<bool(const Poly&)> fits;  // into 32 bits: casts of what does are nothing
    // Parts that are no such sums become whole numbers of which at most the sign is known, where they are whole, and conditions that are
    // not of whole numbers become ones of which nothing is known; each time new ones: what is shown then holds whatever they are, and the
    // result is good for nothing else.
    bool with_unknowns = false;

private:
    std::optional<Poly> poly(const ir::Term& t);
    std::optional<Condition> condition(const ir::Term& t);
    std::optional<Condition> comparison(const ir::Term& t);
    std::optional<Whole> applied(const ir::Term& t);
    std::optional<Whole> summed(const ir::Term& t);
    std::optional<Whole> unknown(const ir::Term& t);
    bool never_negative(const ir::Term& t);
    Poly of(const ir::Expr& e);

    Integers& ints_;
    Prover& prover_;
    Integers::Leaf leaf_;
    std::function<int(int)> tensor_;
    std::function<target::DType(int)> type_;
};

}  // namespace tw::verify
