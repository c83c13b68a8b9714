// Every TMA copy that the printer can ask for has its device text: dimensions, receivers and cache hints in all combinations.
#include <fmt/format.h>

#include "verify/kernel_test_support.h"

namespace tw::codegen {
namespace tma_text_test {

TEST(TmaText, EveryCombinationIsThere) {
    const std::string header = testing_kernels::read_text(testing_kernels::repository("src/codegen/cuda/tw_device.cuh"));
    for (int dims = 1; dims <= 5; ++dims) {
        for (const char* hint : {"", "_hint"}) {
            for (const char* receivers : {"", "_multicast"}) {
                const std::string name = fmt::format(" tma_load_{}d{}{}(", dims, receivers, hint);
                EXPECT_NE(header.find(name), std::string::npos) << name;
            }
            const std::string name = fmt::format(" tma_store_{}d{}(", dims, hint);
            EXPECT_NE(header.find(name), std::string::npos) << name;
        }
        const std::string name = fmt::format(" tma_reduce_add_{}d(", dims);
        EXPECT_NE(header.find(name), std::string::npos) << name;
    }
}

}  // namespace tma_text_test
}  // namespace tw::codegen
