// Stand-ins for the device header, so that emitted kernels run on a CPU: threads are fibers of one OS thread, a block at a time.
//
// Barriers, shuffles and warp instructions meet by counting; copies are done at once. This checks addresses, masks, register
// indices and arithmetic of the printed text. It says nothing about missing barriers: that is the emulator's work, on the IR.
#pragma once

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define TW_DEVICE inline
#define __shared__
#define __align__(n)
#define arena (tw::cpu::block_arena())

struct Triple {
  unsigned x = 0, y = 0, z = 0;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct uint2 {
  unsigned x, y;
};
inline uint4 make_uint4(unsigned a, unsigned b, unsigned c, unsigned d) { return {a, b, c, d}; }
inline uint2 make_uint2(unsigned a, unsigned b) { return {a, b}; }
inline Triple threadIdx, blockIdx, gridDim;

template <class T>
T __ldg(const T* p) { return *p; }
inline float __uint_as_float(unsigned x) { float f; std::memcpy(&f, &x, 4); return f; }
inline unsigned __float_as_uint(float x) { unsigned u; std::memcpy(&u, &x, 4); return u; }
inline int min(int a, int b) { return a < b ? a : b; }
inline long long min(long long a, long long b) { return a < b ? a : b; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline int max(int a, int b) { return a > b ? a : b; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
template <class T>
void atomicAdd(T* p, T v) { *p += v; }
template <class T>
T atomicCAS(T* p, T expected, T v) { const T seen = *p; if (seen == expected) *p = v; return seen; }
inline void __trap() { std::abort(); }

namespace tw {

using u8 = unsigned char;
using i8 = signed char;
using i16 = short;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

namespace cpu {

struct Meeting {   // a reusable barrier of `count` fibers
  int arrived = 0, round = 0;
};
struct Warp {
  Meeting meeting;
  unsigned char slot[32][64];   // what each lane brings
};
struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  bool done = false;
};
struct Block {
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Warp> warps;
  std::vector<char> memory;
  Meeting all;
  ucontext_t scheduler;
  int current = 0;
  std::function<void()> body;
};
inline Block* block = nullptr;

inline char* block_arena() { return block->memory.data(); }
inline void yield() { swapcontext(&block->fibers[block->current]->context, &block->scheduler); }
inline void meet(Meeting& m, int count) {
  const int round = m.round;
  if (++m.arrived == count) {
    m.arrived = 0;
    ++m.round;
  } else {
    while (m.round == round) yield();
  }
}
inline Warp& warp() { return block->warps[threadIdx.x / 32]; }
inline int lane() { return threadIdx.x % 32; }
inline void meet_warp() { meet(warp().meeting, 32); }
// Every lane brings a T; `use` sees all of them.
template <class T, class Use>
void exchange(const T& mine, Use use) {
  static_assert(sizeof(T) <= 64);
  std::memcpy(warp().slot[lane()], &mine, sizeof mine);
  meet_warp();
  auto of = [](int l) { T v; std::memcpy(&v, warp().slot[l], sizeof v); return v; };
  use(of);
  meet_warp();
}
inline void enter() {
  block->body();
  block->fibers[block->current]->done = true;
  swapcontext(&block->fibers[block->current]->context, &block->scheduler);
}
inline void run_block(int threads, int shared_bytes, const std::function<void()>& body) {
  Block b;
  block = &b;
  b.body = body;
  b.warps.resize((threads + 31) / 32);
  b.memory.resize(shared_bytes + 1024);
  for (int t = 0; t < threads; ++t) {
    auto f = std::make_unique<Fiber>();
    f->stack.resize(96 << 10);
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack.data();
    f->context.uc_stack.ss_size = f->stack.size();
    f->context.uc_link = nullptr;
    makecontext(&f->context, enter, 0);
    b.fibers.push_back(std::move(f));
  }
  for (bool any = true; any;) {
    any = false;
    for (int t = 0; t < threads; ++t) {
      if (b.fibers[t]->done) continue;
      any = true;
      b.current = t;
      threadIdx.x = t;
      swapcontext(&b.scheduler, &b.fibers[t]->context);
    }
  }
  block = nullptr;
}
inline void launch(const unsigned* grid, int threads, int shared_bytes, const std::function<void()>& body) {
  gridDim = {grid[0], grid[1], grid[2]};
  for (unsigned z = 0; z < grid[2]; ++z)
    for (unsigned y = 0; y < grid[1]; ++y)
      for (unsigned x = 0; x < grid[0]; ++x) {
        blockIdx = {x, y, z};
        run_block(threads, shared_bytes, body);
      }
}

}  // namespace cpu

inline u32 smem_addr(const void*) { return 0; }   // shared addresses are offsets into the block's memory
inline u32 warp_index() { return threadIdx.x / 32; }
inline u16 to_bf16(float x) {
  u32 u = __float_as_uint(x);
  if (x != x) return 0x7fff;
  return static_cast<u16>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
inline float from_bf16(u16 x) { return __uint_as_float(static_cast<u32>(x) << 16); }
inline u32 pack_bf16(float lo, float hi) { return to_bf16(lo) | static_cast<u32>(to_bf16(hi)) << 16; }
inline float exp2_approx(float x) { return exp2f(x); }
inline float rcp_approx(float x) { return 1.0f / x; }

inline void cp_async_some(u32 dst, const void* src, u32 bytes, int whole) {
  if (dst % whole || (bytes && reinterpret_cast<std::uintptr_t>(src) % whole)) std::abort();   // as the hardware would
  std::memset(cpu::block_arena() + dst, 0, whole);
  std::memcpy(cpu::block_arena() + dst, src, bytes);
}
inline void cp_async_16(u32 dst, const void* src) { cp_async_some(dst, src, 16, 16); }
inline void cp_async_16_zfill(u32 dst, const void* src, u32 bytes) { cp_async_some(dst, src, bytes, 16); }
inline void cp_async_4_zfill(u32 dst, const void* src, u32 bytes) { cp_async_some(dst, src, bytes, 4); }
inline void cp_async_commit() {}
template <int N>
void cp_async_wait() {}

// Register i of lane l holds elements 2 (l % 4), 2 (l % 4) + 1 of row l / 4 of matrix i; lane 8 i + r gives the address of row r.
inline void ldmatrix(u32* out, int count, u32 addr) {
  cpu::exchange(addr, [&](auto of) {
    for (int i = 0; i < count; ++i) std::memcpy(&out[i], cpu::block_arena() + of(8 * i + cpu::lane() / 4) + 4 * (cpu::lane() % 4), 4);
  });
}
inline void ldmatrix_trans(u32* out, int count, u32 addr) {
  cpu::exchange(addr, [&](auto of) {
    for (int i = 0; i < count; ++i) {
      u16 h[2];
      for (int j = 0; j < 2; ++j) std::memcpy(&h[j], cpu::block_arena() + of(8 * i + 2 * (cpu::lane() % 4) + j) + 2 * (cpu::lane() / 4), 2);
      out[i] = h[0] | static_cast<u32>(h[1]) << 16;
    }
  });
}
inline void ldmatrix_x4(u32& a, u32& b, u32& c, u32& d, u32 addr) {
  u32 r[4];
  ldmatrix(r, 4, addr);
  a = r[0], b = r[1], c = r[2], d = r[3];
}
inline void ldmatrix_x4_trans(u32& a, u32& b, u32& c, u32& d, u32 addr) {
  u32 r[4];
  ldmatrix_trans(r, 4, addr);
  a = r[0], b = r[1], c = r[2], d = r[3];
}
// A: row l / 4 (+ 8 in registers 1 and 3), columns 2 (l % 4) (+ 8 in registers 2 and 3). B: column l / 4, rows likewise.
inline void mma_m16n8k16_bf16(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  struct Lane { u32 a[4], b[2]; };
  cpu::exchange(Lane{{a0, a1, a2, a3}, {b0, b1}}, [&](auto of) {
    auto half = [](u32 w, int odd) { return from_bf16(static_cast<u16>(odd ? w >> 16 : w)); };
    for (int i = 0; i < 4; ++i) {
      const int row = cpu::lane() / 4 + (i / 2) * 8, column = 2 * (cpu::lane() % 4) + i % 2;
      double sum = d[i];
      for (int k = 0; k < 16; ++k) {
        const float x = half(of(row % 8 * 4 + k % 8 / 2).a[row / 8 + k / 8 * 2], k % 2);
        const float y = half(of(column * 4 + k % 8 / 2).b[k / 8], k % 2);
        sum += static_cast<double>(x) * y;
      }
      d[i] = static_cast<float>(sum);
    }
  });
}

}  // namespace tw

inline void __syncthreads() { tw::cpu::meet(tw::cpu::block->all, static_cast<int>(tw::cpu::block->fibers.size())); }
inline void __syncwarp() { tw::cpu::meet_warp(); }
inline bool __all_sync(unsigned, bool v) {
  bool r = true;
  tw::cpu::exchange(v, [&](auto of) { for (int i = 0; i < 32; ++i) r = r && of(i); });
  return r;
}
inline bool __any_sync(unsigned, bool v) {
  bool r = false;
  tw::cpu::exchange(v, [&](auto of) { for (int i = 0; i < 32; ++i) r = r || of(i); });
  return r;
}
template <class T>
T __shfl_xor_sync(unsigned, T v, int mask) {
  T r{};
  tw::cpu::exchange(v, [&](auto of) { r = of(tw::cpu::lane() ^ mask); });
  return r;
}
template <class T>
T __shfl_up_sync(unsigned, T v, int by) {
  T r{};
  tw::cpu::exchange(v, [&](auto of) { r = of(tw::cpu::lane() < by ? tw::cpu::lane() : tw::cpu::lane() - by); });
  return r;
}
template <class T>
T __shfl_down_sync(unsigned, T v, int by) {
  T r{};
  tw::cpu::exchange(v, [&](auto of) { r = of(tw::cpu::lane() + by > 31 ? tw::cpu::lane() : tw::cpu::lane() + by); });
  return r;
}
template <class T>
T __shfl_sync(unsigned, T v, int from) {
  T r{};
  tw::cpu::exchange(v, [&](auto of) { r = of(from & 31); });
  return r;
}
