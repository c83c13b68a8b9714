// Vectors of 16 bytes for memory-bound kernels: hinted loads and stores, packing, clipped edges, cluster messages.
//
// Include after defining
//   ELEM_BYTES  2: bf16, 4: fp32 (the element type of every tensor the kernel touches through this header)
//   LOAD_FORM   0: ld.global.nc, 1: + L1::no_allocate, 2: + L1::no_allocate.L2::256B, 3: ld.global.cs
//   STORE_FORM  0: st.global, 1: st.global.cs, 2: st.global.L1::no_allocate, 3: st.global.wt
#pragma once
#include "tw_device.cuh"

#ifndef ELEM_BYTES
#define ELEM_BYTES 2
#endif
#ifndef LOAD_FORM
#define LOAD_FORM 1
#endif
#ifndef STORE_FORM
#define STORE_FORM 0
#endif

#if LOAD_FORM == 0
#define TW_LOAD_GLOBAL "ld.global.nc"
#elif LOAD_FORM == 1
#define TW_LOAD_GLOBAL "ld.global.nc.L1::no_allocate"
#elif LOAD_FORM == 2
#define TW_LOAD_GLOBAL "ld.global.nc.L1::no_allocate.L2::256B"
#else
#define TW_LOAD_GLOBAL "ld.global.cs"
#endif
#if STORE_FORM == 0
#define TW_STORE_GLOBAL "st.global"
#elif STORE_FORM == 1
#define TW_STORE_GLOBAL "st.global.cs"
#elif STORE_FORM == 2
#define TW_STORE_GLOBAL "st.global.L1::no_allocate"
#else
#define TW_STORE_GLOBAL "st.global.wt"
#endif

namespace tw {

constexpr int kPerVec = 16 / ELEM_BYTES;  // elements in a 16-byte vector
constexpr float kLog2E = 1.44269504088896340736f;

TW_DEVICE float minus_infinity() { return __uint_as_float(0xff800000u); }

// Streamed: read once, written once. `p` is 16-byte aligned.
TW_DEVICE uint4 load_streamed_16(const void* p) {
  uint4 v;
  asm volatile(TW_LOAD_GLOBAL ".v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
TW_DEVICE void store_streamed_16(void* p, uint4 v) {
  asm volatile(TW_STORE_GLOBAL ".v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
// Read again and again (weights): stays in L1. Volatile, so that the compiler does not carry it over a loop in registers
// (unpacked, even): a kernel that wants that says so.
TW_DEVICE uint4 load_cached_16(const void* p) {
  uint4 v;
  asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}

#if ELEM_BYTES == 2
using RowElem = u16;
TW_DEVICE float widen(RowElem x) { return from_bf16(x); }
TW_DEVICE RowElem narrow(float x) { return to_bf16(x); }
TW_DEVICE void unpack(uint4 v, float* f) {
  f[0] = __uint_as_float(v.x << 16);
  f[1] = __uint_as_float(v.x & 0xffff0000u);
  f[2] = __uint_as_float(v.y << 16);
  f[3] = __uint_as_float(v.y & 0xffff0000u);
  f[4] = __uint_as_float(v.z << 16);
  f[5] = __uint_as_float(v.z & 0xffff0000u);
  f[6] = __uint_as_float(v.w << 16);
  f[7] = __uint_as_float(v.w & 0xffff0000u);
}
TW_DEVICE uint4 pack(const float* f) {
  return make_uint4(pack_bf16(f[0], f[1]), pack_bf16(f[2], f[3]), pack_bf16(f[4], f[5]), pack_bf16(f[6], f[7]));
}
#else
using RowElem = float;
TW_DEVICE float widen(RowElem x) { return x; }
TW_DEVICE RowElem narrow(float x) { return x; }
TW_DEVICE void unpack(uint4 v, float* f) {
  f[0] = __uint_as_float(v.x);
  f[1] = __uint_as_float(v.y);
  f[2] = __uint_as_float(v.z);
  f[3] = __uint_as_float(v.w);
}
TW_DEVICE uint4 pack(const float* f) {
  return make_uint4(__float_as_uint(f[0]), __float_as_uint(f[1]), __float_as_uint(f[2]), __float_as_uint(f[3]));
}
#endif

// The compiler forgets what it derived from v: what is unpacked again costs an instruction, not a register held since.
TW_DEVICE void forget(uint4& v) { asm volatile("" : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)); }

// A row of n elements seen through 16-byte slots of its tensor: slot s holds the row's elements
// [s * kPerVec - shift, s * kPerVec - shift + kPerVec), of which those outside [0, n) belong to neighbours.
struct RowSlots {
  i64 start;  // index of slot 0's first element in the tensor, a multiple of kPerVec
  int shift;  // elements of slot 0 that belong to the row before; 0 for rows whose pitch is a multiple of 16 bytes
  int whole;  // slots below this one lie in the tensor with all their bytes: they may be read whole, neighbours and all
};
TW_DEVICE RowSlots row_slots(int row, int rows, int n, bool any_pitch) {
  const i64 begin = static_cast<i64>(row) * n;
  const int shift = any_pitch ? static_cast<int>(begin & (kPerVec - 1)) : 0;
  const i64 left = (static_cast<i64>(rows) * n - (begin - shift)) / kPerVec;
  return {begin - shift, shift, any_pitch ? static_cast<int>(left < 0x7fffffff ? left : 0x7fffffff) : 0x7fffffff};
}
// All elements of a slot whose first is the row's element `first` are the row's; or one of them is.
TW_DEVICE bool slot_is_full(int first, int n) { return first >= 0 && first + kPerVec <= n; }
TW_DEVICE bool slot_is_touched(int first, int n) { return first > -kPerVec && first < n; }
// Puts `fill` where a slot's elements are not the row's.
TW_DEVICE void mask_clipped(int first, int n, float fill, float* f) {
#pragma unroll
  for (int e = 0; e < kPerVec; ++e) {
    if (first + e < 0 || first + e >= n) f[e] = fill;
  }
}

// How many of the row's n elements lie in slots [first_slot, first_slot + slots).
TW_DEVICE int elements_in_slots(int first_slot, int slots, int shift, int n) {
  const int begin = max(first_slot * kPerVec - shift, 0);
  const int end = min((first_slot + slots) * kPerVec - shift, n);
  return max(end - begin, 0);
}

// Elements of a shared slot, one at a time: `first` is the row index of the slot's first element; the rest is `fill`.
TW_DEVICE void load_clipped(const void* slot, int first, int n, float fill, float* f) {
#pragma unroll
  for (int e = 0; e < kPerVec; ++e) {
    const int i = first + e;
    f[e] = i >= 0 && i < n ? widen(reinterpret_cast<const RowElem*>(slot)[e]) : fill;
  }
}
// Elements [kPerVec - shift, 2 * kPerVec - shift) of `before` and `here` taken together: the columns of a slot that lies
// `shift` elements before `here`. A barrel shifter over 32-bit words, then over halves.
TW_DEVICE uint4 shifted_columns(uint4 before, uint4 here, int shift) {
  u32 word[9] = {before.x, before.y, before.z, before.w, here.x, here.y, here.z, here.w, 0u};
  const int skip = ELEM_BYTES == 2 ? 4 - (shift + 1) / 2 : 4 - shift;  // words of `before` that are left out
#pragma unroll
  for (int i = 0; i < 5; ++i) word[i] = skip & 4 ? word[i + 4] : word[i];
#pragma unroll
  for (int i = 0; i < 6; ++i) word[i] = skip & 2 ? word[i + 2] : word[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) word[i] = skip & 1 ? word[i + 1] : word[i];
#if ELEM_BYTES == 2
  const u32 half = (shift & 1) * 16;
#pragma unroll
  for (int i = 0; i < 4; ++i) word[i] = __funnelshift_r(word[i], word[i + 1], half);
#endif
  return make_uint4(word[0], word[1], word[2], word[3]);
}
TW_DEVICE void store_clipped(void* slot, int first, int n, const float* f) {
#pragma unroll
  for (int e = 0; e < kPerVec; ++e) {
    const int i = first + e;
    if (i >= 0 && i < n) reinterpret_cast<RowElem*>(slot)[e] = narrow(f[e]);
  }
}

// Two floats into another CTA's shared memory (addresses from map_to_rank); completes that CTA's barrier by 8 bytes.
TW_DEVICE void st_async_f32x2(u32 addr, float a, float b, u32 bar) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1,%2}, [%3];" ::"r"(addr), "f"(a),
               "f"(b), "r"(bar)
               : "memory");
}
// Loads hinted evict-first in L2, for bulk copies of data that is read once.
TW_DEVICE void bulk_load_hint(u32 dst, const void* src, u32 bytes, u32 bar, u64 hint) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(dst),
      "l"(src), "r"(bytes), "r"(bar), "l"(hint)
      : "memory");
}

}  // namespace tw
