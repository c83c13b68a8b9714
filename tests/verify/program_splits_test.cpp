// Numbers that one launch splits and another multiplies: parts in two buffers undo one another's rounding, and only those of one number.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace program_splits_test {

// A sum of squares of X, from parts in two buffers. `split` says what the second buffer holds, `used` what is added up.
std::string squares(const std::string& low, const std::string& used, const std::string& call) {
    return R"py(import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="""
    H[m, n] = bf16(X[m, n] * 2)
    L[m, n] = bf16()py" +
           low + R"py()
""", threads=64)
def split(X: tw.Tensor(f32, M, N), Z: tw.Tensor(f32, M, N), H: tw.Tensor(bf16, M, N), L: tw.Tensor(bf16, M, N)):
    c, m = tw.grid(tw.cdiv(N, 64), M)
    x = tw.load(X[m, c * 64 : c * 64 + 64], fill=0.0) * 2.0
    z = tw.load(Z[m, c * 64 : c * 64 + 64], fill=0.0) * 2.0
    h = x.to(bf16)
    tw.store(H[m, c * 64 : c * 64 + 64], h)
    tw.store(L[m, c * 64 : c * 64 + 64], ()py" +
           (low.find("Z") == std::string::npos ? "x - h.to(f32)" : "z - z.to(bf16).to(f32)") + R"py().to(bf16))


@tw.kernel(target="sm_80", computes="Y[m] = sum(n, )py" +
           used + R"py()", threads=64)
def add(H: tw.Tensor(bf16, M, N), L: tw.Tensor(bf16, M, N), Y: tw.Tensor(f32, M)):
    m = tw.grid(M)
    total = tw.zeros(f32, (64,))
    for c in tw.range(tw.cdiv(N, 64)):
        h = tw.load(H[m, c * 64 : c * 64 + 64], fill=0.0).to(f32)
        l = tw.load(L[m, c * 64 : c * 64 + 64], fill=0.0).to(f32)
        total = total + ()py" +
           std::string(used.find("L") == std::string::npos ? "h * h" : "h * h + h * l + l * h") + R"py()
    tw.store(Y[m], tw.sum(total, axis=0))


@tw.program(computes="Y[m] = sum(n, X[m, n] * X[m, n] * 4)")
def both(X: tw.Tensor(f32, M, N), Z: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    H = tw.buffer(bf16, M, N)
    L = tw.buffer(bf16, M, N)
    split(X, Z, H, L)
    )py" + call +
           "\n";
}

const char* low_of_x = "X[m, n] * 2 - f32(bf16(X[m, n] * 2))";
const char* three = "f32(H[m, n]) * f32(H[m, n]) + f32(H[m, n]) * f32(L[m, n]) + f32(L[m, n]) * f32(H[m, n])";

// The status of the obligation on precision; nothing: there is none.
std::optional<Status> precision_of(const std::string& text) {
    SourceMap sources;
    DiagnosticSink sink;
    const auto module = lower::compile_text(sources, "program.py", text, {}, sink);
    EXPECT_TRUE(module && module->programs.size() == 1) << render_text(sink, sources);
    if (!module || module->programs.size() != 1) return std::nullopt;
    diagnose::CheckOptions options;
    options.search = false;
    for (const Obligation& o : diagnose::check_program(*module, module->programs[0], options).obligations) {
        if (o.kind == "precision") return o.status;
    }
    return std::nullopt;
}

TEST(ProgramSplits, ThreeProductsOfPartsInTwoBuffersAreAProductInF32) {
    EXPECT_EQ(precision_of(squares(low_of_x, three, "add(H, L, Y)")), Status::proved);
}

TEST(ProgramSplits, TheHighPartsAloneAreNot) {
    EXPECT_EQ(precision_of(squares(low_of_x, "f32(H[m, n]) * f32(H[m, n])", "add(H, L, Y)")), Status::not_proved);
}

TEST(ProgramSplits, LowPartsOfAnotherNumberDoNotHelp) {
    EXPECT_EQ(precision_of(squares("Z[m, n] * 2 - f32(bf16(Z[m, n] * 2))", three, "add(H, L, Y)")), Status::not_proved);
}

TEST(ProgramSplits, HighPartsInThePlaceOfLowOnesDoNotHelp) {
    EXPECT_EQ(precision_of(squares(low_of_x, three, "add(H, H, Y)")), Status::not_proved);
}

}  // namespace program_splits_test
}  // namespace tw::verify
