// Integer expressions: everything in a kernel that is an index, a size, a trip count, a slot, a parity or a condition.
//
// An Expr is an immutable value (a shared tree). It is uniform: every thread of the group that evaluates it sees the same
// value, except `Var`s that are bound to a role's instance index, which are uniform per instance. Integers are mathematical
// (the code generator picks 32 or 64 bits); `/` is floor division and `%` has the sign of the divisor, as in Python.
// Conditions are integers 0 and 1.
//
// The smart constructors fold constants and apply only identities that hold for all integers (x + 0, x * 1, ...), so the
// tree that is printed is the tree that was written. Deciding equalities is the verifier's work, not this file's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tw::ir {

enum class ExprKind : std::uint8_t {
    constant,      // value
    size,          // run-time size number `id` of the kernel (Kernel::sizes)
    var,           // variable number `id` of the kernel (Kernel::vars): loop variable, scalar, role instance index
    block_index,   // blockIdx along axis `id`
    grid_size,     // gridDim along axis `id`
    cluster_rank,  // rank of this block in its cluster
    element,       // args = indices into read-only integer tensor number `id` (the same element read twice is the same value)
    add,
    sub,
    mul,
    floor_div,
    mod,
    min,
    max,
    lt,
    le,
    eq,
    ne,
    logic_and,
    logic_or,
    logic_not,
    select,  // args = condition, then, otherwise
    bit_xor,
    bit_and,
    shift_left,
    shift_right,
    // Device form only: as C divides, where neither side is negative (floor_div and mod with a cheaper instruction).
    quotient,
    remainder,
};

struct ExprNode;

class Expr {
public:
    Expr();                                                      // the constant 0
    Expr(std::int64_t value);                                    // NOLINT: integers are expressions
    Expr(int value) : Expr(static_cast<std::int64_t>(value)) {}  // NOLINT
    explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}

    const ExprNode& node() const { return *node_; }
    const ExprNode* operator->() const { return node_.get(); }
    ExprKind kind() const;
    std::optional<std::int64_t> as_constant() const;
    bool is_constant(std::int64_t value) const { return as_constant() == value; }

private:
    std::shared_ptr<const ExprNode> node_;
};

struct ExprNode {
    ExprKind kind = ExprKind::constant;
    std::int64_t value = 0;  // constant
    int id = 0;              // size, var, axis or tensor number
    std::vector<Expr> args;
    std::size_t hash = 0;
};

Expr size_expr(int id);
Expr var_expr(int id);
Expr block_index(int axis);
Expr grid_size(int axis);
Expr cluster_rank();
Expr element_expr(int tensor, std::vector<Expr> indices);
Expr make_expr(ExprKind kind, std::vector<Expr> args);  // an operator node, folded

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);  // floor division
Expr operator%(const Expr& a, const Expr& b);
Expr operator<(const Expr& a, const Expr& b);
Expr operator<=(const Expr& a, const Expr& b);
Expr operator>=(const Expr& a, const Expr& b);
Expr equal(const Expr& a, const Expr& b);
Expr not_equal(const Expr& a, const Expr& b);
Expr logic_and(const Expr& a, const Expr& b);
Expr logic_or(const Expr& a, const Expr& b);
Expr logic_not(const Expr& a);
Expr select(const Expr& condition, const Expr& then, const Expr& otherwise);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr ceil_div(const Expr& a, const Expr& b);  // (a + b - 1) / b

// Structural equality and hash (not semantic equality).
bool same(const Expr& a, const Expr& b);
struct ExprHash {
    std::size_t operator()(const Expr& e) const { return e->hash; }
};
struct ExprSame {
    bool operator()(const Expr& a, const Expr& b) const { return same(a, b); }
};

// Replaces variables; `leaf` returns nothing to leave a variable alone. What an expression has in several places is looked at once.
Expr substitute(const Expr& e, const std::function<std::optional<Expr>(const ExprNode&)>& leaf);

// Replaces leaves by what `definition` gives for them, and so on in what they stand for. Definitions may double one another: a leaf that
// stands for more than 10,000 parts, or 64 definitions deep, stays, and so does all of `e` where it would be longer; then `cut` is set.
Expr written_out(const Expr& e, const std::function<std::optional<Expr>(const ExprNode&)>& definition, bool* cut = nullptr);

// Evaluates with concrete leaves. `leaf` is called for size, var, block_index, grid_size, cluster_rank and element nodes
// (for element with the evaluated indices). Nothing is returned on division by zero, on overflow, or when `leaf` has no value.
using LeafValue = std::function<std::optional<std::int64_t>(const ExprNode&, const std::vector<std::int64_t>&)>;
std::optional<std::int64_t> evaluate(const Expr& e, const LeafValue& leaf);

bool mentions_var(const Expr& e, int var);

// Names for printing; both vectors are indexed by id.
struct ExprNames {
    std::function<std::string(int)> size;
    std::function<std::string(int)> var;
    std::function<std::string(int)> tensor;
};
std::string to_string(const Expr& e, const ExprNames& names);

// Floor division and modulus as the language defines them. Pre-condition: b != 0 and not (a == min and b == -1).
std::int64_t floor_div(std::int64_t a, std::int64_t b);
std::int64_t floor_mod(std::int64_t a, std::int64_t b);

}  // namespace tw::ir
