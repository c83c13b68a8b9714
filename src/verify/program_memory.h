// A part of a tensor's memory by extents, strides and offset, and the way back from an element's number to its index in the part.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "verify/value.h"

namespace tw::verify {

struct MemoryPart {
    std::vector<std::int64_t> dims, strides;
    std::int64_t offset = 0;

    Poly number(const std::vector<Poly>& index) const;  // of an element, in memory
    bool same_as(const MemoryPart& other) const;        // the same elements by the same indices
};

struct Digits {
    Condition inside;         // the number is that of an element of the part
    std::vector<Poly> index;  // which one, then
};

// The index of the element with this number. `steps`: the strides of the tensor's own dimensions, the largest first; `count`: its elements.
// Nothing where the part is not of this kind: rows that overlap, or that run over the end of a dimension into the next.
// Pre: 0 <= number < count.
std::optional<Digits> digits_in(const MemoryPart& part, const Poly& number, const std::vector<std::int64_t>& steps, std::int64_t count,
                                Integers& ints, Prover& prover);

}  // namespace tw::verify
