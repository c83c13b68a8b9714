// Emitted text, run: the CUDA C++ of every sm_80 kernel is compiled for this CPU against stand-in headers (cpu/) and must give
// what the emulator gives for the same IR, on tiny, ragged and larger shapes. Two executions that share nothing but the IR.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "codegen/emit.h"
#include "emulate/emulator.h"
#include "emulate/trial.h"
#include "lower/lower.h"

namespace tw::codegen {
namespace cpu_run_test {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
    std::ifstream in(path);
    return std::string(std::istreambuf_iterator<char>(in), {});
}

using Entry = void (*)(const unsigned* grid, void** arguments);

// The kernel as a function of this process. `folder` gets the files.
Entry compiled(const ir::Kernel& k, const EmittedKernel& emitted, const fs::path& folder) {
    std::string text = emitted.source;
    const std::string declaration = "extern __shared__ __align__(1024) char arena[];";
    if (const auto at = text.find(declaration); at != std::string::npos) text.erase(at, declaration.size());  // the stand-in has its own
    std::string call;
    for (std::size_t i = 0; i < emitted.arguments.size(); ++i) {
        const Argument& a = emitted.arguments[i];
        std::string type = "int";
        if (a.kind == Argument::Kind::tensor) {
            const auto dtype = k.tensors[static_cast<std::size_t>(a.id)].dtype;
            type = dtype == ir::DType::F32     ? "float*"
                   : dtype == ir::DType::F64   ? "double*"
                   : dtype == ir::DType::I32   ? "int*"
                   : dtype == ir::DType::I64   ? "tw::i64*"
                   : dtype == ir::DType::I8    ? "signed char*"
                   : target::bytes(dtype) == 1 ? "tw::u8*"
                                               : "tw::u16*";
        } else if (a.kind == Argument::Kind::scalar) {
            type = "float";
        }
        call += fmt::format("{}*({}*)a[{}]", i ? ", " : "", type, i);
    }
    text += fmt::format("\nextern \"C\" void run(const unsigned* grid, void** a) {{ tw::cpu::launch(grid, {}, {}, [&] {{ {}({}); }}); }}\n",
                        32 * k.warps, k.shared_bytes, emitted.entry, call);
    std::ofstream(folder / "kernel.cpp") << text;
    const std::string command = fmt::format("g++ -std=c++17 -O1 -shared -fPIC -w -I{} {} -o {} 2> {}", folder.string(),
                                            (folder / "kernel.cpp").string(), (folder / "kernel.so").string(), (folder / "log").string());
    if (std::system(command.c_str()) != 0) {
        ADD_FAILURE() << k.name << ": " << read(folder / "log").substr(0, 2000);
        return nullptr;
    }
    void* library = dlopen((folder / "kernel.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        ADD_FAILURE() << dlerror();
        return nullptr;
    }
    return reinterpret_cast<Entry>(dlsym(library, "run"));
}

struct Case {
    std::string file;
    int kernel;                                    // number in the file
    std::vector<std::vector<std::int64_t>> sizes;  // in the order of Kernel::sizes
    lower::ConstValues constants;
    friend void PrintTo(const Case& c, std::ostream* out) { *out << c.file << " kernel " << c.kernel; }
};

class OnCpu : public testing::TestWithParam<Case> {};

TEST_P(OnCpu, AgreesWithTheEmulator) {
    if (std::system("g++ --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no g++ on this machine";
    SourceMap sources;
    DiagnosticSink sink;
    auto module =
        lower::compile_file(sources, std::string(TW_SOURCE_DIR) + "/kernels/" + GetParam().file + ".py", GetParam().constants, sink);
    ASSERT_TRUE(module) << render_text(sink, sources);
    const ir::Kernel& k = module->kernels.at(static_cast<std::size_t>(GetParam().kernel));
    auto emitted = emit(k, GetParam().file);
    ASSERT_TRUE(emitted) << emitted.error().message;
    std::string pattern = (fs::temp_directory_path() / "tilewright-cpu-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    const fs::path folder = pattern;
    const fs::path headers = fs::path(TW_SOURCE_DIR) / "tests/codegen/cpu";
    for (const char* name : {"tw_device.cuh", "tw_tile_ptx.cuh"}) fs::copy_file(headers / name, folder / name);
    fs::copy_file(fs::path(TW_SOURCE_DIR) / "src/codegen/cuda/tw_tile.cuh", folder / "tw_tile.cuh");  // the real one
    const Entry entry = compiled(k, *emitted, folder);
    ASSERT_NE(entry, nullptr);

    for (const auto& sizes : GetParam().sizes) {
        ASSERT_EQ(sizes.size(), k.sizes.size());
        const auto tensors = emulate::random_inputs(k, sizes, 1, false);
        const std::vector<double> scalars(k.scalars.size(), 0.25);
        auto expected = tensors;
        emulate::Options options;
        options.detect_races = false;  // other tests do that
        const auto outcome = emulate::run(k, sizes, scalars, expected, options);
        ASSERT_TRUE(outcome.clean()) << outcome.faults.front().message;
        constexpr std::size_t guard = 256;
        std::vector<std::vector<std::uint8_t>> memory;
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            std::vector<std::uint8_t> bytes(tensors[i].bytes.size() + 2 * guard + 16, 0xff);  // all ones: NaN in every float type
            memory.push_back(std::move(bytes));
        }
        auto first = [&](std::size_t i) {
            return (reinterpret_cast<std::uintptr_t>(memory[i].data()) + guard + 15) / 16 * 16 -
                   reinterpret_cast<std::uintptr_t>(memory[i].data());
        };
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            if (!k.tensors[i].is_output)
                std::copy(tensors[i].bytes.begin(), tensors[i].bytes.end(), memory[i].begin() + static_cast<std::ptrdiff_t>(first(i)));
            if (k.tensors[i].zero_initialised)
                std::fill_n(memory[i].begin() + static_cast<std::ptrdiff_t>(first(i)), tensors[i].bytes.size(), 0);
        }
        std::vector<std::uint64_t> words(emitted->arguments.size());
        std::vector<void*> pointers;
        for (std::size_t i = 0; i < emitted->arguments.size(); ++i) {
            const Argument& a = emitted->arguments[i];
            const auto id = static_cast<std::size_t>(a.id);
            if (a.kind == Argument::Kind::tensor) words[i] = reinterpret_cast<std::uint64_t>(memory[id].data() + first(id));
            if (a.kind == Argument::Kind::size) words[i] = static_cast<std::uint64_t>(sizes[id]);
            if (a.kind == Argument::Kind::scalar) words[i] = target::from_double(scalars[id], k.scalars[id].dtype);
            pointers.push_back(&words[i]);
        }
        unsigned grid[3];
        for (int axis = 0; axis < 3; ++axis) grid[axis] = static_cast<unsigned>(emulate::size_value(k.grid[axis], sizes).value());
        entry(grid, pointers.data());

        for (std::size_t i = 0; i < tensors.size(); ++i) {
            const std::size_t bytes = tensors[i].bytes.size(), at = first(i);
            for (std::size_t b = 0; b < at; ++b) ASSERT_EQ(memory[i][b], 0xff) << "wrote before " << k.tensors[i].name;
            for (std::size_t b = at + bytes; b < memory[i].size(); ++b)
                ASSERT_EQ(memory[i][b], 0xff) << "wrote behind " << k.tensors[i].name;
            if (!k.tensors[i].is_output) continue;
            emulate::TensorData got = tensors[i];
            std::copy_n(memory[i].begin() + static_cast<std::ptrdiff_t>(at), bytes, got.bytes.begin());
            double worst = 0, size = 0;
            const std::int64_t count = got.elements();
            for (std::int64_t e = 0; e < count; ++e) {
                std::vector<std::int64_t> index(got.dims.size());
                for (std::int64_t rest = e, d = static_cast<std::int64_t>(index.size()) - 1; d >= 0; --d) {
                    index[static_cast<std::size_t>(d)] = rest % got.dims[static_cast<std::size_t>(d)];
                    rest /= got.dims[static_cast<std::size_t>(d)];
                }
                const double x = got.get(index), y = expected[i].get(index);
                ASSERT_FALSE(std::isnan(x)) << k.tensors[i].name << " element " << e << " was not written";
                worst += (x - y) * (x - y);
                size += y * y;
            }
            const double tolerance = target::bytes(k.tensors[i].dtype) == 2 ? 4e-3 : 2e-6;
            EXPECT_LE(std::sqrt(worst), tolerance * std::sqrt(size) + 1e-12) << k.name << " " << k.tensors[i].name;
        }
    }
    fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Kernels, OnCpu,
                         testing::ValuesIn(std::vector<Case>{
                             {"vector_add", 0, {{1}, {7}, {1024}, {2500}}, {}},
                             {"bias_gelu", 0, {{1, 8}, {9, 264}, {3, 512}}, {}},
                             {"bias_gelu", 1, {{1, 1}, {5, 263}}, {}},
                             {"softmax", 0, {{1, 1}, {5, 1000}, {4, 1024}}, {}},
                             {"softmax", 1, {{2, 5}, {2, 1500}}, {}},
                             {"cumsum", 0, {{1, 1}, {2, 1500}}, {}},
                             {"transpose", 0, {{1, 1}, {33, 65}}, {}},
                             {"transpose_sm90", 2, {{1, 257}, {65, 265}}, {}},   // bf16, N % 8 == 1
                             {"transpose_sm90", 8, {{3, 263}, {130, 519}}, {}},  // N % 8 == 7
                             {"transpose_sm90", 9, {{1, 1}, {65, 131}, {300, 70}}, {}},
                             {"transpose_sm90", 10, {{1, 1}, {65, 131}, {300, 70}}, {}},
                             {"reductions", 0, {{1, 1}, {6, 700}}, {}},
                             {"reductions", 1, {{1, 1}, {70, 45}}, {}},
                             {"reductions", 2, {{1, 1}, {70, 45}}, {}},
                             {"layernorm", 0, {{1, 8}, {5, 1000}}, {}},
                             {"rmsnorm", 0, {{1, 8}, {5, 1000}}, {}},
                             {"split_k", 0, {{1, 8, 1}, {70, 136, 66}}, {}},
                             {"split_k", 1, {{1, 1}, {2, 700}}, {}},
                             {"gemm_sm80", 0, {{8, 8, 8}, {70, 72, 136}}, {{"BM", 64}, {"BN", 64}}},
                             {"gemm_sm80", 0, {{130, 40, 136}}, {}},
                             {"../tests/gpu/kernels/shuffles", 0, {{2}, {600}}, {}},
                             {"../tests/gpu/kernels/shuffles", 1, {{1}, {7}}, {}},
                             {"../tests/gpu/kernels/shuffles", 2, {{1}, {9}}, {}},
                             {"../tests/gpu/kernels/shuffles", 3, {{16}, {1040}}, {}},
                             {"../tests/gpu/kernels/panels", 0, {{1, 1}, {70, 45}}, {}},
                             {"argmax", 3, {{1, 8}, {7, 1000}}, {}},            // bf16, rows in registers
                             {"argmax", 17, {{2, 8}, {10, 705}}, {}},           // bf16, rows of any pitch, two a block
                             {"argmax", 18, {{1, 8}, {9, 705}, {11, 13}}, {}},  // and one
                             {"argmax", 19, {{9, 1501}}, {}},
                             {"layernorm_sm90", 43, {{1, 9}, {9, 101}, {40, 263}}, {}},  // bf16, rows of any pitch by warps, in pieces
                             {"../tests/gpu/kernels/pairs", 0, {{1, 1}, {3, 700}, {2, 768}}, {}},
                             {"../tests/gpu/kernels/pairs", 1, {{1, 8}, {33, 64}, {70, 40}}, {}},
                             {"../tests/gpu/kernels/pairs", 2, {{1, 8}, {32, 264}, {7, 128}}, {}},
                             {"../tests/gpu/kernels/pairs", 3, {{1, 1}, {3, 700}, {2, 512}}, {}},
                             {"../tests/gpu/kernels/masks", 0, {{1, 1}, {3, 255}, {2, 512}, {2, 770}}, {}},
                             {"../tests/codegen/cpu/decisions", 0, {{1}, {129}, {1000}}, {}},
                             {"../tests/codegen/cpu/decisions", 1, {{1, 1}, {3, 700}, {2, 1500}}, {}},
                             {"../tests/codegen/cpu/decisions", 2, {{1, 1}, {2, 700}}, {}},
                             {"../tests/codegen/cpu/decisions", 3, {{1, 1}, {12, 70}}, {}},
                             {"../tests/codegen/cpu/decisions", 4, {{1, 1}, {3, 600}, {2, 100}}, {}},
                             {"../tests/codegen/cpu/decisions", 5, {{1, 1}, {3, 600}, {2, 256}}, {}},
                             {"dropout", 0, {{1}, {1027}, {5000}}, {}},  // bf16
                             {"dropout", 5, {{1}, {1027}, {5000}}, {}},  // f32, added to a residual
                             {"../tests/codegen/cpu/decisions", 6, {{1}, {1000}}, {}},
                             {"../tests/codegen/cpu/decisions", 7, {{1, 8}, {3, 600}, {2, 256}}, {}},
                             {"../tests/codegen/cpu/decisions", 8, {{1, 8}, {9, 601}, {2, 256}}, {}},
                             {"../tests/codegen/cpu/decisions", 9, {{1, 4}, {9, 600}, {2, 256}}, {}},
                             {"../tests/gpu/kernels/narrow_types", 0, {{1, 1}, {3, 700}}, {}},
                             {"../tests/gpu/kernels/narrow_types", 3, {{1}, {1001}}, {}},
                             {"quantize_sm90", 0, {{1, 16}, {3, 1008}}, {}},
                         }),
                         [](const auto& given) {
                             return fs::path(given.param.file).filename().string() + "_" + std::to_string(given.index);
                         });

// Every decision of the printer's own that docs/trusted-base.md lists for this test is taken in one of the kernels above: what it prints is
// there.
TEST(OnCpuDecisions, EachIsTakenSomewhere) {
    struct Decision {
        const char *text, *file;
        int kernel;
    };
    for (const Decision& d : {Decision{"__any_sync(", "../tests/codegen/cpu/decisions", 0},
                              {"__all_sync(", "../tests/codegen/cpu/decisions", 1},
                              {"c_slot == 3) c_slot = 0, c_phase ^= 1", "../tests/codegen/cpu/decisions", 2},
                              {"tw::floor_div(", "../tests/codegen/cpu/decisions", 3},
                              {"const bool place_any = x_own >= ", "../tests/codegen/cpu/decisions", 4},
                              {"tw::load_bytes<8>(", "../tests/codegen/cpu/decisions", 5},
                              {"tw::load_bytes_nc<8>(", "../tests/codegen/cpu/decisions", 7},
                              {"tw::store_bytes<8>(arena", "../tests/codegen/cpu/decisions", 7},
                              {"tw::store_bytes<4>(p", "../tests/codegen/cpu/decisions", 7},
                              {"tw::store_bytes<16>(p", "../tests/codegen/cpu/decisions", 7},
                              {"tw::to_e4m3(float(x_[2 * v])", "../tests/codegen/cpu/decisions", 7},
                              {"tw::atomic_add_vector<4>(", "../tests/codegen/cpu/decisions", 9},
                              {"(((tid * 8) / 4) + (v / 4))", "dropout", 0},
                              {"tw::store_between<8>(", "../tests/codegen/cpu/decisions", 8},
                              {"tw::store_some<4>(", "../tests/gpu/kernels/narrow_types", 3},
                              {"tw::gelu_approx(", "bias_gelu", 0},
                              {"tw::philox(", "dropout", 0},
                              {"tw::mulhi(", "../tests/codegen/cpu/decisions", 6},
                              {"auto inside = [&](int v)", "../tests/gpu/kernels/masks", 0},
                              {"r0 = r0 + ", "reductions", 0},
                              {"tw::load_some<", "vector_add", 0},
                              {"_nc<16>", "vector_add", 0},
                              {"quad_transpose(", "gemm_sm80", 0},
                              {"tw::max_bf16x2(", "../tests/gpu/kernels/pairs", 0},
                              {"(float(", "argmax", 3},
                              {"cp_async_16_zfill(", "gemm_sm80", 0}}) {
        SourceMap sources;
        DiagnosticSink sink;
        auto module = lower::compile_file(sources, std::string(TW_SOURCE_DIR) + "/kernels/" + d.file + ".py", {}, sink);
        ASSERT_TRUE(module) << render_text(sink, sources);
        auto emitted = emit(module->kernels.at(static_cast<std::size_t>(d.kernel)), d.file);
        ASSERT_TRUE(emitted);
        EXPECT_NE(emitted->source.find(d.text), std::string::npos) << d.text << " in " << d.file << " " << d.kernel << "\n"
                                                                   << emitted->source;
    }
}

}  // namespace cpu_run_test
}  // namespace tw::codegen
