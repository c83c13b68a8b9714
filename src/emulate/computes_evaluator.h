// `computes` in fp64, straight from the equation: one element at a time where it must be, a strip of neighbours where it can be.
//
// A reduction over k, or a row of outputs, evaluates the same term for k, k + 1, ... The interpreter walks the term once for a
// strip of `strip_length` such values and does each node's work for all of them in one loop. Sums are added in the order of
// k, so the results are those of the plain walk, bit for bit.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "emulate/reference.h"

namespace tw::emulate {

class ComputesEvaluator {
public:
    // Pre: all of these outlive the evaluator.
    ComputesEvaluator(const ir::Equation& equation, const std::vector<std::int64_t>& sizes, const std::vector<double>& scalars,
                      const std::vector<TensorData>& tensors, const ReferenceOptions& options);

    void bind(int var, std::int64_t value);
    // The equation's value for `var` = first ... first + count - 1, all other variables as bound; and for each a first-order bound of its
    // rounding error, in units of the type's. `var` -1: the one value of an equation for a number. On failure `error` is set and the values
    // mean nothing.
    void evaluate(int var, std::int64_t first, std::int64_t count, double* values, double* rounding);
    std::string error;

private:
    static constexpr int strip_length = 256;
    struct Strip {
        std::array<double, strip_length> value, rounding;
    };
    struct Scalar {
        double value = 0, rounding = 0;
    };
    // An index of an element: nearly always a variable or something that does not move along the strip.
    struct Index {
        ir::Expr expr;
        int var = -1;           // the expression is this variable
        std::vector<int> vars;  // all it mentions
    };
    enum class Fold : std::uint8_t { sum, prod, max, min, any, unknown };
    struct Node {
        ir::Term term;
        std::optional<ir::ElementOp> function;  // nullopt: there is none of this name
        Fold fold = Fold::unknown;
        bool by_element = false;  // cannot be evaluated in strips: it reduces or chooses somewhere below
        std::vector<Index> indices;
        std::vector<int> args;                              // node numbers
        target::DType from{};                               // cast: the type of what it converts
        bool low_product = false;                           // of 32-bit integers: its low bits, of which nothing is lost
        bool outermost = false;                             // cast: of the result
        bool exact = false;                                 // cast: the value is what it makes of it, not up to rounding
        bool integer = false;                               // a function or a fold of whole numbers: exact
        std::vector<int> free;                              // variables of a reduction that are bound outside it
        std::map<std::vector<std::int64_t>, Scalar> known;  // values of a reduction by those of `free`
    };

    int compile(const ir::Term& term);
    std::optional<std::int64_t> integer(const ir::Expr& e) const;
    std::int64_t must(const ir::Expr& e);
    bool spend(std::int64_t operations);

    Scalar value(int node);
    Scalar remembered_fold(int node);
    Scalar computed_fold(int node);
    // Where fp64's range is too small for what stands between: the logarithm of a node that is made of exponentials.
    std::optional<Scalar> log_of(int node);
    std::optional<Scalar> log_of_sum(int node);
    Scalar beyond_the_range(const Node& n, Scalar plain);
    void strip(int node, int var, std::int64_t first, int count, Strip& out);
    void element_strip(const Node& n, int var, std::int64_t first, int count, Strip& out);
    static Scalar applied(ir::ElementOp f, const Scalar* args);
    Scalar settled(const Node& n, Scalar x) const;  // as the precision has it; what is infinite is exact
    bool doubtful_step(const Node& n, const Scalar* args) const;
    Scalar stepped(const Node& n, Scalar x) const;  // an exact cast
    Strip& spare(std::size_t depth);

    const std::vector<std::int64_t>& sizes_;
    const std::vector<double>& scalars_;
    const std::vector<TensorData>& tensors_;
    const ReferenceOptions& options_;
    std::vector<std::int64_t> vars_;
    std::vector<char> bound_;
    std::vector<Node> nodes_;
    std::map<const ir::TermNode*, int> numbers_;
    std::set<const ir::TermNode*> decisive_, low_products_;
    int root_ = 0;
    std::int64_t operations_ = 0;
    std::vector<std::unique_ptr<Strip>> strips_;  // in use: the first `strips_used_`
    std::size_t strips_used_ = 0;
};

}  // namespace tw::emulate
