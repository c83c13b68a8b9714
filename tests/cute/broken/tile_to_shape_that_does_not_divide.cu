// expect: TW4604 .
#include <cute/tensor.hpp>
using namespace cute;
using S = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<_100, _64>{}));
