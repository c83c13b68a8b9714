// The distributions that the language can name, and those that the matrix units prescribe. Each is a function of the tile's
// shape and the number of threads, or a sentence that says why there is none.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "ir/distribution.h"
#include "target/dtype.h"

namespace tw::lower {

using DistributionOr = Expected<ir::Distribution, std::string>;

DistributionOr row_per_thread(const std::vector<int>& shape, int threads);            // tw.rows()
DistributionOr row_per_warp(const std::vector<int>& shape, int threads, int vector);  // tw.warp_rows()
// Along `dim`, each thread holds one contiguous run, and runs follow in thread order.
DistributionOr scan_layout(const std::vector<int>& shape, int threads, int dim);

DistributionOr wgmma_accumulator(const std::vector<int>& shape, int threads);
DistributionOr wgmma_a_fragment(target::DType dtype, const std::vector<int>& shape, int threads);

struct MmaPlan {
    ir::Distribution a, b, acc;
};  // a: M x K, b: N x K, acc: M x N
Expected<MmaPlan, std::string> mma_fragments(target::DType a, target::DType b, target::DType acc, int m, int n, int k, int threads,
                                             int warps_m, int warps_n);
DistributionOr mma_accumulator(const std::vector<int>& shape, int threads, int warps_m, int warps_n);
// The arrangement of warps that makes each warp's part nearest to square.
std::pair<int, int> default_warps(int warps, int m, int n);

}  // namespace tw::lower
