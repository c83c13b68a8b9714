// Terms: what a value *is*, as a function of the kernel's inputs. One language for three uses:
//   - `computes`: the right-hand side of every output equation, resolved (this is the specification);
//   - tags: the provenance the verifier attaches to elements (hash-consing and normal forms live in verify/);
//   - the fp64 reference that tests and the emulator compare with.
//
// Free index variables are `Expr` variables with ids in the term's own name space (Equation::index_names), never kernel
// variables, unless the verifier says otherwise.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "target/dtype.h"

namespace tw::ir {

enum class TermKind : std::uint8_t {
    element,   // tensor `id` at `indices`
    scalar,    // run-time scalar parameter `id`
    constant,  // `number`
    index,     // the integer expression indices[0] as a value
    apply,     // function `name` over args: add sub mul div neg exp exp2 log log2 tanh erf sqrt rsqrt abs min max pow floor
               // ceil mulhi philox sin cos sigmoid select(c,a,b) lt le eq ne and or not fma ... (the names of ir::ElementOp)
    cast,      // args[0] as `dtype`
    reduce,    // fold `name` (sum, prod, max, min, any) over variable `id` in [indices[0], indices[1]) of args[0]
};

struct TermNode;
using Term = std::shared_ptr<const TermNode>;

struct TermNode {
    TermKind kind = TermKind::constant;
    int id = 0;
    double number = 0;
    std::string name;
    target::DType dtype = target::DType::F32;
    std::vector<Expr> indices;
    std::vector<Term> args;
};

Term element_term(int tensor, std::vector<Expr> indices);
Term scalar_term(int id, target::DType dtype);
Term constant_term(double value);
Term index_term(Expr value);
Term apply_term(std::string name, std::vector<Term> args);
Term cast_term(target::DType dtype, Term arg);
Term reduce_term(std::string op, int var, Expr lo, Expr hi, Term body);

// output[..., index[args], ...] = value, for all values of the last argument: the equation of a scatter as it was written. Where index
// names no element twice (a promise), it says the same as the equation around it, which is for every element of the output:
//   select(any(s', index[.., s'] == place), sum(s, select(index[.., s] == place, value, 0)), output[place])
struct Scatter {
    std::size_t dim = 0;     // of the output, along which index names the place
    int index = -1;          // the index tensor
    std::vector<Expr> args;  // of its element: variables of the output's other dimensions, and last `source`
    int source = -1;         // a variable in [0, extent)
    Expr extent;
    Term value;  // of the element that the source names, over `source` and the variables of the other dimensions
};

// output[indices...] = value, for all index variables in their ranges.
struct Equation {
    int output = 0;                        // tensor number
    std::vector<std::string> index_names;  // index variables by id (reduction variables included)
    std::vector<int> output_vars;          // per output dimension: the variable that runs over it
    std::vector<Expr> output_extents;      // per output dimension: the range of that variable is [0, extent)
    std::vector<Expr> output_starts;       // per output dimension: the tensor's index is start + variable; empty: starts of 0
    Term value;
    std::optional<Scatter> scatter;
};
// Where the equation's part of its output begins along a dimension. An output may have several parts (C[m in 0:8] = ...; C[m in 8:M] =
// ...), and elements in none of them are not written.
inline Expr start_of(const Equation& e, std::size_t dim) { return dim < e.output_starts.size() ? e.output_starts[dim] : Expr(0); }

struct Computes {
    std::vector<Equation> equations;
    std::string text;  // as the user wrote it
    bool empty() const { return equations.empty(); }
};

}  // namespace tw::ir
