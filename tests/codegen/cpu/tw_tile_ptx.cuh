// Stand-ins for src/codegen/cuda/tw_tile_ptx.cuh on a CPU.
#pragma once

#include "tw_device.cuh"

namespace tw {

inline float div_full(float a, float b) { return a / b; }
inline void cp_async_8_zfill(u32 dst, const void* src, u32 bytes) { cp_async_some(dst, src, bytes, 8); }
inline void ldmatrix_x2(u32& a, u32& b, u32 addr) {
  u32 r[2];
  ldmatrix(r, 2, addr);
  a = r[0], b = r[1];
}
inline void ldmatrix_x2_trans(u32& a, u32& b, u32 addr) {
  u32 r[2];
  ldmatrix_trans(r, 2, addr);
  a = r[0], b = r[1];
}

}  // namespace tw
