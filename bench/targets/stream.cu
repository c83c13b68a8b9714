// The streaming ceiling: how fast can bytes go through this chip when nothing is computed on them?
//
// MODE 0  copy, direct:   16-byte loads into registers, 16-byte stores; UNROLL independent loads in flight per thread.
// MODE 1  read, direct:   the same loads, xor-folded, so that no load can be dropped; one word per block is written.
// MODE 2  copy, bulk:     cp.async.bulk global -> shared -> global by one thread per block, a ring of STAGES pieces.
//
// A block walks tiles of THREADS * UNROLL * 16 bytes (PIECE bytes for MODE 2), stride gridDim.x: with one block per tile it
// is the plain one-shot kernel, with fewer it is persistent.
// Preconditions: `bytes` is a multiple of the tile; both pointers are 16-byte aligned.
//
// tw-variants: -DMODE=0 -DTHREADS=512 -DUNROLL=4 -DLOAD_FORM=0 -DSTORE_FORM=0
// tw-variants: -DMODE=0 -DTHREADS=256 -DUNROLL=8 -DLOAD_FORM=2 -DSTORE_FORM=1
// tw-variants: -DMODE=1 -DTHREADS=512 -DUNROLL=8 -DLOAD_FORM=1
// tw-variants: -DMODE=2 -DTHREADS=32 -DPIECE=16384 -DSTAGES=4
#include "tw_rows.cuh"

#ifndef MODE
#define MODE 0
#endif
#ifndef THREADS
#define THREADS 512
#endif
#ifndef UNROLL
#define UNROLL 4
#endif
#ifndef PIECE
#define PIECE 16384
#endif
#ifndef STAGES
#define STAGES 4
#endif

#if MODE == 0 || MODE == 1
extern "C" __global__ void __launch_bounds__(THREADS)
stream(const uint4* __restrict__ source, uint4* __restrict__ destination, long long bytes) {
  const long long vecs = bytes / 16;
  const long long tile = (long long)THREADS * UNROLL;
#if MODE == 1
  unsigned fold = 0;
#endif
  for (long long first = blockIdx.x * tile; first < vecs; first += gridDim.x * tile) {
    uint4 held[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      held[u] = tw::load_streamed_16(source + first + u * THREADS + threadIdx.x);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
#if MODE == 0
      tw::store_streamed_16(destination + first + u * THREADS + threadIdx.x, held[u]);
#else
      fold ^= held[u].x ^ held[u].y ^ held[u].z ^ held[u].w;
#endif
    }
  }
#if MODE == 1
  for (int offset = 16; offset > 0; offset >>= 1) fold ^= __shfl_xor_sync(0xffffffffu, fold, offset);
  __shared__ unsigned folds[THREADS / 32];
  if (threadIdx.x % 32 == 0) folds[threadIdx.x / 32] = fold;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < THREADS / 32; ++w) fold ^= folds[w];
    ((unsigned*)destination)[blockIdx.x] = fold;
  }
#endif
}
#endif

#if MODE == 2
extern "C" __global__ void __launch_bounds__(THREADS)
stream(const char* __restrict__ source, char* __restrict__ destination, long long bytes) {
  extern __shared__ __align__(128) char ring_bytes[];  // STAGES pieces
  __shared__ __align__(8) unsigned long long full_barriers[STAGES];
  if (threadIdx.x != 0) return;
  const tw::u32 ring = tw::smem_addr(ring_bytes);
  const tw::u32 full = tw::smem_addr(full_barriers);
  for (int s = 0; s < STAGES; ++s) tw::mbarrier_init(full + 8 * s, 1);
  tw::fence_mbarrier_init();

  const long long pieces = bytes / PIECE;
  const long long mine = pieces > blockIdx.x ? (pieces - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
  constexpr int kAhead = STAGES / 2;  // loads run this far ahead of stores; the other slots' stores may still be reading
  for (long long i = 0; i < mine + kAhead; ++i) {
    if (i < mine) {
      const int slot = (int)(i % STAGES);
      if (i >= STAGES) tw::bulk_wait_read<STAGES - kAhead - 1>();  // the store of piece i - STAGES has read its slot
      tw::mbarrier_arrive_expect_tx(full + 8 * slot, PIECE);
      tw::bulk_load(ring + slot * PIECE, source + (blockIdx.x + i * gridDim.x) * PIECE, PIECE, full + 8 * slot);
    }
    if (i >= kAhead) {
      const long long j = i - kAhead;
      const int slot = (int)(j % STAGES);
      tw::mbarrier_wait(full + 8 * slot, (tw::u32)((j / STAGES) & 1));
      tw::bulk_store(destination + (blockIdx.x + j * gridDim.x) * PIECE, ring + slot * PIECE, PIECE);
      tw::bulk_commit();
    }
  }
  tw::bulk_wait_read<0>();
}
#endif
