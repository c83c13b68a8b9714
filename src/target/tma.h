// TMA: cp.async.bulk.tensor, tiled mode, rank 1 to 5. A tensor map (built on the host) fixes tensor, box, swizzle and
// fill; the instruction names a start coordinate, a shared-memory address and, for loads, an mbarrier.
//
// Dimension 0 is the innermost (contiguous) one everywhere in this file, as in the driver's interface.
// A load writes the whole box: elements outside the tensor become the fill, element by element. A store skips them, but along
// dimension 0 in chunks of 16 bytes: a tensor whose rows are not a multiple of 16 bytes has the rest of its last chunk written
// (found by the probes; harmless in a row's own padding, a silent overwrite in a view of a wider matrix).
// The transaction count of a load is the bytes of the *whole* box, outside elements included.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "target/arch.h"
#include "target/dtype.h"
#include "target/legality.h"
#include "target/swizzle.h"

namespace tw::target {

inline constexpr int tma_max_rank = 5;
using TmaCoord = std::array<std::int64_t, tma_max_rank>;  // entries at and beyond rank are 0

enum class TmaFill : std::uint8_t { Zero, Nan };
enum class TmaReduce : std::uint8_t { None, Add };

struct TensorMapSpec {
    DType type = DType::F32;
    int rank = 1;
    std::uint64_t global_address = 0;
    std::array<std::uint64_t, tma_max_rank> dims{};                          // elements
    std::array<std::uint64_t, tma_max_rank> strides{};                       // bytes; strides[0] is implied: bytes(type)
    std::array<std::uint32_t, tma_max_rank> box{};                           // elements of the traversed box
    std::array<std::uint32_t, tma_max_rank> element_strides{1, 1, 1, 1, 1};  // [0] is ignored by the hardware
    SwizzleMode swizzle = SwizzleMode::None;
    TmaFill fill = TmaFill::Zero;
};

// CUtensorMapDataType for this element type (the driver's enumerators), and whether NaN fill is admitted.
int tensor_map_data_type(DType type);

Legality tensor_map_legal(const Arch& arch, const TensorMapSpec& t);
Legality tma_load_legal(const Arch& arch, const TensorMapSpec& t, std::uint32_t shared_address);
Legality tma_store_legal(const Arch& arch, const TensorMapSpec& t, std::uint32_t shared_address, TmaReduce reduce);
// The start coordinate lies on a 16-byte boundary of the row, and of a store no coordinate is negative; anything else is an
// illegal-instruction trap. A load may start outside on any side.
Legality tma_load_coordinate_legal(const TensorMapSpec& t, const TmaCoord& start);
Legality tma_store_coordinate_legal(const TensorMapSpec& t, const TmaCoord& start);
// Every rank of the mask exists in the cluster and the mask is not empty.
Legality multicast_legal(const Arch& arch, std::uint32_t cta_mask, int cluster_blocks);
// Alignment of the shared base that the hardware demands.
inline constexpr int tma_hardware_shared_alignment = 128;

// Elements actually moved along dimension d: ceil(box / element stride).
int box_extent(const TensorMapSpec& t, int d);
std::int64_t box_elements(const TensorMapSpec& t);
// Bytes the load adds to the barrier's transaction count.
std::int64_t box_bytes(const TensorMapSpec& t);
// Bytes between neighbouring rows (dimension 1) of the box in shared memory.
int box_row_pitch(const TensorMapSpec& t);
// Bytes of shared memory the box covers, from its base.
std::int64_t box_footprint(const TensorMapSpec& t);

// Shared byte address of box element `in_box`, swizzle included.
std::uint32_t tma_shared_address(const TensorMapSpec& t, std::uint32_t shared_base, const TmaCoord& in_box);
// Byte offset in the tensor of the element that box element `in_box` comes from; nullopt: outside, so fill (or skipped).
std::optional<std::int64_t> tma_global_offset(const TensorMapSpec& t, const TmaCoord& start, const TmaCoord& in_box);
// The same for a store: nullopt when the element is not written. Differs from tma_global_offset only in the elements between
// the end of a row and its next 16-byte boundary, which a store does write.
std::optional<std::int64_t> tma_store_offset(const TensorMapSpec& t, const TmaCoord& start, const TmaCoord& in_box);
// Elements past the end of a row that a store may write: 0 when rows are a multiple of 16 bytes.
int tma_store_overrun(const TensorMapSpec& t);
// Bit pattern a load writes for an outside element: zero, or a NaN made of 0x7ff7 in every 16 bits.
std::uint64_t tma_fill_bits(const TensorMapSpec& t);

}  // namespace tw::target
