// The instructions that only emitted kernels use; the rest of them are in tw_device.cuh.
#pragma once

#include "tw_device.cuh"

namespace tw {

TW_DEVICE float f16_at(u32 word, int odd) {
  float r;
  u16 h = static_cast<u16>(odd ? word >> 16 : word);
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(h));
  return r;
}
TW_DEVICE float round_f16(float x) {
  float r;
  asm("{\n.reg .b16 h;\ncvt.rn.f16.f32 h, %1;\ncvt.f32.f16 %0, h;\n}" : "=f"(r) : "f"(x));
  return r;
}
// Two units in the last place over the whole range.
TW_DEVICE float div_full(float a, float b) {
  float r;
  asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
TW_DEVICE void cp_async_8_zfill(u32 dst, const void* src, u32 bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}
TW_DEVICE void ldmatrix_x2(u32& a, u32& b, u32 addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(addr) : "memory");
}
TW_DEVICE void ldmatrix_x2_trans(u32& a, u32& b, u32 addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(addr) : "memory");
}

}  // namespace tw
