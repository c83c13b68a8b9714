// Programs that are refused, not proved or shown wrong because of what launches do to one another's memory. What is refused by the language
// (a tensor given twice, an unstable one promised stable) is in tests/lower/reject.
#include <fmt/format.h>

#include "diagnose/check.h"
#include "diagnose/failing_trial.h"
#include "emulate/program.h"
#include "verify/kernel_test_support.h"
#include "verify/program.h"

namespace tw::verify {
namespace launches_test {

using namespace testing_kernels;

const std::string head = R"py(import tilewright as tw
from tilewright import f32, i32

N, E = tw.sizes("N E")


@tw.kernel(target="sm_80", computes="Y[n] = X[n]", threads=128)
def copy(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(X[i : i + 128], fill=0.0))


@tw.kernel(target="sm_80", computes="Y[n] = 2.0 * X[n]", threads=128)
def double_of(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(X[i : i + 128], fill=0.0) * 2.0)


@tw.kernel(target="sm_80", computes="Y[n in 0:N - 1] = X[n + 1]", threads=128)
def head_of(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    tw.assume(N >= 2)
    i = tw.grid(tw.cdiv(N - 1, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(X[i + 1 : i + 129], fill=0.0), limit=(N - 1,))


)py";

std::optional<ir::Module> module_of(const std::string& text) {
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "program.py", text, {}, sink);
    EXPECT_TRUE(module) << render_text(sink, sources);
    return module;
}

std::string program(const std::string& computes, const std::string& body,
                    const std::string& parameters = "X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)") {
    return fmt::format("{}@tw.program({})\ndef whole({}):\n{}", head, computes.empty() ? "" : "computes=\"" + computes + "\"", parameters,
                       body);
}

diagnose::CheckResult checked(const ir::Module& module) {
    diagnose::CheckOptions options;
    options.search_seconds = 5;
    return diagnose::check_program(module, module.programs[0], options);
}

TEST(Launches, AChainThroughBuffersIsProved) {
    const auto module = module_of(program("Y[n] = 4.0 * X[n]", "    T = tw.buffer(f32, N)\n    double_of(X, T)\n    double_of(T, Y)\n"));
    ASSERT_TRUE(module);
    const auto result = checked(*module);
    EXPECT_TRUE(result.proved()) << (result.obligations.empty() ? "" : result.obligations[0].reason);
}

TEST(Launches, ABufferThatIsWrittenTwiceHoldsWhatTheLastOneLeft) {
    EXPECT_TRUE(checked(*module_of(program("Y[n] = 2.0 * X[n]",
                                           "    T = tw.buffer(f32, N)\n    copy(X, T)\n    double_of(X, T)\n    copy(T, Y)\n")))
                    .proved());
    const auto stale = checked(
        *module_of(program("Y[n] = 2.0 * X[n]", "    T = tw.buffer(f32, N)\n    double_of(X, T)\n    copy(X, T)\n    copy(T, Y)\n")));
    EXPECT_FALSE(stale.proved());
    EXPECT_TRUE(stale.counterexample.has_value());
}

TEST(Launches, TheRestOfAnOutputWrittenInPartIsNotFollowed) {
    const auto result = checked(
        *module_of(program("Y[n] = where(n < N - 1, X[n + 1], 0.0)", "    T = tw.buffer(f32, N)\n    head_of(X, T)\n    copy(T, Y)\n")));
    EXPECT_FALSE(result.proved());
}

TEST(Launches, AnInputThatAProgramOverwritesIsNotKept) {
    // Y is right; X, of which `computes` says nothing, is not what the caller gave.
    const auto result = checked(*module_of(program("Y[n] = 2.0 * X[n]", "    double_of(X, Y)\n    copy(Y, X)\n")));
    EXPECT_FALSE(result.proved());
    std::string reasons;
    for (const Obligation& o : result.obligations) reasons += o.reason + "\n";
    EXPECT_NE(reasons.find("copy writes `X`"), std::string::npos) << reasons;
}

TEST(Launches, AnInputThatIsSaidToChangeMayChange) {
    const auto module = module_of(program("X[n] = 2.0 * X[n]; Y[n] = X[n]", "    copy(X, Y)\n    double_of(Y, X)\n"));
    ASSERT_TRUE(module);
    EXPECT_TRUE(checked(*module).proved());
    emulate::TrialOptions options;
    const auto trial = emulate::run_program(*module, module->programs[0], {70}, options);
    EXPECT_FALSE(trial.failed()) << trial.summary(emulate::signature_of(module->programs[0]));
}

TEST(Launches, InPlaceMadeFromWhatIsThereAlreadyIsNoPoison) {
    // Nothing is doubled: with poison in X every element was NaN, and NaN was right.
    const auto module = module_of(program("X[n] = 2.0 * X[n]; Y[n] = X[n]", "    copy(X, Y)\n    copy(Y, X)\n"));
    ASSERT_TRUE(module);
    emulate::TrialOptions options;
    EXPECT_TRUE(emulate::run_program(*module, module->programs[0], {70}, options).failed());
    EXPECT_FALSE(checked(*module).proved());
}

TEST(Launches, AProgramThatClaimsNothingIsNotProved) {
    const auto result = checked(*module_of(program("", "    copy(X, Y)\n")));
    EXPECT_FALSE(result.proved());
}

TEST(Launches, ALetMayHaveTheNameOfABuffer) {
    const auto module =
        module_of(program("let T[n] = 2.0 * X[n]; Y[n] = T[n]", "    T = tw.buffer(f32, N)\n    double_of(X, T)\n    copy(T, Y)\n"));
    ASSERT_TRUE(module);
    const auto result = checked(*module);
    EXPECT_TRUE(result.proved()) << (result.counterexample ? result.counterexample->message : result.obligations[0].reason);
}

TEST(Launches, AGroupTensorThatALaunchHasWrittenBreaksThePromiseOnItsOffsets) {
    const std::string kernels = R"py(import tilewright as tw
from tilewright import f32, i32

N, E = tw.sizes("N E")


@tw.kernel(target="sm_80", computes="G[n] = 0", threads=128)
def clear(G: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(G[i : i + 128], tw.full(i32, (128,), 0))


@tw.kernel(target="sm_80", computes="Y[n] = X[n]", threads=128)
def grouped(X: tw.Tensor(f32, N), G: tw.Tensor(i32, N), S: tw.Tensor(i32, E + 1, offsets_of="G"), W: tw.Tensor(f32, E), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(X[i : i + 128], fill=0.0))


@tw.program(computes="Y[n] = X[n]; G[n] = 0")
def whole(X: tw.Tensor(f32, N), G: tw.Tensor(i32, N), S: tw.Tensor(i32, E + 1, offsets_of="G"), W: tw.Tensor(f32, E), Y: tw.Tensor(f32, N)):
)py";
    const auto kept = module_of(kernels + "    grouped(X, G, S, W, Y)\n    clear(G)\n");
    const auto broken = module_of(kernels + "    clear(G)\n    grouped(X, G, S, W, Y)\n");
    ASSERT_TRUE(kept && broken);
    EXPECT_TRUE(checked(*kept).proved());
    EXPECT_FALSE(checked(*broken).proved());
}

TEST(Launches, ABufferOfIntegersHoldsIntegers) {
    const std::string kernels = R"py(import tilewright as tw
from tilewright import f32, i8, i32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="T[n] = X[n]", threads=128)
def cut(X: tw.Tensor(f32, N), T: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(T[i : i + 128], tw.load(X[i : i + 128], fill=0.0).to(i32))


@tw.kernel(target="sm_80", computes="Y[n] = f32(T[n])", threads=128)
def back(T: tw.Tensor(i32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(T[i : i + 128], fill=0).to(f32))


@tw.kernel(target="sm_80", computes="T[n] = n", threads=128)
def count(T: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(T[i : i + 128], tw.coord(tw.full(i32, (128,), 0), 0) + i)


)py";
    const auto truncated = module_of(kernels +
                                     "@tw.program(computes=\"Y[n] = X[n]\")\ndef whole(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):\n    T "
                                     "= tw.buffer(i32, N)\n    cut(X, T)\n    back(T, Y)\n");
    ASSERT_TRUE(truncated);
    const auto result = checked(*truncated);
    EXPECT_FALSE(result.proved());
    EXPECT_TRUE(result.counterexample.has_value());
    const auto places = module_of(kernels +
                                  "@tw.program(computes=\"Y[n] = f32(i32(n))\")\ndef whole(Y: tw.Tensor(f32, N)):\n    T = tw.buffer(i32, "
                                  "N)\n    count(T)\n    back(T, Y)\n");
    ASSERT_TRUE(places);
    EXPECT_TRUE(checked(*places).proved());
}

TEST(Launches, AnIndexThatALaunchChangesIsNotTheOneOfBefore) {
    const std::string kernels = R"py(import tilewright as tw
from tilewright import f32, i32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="G[n] = 0", threads=128)
def clear(G: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(G[i : i + 128], tw.full(i32, (128,), 0))


@tw.kernel(target="sm_80", computes="Y[n] = where(G[n] == 0, X[n], 0.0)", threads=128)
def masked(X: tw.Tensor(f32, N), G: tw.Tensor(i32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    g = tw.load(G[i : i + 128], fill=0)
    tw.store(Y[i : i + 128], tw.where(g == 0, tw.load(X[i : i + 128], fill=0.0), 0.0))


@tw.program(computes="Y[n] = where(G[n] == 0, X[n], 0.0); G[n] = 0")
def whole(X: tw.Tensor(f32, N), G: tw.Tensor(i32, N), Y: tw.Tensor(f32, N)):
)py";
    const auto before = module_of(kernels + "    masked(X, G, Y)\n    clear(G)\n"),
               after = module_of(kernels + "    clear(G)\n    masked(X, G, Y)\n");
    ASSERT_TRUE(before && after);
    EXPECT_TRUE(checked(*before).proved());
    const auto result = checked(*after);
    EXPECT_FALSE(result.proved());
    EXPECT_TRUE(result.counterexample.has_value()) << "integers are not all zero";
}

// IR that no text gives: the rules stand on their own.
TEST(Launches, OneTensorGivenTwiceIsNotProvedWhateverTheOrderOfParameters) {
    for (const char* parameters : {"X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)", "Y: tw.Tensor(f32, N), X: tw.Tensor(f32, N)"}) {
        const bool output_first = parameters[0] == 'Y';
        const std::string text = fmt::format(R"py({}
@tw.kernel(target="sm_80", computes="Y[n] = where(n < N - 1, X[n + 1], 0.0)", threads=128)
def shift({}):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(X[i + 1 : i + 129], fill=0.0))


@tw.program(computes="Y[n] = where(n < N - 1, X[n + 1], 0.0)")
def whole(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    T = tw.buffer(f32, N)
    U = tw.buffer(f32, N)
    copy(X, T)
    shift({})
    copy(U, Y)
)py",
                                             head, parameters, output_first ? "U, T" : "T, U");
        auto module = module_of(text);
        ASSERT_TRUE(module);
        EXPECT_TRUE(checked(*module).proved());
        ir::Launch& shift = module->programs[0].launches[1];
        shift.arguments[0] = shift.arguments[1] = 2;  // T
        module->programs[0].launches[2].arguments[0] = 2;
        EXPECT_FALSE(checked(*module).proved());
    }
}

}  // namespace launches_test
}  // namespace tw::verify
