// What emitted kernels use beside the instructions of tw_device.cuh: moves of a thread's values, folds, integer helpers.
//
// A thread's part of a register tile is an array: one 32-bit word per f32 or integer value, one word per pair of 16-bit values
// (the even one in the low half). Pointers into such arrays are always constants after unrolling.
#pragma once

#include "tw_device.cuh"
#include "tw_tile_ptx.cuh"

namespace tw {

TW_DEVICE int floor_div(int a, int b) {
  int q = a / b;
  return (a % b != 0 && (a % b < 0) != (b < 0)) ? q - 1 : q;
}
TW_DEVICE int floor_mod(int a, int b) {
  int r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}
TW_DEVICE i64 floor_div(i64 a, i64 b) {
  i64 q = a / b;
  return (a % b != 0 && (a % b < 0) != (b < 0)) ? q - 1 : q;
}
TW_DEVICE i64 floor_mod(i64 a, i64 b) { return a - floor_div(a, b) * b; }

// Integers of tiles (ir/element_math.h): sums, differences and products keep the low bits of their type; quotients round down.
template <class T> struct Unsigned { using type = T; };
template <> struct Unsigned<int> { using type = u32; };
template <> struct Unsigned<i64> { using type = u64; };
template <> struct Unsigned<i8> { using type = u32; };
template <> struct Unsigned<i16> { using type = u32; };
template <> struct Unsigned<u8> { using type = u32; };
template <class T> TW_DEVICE T add_bits(T a, T b) { return T(typename Unsigned<T>::type(a) + typename Unsigned<T>::type(b)); }
template <class T> TW_DEVICE T sub_bits(T a, T b) { return T(typename Unsigned<T>::type(a) - typename Unsigned<T>::type(b)); }
template <class T> TW_DEVICE T mul_bits(T a, T b) { return T(typename Unsigned<T>::type(a) * typename Unsigned<T>::type(b)); }
template <class T> TW_DEVICE T abs_bits(T a) { return a < T(0) ? sub_bits<T>(T(0), a) : a; }
template <class T> TW_DEVICE T quotient(T a, T b) {
  if (b == T(-1)) return T(-1) < T(0) ? sub_bits<T>(T(0), a) : T(a / b);   // the least number has no opposite
  const T q = T(a / b), r = T(a % b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? T(q - T(1)) : q;
}
template <class T> TW_DEVICE T remainder(T a, T b) {
  if (b == T(-1) && T(-1) < T(0)) return T(0);
  const T r = T(a % b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? T(r + b) : r;
}
template <class T> TW_DEVICE T least(T a, T b) { return b < a ? b : a; }
template <class T> TW_DEVICE T most(T a, T b) { return a < b ? b : a; }
// Counter-based random numbers (ir/element_math.h): calls that differ in the word alone share the rounds once they are inlined.
TW_DEVICE u32 mulhi(u32 a, u32 b) { return u32(u64(a) * b >> 32); }
TW_DEVICE u32 philox(u32 k0, u32 k1, u32 c0, u32 c1, u32 c2, u32 c3, u32 word) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 a = u64(0xd2511f53u) * c0, b = u64(0xcd9e8d57u) * c2;
    c0 = u32(b >> 32) ^ c1 ^ k0, c1 = u32(b);
    c2 = u32(a >> 32) ^ c3 ^ k1, c3 = u32(a);
    k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
  }
  return word % 4 == 0 ? c0 : word % 4 == 1 ? c1 : word % 4 == 2 ? c2 : c3;
}
// Floats as integers: towards zero, and to the nearest end of a type that does not reach so far.
TW_DEVICE i8 to_i8(float x) { return i8(most<int>(-128, least<int>(127, to_i32(x)))); }
TW_DEVICE i8 to_i8(double x) { return i8(most<int>(-128, least<int>(127, to_i32(x)))); }
TW_DEVICE i16 to_i16(float x) { return i16(most<int>(-32768, least<int>(32767, to_i32(x)))); }
TW_DEVICE i16 to_i16(double x) { return i16(most<int>(-32768, least<int>(32767, to_i32(x)))); }
TW_DEVICE u8 to_u8(float x) { return u8(most<int>(0, least<int>(255, to_i32(x)))); }
TW_DEVICE u8 to_u8(double x) { return u8(most<int>(0, least<int>(255, to_i32(x)))); }

// Address bits [4, 4 + B) are XORed with bits [7, 7 + B).
template <int B>
TW_DEVICE u32 swizzle(u32 address) {
  return address ^ (address >> 3 & ((1u << B) - 1) << 4);
}

// ---------------------------------------------------------------- 16-bit values in words

TW_DEVICE float bf16_at(u32 word, int odd) { return __uint_as_float(odd ? word & 0xffff0000u : word << 16); }
TW_DEVICE float round_bf16(float x) { return from_bf16(to_bf16(x)); }
// Four 8-bit values as one word, the first in the lowest byte.
// Four neighbours as a register of the matrix unit. Copied as a whole: of bytes that load_bytes has made of words, the compiler sees the words again.
template <class T>
TW_DEVICE u32 word_of_bytes(const T* x) {
  static_assert(sizeof(T) == 1, "bytes");
  u32 word;
  memcpy(&word, x, 4);
  return word;
}
TW_DEVICE u32 half_of(u32 word, int odd) { return odd ? word >> 16 : word & 0xffffu; }
TW_DEVICE u32 halves_swapped(u32 word) { return word >> 16 | word << 16; }
TW_DEVICE u32 low_and_high(u32 low, u32 high) { return (low & 0xffffu) | (high & 0xffff0000u); }
TW_DEVICE u32 low_half_twice(u32 word) { return (word & 0xffffu) | word << 16; }

// ---------------------------------------------------------------- arithmetic

TW_DEVICE float sigmoid(float x) { return div_full(1.0f, 1.0f + expf(-x)); }
// One instruction of the special-function unit: absolute error about 5e-4, half of that for the sigmoid.
TW_DEVICE float tanh_approx(float x) {
  float r;
  asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
TW_DEVICE float sigmoid_approx(float x) { return fmaf(0.5f, tanh_approx(0.5f * x), 0.5f); }
// Absolute error below 2e-7 (Abramowitz and Stegun 7.1.26): half the instructions of erff, which makes GELU in bf16 memory-bound.
TW_DEVICE float erf_approx(float x) {
  const float a = fabsf(x), t = rcp_approx(fmaf(0.3275911f, a, 1.0f));
  float p = fmaf(1.061405429f, t, -1.453152027f);
  p = fmaf(p, t, 1.421413741f);
  p = fmaf(p, t, -0.284496736f);
  p = fmaf(p, t, 0.254829592f);
  return copysignf(fmaf(-p * t, exp2_approx(a * a * -1.44269504f), 1.0f), x);
}
// 0.5 x (1 + erf(x / sqrt 2)) = 0.5 x + |x| (0.5 - erfc(|x| / sqrt 2) / 2) by the same formula: three instructions less.
TW_DEVICE float gelu_approx(float x) {
  const float a = fabsf(x), t = rcp_approx(fmaf(0.231641888f, a, 1.0f));
  float p = fmaf(0.5307027145f, t, -0.7265760135f);
  p = fmaf(p, t, 0.7107068705f);
  p = fmaf(p, t, -0.142248368f);
  p = fmaf(p, t, 0.127414796f);
  return fmaf(a, fmaf(-p * t, exp2_approx(a * (a * -0.72134752f)), 0.5f), 0.5f * x);
}
// The same number, which the compiler cannot know to be.
TW_DEVICE int opaque(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
TW_DEVICE float mod_floor(float a, float b) { return a - floorf(a / b) * b; }

// ---------------------------------------------------------------- vectors of BYTES bytes between registers and memory

// tf32 keeps 10 bits of the fraction: to nearest, ties away from zero.
TW_DEVICE float round_tf32(float x) {
  u32 bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
}
// 8-bit floats: to nearest even, too large becomes the largest finite number, NaN stays NaN.
template <int FRACTION>
TW_DEVICE u8 to_small_float(float x, float largest) {
  const int bias = FRACTION == 3 ? 7 : 15;
  const u8 sign = u8(__float_as_uint(x) >> 31 << 7);
  if (x != x) return 0x7f;
  const float size = fminf(fabsf(x), largest);
  int exponent = int(__float_as_uint(size) >> 23) - 127;
  if (exponent < 1 - bias) exponent = 1 - bias;
  int steps = int(rintf(ldexpf(size, FRACTION - exponent)));
  if (steps >> (FRACTION + 1)) steps >>= 1, ++exponent;
  return sign | (steps >> FRACTION ? u8((exponent + bias) << FRACTION | (steps - (1 << FRACTION))) : u8(steps));
}
#if __CUDA_ARCH__ >= 890
#define TW_SMALL_FLOAT(name, FRACTION, LARGEST)                                        \
  TW_DEVICE void to_##name(float x, float y, u8& a, u8& b) {                           \
    u16 pair;                                                                          \
    asm("cvt.rn.satfinite." #name "x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(y), "f"(x)); \
    a = u8(pair), b = u8(pair >> 8);                                                   \
  }
#else
#define TW_SMALL_FLOAT(name, FRACTION, LARGEST)                                                   \
  TW_DEVICE void to_##name(float x, float y, u8& a, u8& b) {                                      \
    a = to_small_float<FRACTION>(x, LARGEST), b = to_small_float<FRACTION>(y, LARGEST);           \
  }
#endif
TW_SMALL_FLOAT(e4m3, 3, 448.0f)
TW_SMALL_FLOAT(e5m2, 2, 57344.0f)
#undef TW_SMALL_FLOAT
TW_DEVICE u8 to_e4m3(float x) {
  u8 a, b;
  to_e4m3(x, 0.0f, a, b);
  return a;
}
TW_DEVICE u8 to_e5m2(float x) {
  u8 a, b;
  to_e5m2(x, 0.0f, a, b);
  return a;
}
TW_DEVICE float e4m3_value(u8 bits) {  // its exponent and fraction in the place of f32's, 120 powers of two too small
  if ((bits & 0x7f) == 0x7f) return __uint_as_float(0x7fffffffu);
  return __uint_as_float(u32(bits & 0x80) << 24 | u32(bits & 0x7f) << 20) * __uint_as_float(u32(127 + 120) << 23);
}
TW_DEVICE float e5m2_value(u8 bits) {  // the upper half of an f16
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(u16(bits << 8)));
  return x;
}
// Atomic additions of single 16-bit elements.
TW_DEVICE void atomic_add_f16(u16* p, u16 x) { asm volatile("red.global.add.noftz.f16 [%0], %1;" ::"l"(p), "h"(x) : "memory"); }
TW_DEVICE void atomic_add_bf16(u16* p, u16 x) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.noftz.bf16 [%0], %1;" ::"l"(p), "h"(x) : "memory");
#else
  u16 seen = *reinterpret_cast<volatile u16*>(p), before;
  do {
    before = seen;
    const float sum = __uint_as_float(u32(before) << 16) + __uint_as_float(u32(x) << 16);
    const u32 bits = __float_as_uint(sum);
    seen = atomicCAS(p, before, sum != sum ? u16(0x7fff) : u16((bits + 0x7fffu + (bits >> 16 & 1)) >> 16));
  } while (seen != before);
#endif
}

template <int BYTES, class T>
TW_DEVICE void load_vector(T* x, const void* p) {
  static_assert(sizeof(T) == 4, "32-bit words");
  if constexpr (BYTES == 16) {
    const uint4 v = *reinterpret_cast<const uint4*>(p);
    x[0] = reinterpret_cast<const T&>(v.x), x[1] = reinterpret_cast<const T&>(v.y);
    x[2] = reinterpret_cast<const T&>(v.z), x[3] = reinterpret_cast<const T&>(v.w);
  } else if constexpr (BYTES == 8) {
    const uint2 v = *reinterpret_cast<const uint2*>(p);
    x[0] = reinterpret_cast<const T&>(v.x), x[1] = reinterpret_cast<const T&>(v.y);
  } else {
    x[0] = *reinterpret_cast<const T*>(p);
  }
}
// Read-only for the whole kernel: through the non-coherent path.
template <int BYTES, class T>
TW_DEVICE void load_vector_nc(T* x, const void* p) {
  static_assert(sizeof(T) == 4, "32-bit words");
  if constexpr (BYTES == 16) {
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(p));
    x[0] = reinterpret_cast<const T&>(v.x), x[1] = reinterpret_cast<const T&>(v.y);
    x[2] = reinterpret_cast<const T&>(v.z), x[3] = reinterpret_cast<const T&>(v.w);
  } else if constexpr (BYTES == 8) {
    const uint2 v = __ldg(reinterpret_cast<const uint2*>(p));
    x[0] = reinterpret_cast<const T&>(v.x), x[1] = reinterpret_cast<const T&>(v.y);
  } else {
    x[0] = __ldg(reinterpret_cast<const T*>(p));
  }
}
template <int BYTES, class T>
TW_DEVICE void store_vector(void* p, const T* x) {
  static_assert(sizeof(T) == 4, "32-bit words");
  if constexpr (BYTES == 16) {
    *reinterpret_cast<uint4*>(p) = make_uint4(reinterpret_cast<const u32&>(x[0]), reinterpret_cast<const u32&>(x[1]),
                                              reinterpret_cast<const u32&>(x[2]), reinterpret_cast<const u32&>(x[3]));
  } else if constexpr (BYTES == 8) {
    *reinterpret_cast<uint2*>(p) = make_uint2(reinterpret_cast<const u32&>(x[0]), reinterpret_cast<const u32&>(x[1]));
  } else {
    *reinterpret_cast<T*>(p) = x[0];
  }
}

// Elements of other sizes, in whole words.
#define TW_BYTES_IN(suffix)                                \
  template <int BYTES, class T>                            \
  TW_DEVICE void load_bytes##suffix(T* x, const void* p) { \
    u32 words[BYTES / 4];                                  \
    load_vector##suffix<BYTES>(words, p);                  \
    memcpy(x, words, BYTES);                               \
  }
#define TW_BYTES_OUT(suffix)                                \
  template <int BYTES, class T>                             \
  TW_DEVICE void store_bytes##suffix(void* p, const T* x) { \
    u32 words[BYTES / 4];                                   \
    memcpy(words, x, BYTES);                                \
    store_vector##suffix<BYTES>(p, words);                  \
  }
TW_BYTES_IN()
TW_BYTES_IN(_nc)
TW_BYTES_OUT()

// A 4 x 4 transpose over four neighbouring lanes: lane t of them has word t of four runs, and gets the four words of run t.
TW_DEVICE void quad_transpose(u32 (&x)[4], int t) {
  const bool odd = t % 2 != 0, high = t / 2 % 2 != 0;
  const u32 a = __shfl_xor_sync(0xffffffffu, odd ? x[0] : x[1], 1), b = __shfl_xor_sync(0xffffffffu, odd ? x[2] : x[3], 1);
  const u32 w0 = odd ? a : x[0], w1 = odd ? x[1] : a, w2 = odd ? b : x[2], w3 = odd ? x[3] : b;
  const u32 c = __shfl_xor_sync(0xffffffffu, high ? w0 : w2, 2), d = __shfl_xor_sync(0xffffffffu, high ? w1 : w3, 2);
  x[0] = high ? c : w0, x[1] = high ? d : w1, x[2] = high ? w2 : c, x[3] = high ? w3 : d;
}

// The same with a cache hint (tw_tile_ptx.cuh).
#define TW_HINTED(hint)                                                                                                       \
  template <int BYTES, class T>                                                                                               \
  TW_DEVICE void load_vector_##hint(T* x, const void* p) {                                                                    \
    static_assert(sizeof(T) == 4, "32-bit words");                                                                            \
    if constexpr (BYTES == 16) {                                                                                              \
      const uint4 v = load_16_##hint(p);                                                                                      \
      x[0] = reinterpret_cast<const T&>(v.x), x[1] = reinterpret_cast<const T&>(v.y);                                         \
      x[2] = reinterpret_cast<const T&>(v.z), x[3] = reinterpret_cast<const T&>(v.w);                                         \
    } else if constexpr (BYTES == 8) {                                                                                        \
      const uint2 v = load_8_##hint(p);                                                                                       \
      x[0] = reinterpret_cast<const T&>(v.x), x[1] = reinterpret_cast<const T&>(v.y);                                         \
    } else {                                                                                                                  \
      const u32 v = load_4_##hint(p);                                                                                         \
      x[0] = reinterpret_cast<const T&>(v);                                                                                   \
    }                                                                                                                         \
  }                                                                                                                           \
  template <int BYTES, class T>                                                                                               \
  TW_DEVICE void store_vector_##hint(void* p, const T* x) {                                                                   \
    static_assert(sizeof(T) == 4, "32-bit words");                                                                            \
    if constexpr (BYTES == 16) {                                                                                              \
      store_16_##hint(p, make_uint4(reinterpret_cast<const u32&>(x[0]), reinterpret_cast<const u32&>(x[1]),                   \
                                    reinterpret_cast<const u32&>(x[2]), reinterpret_cast<const u32&>(x[3])));                 \
    } else if constexpr (BYTES == 8) {                                                                                        \
      store_8_##hint(p, make_uint2(reinterpret_cast<const u32&>(x[0]), reinterpret_cast<const u32&>(x[1])));                  \
    } else {                                                                                                                  \
      store_4_##hint(p, reinterpret_cast<const u32&>(x[0]));                                                                  \
    }                                                                                                                         \
  }
TW_HINTED(streaming)
TW_HINTED(evict_first)
TW_HINTED(evict_last)
#undef TW_HINTED
TW_BYTES_IN(_streaming)
TW_BYTES_IN(_evict_first)
TW_BYTES_IN(_evict_last)
TW_BYTES_OUT(_streaming)
TW_BYTES_OUT(_evict_first)
TW_BYTES_OUT(_evict_last)
#undef TW_BYTES_IN
#undef TW_BYTES_OUT

// N elements of which those from `count` on are not there: loads give `fill`, stores skip them.
template <int N, class T>
TW_DEVICE void load_some(T* x, const T* p, int count, T fill) {
#pragma unroll
  for (int j = 0; j < N; ++j) x[j] = j < count ? p[j] : fill;
}
template <int N>
TW_DEVICE void load_some(u32* x, const u16* p, int count, u16 fill) {
#pragma unroll
  for (int j = 0; j < N; j += 2) {
    const u32 lo = j < count ? p[j] : fill, hi = j + 1 < count ? p[j + 1] : fill;
    x[j / 2] = lo | hi << 16;
  }
}
template <int N, class T>
TW_DEVICE void store_some(T* p, const T* x, int count) {
#pragma unroll
  for (int j = 0; j < N; ++j)
    if (j < count) p[j] = x[j];
}
template <int N>
TW_DEVICE void store_some(u16* p, const u32* x, int count) {
#pragma unroll
  for (int j = 0; j < N; ++j)
    if (j < count) p[j] = static_cast<u16>(half_of(x[j / 2], j % 2));
}

// N elements of which only those from `first` to `end` are there.
template <int N, class T>
TW_DEVICE void load_between(T* x, const T* p, int first, int end, T fill) {
#pragma unroll
  for (int j = 0; j < N; ++j) x[j] = j >= first && j < end ? p[j] : fill;
}
template <int N>
TW_DEVICE void load_between(u32* x, const u16* p, int first, int end, u16 fill) {
#pragma unroll
  for (int j = 0; j < N; j += 2) {
    const u32 lo = j >= first && j < end ? p[j] : fill, hi = j + 1 >= first && j + 1 < end ? p[j + 1] : fill;
    x[j / 2] = lo | hi << 16;
  }
}
template <int N, class T>
TW_DEVICE void store_between(T* p, const T* x, int first, int end) {
#pragma unroll
  for (int j = 0; j < N; ++j)
    if (j >= first && j < end) p[j] = x[j];
}
template <int N>
TW_DEVICE void store_between(u16* p, const u32* x, int first, int end) {
#pragma unroll
  for (int j = 0; j < N; ++j)
    if (j >= first && j < end) p[j] = static_cast<u16>(half_of(x[j / 2], j % 2));
}
// Into shared memory, zeros in place of what is not there.
template <int N, class T>
TW_DEVICE void copy_between(T* to, const T* p, int first, int end) {
#pragma unroll
  for (int j = 0; j < N; ++j) to[j] = j >= first && j < end ? p[j] : T(0);
}

}  // namespace tw
