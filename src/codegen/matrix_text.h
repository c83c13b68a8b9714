// Device functions around matrix instructions of types that the device headers have no function for: printed with the kernel that
// uses them, straight from the instruction tables of target/.
#pragma once

#include <string>

#include "target/mma.h"
#include "target/wgmma.h"

namespace tw::codegen {

// "mma_m16n8k8_tf32_tf32"; "wgmma_m64n64k32_e4m3_e4m3_ss".
std::string function_name(const target::MmaInstruction& i);
std::string function_name(const target::WgmmaInstruction& i);

// TW_DEVICE void <name>(float (&d)[4], u32 a0, ..., u32 b0, ...): d += a * b.
std::string function_text(const target::MmaInstruction& i);
// TW_DEVICE void <name>(float (&d)[n / 2], u64 a or u32 a0 .. a3, u64 b, int accumulate).
std::string function_text(const target::WgmmaInstruction& i);

}  // namespace tw::codegen
