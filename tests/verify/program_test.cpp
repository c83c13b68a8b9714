// Programs: what the launches make of one another is what the program's `computes` says, or a run shows that it is not.
#include "emulate/program.h"
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"
#include "verify/program.h"

namespace tw::verify {
namespace program_test {

using namespace testing_kernels;

ir::Module module_of_text(const std::string& text) {
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "program.py", text, {}, sink);
    EXPECT_TRUE(module && module->programs.size() == 1) << render_text(sink, sources);
    return module && module->programs.size() == 1 ? *module : ir::Module{};
}

diagnose::CheckResult checked(const ir::Module& module) {
    diagnose::CheckOptions options;
    options.search_seconds = 10;
    return diagnose::check_program(module, module.programs[0], options);
}

// Sums of a row in two halves, then their sum; %BODY% is the program.
std::string halves(const std::string& computes, const std::string& body) {
    return R"py(import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="P[h, m] = sum(n in minimum(h * ((N + 1) // 2), N) : minimum((h + 1) * ((N + 1) // 2), N), X[m, n])", threads=32)
def parts(X: tw.Tensor(f32, M, N), P: tw.Tensor(f32, 2, M)):
    h, m = tw.grid(2, M)
    half = tw.cdiv(N, 2)
    total = tw.zeros(f32, (32,))
    for c in tw.range(tw.cdiv(half, 32)):
        total = total + tw.load(X[m, h * half + c * 32 : h * half + c * 32 + 32], fill=0.0, limit=(tw.min((h + 1) * half, N),))
    tw.store(P[h, m], tw.sum(total, axis=0))


@tw.kernel(target="sm_80", computes="S[m] = P[0, m] + P[1, m]", threads=32)
def join(P: tw.Tensor(f32, 2, M), S: tw.Tensor(f32, M)):
    i = tw.grid(tw.cdiv(M, 32)) * 32
    tw.store(S[i : i + 32], tw.load(P[0, i : i + 32], fill=0.0) + tw.load(P[1, i : i + 32], fill=0.0))


@tw.program(computes=")py" +
           computes + R"py(")
def row_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    P = tw.buffer(f32, 2, M)
)py" + body;
}

const char* in_order = "    parts(X, P)\n    join(P, S)\n";

TEST(Program, PartsThatLaunchesLeaveInABufferUniteToTheWhole) {
    const ir::Module module = module_of_text(halves("S[m] = sum(n, X[m, n])", in_order));
    const auto result = checked(module);
    for (const Obligation& o : result.obligations) EXPECT_EQ(o.status, Status::proved) << o.reason;
    emulate::TrialOptions options;
    const emulate::Trial trial = emulate::run_program(module, module.programs[0], {5, 70}, options);
    EXPECT_TRUE(trial.refused.empty()) << trial.refused;
    EXPECT_FALSE(trial.failed());
}

TEST(Program, AWholeThatIsNotWhatTheProgramSaysIsShownOnTheEmulator) {
    const auto result = checked(module_of_text(halves("S[m] = 2 * sum(n, X[m, n])", in_order)));
    EXPECT_FALSE(result.proved());
    ASSERT_TRUE(result.counterexample.has_value());
    EXPECT_TRUE(result.counterexample->confirmed);
    EXPECT_EQ(result.counterexample->code, "TW1001");
}

TEST(Program, ABufferThatIsReadBeforeItIsWrittenIsNotProved) {
    const auto result = checked(module_of_text(halves("S[m] = sum(n, X[m, n])", "    join(P, S)\n    parts(X, P)\n")));
    EXPECT_FALSE(result.proved());
    EXPECT_TRUE(result.counterexample.has_value()) << "the buffer is poisoned: a run shows it";
}

// Random kernel 60400: T holds NaN, and T - T is not 0. So is the logarithm of a negative number less itself.
TEST(Program, ABufferThatCancelsMustHoldNumbers) {
    const auto text = [](const std::string& first, const std::string& launch) {
        return R"py(import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="B[n] = )py" +
               first + R"py((A[n])", threads=32)
def one(A: tw.Tensor(f32, N), B: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 32)) * 32
    tw.store(B[i], tw.)py" +
               first + R"py((tw.load(A[i : i + 32], fill=1.0)))


@tw.kernel(target="sm_80", computes="C[n] = A[n] - B[n]", threads=32)
def less(A: tw.Tensor(f32, N), B: tw.Tensor(f32, N), C: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 32)) * 32
    tw.store(C[i], tw.load(A[i : i + 32], fill=0.0) - tw.load(B[i : i + 32], fill=0.0))


@tw.program(computes="Y[n] = 0.0")
def nothing(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    T = tw.buffer(f32, N)
    U = tw.buffer(f32, N)
)py" + launch + "    less(T, T, Y)\n";
    };
    EXPECT_TRUE(checked(module_of_text(text("abs", "    one(X, T)\n"))).proved());
    EXPECT_FALSE(checked(module_of_text(text("log", "    one(X, T)\n"))).proved());
    EXPECT_FALSE(checked(module_of_text(text("abs", "    less(X, U, T)\n"))).proved());
}

TEST(Program, ShippedProgramsAreProved) {
    for (const char* file : {"kernels/split_k.py", "kernels/gemm_misaligned_sm90.py", "kernels/gemm_split_sm90.py"}) {
        SourceMap sources;
        DiagnosticSink sink;
        auto module = lower::compile_file(sources, repository(file).string(), {}, sink);
        ASSERT_TRUE(module && !module->programs.empty()) << file;
        for (const ir::Program& p : module->programs) {
            for (const Obligation& o : check_program(*module, p)) EXPECT_EQ(o.status, Status::proved) << p.name << ": " << o.reason;
        }
    }
}

}  // namespace program_test
}  // namespace tw::verify
