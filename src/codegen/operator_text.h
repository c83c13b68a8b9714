// How operators read in C++: one table for all texts that are printed.
#pragma once

#include "ir/expr.h"
#include "ir/ir.h"

namespace tw::codegen {

// The sign between two operands; null where the operator is none of these.
const char* infix_sign(ir::ExprKind kind);
const char* infix_sign(ir::ElementOp op);  // comparisons and logic: the same for all types

// A function of floats, by name.
struct FunctionText {
    const char* single = nullptr;  // null: the operator is no such function
    const char* twice = nullptr;   // of f64
    bool ours = false;             // `single` is in namespace tw
    explicit operator bool() const { return single != nullptr; }
};
FunctionText function_of(ir::ElementOp op, bool approximate);

}  // namespace tw::codegen
