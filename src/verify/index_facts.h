// What is known of the integer tensors that the launches of a program have written, from the equations of those launches: the promises that
// a later launch asks for are discharged here, or the program is not proved.
//
// Everything follows from a few theorems. Their conditions are shown by Z3 over the equation's own terms; no form of text is looked for.
//
//   sets          B[x] counts the i in [0, n) with C(i, x): more where C is implied, 0 where it never holds, n where it always does
//   ranks         where C(i, x) is a strict total order of [0, n), B takes each number of [0, n) once
//   beginnings    where C(i, x) holds of an i only if it holds of all before it, C(i, x) is i < B[x]
//   (no sum)      B[x] is a number v(x): it takes each number of [0, n) once where it is in it and v(x) is v(y) for x = y alone
//   prefix sums   B[x] = sum(i in 0:x, b(i)) rises where b is not negative, B[x + 1] - B[x] is b(x), and where c b(i) <= a(i) + d for all
//   i, the
//                 same holds of differences of B and A: c (B[y] - B[x]) <= A[y] - A[x] + d (y - x) for x <= y
//   scatters      R[B[i]] = v(i) where B takes each number of [0, n) once: every element of R is some v(i)
//   tiles         (index_tiles.cpp) tiles that follow one another from 0 to n take each row once
//
// A tensor is known only where what is stored is shown to fit its 32 bits, and where one launch alone writes it.
#pragma once

#include <set>
#include <string>
#include <tuple>

#include "verify/whole.h"

namespace tw::verify {

class IndexFacts {
public:
    IndexFacts(Integers& ints, Prover& prover) : ints_(ints), prover_(prover) {}

    // An equation for all of a tensor: element (variables...) is `value`. `sign_only`: the value as WholeReader has it with unknowns.
    void define(int tensor, std::vector<Atom> variables, std::vector<Poly> extents, std::optional<Whole> value,
                std::optional<Whole> sign_only);
    // element by[source] is `value`, for all sources in [0, extent). Pre: is_permutation(by).
    void define_scatter(int tensor, int by, Atom source, const Poly& extent, std::optional<Poly> value);
    // Nothing is known of it any more.
    void forget(int tensor) { known_.erase(tensor); }
    // A condition on sizes that no launch is made without.
    void take(const Condition& c) { taken_.push_back(c); }
    // Lengths that what is counted may have.
    void add_length(const Poly& p) { lengths_.insert(p); }
    // A promise of the caller on a parameter.
    void promise_range(int tensor, std::vector<Poly> extents, const Poly& first, const Poly& end);

    bool in_range(int tensor, const Poly& first, const Poly& end);
    // It has one dimension and takes every number from 0 up to its length once.
    bool is_permutation(int tensor);
    bool is_sorted(int tensor);
    // ir/promise.h
    bool is_table_of_tiles(int starts, int ends, std::int64_t width, int groups);
    bool fits(const Poly& p);  // into 32 bits
    // Is every element what the equation says, as a number without an end?
    bool holds_its_value(int tensor) const;
    // What element (index) of a scatter is, where the index is an element of the tensor that it goes by.
    std::optional<Poly> scattered(int tensor, const std::vector<Poly>& index);

private:
    struct Known {
        std::vector<Atom> variables;
        std::vector<Poly> extents;
        std::optional<Whole> value;                  // exact
        std::optional<Whole> sign_only;              // good for ranges alone
        std::optional<std::pair<Poly, Poly>> range;  // first <= element < second, once shown or promised
        int by = -1;                                 // of a scatter
        Atom source = -1;
        std::optional<Poly> scattered;
        std::optional<bool> permutation, sorted;
    };
    struct Members {  // the set that is counted: those of [0, size) for which the condition holds
        Atom member = -1;
        Condition condition;
    };

    const Known* known(int tensor) const;
    bool fits(Known& k, const Whole& w);  // what it holds; and its range, then
    // A number that it is never above, by bounds of its parts.
    std::optional<std::int64_t> most(const Poly& p);
    std::optional<std::int64_t> most(const Whole& w);
    bool implied(const Condition& given, const Condition& goal, unsigned effort = 0);
    Condition inside(const std::vector<Poly>& index, const std::vector<Poly>& extents) const;
    std::vector<Condition> laws_of(std::vector<Atom> atoms);
    void add_products(std::vector<Condition>& facts, const Condition& goal) const;

    Whole unfolded(Whole w, const Condition& given);
    bool unfold_once(Whole& w, const Condition& given);
    std::optional<Condition> as_members(Addend a, Atom member, const Condition& given);
    std::optional<Members> members(int tensor, const std::vector<Poly>& index, const Poly& size, const Condition& given);
    bool counted_within(int tensor, const std::vector<Poly>& index, const Condition& in, const Poly& first, const Poly& end);

    struct Prefix {  // sum(variable in 0:x, body)
        Atom variable = -1;
        Poly body;
    };
    std::optional<Prefix> prefix_of(int tensor) const;
    struct Beginning {  // the number of variables in lo:hi for which the condition holds, which holds for a first part of them
        Atom variable = -1;
        Poly lo, hi;
        Condition holds;
    };
    bool rises(int tensor);
    std::optional<Beginning> beginning_of(int tensor, const Poly& index);
    friend class TileTable;

    Integers& ints_;
    Prover& prover_;
    std::map<int, Known> known_;
    std::set<Poly> lengths_;
    std::vector<Condition> taken_;
    std::map<std::tuple<int, int, std::int64_t, int>, bool> tables_;  // that were asked for
};

}  // namespace tw::verify
