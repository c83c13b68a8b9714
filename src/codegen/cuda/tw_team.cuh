// Messages between all blocks of a grid (ir::Team), which run at the same time.
//
// Three more warps of each block carry them, so that those that compute never wait for a round trip through L2:
//   main warps  put what each of them gives into the mailbox in shared memory, and arrive;
//   warp 0      folds that and writes it where the message's owner reads it (message m belongs to block m % TEAM);
//   warp 1      reads what all blocks gave to the messages that its block owns, folds it and writes the result;
//   warp 2      reads results in the order of the messages, puts them into the mailbox, and arrives; main warps wait for that.
// Through L2 a number travels with its message's own number in one word of eight bytes, so that no fence is needed: a reader that finds the
// message's number has its value. The words are a ring of 2 * SLOTS messages, counted over all launches. No word is overwritten while it is
// needed: a block sends message m only after it has received m - SLOTS (the depth, which is verified), whose result its owner wrote after
// it had read all parts; and the result of m is written when every block has sent m. Words are zero before the first launch, and message 0 has
// the number 1. A launch takes its numbers at its start, block by block: all blocks of a launch have started before one of the next does.
#pragma once

#include "tw_device.cuh"

namespace tw {

template <int NUMBERS, int SLOTS, int WARPS>
struct TeamBox {                       // in shared memory; ir::team_box_bytes is its size
  u64 sent[SLOTS], came[SLOTS];        // mbarriers: every main warp has given its part; the result is there
  u64 begun;                           // mbarrier: `base` is there
  u32 base;                            // messages of the launches before
  float part[SLOTS][NUMBERS][WARPS];
  float whole[SLOTS][NUMBERS];
};
template <int NUMBERS, int SLOTS, int TEAM>
struct TeamWords {                     // in global memory
  u64 part[2 * SLOTS][NUMBERS][TEAM];
  u64 whole[2 * SLOTS][NUMBERS];
  u32 count[TEAM];                     // messages of all launches so far
};

TW_DEVICE void team_put(u64* word, float value, u32 number) {
  const u64 both = static_cast<u64>(number) << 32 | __float_as_uint(value);
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(word)), "l"(both) : "memory");
}
TW_DEVICE u64 team_look(const u64* word) {
  u64 both;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(both) : "l"(__cvta_generic_to_global(word)) : "memory");
  return both;
}
constexpr float team_lowest = -3.4028234663852886e38f;
TW_DEVICE float team_weight(float x, float largest) { return exp2_approx((x - largest) * 1.4426950408889634f); }

// How two lists of numbers become one. GROUP numbers belong together.
struct TeamSum {
  static constexpr int group = 1;
  static __device__ __forceinline__ float unit(int) { return 0.0f; }
  static __device__ __forceinline__ void join(float* a, const float* b) { a[0] += b[0]; }
};
struct TeamExpSum {                    // the largest, and a sum relative to it
  static constexpr int group = 2;
  static __device__ __forceinline__ float unit(int i) { return i ? 0.0f : team_lowest; }
  static __device__ __forceinline__ void join(float* a, const float* b) {
    const float largest = fmaxf(a[0], b[0]);
    a[1] = a[1] * team_weight(a[0], largest) + b[1] * team_weight(b[0], largest);
    a[0] = largest;
  }
};

// The fold over the lanes of a warp of NUMBERS numbers. With each step half of the lanes go on with half of the numbers, until every lane has one group
// in x[0 .. group). Its number is returned to the first lane that has it, -1 to the others.
template <class Fold, int NUMBERS>
TW_DEVICE int team_warp_fold(float (&x)[NUMBERS]) {
  constexpr int group = Fold::group;
  const int lane = threadIdx.x % 32;
  int step = 16, mine = 0;
#pragma unroll
  for (int left = NUMBERS / group; left > 1; left = (left + 1) / 2) {
    const bool upper = lane & step;
    const int half = (left + 1) / 2;
#pragma unroll
    for (int g = 0; g < half; ++g) {
      float other[group];
#pragma unroll
      for (int i = 0; i < group; ++i) {
        const float high = g + half < left ? x[(g + half) * group + i] : Fold::unit(i), low = x[g * group + i];
        other[i] = __shfl_xor_sync(0xffffffffu, upper ? low : high, step);
        x[g * group + i] = upper ? high : low;
      }
      Fold::join(&x[g * group], other);
    }
    mine += upper ? half : 0;
    step /= 2;
  }
  const bool first = (lane & (2 * step - 1)) == 0;
#pragma unroll
  for (; step; step /= 2) {
    float other[group];
#pragma unroll
    for (int i = 0; i < group; ++i) other[i] = __shfl_xor_sync(0xffffffffu, x[i], step);
    Fold::join(x, other);
  }
  return first && mine * group < NUMBERS ? mine : -1;
}

template <int NUMBERS, int SLOTS, int WARPS>
TW_DEVICE void team_init(TeamBox<NUMBERS, SLOTS, WARPS>& box) {
  for (int i = 0; i < SLOTS; ++i) mbarrier_init(smem_addr(&box.sent[i]), WARPS), mbarrier_init(smem_addr(&box.came[i]), 1);
  mbarrier_init(smem_addr(&box.begun), 1);
}

// By all lanes of a main warp, with what each of them gives.
template <class Fold, int NUMBERS, int SLOTS, int WARPS>
TW_DEVICE void team_send(TeamBox<NUMBERS, SLOTS, WARPS>& box, int message, float (&mine)[NUMBERS]) {
  const int slot = message % SLOTS;
  const int group = team_warp_fold<Fold>(mine);
  if (group >= 0) {
#pragma unroll
    for (int i = 0; i < Fold::group; ++i) box.part[slot][group * Fold::group + i][threadIdx.x / 32] = mine[i];
  }
  __syncwarp();
  if (threadIdx.x % 32 == 0) mbarrier_arrive(smem_addr(&box.sent[slot]));
}

template <int NUMBERS, int SLOTS, int WARPS>
TW_DEVICE void team_receive(TeamBox<NUMBERS, SLOTS, WARPS>& box, int message, float (&result)[NUMBERS]) {
  const int slot = message % SLOTS;
  mbarrier_wait(smem_addr(&box.came[slot]), message / SLOTS & 1);
#pragma unroll
  for (int i = 0; i < NUMBERS; ++i) result[i] = box.whole[slot][i];
}

// By the three warps that carry messages; `first` is the number of their first thread.
template <class Fold, int NUMBERS, int SLOTS, int WARPS, int TEAM>
TW_DEVICE void team_carry(TeamBox<NUMBERS, SLOTS, WARPS>& box, TeamWords<NUMBERS, SLOTS, TEAM>& words, int messages, int first) {
  const int warp = (threadIdx.x - first) / 32, lane = threadIdx.x % 32, rank = blockIdx.x;
  constexpr int unit = NUMBERS % 2 == 0 ? 2 : 1, units = NUMBERS / unit;   // numbers that one owner folds
  constexpr int window = 32 / NUMBERS;                                    // messages that one look at results covers
  if (warp == 0 && lane == 0) {
    box.base = atomicAdd(&words.count[rank], static_cast<u32>(messages));
    mbarrier_arrive(smem_addr(&box.begun));
  }
  mbarrier_wait(smem_addr(&box.begun), 0);
  const u32 base = box.base;
  if (warp == 0) {
    for (int m = 0; m < messages; ++m) {
      const int slot = m % SLOTS;
      mbarrier_wait(smem_addr(&box.sent[slot]), m / SLOTS & 1);
      float x[NUMBERS];
#pragma unroll
      for (int i = 0; i < NUMBERS; ++i) x[i] = lane < WARPS ? box.part[slot][i][lane] : Fold::unit(i % Fold::group);
      const int group = team_warp_fold<Fold>(x);
      if (group >= 0) {
#pragma unroll
        for (int i = 0; i < Fold::group; ++i) team_put(&words.part[(base + m) % (2 * SLOTS)][group * Fold::group + i][rank], x[i], base + m + 1);
      }
    }
  } else if (warp == 1) {
    for (int q = rank; q < messages * units; q += TEAM) {
      const u32 number = base + q / units;
      const int slot = number % (2 * SLOTS);
      constexpr int looks = (TEAM + 31) / 32;
      u64 part[unit][looks];
      for (bool all = false; !all;) {
        all = true;
#pragma unroll
        for (int i = 0; i < unit; ++i)
#pragma unroll
          for (int l = 0; l < looks; ++l) part[i][l] = 32 * l + lane < TEAM ? team_look(&words.part[slot][q % units * unit + i][32 * l + lane]) : static_cast<u64>(number + 1) << 32;
#pragma unroll
        for (int i = 0; i < unit; ++i)
#pragma unroll
          for (int l = 0; l < looks; ++l) all = all && static_cast<u32>(part[i][l] >> 32) == number + 1;
        all = __all_sync(0xffffffffu, all);
      }
      float x[unit];
#pragma unroll
      for (int i = 0; i < unit; ++i) x[i] = __uint_as_float(static_cast<u32>(part[i][0]));
#pragma unroll
      for (int l = 1; l < looks; ++l) {
        float other[unit];
#pragma unroll
        for (int i = 0; i < unit; ++i) other[i] = 32 * l + lane < TEAM ? __uint_as_float(static_cast<u32>(part[i][l])) : Fold::unit(i % Fold::group);
#pragma unroll
        for (int g = 0; g < unit; g += Fold::group) Fold::join(&x[g], &other[g]);
      }
      const int group = team_warp_fold<Fold>(x);
      if (group >= 0) {
#pragma unroll
        for (int i = 0; i < Fold::group; ++i) team_put(&words.whole[slot][q % units * unit + group * Fold::group + i], x[i], number + 1);
      }
    }
  } else {
    for (int m = 0; m < messages;) {   // lane: (message of the window, number)
      const int mine = m + lane / NUMBERS, i = lane % NUMBERS;
      const u32 number = base + mine;
      const bool in = lane < window * NUMBERS && mine < messages;
      const u64 word = in ? team_look(&words.whole[number % (2 * SLOTS)][i]) : 0;
      const u32 missing = ~__ballot_sync(0xffffffffu, in && static_cast<u32>(word >> 32) == number + 1);
      const int came = min(missing ? (__ffs(missing) - 1) / NUMBERS : window, window);
      if (lane < came * NUMBERS) box.whole[mine % SLOTS][i] = __uint_as_float(static_cast<u32>(word));
      __syncwarp();
      if (lane < came) mbarrier_arrive(smem_addr(&box.came[(m + lane) % SLOTS]));
      __syncwarp();
      m += came;
    }
  }
}

}  // namespace tw
