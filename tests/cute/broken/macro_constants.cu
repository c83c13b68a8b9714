// expect: TW4607 .
#include <cute/tensor.hpp>
using namespace cute;
#define BM 96
#define BK 64
__global__ void __launch_bounds__(256) k() {
  __shared__ half_t sm[BM * BK - 1];
  Tensor s = make_tensor(make_smem_ptr(sm), make_shape(Int<BM>{}, Int<BK>{}), LayoutRight{});
}
