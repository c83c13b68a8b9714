// ldmatrix and stmatrix: a warp moves 1, 2 or 4 matrices of 8 x 8 16-bit elements between shared memory and registers.
// Lane 8 * i + r gives the address of row r of matrix i (16 bytes, 16-byte aligned); lanes beyond 8 * count are ignored
// but must still execute. Register i of a lane holds two neighbouring elements of matrix i.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "target/arch.h"
#include "target/fragment.h"
#include "target/legality.h"

namespace tw::target {

struct MatrixMove {
    bool store;      // stmatrix (sm_90)
    int count;       // 1, 2, 4
    bool transpose;  // .trans

    [[nodiscard]] int registers() const { return count; }
    [[nodiscard]] int bytes() const { return count * 128; }
    [[nodiscard]] std::string ptx_name() const;  // "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"
    friend bool operator==(const MatrixMove&, const MatrixMove&) = default;
};

Legality matrix_move_legal(const Arch& arch, const MatrixMove& m);
Legality matrix_move_address_legal(std::uint32_t row_byte_address);

// Which matrix and row a lane's address names; nullopt: this lane's address is not used.
struct MatrixRow {
    int matrix;
    int row;
    friend bool operator==(const MatrixRow&, const MatrixRow&) = default;
};
std::optional<MatrixRow> matrix_move_row_of_lane(const MatrixMove& m, int lane);

// (lane, value 0..1) -> (row, col) inside one 8 x 8 matrix *as it lies in shared memory*.
FragmentMap matrix_move_map(bool transpose);
// (lane, value 0..2*count-1) -> (8 * matrix + row, col): all matrices stacked, value = 2 * register + half.
FragmentMap matrix_move_stacked_map(const MatrixMove& m);

}  // namespace tw::target
