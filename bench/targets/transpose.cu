// Transpose: y[c, r] = x[r, c], x of `rows` x `columns`, both dense; every byte read once and written once in 16-byte pieces.
//
// A block moves one tile of TILE_R x TILE_C elements (TILE_C * ELEM_BYTES is 128 bytes for bf16, 256 for fp32). It is read
// along the rows of x, laid into shared memory in 16-byte chunks whose place in the row is XORed with a function of the row,
// and read back along the columns:
//   bf16  ldmatrix.trans, its eight row addresses per matrix chosen so that the four registers of a thread are eight
//         consecutive r of one column: rows {8 j + 2 b + t} for matrix b, so chunks are XORed with 2 * (row / 8 % 4) + row % 2
//   fp32  four 4-byte loads of rows 4 m .. 4 m + 3, chunks XORed with row / 4 % 8
// Both readings and the writing are free of bank conflicts, and no second pass through shared memory is needed.
//
// Preconditions: rows and columns are multiples of 16 / ELEM_BYTES (edge tiles are clipped), 16-byte aligned tensors.
// Launch: grid = ceil(columns / TILE_C) * ceil(rows / TILE_R) blocks of THREADS.
//
// tw-variants: -DELEM_BYTES=2 -DTILE_R=64 -DTHREADS=128
// tw-variants: -DELEM_BYTES=2 -DTILE_R=128 -DTHREADS=256
// tw-variants: -DELEM_BYTES=4 -DTILE_R=64 -DTHREADS=256
#ifndef ELEM_BYTES
#define ELEM_BYTES 2  // 2: any 16-bit type, 4: any 32-bit type
#endif
#ifndef TILE_R
#define TILE_R 64  // a multiple of 32
#endif
#ifndef THREADS
#define THREADS 128
#endif
#ifndef RASTER
#define RASTER 0  // 0: consecutive blocks go along the rows of x (its columns), 1: along the rows of y
#endif
#include "tw_rows.cuh"

using tw::kPerVec;
using tw::u32;
constexpr int TILE_C = 64;
constexpr int kRowBytes = TILE_C * ELEM_BYTES;
constexpr int kChunks = kRowBytes / 16;  // per row of the tile
constexpr int kWarps = THREADS / 32;

// Byte offset in the tile of the 16-byte chunk `chunk` of row `row`.
__device__ __forceinline__ u32 place(int row, int chunk) {
  const int key = ELEM_BYTES == 2 ? (row >> 3 & 3) * 2 + (row & 1) : row >> 2 & 7;
  return row * kRowBytes + (chunk ^ key) * 16;
}

extern "C" __global__ void __launch_bounds__(THREADS)
transpose(const char* __restrict__ x, char* __restrict__ y, int rows, int columns) {
  __shared__ __align__(128) char tile_bytes[TILE_R * kRowBytes];
  const u32 tile = tw::smem_addr(tile_bytes);
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int tiles_r = (rows + TILE_R - 1) / TILE_R, tiles_c = (columns + TILE_C - 1) / TILE_C;
  const int tile_r = RASTER == 0 ? (int)blockIdx.x / tiles_c : (int)blockIdx.x % tiles_r;
  const int tile_c = RASTER == 0 ? (int)blockIdx.x % tiles_c : (int)blockIdx.x / tiles_r;
  const int r0 = tile_r * TILE_R, c0 = tile_c * TILE_C;

  constexpr int kLoads = TILE_R * kChunks / THREADS;
  uint4 held[kLoads];
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int at = threadIdx.x + i * THREADS;
    const int r = r0 + at / kChunks, c = c0 + at % kChunks * kPerVec;
    held[i] = make_uint4(0u, 0u, 0u, 0u);
    if (r < rows && c < columns) held[i] = tw::load_streamed_16(x + ((long long)r * columns + c) * ELEM_BYTES);
  }
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int at = threadIdx.x + i * THREADS;
    tw::st_shared_16(tile + place(at / kChunks, at % kChunks), held[i].x, held[i].y, held[i].z, held[i].w);
  }
  __syncthreads();

#if ELEM_BYTES == 2
  // A warp takes 32 rows x 8 columns at a time: thread (lane / 4, lane % 4) ends with column lane / 4, rows 8 * (lane % 4) ...
  constexpr int kSteps = TILE_R / 32 * kChunks / kWarps;
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
    const int step = warp + i * kWarps;
    const int first_row = step % (TILE_R / 32) * 32, chunk = step / (TILE_R / 32);
    const int matrix = lane / 8, position = lane % 8;  // whose row address this lane gives to ldmatrix
    uint4 v;
    tw::ldmatrix_x4_trans(v.x, v.y, v.z, v.w, tile + place(first_row + 8 * (position / 2) + 2 * matrix + position % 2, chunk));
    const int c = c0 + chunk * 8 + lane / 4, r = r0 + first_row + 8 * (lane % 4);
    if (c < columns && r < rows) tw::store_streamed_16(y + ((long long)c * rows + r) * 2, v);
  }
#else
  // A warp takes 32 rows x 4 columns at a time: lane % 8 picks four rows, lane / 8 the column.
  constexpr int kSteps = TILE_R / 32 * kChunks / kWarps;
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
    const int step = warp + i * kWarps;
    const int row = step % (TILE_R / 32) * 32 + lane % 8 * 4, chunk = step / (TILE_R / 32);
    const char* from = tile_bytes + lane / 8 * 4;
    const uint4 v = make_uint4(*(const u32*)(from + place(row, chunk)), *(const u32*)(from + place(row + 1, chunk)),
                               *(const u32*)(from + place(row + 2, chunk)), *(const u32*)(from + place(row + 3, chunk)));
    const int c = c0 + chunk * 4 + lane / 8, r = r0 + row;
    if (c < columns && r < rows) tw::store_streamed_16(y + ((long long)c * rows + r) * 4, v);
  }
#endif
}
