// What compute-sanitizer's synccheck says of a named barrier whose two sides are two instructions. PTX lets any bar.sync of a barrier meet any
// other; on an H200 (CUDA 13.0) the tool reports "Divergent thread(s) in block" for those, and nothing where both sides are one instruction:
//     nvcc -arch=sm_90a -o probe bench/probes/synccheck_barrier.cu
//     for n in 1 2 3; do compute-sanitizer --tool synccheck ./probe $n; done      # 0 errors, 128 errors, 128 errors
#include <cstdio>

__global__ void two_places(int* out) {
    if (threadIdx.x < 32) { asm volatile("bar.sync 1, 64;" ::: "memory"); out[threadIdx.x] = 1; }
    else { out[threadIdx.x] = 2; asm volatile("bar.sync 1, 64;" ::: "memory"); }
}
__global__ void one_place(int* out) { out[threadIdx.x] = 1; asm volatile("bar.sync 1, 64;" ::: "memory"); out[threadIdx.x] = 2; }
// A third warp, which has no part in the barrier, ends before.
__global__ void others_end(int* out) {
    if (threadIdx.x >= 64) return;
    if (threadIdx.x < 32) { out[threadIdx.x] = 1; asm volatile("bar.sync 1, 64;" ::: "memory"); }
    else { asm volatile("bar.sync 1, 64;" ::: "memory"); out[threadIdx.x] = 2; }
}
int main(int, char** argv) {
    int* p; cudaMalloc(&p, 4096);
    if (argv[1][0] == '2') two_places<<<4, 64>>>(p);
    else if (argv[1][0] == '3') others_end<<<4, 96>>>(p);
    else one_place<<<4, 64>>>(p);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
