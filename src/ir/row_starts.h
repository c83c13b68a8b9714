// Rows whose pitch is no multiple of 16 bytes, read from the aligned address at or before their start: X[m, n - shift : ...] with
// shift = m % V * (N % V) % V, V elements in 16 bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/ir.h"

namespace tw::ir {

class RowStarts {
public:
    explicit RowStarts(const Kernel& kernel);

    // An origin that takes a remainder or a constant away, n - e % c or n - 8, may lie before the tensor: elements there are masked, as those
    // behind its end are. Of any other origin it is shown that it is never negative.
    bool before(const Expr& origin) const;

    // Such an origin that is never behind the tensor's start: a tile of a whole row, of which every one has elements that are not there.
    bool at_start(const Expr& origin) const;

    // Is the view's first element a multiple of n elements away from the tensor's first one, for all values of what the origin is made of, as far as
    // that is the same for all of the view's rows? By polynomials modulo n; a remainder e % c counts as e where n divides c.
    bool multiple_of(const GlobalView& view, std::int64_t n) const;

    bool multiple_of(const Expr& e, std::int64_t n) const;

private:
    Expr expanded(const Expr& e) const;

    const Kernel& kernel_;
    std::vector<std::optional<Expr>> value_;   // of variables that are assigned once
};

}  // namespace tw::ir
