// `computes`: the one-line mathematics that a kernel claims to do.
//
//   C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))
//
// It is the specification that the verifier proves data movement against, that the fp64 reference evaluates, and that a task
// states. It says which elements go into which result, not in which order.
//
// Grammar (whitespace is free; outside brackets a line end separates equations just as ';' does, unless the line ends in an
// operator, '=' or ','; '#' starts a comment):
//
//   spec       = equation { (';' | line end) equation }
//   equation   = ['let'] NAME [ '[' left { ',' left } ']' ] becomes expr
//   becomes    = '=' | '+=' | 'max' '=' | 'min' '='
//   left       = VAR | VAR 'in' range | INTEGER | NAME '[' VAR { ',' VAR } ']'
//   range      = expr ':' expr                                     half open; bounds are index expressions
//   expr       = or-chain of and-chains of ['not'] comparisons of sums; usual precedence, '**' binds tightest
//   comparison = sum [ ('==' | '!=' | '<' | '<=' | '>' | '>=') sum ]          not chained
//   primary    = NUMBER | 'inf' | 'pi' | NAME | NAME '[' expr { ',' expr } ']' | '(' expr ')'
//              | DTYPE '(' expr ')' | FUNCTION '(' expr { ',' expr } ')' | REDUCTION '(' over ',' expr ')'
//   over       = bind | '(' bind { ',' bind } ')'        bind = VAR | VAR 'in' range
//
// What the parts mean:
//   * An equation defines one element of a tensor for every value of its index variables. A variable without a range runs
//     over the dimension it indexes, on the left side, or, in a reduction, in the tensors of its body; the semantic stage
//     infers it and reports when two dimensions disagree. `m in 0:8` gives it outright.
//   * cache[slot[t], n] = ... scatters: the equation is for the elements that slot names, one for every t, and others keep what they
//     hold. An index outside the tensor names nothing. One index may be such an element; the last of its indices is a variable of its
//     own, the others are variables of the left side.
//   * G[idx[t], n] += X[t, n] updates: to what an element held, or to the 0 that the launcher put there, comes the sum of X[t, n] over all
//   t
//     with idx[t] at its place; `max=` and `min=` take the largest or smallest of them. Variables of index tensors that are no index of the
//     left side are the sources: here they are folded, and may name a place any number of times. Without an index tensor, S[n] += e is
//     S[n] = S[n] + e.
//   * `let s[i, j] = ...` names an intermediate; `let scale = 0.125` a value. It may be used in later equations, at other
//   indices.
//   * Reductions bind their variables in the body, not in their own ranges: sum(j in 0:i+1, e) is a causal sum. Several
//     variables are folded jointly: sum((i, j in 0:i), e), where a later range may use an earlier variable. Prefix sums are
//     sums with a dependent range; there is no separate scan.
//   * max and min are reductions when called with a new name first, max(k, X[k]), or with `k in ...`, and two-argument
//   functions
//     otherwise, max(X[i], 0). `maximum` and `minimum` are always the two-argument functions (and are what print() writes).
//   * softmax(j, e) is exp(e - logsumexp(j, e)) at the j that is bound around it; with a range, it is 0 where that j lies
//     outside. expand_softmax() rewrites it.
//   * An index is an integer expression: + - * // % of variables, sizes and integers, minimum and maximum, where(...), and
//   gathers
//     X[idx[r], k]. // and % round towards minus infinity, as in Python. Whether it is affine is for those to say who need it.
//   * Casts round to the dtype: bf16(e), f32(e), tf32(e), e4m3(e), i32(e), ...
//
// Names are not resolved here: an Element's tensor, and a FreeName (a size, a const, a scalar parameter), may turn out not to
// exist. Variables are: a Variable node is always bound by its equation or by a reduction around it.
//
// Like the syntax tree (lang/ast.h), nodes lie in one flat vector, are referred to by id, and are at most kMaxExprDepth deep.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/diagnostic.h"
#include "lang/ast.h"
#include "target/dtype.h"

namespace tw::lang {

struct TermTag {};
using TermId = NodeId<TermTag>;

enum class ComputesOp : std::uint8_t {
    add,
    subtract,
    multiply,
    divide,
    floor_divide,
    modulo,
    power,
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,
    logical_and,
    logical_or,
    negate,
    logical_not  // one operand
};
std::string_view spelling(ComputesOp op);

enum class ReductionKind : std::uint8_t { sum, prod, mean, max, min, any, all, argmax, argmin, logsumexp, softmax };
std::string_view spelling(ReductionKind kind);

// Elementwise functions with their number of arguments; `where(c, a, b)` is the one with three.
struct ElementwiseFunction {
    std::string_view name;
    int arguments;
    bool integer_valued;  // gives integers for integer arguments, so it may stand in an index
};
const ElementwiseFunction* find_elementwise(std::string_view name);  // static storage; null when unknown

struct Number {
    double value = 0;          // may be infinite: inf
    bool is_integer = false;   // written without point or exponent
    std::int64_t integer = 0;  // its value then
};
struct Variable {  // a bound index variable
    std::string name;
};
struct FreeName {  // a size, const, scalar parameter, or a `let` without indices
    std::string name;
};
struct Element {
    std::string tensor;
    Span tensor_span;
    std::vector<TermId> indices;  // at least one
};
struct CastTerm {
    target::DType dtype;
    TermId operand;
};
struct Operation {
    ComputesOp op;
    TermId left;
    TermId right;  // none for negate and logical_not
};
struct Apply {
    std::string function;  // one of the elementwise functions
    std::vector<TermId> arguments;
};
// A variable with its range; low and high are none where the range is to be inferred. Both or neither are given.
struct IndexBinding {
    std::string variable;
    Span span;
    TermId low, high;
};
struct Reduction {
    ReductionKind kind;
    std::vector<IndexBinding> over;  // at least one
    TermId body;
};

using TermNode = std::variant<Number, Variable, FreeName, Element, CastTerm, Operation, Apply, Reduction>;
struct TermEntry {
    Span span;
    std::uint16_t depth = 1;
    TermNode node;
};

// One index of a left side: a variable, a constant, or an element of an index tensor.
struct LeftIndex {
    IndexBinding binding;  // variable empty: a constant, or an element
    std::int64_t constant = 0;
    std::string tensor;  // an element of this one: slot[t]; the binding's span is that of the whole
    Span tensor_span;
    std::vector<IndexBinding> variables;  // its indices, without ranges; the last one is bound here, the others elsewhere on the left
};
enum class Becomes : std::uint8_t { value, sum, maximum, minimum };  // =, +=, max=, min=

struct ComputesEquation {
    bool is_let = false;
    Becomes becomes = Becomes::value;
    std::string tensor;
    Span tensor_span;
    Span span;
    std::vector<LeftIndex> indices;  // empty: a single value
    TermId value;
};

struct ComputesSpec {
    std::vector<TermEntry> terms;
    std::vector<ComputesEquation> equations;  // in the order written

    const TermEntry& operator[](TermId id) const { return terms[id.index]; }
    template <class Node>
    const Node* get_if(TermId id) const {
        return id ? std::get_if<Node>(&terms[id.index].node) : nullptr;
    }
};

// Where a text stands in the source: `text[i]` is byte `source(i)`. Made from a string literal of a module, or from a whole
// file of the source map (a task's text).
struct ComputesText {
    std::string_view text;
    FileId file = kNoFile;
    std::vector<StringPiece> pieces;  // as in StringLiteral
    std::function<std::optional<target::DType>(std::string_view)>
        dtype;  // further names of dtypes: `T` of a kernel with T: tw.each(bf16, f16)
    // Functions by another name: `F` of a kernel with F: tw.each("sum", "max").
    std::function<std::optional<std::string>(std::string_view)> function;
    Span span(std::size_t begin, std::size_t end) const;
};
ComputesText computes_text(const Module& module, ExprId literal);  // `literal` is a StringLiteral
ComputesText computes_text(const SourceMap& sources, FileId file);

// Reports TW05xx. Complete when the sink got no error from this call; an equation with an error is left out.
ComputesSpec parse_computes(const ComputesText& text, DiagnosticSink& sink);

// Canonical text, equations joined by "; "; parsing it gives the same specification, spans aside.
std::string print(const ComputesSpec& spec);
std::string print(const ComputesSpec& spec, TermId term);
bool same_spec(const ComputesSpec& a, const ComputesSpec& b);

// The specification with each softmax(j in a:b, e) written as
//   where(a <= j and j < b, exp(e - logsumexp(j' in a:b, e[j -> j'])), 0.0)     (just the exp without a range)
// with fresh variables j'. Post-condition: no Reduction of kind softmax is left. Nested softmax doubles the body each time;
// nothing is given back (nullopt) when more than `max_terms` would result.
std::optional<ComputesSpec> expand_softmax(const ComputesSpec& spec, std::size_t max_terms = 100000);

}  // namespace tw::lang
