// The fp64 reference that is printed as CUDA: compiled for this CPU it must give what the evaluator of `computes` gives, for every
// shipped kernel and for equations that use each construct. Both read the equation; they share no code.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "codegen/reference_text.h"
#include "emulate/reference.h"
#include "emulate/trial.h"
#include "lower/lower.h"

namespace tw::codegen {
namespace {

namespace fs = std::filesystem;

using Run = void (*)(const std::uint64_t* words, long long count);

struct Comparison {
    std::string label;
    ir::Computes computes;
    std::vector<ir::Tensor> tensors;
    std::vector<emulate::TensorData> data;
    std::vector<std::int64_t> sizes;
    std::vector<double> scalars;
};

// The text as C++ for this machine, in a namespace of its own.
std::string stand_in(const ReferenceText& text, std::size_t number) {
    std::string source = text.source;
    const std::string ptx = R"(__device__ inline float half_value(unsigned short bits) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits)); return f; })";
    const auto at = source.find(ptx);
    EXPECT_NE(at, std::string::npos);
    source.replace(at, ptx.size(), R"(inline float half_value(unsigned short b) {
        const int e = b >> 10 & 31, f = b & 1023; const float s = b & 0x8000 ? -1.0f : 1.0f;
        return e == 31 ? (f ? NAN : s * INFINITY) : e == 0 ? s * ldexpf(f, -24) : s * ldexpf(f + 1024, e - 25); })");
    for (std::size_t c = 0; (c = source.find("extern \"C\"", c)) != std::string::npos;) source.erase(c, 10);
    std::string entries;
    for (const std::string& entry : text.entries) {
        entries += fmt::format("extern \"C\" void run_{1}_{0}(const unsigned long long* words, long long count) {{ Parameters p; std::memcpy(&p, words, sizeof p);\n"
                               "    for (blockIdx.x = 0; blockIdx.x < count; ++blockIdx.x) {0}(p); }}\n", entry, number);
    }
    return fmt::format("namespace case_{} {{\n{}\n{}}}\n", number, source, entries);
}

constexpr const char* head = R"(#include <cmath>
#include <cstring>
#define __device__
#define __global__
struct Index { long long x; }; static Index blockIdx{0}, threadIdx{0}, blockDim{1};
template <class To, class From> To same_bits(From f) { To t; std::memcpy(&t, &f, sizeof t); return t; }
static double __longlong_as_double(long long b) { return same_bits<double>(b); }
static float __int_as_float(int b) { return same_bits<float>(b); }
using namespace std;
)";

void compare(const std::vector<Comparison>& cases) {
    char name[] = "/tmp/tilewright-reference-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    const fs::path folder = name;
    std::string source = head;
    std::vector<ReferenceText> texts;
    for (const Comparison& c : cases) {
        auto text = reference_text(c.computes, c.tensors, c.sizes.size(), c.scalars.size());
        ASSERT_TRUE(text) << c.label << ": " << text.error();
        source += stand_in(*text, texts.size());
        texts.push_back(*std::move(text));
    }
    std::ofstream(folder / "r.cpp") << source;
    const std::string command = fmt::format("g++ -std=c++17 -O0 -shared -fPIC -w {0}/r.cpp -o {0}/r.so 2> {0}/log", folder.string());
    if (std::system(command.c_str()) != 0) {
        std::ifstream log(folder / "log");
        FAIL() << std::string(std::istreambuf_iterator<char>(log), {}).substr(0, 3000);
    }
    void* library = dlopen((folder / "r.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    for (std::size_t n = 0; n < cases.size(); ++n) {
        const Comparison& c = cases[n];
        auto expected = emulate::reference(c.computes, c.sizes, c.scalars, c.data);
        ASSERT_TRUE(expected) << c.label << ": " << expected.error();
        for (std::size_t q = 0; q < texts[n].entries.size(); ++q) {
            const std::size_t count = (*expected)[q].values.size();
            std::vector<double> want(count, -1), got(count, -1);
            std::vector<std::uint64_t> words;
            const auto put = [&](auto value) {
                std::uint64_t word = 0;
                static_assert(sizeof value == 8);
                std::memcpy(&word, &value, 8);
                words.push_back(word);
            };
            for (const auto& t : c.data) put(t.bytes.data());
            for (std::int64_t s : c.sizes) put(s);
            if (c.sizes.empty()) put(std::int64_t{0});
            for (double s : c.scalars) put(s);
            if (c.scalars.empty()) put(0.0);
            put(std::int64_t{0}), put(static_cast<std::int64_t>(count)), put(want.data()), put(got.data());
            auto run = reinterpret_cast<Run>(dlsym(library, fmt::format("run_{}_{}", n, texts[n].entries[q]).c_str()));
            ASSERT_NE(run, nullptr);
            run(words.data(), static_cast<long long>(count));
            for (std::size_t i = 0; i < count; ++i) {
                const double a = want[i], b = (*expected)[q].values[i];
                if (std::isnan(a) && std::isnan(b)) continue;
                ASSERT_TRUE(a == b || std::fabs(a - b) <= 1e-9 * std::max(1.0, std::fabs(b))) << c.label << " equation " << q << " element " << i << ": " << a << " is not " << b;
            }
        }
    }
    dlclose(library);
    fs::remove_all(folder);
}

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
            if (k.computes.empty() || k.computes.text == last) continue;   // variants of one equation
            last = k.computes.text;
            const auto sizes = small_sizes(k.sizes.size());
            std::vector<double> scalars(k.scalars.size(), 0.5);
            cases.push_back({entry.path().filename().string() + " " + k.name, k.computes, k.tensors, emulate::random_inputs(k, sizes, 3, false), sizes, scalars});
        }
    }
    EXPECT_GE(cases.size(), 12u);   // the kernels of 2026-11: fewer means that some were not found
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
)", equation);
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

}  // namespace
}  // namespace tw::codegen
