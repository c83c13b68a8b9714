// Coefficients and powers of tags, exactly: a fraction times the square root of a whole number times powers of pi, ln 2 and ln 10. Nothing
// is ever compared with a tolerance.
//
// A literal is what it says in decimal: 0.044715 is 44715/1000000, so the same literal in a kernel and in `computes` is the same number,
// and one that differs in its last digit is another. Four kinds of literal stand for a number that has no end in decimal, and are read as
// that number:
//   - with the nearest f32 of a power of two times log2(e), ln 2, sqrt(2), sqrt(2/pi), ... (the table in coefficient.cpp); where a kernel
//   computes in f64 (DoubleLiterals), the nearest double of it;
//   - with at least 14 digits, one of those times a number of at most six digits, to the precision of a double;
//   - the double nearest to a fraction with numerator and denominator below 10^5, written with all its digits (what 1.0 / 3 folds to);
//   - infinities.
// Where a fraction leaves 127 bits, or two numbers of different kinds are added (1 + ln 2), what is left is a double, which equals another
// only bit for bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace tw::verify {

// While it lives, literals on this thread are as exact as doubles are.
class DoubleLiterals {
public:
    explicit DoubleLiterals(bool doubles);
    ~DoubleLiterals();
    DoubleLiterals(const DoubleLiterals&) = delete;
    DoubleLiterals& operator=(const DoubleLiterals&) = delete;

private:
    bool before_;
};

class Coefficient {
public:
    Coefficient() = default;
    Coefficient(int v) : num_(v) {}           // NOLINT: integers are coefficients
    Coefficient(std::int64_t v) : num_(v) {}  // NOLINT
    Coefficient(double literal);              // NOLINT
    static Coefficient fraction(std::int64_t numerator, std::int64_t denominator);

    double value() const;
    bool zero() const { return exact_ && num_ == 0; }
    bool infinite() const;
    bool integer() const { return exact_ && den_ == 1 && plain(); }
    std::int64_t as_integer() const { return static_cast<std::int64_t>(num_); }  // Pre: integer() and it fits, see below
    bool small_integer() const { return integer() && num_ < (std::int64_t{1} << 62) && num_ > -(std::int64_t{1} << 62); }
    bool negative() const { return exact_ ? num_ < 0 : value_ < 0; }
    bool positive() const { return exact_ ? num_ > 0 : value_ > 0; }
    // Numerator and denominator, where it is a fraction of small ones.
    std::optional<std::pair<std::int64_t, std::int64_t>> as_fraction() const;
    bool even() const { return integer() && num_ % 2 == 0; }
    // This to the power p; not a number where that is none (a negative number's square root).
    Coefficient power(const Coefficient& p) const;
    bool is_nan() const { return !exact_ && value_ != value_; }

    friend Coefficient operator+(const Coefficient& a, const Coefficient& b);
    friend Coefficient operator*(const Coefficient& a, const Coefficient& b);
    friend Coefficient operator-(const Coefficient& a) { return a * Coefficient(-1); }
    friend Coefficient operator-(const Coefficient& a, const Coefficient& b) { return a + -b; }
    Coefficient& operator+=(const Coefficient& b) { return *this = *this + b; }
    Coefficient& operator*=(const Coefficient& b) { return *this = *this * b; }
    friend bool operator==(const Coefficient& a, const Coefficient& b);
    friend bool operator<(const Coefficient& a, const Coefficient& b);  // an order of representations, for maps: not that of the numbers
    void append_key(std::string& s) const;                              // equal keys are equal coefficients
    std::string text() const;                                           // to be read

private:
    bool plain() const { return root_ == 1 && half_pi_ == 0 && ln2_ == 0 && ln10_ == 0; }
    bool same_kind(const Coefficient& o) const { return root_ == o.root_ && half_pi_ == o.half_pi_ && ln2_ == o.ln2_ && ln10_ == o.ln10_; }
    static Coefficient inexact(double v);
    static Coefficient in_range(double v, bool of_numbers);
    static Coefficient product_in_range(double a, double b);
    bool reduce();
    Coefficient square_root() const;
    static std::optional<Coefficient> multiple_of_irrational(double v);

    __int128 num_ = 0, den_ = 1;                    // in lowest terms, den_ > 0
    std::int64_t root_ = 1;                         // under the square root
    std::int8_t half_pi_ = 0, ln2_ = 0, ln10_ = 0;  // powers: of sqrt(pi), ln 2, ln 10
    bool exact_ = true;
    double value_ = 0;  // where it is not exact
};

}  // namespace tw::verify
