// CuTe's notation, read and written.
//
//      4                              an integer (also `_4`, as CuTe prints compile-time integers)
//      (4,(2,8))                      a tuple; a trailing comma is allowed
//      (4,(2,8)):(16,(1,2))           a layout
//      Sw<3,4,3>                      a swizzle
//      Sw<3,4,3> o 0 o (8,64):(64,1)  a layout after a swizzle (the offset may be left out)
//      (4:1, _, (2,2):(1,8))          a tiler: one entry per mode; <4:1, _> is the same
//      name(a, b, ...)                a call, where calls are allowed (expression.h)
//
// Reading never crashes, whatever the bytes: text over 64 KiB, nesting over kMaxDepth, more than 1024 numbers and integers
// beyond 64 bits are errors with a position.
#pragma once

#include <functional>
#include <string_view>
#include <variant>

#include "layout/thread_value.h"

namespace tw::layout {

using Value = std::variant<IntTuple, ComposedLayout, Tiler, Swizzle, ThreadValueLayout, bool, std::string>;

std::string to_string(const Value& value);

// Called with the function's name and its evaluated arguments.
using CallHandler = std::function<Result<Value>(std::string_view name, std::vector<Value>& arguments)>;

// Without a handler, a call is an error.
Result<Value> parse_value(std::string_view text, const CallHandler& call = {});

// Post: parse(to_string(x)) == x.
Result<IntTuple> parse_int_tuple(std::string_view text);
Result<Layout> parse_layout(std::string_view text);  // a bare shape is its col_major layout
Result<ComposedLayout> parse_composed(std::string_view text);

}  // namespace tw::layout
