// Shapes of random kernels: contents that keep the promises exist for each of them (a table of tiles that is too short for its rows has
// none).
#include <gtest/gtest.h>

#include "diagnose/random_kernel.h"
#include "emulate/trial.h"

namespace tw::diagnose {
namespace random_shapes_test {

TEST(RandomShapes, KeepPromises) {
    RandomOptions options;
    options.family = "groups";
    options.broken = 0;
    options.exact = true;
    int tables = 0;
    for (std::uint64_t seed = 100; seed < 130; ++seed) {
        std::string refused;
        const auto random = random_kernel(seed, options, refused);
        ASSERT_TRUE(random.has_value()) << refused;
        const ir::Kernel& k = random->kernel;
        for (const ir::Tensor& t : k.tensors) tables += t.tile_ends.has_value();
        for (const auto& shape : random->shapes) {
            std::vector<std::int64_t> sizes;
            for (const std::string& name : k.sizes) sizes.push_back(shape.at(name));
            const auto inputs = emulate::random_inputs(k, sizes, seed, true);
            EXPECT_EQ(emulate::broken_promise(k, sizes, inputs).value_or(""), "") << "seed " << seed;
        }
    }
    EXPECT_GT(tables, 0);
}

}  // namespace random_shapes_test
}  // namespace tw::diagnose
