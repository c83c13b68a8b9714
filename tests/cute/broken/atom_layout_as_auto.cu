// expect: TW4603 .
#include <cute/tensor.hpp>
using namespace cute;
__global__ void __launch_bounds__(128) k() {
  auto atoms = make_layout(make_shape(_4{}, _2{}, _1{}));
  auto mma = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, atoms);
}
