// Stand-ins for src/codegen/cuda/tw_tile_ptx.cuh on a CPU.
#pragma once

#include "tw_device.cuh"

namespace tw {

inline u32 max_bf16x2(u32 a, u32 b) {
  u32 r = 0;
  for (int i = 0; i < 32; i += 16) {
    const float x = from_bf16(u16(a >> i)), y = from_bf16(u16(b >> i));
    r |= u32(y != y || x > y || (x == y && !(a >> i & 0x8000)) ? u16(a >> i) : u16(b >> i)) << i;
  }
  return r;
}
inline u32 min_bf16x2(u32 a, u32 b) { return max_bf16x2(a ^ 0x80008000u, b ^ 0x80008000u) ^ 0x80008000u; }
template <class T>
T to_integer(double x, double least, double largest, T nan) { return x != x ? nan : x <= least ? T(least) : x >= largest ? T(largest == 0x1p63 ? 0x7fffffffffffffffLL : (long long)largest) : T(x); }
inline int to_i32(float x) { return to_integer<int>(x, -0x1p31, 0x1p31 - 1, 0); }
inline int to_i32(double x) { return to_integer<int>(x, -0x1p31, 0x1p31 - 1, 0); }
inline u32 to_u32(float x) { return to_integer<u32>(x, 0, 0x1p32 - 1, 0); }
inline u32 to_u32(double x) { return to_integer<u32>(x, 0, 0x1p32 - 1, 0); }
inline long long to_i64(float x) { return to_integer<long long>(x, -0x1p63, 0x1p63, -0x7fffffffffffffffLL - 1); }
inline long long to_i64(double x) { return to_integer<long long>(x, -0x1p63, 0x1p63, -0x7fffffffffffffffLL - 1); }
inline float div_full(float a, float b) { return a / b; }
template <int N>
void atomic_add_vector(float* p, const float* x) {
  for (int i = 0; i < N; ++i) p[i] += x[i];
}
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

// Blocks run one at a time here: a block's only peer is itself.
inline char* peer_memory(char* memory, u32) { return memory; }
#define TW_HINTED(hint)                                                                              \
  inline uint4 load_16_##hint(const void* p) { return *static_cast<const uint4*>(p); }               \
  inline uint2 load_8_##hint(const void* p) { return *static_cast<const uint2*>(p); }                \
  inline u32 load_4_##hint(const void* p) { return *static_cast<const u32*>(p); }                    \
  inline void store_16_##hint(void* p, uint4 v) { *static_cast<uint4*>(p) = v; }                     \
  inline void store_8_##hint(void* p, uint2 v) { *static_cast<uint2*>(p) = v; }                      \
  inline void store_4_##hint(void* p, u32 v) { *static_cast<u32*>(p) = v; }
TW_HINTED(streaming)
TW_HINTED(evict_first)
TW_HINTED(evict_last)
#undef TW_HINTED

}  // namespace tw
