#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/pipeline/pipeline.hpp>
using namespace cute;
using T = cutlass::half_t;
constexpr int kStages = 3;
using Pipe = cutlass::PipelineAsync<kStages>;
using State = cutlass::PipelineState<kStages>;
using SmemLayout = Layout<Shape<_64, _64, Int<kStages>>, Stride<_72, _1, Int<64 * 72>>>;
struct Storage {
  alignas(128) T tile[cosize_v<SmemLayout>];
  typename Pipe::SharedStorage pipe;
};
__global__ void __launch_bounds__(256) scale(T const* in, T* out, float alpha, int tiles) {
  extern __shared__ char raw[];
  Storage& s = *reinterpret_cast<Storage*>(raw);
  Tensor sT = make_tensor(make_smem_ptr(s.tile), SmemLayout{});
  Tensor gIn = make_tensor(make_gmem_ptr(in), make_shape(_64{}, _64{}, tiles), make_stride(_64{}, _1{}, Int<4096>{}));
  Tensor gOut = make_tensor(make_gmem_ptr(out), make_shape(_64{}, _64{}, tiles), make_stride(_64{}, _1{}, Int<4096>{}));
  bool const producer = threadIdx.x < 128;
  typename Pipe::Params params;
  params.role = producer ? Pipe::ThreadCategory::Producer : Pipe::ThreadCategory::Consumer;
  params.producer_arv_count = 128;
  params.consumer_arv_count = 128;
  Pipe pipe(s.pipe, params);
  __syncthreads();
  auto tc = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, T>{}, Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _8>>{});
  auto thr = tc.get_slice(threadIdx.x % 128);
  Tensor tg = thr.partition_S(gIn);
  Tensor ts = thr.partition_D(sT);
  Tensor tr = make_fragment_like(ts(_, _, _, 0));
  if (producer) {
    State write = cutlass::make_producer_start_state<Pipe>();
    for (int i = 0; i < tiles; ++i) {
      copy(tc, tg(_, _, _, i), tr);
      pipe.producer_acquire(write);
      copy(tc, tr, ts(_, _, _, write.index()));
      pipe.producer_commit(write);
      ++write;
    }
  } else {
    Tensor to = thr.partition_D(gOut);
    State read;
    for (int i = 0; i < tiles; ++i) {
      pipe.consumer_wait(read);
      copy(tc, ts(_, _, _, read.index()), tr);
      pipe.consumer_release(read);
      for (int e = 0; e < size(tr); ++e) tr(e) = T(alpha * float(tr(e)));
      copy(tc, tr, to(_, _, _, i));
      ++read;
    }
  }
}
