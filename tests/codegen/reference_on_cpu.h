// The fp64 reference that is printed as CUDA, compiled for this CPU, against the evaluator of `computes`.
#pragma once

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

namespace tw::codegen::reference_on_cpu {

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
inline std::string stand_in(const ReferenceText& text, std::size_t number) {
    std::string source = text.source;
    const std::string ptx =
        R"(__device__ inline float half_value(unsigned short bits) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits)); return f; })";
    const auto at = source.find(ptx);
    EXPECT_NE(at, std::string::npos);
    source.replace(at, ptx.size(), R"(inline float half_value(unsigned short b) {
        const int e = b >> 10 & 31, f = b & 1023; const float s = b & 0x8000 ? -1.0f : 1.0f;
        return e == 31 ? (f ? NAN : s * INFINITY) : e == 0 ? s * ldexpf(f, -24) : s * ldexpf(f + 1024, e - 25); })");
    for (std::size_t c = 0; (c = source.find("extern \"C\"", c)) != std::string::npos;) source.erase(c, 10);
    std::string entries;
    for (const std::string& entry : text.entries) {
        entries += fmt::format(
            "extern \"C\" void run_{1}_{0}(const unsigned long long* words, long long count) {{ Parameters p; std::memcpy(&p, words, "
            "sizeof p);\n"
            "    for (blockIdx.x = 0; blockIdx.x < count; ++blockIdx.x) {0}(p); }}\n",
            entry, number);
    }
    return fmt::format("namespace case_{} {{\n{}\n{}}}\n", number, source, entries);
}

inline constexpr const char* head = R"(#include <cmath>
#include <cstring>
#define __device__
#define __global__
struct Index { long long x; }; static Index blockIdx{0}, threadIdx{0}, blockDim{1};
template <class To, class From> To same_bits(From f) { To t; std::memcpy(&t, &f, sizeof t); return t; }
static double __longlong_as_double(long long b) { return same_bits<double>(b); }
static float __int_as_float(int b) { return same_bits<float>(b); }
using namespace std;
)";

inline void compare(const std::vector<Comparison>& cases) {
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
            put(std::int64_t{0}), put(static_cast<std::int64_t>(count)), put(want.data()), put(got.data()),
                put(c.data[static_cast<std::size_t>(c.computes.equations[q].output)].bytes.data());
            auto run = reinterpret_cast<Run>(dlsym(library, fmt::format("run_{}_{}", n, texts[n].entries[q]).c_str()));
            ASSERT_NE(run, nullptr);
            run(words.data(), static_cast<long long>(count));
            for (std::size_t i = 0; i < count; ++i) {
                const double a = want[i], b = (*expected)[q].values[i];
                if (std::isnan(a) && std::isnan(b)) continue;
                ASSERT_TRUE(a == b || std::fabs(a - b) <= 1e-9 * std::max(1.0, std::fabs(b)))
                    << c.label << " equation " << q << " element " << i << ": " << a << " is not " << b;
            }
        }
    }
    dlclose(library);
    fs::remove_all(folder);
}

}  // namespace tw::codegen::reference_on_cpu
