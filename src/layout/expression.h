// The expression language of `tilewright layout EXPR`: CuTe notation (notation.h) plus the operations of this folder as
// functions. `functions()` is the one table that the evaluator, the help text and docs/layout.md are made from.
#pragma once

#include <span>

#include "layout/notation.h"

namespace tw::layout {

struct Function {
    const char* name;
    const char* arguments;  // "A, B", "A[, M]"
    const char* meaning;    // one line
    int least;              // arguments it takes
    int most;               // -1: any number
    Result<Value> (*apply)(std::vector<Value>& arguments);
};

std::span<const Function> functions();

// Any text gives a value or an error; see notation.h for the limits.
Result<Value> evaluate(std::string_view expression);

}  // namespace tw::layout
