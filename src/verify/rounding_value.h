// The abstract value of the rounding analysis: what rounding has done to an element, and what is needed to see that two roundings undo one
// another. (The rules are told in rounding.h.)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "verify/rounding_bound.h"

namespace tw::verify {

// Parts of numbers that were split: x is x_0 + x_1 + ... + rest, with x_0 = cast(x), x_1 = cast(x - x_0), ..., so that |x_i| <= u^i |x|. A
// value that is the sum of c[i, j] * x_i * y_j should be c[0, 0] * x * y, and is wrong by the coefficients that differ from c[0, 0]. y =
// -1: no second factor. A factor that was not split is its own part 0, with unit 0.
struct Parts {
    int x = -1, y = -1;  // value numbers
    double x_unit = 0, y_unit = 0;
    std::map<std::pair<int, int>, double> coefficients;
    Bound base;  // of the numbers themselves, and of roundings since
    ir::Loc loc;
    std::string what;
    double error() const;
};

// Which type holds the value without rounding: a float type, or whole numbers of so many bits.
struct Exact {
    ir::DType type = ir::DType::F32;
    int bits = 0;           // of whole numbers; 0: not known to be whole
    bool anything = false;  // 0, infinities: in every type
    bool in(ir::DType wanted) const;
};
Exact wider(const Exact& a, const Exact& b);

// For "may overflow": what bounds the value from above.
struct Ceiling {
    bool capped = false, not_positive = false, not_negative = false;
    bool constant = false, scalar = false;  // scalar: a run-time parameter, which counts as positive where it scales
    int exact_root = -1, root = -1;         // the value is factor * scale * root; exact_root tells tiles of one tensor apart
    double factor = 1;
    int scale = -1;          // the value number of what it was multiplied by, where that is no constant
    std::vector<int> above;  // roots that are no larger than this one's, at their places
};

// A constant near an end of f32's range may be there.
struct Ends {
    bool low = false, high = false;
    bool any() const { return low || high; }
    Ends flipped() const { return {high, low}; }
    bool operator==(const Ends&) const = default;
};
inline Ends operator|(const Ends& a, const Ends& b) { return {a.low || b.low, a.high || b.high}; }

struct Rounded {
    Bound bound;                       // of all but the parts
    std::vector<Parts> parts;          // roundings that may undo one another: not in the bound yet
    bool only_parts = false;           // the value is parts[0] and nothing else
    int rest_of = -1, rest_level = 0;  // the value is rest_factor * (x less its first `rest_level` parts), exactly
    double rest_unit = 0, rest_factor = 1;
    Exact exact;
    int number = -1;  // equal numbers: equal elements
    Ceiling ceiling;
    bool whole = false;  // a whole number, in whatever type: nothing is lost when it becomes an integer
    Ends ends;           // of f32's range that it may be near to, as the start value of a maximum is
    bool known = false;  // false: nothing was assigned yet
};

// What an approximate function loses; of others nothing that is not of f32's size.
std::optional<Loss> approximation_of(ir::ElementOp op);

// Numbers for values, by what they are made of.
class Numbers {
public:
    int of(const std::vector<std::int64_t>& key);
    int fresh() { return next_++; }

private:
    std::map<std::vector<std::int64_t>, int> known_;
    int next_ = 0;
};

// Arithmetic on abstract values. One instance per kernel or computation.
class RoundingArithmetic {
public:
    explicit RoundingArithmetic(bool wide) : wide_(wide) {}

    Numbers numbers;
    ir::Loc loc;  // of the statement that is looked at: goes into the losses
    // A floor is taken of the numbers that lie in memory: the values are shown of whatever they are (Values::as_stored).
    bool floors_are_given = false;

    Rounded leaf(ir::DType type, int number, int bits = 0);
    Rounded constant(double value, ir::DType type);
    Rounded cast(ir::DType to, const Rounded& x, double unit = 0);  // unit 0: to nearest
    // `rounds`: the type that the result is rounded to; f64: none.
    Rounded apply(ir::ElementOp op, const std::vector<Rounded>& args, ir::DType rounds, bool approximate);
    Rounded sum(const Rounded& a, const Rounded& b, double sign = 1);           // without the rounding of the result
    Rounded product(const Rounded& a, const Rounded& b, bool ordered = false);  // ordered: rows of a with rows of b, which is not b with a
    Rounded choice(const Rounded& a, const Rounded& b);                         // at a join
    Rounded moved(Rounded x, std::int64_t how);                                 // the same elements at other places
    void round(Rounded& x, ir::DType type, double times, const char* what = nullptr);  // `times` roundings of arithmetic in this type
    void lose(Rounded& x, const Bound& more);                                          // on top of what it has lost
    // The parts counted in the bound.
    Rounded settled(Rounded x);

    int scaled_root(const Ceiling& c, bool tile);  // the root of the value with its factor and scale; tile: of this tile, not of all
    std::map<int, int> all_tiles;                  // the exact root of something that a maximum is above -> its root

private:
    Ceiling ceiling_of(ir::ElementOp op, const std::vector<Rounded>& args, int number);
    Ceiling ceiling_of_sum(const Rounded& a, const Rounded& b, double sign, int number);
    void approximate_loss(Rounded& x, ir::ElementOp op);
    bool wide_;  // f64 is stated: f32 is a narrow type
};

}  // namespace tw::verify
