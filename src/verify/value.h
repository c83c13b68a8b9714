// Tags: what an element is made of, in normal form, so that two tags are equal exactly when their numbers are.
//
// A Value is an index into a pool of hash-consed terms over input elements. The normal form is built by the constructors:
//   sum       number + coefficients * terms; nested sums flattened, equal terms collected
//   product   bases with powers; exp(a + b) is exp(a) * exp(b), so exp(t) is a base whose power is the coefficient of t.
//             That is the whole treatment of online softmax: exp(s - m_old) * exp(m_old - m_new) has exp(m_old) to the
//             power 0, and what is left is relative to m_new. A dropped or doubled rescale leaves a power that is not.
//   reduce    fold of a body over [lo, hi) of one variable. Factors (sum) and addends (max) that do not depend on the
//             variable are pulled out; the variable is shifted so that it *is* the index it stands for; masks whose other
//             side is the identity clip the range, and only then; neighbouring ranges of one body unite (a sum's must meet
//             exactly: nothing twice, nothing left out; a maximum's may overlap).
//   where     masks, pulled outwards through elementwise functions, so that a fill value is seen to become what it becomes
// A tag is a real number. Rounding of floats is no part of it, but of what goes with it (Rounding): where a rounded value is compared, or
// becomes an integer or an index, the rounding is a function of the tag (value_types.cpp); so is what integers of a width make of a whole
// number.
//
// Every rewrite holds for all reals that the value may be: where it has a condition (a sign, not being 0), that is shown (value_sign.cpp)
// or the rewrite is not made. Coefficients and powers are exact (coefficient.h).
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/term.h"
#include "verify/coefficient.h"
#include "verify/prove.h"

namespace tw::verify {

using Value = int;

// How the machine's value of a tag may differ from it: not at all (but for f32 arithmetic), by one rounding to `type` at the end, or in a
// way that is not followed any further.
struct Rounding {
    enum class Kind : std::uint8_t { exact, to_type, lost } kind = Kind::exact;
    target::DType type{};
    bool of_terms = false;  // lost: by sums and products of what a narrow type has rounded. (log(x exp(y)) is y + log(x): y is not rounded)
    bool anywhere = false;  // lost: a narrow type has rounded something in it, a function's argument perhaps
    bool in_memory = false;  // a launch before has stored it: the rounding pass does not know what it is a rounding of
    friend bool operator==(const Rounding&, const Rounding&) = default;

    static Rounding to(target::DType type) { return {Kind::to_type, type}; }
    // Of what is made of these and is none of them. `terms`: by sums, products and choices, not by a function.
    static Rounding lost_from(const std::vector<Rounding>& parts, bool terms = true);
    bool narrow_terms() const;     // terms of it may be wrong by a rounding to a type narrower than f32
    bool narrow_anywhere() const;  // the same, or the argument of a function in it
};
Rounding joined(const Rounding& a, const Rounding& b);  // of two ways to a value, either

struct Typed {
    Value value = 0;
    Rounding rounding;
};

bool is_unsigned(target::DType type);
std::optional<target::DType> converted_to(const std::string& function);  // T of "wrap:T" and its like

struct ValueNode {
    enum class Kind : std::uint8_t {
        number,
        element,
        scalar,
        index,
        sum,
        product,
        function,
        extreme,
        reduce,
        where,
        unknown
    } kind = Kind::number;
    Coefficient number = 0;            // number; sum: the constant
    int id = 0;                        // tensor, scalar, unknown
    std::string name;                  // function: its name; extreme and reduce: "max", "min", "sum", ...
    std::vector<Poly> indices;         // element; index: one polynomial
    std::vector<Value> args;           // terms, bases, arguments; reduce: body; where: then, otherwise
    std::vector<Coefficient> weights;  // sum: coefficients; product: powers
    Condition condition;               // where
    Atom variable = -1;                // reduce
    Poly lo, hi;                       // reduce
    int height = 0;                    // nesting depth of reduces, to name bound variables
    bool unknown_inside = false;       // some part of it is unknown
    bool low = false, high = false;    // an infinite fill may make it minus or plus infinity: it cancels nothing
    bool chosen = false;               // where a choice by data may be that fill: of a fold, then, all of it may be
    std::vector<Atom> atoms;           // all that it mentions, bound ones and those inside operations too; sorted
};

class Values {
public:
    Values(Integers& ints, Prover& prover) : ints_(ints), prover_(prover) {}

    Value number(const Coefficient& v);
    Value element(int tensor, std::vector<Poly> indices);
    Value scalar(int id);
    Value index(const Poly& p);
    Value unknown(const std::string& why);
    Value sum(Coefficient constant, std::vector<std::pair<Coefficient, Value>> terms);
    Value product(std::vector<std::pair<Value, Coefficient>> bases);
    Value apply(const std::string& function, std::vector<Value> args);  // names of ir::ElementOp
    Value where(const Condition& c, Value then, Value otherwise);
    Value reduce(const std::string& op, Atom variable, Poly lo, Poly hi, Value body);

    // Types (value_types.cpp).
    Value wrapped(target::DType to, Value v);    // a whole number's low bits
    Value truncated(target::DType to, Value v);  // a float as an integer
    Value rounded(target::DType to, Value v);
    Typed converted(const Typed& x, target::DType from, target::DType to);
    // `followed`: a difference of one value, rounded in two ways, of which the rounding pass knows what is left.
    Typed computed(const std::string& function, const std::vector<Typed>& args, std::optional<target::DType> type, bool followed = false);
    bool cancels_rounded(const std::string& function, const std::vector<Typed>& args, bool followed);
    // Of one tag, of which at least one is rounded to a narrow type somewhere: 0 as tags, and what the roundings leave as numbers.
    bool is_difference_of_roundings(const std::string& function, const std::vector<Typed>& args);
    // A sum over x of what a narrow type has rounded, in which terms of the body cancel one another.
    bool fold_cancels_rounded(Atom x, const Poly& lo, const Poly& hi, const Typed& body);
    Typed folded(const std::string& op, Atom x, const Poly& lo, const Poly& hi, const Typed& body, std::optional<target::DType> type);
    Value as_computed(const Typed& x);
    bool fits(Value v, target::DType type);  // a whole number that the type holds exactly
    bool is_whole(Value v) const;
    std::optional<Poly> as_integer(Value v) const;  // a whole number made of integers of the kernel

    // Signs that a value may have, and the first part of it that has no value somewhere (value_sign.cpp).
    static constexpr unsigned negative_sign = 1, zero_sign = 2, positive_sign = 4, any_sign = 7;
    unsigned signs(Value v);
    bool nonzero(Value v);
    std::optional<Value> undefined_part(Value v);
    void undefined_parts(Value v, std::set<Value>& found);
    bool may_cancel(Value gone, const std::vector<Value>& left);

    Value add(Value a, Value b) { return sum(0, {{1, a}, {1, b}}); }
    Value mul(Value a, Value b) { return product({{a, 1}, {b, 1}}); }
    Value scaled(const Coefficient& c, Value a) { return sum(0, {{c, a}}); }

    // Replaces atoms everywhere (bound variables never clash: they have names of their own).
    Value replace(Value v, const std::map<Atom, Poly>& with);
    // Puts `to` wherever the term `from` stands.
    Value substitute(Value v, Value from, Value to);
    // Decides masks and ranges that the prover's present facts settle.
    Value simplified(Value v);
    Poly simplified(const Poly& p);
    // rest + min(a, b) as min(a + rest, b + rest): one form for the ends of ranges.
    Poly absorbed(const Poly& p);
    // Every reduce whose range mentions `k` starts where it started at k = first; elsewhere k becomes k - 1: the state
    // after the iterations before k, guessed from one iteration (see flow_engine.h).
    Value widened(Value v, Atom k, const Poly& first);

    bool mentions(Value v, Atom a) const;
    // An unknown stands for whatever each element happens to be: two elements of one unknown may differ, so it never cancels.
    bool has_unknown(Value v) const { return node(v).unknown_inside; }
    bool may_be_infinite(Value v) const { return node(v).low || node(v).high; }
    const ValueNode& node(Value v) const { return nodes_[static_cast<std::size_t>(v)]; }
    std::string text(Value v, const std::function<std::string(int)>& tensor_name) const;
    std::optional<Coefficient> as_number(Value v) const;

    // Places of an extreme value (value_places.cpp).
    std::optional<Value> place_of_other(Value v, Value from, Value to, bool checked, std::vector<Atom> around);

    // Every element of a tensor for which `meaning` has a value, replaced by it.
    Value with_elements(Value v, const std::function<std::optional<Value>(int tensor, const std::vector<Poly>& index)>& meaning);

    // Folds through an index of which the body knows the quotient by a number as a fold of folds: one through the quotient, one through the
    // remainder.
    Value with_digits_apart(Value v);
    // Choices of the larger or the smaller of two numbers as their maximum or minimum.
    Value with_extremes(Value v);
    // The same and more (value_choices.cpp): choices by comparisons of data, and comparisons of integer data, in one form.
    Value with_choices(Value v);
    // Four terms and more that one formula has at 0, 1, 2, ... as one fold of it (value_rows.cpp): what a tree of additions ends in.
    Value with_rows(Value v);

    Value written_out(Value v, std::int64_t longest = 32, std::int64_t most = 128);
    // A fold of folds of the same kind with their order turned round, where neither range hangs on the other.
    std::optional<Value> turned(Value v);
    // Where folds end (not where a fold's own index says), and the value with other such ends.
    std::set<Poly> ends(Value v) const;
    Value with_ends(Value v, const std::map<Poly, Poly>& with);

    // From the specification's terms. `leaf` as for Integers::from; reduction variables become fresh symbols.
    Value from(const ir::Term& t, const Integers::Leaf& leaf, std::map<int, Poly>& bound) { return typed_from(t, leaf, bound).value; }
    Typed typed_from(const ir::Term& t, const Integers::Leaf& leaf, std::map<int, Poly>& bound);
    // The same, as an output of this type has it.
    Value from(const ir::Term& t, const Integers::Leaf& leaf, std::map<int, Poly>& bound, target::DType output);
    // The same with what storing it in that type rounds, for those who read it again.
    Typed stored_from(const ir::Term& t, const Integers::Leaf& leaf, std::map<int, Poly>& bound, target::DType output);
    // What an element of a tensor is to these translations, where it is not merely itself (a buffer that a launch has written).
    std::function<std::optional<Typed>(int tensor, const std::vector<Poly>& index)> meaning;
    // The same where its rounding decides something and is not followed: the number itself that lies in memory, whatever it is. Where
    // nothing but that number's floor cancels (a power of two that scales and one that undoes it), nothing hangs on it.
    std::function<std::optional<Typed>(int tensor, const std::vector<Poly>& index)> as_stored;

    std::vector<target::DType> tensor_types;  // of the tensors that elements are of
    std::set<Atom> sizes;                     // symbols that are sizes: at least 1
    std::set<int> positive_scalars;           // promised by the caller
    std::vector<Poly> extents;                // of the tensors' dimensions: bounded by what a launch admits

    // x less x rounded to T is a term of its own, `rest_T(x)`, and not 0: where `computes` states such a rest.
    bool rests = false;

    // Other numbers for the tensors and scalars of the terms that `from` translates (those of the program that launches a kernel).
    const std::vector<int>* tensor_names = nullptr;
    const std::vector<int>* scalar_names = nullptr;

    static double identity(const std::string& op);

private:
    Value rest(target::DType of, Value v);
    std::optional<Typed> difference_of_roundings(const std::string& f, const std::vector<Typed>& args, std::optional<target::DType> type);
    Typed chosen_from(const ir::Term& t, const Integers::Leaf& leaf, std::map<int, Poly>& bound);
    bool is_integer(const ir::Term& t) const;
    target::DType type_of(const ir::Term& t) const;
    unsigned signs(const Poly& p);
    unsigned find_signs(const ValueNode& n);
    unsigned signs_of_sum(const ValueNode& n);
    std::optional<Value> sum_of_squares(Value v, Coefficient& count);
    Value function(const std::string& name, std::vector<Value> args);
    Value word(Value v);
    void raise(Value v, const Coefficient& p, std::map<Value, Coefficient>& factors);
    void raise_parts(const ValueNode& n, const Coefficient& p, std::map<Value, Coefficient>& factors);
    bool has_odd_part(const ValueNode& n);
    std::optional<Value> spread_over_sum(const Coefficient& coefficient, const std::map<Value, Coefficient>& collected);
    Value magnitude(Value a);
    std::optional<Value> taken_away(const std::map<Value, Coefficient>& terms);
    bool undefined_beside(Value v, const std::map<Value, Coefficient>& factors);
    Value infinite_product(const Coefficient& coefficient, const std::map<Value, Coefficient>& factors);
    struct Bounds {
        __int128 low, high;
    };
    std::optional<Bounds> bounds(Value v);
    std::optional<Bounds> bounds_of_remainder(Value v);
    bool never_beyond(const std::string& op, Value x, const Coefficient& c);
    std::optional<Value> truncated_parts(const std::string& to, Value v);
    bool or_infinite_ = false;  // of `bounds`: what is asked for may also be an infinity
    bool is_stored_float(Value v) const;
    bool whole_within(Value v, std::int64_t low, std::int64_t high, bool or_infinite);
    bool names_an_element(const ValueNode& fold);
    Value low_bits(Value v, int bits);
    bool is_number_of(target::DType type, Value v) const;
    bool cancels(Value a, Value b, double sign, int depth) const;
    std::unordered_map<std::uint64_t, unsigned> signs_;  // by the prover's state and value
    std::unordered_map<std::uint64_t, std::optional<Value>> undefined_;
    Value replace(Value v, const std::map<Atom, Poly>& with, std::unordered_map<Value, Value>& done);
    Value replace_parts(Value v, const std::map<Atom, Poly>& with, std::unordered_map<Value, Value>& done);
    Value rewritten(
        Value v,
        const std::function<std::optional<Value>(Value)>& change);  // the outermost parts for which `change` has a value, replaced by it
    Value intern(ValueNode n);
    void mark_infinite(ValueNode& n) const;
    std::optional<Poly> promised_value(Atom element);
    Value exponential(Value a);
    Value logarithm(Value a);
    Value extreme(const std::string& op, std::vector<Value> args);
    std::optional<Poly> line(const Poly& p, const Poly& q, const Poly& x);
    std::optional<Condition> line(const Condition& a, const Condition& b, const Poly& x);
    std::optional<Value> line(Value a, Value b, const Poly& x);
    void constants_in(Value v, std::vector<std::int64_t>& found) const;
    std::optional<Value> row_of(const std::string& op, const std::vector<Value>& terms);
    std::optional<Poly> as_index(Value v);
    Value as_condition(Value v);
    std::optional<Coefficient> multiple_of(Value v, Value z);
    std::optional<Coefficient> number_of_fold(Value v) const;
    Value extreme_in_form(const std::string& op, const std::vector<Value>& parts);
    Value chosen_by_order(Value x, Value y, Value then, Value otherwise);
    Value chosen(Value condition, Value then, Value otherwise);
    Value choice_outside(Value v);
    std::optional<Value> fold_to_one_end(const Condition& c, Value then, Value otherwise);
    Value lift(const std::vector<Value>& args, const std::function<Value(const std::vector<Value>&)>& make, bool& lifted);
    bool unite_products(std::map<Value, Coefficient>& bases);
    Value merged_sums(const Coefficient& constant, std::map<Value, Coefficient> terms);
    struct SumFactor {  // a sum among the factors of a term, and the other factors
        Value reduce = 0;
        std::vector<std::pair<Value, Coefficient>> others;
    };
    std::vector<SumFactor> sum_factors(Value term) const;
    std::optional<Poly> counted_before(const Poly& count, Atom k, const Poly& first) const;
    struct Chosen {
        Value a, b, then, otherwise;
    };
    std::optional<Chosen> chosen_where_equal(Value v) const;
    bool is_among(Value x, const std::vector<Atom>& around, Value top);
    bool is_part_of(Value part, Value whole, std::vector<Atom> around);
    std::optional<Value> place_in_whole(Value v);
    bool folds_places(Value v) const;
    bool not_before(Value v, const Poly& first);
    void drop_later_places(std::vector<Value>& places);
    Condition condition_of(Value v, bool& ok);
    Value under(const Condition& c, Value v, bool holds);
    std::optional<Poly> count_of(const Poly& p) const;  // p, where it is max(0, p)
    Condition end_as_mask(Atom i, const Poly& end, bool upper);
    std::optional<Poly> sum_of_quotients(Atom x, const Poly& lo, const Poly& hi, const Poly& p);
    struct Fold {  // of a body that is in normal form, over lo <= variable < hi; lives while `reduce` makes it one
        const std::string& op;
        Atom variable;
        const Poly &lo, &hi;
        Value body;
    };
    bool clip(const std::vector<Condition>& parts, Atom x, Poly& lo, Poly& hi);
    // What the fold is by the form of its body; nothing where that does not tell.
    std::optional<Value> fold_of_choice(const Fold& f);
    std::optional<Value> sum_of_parts(const Fold& f);
    std::optional<Value> extreme_of_parts(const Fold& f);
    std::optional<Value> fold_of_page(const Fold& f);
    std::optional<Value> fold_of_tiles(const Fold& f);
    std::optional<Value> folds_exchanged(const Fold& f);
    class FoldNest;  // value_digits.cpp
    std::optional<Value> joined_digits(const Fold& f);
    Poly offset_beside(Atom x, Value body);
    Value plain_fold(const Fold& f);
    bool adjacent(const ValueNode& a, const ValueNode& b);
    std::optional<Value> interpolated(Value at_zero, Value at_one, Atom x, std::int64_t zero);

    Integers& ints_;
    Prover& prover_;
    std::deque<ValueNode> nodes_;  // references to nodes stay valid while more are made
    std::map<std::string, Value> by_key_;
    int unknowns_ = 0;
    // What `simplified` made of a value or polynomial under the facts of a state of the prover.
    std::unordered_map<std::uint64_t, Value> simplified_values_;
    std::map<std::pair<int, Poly>, Poly> simplified_polys_;
    Value simplify(Value v);
    Poly simplify(const Poly& p);
    int merging_ = 0;
    // Masks are pulled outwards one in the other: parts with n masks of their own make 2^n cases.
    static constexpr int most_lifted = 10;
    int lifting_ = 0;
    int opening_ = 0;
};

}  // namespace tw::verify
