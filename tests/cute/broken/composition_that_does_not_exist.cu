// expect: TW4604 composition does not exist
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float* A) {
  using L = Layout<Shape<_6, _4>, Stride<_1, _16>>;
  auto parts = composition(L{}, Layout<Shape<_4, _6>, Stride<_1, _4>>{});
  A[0] = size(parts);
}
