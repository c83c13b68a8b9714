// Contents of index tensors: made so that they keep what is promised of them (ir/promise.h), and checked.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulate/emulator.h"

namespace tw::emulate {

// How the values are spread within what is promised. Rows over groups (offsets_of), and values over a range, in the same spirit.
enum class Spread : std::uint8_t {
    lowest,   // all rows in the first group; the least values
    highest,  // all rows in the last group; the greatest values
    random,
    single,  // one row a group, the rest in the last one; values that count upwards
    ragged,  // every other group empty, one with nearly all rows
};
inline constexpr int spreads = 5;

// The values of every integer tensor with a promise, row by row, over `sizes`; tensors without one are left empty.
std::vector<std::vector<std::int64_t>> promised_contents(const std::vector<ir::Tensor>& tensors, const std::vector<std::int64_t>& sizes,
                                                         Spread spread, std::uint64_t seed);

// Do any contents keep the promises over these sizes? A table of too few tiles for its rows, or rows and no group, has none.
bool promises_can_hold(const std::vector<ir::Tensor>& tensors, const std::vector<std::int64_t>& sizes);

// A stride that leads before a tensor's first element, where there is no memory; in words.
std::optional<std::string> without_memory(const ir::Tensor& tensor, const std::vector<std::int64_t>& sizes);
// The same for all tensors, or a dimension below zero.
std::optional<std::string> impossible_shape(const std::vector<ir::Tensor>& tensors, const std::vector<std::int64_t>& sizes);

// The first promise that contents break, in words, with the argument and the index: "starts[3] is 40, but 37 elements of expert
// are below 3". `element(tensor, n)` is the n-th element of a tensor, row by row. Nothing where all are kept.
std::optional<std::string> broken_promise(const std::vector<ir::Tensor>& tensors, const std::vector<std::int64_t>& sizes,
                                          const std::function<std::int64_t(int tensor, std::int64_t n)>& element);
std::optional<std::string> broken_promise(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes,
                                          const std::vector<TensorData>& tensors);

}  // namespace tw::emulate
