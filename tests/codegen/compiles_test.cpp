// What is accepted compiles: kernels of the examples and of other tests, and random ones, through NVRTC. A sample of them; all with
// TILEWRIGHT_COMPILE_ALL=1.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "codegen/emit.h"
#include "diagnose/random_kernel.h"
#include "lower/lower.h"
#include "runtime/compile.h"

namespace tw::codegen {
namespace compiles_test {

namespace fs = std::filesystem;

bool all() { return std::getenv("TILEWRIGHT_COMPILE_ALL") != nullptr; }

// False: there is no compiler on this machine.
bool compiles(const ir::Kernel& kernel, const std::string& file, const std::string& text) {
    auto emitted = emit(kernel, file);
    EXPECT_TRUE(emitted) << file << ": " << kernel.name << ": " << emitted.error().message << "\n" << text;
    if (!emitted) return true;
    auto compiled = runtime::compile(runtime::request_for_own_text(emitted->source, kernel.name + ".cu", kernel.arch));
    if (!compiled && compiled.error().kind == runtime::FailureKind::missing_library) return false;
    EXPECT_TRUE(compiled) << file << ": " << compiled.error().message << "\n" << text;
    return true;
}

TEST(Compiles, KernelsOfExamplesAndTests) {
    std::vector<fs::path> files;
    for (const char* folder : {"examples", "tests/gpu/kernels", "tests/codegen/cpu", "tests/verify"}) {
        for (const auto& entry : fs::recursive_directory_iterator(fs::path(TW_SOURCE_DIR) / folder)) {
            if (entry.path().extension() == ".py") files.push_back(entry.path());
        }
    }
    std::sort(files.begin(), files.end());
    int compiled = 0, number = 0;
    for (const fs::path& file : files) {
        SourceMap sources;
        DiagnosticSink sink;
        const auto module = lower::compile_file(sources, file.string(), {}, sink);
        if (!module || sink.has_errors()) continue;  // Python tests, and files that are refused
        for (const ir::Kernel& kernel : module->kernels) {
            if (!all() && number++ % 24 != 0) continue;
            if (!compiles(kernel, file.filename().string(), "")) GTEST_SKIP() << "no NVRTC on this machine";
            ++compiled;
        }
    }
    EXPECT_GT(compiled, 5);
}

TEST(Compiles, RandomKernels) {
    const std::uint64_t count = all() ? 400 : 16;
    std::set<std::string> families;
    for (std::uint64_t seed = 1; seed <= count; ++seed) {
        diagnose::RandomOptions options;
        options.broken = 0;
        if (seed <= diagnose::random_families().size()) options.family = diagnose::random_families()[seed - 1];
        std::string refused;
        const auto random = diagnose::random_kernel(5000 + seed, options, refused);
        ASSERT_TRUE(random) << refused;
        families.insert(random->family);
        const auto& kernels = random->module ? random->module->kernels : std::vector<ir::Kernel>{random->kernel};
        for (const ir::Kernel& kernel : kernels) {
            if (!compiles(kernel, "random.py", random->source)) GTEST_SKIP() << "no NVRTC on this machine";
        }
    }
    EXPECT_GT(families.size(), 8u);
}

}  // namespace compiles_test
}  // namespace tw::codegen
