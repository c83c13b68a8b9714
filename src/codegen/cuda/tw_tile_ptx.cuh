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
// Pairs of 16-bit floats: as fmaxf and fminf, a NaN is dropped and +0 counts as more than -0.
#define TW_PAIRS(op, type)                                                   \
  TW_DEVICE u32 op##_##type##x2(u32 a, u32 b) {                              \
    u32 r;                                                                   \
    asm(#op "." #type "x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));          \
    return r;                                                                \
  }
TW_PAIRS(max, bf16)
TW_PAIRS(min, bf16)
TW_PAIRS(max, f16)
TW_PAIRS(min, f16)
#undef TW_PAIRS
// Towards zero; beyond the type its least or largest value; NaN is 0 (as i64 the least value).
#define TW_TO_INTEGER(name, result, type, constraint)                                                        \
  TW_DEVICE result name(float x) {                                                                           \
    result r;                                                                                                \
    asm("cvt.rzi." #type ".f32 %0, %1;" : constraint(r) : "f"(x));                                           \
    return r;                                                                                                \
  }                                                                                                          \
  TW_DEVICE result name(double x) {                                                                          \
    result r;                                                                                                \
    asm("cvt.rzi." #type ".f64 %0, %1;" : constraint(r) : "d"(x));                                           \
    return r;                                                                                                \
  }
TW_TO_INTEGER(to_i32, int, s32, "=r")
TW_TO_INTEGER(to_u32, u32, u32, "=r")
TW_TO_INTEGER(to_i64, i64, s64, "=l")
#undef TW_TO_INTEGER
// Two units in the last place over the whole range.
TW_DEVICE float div_full(float a, float b) {
  float r;
  asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
// Each element by itself, in one instruction where there is one.
template <int N>
TW_DEVICE void atomic_add_vector(float* p, const float* x) {
#if __CUDA_ARCH__ >= 900
  if constexpr (N == 4)
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]) : "memory");
  else
    asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(p), "f"(x[0]), "f"(x[1]) : "memory");
#else
  for (int i = 0; i < N; ++i) atomicAdd(p + i, x[i]);
#endif
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

// The same place in the shared memory of the block `rank` of the cluster (own rank allowed), as an ordinary pointer.
TW_DEVICE char* peer_memory(char* arena, u32 rank) {
  u64 r;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(r) : "l"(reinterpret_cast<u64>(arena)), "r"(rank));
  return reinterpret_cast<char*>(r);
}

// ---------------------------------------------------------------- vectors with a cache hint
//
// `streaming`: touched once; loads leave nothing in L1, stores are the first to leave L2. `evict_first`, `evict_last`: L2 policies.
// Loads are of memory that nobody writes during the kernel.
#define TW_HINTED(hint, load, store, operand, argument)                                                                        \
  TW_DEVICE uint4 load_16_##hint(const void* p) {                                                                              \
    uint4 v;                                                                                                                   \
    asm volatile(load ".v4.u32 {%0,%1,%2,%3}, [%4]" operand(5) ";"                                                             \
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)                                                                  \
                 : "l"(p) argument);                                                                                           \
    return v;                                                                                                                  \
  }                                                                                                                            \
  TW_DEVICE uint2 load_8_##hint(const void* p) {                                                                               \
    uint2 v;                                                                                                                   \
    asm volatile(load ".v2.u32 {%0,%1}, [%2]" operand(3) ";" : "=r"(v.x), "=r"(v.y) : "l"(p) argument);                        \
    return v;                                                                                                                  \
  }                                                                                                                            \
  TW_DEVICE u32 load_4_##hint(const void* p) {                                                                                 \
    u32 v;                                                                                                                     \
    asm volatile(load ".u32 %0, [%1]" operand(2) ";" : "=r"(v) : "l"(p) argument);                                             \
    return v;                                                                                                                  \
  }                                                                                                                            \
  TW_DEVICE void store_16_##hint(void* p, uint4 v) {                                                                           \
    asm volatile(store ".v4.u32 [%0], {%1,%2,%3,%4}" operand(5) ";" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) argument \
                 : "memory");                                                                                                  \
  }                                                                                                                            \
  TW_DEVICE void store_8_##hint(void* p, uint2 v) {                                                                            \
    asm volatile(store ".v2.u32 [%0], {%1,%2}" operand(3) ";" ::"l"(p), "r"(v.x), "r"(v.y) argument : "memory");               \
  }                                                                                                                            \
  TW_DEVICE void store_4_##hint(void* p, u32 v) {                                                                              \
    asm volatile(store ".u32 [%0], %1" operand(2) ";" ::"l"(p), "r"(v) argument : "memory");                                   \
  }
#define TW_NO_OPERAND(n)
#define TW_POLICY_OPERAND(n) ", %" #n
#define TW_POLICY(maker) , "l"(maker())
#define TW_NO_ARGUMENT
TW_HINTED(streaming, "ld.global.nc.L1::no_allocate", "st.global.cs", TW_NO_OPERAND, TW_NO_ARGUMENT)
TW_HINTED(evict_first, "ld.global.nc.L2::cache_hint", "st.global.L2::cache_hint", TW_POLICY_OPERAND, TW_POLICY(l2_evict_first))
TW_HINTED(evict_last, "ld.global.nc.L2::cache_hint", "st.global.L2::cache_hint", TW_POLICY_OPERAND, TW_POLICY(l2_evict_last))
#undef TW_HINTED
#undef TW_NO_OPERAND
#undef TW_POLICY_OPERAND
#undef TW_POLICY
#undef TW_NO_ARGUMENT

}  // namespace tw
