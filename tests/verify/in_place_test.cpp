// Tensors that launches of a program update in place, and dependent launches that read an index before their roles. Single kernels are
// in theorem/ (in_place_*).
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace in_place_test {

using namespace testing_kernels;

bool proved(const std::string& computes) {
    const std::string text = R"py(import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="P[n] = P[n] * 2 + X[n]", threads=128)
def twice(X: tw.Tensor(f32, N), P: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    tw.store(P[i : i + 512], tw.load(P[i : i + 512], fill=0.0) * 2.0 + tw.load(X[i : i + 512], fill=0.0))


@tw.program(computes=")py" + computes +
                             R"py(")
def both(X: tw.Tensor(f32, N), P: tw.Tensor(f32, N)):
    twice(X, P)
    twice(X, P)
)py";
    SourceMap sources;
    DiagnosticSink sink;
    const auto module = lower::compile_text(sources, "program.py", text, {}, sink);
    EXPECT_TRUE(module) << render_text(sink, sources);
    if (!module) return false;
    diagnose::CheckOptions options;
    options.search = false;
    return diagnose::check_program(*module, module->programs[0], options).proved();
}

TEST(InPlace, EveryLaunchOfAProgramSeesWhatTheOneBeforeLeft) {
    EXPECT_TRUE(proved("P[n] = P[n] * 4 + X[n] * 3"));
    EXPECT_FALSE(proved("P[n] = P[n] * 2 + X[n]"));      // only one of the launches
    EXPECT_FALSE(proved("P[n] = P[n] * 4 + X[n] * 2"));  // the first launch's X is doubled too
}

// The wait for the grid before stands where the index is read, not at the statements that merely could read one.
TEST(InPlace, AnIndexIsReadBeforeTheRolesOfADependentLaunch) {
    const ir::Kernel kernel = kernel_of_text(R"py(import tilewright as tw
from tilewright import f32, i32

B, N = tw.sizes("B N")


@tw.kernel(target="sm_90a", computes="Y[b, n] = X[source[b], n]", dependent_launch=True)
def rows(X: tw.Tensor(f32, B, N), source: tw.Tensor(i32, B, range=B), Y: tw.Tensor(f32, B, N)):
    tw.assume(N % 4 == 0)
    c, b = tw.grid(tw.cdiv(N, 128), B)
    s = tw.shared(f32, (1, 128))
    ring = tw.pipeline(1)
    row = source[b]
    with tw.warps(0):
        slot = ring.acquire()
        tw.tma_load(s, X[row, c * 128], on=ring.full(slot))
    with tw.warpgroups(1):
        ring.wait()
        tw.store(Y[b : b + 1, c * 128 : c * 128 + 128], tw.load(s))
)py");
    diagnose::CheckOptions options;
    options.search = false;
    const diagnose::CheckResult result = diagnose::check(kernel, options);
    for (const Obligation& o : result.obligations) EXPECT_EQ(o.status, Status::proved) << o.kind << ": " << o.reason;
    int waits = 0;
    for (const ir::Stmt& s : kernel.body) {
        if (std::holds_alternative<ir::GridWait>(s.op)) ++waits;
        if (std::holds_alternative<ir::Assign>(s.op)) EXPECT_EQ(waits, 1) << "the index is read before the wait";
        if (std::holds_alternative<ir::Elect>(s.op)) EXPECT_EQ(waits, 0) << "the barriers are set up after the wait";
    }
    EXPECT_EQ(waits, 1);
}

}  // namespace in_place_test
}  // namespace tw::verify
