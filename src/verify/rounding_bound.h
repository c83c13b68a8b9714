// Bounds on rounding, and how they add up (the rules are told in rounding.h).
//
// An error is measured relative to the *magnitude* of a value: the same formula with every term made positive. So a sum is as wrong as its
// worst part, a product as wrong as both factors together, and cancellation is not seen.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tw::verify {

// The unit roundoff: half a unit of the last place, relative. 0 for integers (they are exact here) and f64.
double unit_roundoff(ir::DType type);
constexpr double single_unit = 0x1p-24;

// What an error has passed through on its way to the value. Errors of one kind do not make up for another.
enum class Reach : std::uint8_t {
    value,     // sums, products, maxima
    quotient,  // a denominator, a root
    function,  // exp, log, tanh, ...: amplified by the argument
    decision,  // a comparison, a rounding to an integer: anything may change
};
enum class Cause : std::uint8_t {
    rounding,       // to a type narrower than f32
    approximation,  // a function that the hardware approximates, relative to its value
    near_zero,      // one whose error is relative to 1: where its value is small, all of it may be lost
    matrix_sum,     // the 13 bits in which wgmma adds products of fp8
};

struct Loss {
    Reach reach = Reach::value;
    Cause cause = Cause::rounding;
    double amount = 0;   // relative to the magnitude
    bool grows = false;  // with every iteration of a loop, or every addition to an element
    double unit = 0;     // of the coarsest rounding in it
    ir::Loc loc;         // of the largest one
    std::string what;    // "bf16"
};

// How many roundings of f32's size: a polynomial in trip counts. Monomials are numbered by Trips.
struct Count {
    std::vector<std::pair<int, double>> terms;  // (monomial, coefficient > 0), by monomial; monomial 0 is 1
    bool open = false;                          // no bound was found
    static Count of(double n);
    bool empty() const { return terms.empty() && !open; }
    friend bool operator==(const Count&, const Count&) = default;
};
Count operator+(const Count& a, const Count& b);
Count larger(const Count& a, const Count& b);
// What b has beyond a, term by term.
Count beyond(const Count& a, const Count& b);

// The names of trip counts, and products of them.
class Trips {
public:
    Trips() { monomials_.push_back({}); }
    int symbol(const std::string& text);
    Count times(const Count& count, int symbol);
    // The terms of the count in which the symbol stands, or those in which it does not.
    Count with(const Count& count, int symbol, bool has) const;
    std::string text(const Count& count) const;

private:
    std::vector<std::string> symbols_;
    std::vector<std::vector<int>> monomials_;
    std::map<std::vector<int>, int> numbers_;
};

struct Bound {
    std::vector<Loss> losses;  // at most one for each reach and cause
    Count direct;              // roundings of f32's size, relative to the magnitude
    Count inside;              // those that went through a function or a denominator: relative to its argument
    const Loss* find(Reach reach, Cause cause) const;
    void add(const Loss& loss);    // one after the other
    void raise(const Loss& loss);  // one or the other
};
Bound series(const Bound& a, const Bound& b);  // product: both count
Bound either(const Bound& a, const Bound& b);  // sum, choice: the worse counts
// Everything after a function that `reach` stands for.
Bound through(Reach reach, const Bound& argument);
// Is b no worse than a?
bool covers(const Bound& a, const Bound& b);

// "2^-8", "3 * 2^-11", "1.2e-05".
std::string amount_text(double amount);
std::string text(const Bound& bound, const Trips& trips);

}  // namespace tw::verify
