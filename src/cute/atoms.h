// CuTe's names of element types, copy operations and MMA operations, read.
#pragma once

#include <optional>
#include <string>

#include "cute/value.h"

namespace tw::cute {

// Bits of an element type by its name; 0: not known.
int bits_of_type(const std::string& name);
// SM80_CP_ASYNC_CACHEGLOBAL, UniversalCopy, SM75_U32x4_LDSM_N, ...; `argument_bits` of its template argument, 0 where there is none.
std::optional<CopyOperation> copy_operation(const std::string& name, int argument_bits);
// SM80_16x8x16_F32BF16BF16F32_TN, SM90_64x128x16_F32F16F16_SS, UniversalFMA.
std::optional<MmaOperation> mma_operation(const std::string& name);

}  // namespace tw::cute
