// expect: TW4603 .
#include <cute/tensor.hpp>
using namespace cute;
static constexpr int kThreads = 64 * 2;
__global__ void __launch_bounds__(kThreads) k(half_t const* X) {
  auto c = cute::make_tiled_copy(cute::Copy_Atom<cute::UniversalCopy<cute::uint128_t>, cute::half_t>{}, cute::make_layout(cute::make_shape(cute::Int<8>{}, cute::Int<8>{}), cute::GenRowMajor{}), cute::make_layout(cute::make_shape(cute::Int<1>{}, cute::Int<8>{})));
}
