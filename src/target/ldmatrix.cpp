#include "target/ldmatrix.h"

namespace tw::target {

std::string MatrixMove::ptx_name() const {
    return std::string(store ? "stmatrix" : "ldmatrix") + ".sync.aligned.m8n8.x" + std::to_string(count) + (transpose ? ".trans" : "") +
           ".shared.b16";
}

Legality matrix_move_legal(const Arch& arch, const MatrixMove& m) {
    const std::string what = m.store ? "stmatrix" : "ldmatrix";
    if (m.count != 1 && m.count != 2 && m.count != 4)
        return Legality::no(what + " moves 1, 2 or 4 matrices, not " + std::to_string(m.count));
    if (!arch.has(m.store ? Feature::Stmatrix : Feature::Ldmatrix))
        return Legality::no(what + " does not exist on " + std::string(arch.name) + (m.store ? " (sm_90 and later)" : ""));
    return Legality::yes();
}

Legality matrix_move_address_legal(std::uint32_t a) {
    if (a % 16 != 0) return Legality::no("matrix row at shared address " + std::to_string(a) + " is not aligned to 16 bytes");
    return Legality::yes();
}

std::optional<MatrixRow> matrix_move_row_of_lane(const MatrixMove& m, int lane) {
    if (lane >= 8 * m.count) return std::nullopt;
    return MatrixRow{lane / 8, lane % 8};
}

FragmentMap matrix_move_map(bool transpose) {
    const FragmentMap plain{.rows = 8, .cols = 8, .thread_digits = {{4, 0, 2}, {8, 1, 0}}, .value_digits = {{2, 0, 1}}};
    return transpose ? transposed(plain) : plain;
}

FragmentMap matrix_move_stacked_map(const MatrixMove& m) {
    FragmentMap map = matrix_move_map(m.transpose);
    map.rows = 8 * m.count;
    if (m.count > 1) map.value_digits.push_back({m.count, 8, 0});
    return map;
}

}  // namespace tw::target
