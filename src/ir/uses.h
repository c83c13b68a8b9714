// What one statement reads and writes: the one list of it, for everybody who looks for lifetimes, scopes or dependences.
#pragma once

#include <functional>

#include "ir/ir.h"

namespace tw::ir {

// Called for what the statement itself uses, not for the statements in it, and not for invariants (they are checked, never executed). A
// hook that is empty is not called.
struct UseVisitor {
    std::function<void(int)> reads = {}, writes = {};  // fragments; a write leaves all of it written
    std::function<void(int)> binds = {};               // a variable that it gives a value: assigned, counted by a loop, numbered by a role
    std::function<void(const Expr&)> expr = {};        // what addresses or steers data: bounds, conditions, coordinates, right sides
    std::function<void(const Expr&)> synchronises = {};  // slots, parities, byte counts and numbers of barriers
    std::function<void(int)> tensor = {};                // a tensor that it touches by its pointer
    std::function<void(const SharedView&)> shared = {};  // instead of `expr` for the expressions of the view
};
void visit_uses(const Stmt& stmt, const UseVisitor& visitor);

// Every variable in it, and every tensor of which it reads an element.
void visit_leaves(const Expr& e, const std::function<void(int)>& variable, const std::function<void(int)>& element_of = {});

}  // namespace tw::ir
