// The 64-bit shared-memory matrix descriptor of wgmma, both ways, and the canonical layouts it can express.
//
//   bits  0-13  start address >> 4           bits 16-29  leading dimension byte offset (LBO) >> 4
//   bits 32-45  stride dimension byte offset (SBO) >> 4
//   bits 49-51  base offset                  bits 62-63  swizzle: 0 none, 1 128 B, 2 64 B, 3 32 B
//
// What the offsets mean depends on major-ness and swizzle. In units of elements, with T = 16 / bytes(dtype) elements in a
// 16-byte chunk and S = span_bytes(mode) / 16 chunks in a swizzle row, element (mn, k) of the operand lies at
//
//   K-major,  none:  (mn % 8) * 16 B + (mn / 8) * SBO + (k / T) * LBO  + (k % T)
//   K-major,  S:     (mn % 8) * span + (mn / 8) * SBO + (k / T) * 16 B + (k % T)     LBO unused (k spans 2 chunks <= S)
//   MN-major, none:  (mn % T) + (mn / T) * SBO + (k % 8) * 16 B + (k / 8) * LBO
//   MN-major, S:     (mn % (S*T)) + (mn / (S*T)) * LBO + (k % 8) * span + (k / 8) * SBO
//
// from the start address, and then the swizzle acts on the resulting address.
#pragma once

#include <cstdint>
#include <string>

#include "target/dtype.h"
#include "target/legality.h"
#include "target/swizzle.h"
#include "target/wgmma.h"

namespace tw::target {

struct MatrixDescriptor {
    std::uint32_t start_address = 0;  // bytes, shared::cta window, multiple of 16, < 2^18
    std::uint32_t leading_bytes = 0;  // LBO, bytes, multiple of 16, < 2^18
    std::uint32_t stride_bytes = 0;   // SBO, bytes, multiple of 16, < 2^18
    int base_offset = 0;              // 0..7; 0 when the swizzle pattern starts at a multiple of pattern_bytes(swizzle)
    SwizzleMode swizzle = SwizzleMode::None;
    friend bool operator==(const MatrixDescriptor&, const MatrixDescriptor&) = default;
};

Legality descriptor_legal(const MatrixDescriptor& d);
// Pre: descriptor_legal(d). Post: decode_descriptor(encode_descriptor(d)) == d.
std::uint64_t encode_descriptor(const MatrixDescriptor& d);
// Reserved bits are ignored. Post: every field is in range.
MatrixDescriptor decode_descriptor(std::uint64_t bits);

// The byte address the tensor core reads element (mn, k) of the operand from. mn is the row of A (m) or the column of B
// (n); k counts inside one instruction (0 <= k < 32 / bytes(type)).
std::uint32_t descriptor_address(const MatrixDescriptor& d, Major major, DType type, int mn, int k);

// ---- whole tiles ----
// A tile of `mn` x `k` elements as it lies in shared memory in a canonical form that TMA can write box by box:
//   K-major: columns of span_bytes(swizzle) bytes along k; each holds all mn rows, one row after another (span bytes a row).
//   MN-major: columns of span_bytes(swizzle) bytes along mn; each holds all k rows, one after another.
// With no swizzle the span is 16 bytes (core matrices of 8 rows x 16 bytes, 128 contiguous bytes).
struct OperandTile {
    DType type;
    Major major;
    SwizzleMode swizzle;
    int mn;  // rows of A or columns of B
    int k;   // whole tile, a multiple of 32 / bytes(type)

    [[nodiscard]] int contiguous() const { return major == Major::K ? k : mn; }
    [[nodiscard]] int other() const { return major == Major::K ? mn : k; }
    [[nodiscard]] int span_elements() const { return span_bytes(swizzle) / bytes(type); }
    [[nodiscard]] int columns() const;       // span-wide columns
    [[nodiscard]] int column_bytes() const;  // bytes of one of them
    [[nodiscard]] int size_bytes() const { return columns() * column_bytes(); }
    friend bool operator==(const OperandTile&, const OperandTile&) = default;
};

// Which tiles the instruction can address: type/major legality, k step, span divides the contiguous extent (K-major: the
// span must hold a whole 32-byte k step unless there is no swizzle), multiples of 8 across.
Legality tile_legal(const OperandTile& tile);

// Where element (mn, k) lies, as an unswizzled byte offset from the tile's base.
int tile_linear_offset(const OperandTile& tile, int mn, int k);
// Its byte address. Pre: base is a multiple of pattern_bytes(swizzle) for the offsets to describe a TMA-written tile.
std::uint32_t tile_address(const OperandTile& tile, std::uint32_t base, int mn, int k);

// The descriptor of the sub-operand that starts at row/column `mn0` and K position `k0` of the tile.
// Pre: tile_legal; k0 a multiple of the instruction's k; mn0 a multiple of 8 (K-major) or of the span (MN-major).
// Post: descriptor_address(d, major, type, i, j) == tile_address(tile, base, mn0 + i, k0 + j) for all i, j in range.
MatrixDescriptor tile_descriptor(const OperandTile& tile, std::uint32_t base, int mn0, int k0);
Legality tile_descriptor_legal(const OperandTile& tile, std::uint32_t base, int mn0, int k0, int mn_extent);

// CuTe notation of the tile's layout: offset in *elements* before the swizzle, and the swizzle in element units, for
// example "Sw<3,3,3> o ((8,8),(64,1)):((64,512),(1,4096))" for a bf16 K-major 64 x 64 tile with 128 B swizzle.
std::string tile_notation(const OperandTile& tile);

}  // namespace tw::target
