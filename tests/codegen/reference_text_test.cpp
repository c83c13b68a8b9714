// The fp64 reference that is printed as CUDA: compiled for this CPU it must give what the evaluator of `computes` gives, for every
// shipped kernel and for equations that use each construct. Both read the equation; they share no code.
#include "codegen/reference_on_cpu.h"

namespace tw::codegen {
namespace reference_text_test {

using namespace reference_on_cpu;

// Sizes small enough for seconds, odd where the kernel allows it.
std::vector<std::int64_t> small_sizes(std::size_t count) {
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < count; ++i) sizes.push_back(i == 0 ? 2 : i == 1 ? 3 : 5);
    return sizes;
}

TEST(ReferenceText, AgreesWithTheEvaluatorForEveryShippedKernel) {
    if (std::system("g++ --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no g++ on this machine";
    std::vector<Comparison> cases;
    for (const auto& entry : fs::directory_iterator(std::string(TW_SOURCE_DIR) + "/kernels")) {
        if (entry.path().extension() != ".py") continue;
        SourceMap sources;
        DiagnosticSink sink;
        auto module = lower::compile_file(sources, entry.path().string(), {}, sink);
        ASSERT_TRUE(module) << render_text(sink, sources);
        std::string last;
        for (const ir::Kernel& k : module->kernels) {
            if (k.computes.empty() || k.computes.text == last) continue;  // variants of one equation
            last = k.computes.text;
            const auto sizes = small_sizes(k.sizes.size());
            std::vector<double> scalars(k.scalars.size(), 0.5);
            cases.push_back({entry.path().filename().string() + " " + k.name, k.computes, k.tensors,
                             emulate::random_inputs(k, sizes, 3, false), sizes, scalars});
        }
    }
    EXPECT_GE(cases.size(), 12u);  // the kernels of 2026-11: fewer means that some were not found
    compare(cases);
}

TEST(ReferenceText, HasEveryConstructOfComputes) {
    if (std::system("g++ --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no g++ on this machine";
    // One kernel body serves all: the text of `computes` is what is looked at.
    const char* equations[] = {
        "Y[m, n] = where(n < m, max(j, X[m, j]), min(j in 0:n+1, X[m, j])) + argmax(j, X[m, j]) - argmin(j, X[m, j])",
        "Y[m, n] = prod(j in 0:3, X[m, j]) + exp(X[m, n]) * tanh(X[m, n]) - erf(X[m, n]) + sigmoid(X[m, n]) + abs(floor(X[m, n] * 3.0))",
        "Y[m, n] = X[m, (n + 3) % N] + X[(m * 7 + 1) // 2 % M, n] + logsumexp(j, X[m, j]) + f32(m * 10 + n)",
        "Y[m, n] = softmax(n, X[m, n]) + mean(j, (X[m, j] - mean(i, X[i, j])) ** 2) + sqrt(abs(X[m, n])) + maximum(X[m, n], 0.25)",
        "let r[m] = sum(j, X[m, j]); Y[m, n] = r[m] * r[minimum(m + 1, M - 1)] + where(m + 1 < M, X[minimum(m + 1, M - 1), n], -inf)",
    };
    std::vector<Comparison> cases;
    for (const char* equation : equations) {
        const std::string text = fmt::format(R"(import tilewright as tw
from tilewright import f32
M, N = tw.sizes("M N")
@tw.kernel(target="sm_80", computes="{}", threads=32)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    m = tw.grid(M)
    x = tw.load(X[m, 0:32], fill=0.0)
    tw.store(Y[m, 0:32], x)
)",
                                             equation);
        SourceMap sources;
        DiagnosticSink sink;
        auto module = lower::compile_text(sources, "k.py", text, {}, sink);
        ASSERT_TRUE(module) << render_text(sink, sources);
        const ir::Kernel& k = module->kernels[0];
        const std::vector<std::int64_t> sizes = {5, 9};
        cases.push_back({equation, k.computes, k.tensors, emulate::random_inputs(k, sizes, 3, false), sizes, {}});
    }
    compare(cases);
}

}  // namespace reference_text_test
}  // namespace tw::codegen
