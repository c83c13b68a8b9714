// not analysed: division of a layout
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float* A) {
  using L = Layout<Shape<_100>, Stride<_1>>;
  auto parts = zipped_divide(L{}, Layout<_32>{});
  A[0] = size(parts);
}
