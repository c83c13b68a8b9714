// Strides that do not fit in 31 bits, in the emitted text itself: a kernel compiled for this CPU reads and writes elements that lie
// billions of elements apart, in memory of which only the touched pages exist.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "codegen/emit.h"
#include "lower/lower.h"

namespace tw::codegen {
namespace wide_strides_test {

namespace fs = std::filesystem;

constexpr std::int64_t M = 70000, N = 40000;  // 2.8e9 elements

struct Case {
    std::string name, stride;  // of dimension 0; M and N are sizes
    std::int64_t value;
    friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

std::string kernel_text(const Case& c, bool stores) {
    const std::string strided = fmt::format("tw.Tensor(f32, 2, M, N, strides=({}, N, 1))", c.stride), plain = "tw.Tensor(f32, 2, N)";
    return fmt::format(R"py(import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", threads=32)
def k(X: {}, Y: {}, Z: tw.Tensor(f32, M)):
    b = tw.grid(2)
    tw.store(Y[b, {}], tw.load(X[b, {}], fill=0.0))
)py",
                       stores ? plain : strided, stores ? strided : plain, stores ? "M - 1, 0:32" : "0:32",
                       stores ? "0:32" : "M - 1, 0:32");
}

struct Mapped {
    std::size_t bytes;
    float* at;
    explicit Mapped(std::size_t elements) : bytes(elements * sizeof(float)) {
        void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        at = p == MAP_FAILED ? nullptr : static_cast<float*>(p);
    }
    ~Mapped() {
        if (at) munmap(at, bytes);
    }
};

class WideStrides : public testing::TestWithParam<Case> {};

TEST_P(WideStrides, ReachElementsBillionsApart) {
    if (std::system("g++ --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no g++ on this machine";
    for (const bool stores : {false, true}) {
        SourceMap sources;
        DiagnosticSink sink;
        auto module = lower::compile_text(sources, "k.py", kernel_text(GetParam(), stores), {}, sink);
        ASSERT_TRUE(module) << render_text(sink, sources);
        auto emitted = emit(module->kernels[0], "k.py");
        ASSERT_TRUE(emitted) << emitted.error().message;
        std::string pattern = (fs::temp_directory_path() / "tilewright-wide-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        const fs::path folder = pattern, headers = fs::path(TW_SOURCE_DIR) / "tests/codegen/cpu";
        for (const char* name : {"tw_device.cuh", "tw_tile_ptx.cuh"}) fs::copy_file(headers / name, folder / name);
        fs::copy_file(fs::path(TW_SOURCE_DIR) / "src/codegen/cuda/tw_tile.cuh", folder / "tw_tile.cuh");
        std::string text = emitted->source, call;
        for (std::size_t i = 0; i < emitted->arguments.size(); ++i)
            call += fmt::format("{}*({}*)a[{}]", i ? ", " : "", emitted->arguments[i].kind == Argument::Kind::tensor ? "float*" : "int", i);
        text +=
            fmt::format("\nextern \"C\" void run(const unsigned* grid, void** a) {{ tw::cpu::launch(grid, 32, {}, [&] {{ {}({}); }}); }}\n",
                        module->kernels[0].shared_bytes, emitted->entry, call);
        std::ofstream(folder / "kernel.cpp") << text;
        const std::string command =
            fmt::format("g++ -std=c++17 -O1 -shared -fPIC -w -I{0} {0}/kernel.cpp -o {0}/kernel.so 2> {0}/log", folder.string());
        ASSERT_EQ(std::system(command.c_str()), 0) << text;
        void* library = dlopen((folder / "kernel.so").c_str(), RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(library, nullptr) << dlerror();
        const auto run = reinterpret_cast<void (*)(const unsigned*, void**)>(dlsym(library, "run"));

        Mapped large(static_cast<std::size_t>(GetParam().value + M * N + 64)), small(2 * N);
        if (!large.at || !small.at) GTEST_SKIP() << "no address space for tensors of 11 GB";
        const auto element = [&](std::int64_t b, std::int64_t n) -> float& { return large.at[b * GetParam().value + (M - 1) * N + n]; };
        for (std::int64_t b = 0; b < 2; ++b) {
            for (std::int64_t n = 0; n < 32; ++n) (stores ? small.at[b * N + n] : element(b, n)) = static_cast<float>(100 * b + n + 1);
        }
        float* tensors[] = {stores ? small.at : large.at, stores ? large.at : small.at, small.at};
        const std::int64_t sizes[] = {M, N};
        std::vector<std::uint64_t> words(emitted->arguments.size());
        std::vector<void*> pointers;
        for (std::size_t i = 0; i < words.size(); ++i) {
            const Argument& a = emitted->arguments[i];
            if (a.kind == Argument::Kind::tensor) words[i] = reinterpret_cast<std::uint64_t>(tensors[a.id]);
            else
                words[i] =
                    static_cast<std::uint64_t>(module->kernels[0].sizes[static_cast<std::size_t>(a.id)] == "M" ? sizes[0] : sizes[1]);
            pointers.push_back(&words[i]);
        }
        const unsigned grid[3] = {2, 1, 1};
        run(grid, pointers.data());
        for (std::int64_t b = 0; b < 2; ++b) {
            for (std::int64_t n = 0; n < 32; ++n)
                ASSERT_EQ(stores ? element(b, n) : small.at[b * N + n], static_cast<float>(100 * b + n + 1)) << "b = " << b << "\n" << text;
        }
        dlclose(library);
        fs::remove_all(folder);
    }
}

INSTANTIATE_TEST_SUITE_P(OnCpu, WideStrides,
                         testing::ValuesIn(std::vector<Case>{
                             {"product", "M * N", M* N},
                             {"product_and_padding", "M * N + 64", M* N + 64},
                             {"padding_first", "64 + N * M", M* N + 64},
                             {"difference", "M * (N + 64) - M * 64", M* N},
                             {"rounded_up", "(M * N + 63) // 64 * 64", (M * N + 63) / 64 * 64},
                             {"longest_of_two", "tw.max(M * N, 64 * N)", M* N},
                             {"shortest_of_two", "tw.min(M * N + M * N, M * N + 128)", M* N + 128},
                             {"nested_sum", "(M + 1) * (N + 2)", (M + 1) * (N + 2)},
                         }),
                         [](const auto& given) { return given.param.name; });

}  // namespace wide_strides_test
}  // namespace tw::codegen
