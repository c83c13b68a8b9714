// Integers the verifier reasons about: polynomials over atoms, and conditions over them.
//
// A polynomial in normal form is a sum of monomials with integer coefficients; equal functions that differ only by ring
// identities have equal normal forms. An atom is a symbol (size, loop variable, tile coordinate, block index ...) or an
// operation that rings do not have: floor division, min, max, an element of an index tensor. `a % b` is a - b * (a // b), so
// that quotient and remainder always cancel.
//
// Atoms live in an Integers pool; polynomials and conditions are values that refer to it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "base/small_vector.h"
#include "ir/expr.h"
#include "verify/obligation.h"

namespace tw::verify {

using Atom = int;
using Monomial = SmallVector<Atom, 4>;  // its atoms, sorted

struct Poly {
    FlatMap<Monomial, std::int64_t> terms;  // coefficients, never 0; {} is the constant

    Poly() = default;
    Poly(std::int64_t c) {
        if (c) terms[{}] = c;
    }  // NOLINT: integers are polynomials
    static Poly of(Atom a) {
        Poly p;
        p.terms[{a}] = 1;
        return p;
    }
    std::optional<std::int64_t> constant() const;
    std::int64_t constant_part() const;
    bool mentions(Atom a) const;
    // Coefficient of the monomial {a} alone; nothing when `a` also occurs in products.
    std::optional<std::int64_t> linear_in(Atom a) const;
    // *this - other, where that is a constant.
    std::optional<std::int64_t> minus_if_constant(const Poly& other) const;
    friend bool operator==(const Poly&, const Poly&) = default;
    friend bool operator<(const Poly& a, const Poly& b) { return a.terms < b.terms; }
};
Poly operator+(const Poly& a, const Poly& b);
Poly operator-(const Poly& a, const Poly& b);
Poly operator*(const Poly& a, const Poly& b);
std::optional<Poly> divided(const Poly& a, const Poly& b);

// Coefficients have 64 bits. One that does not fit wraps around, and this thread's count goes up: what was then claimed with the help of
// polynomials is not proved. `distrust_after_overflow` takes it back where the count has changed since.
std::uint64_t coefficient_overflows();
void note_overflow();
std::int64_t plus(std::int64_t a, std::int64_t b);
std::int64_t times(std::int64_t a, std::int64_t b);
void distrust_after_overflow(std::vector<Obligation>& obligations, std::uint64_t overflows_before);

// A condition in negation normal form; every leaf says "polynomial >= 0" or "polynomial == 0" or "!= 0".
struct Condition {
    enum class Kind : std::uint8_t { yes, no, at_least_zero, zero, nonzero, all, any } kind = Kind::yes;
    Poly poly;
    std::vector<Condition> parts;
    friend bool operator==(const Condition& a, const Condition& b) { return a.kind == b.kind && a.poly == b.poly && a.parts == b.parts; }
    friend bool operator<(const Condition& a, const Condition& b) {
        if (a.kind != b.kind) return a.kind < b.kind;
        if (!(a.poly == b.poly)) return a.poly < b.poly;
        return a.parts < b.parts;
    }
    bool is_yes() const { return kind == Kind::yes; }
    bool is_no() const { return kind == Kind::no; }
};
Condition at_least(const Poly& a, const Poly& b);  // a >= b
Condition less(const Poly& a, const Poly& b);      // a < b
Condition equals(const Poly& a, const Poly& b);
Condition both(const Condition& a, const Condition& b);
Condition either(const Condition& a, const Condition& b);
Condition negated(const Condition& c);

struct AtomInfo {
    enum class Kind : std::uint8_t { symbol, quotient, minimum, maximum, element, choice, opaque } kind = Kind::symbol;
    std::string name;                          // symbol: its name; opaque: the operation
    std::vector<Poly> args;                    // quotient: numerator, denominator; choice: then, otherwise
    int tensor = -1;                           // element
    Condition condition;                       // choice
    std::optional<std::int64_t> lower, upper;  // symbols: known constant bounds (inclusive)
    std::optional<Poly> below;                 // symbols: a digit, 0 <= it < below
    bool fresh = false;                        // symbols: made by Integers::fresh, for what is not known
    std::vector<Atom> inside;                  // the atoms of its arguments and condition, and of theirs; sorted, each once
};

// What is promised of the contents of an index tensor (ir/promise.h), over this pool's atoms.
struct ContentPromise {
    std::vector<Poly> dims;
    std::optional<std::pair<Poly, Poly>> range;  // first <= element < second
    bool sorted = false, distinct = false;
    int offsets_of = -1, inverse_of = -1;
    int tile_starts = -1, tile_groups = -1;  // of tile_ends
    std::int64_t tile_width = 0;
    bool any() const { return range || sorted || distinct; }
};

class Integers {
public:
    std::vector<ContentPromise> promises;  // by tensor; empty where nothing is promised
    std::vector<std::string> tensors;      // their names, for text
    // Symbols are found again by name; bounds of the first call hold.
    Atom symbol(const std::string& name, std::optional<std::int64_t> lower = {}, std::optional<std::int64_t> upper = {});
    Atom fresh(const std::string& prefix, std::optional<std::int64_t> lower = {}, std::optional<std::int64_t> upper = {});
    Poly quotient(const Poly& a, const Poly& b);
    Atom digit(const std::string& name, const Poly& below);  // 0 <= it < below
    bool never_negative(const Poly& p) const;
    bool counts_below(const Poly& p, const Poly& bound) const;  // a number made of digits, the highest of which ends at `bound`
    Poly remainder(const Poly& a, const Poly& b) { return a - b * quotient(a, b); }
    Poly minimum(const Poly& a, const Poly& b);
    Poly maximum(const Poly& a, const Poly& b);
    Poly element(int tensor, std::vector<Poly> indices);
    // What an element of an index tensor is, where it is not merely itself (program.cpp: views, and what a launch has scattered).
    std::function<std::optional<Poly>(int tensor, const std::vector<Poly>& index)> meaning;
    std::vector<Poly> alternatives(const Poly& p, AtomInfo::Kind kind) const;
    Poly choice(const Condition& c, const Poly& then, const Poly& otherwise);

    const AtomInfo& info(Atom a) const { return atoms_[static_cast<std::size_t>(a)]; }
    std::size_t size() const { return atoms_.size(); }

    // Translation of the IR's expressions; `leaf` gives the value of sizes, variables, block indices.
    using Leaf = std::function<Poly(const ir::ExprNode&)>;
    const std::vector<int>* tensor_names = nullptr;  // other numbers for the index tensors of the expressions, see Values
    Poly from(const ir::Expr& e, const Leaf& leaf);
    Condition condition_from(const ir::Expr& e, const Leaf& leaf);

    // Simultaneous replacement of atoms (inside operations too).
    Poly replace(const Poly& p, const std::map<Atom, Poly>& with);
    Condition replace(const Condition& c, const std::map<Atom, Poly>& with);
    bool mentions(const Poly& p, Atom a) const;  // deep: inside operations too
    bool mentions(const Condition& c, Atom a) const;
    bool mentions_any(const Poly& p, const std::map<Atom, Poly>& of) const;
    bool mentions_any(const Condition& c, const std::map<Atom, Poly>& of) const;
    void collect(const Poly& p, std::vector<Atom>& out) const;  // deep, with repeats
    void collect(const Condition& c, std::vector<Atom>& out) const;

    // What the promises say of the elements of index tensors among these atoms: instances of their laws, one element or two at a
    // time, each under the condition that the indices are in bounds.
    std::vector<Condition> promised(const std::vector<Atom>& atoms) const;

    std::string text(const Poly& p) const;
    std::string text(const Condition& c) const;

private:
    Poly extreme(AtomInfo::Kind kind, const Poly& a, const Poly& b);
    Atom intern(AtomInfo info);
    std::deque<AtomInfo> atoms_;  // references to atoms stay valid while more are made
    std::map<std::string, Atom> by_key_;
    int fresh_ = 0;
};

}  // namespace tw::verify
