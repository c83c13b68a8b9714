// Pieces of the text of an access: units of several values, sums and products of offsets.
#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace tw::codegen {

std::string plus(const std::string& a, const std::string& b);
// A pointer text moved by an offset text.
std::string moved(const std::string& pointer, const std::string& offset);
// What is left of a dimension from an offset on.
std::string rest(const std::string& left, const std::string& offset);
const char* hint_suffix(ir::CacheHint hint);
// How so many elements are moved in whole words of 32 bits: "vector" where registers are such words, "bytes" where they are put together
// first or taken apart. Null: a single element.
const char* words_of(ir::DType type, int count);
std::string times(const std::string& a, int n);

}  // namespace tw::codegen
