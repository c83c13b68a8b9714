// Fragment maps: which element of a matrix each thread's each register value holds.
//
// Every fragment of mma.sync, wgmma, ldmatrix and stmatrix is a mixed-radix map: the thread index and the value index are
// split into digits (least significant first) and every digit moves the element by a fixed number of rows and columns.
// So one table of digits is both the function (thread, value) -> (row, col) and the CuTe thread-value layout; nothing else
// in the project writes these maps down again.
//
//   m16n8 accumulator:  thread digits (4: cols 2)(8: rows 1), value digits (2: cols 1)(2: rows 8)
//   thread 5 = 1 + 4*1, value 3 = 1 + 2*1  ->  row 1 + 8, col 2*1 + 1
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tw::target {

struct Coord {
    int row;
    int col;
    friend bool operator==(const Coord&, const Coord&) = default;
};

struct FragmentDigit {
    int size;      // radix
    int row_step;  // rows per unit of this digit
    int col_step;  // columns per unit of this digit
    friend bool operator==(const FragmentDigit&, const FragmentDigit&) = default;
};

struct ThreadValue {
    int thread;
    int value;
    friend bool operator==(const ThreadValue&, const ThreadValue&) = default;
};

struct FragmentMap {
    int rows = 0;
    int cols = 0;
    std::vector<FragmentDigit> thread_digits;  // least significant first
    std::vector<FragmentDigit> value_digits;

    [[nodiscard]] int threads() const;
    [[nodiscard]] int values() const;  // elements per thread
    // Post: 0 <= row < rows and 0 <= col < cols for 0 <= thread < threads(), 0 <= value < values().
    [[nodiscard]] Coord at(int thread, int value) const;
    // The owner of an element; a digit of (0, 0) steps (a broadcast) picks owner digit 0. nullopt: nobody holds it.
    [[nodiscard]] std::optional<ThreadValue> owner(int row, int col) const;
    // CuTe notation of the thread-value layout onto the column-major matrix (offset = row + col * rows), for example
    // "((4,8),(2,2)):((32,1),(16,8))" for the m16n8 accumulator.
    [[nodiscard]] std::string tv_notation() const;
    friend bool operator==(const FragmentMap&, const FragmentMap&) = default;
};

// The same fragment of the transposed matrix: rows and columns change places.
FragmentMap transposed(const FragmentMap& map);

}  // namespace tw::target
