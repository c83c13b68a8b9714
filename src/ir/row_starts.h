// Rows whose pitch is no multiple of 16 bytes, read from the aligned address at or before their start: X[m, n - shift : ...] with
// shift = m % V * (N % V) % V, V elements in 16 bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tw::ir {

class RowStarts {
public:
    explicit RowStarts(const Kernel& kernel);

    // An origin that takes a remainder or a constant away, n - e % c or n - 8, may lie before the tensor: elements there are masked, as
    // those past its end are. Of any other origin it is shown that it is never negative.
    bool before(const Expr& origin) const;

    // Such an origin that is never after the tensor's start: a tile of a whole row, of which every one has elements that are not there.
    bool at_start(const Expr& origin) const;

    // Is the view's first element a multiple of n elements away from the tensor's first one, for all values of what the origin is made of,
    // as far as that is the same for all of the view's rows? By polynomials modulo n; a remainder e % c counts as e where n divides c.
    bool multiple_of(const GlobalView& view, std::int64_t n) const;

    bool multiple_of(const Expr& e, std::int64_t n) const;

    // A copy in whole vectors of n elements: why it cannot be, or nothing. The rows of the tile lie in the buffer as they lie in the
    // tensor, modulo n, for all sizes; between two rows of the buffer there is room for what the vectors at their ends have beside them;
    // and these elements are in the tensor, which nothing writes.
    std::string unlike(const CpAsync& copy, std::int64_t n) const;

private:
    Expr expanded(const Expr& e) const;
    bool multiple_as_assumed(const Expr& e, std::int64_t n) const;  // with what is assumed of the sizes, N % 8 == 3

    const Kernel& kernel_;
    std::vector<std::optional<Expr>> value_;             // of variables that are assigned once
    mutable std::vector<std::optional<Expr>> expanded_;  // the same, with their own variables replaced
};

// How far row `row` of the tile of a copy in whole vectors begins after a multiple of the vectors' length, in elements.
int row_phase(const Kernel& kernel, const CpAsync& copy, int row);

}  // namespace tw::ir
