// A persistent kernel is run as one block that goes through all tiles. That speaks for any number of blocks only where all roles go through
// the tiles of a block in the same way.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace tiles_of_blocks_test {

using namespace testing_kernels;

constexpr const char* ring = R"(import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] * 2.0")
def doubled(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 4 == 0)
    s = tw.shared(f32, (2, 16, 32))
    full = tw.mbarrier(2)
    empty = tw.mbarrier(2)
    with tw.warpgroups(0, name="producer"):
        n = 0
        for t in tw.persistent(tw.cdiv(M, 16)):
            for c in tw.range(tw.cdiv(N, 32)):
                empty[n % 2].wait((n // 2 + 1) % 2)
                full[n % 2].expect(16 * 32 * 4)
                tw.tma_load(s[n % 2], X[t * 16, c * 32], on=full[n % 2])
                n = n + 1
    with tw.warpgroups(1, name="consumer"):
        readers = tw.named_barrier(1, 128)
        n = 0
        for t in tw.persistent(tw.cdiv(M, 16)):
            for c in tw.range(tw.cdiv(N, 32)):
                full[n % 2].wait(n // 2 % 2)
                x = tw.load(s[n % 2])
                readers.sync()
                with tw.elected():
                    empty[n % 2].arrive()
                tw.store(Y[t * 16, c * 32], x * 2.0)
                n = n + 1
)";

// The loops over tiles, in the order of the text: the producer's, the consumer's.
std::vector<ir::For*> loops_over_tiles(ir::Kernel& k) {
    std::vector<ir::For*> found;
    ir::for_each_stmt(k.body, [&](ir::Stmt& s) {
        auto* f = std::get_if<ir::For>(&s.op);
        if (f && !f->step.as_constant()) found.push_back(f);
    });
    return found;
}

bool proved(const ir::Kernel& k) {
    diagnose::CheckOptions options;
    options.search = false;
    return diagnose::check(k, options).proved();
}

TEST(TilesOfBlocks, TheSameInAllRolesAreProved) {
    ir::Kernel k = kernel_of_text(ring);
    EXPECT_EQ(loops_over_tiles(k).size(), 2u);
    EXPECT_TRUE(proved(k));
}

TEST(TilesOfBlocks, OfAnotherBlockInOneRoleAreNot) {
    for (std::size_t role : {0u, 1u}) {
        for (const ir::Expr& start : {ir::block_index(1), ir::Expr(0), ir::block_index(0) + 1, ir::block_index(0) * 2}) {
            ir::Kernel k = kernel_of_text(ring);
            loops_over_tiles(k)[role]->lo = start;
            EXPECT_FALSE(proved(k)) << role << ": starts at " << ir::print(k);
        }
    }
}

TEST(TilesOfBlocks, WithAnotherStepInOneRoleAreNot) {
    ir::Kernel k = kernel_of_text(ring);
    loops_over_tiles(k)[0]->step = ir::grid_size(0) * 2;
    EXPECT_FALSE(proved(k));
}

}  // namespace tiles_of_blocks_test
}  // namespace tw::verify
